//! `windlass backup --all`: the databases of an instance, or the SQLite files of a folder, several at a time.
//!
//! The backups share the cores: the threads of each are its part of them, unless the command says how many. What a backup
//! reports is printed when it has ended, so that the reports of two are never mixed. One that fails does not stop the
//! others.

use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use windlass_base::Message;
use windlass_base::message::table;
use windlass_base::pattern::matches;
use windlass_catalog::DatabaseState;
use windlass_instance::operation::BackupOptions;
use windlass_instance::tsql::print;
use windlass_instance::{Event, Failure, InstanceShare, Session, Sink};
use windlass_local::completed;

use super::backup::{back_up, options, recipients};
use super::{Outcome, database_name, disks, failed, misused, refused, with_drives};
use crate::args::{BackupArguments, Common};
use crate::output::Console;

/// How SQLite databases begin, those of the page engine too.
const MAGIC: &[u8; 16] = b"SQLite format 3\0";

/// Pause between two looks for a signal.
const PAUSE: std::time::Duration = std::time::Duration::from_millis(50);

/// A database to back up.
struct Target {
    /// The name of a registered database, or a file.
    database: String,
    to: String,
}

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
    let found = match found(arguments, common, &session, console) {
        Ok(found) => found,
        Err(outcome) => return outcome,
    };
    let (chosen, skipped) = chosen(found, arguments);
    let place = arguments.database.as_deref().unwrap_or("the instance");
    if chosen.is_empty() {
        return refused(table::no_database_matches(place), console);
    }
    let targets = targets(chosen, to, is_url);
    if let Some((one, other)) = sharing(&targets).filter(|_| !is_url) {
        return misused(&format!(
            "'{}' and '{}' would have the same backup, {}: leave one out with --except, and back it up alone",
            one.database, other.database, other.to
        ));
    }
    let mut shared = options(arguments, common);
    match recipients(&arguments.media) {
        Ok(recipients) => shared.recipients = recipients,
        Err(message) => return refused(message, console),
    }
    let count = targets.len();
    let parallel = share_out(&mut shared, arguments.many.parallel, count);
    let failures = if arguments.run.dry_run || arguments.run.tsql {
        one_by_one(
            &mut session,
            &targets,
            &shared,
            (arguments, common),
            console,
        )
    } else {
        let work = Work {
            share: session.instance().share(),
            queue: Mutex::new(targets.into()),
            failures: Mutex::new(0),
            console: Mutex::new(console),
            cancelled: AtomicBool::new(false),
            common,
            shared,
        };
        work.run(&session, parallel)
    };
    console.message(table::all_backed_up(count - failures, failures, skipped));
    match failures {
        0 => Outcome::Succeeded,
        _ => Outcome::Failed,
    }
}

