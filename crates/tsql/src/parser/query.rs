//! Queries: SELECT and all that it is made of.
//!
//! The grammar is T-SQL's, and of `SQLite`'s own what cannot be taken for something else (`LIMIT`,
//! `WITH RECURSIVE`).

use super::cursor::Parser;
use super::expression::{Measured, Read};
use super::passthrough;
use crate::ast::{
    Aggregate, AssignmentOperator, Body, CommonTable, Expr, Identifier, ObjectName, OrderItem,
    Over, Query, Select, SelectItem, SetOperator, Subquery, Top,
};
use crate::error::ParseError;
use crate::lexer::TokenKind;
use crate::span::{Span, Spanned};

/// Maximum number of sets that UNION and its like join.
const SETS_MAX: usize = 200;

impl Parser<'_> {
    /// `(query)` in an expression, and the height of its tallest expression.
    pub(super) fn bracketed_query(&mut self) -> Result<(Box<Subquery>, usize), ParseError> {
        self.expect_symbol("(")?;
        let start = self.place();
        let outer = std::mem::take(&mut self.tallest);
        let query = self.query()?;
        let height = std::mem::replace(&mut self.tallest, outer);
        self.tallest = self.tallest.max(height);
        let text = self.text_since(start).to_owned();
        self.expect_symbol(")")?;
        Ok((Box::new(Subquery { text, query }), height))
    }

    pub(super) fn query(&mut self) -> Result<Query, ParseError> {
        self.nested(|parser| {
            parser.queries += 1;
            let tables = parser.common_tables()?;
            let query = parser.query_after(tables);
            parser.queries -= 1;
            query
        })
    }

    /// `WITH name AS (query), ...`; none if there is no WITH.
    pub(super) fn common_tables(&mut self) -> Result<Vec<CommonTable>, ParseError> {
        if !self.accept_word("WITH") {
            return Ok(Vec::new());
        }
        let is_unlimited = self.accept_word("RECURSIVE");
        self.comma_list(|parser| {
            let name = parser.spanned(Self::identifier)?;
            let columns = parser.column_names()?;
            parser.expect_word("AS")?;
            parser.expect_symbol("(")?;
            let query = parser.query()?;
            parser.expect_symbol(")")?;
            Ok(CommonTable {
                name,
                columns,
                query,
                is_unlimited,
            })
        })
    }

    /// `(a, b)`; none if there is no parenthesis.
    pub(super) fn column_names(&mut self) -> Result<Vec<Identifier>, ParseError> {
        if !self.accept_symbol("(") {
            return Ok(Vec::new());
        }
        let names = self.comma_list(Self::identifier)?;
        self.expect_symbol(")")?;
        Ok(names)
    }

    pub(super) fn query_after(&mut self, tables: Vec<CommonTable>) -> Result<Query, ParseError> {
        let body = self.body()?;
        let order = self.order()?;
        let (mut offset, mut limit) = (None, None);
        if !order.is_empty() && self.accept_word("OFFSET") {
            offset = Some(self.expression()?);
            self.rows_word()?;
            if self.accept_word("FETCH") {
                self.one_of(&[("NEXT", ()), ("FIRST", ())])?;
                limit = Some(self.expression()?);
                self.rows_word()?;
                self.expect_word("ONLY")?;
            }
        } else if self.accept_word("LIMIT") {
            limit = Some(self.expression()?);
            if self.accept_word("OFFSET") {
                offset = Some(self.expression()?);
            }
        }
        let max_recursion = self.after_query()?;
        Ok(Query {
            tables,
            body,
            order,
            offset,
            limit,
            max_recursion,
        })
    }

    fn rows_word(&mut self) -> Result<(), ParseError> {
        self.one_of(&[("ROWS", ()), ("ROW", ())])
    }

    /// `FOR XML` and `OPTION`; of the hints only MAXRECURSION changes what a query does.
    fn after_query(&mut self) -> Result<Option<u32>, ParseError> {
        if self.is_word("FOR") && (self.is_word_at(1, "XML") || self.is_word_at(1, "JSON")) {
            let what = format!("FOR {}", self.text_at(1).to_ascii_uppercase());
            let hint = "Join the rows with STRING_AGG, or run the query with --json.";
            return Err(self.not_supported(&what, hint));
        }
        if self.is_word("OPTION") && self.is_symbol_at(1, "(") {
            self.bump();
            self.bump();
            let hints = self.skip_to_closing_parenthesis()?.to_ascii_uppercase();
            let limit = hints.split_once("MAXRECURSION").map(|(_, rest)| {
                let number = rest.split(',').next().unwrap_or_default();
                number.trim().parse()
            });
            return match limit.transpose() {
                Ok(limit) => self.expect_symbol(")").map(|()| limit),
                Err(_) => Err(self.unexpected()),
            };
        }
        Ok(None)
    }

    pub(super) fn order(&mut self) -> Result<Vec<OrderItem>, ParseError> {
        if !self.is_word("ORDER") {
            return Ok(Vec::new());
        }
        self.expect_words(&["ORDER", "BY"])?;
        self.comma_list(|parser| {
            let value = parser.expression()?;
            let descending = parser.accept_word("DESC");
            if !descending {
                parser.accept_word("ASC");
            }
            Ok(OrderItem { value, descending })
        })
    }

    fn body(&mut self) -> Result<Body, ParseError> {
        let first = self.intersection()?;
        let mut others = Vec::new();
        loop {
            let operator = if self.accept_word("UNION") {
                match self.accept_word("ALL") {
                    true => SetOperator::UnionAll,
                    false => SetOperator::Union,
                }
            } else if self.accept_word("EXCEPT") {
                SetOperator::Except
            } else {
                break;
            };
            others.push((operator, self.intersection()?));
            if others.len() > SETS_MAX {
                return Err(self.too_deep());
            }
        }
        Ok(joined(first, others))
    }

    fn intersection(&mut self) -> Result<Body, ParseError> {
        let first = self.simple_body()?;
        let mut others = Vec::new();
        while self.accept_word("INTERSECT") {
            others.push((SetOperator::Intersect, self.simple_body()?));
            if others.len() > SETS_MAX {
                return Err(self.too_deep());
            }
        }
        Ok(joined(first, others))
    }

    fn simple_body(&mut self) -> Result<Body, ParseError> {
        if self.accept_symbol("(") {
            let query = self.query()?;
            self.expect_symbol(")")?;
            return Ok(Body::Nested(Box::new(query)));
        }
        if self.accept_word("VALUES") {
            return self.comma_list(Self::row).map(Body::Values);
        }
        self.select().map(|select| Body::Select(Box::new(select)))
    }

    /// `(x, y)` in VALUES; DEFAULT is not a value here.
    fn row(&mut self) -> Result<Vec<Spanned<Expr>>, ParseError> {
        self.expect_symbol("(")?;
        let row = self.comma_list(Self::expression)?;
        self.expect_symbol(")")?;
        Ok(row)
    }

    fn select(&mut self) -> Result<Select, ParseError> {
        self.expect_word("SELECT")?;
        let distinct = self.accept_word("DISTINCT");
        if !distinct {
            self.accept_word("ALL");
        }
        let top = self.top()?;
        let items = self.comma_list(|parser| parser.spanned(Self::select_item))?;
        let into = match self.accept_word("INTO") {
            true => Some(self.spanned(Self::object_name)?),
            false => None,
        };
        let from = self.from()?;
        let condition = self.where_condition()?;
        let mut groups = Vec::new();
        if self.is_word("GROUP") {
            self.expect_words(&["GROUP", "BY"])?;
            for word in ["ROLLUP", "CUBE", "GROUPING"] {
                if self.is_word(word) && !self.is_symbol_at(1, ",") {
                    let hint = "Join one query for each level with UNION ALL.";
                    return Err(self.not_supported(&format!("GROUP BY {word}"), hint));
                }
            }
            groups = self.comma_list(Self::expression)?;
        }
        let having = match self.accept_word("HAVING") {
            true => Some(self.condition()?),
            false => None,
        };
        Ok(Select {
            distinct,
            top,
            items,
            into,
            from,
            condition,
            groups,
            having,
        })
    }

    pub(super) fn where_condition(&mut self) -> Result<Option<Spanned<Expr>>, ParseError> {
        match self.accept_word("WHERE") {
            true => self.condition().map(Some),
            false => Ok(None),
        }
    }

    pub(super) fn top(&mut self) -> Result<Option<Top>, ParseError> {
        if !self.accept_word("TOP") {
            return Ok(None);
        }
        let count = if self.accept_symbol("(") {
            let count = self.expression()?;
            self.expect_symbol(")")?;
            count
        } else {
            let span = self.here();
            match self.kind() {
                Some(TokenKind::Integer | TokenKind::Decimal) => {
                    let written = self.text_at(0);
                    let number = written.parse().map(Expr::Integer);
                    self.bump();
                    let number = number.unwrap_or_else(|_| Expr::Decimal(written.to_owned()));
                    Spanned::new(number, span)
                }
                Some(TokenKind::Variable) => Spanned::new(Expr::Variable(self.variable()?), span),
                _ => return Err(self.unexpected()),
            }
        };
        let percent = self.accept_word("PERCENT");
        if self.is_word("WITH") && self.is_word_at(1, "TIES") {
            let hint =
                "Number the rows with RANK() OVER (ORDER BY ...) in a derived table instead.";
            return Err(self.not_supported("TOP WITH TIES", hint));
        }
        Ok(Some(Top { count, percent }))
    }

    fn select_item(&mut self) -> Result<SelectItem, ParseError> {
        if self.accept_symbol("*") {
            return Ok(SelectItem::All(None));
        }
        if self.is_at_identifier() && self.is_symbol_at(1, ".") {
            let start = self.place();
            if let Some(qualifier) = self.qualified_star() {
                return Ok(SelectItem::All(Some(qualifier)));
            }
            self.return_to(start);
        }
        if self.kind() == Some(TokenKind::Variable) && self.assignment_at(1).is_some() {
            let variable = self.spanned(Self::variable)?;
            let operator = self.assignment()?;
            let value = self.expression()?;
            return Ok(SelectItem::Assign {
                variable,
                operator,
                value,
            });
        }
        let is_named = self.is_symbol_at(1, "=") && (self.is_at_identifier() || self.is_at_text());
        if is_named {
            let name = Some(self.identifier_or_text()?);
            self.expect_symbol("=")?;
            let value = self.expression()?;
            return Ok(SelectItem::Value { value, name });
        }
        let value = self.expression()?;
        let is_named = self.accept_word("AS") || self.is_at_text() || self.is_at_alias();
        let name = match is_named {
            true => Some(self.identifier_or_text()?),
            false => None,
        };
        Ok(SelectItem::Value { value, name })
    }

    /// `a.b.*`, after which the name is returned.
    fn qualified_star(&mut self) -> Option<ObjectName> {
        let mut parts = Vec::new();
        while self.is_at_identifier() && self.is_symbol_at(1, ".") {
            parts.push(Some(self.identifier().ok()?));
            self.bump();
        }
        if !self.accept_symbol("*") {
            return None;
        }
        let object = parts.pop()??;
        Some(ObjectName {
            qualifiers: parts,
            object,
        })
    }

    /// Whether an alias without AS follows, not the next statement.
    pub(super) fn is_at_alias(&self) -> bool {
        const NEVER: &[&str] = &["LIMIT", "USING", "RETURNING", "OFFSET"];
        if !self.is_at_identifier() || self.is_symbol_at(1, ":") {
            return false;
        }
        let Some(word) = self.word() else {
            return true;
        };
        let begins_statement = self.is_at_line_start()
            && (passthrough::is_starter(word) || passthrough::is_owned(word));
        !begins_statement && !NEVER.iter().any(|never| never.eq_ignore_ascii_case(word))
    }

    pub(super) fn assignment(&mut self) -> Result<AssignmentOperator, ParseError> {
        let operator = self.assignment_at(0).ok_or_else(|| self.unexpected())?;
        self.bump();
        Ok(operator)
    }

    /// `COUNT(*)` and `SUM(DISTINCT x)`, after the parenthesis.
    pub(super) fn over_rows(
        &mut self,
        start: Span,
        function: &ObjectName,
    ) -> Result<Option<Measured>, ParseError> {
        let star = self.is_symbol("*") && self.is_symbol_at(1, ")");
        let distinct = self.is_word("DISTINCT");
        if !star && !distinct {
            return Ok(None);
        }
        self.bump();
        let (arguments, height) = match star {
            true => (Vec::new(), 0),
            false => self.plain_arguments()?,
        };
        self.expect_symbol(")")?;
        let aggregate = Aggregate {
            function: function.clone(),
            distinct,
            star,
            arguments,
            within: Vec::new(),
            over: None,
        };
        self.with_window(start, aggregate, height).map(Some)
    }

    fn plain_arguments(&mut self) -> Result<(Vec<Spanned<Expr>>, usize), ParseError> {
        let mut height = 0;
        let arguments = self.comma_list(|parser| {
            let argument = parser.measured()?;
            height = height.max(argument.height);
            Ok(argument.expression)
        })?;
        Ok((arguments, height))
    }

    /// A call that WITHIN GROUP or OVER follows.
    pub(super) fn windowed(&mut self, start: Span, call: Measured) -> Read {
        let height = call.height;
        match call.expression.node {
            Expr::Call {
                function,
                arguments,
            } => {
                let aggregate = Aggregate {
                    function,
                    distinct: false,
                    star: false,
                    arguments,
                    within: Vec::new(),
                    over: None,
                };
                self.with_window(start, aggregate, height)
            }
            _ => Err(self.unexpected()),
        }
    }

    fn with_window(&mut self, start: Span, mut aggregate: Aggregate, height: usize) -> Read {
        let outer = std::mem::replace(&mut self.tallest, height);
        if self.accept_word("WITHIN") {
            self.expect_word("GROUP")?;
            self.expect_symbol("(")?;
            aggregate.within = self.order()?;
            self.expect_symbol(")")?;
        }
        if self.accept_word("OVER") {
            aggregate.over = Some(self.over()?);
        }
        let height = std::mem::replace(&mut self.tallest, outer);
        self.raised(start, Expr::Aggregate(Box::new(aggregate)), height)
    }

    fn over(&mut self) -> Result<Over, ParseError> {
        self.expect_symbol("(")?;
        let mut partition = Vec::new();
        if self.accept_word("PARTITION") {
            self.expect_word("BY")?;
            partition = self.comma_list(Self::expression)?;
        }
        let order = self.order()?;
        let mut frame = None;
        if self.is_word("ROWS") || self.is_word("RANGE") {
            frame = Some(self.frame()?);
        }
        self.expect_symbol(")")?;
        Ok(Over {
            partition,
            order,
            frame,
        })
    }

    /// `ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW` and the like.
    fn frame(&mut self) -> Result<String, ParseError> {
        const WORDS: &[&str] = &[
            "ROWS",
            "RANGE",
            "BETWEEN",
            "AND",
            "UNBOUNDED",
            "PRECEDING",
            "FOLLOWING",
            "CURRENT",
            "ROW",
        ];
        let mut words = Vec::new();
        while !self.is_symbol(")") {
            let text = self.text_at(0).to_ascii_uppercase();
            let is_number = self.kind() == Some(TokenKind::Integer);
            if !is_number && !WORDS.contains(&text.as_str()) {
                return Err(self.unexpected());
            }
            self.bump();
            words.push(text);
        }
        Ok(words.join(" "))
    }
}

fn joined(first: Body, others: Vec<(SetOperator, Body)>) -> Body {
    if others.is_empty() {
        return first;
    }
    Body::Sets {
        first: Box::new(first),
        others,
    }
}
