//! Trees as SQL: what SQLite does alike is written in its own words, the rest is called.

use std::sync::Arc;

use windlass_tsql::ast::{Comparison, LogicOperator};

use super::Binder;
use crate::tsql::expression::{Bound, Collation, Node};
use crate::tsql::program::Compiled;
use crate::{DataType, Value};

/// Maximum number of leaves in one call; SQLite limits the number of arguments.
const ARGUMENTS_MAX: usize = 100;

impl Binder<'_> {
    /// A value, in the form in which SQLite keeps it within a statement.
    pub(super) fn emit(&mut self, bound: &Bound) -> String {
        match &bound.node {
            Node::Leaf(index) => self
                .leaves
                .get(*index)
                .map_or_else(String::new, |leaf| leaf.sql.clone()),
            Node::Value(value) => match plain_constant(value) {
                Some(constant) if !bound.ty.is_exact() || value.is_null() => constant,
                _ => self.called(bound, false),
            },
            _ => self.called(bound, false),
        }
    }

    /// A value in the form in which other programs expect it in a table.
    pub(super) fn emit_stored(&mut self, bound: &Bound) -> String {
        match &bound.node {
            _ if bound.ty.is_exact() => self.called(bound, true),
            Node::Leaf(_) | Node::Value(_) => self.emit(bound),
            _ => self.called(bound, true),
        }
    }

    /// A value as a column keeps it: only Windlass reads temporary tables.
    pub(super) fn emit_kept(&mut self, bound: &Bound, is_temporary: bool) -> String {
        match is_temporary && bound.ty.is_exact() {
            true => self.emit(bound),
            false => self.emit_stored(bound),
        }
    }

    /// A column of a table, in the form in which SQLite keeps it within a statement.
    pub(super) fn column_sql(&mut self, sql: String, ty: DataType, is_temporary: bool) -> String {
        if is_temporary || !ty.is_exact() {
            return sql;
        }
        let column = self.leaf(sql, ty);
        self.called(&column, false)
    }

    /// A value to sort or group by.
    pub(super) fn emit_key(&mut self, bound: &Bound, collation: Collation) -> String {
        let sql = self.emit(bound);
        collated(sql, bound.ty, collation)
    }

    /// A call of the tree.
    fn called(&mut self, bound: &Bound, is_stored: bool) -> String {
        let mut used = Vec::new();
        let mut tree = bound.clone();
        let mut is_volatile = false;
        renumber(&mut tree, &mut used, &mut is_volatile);
        let leaves: Vec<_> = used
            .iter()
            .filter_map(|index| self.leaves.get(*index).cloned())
            .collect();
        let name = match is_volatile {
            true => "windlass_each",
            false => "windlass_eval",
        };
        let is_packed = leaves.len() > ARGUMENTS_MAX;
        let mut sql = format!("{name}({}", self.trees.len());
        for part in leaves.chunks(ARGUMENTS_MAX) {
            let part: Vec<&str> = part.iter().map(|leaf| leaf.sql.as_str()).collect();
            let part = part.join(", ");
            let part = match is_packed {
                true => format!("windlass_pack({part})"),
                false => part,
            };
            sql.push_str(", ");
            sql.push_str(&part);
        }
        sql.push(')');
        self.trees.push(Arc::new(Compiled {
            tree,
            leaf_types: leaves.into_iter().map(|leaf| leaf.ty).collect(),
            is_packed,
            is_stored,
        }));
        sql
    }

    /// A condition, so that SQLite sees what it can look up in an index.
    pub(super) fn emit_condition(&mut self, bound: &Bound) -> String {
        match &bound.node {
            Node::Logic {
                operator,
                left,
                right,
            } => {
                let (left, right) = (self.emit_condition(left), self.emit_condition(right));
                let word = match operator {
                    LogicOperator::And => "AND",
                    LogicOperator::Or => "OR",
                };
                format!("({left} {word} {right})")
            }
            Node::Not(inner) => format!("(NOT {})", self.emit_condition(inner)),
            Node::IsNull { value, negated } => {
                let not = if *negated { "NOT " } else { "" };
                format!("({} IS {not}NULL)", self.emit(value))
            }
            Node::Compare {
                operator,
                left,
                right,
                collation,
            } if is_native(left, right) => {
                let (one, two) = (self.emit_operand(left), self.emit_operand(right));
                let one = collated(one, unconverted(left).ty, *collation);
                format!("({one} {} {two})", symbol(*operator))
            }
            Node::InList {
                value,
                list,
                negated,
                collation,
            } if list.iter().all(|item| is_native(value, item)) => {
                let one = self.emit_operand(value);
                let one = collated(one, unconverted(value).ty, *collation);
                let list: Vec<String> = list.iter().map(|item| self.emit_operand(item)).collect();
                let not = if *negated { "NOT " } else { "" };
                format!("({one} {not}IN ({}))", list.join(", "))
            }
            _ => self.emit(bound),
        }
    }

    fn emit_operand(&mut self, bound: &Bound) -> String {
        self.emit(unconverted(bound))
    }
}

/// The operand without a conversion that changes nothing in SQLite.
fn unconverted(bound: &Bound) -> &Bound {
    match &bound.node {
        Node::Convert {
            value, style: None, ..
        } => {
            let same = value.ty.is_text() && bound.ty == DataType::TEXT
                || value.ty.is_whole() && bound.ty == DataType::BIGINT;
            if same { value } else { bound }
        }
        _ => bound,
    }
}

