//! The dialect of SQL Backup Pro: one command, a report in lines, and two exit codes.
//!
//! A command becomes the options of [operations](crate::operation). This module adds what goes beyond a
//! backup: several databases, verification, copies, retention, a test restore.
//!
//! | file | what |
//! |---|---|
//! | `options` | the options, their meaning, which are refused and why |
//! | `backup`, `restore` | from a command to operations, and the steps after them |
//! | `copy` | the queue of copies |
//! | `report` | the lines and the codes |
//!
//! Exit codes: 0 for success; 1 to 499, success with warnings; 500, the command is invalid; 1100, a
//! statement failed, and the second code is its message number.

mod backup;
mod copy;
mod options;
mod report;
mod restore;

pub use copy::{CopyOutcome, due_copies, run_queue};
pub use report::Report;

use std::time::Duration;

use windlass_crypt::{KeyRing, Passphrase, Recipient};
use windlass_pipeline::OnDamage;
use windlass_tsql::option::{OptionWord, RESTORE, StatementKind};
use windlass_tsql::sqlbackup::{Command, Verb, parse};

use crate::message_of::parse_message;
use crate::operation::{DeviceName, Inspect, MediaOptions, VerifyOptions};
use crate::tsql::option;
use crate::{Failure, Session, Sink};
use options::{Options, Password};
use report::Recorder;

/// The command is invalid, or requests something that is not supported.
const NOT_UNDERSTOOD: i64 = 500;

/// A statement failed; the second code is the number of its message.
const STATEMENT_FAILED: i64 = 1100;

/// Messages of devices that may not recur on a retry.
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
    let mut options = match options::read(&command) {
        Ok(options) => options,
        Err(refusal) => {
            report.refuse(&refusal);
            return ended(report);
        }
    };
    report.single_result = options.single_result;
    match give_passphrase(session, &mut options) {
        Ok(()) => Runner::new(session, &options).run(&command, &options, &mut report, sink),
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

/// Sets the passphrase of the command for its backup and for what it reads.
fn give_passphrase(session: &Session, options: &mut Options) -> Result<(), String> {
    let passphrase = match &options.password {
        None => return Ok(()),
        Some(Password::Written(passphrase)) => passphrase.clone(),
        Some(Password::File(path)) => passphrase_of(session, path)?,
    };
    options.restore.keys = KeyRing {
        passphrases: vec![passphrase.clone()],
        ..KeyRing::default()
    };
    options.backup.recipients = vec![Recipient::Passphrase(passphrase)];
    Ok(())
}

/// Runs the operations of a command, with retries when devices fail.
struct Runner<'a> {
    session: &'a mut Session,
    retries: u32,
    retry_time: Duration,
}

impl<'a> Runner<'a> {
    fn new(session: &'a mut Session, options: &Options) -> Self {
        Self {
            session,
            retries: options.retries,
            retry_time: Duration::from_secs(options.retry_seconds.into()),
        }
    }

    fn run(
        &mut self,
        command: &Command,
        options: &Options,
        report: &mut Report,
        sink: &mut dyn Sink,
    ) {
        let media = MediaOptions {
            devices: disks(&command.disks),
            ..options.restore.media.clone()
        };
        let (words, reads) = (options.words.as_slice(), StatementKind::VerifyOnly);
        match &command.verb {
            Verb::Backup(databases) => {
                backup::run(self, command, databases, options, report, sink);
            }
            Verb::Restore(name) => restore::run(self, command, name, options, report, sink),
            Verb::BackupLog | Verb::RestoreLog => report
                .refuse("Log backups are not supported: every database uses the simple recovery model (message 4208). BACKUP DATABASE ... WITH DIFFERENTIAL writes what changed since the full backup."),
            Verb::VerifyOnly => {
                let verification = VerifyOptions {
                    media,
                    on_damage: match words.contains(&OptionWord::StopOnError) {
                        true => OnDamage::Stop,
                        false => OnDamage::Continue,
                    },
                    keys: options.restore.keys.clone(),
                    ..VerifyOptions::default()
                };
                self.execute(report, sink, |session, sink| {
                    option::check(words, RESTORE, reads)?;
                    session.verify(&verification, sink).map(drop)
                });
            }
            Verb::HeaderOnly => self.show(Inspect::Headers, &media, words, report, sink),
            Verb::FileListOnly => self.show(Inspect::Files, &media, words, report, sink),
        }
    }

    fn show(
        &mut self,
        what: Inspect,
        media: &MediaOptions,
        words: &[OptionWord],
        report: &mut Report,
        sink: &mut dyn Sink,
    ) {
        self.execute(report, sink, |session, sink| {
            option::check(words, RESTORE, StatementKind::HeaderOnly)?;
            session.inspect(what, media, sink)
        });
    }

    /// Runs an operation and retries after device errors, up to DISKRETRYCOUNT times. Returns whether it
    /// succeeded, possibly with losses that were reported.
    fn execute(
        &mut self,
        report: &mut Report,
        sink: &mut dyn Sink,
        mut operation: impl FnMut(&mut Session, &mut dyn Sink) -> Result<(), Failure>,
    ) -> bool {
        for retry in 0..=self.retries {
            let mut attempt = Report::default();
            let succeeded = self.attempt(&mut attempt, sink, &mut operation);
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

    fn attempt(
        &mut self,
        report: &mut Report,
        sink: &mut dyn Sink,
        operation: &mut impl FnMut(&mut Session, &mut dyn Sink) -> Result<(), Failure>,
    ) -> bool {
        let mut recorder = Recorder::new(report, sink);
        let Err(failure) = operation(self.session, &mut recorder) else {
            return true;
        };
        let is_done = failure.is_done;
        self.session.refuse(failure, &mut recorder);
        let number = recorder.error;
        if !is_done {
            report.fail(number);
        }
        is_done
    }
}

/// The first line of a file, as a passphrase.
fn passphrase_of(session: &Session, path: &str) -> Result<Passphrase, String> {
    let reported = |error: &dyn std::fmt::Display| format!("PASSWORDFILE '{path}': {error}");
    let file = session.instance.drives().path(path);
    let file = file.map_err(|error| reported(&error))?;
    let bytes = windlass_io::secret::read(&file).map_err(|error| reported(&error))?;
    Passphrase::from_file(bytes).map_err(|error| reported(&error))
}

fn disks(paths: &[String]) -> Vec<DeviceName> {
    paths.iter().cloned().map(DeviceName::Disk).collect()
}
