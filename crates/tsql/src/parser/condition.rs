//! Conditions, and CASE, which chooses by them.

use windlass_base::message::table;

use super::cursor::Parser;
use super::expression::{Measured, Read};
use crate::ast::{Branch, Case, Comparison, Expr, LogicOperator};
use crate::error::ParseError;
use crate::span::Spanned;

const COMPARISONS: &[(&str, Comparison)] = &[
    ("=", Comparison::Equal),
    ("==", Comparison::Equal),
    ("<>", Comparison::Different),
    ("!=", Comparison::Different),
    ("<", Comparison::Less),
    ("!>", Comparison::LessOrEqual),
    ("<=", Comparison::LessOrEqual),
    (">", Comparison::Greater),
    ("!<", Comparison::GreaterOrEqual),
    (">=", Comparison::GreaterOrEqual),
];

impl Parser<'_> {
    /// What IF, WHERE and the like decide by.
    pub(super) fn condition(&mut self) -> Result<Spanned<Expr>, ParseError> {
        let measured = self.alternatives()?;
        let measured = self.checked_condition(measured)?;
        self.tallest = self.tallest.max(measured.height);
        Ok(measured.expression)
    }

    fn checked_condition(&self, measured: Measured) -> Read {
        if measured.expression.node.is_condition() {
            return Ok(measured);
        }
        let message = match self.token() {
            Some(_) => table::not_a_condition(self.text_at(0)),
            None => table::not_a_condition(self.text_before()),
        };
        Err(ParseError::new(self.here(), message))
    }

    /// `condition {OR condition}`, or a value.
    pub(super) fn alternatives(&mut self) -> Read {
        let mut left = self.conjunction()?;
        while self.is_word("OR") {
            left = self.checked_condition(left)?;
            self.bump();
            let right = self.conjunction()?;
            let right = self.checked_condition(right)?;
            left = self.logic(LogicOperator::Or, left, right)?;
        }
        Ok(left)
    }

    fn conjunction(&mut self) -> Read {
        let mut left = self.negation()?;
        while self.is_word("AND") {
            left = self.checked_condition(left)?;
            self.bump();
            let right = self.negation()?;
            let right = self.checked_condition(right)?;
            left = self.logic(LogicOperator::And, left, right)?;
        }
        Ok(left)
    }

    fn logic(&self, operator: LogicOperator, left: Measured, right: Measured) -> Read {
        let height = left.height.max(right.height);
        let span = left.expression.span;
        let (left, right) = (left.boxed(), right.boxed());
        self.raised(
            span,
            Expr::Logic {
                operator,
                left,
                right,
            },
            height,
        )
    }

    fn negation(&mut self) -> Read {
        if !self.is_word("NOT") {
            return self.predicate();
        }
        let start = self.here();
        self.bump();
        let inner = self.nested(Self::negation)?;
        let inner = self.checked_condition(inner)?;
        let height = inner.height;
        self.raised(start, Expr::Not(inner.boxed()), height)
    }

    fn predicate(&mut self) -> Read {
        if self.is_word("EXISTS") && self.is_symbol_at(1, "(") {
            let start = self.here();
            self.bump();
            let (query, height) = self.bracketed_query()?;
            return self.raised(start, Expr::Exists(query), height);
        }
        self.allows_condition = true;
        let left = self.measured();
        self.allows_condition = false;
        let left = left?;
        if left.expression.node.is_condition() {
            return Ok(left);
        }
        let comparison = COMPARISONS
            .iter()
            .find(|(symbol, _)| self.is_symbol(symbol));
        if let Some((_, operator)) = comparison {
            self.bump();
            return self.comparison(*operator, left);
        }
        if self.accept_word("IS") {
            let negated = self.accept_word("NOT");
            self.expect_word("NULL")?;
            let (start, height) = (left.expression.span, left.height);
            let value = left.boxed();
            return self.raised(start, Expr::IsNull { value, negated }, height);
        }
        let negated = self.is_word("NOT")
            && ["BETWEEN", "IN", "LIKE"]
                .iter()
                .any(|word| self.is_word_at(1, word));
        if negated {
            self.bump();
        }
        if self.accept_word("BETWEEN") {
            return self.between(left, negated);
        }
        if self.accept_word("IN") {
            return self.membership(left, negated);
        }
        if self.accept_word("LIKE") {
            return self.like(left, negated);
        }
        Ok(left)
    }

    fn comparison(&mut self, operator: Comparison, left: Measured) -> Read {
        if ["ALL", "ANY", "SOME"].iter().any(|word| self.is_word(word)) {
            let hint = "Write EXISTS (SELECT ... WHERE ...), or compare with MIN or MAX.";
            return Err(self.not_supported("A comparison with ALL, ANY or SOME", hint));
        }
        let right = self.measured()?;
        let start = left.expression.span;
        let height = left.height.max(right.height);
        let (left, right) = (left.boxed(), right.boxed());
        self.raised(
            start,
            Expr::Compare {
                operator,
                left,
                right,
            },
            height,
        )
    }

    fn between(&mut self, value: Measured, negated: bool) -> Read {
        let low = self.measured()?;
        self.expect_word("AND")?;
        let high = self.measured()?;
        let start = value.expression.span;
        let height = value.height.max(low.height).max(high.height);
        let (value, low, high) = (value.boxed(), low.boxed(), high.boxed());
        self.raised(
            start,
            Expr::Between {
                value,
                low,
                high,
                negated,
            },
            height,
        )
    }

    fn membership(&mut self, value: Measured, negated: bool) -> Read {
        let start = value.expression.span;
        let mut height = value.height;
        if !self.is_symbol("(") {
            return Err(self.unexpected());
        }
        if ["SELECT", "WITH"]
            .iter()
            .any(|word| self.is_word_at(1, word))
        {
            let (query, inner) = self.bracketed_query()?;
            let value = value.boxed();
            return self.raised(
                start,
                Expr::InQuery {
                    value,
                    query,
                    negated,
                },
                height.max(inner),
            );
        }
        self.bump();
        let list = self.comma_list(|parser| {
            let item = parser.measured()?;
            height = height.max(item.height);
            Ok(item.expression)
        })?;
        self.expect_symbol(")")?;
        let value = value.boxed();
        self.raised(
            start,
            Expr::InList {
                value,
                list,
                negated,
            },
            height,
        )
    }

    fn like(&mut self, value: Measured, negated: bool) -> Read {
        let pattern = self.measured()?;
        let start = value.expression.span;
        let mut height = value.height.max(pattern.height);
        let mut escape = None;
        if self.accept_word("ESCAPE") {
            let measured = self.measured()?;
            height = height.max(measured.height);
            escape = Some(measured.boxed());
        }
        let (value, pattern) = (value.boxed(), pattern.boxed());
        self.raised(
            start,
            Expr::Like {
                value,
                pattern,
                escape,
                negated,
            },
            height,
        )
    }

    pub(super) fn case(&mut self) -> Read {
        let start = self.here();
        self.expect_word("CASE")?;
        let mut height = 0;
        let mut keep = |measured: Measured| {
            height = height.max(measured.height);
            measured.expression
        };
        let operand = match self.is_word("WHEN") {
            true => None,
            false => Some(keep(self.measured()?)),
        };
        let mut branches = Vec::new();
        while self.accept_word("WHEN") {
            let when = match operand {
                Some(_) => self.measured()?,
                None => {
                    let when = self.alternatives()?;
                    self.checked_condition(when)?
                }
            };
            self.expect_word("THEN")?;
            let then = self.measured()?;
            branches.push(Branch {
                when: keep(when),
                then: keep(then),
            });
        }
        if branches.is_empty() {
            return Err(self.unexpected());
        }
        let otherwise = match self.accept_word("ELSE") {
            true => Some(keep(self.measured()?)),
            false => None,
        };
        self.expect_word("END")?;
        let case = Case {
            operand,
            branches,
            otherwise,
        };
        self.raised(start, Expr::Case(Box::new(case)), height)
    }

    /// `IIF(condition, x, y)` is the CASE that it stands for.
    pub(super) fn immediate_if(&mut self) -> Read {
        let start = self.here();
        self.bump();
        self.expect_symbol("(")?;
        let when = self.alternatives()?;
        let when = self.checked_condition(when)?;
        self.expect_symbol(",")?;
        let then = self.measured()?;
        self.expect_symbol(",")?;
        let otherwise = self.measured()?;
        self.expect_symbol(")")?;
        let height = when.height.max(then.height).max(otherwise.height);
        let case = Case {
            operand: None,
            branches: vec![Branch {
                when: when.expression,
                then: then.expression,
            }],
            otherwise: Some(otherwise.expression),
        };
        self.raised(start, Expr::Case(Box::new(case)), height)
    }
}
