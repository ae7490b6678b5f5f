//! Generators for expressions, procedures and CREATE DATABASE.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use windlass_tsql::Spanned;
use windlass_tsql::ast::*;

use super::{identifier, spanned, value, variable};

fn object_name() -> impl Strategy<Value = ObjectName> {
    (option::of(identifier()), identifier()).prop_map(|(schema, object)| ObjectName {
        qualifiers: schema.into_iter().map(Some).collect(),
        object,
    })
}

fn data_type() -> impl Strategy<Value = DataType> {
    let argument = prop_oneof![
        any::<u32>().prop_map(TypeArgument::Number),
        Just(TypeArgument::Max)
    ];
    (object_name(), vec(argument, 0..3)).prop_map(|(name, arguments)| DataType { name, arguments })
}

fn leaf() -> impl Strategy<Value = Expr> {
    prop_oneof![
        Just(Expr::Null),
        (any::<String>(), any::<bool>()).prop_map(|(text, national)| Expr::Text { text, national }),
        (0..=i64::MAX).prop_map(Expr::Integer),
        "[0-9]{1,4}\\.[0-9]{0,4}(e[+-]?[0-9])?".prop_map(Expr::Decimal),
        vec(any::<u8>(), 0..6).prop_map(Expr::Binary),
        variable().prop_map(Expr::Variable),
    ]
}

type Inner = BoxedStrategy<Expr>;

fn boxed(inner: Inner) -> impl Strategy<Value = Box<Spanned<Expr>>> {
    spanned(inner).prop_map(Box::new)
}

fn infix(inner: Inner) -> impl Strategy<Value = Expr> {
    use InfixOperator::{Add, BitXor, Concatenate, Divide, Modulo, Multiply, Subtract};
    let operator = select(vec![
        Add,
        Subtract,
        Multiply,
        Divide,
        Modulo,
        BitXor,
        Concatenate,
    ]);
    (operator, boxed(inner.clone()), boxed(inner)).prop_map(|(operator, left, right)| Expr::Infix {
        operator,
        left,
        right,
    })
}

fn condition(inner: Inner) -> impl Strategy<Value = Expr> {
    use Comparison::{Different, Equal, Greater, GreaterOrEqual, Less, LessOrEqual};
    let operator = select(vec![
        Equal,
        Different,
        Less,
        LessOrEqual,
        Greater,
        GreaterOrEqual,
    ]);
    let compared = (operator, boxed(inner.clone()), boxed(inner.clone())).prop_map(
        |(operator, left, right)| Expr::Compare {
            operator,
            left,
            right,
        },
    );
    let tested = (boxed(inner.clone()), any::<bool>())
        .prop_map(|(value, negated)| Expr::IsNull { value, negated });
    let ranged = (
        boxed(inner.clone()),
        boxed(inner.clone()),
        boxed(inner.clone()),
        any::<bool>(),
    )
        .prop_map(|(value, low, high, negated)| Expr::Between {
            value,
            low,
            high,
            negated,
        });
    let listed = (
        boxed(inner.clone()),
        vec(spanned(inner.clone()), 1..3),
        any::<bool>(),
    )
        .prop_map(|(value, list, negated)| Expr::InList {
            value,
            list,
            negated,
        });
    let like = (
        boxed(inner.clone()),
        boxed(inner.clone()),
        option::of(boxed(inner)),
        any::<bool>(),
    )
        .prop_map(|(value, pattern, escape, negated)| Expr::Like {
            value,
            pattern,
            escape,
            negated,
        });
    prop_oneof![compared, tested, ranged, listed, like].prop_recursive(3, 8, 2, |inner| {
        let operator = select(vec![LogicOperator::And, LogicOperator::Or]);
        prop_oneof![
            (operator, boxed(inner.clone()), boxed(inner.clone())).prop_map(
                |(operator, left, right)| Expr::Logic {
                    operator,
                    left,
                    right,
                }
            ),
            boxed(inner).prop_map(Expr::Not),
        ]
    })
}

