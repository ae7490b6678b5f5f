//! Tokens to statements: recursive descent, one file per family of statements.
//!
//! Neighbours: [`crate::lexer`] below, [`crate::option`] for the options of BACKUP and RESTORE,
//! [`crate::printer`] for the reverse.
//!
//! Invariants:
//! * A batch is all or nothing: a syntax error refuses the whole batch, as on SQL Server.
//! * Recursion goes through `Parser::nested`, so that no input exhausts the stack.
//! * No error repeats what may be a password, see `ParseError::discreet`.
//! * The parser looks ahead at most a few tokens and backtracks in only one place (`ALTER
//!   DATABASE`), so that time stays linear.

mod backup;
mod change;
mod condition;
mod credential;
mod cursor;
mod database;
mod execute;
mod expression;
mod flow;
mod login;
mod option;
mod passthrough;
mod procedure;
mod query;
mod restore;
mod script;
mod security;
mod table;
mod value;

pub use cursor::NESTING_MAX;
pub use expression::HEIGHT_MAX;
pub(crate) use expression::{BARE_FUNCTIONS, RESERVED_FUNCTIONS};
pub(crate) use passthrough::is_starter as is_sql_starter;

use crate::ast::Statement;
use crate::error::ParseError;
use crate::lexer::tokenize;
use crate::span::Spanned;
use cursor::Parser;

/// The statements of one batch (a script without `GO` lines; see [`crate::batch::split`]).
pub fn parse_batch(text: &str) -> Result<Vec<Spanned<Statement>>, ParseError> {
    parse(text).map_err(|error| error.discreet(text))
}

fn parse(text: &str) -> Result<Vec<Spanned<Statement>>, ParseError> {
    let tokens = tokenize(text)?;
    let mut parser = Parser::new(text, &tokens);
    let mut statements = Vec::new();
    loop {
        while parser.accept_symbol(";") {}
        if parser.is_at_end() {
            return Ok(statements);
        }
        let start = parser.here();
        let statement = parser.statement(statements.is_empty())?;
        statements.push(Spanned::new(statement, start.to(parser.previous_span())));
    }
}

/// First words of statements that SQL Server runs and Windlass does not, and what to do instead.
const REFUSED: &[(&str, &str)] = &[
    (
        "BULK",
        "Import the file with another program, or insert its rows.",
    ),
    ("DENY", PERMISSIONS),
    ("GRANT", PERMISSIONS),
    ("REVERT", PERMISSIONS),
    ("REVOKE", PERMISSIONS),
    (
        "SHUTDOWN",
        "End the process: a server ends with SIGTERM, as systemctl stop sends it, and every other program by itself.",
    ),
];

const PERMISSIONS: &str = "Permissions come from server roles: ALTER SERVER ROLE r ADD MEMBER login. On this machine, whoever may read the \
     files may do everything.";

impl Parser<'_> {
    fn statement(&mut self, first_in_batch: bool) -> Result<Statement, ParseError> {
        let Some(word) = self.word() else {
            return self.unworded_statement(first_in_batch);
        };
        match word.to_ascii_uppercase().as_str() {
            "BACKUP" if self.is_word_at(1, "CERTIFICATE") => self.backup_certificate(),
            "BACKUP" => self.backup(),
            "RESTORE" => self.restore(),
            "USE" => self.use_database(),
            "DECLARE" => self.declare(),
            "SET" => self.set(),
            "PRINT" => self.print(),
            "EXEC" | "EXECUTE" => self.execute(),
            "RECONFIGURE" => self.reconfigure(),
            "CHECKPOINT" => self.checkpoint(),
            "KILL" => self.kill(),
            "DBCC" => self.dbcc(),
            "WAITFOR" => self.wait_for(),
            "BEGIN" if !self.is_word_at(1, "TRAN") && !self.is_word_at(1, "TRANSACTION") => {
                self.block()
            }
            "BEGIN" | "COMMIT" | "ROLLBACK" | "SAVE" => self.transaction(),
            "CREATE" | "ALTER" if self.is_at_procedure() => self.define_procedure(first_in_batch),
            "DROP" if self.is_at_procedure() => self.drop_procedure(),
            "CREATE" if self.is_word_at(1, "DATABASE") => self.create_database(),
            "CREATE" if self.is_word_at(1, "MASTER") => self.create_master_key(),
            "CREATE" if self.is_word_at(1, "CERTIFICATE") => self.create_certificate(),
            "CREATE" | "ALTER" if self.is_word_at(1, "CREDENTIAL") => self.set_credential(),
            "DROP" if self.is_word_at(1, "CREDENTIAL") => self.drop_credential(),
            "CREATE" if self.is_word_at(1, "LOGIN") => self.create_login(),
            "ALTER" if self.is_word_at(1, "LOGIN") => self.alter_login(),
            "DROP" if self.is_word_at(1, "LOGIN") => self.drop_login(),
            "CREATE" | "DROP" if self.is_word_at(1, "SERVER") && self.is_word_at(2, "ROLE") => {
                Err(self.refused_server_role())
            }
            "DROP" if self.is_word_at(1, "DATABASE") => self.drop_database(),
            "DROP" if self.is_word_at(1, "MASTER") => self.drop_master_key(),
            "DROP" if self.is_word_at(1, "CERTIFICATE") => self.drop_certificate(),
            "ALTER" if self.is_word_at(1, "DATABASE") => self.alter_database(),
            "ALTER" if self.is_word_at(1, "SERVER") && self.is_word_at(2, "ROLE") => {
                self.alter_server_role()
            }
            "ALTER" if self.is_word_at(1, "SERVER") => self.alter_server_configuration(),
            "GO" => Err(self
                .unexpected()
                .with_hint("GO must be on a line of its own.")),
            "IF" => self.if_statement(),
            "WHILE" => self.while_statement(),
            "BREAK" => Ok(self.word_alone(Statement::Break)),
            "CONTINUE" => Ok(self.word_alone(Statement::Continue)),
            "RETURN" => self.return_statement(),
            "GOTO" => self.goto(),
            "THROW" => self.throw(),
            "RAISERROR" => self.raise_error(),
            "OPEN" | "FETCH" | "CLOSE" | "DEALLOCATE" => self.cursor(),
            _ if self.is_symbol_at(1, ":") && self.is_at_identifier() => self.label(),
            upper if passthrough::STARTERS.contains(&upper) => self.sql(),
            _ => self.unworded_statement(first_in_batch),
        }
    }

    /// A statement without a known first word: a procedure call if it is the first of its batch.
    fn unworded_statement(&mut self, first_in_batch: bool) -> Result<Statement, ParseError> {
        let refused = REFUSED.iter().find(|(word, _)| self.is_word(word));
        if let Some((word, hint)) = refused {
            return Err(self.not_supported(word, hint));
        }
        if first_in_batch && self.is_at_identifier() {
            return self.bare_execute();
        }
        Err(self.unexpected())
    }

    fn word_alone(&mut self, statement: Statement) -> Statement {
        self.bump();
        statement
    }
}
