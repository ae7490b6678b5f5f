//! `EXECUTE`, and procedures named at the start of a batch.

use windlass_base::similar::nearest;

use super::cursor::Parser;
use super::expression::bytes_of_hexadecimal;
use super::passthrough;
use crate::ast::{Argument, ArgumentDirection, ArgumentValue, Execute, Statement};
use crate::error::{ParseError, STATEMENTS};
use crate::lexer::TokenKind;
use crate::span::Spanned;

impl Parser<'_> {
    pub(super) fn execute(&mut self) -> Result<Statement, ParseError> {
        self.bump();
        if self.is_symbol("(") {
            return self.execute_text();
        }
        let mut return_code = None;
        if self.kind() == Some(TokenKind::Variable) {
            if !self.is_symbol_at(1, "=") {
                let hint = "Name the procedure.";
                return Err(self.not_supported("EXECUTE of a variable", hint));
            }
            return_code = Some(self.spanned(Self::variable)?);
            self.expect_symbol("=")?;
        }
        let procedure = self.spanned(Self::object_name)?;
        let arguments = self.arguments()?;
        Ok(Statement::Execute(Execute {
            return_code,
            procedure,
            arguments,
        }))
    }

    /// `procedure arguments` without EXEC, as the first statement of a batch.
    pub(super) fn bare_execute(&mut self) -> Result<Statement, ParseError> {
        let misspelt = self.unexpected();
        let meant = nearest(self.text_at(0), STATEMENTS.iter().copied());
        let procedure = self.spanned(Self::object_name)?;
        let arguments = self.arguments();
        if let Some(meant) = meant
            && (arguments.is_err() || self.is_amid_statement(meant))
        {
            return Err(misspelt.with_hint(format!("Did you mean {meant}?")));
        }
        let arguments = arguments?;
        Ok(Statement::Execute(Execute {
            return_code: None,
            procedure,
            arguments,
        }))
    }

    /// Whether what follows a call continues the statement of a misspelt word, such as `DATABASE` after `BAKUP`.
    fn is_amid_statement(&self, meant: &str) -> bool {
        // SET begins a statement, except after the table of an UPDATE.
        if meant == "UPDATE" && self.is_word("SET") {
            return true;
        }
        match self.kind() {
            Some(TokenKind::Word) => {
                let word = self.text_at(0);
                !passthrough::is_starter(word) && !passthrough::is_owned(word)
            }
            Some(TokenKind::Symbol) => !self.is_symbol(";"),
            Some(_) | None => false,
        }
    }

    fn arguments(&mut self) -> Result<Vec<Spanned<Argument>>, ParseError> {
        if self.is_at_argument() {
            self.comma_list(|parser| parser.spanned(Self::argument))
        } else {
            Ok(Vec::new())
        }
    }

    fn is_at_argument(&self) -> bool {
        match self.kind() {
            Some(TokenKind::Word) => {
                self.is_word("NULL")
                    || self.is_word("DEFAULT")
                    || self.is_at_identifier() && !passthrough::is_starter(self.text_at(0))
            }
            Some(TokenKind::Symbol) => self.is_symbol("-") || self.is_symbol("+"),
            Some(TokenKind::Other) | None => false,
            Some(_) => true,
        }
    }

    fn argument(&mut self) -> Result<Argument, ParseError> {
        let mut name = None;
        if self.kind() == Some(TokenKind::Variable) && self.is_symbol_at(1, "=") {
            name = Some(self.variable()?);
            self.expect_symbol("=")?;
        }
        let value = self.argument_value()?;
        let direction = if self.accept_word("OUTPUT") || self.accept_word("OUT") {
            ArgumentDirection::Output
        } else {
            ArgumentDirection::Input
        };
        Ok(Argument {
            name,
            value,
            direction,
        })
    }

    pub(super) fn argument_value(&mut self) -> Result<ArgumentValue, ParseError> {
        if self.accept_word("NULL") {
            return Ok(ArgumentValue::Null);
        }
        if self.accept_word("DEFAULT") {
            return Ok(ArgumentValue::Default);
        }
        match self.kind() {
            Some(TokenKind::Text { .. } | TokenKind::Variable) => {
                self.text_or_variable().map(ArgumentValue::Value)
            }
            Some(TokenKind::Hexadecimal) => {
                let bytes = bytes_of_hexadecimal(self.text_at(0));
                self.bump();
                Ok(ArgumentValue::Binary(bytes))
            }
            Some(TokenKind::Integer | TokenKind::Decimal | TokenKind::Symbol) => self.number(),
            _ => self.identifier().map(ArgumentValue::Word),
        }
    }

    fn number(&mut self) -> Result<ArgumentValue, ParseError> {
        let sign = if self.accept_symbol("-") {
            "-"
        } else {
            self.accept_symbol("+");
            ""
        };
        let number = format!("{sign}{}", self.text_at(0));
        let value = match self.kind() {
            Some(TokenKind::Integer) => match number.parse() {
                Ok(number) => ArgumentValue::Value(crate::ast::Value::Number(number)),
                Err(_) => ArgumentValue::Decimal(number),
            },
            Some(TokenKind::Decimal) => ArgumentValue::Decimal(number),
            _ => return Err(self.unexpected()),
        };
        self.bump();
        Ok(value)
    }
}
