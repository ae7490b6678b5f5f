//! Functions over rows: aggregates, and functions with OVER.
//!
//! SQLite counts and adds. Exact numbers are added as integers without their point; the tree around the
//! sum puts the point back and checks the type.

use windlass_base::message::table as messages;
use windlass_tsql::ast::{Aggregate, Expr, InfixOperator, ObjectName, OrderItem, Over};
use windlass_tsql::span::Spanned;

use super::Binder;
use super::operator::{collation_of, infix};
use crate::tsql::expression::{Bound, Collation, Node};
use crate::{DataType, Failure, IntegerType, Value};

type Result<T> = std::result::Result<T, Failure>;

const AGGREGATES: &[&str] = &[
    "AVG",
    "COUNT",
    "COUNT_BIG",
    "GROUP_CONCAT",
    "JSON_GROUP_ARRAY",
    "JSON_GROUP_OBJECT",
    "MAX",
    "MIN",
    "STRING_AGG",
    "SUM",
    "TOTAL",
];

/// Functions that need OVER.
const WINDOWS: &[&str] = &[
    "CUME_DIST",
    "DENSE_RANK",
    "FIRST_VALUE",
    "LAG",
    "LAST_VALUE",
    "LEAD",
    "NTILE",
    "PERCENT_RANK",
    "RANK",
    "ROW_NUMBER",
];

/// Whether a call with so many arguments is over rows: `MAX(a, b)` is SQLite's own.
pub(super) fn is_aggregate(name: &str, arguments: usize) -> bool {
    let is_scalar = matches!(name, "MAX" | "MIN") && arguments != 1;
    !is_scalar && (AGGREGATES.contains(&name) || WINDOWS.contains(&name))
}