/// The databases of the folder that is named, or of the instance: name, and what to back up.
fn found(
    arguments: &BackupArguments,
    common: &Common,
    session: &Session,
    console: &mut Console,
) -> Result<Vec<(String, String)>, Outcome> {
    match &arguments.database {
        Some(folder) => files_in(Path::new(folder)).map_err(|reason| misused(&reason)),
        None if common.instance.is_none() => Err(misused(
            "--all needs a folder of SQLite files, or --instance",
        )),
        None => registered(session, console).map_err(|error| failed(&error, console)),
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

/// The registered databases that can be backed up; the others are told.
fn registered(
    session: &Session,
    console: &mut Console,
) -> Result<Vec<(String, String)>, windlass_catalog::Error> {
    let mut found = Vec::new();
    for record in session.instance().catalog().databases()? {
        match record.state {
            DatabaseState::Online => found.push((record.name.clone(), record.name)),
            DatabaseState::Restoring | DatabaseState::Standby => {
                console.message(table::database_restoring(&record.name));
            }
            DatabaseState::Offline => {
                console.message(table::database_of_sql_server(&record.name));
            }
        }
    }
    Ok(found)
}

/// The databases in a folder: name and path of the files that begin as SQLite databases do.
fn files_in(folder: &Path) -> Result<Vec<(String, String)>, String> {
    let told = |error: std::io::Error| format!("{}: {error}", folder.display());
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(told)? {
        let path = entry.map_err(told)?.path();
        if let (true, Some(name)) = (is_database(&path), path.file_name()) {
            found.push((
                name.to_string_lossy().into_owned(),
                path.to_string_lossy().into_owned(),
            ));
        }
    }
    found.sort();
    Ok(found)
}

fn is_database(path: &Path) -> bool {
    let mut head = [0; MAGIC.len()];
    let is_file = std::fs::symlink_metadata(path).is_ok_and(|found| found.is_file());
    let mut read = || File::open(path)?.read_exact(&mut head);
    is_file && read().is_ok() && head == *MAGIC
}

/// Those that the patterns leave, and how many they do not.
fn chosen(
    found: Vec<(String, String)>,
    arguments: &BackupArguments,
) -> (Vec<(String, String)>, usize) {
    let count = found.len();
    let many = &arguments.many;
    let is_meant = |name: &str| {
        // `shop` means shop.db too.
        let stem = Path::new(name)
            .file_stem()
            .map(|stem| stem.to_string_lossy());
        let fits = |pattern: &String| {
            matches(pattern, name) || stem.as_deref().is_some_and(|stem| matches(pattern, stem))
        };
        (many.only.is_empty() || many.only.iter().any(fits)) && !many.except.iter().any(fits)
    };
    let kept: Vec<(String, String)> = found
        .into_iter()
        .filter(|(name, _)| is_meant(name))
        .collect();
    let skipped = count - kept.len();
    (kept, skipped)
}

/// Where each database goes: NAME.bak, with the whole name of the file if two would have the same.
fn targets(chosen: Vec<(String, String)>, to: &str, is_url: bool) -> Vec<Target> {
    let safe = |name: &str| name.replace(['/', '\\', ':', '\0'], "_");
    let stem = |name: &str| {
        let stem = Path::new(name).file_stem();
        stem.map_or_else(
            || name.to_owned(),
            |stem| stem.to_string_lossy().into_owned(),
        )
    };
    let names: Vec<String> = chosen.iter().map(|(name, _)| safe(name)).collect();
    let target = |(index, (name, database)): (usize, (String, String))| {
        let short = stem(&safe(&name));
        let others = names
            .iter()
            .enumerate()
            .filter(|(other, _)| *other != index);
        let is_unique = others
            .clone()
            .all(|(_, other)| !stem(other).eq_ignore_ascii_case(&short));
        let file = if name == database {
            safe(&name)
        } else if is_unique {
            short
        } else {
            safe(&name)
        };
        let to = match is_url {
            true => to.to_owned(),
            false => {
                let path: PathBuf = Path::new(to).join(format!("{file}.bak"));
                path.to_string_lossy().into_owned()
            }
        };
        Target { database, to }
    };
    chosen.into_iter().enumerate().map(target).collect()
}

/// Two databases that would be backed up to one medium, as long as letters differ only in case: with --format, one would
/// take the place of the other.
fn sharing(targets: &[Target]) -> Option<(&Target, &Target)> {
    let mut seen: HashMap<String, &Target> = HashMap::new();
    targets.iter().find_map(|target| {
        let earlier = seen.insert(target.to.to_lowercase(), target)?;
        Some((earlier, target))
    })
}

/// The options of one backup.
fn options_of(target: &Target, shared: &BackupOptions, common: &Common) -> BackupOptions {
    BackupOptions {
        devices: disks(std::slice::from_ref(&target.to), common),
        ..shared.clone()
    }
}

/// One after the other, each with its T-SQL; how many fail.
fn one_by_one(
    session: &mut Session,
    targets: &[Target],
    shared: &BackupOptions,
    (arguments, common): (&BackupArguments, &Common),
    console: &mut Console,
) -> usize {
    let mut failures = 0;
    for target in targets {
        let options = options_of(target, shared, common);
        let Some(name) = database_name(session, &target.database, console) else {
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

/// What the threads share.
struct Work<'a> {
    share: InstanceShare,
    queue: Mutex<VecDeque<Target>>,
    failures: Mutex<usize>,
    console: Mutex<&'a mut Console>,
    cancelled: AtomicBool,
    common: &'a Common,
    shared: BackupOptions,
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Work<'_> {
    /// Runs all backups; how many fail.
    fn run(&self, session: &Session, parallel: usize) -> usize {
        let stop = session.cancel_flag();
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..parallel).map(|_| scope.spawn(|| self.next())).collect();
            while threads.iter().any(|thread| !thread.is_finished()) {
                if stop.load(Ordering::Relaxed) {
                    self.cancelled.store(true, Ordering::Relaxed);
                }
                std::thread::sleep(PAUSE);
            }
        });
        *held(&self.failures)
    }

    /// Backs up one database after the other, until none is left.
    fn next(&self) {
        loop {
            let Some(target) = held(&self.queue).pop_front() else {
                return;
            };
            let mut told = Told::default();
            let result = match self.cancelled.load(Ordering::Relaxed) {
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
        let mut session = Session::new(instance);
        let registered = session.instance().database(&target.database)?;
        let name = match registered {
            Some(record) => record.name,
            None => session.instance_mut().pass(Path::new(&target.database))?,
        };
        let options = options_of(target, &self.shared, self.common);
        let flag = session.cancel_flag();
        let ended = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let ended = &ended;
            scope.spawn(move || {
                while !ended.load(Ordering::Relaxed) {
                    if self.cancelled.load(Ordering::Relaxed) {
                        flag.store(true, Ordering::Relaxed);
                    }
                    std::thread::sleep(PAUSE);
                }
            });
            let result = back_up(&mut session, &name, &options, told);
            ended.store(true, Ordering::Relaxed);
            result
        })
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