/// Whether SQLite compares two operands as T-SQL does: whole numbers, and texts with a collation.
fn is_native(left: &Bound, right: &Bound) -> bool {
    let (left, right) = (unconverted(left), unconverted(right));
    let is_simple = |bound: &Bound| matches!(bound.node, Node::Leaf(_) | Node::Value(_));
    is_simple(left)
        && is_simple(right)
        && (left.ty.is_whole() && right.ty.is_whole() || left.ty.is_text() && right.ty.is_text())
}

fn symbol(operator: Comparison) -> &'static str {
    match operator {
        Comparison::Equal => "=",
        Comparison::Different => "<>",
        Comparison::Less => "<",
        Comparison::LessOrEqual => "<=",
        Comparison::Greater => ">",
        Comparison::GreaterOrEqual => ">=",
    }
}

pub(super) fn collated(sql: String, ty: DataType, collation: Collation) -> String {
    match ty {
        DataType::Text { .. } | DataType::Variant => {
            format!("{sql} COLLATE {}", collation.sqlite())
        }
        _ => sql,
    }
}

/// Constants that mean the same in SQLite.
fn plain_constant(value: &Value) -> Option<String> {
    Some(match value {
        Value::Null => "NULL".to_owned(),
        Value::Integer(number) if *number != i64::MIN => number.to_string(),
        Value::Bit(bit) => u8::from(*bit).to_string(),
        Value::Text(text) if !text.contains('\0') => format!("'{}'", text.replace('\'', "''")),
        _ => return None,
    })
}

/// Numbers the leaves of a tree that no query calls.
pub(super) fn number_leaves(bound: &mut Bound, used: &mut Vec<usize>) {
    renumber(bound, used, &mut false);
}

/// Numbers the leaves of a tree from 0; `used` becomes their former numbers. Also tells whether every call
/// of the tree has another value.
fn renumber(bound: &mut Bound, used: &mut Vec<usize>, is_volatile: &mut bool) {
    if let Node::Call { function, .. } = &bound.node {
        *is_volatile |= function == "NEWID";
    }
    if let Node::Leaf(index) = &mut bound.node {
        let at = used.iter().position(|used| used == index);
        *index = at.unwrap_or_else(|| {
            used.push(*index);
            used.len() - 1
        });
        return;
    }
    visit(bound, &mut |inner| renumber(inner, used, is_volatile));
}

/// The children of a node.
pub(super) fn children(bound: &Bound) -> Vec<&Bound> {
    match &bound.node {
        Node::Value(_) | Node::Variable(_) | Node::Leaf(_) => Vec::new(),
        Node::Convert { value, style, .. } => with(vec![value], style.as_deref()),
        Node::Negate(value)
        | Node::BitNot(value)
        | Node::Not(value)
        | Node::IsNull { value, .. } => vec![value],
        Node::Infix { left, right, .. }
        | Node::Compare { left, right, .. }
        | Node::Logic { left, right, .. }
        | Node::NullIf(left, right, _) => vec![left, right],
        Node::Call { arguments, .. } | Node::First(arguments) => arguments.iter().collect(),
        Node::Case {
            branches,
            otherwise,
        } => with(both(branches), otherwise.as_deref()),
        Node::Choose {
            operand,
            branches,
            otherwise,
            ..
        } => with(with(both(branches), Some(operand)), otherwise.as_deref()),
        Node::Between {
            value, low, high, ..
        } => vec![value, low, high],
        Node::InList { value, list, .. } => with(list.iter().collect(), Some(value)),
        Node::Like {
            value,
            pattern,
            escape,
            ..
        } => with(vec![value, pattern], escape.as_deref()),
    }
}

fn both(branches: &[(Bound, Bound)]) -> Vec<&Bound> {
    let each = branches.iter();
    each.flat_map(|(when, then)| [when, then]).collect()
}

fn with<'a>(mut children: Vec<&'a Bound>, other: Option<&'a Bound>) -> Vec<&'a Bound> {
    children.extend(other);
    children
}

/// Calls `each` for every child, which may change.
fn visit(bound: &mut Bound, each: &mut dyn FnMut(&mut Bound)) {
    let optional = |value: &mut Option<Box<Bound>>, each: &mut dyn FnMut(&mut Bound)| {
        if let Some(value) = value {
            each(value);
        }
    };
    match &mut bound.node {
        Node::Value(_) | Node::Variable(_) | Node::Leaf(_) => {}
        Node::Convert { value, style, .. } => {
            each(value);
            optional(style, each);
        }
        Node::Negate(value)
        | Node::BitNot(value)
        | Node::Not(value)
        | Node::IsNull { value, .. } => each(value),
        Node::Infix { left, right, .. }
        | Node::Compare { left, right, .. }
        | Node::Logic { left, right, .. }
        | Node::NullIf(left, right, _) => {
            each(left);
            each(right);
        }
        Node::Call { arguments, .. } => arguments.iter_mut().for_each(each),
        Node::First(values) => values.iter_mut().for_each(each),
        Node::Case {
            branches,
            otherwise,
        } => {
            for (when, then) in branches {
                each(when);
                each(then);
            }
            optional(otherwise, each);
        }
        Node::Choose {
            operand,
            branches,
            otherwise,
            ..
        } => {
            each(operand);
            for (when, then) in branches {
                each(when);
                each(then);
            }
            optional(otherwise, each);
        }
        Node::Between {
            value, low, high, ..
        } => {
            each(value);
            each(low);
            each(high);
        }
        Node::InList { value, list, .. } => {
            each(value);
            list.iter_mut().for_each(each);
        }
        Node::Like {
            value,
            pattern,
            escape,
            ..
        } => {
            each(value);
            each(pattern);
            optional(escape, each);
        }
    }
}