impl Binder<'_> {
    pub(super) fn plain_aggregate(
        &mut self,
        function: &ObjectName,
        arguments: &[Spanned<Expr>],
    ) -> Result<Bound> {
        self.aggregate(&Aggregate {
            function: function.clone(),
            distinct: false,
            star: false,
            arguments: arguments.to_vec(),
            within: Vec::new(),
            over: None,
        })
    }

    pub(super) fn aggregate(&mut self, aggregate: &Aggregate) -> Result<Bound> {
        let name = aggregate.function.object.text.to_ascii_uppercase();
        if WINDOWS.contains(&name.as_str()) && aggregate.over.is_none() {
            return Err(messages::needs_over(name).into());
        }
        if aggregate.over.is_some() && self.refuses_windows {
            return Err(messages::window_misplaced().into());
        }
        if aggregate.over.is_none() && self.refuses_aggregates {
            return Err(messages::aggregate_in_where().into());
        }
        let arguments = self.expressions(&aggregate.arguments)?;
        let within = self.order_keys(&aggregate.within)?;
        let over = match &aggregate.over {
            Some(over) => self.over(over)?,
            None => String::new(),
        };
        let distinct = if aggregate.distinct { "DISTINCT " } else { "" };
        let collation = aggregate
            .arguments
            .first()
            .map_or(Collation::Default, |first| collation_of(&first.node));
        let call = Call {
            name: &name,
            distinct,
            within,
            over,
            collation,
        };
        if aggregate.star {
            let ty = match name.as_str() {
                "COUNT" => DataType::INT,
                "COUNT_BIG" => DataType::BIGINT,
                _ => return Err(messages::syntax_near("*").into()),
            };
            return Ok(self.leaf(format!("COUNT(*){}", call.over), ty));
        }
        if WINDOWS.contains(&name.as_str()) {
            return Ok(self.window(&call, arguments));
        }
        self.over_rows(&call, &arguments)
    }

    fn over_rows(&mut self, call: &Call<'_>, arguments: &[Bound]) -> Result<Bound> {
        let count = if call.name == "STRING_AGG" {
            2..=2
        } else {
            1..=1
        };
        let is_free = matches!(
            call.name,
            "GROUP_CONCAT" | "JSON_GROUP_ARRAY" | "JSON_GROUP_OBJECT"
        );
        if !is_free && !count.contains(&arguments.len()) {
            let name = call.name.to_ascii_lowercase();
            return Err(Failure::ending(messages::argument_count(name, count.end())));
        }
        let Some(first) = arguments.first().cloned() else {
            return Err(messages::syntax_near(")").into());
        };
        match call.name {
            "COUNT" | "COUNT_BIG" => {
                let ty = if call.name == "COUNT" {
                    DataType::INT
                } else {
                    DataType::BIGINT
                };
                let key = self.emit_key(&first, call.collation);
                let sql = call.sql("COUNT", &key);
                Ok(self.leaf(sql, ty))
            }
            "MIN" | "MAX" => {
                let key = self.emit_key(&first, call.collation);
                let sql = call.sql(call.name, &key);
                Ok(self.leaf(sql, first.ty))
            }
            "SUM" | "AVG" => self.sum(call, &first),
            "STRING_AGG" => {
                let text = self.emit(&first.converted(DataType::TEXT));
                let separator = self.emit(&arguments[1].clone().converted(DataType::TEXT));
                let sql = call.sql("group_concat", &format!("{text}, {separator}"));
                Ok(self.leaf(sql, DataType::TEXT))
            }
            _ => {
                let arguments: Vec<String> = arguments
                    .iter()
                    .map(|value| self.emit_stored(value))
                    .collect();
                let sql = call.sql(&call.name.to_ascii_lowercase(), &arguments.join(", "));
                Ok(self.leaf(sql, DataType::Variant))
            }
        }
    }

    /// A number to add up. SQLite takes a text in a column of numbers for 0.
    fn summand(&mut self, value: &Bound) -> String {
        let sql = self.emit(value);
        match value.node {
            Node::Leaf(_) => {
                format!("CASE typeof({sql}) WHEN 'text' THEN windlass_number({sql}) ELSE {sql} END")
            }
            _ => sql,
        }
    }

    fn sum(&mut self, call: &Call<'_>, value: &Bound) -> Result<Bound> {
        let ty = value.ty;
        let counted = |binder: &mut Self, value: &Bound| {
            let value = binder.emit(value);
            let sql = call.sql("COUNT", &value);
            binder.leaf(sql, DataType::BIGINT)
        };
        match ty {
            DataType::Integer(kind) => {
                let sql = self.summand(value);
                let sql = call.sql("SUM", &sql);
                let sum = self.leaf(sql, DataType::BIGINT);
                let result = match kind {
                    IntegerType::BigInt => DataType::BIGINT,
                    _ => DataType::INT,
                };
                match call.name {
                    "SUM" => Ok(sum.converted(result)),
                    _ => {
                        let count = counted(self, value);
                        Ok(infix(InfixOperator::Divide, sum, count)?.converted(result))
                    }
                }
            }
            DataType::Decimal { .. } | DataType::Money | DataType::SmallMoney => {
                let scale = ty.digits().map_or(0, |(_, scale)| scale);
                let sql = self.emit(value);
                let sql = call.sql("windlass_sum", &sql);
                let exact = match ty {
                    DataType::Decimal { .. } => DataType::Decimal {
                        precision: 38,
                        scale,
                    },
                    _ => DataType::Money,
                };
                let sum = self.leaf(sql, exact);
                if call.name == "SUM" {
                    return Ok(sum);
                }
                let count = counted(self, value);
                let quotient = infix(InfixOperator::Divide, sum, count)?;
                Ok(match ty {
                    DataType::Decimal { .. } => quotient.converted(DataType::Decimal {
                        precision: 38,
                        scale: scale.max(6),
                    }),
                    _ => quotient.converted(DataType::Money),
                })
            }
            DataType::Float | DataType::Real | DataType::Variant => {
                let sql = self.summand(value);
                let sql = call.sql(call.name, &sql);
                let result = if ty == DataType::Variant {
                    ty
                } else {
                    DataType::Float
                };
                Ok(self.leaf(sql, result))
            }
            other => {
                let name = call.name.to_ascii_lowercase();
                Err(messages::operand_invalid(other.name(), name).into())
            }
        }
    }

    fn window(&mut self, call: &Call<'_>, arguments: Vec<Bound>) -> Bound {
        let ty = match call.name {
            "ROW_NUMBER" | "RANK" | "DENSE_RANK" | "NTILE" => DataType::BIGINT,
            "PERCENT_RANK" | "CUME_DIST" => DataType::Float,
            _ => arguments
                .first()
                .map_or(DataType::Variant, |first| first.ty),
        };
        let mut written = Vec::new();
        for (index, argument) in arguments.into_iter().enumerate() {
            // The default of LAG and LEAD has the type of their value.
            let argument = if index == 2 {
                argument.converted(ty)
            } else {
                argument
            };
            written.push(self.emit(&argument));
        }
        let sql = call.sql(call.name, &written.join(", "));
        self.leaf(sql, ty)
    }

    fn over(&mut self, over: &Over) -> Result<String> {
        let mut parts = Vec::new();
        if !over.partition.is_empty() {
            let mut keys = Vec::new();
            for key in &over.partition {
                let bound = self.expression(&key.node)?;
                keys.push(self.emit_key(&bound, collation_of(&key.node)));
            }
            parts.push(format!("PARTITION BY {}", keys.join(", ")));
        }
        if !over.order.is_empty() {
            parts.push(format!("ORDER BY {}", self.order_keys(&over.order)?));
        }
        parts.extend(over.frame.clone());
        Ok(format!(" OVER ({})", parts.join(" ")))
    }

    /// The keys of ORDER BY, separated by commas.
    pub(super) fn order_keys(&mut self, items: &[OrderItem]) -> Result<String> {
        let mut keys = Vec::new();
        for item in items {
            let bound = self.expression(&item.value.node)?;
            // `ORDER BY (SELECT NULL)` asks for any order.
            let key = match bound.constant() {
                Some(Value::Integer(_)) => "NULL".to_owned(),
                _ => self.emit_key(&bound, collation_of(&item.value.node)),
            };
            keys.push(key + if item.descending { " DESC" } else { "" });
        }
        Ok(keys.join(", "))
    }
}

/// A call over rows.
struct Call<'a> {
    /// In capitals.
    name: &'a str,
    distinct: &'static str,
    /// The keys of WITHIN GROUP.
    within: String,
    over: String,
    collation: Collation,
}

impl Call<'_> {
    fn sql(&self, name: &str, arguments: &str) -> String {
        let order = match self.within.is_empty() {
            true => String::new(),
            false => format!(" ORDER BY {}", self.within),
        };
        format!("{name}({}{arguments}{order}){}", self.distinct, self.over)
    }
}
