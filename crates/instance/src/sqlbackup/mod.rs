//! The dialect of SQL Backup Pro: one command, a report in lines, and two exit codes.
//!
//! A command becomes T-SQL and runs through the same code as any script; what is added here is what
//! surrounds a backup: several databases, verification, copies, retention, a test restore.
//!
//! | file | what |
//! |---|---|
//! | `options` | which options there are, what they are read as, what is refused and why |
//! | `backup`, `restore` | from a command to T-SQL, and what follows it |
//! | `copy` | the queue of copies |
//! | `report` | the lines and the codes |
//!
//! Exit codes: 0, all done; 1 to 499, done with warnings; 500, the command was not understood; 1100, a
//! statement failed, and the second code is its message number.

mod backup;
mod copy;
mod options;
mod report;
mod restore;

pub use copy::{CopyOutcome, run_queue};
pub use report::Report;

use windlass_tsql::sqlbackup::{Command, Verb, parse};

use crate::{Session, Sink, parse_message};
use report::Recorder;

/// The command was not understood, or asks for what is not built.
const NOT_UNDERSTOOD: i64 = 500;

/// A statement failed; the second code is the number of its message.
const STATEMENT_FAILED: i64 = 1100;

/// Executes a command. What its statements yield besides messages goes to `sink`.
pub fn run(session: &mut Session, text: &str, sink: &mut dyn Sink) -> Report {
    let mut report = Report::default();
    let command = match parse(text) {
        Ok(command) => command,
        Err(error) => {
            report.refuse(&parse_message(&error).text);
            return report;
        }
    };
    let options = match options::read(&command) {
        Ok(options) => options,
        Err(refusal) => {
            report.refuse(&refusal);
            return report;
        }
    };
    report.single_result = options.single_result;
    match &command.verb {
        Verb::Backup(databases) => {
            backup::run(session, &command, databases, &options, &mut report, sink);
        }
        Verb::Restore(name) => restore::run(session, &command, name, &options, &mut report, sink),
        Verb::VerifyOnly => read_only(session, &command, "VERIFYONLY", &options, &mut report, sink),
        Verb::HeaderOnly => read_only(session, &command, "HEADERONLY", &options, &mut report, sink),
        Verb::FileListOnly => {
            read_only(
                session,
                &command,
                "FILELISTONLY",
                &options,
                &mut report,
                sink,
            );
        }
        Verb::BackupLog | Verb::RestoreLog => {
            report.refuse("Log backups are written as T-SQL: BACKUP LOG and RESTORE LOG.");
        }
    }
    if let Some(path) = options.log_path(report.has_failed()) {
        let tags = session.instance.tags();
        if let Err(error) = report.write(session, path, &tags) {
            report.warn(&format!("The log '{path}' was not written: {error}"));
        }
    }
    report
}

/// `RESTORE VERIFYONLY` and its kin: the statement as it is.
fn read_only(
    session: &mut Session,
    command: &Command,
    what: &str,
    options: &options::Options,
    report: &mut Report,
    sink: &mut dyn Sink,
) {
    let text = format!(
        "RESTORE {what} FROM {}{}",
        devices(&command.disks),
        with(&options.clauses)
    );
    execute(session, &text, report, sink);
}

/// Executes T-SQL that was made here; whether it succeeded.
fn execute(session: &mut Session, text: &str, report: &mut Report, sink: &mut dyn Sink) -> bool {
    let statements = match windlass_tsql::parse_batch(text) {
        Ok(statements) => statements,
        Err(error) => {
            report.refuse(&parse_message(&error).text);
            return false;
        }
    };
    let mut recorder = Recorder::new(report, sink);
    let end = session.execute_statements(&statements, 1, &mut recorder);
    let number = recorder.error;
    if end == crate::BatchEnd::Failed {
        report.fail(number);
        return false;
    }
    true
}

/// `DISK = N'a', DISK = N'b'`
fn devices(paths: &[String]) -> String {
    let devices = paths.iter().map(|path| format!("DISK = {}", quoted(path)));
    devices.collect::<Vec<_>>().join(", ")
}

fn with(clauses: &[String]) -> String {
    if clauses.is_empty() {
        String::new()
    } else {
        format!(" WITH {}", clauses.join(", "))
    }
}

/// A text as a T-SQL string.
fn quoted(text: &str) -> String {
    format!("N'{}'", text.replace('\'', "''"))
}

/// A name in brackets.
fn bracketed(name: &str) -> String {
    format!("[{}]", name.replace(']', "]]"))
}
