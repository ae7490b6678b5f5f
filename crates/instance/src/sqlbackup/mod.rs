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

pub use copy::{CopyOutcome, due_copies, run_queue};
pub use report::Report;

use std::time::Duration;

use windlass_crypt::{Cipher, KeyRing, Passphrase, Recipient};
use windlass_tsql::ast::{Name, RestoreAction, Statement};
use windlass_tsql::sqlbackup::{Command, Verb, parse};

use crate::message_of::parse_message;
use crate::statement::backup::{BackupExtras, MissingBase};
use crate::statement::restore::RestoreExtras;
use crate::statement::verify_only::VerifyExtras;
use crate::{BatchEnd, Session, Sink};
use options::{Options, Password};
use report::Recorder;

/// The command was not understood, or asks for what is not built.
const NOT_UNDERSTOOD: i64 = 500;

/// A statement failed; the second code is the number of its message.
const STATEMENT_FAILED: i64 = 1100;

/// Messages of devices, after which trying again may help.
const DEVICE_FAILED: [i64; 4] = [3201, 3202, 3203, 3271];

/// Executes a command. Result sets of its statements go to `sink`; messages do not.
pub fn run(session: &mut Session, text: &str, sink: &mut dyn Sink) -> Report {
    let mut report = Report::default();
    let command = match parse(text) {
        Ok(command) => command,
        Err(error) => {
            report.refuse(&parse_message(&error).text);
            return ended(report);
        }
    };
    let options = match options::read(&command) {
        Ok(options) => options,
        Err(refusal) => {
            report.refuse(&refusal);
            return ended(report);
        }
    };
    report.single_result = options.single_result;
    match Runner::new(session, &options) {
        Ok(mut runner) => runner.run(&command, &options, &mut report, sink),
        Err(error) => report.refuse(&error),
    }
    if session.is_rehearsal() {
        report.line("Dry run: nothing was changed.");
        return ended(report);
    }
    if let Some(path) = options.log_path(report.exit_code) {
        let tags = session.instance.tags();
        if let Err(error) = report.write(session, path, &tags) {
            report.warn(&format!("The log '{path}' was not written: {error}"));
        }
    }
    ended(report)
}

fn ended(report: Report) -> Report {
    crate::event_log::command_ended(report.exit_code, report.sql_error, report.files.len());
    report
}

/// Executes the statements of a command: with its passphrase, and again when devices fail.
pub(super) struct Runner<'a> {
    pub(super) session: &'a mut Session,
    passphrase: Option<Passphrase>,
    algorithm: Option<Cipher>,
    missing_base: MissingBase,
    retries: u32,
    retry_time: Duration,
}

impl<'a> Runner<'a> {
    fn new(session: &'a mut Session, options: &Options) -> Result<Self, String> {
        let passphrase = match &options.password {
            None => None,
            Some(Password::Written(passphrase)) => Some(passphrase.clone()),
            Some(Password::File(path)) => Some(passphrase_of(session, path)?),
        };
        Ok(Self {
            session,
            passphrase,
            algorithm: options.key_bits.map(|bits| match bits {
                128 => Cipher::Aes128,
                _ => Cipher::Aes256,
            }),
            // A full backup is made instead.
            missing_base: match options.full_if_required {
                true => MissingBase::Refuses,
                false => MissingBase::Warns,
            },
            retries: options.retries,
            retry_time: Duration::from_secs(options.retry_seconds.into()),
        })
    }

    fn run(
        &mut self,
        command: &Command,
        options: &Options,
        report: &mut Report,
        sink: &mut dyn Sink,
    ) {
        let what = match &command.verb {
            Verb::Backup(databases) => {
                return backup::run(self, command, databases, options, report, sink);
            }
            Verb::Restore(name) => return restore::run(self, command, name, options, report, sink),
            Verb::BackupLog | Verb::RestoreLog => {
                return report.refuse(
                    "Log backups are not supported: every database uses the simple \
                             recovery model (message 4208). BACKUP DATABASE ... WITH DIFFERENTIAL \
                             writes what changed since the full backup.",
                );
            }
            Verb::VerifyOnly => "VERIFYONLY",
            Verb::HeaderOnly => "HEADERONLY",
            Verb::FileListOnly => "FILELISTONLY",
        };
        let text = format!(
            "RESTORE {what} FROM {}{}",
            devices(&command.disks),
            with(&options.clauses)
        );
        self.execute(&text, report, sink);
    }

