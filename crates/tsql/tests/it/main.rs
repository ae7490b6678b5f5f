//! Tests of the public interface: text to statements and back.

mod backup_restore;
mod generate;
mod hostile;
mod messages;
mod passthrough;
mod round_trip;
mod script;
mod scripts_of_articles;

use windlass_tsql::ast::{BackupStatement, RestoreStatement, Statement};
use windlass_tsql::{ParseError, Spanned, parse_batch, print_batch};

/// The statements of a valid batch; checks that it prints to something that parses to the same.
fn parsed(text: &str) -> Vec<Spanned<Statement>> {
    let statements = parse_batch(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let printed = print_batch(&statements);
    let again = parse_batch(&printed).unwrap_or_else(|error| panic!("{error}\n{printed}"));
    assert_eq!(again, statements, "{printed}");
    statements
}

fn only(text: &str) -> Statement {
    let mut statements = parsed(text);
    assert_eq!(statements.len(), 1, "{text}");
    statements.remove(0).node
}

fn backup(text: &str) -> BackupStatement {
    match only(text) {
        Statement::Backup(statement) => *statement,
        other => panic!("{other:?}"),
    }
}

fn restore(text: &str) -> RestoreStatement {
    match only(text) {
        Statement::Restore(statement) => *statement,
        other => panic!("{other:?}"),
    }
}

/// The error of an invalid batch.
fn refused(text: &str) -> ParseError {
    match parse_batch(text) {
        Ok(statements) => panic!("{text}\nparsed as\n{}", print_batch(&statements)),
        Err(error) => error,
    }
}
