//! The dialect of SQL Backup Pro: one command, a report in lines, and two exit codes.
//!
//! A command becomes the options of [operations](crate::operation). This module adds what goes beyond a
//! backup: several databases, verification, copies, retention, a test restore.
//!
//! | file | what |
//! |---|---|
//! | `options` | the options, their meaning, which are refused and why |
//! | `backup`, `restore` | from a command to operations, and the steps after them |
//! | `apart` | that no two backups and copies of a command are one file |
//! | `copy` | the queue of copies |
//! | `report` | the lines and the codes |
//!
//! Exit codes: 0 for success; 1 to 499, success with warnings; 500, the command is invalid; 1100, a
//! statement failed, and the second code is its message number.

mod apart;
mod backup;
mod copy;
mod copy_object;
mod options;
mod report;
mod restore;

pub use copy::{CopyOutcome, due_copies, run_queue};
pub use report::Report;

use std::path::PathBuf;
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
        Ok(()) => {
            let mut runner = Runner {
                session: &mut *session,
                command: &command,
                options: &options,
                report,
                written: Vec::new(),
                sink,
            };
            runner.run();
            report = runner.report;
        }
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
    command: &'a Command,
    options: &'a Options,
    report: Report,
    /// The files that the command has written backups to.
    written: Vec<PathBuf>,
    sink: &'a mut dyn Sink,
}

impl Runner<'_> {
    fn run(&mut self) {
        let media = MediaOptions {
            devices: disks(&self.command.disks),
            ..self.options.restore.media.clone()
        };
        match &self.command.verb {
            Verb::Backup(databases) => self.back_up(databases),
            Verb::Restore(name) => self.restore(name),
            Verb::BackupLog | Verb::RestoreLog => self.report
                .refuse("This dialect has no log backups here. BACKUP LOG and RESTORE LOG in T-SQL have them (windlass sql), and on the command line windlass backup NAME --log --to FILE and windlass restore."),
            Verb::VerifyOnly => {
                let options = self.options;
                let verification = VerifyOptions {
                    media,
                    on_damage: match options.words.contains(&OptionWord::StopOnError) {
                        true => OnDamage::Stop,
                        false => OnDamage::Continue,
                    },
                    keys: options.restore.keys.clone(),
                    ..VerifyOptions::default()
                };
                self.execute(|session, sink| {
                    option::check(&options.words, RESTORE, StatementKind::VerifyOnly)?;
                    session.verify(&verification, sink).map(drop)
                });
            }
            Verb::HeaderOnly => self.show(Inspect::Headers, &media),
            Verb::FileListOnly => self.show(Inspect::Files, &media),
        }
    }

    fn show(&mut self, what: Inspect, media: &MediaOptions) {
        let words = &self.options.words;
        self.execute(|session, sink| {
            option::check(words, RESTORE, StatementKind::HeaderOnly)?;
            session.inspect(what, media, sink)
        });
    }

    /// Runs an operation and adds its report. Returns whether its work was done, possibly with losses, which fail the
    /// command.
    fn execute(
        &mut self,
        operation: impl FnMut(&mut Session, &mut dyn Sink) -> Result<(), Failure>,
    ) -> bool {
        let (succeeded, report) = self.step(operation);
        self.report.absorb(report);
        succeeded
    }

    /// Runs an operation and retries after device errors, up to DISKRETRYCOUNT times.
    fn step(
        &mut self,
        mut operation: impl FnMut(&mut Session, &mut dyn Sink) -> Result<(), Failure>,
    ) -> (bool, Report) {
        let mut report = Report::default();
        for retry in 0..=self.options.retries {
            let mut attempt = Report::default();
            let succeeded = self.attempt(&mut attempt, &mut operation);
            let helps = DEVICE_FAILED.contains(&attempt.sql_error);
            if succeeded || !helps || retry == self.options.retries || self.session.is_cancelled() {
                report.absorb(attempt);
                return (succeeded, report);
            }
            report.lines.append(&mut attempt.lines);
            report.line(format!(
                "Trying again in {} seconds ({} of {}).",
                self.options.retry_seconds,
                retry + 1,
                self.options.retries
            ));
            self.wait();
        }
        (false, report)
    }

    fn wait(&self) {
        let (begun, time) = (
            std::time::Instant::now(),
            Duration::from_secs(self.options.retry_seconds.into()),
        );
        while begun.elapsed() < time && !self.session.is_cancelled() {
            std::thread::sleep(Duration::from_millis(50).min(time));
        }
    }

    fn attempt(
        &mut self,
        report: &mut Report,
        operation: &mut impl FnMut(&mut Session, &mut dyn Sink) -> Result<(), Failure>,
    ) -> bool {
        let mut recorder = Recorder::new(report, self.sink);
        let Err(failure) = operation(self.session, &mut recorder) else {
            return true;
        };
        let is_done = failure.is_done;
        self.session.refuse(failure, &mut recorder);
        let number = recorder.error;
        report.fail(number);
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
