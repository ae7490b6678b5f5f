//! Scalar expressions and conditions.
//!
//! Both share one grammar, because `(` may begin either: a condition is accepted only where its reader
//! allows it.
//!
//! Invariant: a tree is never higher than [`HEIGHT_MAX`], so that code that walks it (printer,
//! evaluator, comparison, `Drop`) may recurse. Nesting is bounded by [`super::NESTING_MAX`]; a long
//! chain such as `'a' + 'b' + ...` grows the tree without nesting, hence the second bound.

use windlass_base::message::table;

use super::cursor::Parser;
use crate::ast::{Expr, InfixOperator, OnConversionFailure, Statement, UnaryOperator};
use crate::error::ParseError;
use crate::lexer::{TokenKind, unquoted};
use crate::span::{Span, Spanned};

/// Maximum height of an expression tree.
pub const HEIGHT_MAX: usize = 1000;

/// Functions whose names are reserved words.
pub(crate) const RESERVED_FUNCTIONS: &[&str] = &["COALESCE", "LEFT", "NULLIF", "RIGHT"];

/// Functions that are called without parentheses.
pub(crate) const BARE_FUNCTIONS: &[&str] = &[
    "CURRENT_TIMESTAMP",
    "CURRENT_USER",
    "SESSION_USER",
    "SYSTEM_USER",
    "USER",
];

/// An expression and the height of its tree.
pub(super) struct Measured {
    pub(super) expression: Spanned<Expr>,
    pub(super) height: usize,
}

impl Measured {
    pub(super) fn boxed(self) -> Box<Spanned<Expr>> {
        Box::new(self.expression)
    }

    pub(super) fn leaf(expression: Expr, span: Span) -> Self {
        Self {
            expression: Spanned::new(expression, span),
            height: 1,
        }
    }
}

pub(super) type Read = Result<Measured, ParseError>;

const SUMS: &[(&str, InfixOperator)] = &[
    ("+", InfixOperator::Add),
    ("-", InfixOperator::Subtract),
    ("&", InfixOperator::BitAnd),
    ("|", InfixOperator::BitOr),
    ("^", InfixOperator::BitXor),
    ("||", InfixOperator::Concatenate),
];

const PRODUCTS: &[(&str, InfixOperator)] = &[
    ("*", InfixOperator::Multiply),
    ("/", InfixOperator::Divide),
    ("%", InfixOperator::Modulo),
];