fn case(inner: Inner) -> impl Strategy<Value = Expr> {
    let searched = (spanned(condition(inner.clone())), spanned(inner.clone()))
        .prop_map(|(when, then)| Branch { when, then });
    let searched = (vec(searched, 1..3), option::of(spanned(inner.clone()))).prop_map(
        |(branches, otherwise)| Case {
            operand: None,
            branches,
            otherwise,
        },
    );
    let simple = (spanned(inner.clone()), spanned(inner.clone()))
        .prop_map(|(when, then)| Branch { when, then });
    let simple = (spanned(inner), vec(simple, 1..3)).prop_map(|(operand, branches)| Case {
        operand: Some(operand),
        branches,
        otherwise: None,
    });
    prop_oneof![searched, simple].prop_map(|case| Expr::Case(Box::new(case)))
}

fn unary(inner: Inner) -> impl Strategy<Value = Expr> {
    let operator = select(vec![
        UnaryOperator::Negate,
        UnaryOperator::Plus,
        UnaryOperator::BitNot,
    ]);
    (operator, boxed(inner)).prop_map(|(operator, operand)| Expr::Unary { operator, operand })
}

fn conversion(inner: Inner) -> impl Strategy<Value = Expr> {
    let on_failure = select(vec![OnConversionFailure::Error, OnConversionFailure::Null]);
    let style = option::of(boxed(inner.clone()));
    (boxed(inner), data_type(), on_failure, any::<bool>(), style).prop_map(
        |(value, data_type, on_failure, cast, style)| {
            if cast {
                Expr::Cast {
                    value,
                    data_type,
                    on_failure,
                }
            } else {
                Expr::Convert {
                    data_type,
                    value,
                    style,
                    on_failure,
                }
            }
        },
    )
}

fn call(inner: Inner) -> impl Strategy<Value = Expr> {
    let special = ["LEFT", "cast", "iif", "USER", "CONVERT", "getdate"];
    let function = prop_oneof![
        object_name(),
        select(special.to_vec()).prop_map(|word| ObjectName {
            qualifiers: vec![],
            object: Identifier::new(word)
        }),
    ];
    (function, vec(spanned(inner), 0..4)).prop_map(|(function, arguments)| Expr::Call {
        function,
        arguments,
    })
}

fn expression() -> impl Strategy<Value = Expr> {
    leaf().prop_recursive(5, 40, 4, |inner| {
        prop_oneof![
            infix(inner.clone()),
            unary(inner.clone()),
            conversion(inner.clone()),
            case(inner.clone()),
            call(inner),
        ]
    })
}

fn argument() -> impl Strategy<Value = Argument> {
    let value = prop_oneof![
        Just(ArgumentValue::Null),
        Just(ArgumentValue::Default),
        value().prop_map(ArgumentValue::Value),
        "-?[0-9]{1,3}\\.[0-9]{1,3}".prop_map(ArgumentValue::Decimal),
        vec(any::<u8>(), 0..4).prop_map(ArgumentValue::Binary),
        identifier().prop_map(ArgumentValue::Word),
    ];
    let direction = select(vec![ArgumentDirection::Input, ArgumentDirection::Output]);
    (option::of(variable()), value, direction).prop_map(|(name, value, direction)| Argument {
        name,
        value,
        direction,
    })
}

pub(crate) fn execute() -> impl Strategy<Value = Statement> {
    (
        option::of(spanned(variable())),
        spanned(object_name()),
        vec(spanned(argument()), 0..5),
    )
        .prop_map(|(return_code, procedure, arguments)| {
            Statement::Execute(Execute {
                return_code,
                procedure,
                arguments,
            })
        })
}

fn nested(statement: Statement) -> Box<Spanned<Statement>> {
    Box::new(Spanned::unplaced(statement))
}

