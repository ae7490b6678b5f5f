//! `windlass backup --all`: the databases of an instance, or the SQLite files of a folder, several at a time.
//!
//! | file | what |
//! |---|---|
//! | `chosen` | which databases, and where each goes |
//!
//! The backups share the cores: the threads of each are its part of them, unless the command says how many. What a backup
//! reports is printed when it has ended, so that the reports of two are never mixed. One that fails does not stop the
//! others.

mod chosen;

use std::collections::VecDeque;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use windlass_base::Message;
use windlass_base::message::table;
use windlass_instance::operation::BackupOptions;
use windlass_instance::tsql::print;
use windlass_instance::{Event, Failure, InstanceShare, Session, Sink};
use windlass_local::completed;

use super::backup::{back_up, options, recipients};
use super::{Outcome, disks, misused, refused, reported, with_drives};
use crate::args::{BackupArguments, Common};
use crate::output::Console;
use chosen::{Found, Target};

/// Runs the command.
pub(super) fn run(
    arguments: &BackupArguments,
    common: &Common,
    mut session: Session,
    console: &mut Console,
) -> Outcome {
    let [to] = arguments.to.as_slice() else {
        return misused("--all needs one --to: the folder for the backups");
    };
    let is_url = windlass_instance::is_url(to);
    if !is_url && !Path::new(to).is_dir() {
        return misused(&format!(
            "--to {to}: with --all this is a folder, and there is none of this name"
        ));
    }
    let Found {
        databases,
        skipped,
        refused: refused_count,
    } = match chosen::find(arguments, common, &session, console) {
        Ok(found) => found,
        Err(outcome) => return outcome,
    };
    if databases.is_empty() {
        let place = arguments.database.as_deref().unwrap_or("the instance");
        return refused(table::no_database_matches(place), console);
    }
    let targets = match chosen::targets(databases, to, is_url) {
        Ok(targets) => targets,
        Err(reason) => return misused(&reason),
    };
    let mut shared = options(arguments);
    shared.keeps_others = !is_url;
    match recipients(&arguments.media) {
        Ok(recipients) => shared.recipients = recipients,
        Err(message) => return refused(message, console),
    }
    let count = targets.len();
    let parallel = share_out(&mut shared, arguments.many.parallel, count);
    let is_told = arguments.run.dry_run || arguments.run.tsql;
    let failures = if is_told {
        one_by_one(&mut session, &targets, &shared, arguments, console)
    } else {
        let work = Work {
            share: session.instance().share(),
            queue: Mutex::new(targets.into()),
            failures: Mutex::new(0),
            console: Mutex::new(console),
            cancel: session.cancel_flag(),
            common,
            shared,
        };
        work.side_by_side(parallel)
    };
    let done = count - failures;
    let failures = failures + refused_count;
    console.message(
        match arguments.run.dry_run || arguments.no_write || arguments.no_compress_write {
            true => table::all_rehearsed(done, failures, skipped),
            false => table::all_backed_up(done, failures, skipped),
        },
    );
    match failures {
        0 => Outcome::Succeeded,
        _ => Outcome::Failed,
    }
}

/// How many backups run at the same time; each gets its part of the cores, unless the command says how many, and of the
/// rates that are limited.
fn share_out(shared: &mut BackupOptions, parallel: Option<u16>, count: usize) -> usize {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let parallel = parallel.map_or(cores.div_ceil(2), usize::from);
    let parallel = parallel.clamp(1, count);
    let part = i64::try_from((cores / parallel).max(1)).unwrap_or(1);
    shared.threads = shared.threads.or(Some(part));
    let divisor = i64::try_from(parallel).unwrap_or(1);
    for rate in [&mut shared.max_rate, &mut shared.max_write_rate] {
        *rate = rate.map(|rate| (rate / divisor).max(1));
    }
    parallel
}

/// The options of one backup.
fn options_of(target: &Target, shared: &BackupOptions) -> BackupOptions {
    BackupOptions {
        devices: disks(std::slice::from_ref(&target.to)),
        ..shared.clone()
    }
}

/// One after the other, each with its T-SQL; how many fail.
fn one_by_one(
    session: &mut Session,
    targets: &[Target],
    shared: &BackupOptions,
    arguments: &BackupArguments,
    console: &mut Console,
) -> usize {
    let mut failures = 0;
    for target in targets {
        let options = options_of(target, shared);
        let Some(name) = reported(target.name_in(session), console) else {
            failures += 1;
            continue;
        };
        if arguments.run.tsql || arguments.run.dry_run {
            console.tsql(&print::backup(&name, &options));
        }
        let result = back_up(session, &name, &options, console);
        failures += usize::from(super::ended(result, console) != Outcome::Succeeded);
    }
    failures
}

/// What the threads share. A panic of one is that of the command.
struct Work<'a> {
    share: InstanceShare,
    queue: Mutex<VecDeque<Target>>,
    failures: Mutex<usize>,
    console: Mutex<&'a mut Console>,
    /// Stops all backups.
    cancel: Arc<AtomicBool>,
    common: &'a Common,
    shared: BackupOptions,
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Work<'_> {
    /// Backs up all of the queue, `parallel` at a time; how many failed.
    fn side_by_side(self, parallel: usize) -> usize {
        std::thread::scope(|scope| {
            // Where no thread can be had, there are fewer of them: this one is there anyway.
            let mut workers = 1..parallel;
            let has_begun = |_| {
                let worker = std::thread::Builder::new().name("backup".to_owned());
                worker.spawn_scoped(scope, || self.run()).is_ok()
            };
            let _all = workers.all(has_begun);
            self.run();
        });
        self.failures
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Backs up one database after the other, until none is left.
    fn run(&self) {
        loop {
            let Some(target) = held(&self.queue).pop_front() else {
                return;
            };
            let mut told = Told::default();
            let result = match self.cancel.load(Ordering::Relaxed) {
                true => Err(Failure::from(table::aborted())),
                false => self.one(&target, &mut told),
            };
            let mut console = held(&self.console);
            told.tell(&mut console);
            if let Err(failure) = result {
                *held(&self.failures) += 1;
                for message in failure.messages {
                    console.message(message.with_advice(Some(format!("({})", target.database))));
                }
            }
        }
    }

    fn one(&self, target: &Target, told: &mut Told) -> Result<(), Failure> {
        let instance = with_drives(self.share.open()?, self.common);
        let mut session = Session::cancelled_by(instance, Arc::clone(&self.cancel));
        let name = target.name_in(&mut session)?;
        let options = options_of(target, &self.shared);
        back_up(&mut session, &name, &options, told)
    }
}

/// What a backup has reported, until it is printed.
#[derive(Default)]
struct Told(Vec<Report>);

enum Report {
    Message(Message),
    Done { line: String, json: String },
}

impl Sink for Told {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Message(message) => self.0.push(Report::Message(message)),
            Event::Completed(done) => self.0.push(Report::Done {
                line: completed::line(done),
                json: completed::object(done).to_string(),
            }),
            Event::Reported { line, json } => self.0.push(Report::Done {
                line: line.to_owned(),
                json: json.to_owned(),
            }),
            _ => {}
        }
    }
}

impl Told {
    fn tell(self, console: &mut Console) {
        for report in self.0 {
            match report {
                Report::Message(message) => console.message(message),
                Report::Done { line, json } => {
                    console.event(Event::Reported {
                        line: &line,
                        json: &json,
                    });
                }
            }
        }
    }
}
