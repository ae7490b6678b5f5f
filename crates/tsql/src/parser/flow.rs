//! Control flow, errors and cursors.

use super::cursor::Parser;
use crate::ast::{
    Cursor, Expr, FetchDirection, If, RaiseError, Statement, Target, Throw, TryCatch, Variable,
    While,
};
use crate::error::ParseError;
use crate::lexer::TokenKind;
use crate::span::Spanned;

const FETCHES: &[(&str, FetchDirection)] = &[
    ("NEXT", FetchDirection::Next),
    ("PRIOR", FetchDirection::Prior),
    ("FIRST", FetchDirection::First),
    ("LAST", FetchDirection::Last),
];

/// Options of cursors that mean what every cursor here is: local, read-only, over a copy of its rows.
const CURSOR_OPTIONS: &[&str] = &[
    "LOCAL",
    "STATIC",
    "FAST_FORWARD",
    "FORWARD_ONLY",
    "READ_ONLY",
    "SCROLL",
    "INSENSITIVE",
];

impl Parser<'_> {
    /// A statement within another one.
    pub(super) fn inner_statement(&mut self) -> Result<Spanned<Statement>, ParseError> {
        while self.accept_symbol(";") {}
        self.nested(|parser| parser.spanned(|parser| parser.statement(false)))
    }

    pub(super) fn if_statement(&mut self) -> Result<Statement, ParseError> {
        self.expect_word("IF")?;
        let condition = self.condition()?;
        let then = self.inner_statement()?;
        let end = self.place();
        while self.accept_symbol(";") {}
        let otherwise = if self.accept_word("ELSE") {
            Some(self.inner_statement()?)
        } else {
            self.return_to(end);
            None
        };
        Ok(Statement::If(Box::new(If {
            condition,
            then,
            otherwise,
        })))
    }

    pub(super) fn while_statement(&mut self) -> Result<Statement, ParseError> {
        self.expect_word("WHILE")?;
        let condition = self.condition()?;
        let body = self.inner_statement()?;
        Ok(Statement::While(Box::new(While { condition, body })))
    }

    /// `BEGIN ... END`, `BEGIN TRY ...`
    pub(super) fn block(&mut self) -> Result<Statement, ParseError> {
        self.expect_word("BEGIN")?;
        if !self.accept_word("TRY") {
            let statements = self.statements_to_end()?;
            if statements.is_empty() {
                return Err(self.unexpected());
            }
            self.expect_word("END")?;
            return Ok(Statement::Block(statements));
        }
        let body = self.statements_to_end()?;
        self.expect_words(&["END", "TRY"])?;
        while self.accept_symbol(";") {}
        self.expect_words(&["BEGIN", "CATCH"])?;
        let handler = self.statements_to_end()?;
        self.expect_words(&["END", "CATCH"])?;
        Ok(Statement::TryCatch(Box::new(TryCatch { body, handler })))
    }

    fn statements_to_end(&mut self) -> Result<Vec<Spanned<Statement>>, ParseError> {
        let mut statements = Vec::new();
        loop {
            while self.accept_symbol(";") {}
            if self.is_at_end() || self.is_word("END") {
                return Ok(statements);
            }
            statements.push(self.inner_statement()?);
        }
    }

    pub(super) fn return_statement(&mut self) -> Result<Statement, ParseError> {
        self.expect_word("RETURN")?;
        let has_code = matches!(self.kind(), Some(TokenKind::Integer | TokenKind::Variable))
            || self.is_symbol("-")
            || self.is_symbol("(");
        let code = match has_code {
            true => Some(self.expression()?),
            false => None,
        };
        Ok(Statement::Return(code))
    }

    pub(super) fn goto(&mut self) -> Result<Statement, ParseError> {
        self.expect_word("GOTO")?;
        self.spanned(Self::identifier).map(Statement::Goto)
    }

    pub(super) fn label(&mut self) -> Result<Statement, ParseError> {
        let label = self.identifier()?;
        self.expect_symbol(":")?;
        Ok(Statement::Label(label))
    }

    pub(super) fn throw(&mut self) -> Result<Statement, ParseError> {
        self.expect_word("THROW")?;
        if !matches!(self.kind(), Some(TokenKind::Integer | TokenKind::Variable)) {
            return Ok(Statement::Throw(None));
        }
        let number = self.number_or_variable()?;
        self.expect_symbol(",")?;
        let message = self.text_or_variable()?;
        self.expect_symbol(",")?;
        let state = self.number_or_variable()?;
        Ok(Statement::Throw(Some(Throw {
            number,
            message,
            state,
        })))
    }

    pub(super) fn raise_error(&mut self) -> Result<Statement, ParseError> {
        self.expect_word("RAISERROR")?;
        self.expect_symbol("(")?;
        let message = self.value()?;
        self.expect_symbol(",")?;
        let severity = self.number_or_variable()?;
        self.expect_symbol(",")?;
        let state = self.number_or_variable()?;
        let mut arguments = Vec::new();
        while self.accept_symbol(",") {
            arguments.push(self.value()?);
        }
        self.expect_symbol(")")?;
        let mut options = Vec::new();
        if self.accept_word("WITH") {
            options = self.comma_list(|parser| {
                parser.one_of(&[
                    ("NOWAIT", "NOWAIT"),
                    ("LOG", "LOG"),
                    ("SETERROR", "SETERROR"),
                ])
            })?;
        }
        Ok(Statement::RaiseError(Box::new(RaiseError {
            message,
            severity,
            state,
            arguments,
            options: options.into_iter().map(str::to_owned).collect(),
        })))
    }

    /// `DECLARE @t TABLE (...)`
    pub(super) fn declare_table(&mut self) -> Result<Statement, ParseError> {
        let target = self.spanned(|parser| parser.variable().map(Target::Variable))?;
        self.accept_word("AS");
        self.expect_word("TABLE")?;
        let start = self.place();
        let table = self.table_definition(target)?;
        let text = self.text_since(start).to_owned();
        Ok(Statement::DeclareTable {
            text,
            table: Box::new(table),
        })
    }

    pub(super) fn declare_cursor(&mut self) -> Result<Statement, ParseError> {
        let name = self.identifier()?;
        self.accept_word("INSENSITIVE");
        self.accept_word("SCROLL");
        self.expect_word("CURSOR")?;
        let mut options = Vec::new();
        while !self.is_word("FOR") {
            let word = self.text_at(0).to_ascii_uppercase();
            if !CURSOR_OPTIONS.contains(&word.as_str()) {
                if ["GLOBAL", "KEYSET", "DYNAMIC", "SCROLL_LOCKS", "OPTIMISTIC"]
                    .contains(&word.as_str())
                {
                    let hint = "Write LOCAL STATIC or LOCAL FAST_FORWARD.";
                    return Err(self.not_supported(&format!("A {word} cursor"), hint));
                }
                return Err(self.unexpected());
            }
            self.bump();
            options.push(word);
        }
        self.expect_word("FOR")?;
        let start = self.place();
        let query = Box::new(self.query()?);
        let text = self.text_since(start).to_owned();
        if self.is_word("FOR") {
            self.expect_words(&["FOR", "READ"])?;
            self.expect_word("ONLY")?;
        }
        Ok(Statement::Cursor(Cursor::Declare {
            name,
            query,
            text,
            options,
        }))
    }

    /// OPEN, FETCH, CLOSE, DEALLOCATE
    pub(super) fn cursor(&mut self) -> Result<Statement, ParseError> {
        let verb = self.text_at(0).to_ascii_uppercase();
        self.bump();
        if verb == "FETCH" {
            let mut direction = FetchDirection::Next;
            if let Some((_, found)) = FETCHES.iter().find(|(word, _)| self.is_word(word)) {
                direction = *found;
                self.bump();
            }
            self.accept_word("FROM");
            let name = self.identifier()?;
            let into: Vec<Spanned<Variable>> = match self.accept_word("INTO") {
                true => self.comma_list(|parser| parser.spanned(Self::variable))?,
                false => Vec::new(),
            };
            return Ok(Statement::Cursor(Cursor::Fetch {
                direction,
                name,
                into,
            }));
        }
        let name = self.identifier()?;
        Ok(Statement::Cursor(match verb.as_str() {
            "OPEN" => Cursor::Open(name),
            "CLOSE" => Cursor::Close(name),
            _ => Cursor::Deallocate(name),
        }))
    }

    /// `EXEC (text)`, after EXEC.
    pub(super) fn execute_text(&mut self) -> Result<Statement, ParseError> {
        self.expect_symbol("(")?;
        let text: Spanned<Expr> = self.expression()?;
        self.expect_symbol(")")?;
        if self.is_word("AT") {
            return Err(self.not_supported("EXECUTE AT", "There are no linked servers."));
        }
        Ok(Statement::ExecuteText(text))
    }
}