/// Control flow around statements on variables.
pub(crate) fn flow() -> impl Strategy<Value = Statement> {
    let leaf = prop_oneof![
        variables(),
        Just(Statement::Break),
        Just(Statement::Throw(None)),
        option::of(spanned(expression())).prop_map(Statement::Return),
        spanned(expression()).prop_map(Statement::ExecuteText),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        let condition = || spanned(condition(leaf_expression()));
        let block = vec(spanned(inner.clone()), 1..4).boxed();
        prop_oneof![
            block.clone().prop_map(Statement::Block),
            (block.clone(), block).prop_map(|(body, handler)| {
                Statement::TryCatch(Box::new(TryCatch { body, handler }))
            }),
            (condition(), inner.clone()).prop_map(|(condition, body)| {
                let body = *nested(body);
                Statement::While(Box::new(While { condition, body }))
            }),
            (condition(), inner.clone(), inner).prop_map(|(condition, then, otherwise)| {
                // A block, so that ELSE belongs to this IF.
                let then = Spanned::unplaced(Statement::Block(vec![*nested(then)]));
                let otherwise = Some(*nested(otherwise));
                Statement::If(Box::new(If {
                    condition,
                    then,
                    otherwise,
                }))
            }),
        ]
    })
}

fn leaf_expression() -> Inner {
    leaf().boxed()
}

pub(crate) fn variables() -> impl Strategy<Value = Statement> {
    use AssignmentOperator::{Add, Assign, Divide, Modulo, Multiply, Subtract};
    let declaration = (variable(), data_type(), option::of(spanned(expression()))).prop_map(
        |(variable, data_type, value)| Declaration {
            variable,
            data_type,
            value,
        },
    );
    let operator = select(vec![Assign, Add, Subtract, Multiply, Divide, Modulo]);
    let set = (spanned(variable()), operator, spanned(expression())).prop_map(
        |(variable, operator, value)| SetVariable {
            variable,
            operator,
            value,
        },
    );
    prop_oneof![
        vec(spanned(declaration), 1..4).prop_map(Statement::Declare),
        set.prop_map(Statement::SetVariable),
        spanned(expression()).prop_map(Statement::Print),
    ]
}

fn file_definition() -> impl Strategy<Value = FileDefinition> {
    use SizeUnit::{Gigabyte, Kilobyte, Megabyte, Terabyte};
    let size = (
        any::<u64>(),
        option::of(select(vec![Kilobyte, Megabyte, Gigabyte, Terabyte])),
    )
        .prop_map(|(count, unit)| FileSize { count, unit });
    let limit = prop_oneof![
        size.clone().prop_map(FileSizeLimit::Size),
        Just(FileSizeLimit::Unlimited)
    ];
    let growth = prop_oneof![
        size.clone().prop_map(FileGrowth::Size),
        any::<u64>().prop_map(FileGrowth::Percent)
    ];
    (
        spanned(identifier()),
        option::of(spanned(any::<String>())),
        option::of(size),
        option::of(limit),
        option::of(growth),
    )
        .prop_map(|(name, filename, size, max_size, growth)| FileDefinition {
            name: Some(name),
            filename,
            size,
            max_size,
            growth,
        })
}

fn files() -> impl Strategy<Value = Vec<Spanned<FileDefinition>>> {
    vec(spanned(file_definition()), 1..3)
}

pub(crate) fn create_database() -> impl Strategy<Value = Statement> {
    let filegroup =
        (spanned(identifier()), files()).prop_map(|(name, files)| Filegroup { name, files });
    let origin = prop_oneof![
        Just(DatabaseOrigin::New),
        Just(DatabaseOrigin::Attach),
        Just(DatabaseOrigin::AttachAsIs),
        Just(DatabaseOrigin::AttachRebuildLog),
        spanned(identifier()).prop_map(DatabaseOrigin::SnapshotOf),
    ];
    let log = prop_oneof![Just(Vec::new()), files()];
    (
        spanned(identifier()),
        files(),
        vec(filegroup, 0..3),
        log,
        origin,
    )
        .prop_map(|(name, primary_files, filegroups, log_files, origin)| {
            let statement = CreateDatabase {
                name,
                primary_files,
                filegroups,
                log_files,
                origin,
            };
            Statement::CreateDatabase(Box::new(statement))
        })
}
