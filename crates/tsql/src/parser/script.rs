//! Variables, settings, transactions and small server statements.

use windlass_base::message::table;

use super::cursor::Parser;
use super::passthrough;
use crate::ast::{
    AssignmentOperator, Dbcc, Declaration, InformationMessages, Name, Reconfigure, SetOption,
    SetOptionValue, SetVariable, Statement, Switch, TraceScope, Transaction, TransactionMark,
    Value,
};
use crate::error::ParseError;
use crate::lexer::TokenKind;
use crate::span::Spanned;

const ASSIGNMENTS: &[(&str, AssignmentOperator)] = &[
    ("=", AssignmentOperator::Assign),
    ("+=", AssignmentOperator::Add),
    ("-=", AssignmentOperator::Subtract),
    ("*=", AssignmentOperator::Multiply),
    ("/=", AssignmentOperator::Divide),
    ("%=", AssignmentOperator::Modulo),
];

/// Settings that are on or off.
const SWITCHES: &[&str] = &[
    "ANSI_DEFAULTS",
    "ANSI_NULLS",
    "ANSI_NULL_DFLT_OFF",
    "ANSI_NULL_DFLT_ON",
    "ANSI_PADDING",
    "ANSI_WARNINGS",
    "ARITHABORT",
    "ARITHIGNORE",
    "CONCAT_NULL_YIELDS_NULL",
    "CURSOR_CLOSE_ON_COMMIT",
    "FMTONLY",
    "FORCEPLAN",
    "IMPLICIT_TRANSACTIONS",
    "NOCOUNT",
    "NOEXEC",
    "NO_BROWSETABLE",
    "NUMERIC_ROUNDABORT",
    "PARSEONLY",
    "QUOTED_IDENTIFIER",
    "REMOTE_PROC_TRANSACTIONS",
    "SHOWPLAN_ALL",
    "SHOWPLAN_TEXT",
    "SHOWPLAN_XML",
    "XACT_ABORT",
];

/// Settings that take a value.
const SETTINGS: &[&str] = &[
    "DATEFIRST",
    "DATEFORMAT",
    "DEADLOCK_PRIORITY",
    "LANGUAGE",
    "LOCK_TIMEOUT",
    "QUERY_GOVERNOR_COST_LIMIT",
    "ROWCOUNT",
    "TEXTSIZE",
];

const STATISTICS: &[(&str, &str)] = &[
    ("IO", "STATISTICS IO"),
    ("PROFILE", "STATISTICS PROFILE"),
    ("TIME", "STATISTICS TIME"),
    ("XML", "STATISTICS XML"),
];

/// Whether `word` after `SET` names a session setting.
pub(super) fn is_setting(word: &str) -> bool {
    let upper = word.to_ascii_uppercase();
    SWITCHES.contains(&upper.as_str())
        || SETTINGS.contains(&upper.as_str())
        || ["STATISTICS", "TRANSACTION", "IDENTITY_INSERT"].contains(&upper.as_str())
}

