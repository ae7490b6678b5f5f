//! `CREATE`, `ALTER` and `DROP PROCEDURE`.

use windlass_base::message::table;

use super::cursor::Parser;
use crate::ast::{
    ArgumentValue, DefineAction, DefineProcedure, DropProcedure, Parameter, Statement, Value,
};
use crate::error::ParseError;
use crate::span::Spanned;

impl Parser<'_> {
    fn is_procedure_at(&self, ahead: usize) -> bool {
        self.is_word_at(ahead, "PROC") || self.is_word_at(ahead, "PROCEDURE")
    }

    /// Whether `CREATE PROC`, `CREATE OR ALTER PROC`, `ALTER PROC` or `DROP PROC` is next.
    pub(super) fn is_at_procedure(&self) -> bool {
        self.is_procedure_at(1)
            || self.is_word_at(1, "OR") && self.is_word_at(2, "ALTER") && self.is_procedure_at(3)
    }

    pub(super) fn define_procedure(
        &mut self,
        first_in_batch: bool,
    ) -> Result<Statement, ParseError> {
        let start = self.here();
        let action = if self.accept_word("ALTER") {
            DefineAction::Alter
        } else {
            self.expect_word("CREATE")?;
            match self.accept_word("OR") {
                true => {
                    self.expect_word("ALTER")?;
                    DefineAction::CreateOrAlter
                }
                false => DefineAction::Create,
            }
        };
        if !first_in_batch {
            return Err(match self.is_nested() {
                true => self.unexpected(),
                false => ParseError::new(start, table::not_first_in_batch())
                    .with_hint("Put GO on a line before it."),
            });
        }
        self.bump();
        let name = self.spanned(Self::object_name)?;
        if name.node.object.text.starts_with('#') {
            let hint = "Write a name without #, and DROP PROCEDURE at the end.";
            return Err(self.not_supported("A temporary procedure", hint));
        }
        let parameters = self.parameters()?;
        let is_recompiled = self.procedure_options()?;
        if self.is_word("FOR") {
            let hint = "There is no replication: omit FOR REPLICATION.";
            return Err(self.not_supported("FOR REPLICATION", hint));
        }
        self.expect_word("AS")?;
        if self.is_word("EXTERNAL") {
            return Err(self.not_supported("EXTERNAL NAME", "Write the procedure in T-SQL."));
        }
        let mut body = Vec::new();
        loop {
            while self.accept_symbol(";") {}
            if self.is_at_end() {
                break;
            }
            body.push(self.inner_statement()?);
        }
        let text = self
            .text
            .trim_end_matches(|end: char| end == ';' || end.is_whitespace());
        Ok(Statement::DefineProcedure(Box::new(DefineProcedure {
            action,
            name,
            parameters,
            is_recompiled,
            body,
            text: text.to_owned(),
        })))
    }

    fn parameters(&mut self) -> Result<Vec<Spanned<Parameter>>, ParseError> {
        if self.accept_symbol("(") {
            let parameters = self.comma_list(|parser| parser.spanned(Self::parameter))?;
            self.expect_symbol(")")?;
            return Ok(parameters);
        }
        match self.text_at(0).starts_with('@') {
            true => self.comma_list(|parser| parser.spanned(Self::parameter)),
            false => Ok(Vec::new()),
        }
    }

    fn parameter(&mut self) -> Result<Parameter, ParseError> {
        let variable = self.variable()?;
        self.accept_word("AS");
        let data_type = self.data_type()?;
        self.accept_word("NULL");
        let default = match self.accept_symbol("=") {
            true => Some(self.argument_value()?),
            false => None,
        };
        if let Some(ArgumentValue::Default | ArgumentValue::Value(Value::Variable(_))) = default {
            return Err(self
                .unexpected()
                .with_hint("A default is a constant or NULL."));
        }
        let is_output = self.accept_word("OUTPUT") || self.accept_word("OUT");
        if self.is_word("READONLY") {
            let hint = "Pass the rows in a #temp table.";
            return Err(self.not_supported("A parameter that is a table", hint));
        }
        Ok(Parameter {
            variable,
            data_type,
            default,
            is_output,
        })
    }

    /// `WITH option, ...`: whether RECOMPILE is among them.
    fn procedure_options(&mut self) -> Result<bool, ParseError> {
        if !self.accept_word("WITH") {
            return Ok(false);
        }
        let mut is_recompiled = false;
        self.comma_list(|parser| {
            if parser.accept_word("RECOMPILE") {
                is_recompiled = true;
                return Ok(());
            }
            if parser.is_word("ENCRYPTION") {
                let hint = "The catalog keeps the text as written: omit it.";
                return Err(parser.not_supported("WITH ENCRYPTION", hint));
            }
            if parser.is_word("EXECUTE") || parser.is_word("EXEC") {
                parser.bump();
                parser.expect_word("AS")?;
                if !parser.is_word("CALLER") {
                    let hint = "Everything runs as the user of the process: omit it.";
                    return Err(parser.not_supported("EXECUTE AS of another user", hint));
                }
                parser.bump();
                return Ok(());
            }
            if parser.is_word("NATIVE_COMPILATION") || parser.is_word("SCHEMABINDING") {
                let what = parser.text_at(0).to_ascii_uppercase();
                return Err(parser.not_supported(&what, "Omit it."));
            }
            Err(parser.unexpected())
        })?;
        Ok(is_recompiled)
    }

    pub(super) fn drop_procedure(&mut self) -> Result<Statement, ParseError> {
        self.expect_word("DROP")?;
        self.bump();
        let if_exists = self.accept_word("IF");
        if if_exists {
            self.expect_word("EXISTS")?;
        }
        let names = self.comma_list(|parser| parser.spanned(Self::object_name))?;
        Ok(Statement::DropProcedure(DropProcedure { if_exists, names }))
    }
}
