//! Conditions: comparisons, ranges, lists, patterns.

use windlass_base::message::table as messages;
use windlass_tsql::ast::{Comparison, Expr, Subquery};
use windlass_tsql::span::Spanned;

use super::Binder;
use super::operator::{collation_of, comparable, comparable_types};
use crate::tsql::expression::{Bound, Collation, Node};
use crate::{DataType, Failure};

type Result<T> = std::result::Result<T, Failure>;

impl Binder<'_> {
    pub(super) fn condition(&mut self, condition: &Expr) -> Result<Bound> {
        let node = match condition {
            Expr::Compare {
                operator,
                left,
                right,
            } => self.comparison(*operator, left, right)?,
            Expr::Logic {
                operator,
                left,
                right,
            } => Node::Logic {
                operator: *operator,
                left: Box::new(self.condition(&left.node)?),
                right: Box::new(self.condition(&right.node)?),
            },
            Expr::Not(inner) => Node::Not(Box::new(self.condition(&inner.node)?)),
            Expr::IsNull { value, negated } => Node::IsNull {
                value: Box::new(self.expression(&value.node)?),
                negated: *negated,
            },
            Expr::Between { .. } | Expr::InList { .. } => self.range(condition)?,
            Expr::InQuery {
                value,
                query,
                negated,
            } => return self.membership(value, query, *negated),
            Expr::Like {
                value,
                pattern,
                escape,
                negated,
            } => self.like(value, pattern, escape.as_deref(), *negated)?,
            Expr::Exists(query) => {
                let sql = format!("EXISTS ({})", self.subquery(&query.query)?.sql);
                return Ok(self.leaf(sql, DataType::Bit));
            }
            value => return self.expression(value),
        };
        Ok(Bound::new(node, DataType::Bit))
    }

    /// BETWEEN and IN with a list.
    fn range(&mut self, condition: &Expr) -> Result<Node> {
        Ok(match condition {
            Expr::Between {
                value,
                low,
                high,
                negated,
            } => {
                let collation = collation_of(&value.node);
                let value = self.expression(&value.node)?;
                let (low, high) = (self.expression(&low.node)?, self.expression(&high.node)?);
                let ty = comparable_types(comparable(&value, &low), high.ty);
                Node::Between {
                    value: Box::new(value.converted(ty)),
                    low: Box::new(low.converted(ty)),
                    high: Box::new(high.converted(ty)),
                    negated: *negated,
                    collation,
                }
            }
            Expr::InList {
                value,
                list,
                negated,
            } => {
                let collation = collation_of(&value.node);
                let value = self.expression(&value.node)?;
                let list = self.expressions(list)?;
                let types = list.iter().map(|item| item.ty);
                let ty = types.fold(value.ty, comparable_types);
                let list = list.into_iter().map(|item| item.converted(ty)).collect();
                Node::InList {
                    value: Box::new(value.converted(ty)),
                    list,
                    negated: *negated,
                    collation,
                }
            }
            _ => return Err(messages::internal_consistency().into()),
        })
    }

    fn comparison(
        &mut self,
        operator: Comparison,
        left: &Spanned<Expr>,
        right: &Spanned<Expr>,
    ) -> Result<Node> {
        let collation = Collation::of_both(collation_of(&left.node), collation_of(&right.node));
        let (left, right) = (self.expression(&left.node)?, self.expression(&right.node)?);
        let clashes = |date: DataType, number: DataType| {
            matches!(date, DataType::Date | DataType::Time | DataType::DateTime2)
                && number.is_number()
        };
        if clashes(left.ty, right.ty) || clashes(right.ty, left.ty) {
            return Err(messages::type_clash(left.ty.name(), right.ty.name()).into());
        }
        let ty = comparable(&left, &right);
        Ok(Node::Compare {
            operator,
            left: Box::new(left.converted(ty)),
            right: Box::new(right.converted(ty)),
            collation,
        })
    }

    fn like(
        &mut self,
        value: &Spanned<Expr>,
        pattern: &Spanned<Expr>,
        escape: Option<&Spanned<Expr>>,
        negated: bool,
    ) -> Result<Node> {
        let collation = Collation::of_both(collation_of(&value.node), collation_of(&pattern.node));
        let value = self.expression(&value.node)?.converted(DataType::TEXT);
        let pattern = self.expression(&pattern.node)?.converted(DataType::TEXT);
        let escape = match escape {
            Some(escape) => Some(Box::new(self.expression(&escape.node)?)),
            None => None,
        };
        Ok(Node::Like {
            value: Box::new(value),
            pattern: Box::new(pattern),
            escape,
            negated,
            collation,
        })
    }

    /// `value IN (SELECT ...)`: SQLite looks it up.
    fn membership(
        &mut self,
        value: &Spanned<Expr>,
        subquery: &Subquery,
        negated: bool,
    ) -> Result<Bound> {
        let collation = collation_of(&value.node);
        let value = self.expression(&value.node)?;
        let query = self.subquery(&subquery.query)?;
        let [output] = query.outputs.as_slice() else {
            return Err(messages::several_columns().into());
        };
        let mut ty = comparable_types(value.ty, output.ty);
        if ty == DataType::Variant {
            ty = value.ty.common(output.ty);
        }
        let list = self.recast(&query, &[ty]);
        let value = self.emit(&value.converted(ty));
        let collated = match ty.is_text() || ty == DataType::Variant {
            true => format!("{value} COLLATE {}", collation.sqlite()),
            false => value,
        };
        let not = if negated { "NOT " } else { "" };
        let sql = format!("({collated} {not}IN ({list}))");
        Ok(self.leaf(sql, DataType::Bit))
    }
}