impl Parser<'_> {
    pub(super) fn use_database(&mut self) -> Result<Statement, ParseError> {
        self.expect_word("USE")?;
        self.spanned(Self::identifier).map(Statement::Use)
    }

    pub(super) fn declare(&mut self) -> Result<Statement, ParseError> {
        self.expect_word("DECLARE")?;
        if self.is_at_identifier() {
            return self.declare_cursor();
        }
        if self.is_word_at(1, "TABLE") || self.is_word_at(1, "AS") && self.is_word_at(2, "TABLE") {
            return self.declare_table();
        }
        self.comma_list(|parser| parser.spanned(Self::declaration))
            .map(Statement::Declare)
    }

    fn declaration(&mut self) -> Result<Declaration, ParseError> {
        let variable = self.variable()?;
        self.accept_word("AS");
        let data_type = self.data_type()?;
        let value = if self.accept_symbol("=") {
            Some(self.expression()?)
        } else {
            None
        };
        Ok(Declaration {
            variable,
            data_type,
            value,
        })
    }

    pub(super) fn set(&mut self) -> Result<Statement, ParseError> {
        self.expect_word("SET")?;
        if self.kind() == Some(TokenKind::Variable) {
            return self.set_variable();
        }
        if self.is_word("IDENTITY_INSERT") {
            let hint = "SQLite accepts explicit keys without it.";
            return Err(self.not_supported("SET IDENTITY_INSERT", hint));
        }
        if self.is_word("TRANSACTION") {
            return self.isolation_level();
        }
        if self.accept_word("STATISTICS") {
            let names = self.comma_list(|parser| {
                parser.spanned(|parser| parser.one_of(STATISTICS).map(str::to_owned))
            })?;
            let value = SetOptionValue::Switch(self.switch()?);
            return Ok(Statement::SetOption(SetOption { names, value }));
        }
        self.setting()
    }

    fn set_variable(&mut self) -> Result<Statement, ParseError> {
        let variable = self.spanned(Self::variable)?;
        let operator = self.assignment()?;
        let value = self.expression()?;
        Ok(Statement::SetVariable(SetVariable {
            variable,
            operator,
            value,
        }))
    }

    /// The assignment that the symbol `ahead` positions ahead is.
    pub(super) fn assignment_at(&self, ahead: usize) -> Option<AssignmentOperator> {
        let found = ASSIGNMENTS
            .iter()
            .find(|(symbol, _)| self.is_symbol_at(ahead, symbol));
        found.map(|(_, operator)| *operator)
    }

    fn isolation_level(&mut self) -> Result<Statement, ParseError> {
        let start = self.here();
        self.expect_words(&["TRANSACTION", "ISOLATION", "LEVEL"])?;
        let name = Spanned::new("TRANSACTION ISOLATION LEVEL".to_owned(), start);
        let level = if self.accept_word("READ") {
            self.one_of(&[
                ("COMMITTED", "READ COMMITTED"),
                ("UNCOMMITTED", "READ UNCOMMITTED"),
            ])?
        } else if self.accept_word("REPEATABLE") {
            self.one_of(&[("READ", "REPEATABLE READ")])?
        } else {
            self.one_of(&[("SNAPSHOT", "SNAPSHOT"), ("SERIALIZABLE", "SERIALIZABLE")])?
        };
        let value = SetOptionValue::Words(level.to_owned());
        Ok(Statement::SetOption(SetOption {
            names: vec![name],
            value,
        }))
    }

    /// `SET switch, ... ON|OFF` or `SET setting value`
    fn setting(&mut self) -> Result<Statement, ParseError> {
        let first = self.spanned(|parser| parser.setting_name(&[SWITCHES, SETTINGS]))?;
        if SETTINGS.contains(&first.as_str()) {
            let value = self.setting_value()?;
            return Ok(Statement::SetOption(SetOption {
                names: vec![first],
                value,
            }));
        }
        let mut names = vec![first];
        while self.accept_symbol(",") {
            names.push(self.spanned(|parser| parser.setting_name(&[SWITCHES]))?);
        }
        let value = SetOptionValue::Switch(self.switch()?);
        Ok(Statement::SetOption(SetOption { names, value }))
    }

    fn setting_name(&mut self, known: &[&[&str]]) -> Result<String, ParseError> {
        let Some(word) = self.word() else {
            return Err(self.unexpected());
        };
        let upper = word.to_ascii_uppercase();
        if !known.iter().any(|names| names.contains(&upper.as_str())) {
            let shown: String = word.chars().take(128).collect();
            let message = table::not_recognized(shown, "SET option");
            return Err(ParseError::new(self.here(), message));
        }
        self.bump();
        Ok(upper)
    }

    fn setting_value(&mut self) -> Result<SetOptionValue, ParseError> {
        match self.word() {
            Some(word) if self.is_at_identifier() => {
                self.bump();
                Ok(SetOptionValue::Words(word.to_ascii_uppercase()))
            }
            _ => self.value().map(SetOptionValue::Value),
        }
    }

    pub(super) fn reconfigure(&mut self) -> Result<Statement, ParseError> {
        self.expect_word("RECONFIGURE")?;
        if self.is_word("WITH") {
            self.expect_words(&["WITH", "OVERRIDE"])?;
            return Ok(Statement::Reconfigure(Reconfigure::Override));
        }
        Ok(Statement::Reconfigure(Reconfigure::Checked))
    }

    pub(super) fn checkpoint(&mut self) -> Result<Statement, ParseError> {
        self.expect_word("CHECKPOINT")?;
        let given = matches!(self.kind(), Some(TokenKind::Integer | TokenKind::Variable));
        let duration_seconds = if given {
            Some(self.spanned(Self::number_or_variable)?)
        } else {
            None
        };
        Ok(Statement::Checkpoint { duration_seconds })
    }

    /// `KILL number [WITH STATUSONLY]`
    pub(super) fn kill(&mut self) -> Result<Statement, ParseError> {
        self.expect_word("KILL")?;
        if self.kind() != Some(TokenKind::Integer) {
            return Err(self.unexpected());
        }
        let session = self.spanned(Self::number_or_variable)?;
        if self.accept_word("WITH") {
            self.expect_word("STATUSONLY")?;
            return Err(self.not_supported(
                "KILL ... WITH STATUSONLY",
                "A transaction is rolled back before KILL ends.",
            ));
        }
        Ok(Statement::Kill { session })
    }

    pub(super) fn wait_for(&mut self) -> Result<Statement, ParseError> {
        self.expect_word("WAITFOR")?;
        if !self.accept_word("DELAY") {
            return Err(if self.is_word("TIME") || self.is_symbol("(") {
                self.not_supported(
                    "WAITFOR other than DELAY",
                    "Write WAITFOR DELAY 'hh:mm:ss'.",
                )
            } else {
                self.unexpected()
            });
        }
        self.spanned(Self::text_or_variable)
            .map(Statement::WaitForDelay)
    }

    pub(super) fn dbcc(&mut self) -> Result<Statement, ParseError> {
        self.expect_word("DBCC")?;
        if self.is_word("TRACEON") || self.is_word("TRACEOFF") {
            return self.trace().map(Statement::Dbcc);
        }
        if self.accept_word("CHECKDB") {
            return self.check_database().map(Statement::Dbcc);
        }
        if self.is_word("SQLPERF") && self.text_at(2).eq_ignore_ascii_case("LOGSPACE") {
            self.bump();
            self.expect_symbol("(")?;
            self.expect_word("LOGSPACE")?;
            self.expect_symbol(")")?;
            let messages = self.information_messages()?;
            return Ok(Statement::Dbcc(Dbcc::LogSpace { messages }));
        }
        let Some(command) = self.word() else {
            return Err(self.unexpected());
        };
        let command = command.to_ascii_uppercase();
        self.bump();
        let text = self.arguments_to_end()?.to_owned();
        Ok(Statement::Dbcc(Dbcc::Other { command, text }))
    }

    /// `[(database [, NOINDEX])] [WITH option, ...]`. Accepts options that request what is done
    /// anyway or only affect how; refuses repairs.
    fn check_database(&mut self) -> Result<Dbcc, ParseError> {
        let (mut is_physical_only, mut messages) = (false, InformationMessages::Shown);
        let mut database = None;
        if self.accept_symbol("(") {
            database = Some(self.spanned(|parser| match parser.word() {
                Some(_) => parser.identifier().map(|name| Value::national(&name.text)),
                None => parser.value(),
            })?);
            if self.accept_symbol(",") {
                if self
                    .word()
                    .is_some_and(|word| word.to_ascii_uppercase().starts_with("REPAIR"))
                {
                    let hint = "Repair damage by restoring a backup: RESTORE DATABASE.";
                    return Err(self.not_supported("DBCC CHECKDB with a repair", hint));
                }
                self.expect_word("NOINDEX")?;
                is_physical_only = true;
            }
            self.expect_symbol(")")?;
        }
        if self.accept_word("WITH") {
            loop {
                match self.word().unwrap_or("").to_ascii_uppercase().as_str() {
                    "NO_INFOMSGS" => messages = InformationMessages::Suppressed,
                    "PHYSICAL_ONLY" => is_physical_only = true,
                    "ALL_ERRORMSGS" | "TABLOCK" | "EXTENDED_LOGICAL_CHECKS" | "DATA_PURITY" => {}
                    _ => return Err(self.unexpected()),
                }
                self.bump();
                if !self.accept_symbol(",") {
                    break;
                }
            }
        }
        Ok(Dbcc::CheckDatabase {
            database,
            is_physical_only,
            messages,
        })
    }

    /// `[WITH NO_INFOMSGS]`
    fn information_messages(&mut self) -> Result<InformationMessages, ParseError> {
        if !self.accept_word("WITH") {
            return Ok(InformationMessages::Shown);
        }
        self.expect_word("NO_INFOMSGS")?;
        Ok(InformationMessages::Suppressed)
    }

    fn trace(&mut self) -> Result<Dbcc, ParseError> {
        let switch = self.one_of(&[("TRACEON", Switch::On), ("TRACEOFF", Switch::Off)])?;
        self.expect_symbol("(")?;
        let mut scope = TraceScope::Session;
        let mut flags = Vec::new();
        loop {
            if self.is_symbol("-") && self.text_at(1) == "1" {
                self.bump();
                self.bump();
                scope = TraceScope::Global;
            } else {
                flags.push(self.integer("")?);
            }
            if !self.accept_symbol(",") {
                break;
            }
        }
        self.expect_symbol(")")?;
        let messages = self.information_messages()?;
        Ok(Dbcc::Trace {
            switch,
            flags,
            scope,
            messages,
        })
    }

    pub(super) fn transaction(&mut self) -> Result<Statement, ParseError> {
        if self.is_word("SAVE") {
            let hint = "Write SQLite's SAVEPOINT and ROLLBACK TO.";
            return Err(self.not_supported("SAVE TRANSACTION", hint));
        }
        if self.is_word("BEGIN") {
            self.bump();
            let name = self.transaction_name()?;
            // Only a named transaction has a mark.
            let mark = match &name {
                Some(_) => self.transaction_mark()?,
                None => None,
            };
            return Ok(Statement::Transaction(Transaction::Begin { name, mark }));
        }
        let commit = self.is_word("COMMIT");
        self.bump();
        let name = if self.accept_word("WORK") {
            None
        } else {
            self.transaction_name()?
        };
        let statement = if commit {
            Transaction::Commit { name }
        } else {
            Transaction::Rollback { name }
        };
        Ok(Statement::Transaction(statement))
    }

    /// `[TRAN[SACTION] [name]]`
    fn transaction_name(&mut self) -> Result<Option<Spanned<Name>>, ParseError> {
        if !self.accept_word("TRAN") && !self.accept_word("TRANSACTION") {
            return Ok(None);
        }
        let named = self.kind() == Some(TokenKind::Variable)
            || self.is_at_identifier()
                && !passthrough::is_starter(self.text_at(0))
                // A label is the next statement.
                && !self.is_symbol_at(1, ":");
        if named {
            self.spanned(Self::name).map(Some)
        } else {
            Ok(None)
        }
    }

    fn transaction_mark(&mut self) -> Result<Option<TransactionMark>, ParseError> {
        if !(self.is_word("WITH") && self.is_word_at(1, "MARK")) {
            return Ok(None);
        }
        self.expect_words(&["WITH", "MARK"])?;
        let description = if self.is_at_text() {
            Some(self.text_or_variable()?)
        } else {
            None
        };
        Ok(Some(TransactionMark { description }))
    }
}