    /// Executes T-SQL that was made here, again after errors of devices as often as DISKRETRYCOUNT
    /// says; whether it succeeded.
    fn execute(&mut self, text: &str, report: &mut Report, sink: &mut dyn Sink) -> bool {
        for retry in 0..=self.retries {
            let mut attempt = Report::default();
            let succeeded = self.attempt(text, &mut attempt, sink);
            report.lines.append(&mut attempt.lines);
            if succeeded {
                return true;
            }
            let helps = DEVICE_FAILED.contains(&attempt.sql_error);
            if !helps || retry == self.retries || self.session.is_cancelled() {
                report.exit_code = report.exit_code.max(attempt.exit_code);
                if report.sql_error == 0 {
                    report.sql_error = attempt.sql_error;
                }
                return false;
            }
            report.line(format!(
                "Trying again in {} seconds ({} of {}).",
                self.retry_time.as_secs(),
                retry + 1,
                self.retries
            ));
            self.wait();
        }
        false
    }

    fn wait(&self) {
        let begun = std::time::Instant::now();
        while begun.elapsed() < self.retry_time && !self.session.is_cancelled() {
            std::thread::sleep(Duration::from_millis(50).min(self.retry_time));
        }
    }

    fn attempt(&mut self, text: &str, report: &mut Report, sink: &mut dyn Sink) -> bool {
        let statements = match windlass_tsql::parse_batch(text) {
            Ok(statements) => statements,
            Err(error) => {
                report.refuse(&parse_message(&error).text);
                return false;
            }
        };
        let mut recorder = Recorder::new(report, sink);
        let end = match statements.as_slice() {
            [statement] => self.with_extras(&statement.node, &mut recorder),
            _ => None,
        };
        let end = end.unwrap_or_else(|| {
            self.session
                .execute_statements(&statements, 1, &mut recorder)
        });
        let number = recorder.error;
        if end == BatchEnd::Failed {
            report.fail(number);
            return false;
        }
        true
    }

    /// Executes a statement that takes more than T-SQL can say; `None` for another.
    fn with_extras(&mut self, statement: &Statement, sink: &mut dyn Sink) -> Option<BatchEnd> {
        let passphrase = self.passphrase.clone();
        let ring = |passphrase| KeyRing {
            passphrases: vec![passphrase],
            ..KeyRing::default()
        };
        if let Statement::Backup(backup) = statement {
            let extras = BackupExtras {
                recipients: passphrase.into_iter().map(Recipient::Passphrase).collect(),
                algorithm: self.algorithm,
                missing_base: self.missing_base,
                ..BackupExtras::default()
            };
            return Some(self.session.backup(backup, &extras, sink));
        }
        let passphrase = passphrase?;
        match statement {
            Statement::Restore(restore) => match &restore.action {
                RestoreAction::Database { name, .. } => {
                    let Name::Identifier(name) = &name.node else {
                        return None;
                    };
                    let extras = RestoreExtras {
                        keys: ring(passphrase),
                        ..RestoreExtras::default()
                    };
                    Some(self.session.restore(restore, &name.text, &extras, sink))
                }
                RestoreAction::VerifyOnly => {
                    let extras = VerifyExtras {
                        keys: ring(passphrase),
                        ..VerifyExtras::default()
                    };
                    Some(self.session.verify(restore, &extras, sink))
                }
                _ => None,
            },
            _ => None,
        }
    }
}

/// The passphrase in a file's first line.
fn passphrase_of(session: &Session, path: &str) -> Result<Passphrase, String> {
    let told = |error: &dyn std::fmt::Display| format!("PASSWORDFILE '{path}': {error}");
    let file = session.instance.drives().path(path);
    let file = file.map_err(|error| told(&error))?;
    let bytes = windlass_io::secret::read(&file).map_err(|error| told(&error))?;
    let text = String::from_utf8(bytes).map_err(|_| told(&"it is not UTF-8"))?;
    let passphrase = Passphrase::from_file_text(text);
    if passphrase.is_empty() {
        return Err(told(&"its first line is empty"));
    }
    Ok(passphrase)
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