impl Parser<'_> {
    pub(super) fn print(&mut self) -> Result<Statement, ParseError> {
        self.expect_word("PRINT")?;
        self.expression().map(Statement::Print)
    }

    pub(super) fn expression(&mut self) -> Result<Spanned<Expr>, ParseError> {
        let measured = self.measured()?;
        self.tallest = self.tallest.max(measured.height);
        Ok(measured.expression)
    }

    /// A node above others of height `height`.
    pub(super) fn raised(&self, start: Span, expression: Expr, height: usize) -> Read {
        if height >= HEIGHT_MAX {
            return Err(self.too_deep());
        }
        let span = start.to(self.previous_span());
        Ok(Measured {
            expression: Spanned::new(expression, span),
            height: height + 1,
        })
    }

    pub(super) fn measured(&mut self) -> Read {
        self.nested(|parser| parser.chain(SUMS, |parser| parser.chain(PRODUCTS, Self::signed)))
    }

    /// `operand {operator operand}`, grouped from the left.
    fn chain(
        &mut self,
        operators: &[(&str, InfixOperator)],
        operand: impl Fn(&mut Self) -> Read,
    ) -> Read {
        let mut left = operand(self)?;
        if left.expression.node.is_condition() {
            return Ok(left);
        }
        while let Some((_, operator)) = operators.iter().find(|(symbol, _)| self.is_symbol(symbol))
        {
            self.bump();
            let right = operand(self)?;
            let height = left.height.max(right.height);
            let span = left.expression.span;
            let expression = Expr::Infix {
                operator: *operator,
                left: left.boxed(),
                right: right.boxed(),
            };
            left = self.raised(span, expression, height)?;
        }
        Ok(left)
    }

    fn signed(&mut self) -> Read {
        let operator = match self.text_at(0) {
            "-" => UnaryOperator::Negate,
            "+" => UnaryOperator::Plus,
            "~" => UnaryOperator::BitNot,
            _ => return self.collated(),
        };
        self.allows_condition = false;
        let start = self.here();
        self.bump();
        let operand = self.nested(Self::signed)?;
        let span = start.to(operand.expression.span);
        let expression = Expr::Unary {
            operator,
            operand: Box::new(operand.expression),
        };
        Ok(Measured {
            expression: Spanned::new(expression, span),
            height: operand.height + 1,
        })
    }

    /// A value, and the collations after it.
    fn collated(&mut self) -> Read {
        let mut value = self.primary()?;
        while !value.expression.node.is_condition() && self.accept_word("COLLATE") {
            let collation = self.identifier()?;
            let (start, height) = (value.expression.span, value.height);
            let value_inside = value.boxed();
            value = self.raised(
                start,
                Expr::Collate {
                    value: value_inside,
                    collation,
                },
                height,
            )?;
        }
        Ok(value)
    }

    fn primary(&mut self) -> Read {
        let allows_condition = std::mem::take(&mut self.allows_condition);
        if self.is_symbol("(") {
            return self.parenthesised(allows_condition);
        }
        let Some(token) = self.token() else {
            return Err(self.unexpected());
        };
        let text = token.span.text(self.text);
        let constant = match token.kind {
            TokenKind::Text { national } => Expr::Text {
                text: unquoted(token, self.text),
                national,
            },
            TokenKind::Integer => text
                .parse()
                .map_or_else(|_| Expr::Decimal(text.to_owned()), Expr::Integer),
            TokenKind::Decimal => Expr::Decimal(text.to_owned()),
            TokenKind::Hexadecimal => Expr::Binary(bytes_of_hexadecimal(text)),
            TokenKind::Variable => {
                return Ok(Measured::leaf(Expr::Variable(self.variable()?), token.span));
            }
            _ => return self.worded(token.span),
        };
        self.bump();
        Ok(Measured::leaf(constant, token.span))
    }

    /// `(expression)`, `(SELECT ...)`, or a condition in parentheses
    fn parenthesised(&mut self, allows_condition: bool) -> Read {
        let start = self.here();
        if ["SELECT", "WITH", "VALUES"]
            .iter()
            .any(|word| self.is_word_at(1, word))
        {
            let (query, height) = self.bracketed_query()?;
            return self.raised(start, Expr::Subquery(query), height);
        }
        self.expect_symbol("(")?;
        let mut inner = match allows_condition {
            true => self.alternatives()?,
            false => self.measured()?,
        };
        self.expect_symbol(")")?;
        inner.expression.span = start.to(self.previous_span());
        Ok(inner)
    }

    /// `NULL`, a conversion, CASE, a function, or a column.
    fn worded(&mut self, start: Span) -> Read {
        if self.accept_word("NULL") {
            return Ok(Measured::leaf(Expr::Null, start));
        }
        if self.is_word("CASE") {
            return self.nested(Self::case);
        }
        if self.is_symbol_at(1, "(") {
            match self.text_at(0).to_ascii_uppercase().as_str() {
                "CAST" => return self.cast(OnConversionFailure::Error),
                "TRY_CAST" => return self.cast(OnConversionFailure::Null),
                "CONVERT" => return self.convert(OnConversionFailure::Error),
                "TRY_CONVERT" => return self.convert(OnConversionFailure::Null),
                "IIF" => return self.nested(Self::immediate_if),
                _ => {}
            }
        }
        self.call(start)
    }

    fn call(&mut self, start: Span) -> Read {
        let bare = BARE_FUNCTIONS.iter().any(|word| self.is_word(word));
        let reserved = bare
            || self.is_symbol_at(1, "(")
                && RESERVED_FUNCTIONS.iter().any(|word| self.is_word(word));
        let function = if reserved {
            self.reserved_name()
        } else {
            self.object_name()?
        };
        if bare {
            return Ok(Measured::leaf(
                Expr::Call {
                    function,
                    arguments: Vec::new(),
                },
                start,
            ));
        }
        if !self.is_symbol("(") {
            if self.queries > 0 {
                return self.raised(start, Expr::Column(function), 0);
            }
            return Err(name_not_permitted(
                start.to(self.previous_span()),
                self.text,
            ));
        }
        self.bump();
        if self.queries > 0
            && let Some(aggregate) = self.over_rows(start, &function)?
        {
            return Ok(aggregate);
        }
        let (arguments, height) = self.call_arguments(&function)?;
        let read = self.finish(
            start,
            Expr::Call {
                function,
                arguments,
            },
            height,
        )?;
        match self.queries > 0 && (self.is_word("OVER") || self.is_word("WITHIN")) {
            true => self.windowed(start, read),
            false => Ok(read),
        }
    }

    fn call_arguments(
        &mut self,
        function: &crate::ast::ObjectName,
    ) -> Result<(Vec<Spanned<Expr>>, usize), ParseError> {
        let mut is_part = DATE_FUNCTIONS
            .iter()
            .any(|name| function.object.text.eq_ignore_ascii_case(name));
        let mut height = 0;
        if self.is_symbol(")") {
            return Ok((Vec::new(), height));
        }
        let arguments = self.comma_list(|parser| {
            let argument = match std::mem::take(&mut is_part) {
                true => parser.date_part()?,
                false => parser.measured()?,
            };
            height = argument.height.max(height);
            Ok(argument.expression)
        })?;
        Ok((arguments, height))
    }

    /// A date part is a bare word (`day`); it is stored as a string, which the functions accept
    /// too.
    fn date_part(&mut self) -> Read {
        match self.token() {
            Some(token) if token.kind == TokenKind::Word && self.is_symbol_at(1, ",") => {
                let text = self.text_at(0).to_owned();
                self.bump();
                let national = false;
                Ok(Measured::leaf(Expr::Text { text, national }, token.span))
            }
            _ => self.measured(),
        }
    }

    fn reserved_name(&mut self) -> crate::ast::ObjectName {
        let object = crate::ast::Identifier::new(self.text_at(0));
        self.bump();
        crate::ast::ObjectName {
            qualifiers: Vec::new(),
            object,
        }
    }

    fn cast(&mut self, on_failure: OnConversionFailure) -> Read {
        let start = self.here();
        self.bump();
        self.expect_symbol("(")?;
        let value = self.measured()?;
        self.expect_word("AS")?;
        let data_type = self.data_type()?;
        let expression = Expr::Cast {
            value: Box::new(value.expression),
            data_type,
            on_failure,
        };
        self.finish(start, expression, value.height)
    }

    fn convert(&mut self, on_failure: OnConversionFailure) -> Read {
        let start = self.here();
        self.bump();
        self.expect_symbol("(")?;
        let data_type = self.data_type()?;
        self.expect_symbol(",")?;
        let value = self.measured()?;
        let mut height = value.height;
        let mut style = None;
        if self.accept_symbol(",") {
            let measured = self.measured()?;
            height = height.max(measured.height);
            style = Some(Box::new(measured.expression));
        }
        let value = Box::new(value.expression);
        self.finish(
            start,
            Expr::Convert {
                data_type,
                value,
                style,
                on_failure,
            },
            height,
        )
    }

    /// The closing parenthesis of a function whose arguments have height `height`.
    pub(super) fn finish(&mut self, start: Span, expression: Expr, height: usize) -> Read {
        self.expect_symbol(")")?;
        self.raised(start, expression, height)
    }
}

/// Functions whose first argument names a part of a date.
const DATE_FUNCTIONS: [&str; 5] = [
    "DATEPART",
    "DATENAME",
    "DATEADD",
    "DATEDIFF",
    "DATEDIFF_BIG",
];

fn name_not_permitted(span: Span, text: &str) -> ParseError {
    let name: String = span.text(text).chars().take(128).collect();
    ParseError::new(span, table::name_not_permitted(name))
}

/// The bytes of `0x...`; an odd number of digits implies a leading zero, as on SQL Server.
pub(super) fn bytes_of_hexadecimal(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text
        .chars()
        .skip(2)
        .filter_map(|digit| {
            digit
                .to_digit(16)
                .and_then(|value| u8::try_from(value).ok())
        })
        .collect();
    let odd = digits.len() % 2;
    let first = digits.iter().take(odd).copied();
    let pairs = digits.get(odd..).unwrap_or(&[]).chunks_exact(2);
    first
        .chain(pairs.map(|pair| pair.iter().fold(0, |byte, digit| byte << 4 | digit)))
        .collect()
}
