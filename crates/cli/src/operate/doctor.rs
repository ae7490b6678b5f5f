//! `windlass doctor`: checks a set-up and reports problems. Changes nothing, unless uploads are to be aborted.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use clap::Args;
use rusqlite::{Connection, OpenFlags};
use windlass_base::Moment;
use windlass_catalog::{Catalog, DatabaseRecord, DatabaseState, FILE_NAME, KnownDamage};
use windlass_device::DeviceFolder;
use windlass_instance::damage;
use windlass_instance::overview::{AHEAD, seconds};
use windlass_instance::presence::Looker;
use windlass_instance::retention::Now;
use windlass_instance::standing::{Restorable, Standing, in_zone_of_now, standings, tell_apart};
use windlass_instance::watched::{self, Watched, watched};
use windlass_instance::{SERVICE_KEY_FILE, Session};
use windlass_source::{Content, sqlite};

use super::history::parse_rpo;
use super::settings::Settings;
use super::texts;
use crate::args::Common;
use crate::command::{Outcome, ended, existing_session, session};
use crate::output::{Console, Layout};

/// A database without a backup for this long gets a warning.
const HOURS_WITHOUT_BACKUP: i64 = 24;

/// Maximum number of unrestorable backups listed per database, newest first.
const LOST_REPORTED: usize = 5;

/// Less free space than this gets a warning.
const FREE_BYTES_LOW: u64 = 1 << 30;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Ok,
    Warning,
    Error,
}

/// The findings so far.
struct Findings(Vec<(State, String, String)>);

impl Findings {
    fn add(&mut self, state: State, what: impl Into<String>, detail: impl Into<String>) {
        self.0.push((state, what.into(), detail.into()));
    }
}

const NOTES: &str = "\
A backup to object storage that is killed leaves an upload: nothing that could be taken for a backup, but parts that take room.
--uploads lists those below a URL, --clean aborts the ones that were begun more than --older-than ago. Choose that longer than any
backup takes: an upload that a backup still writes to would be aborted, and the backup fail. Uploads of other programs below the
URL are aborted too.";

/// `windlass doctor`
#[derive(Debug, Args)]
#[command(after_help = NOTES)]
pub(crate) struct DoctorArguments {
    /// Also try what a backup needs of the store of this URL, with a small object that is deleted again; can be repeated
    #[arg(long, value_name = "URL")]
    store: Vec<String>,
    /// Also list the unfinished uploads below this URL; can be repeated
    #[arg(long, value_name = "URL")]
    uploads: Vec<String>,
    /// Abort those that are old enough
    #[arg(long, requires = "uploads")]
    clean: bool,
    /// How long ago an upload was begun that is aborted: minutes, or 24h, or 7d
    #[arg(long, value_name = "TIME", default_value = "7d", requires = "clean", value_parser = parse_rpo)]
    older_than: i64,
}

/// Examines the stores that are named; the outcome if that ends the command.
fn stores(
    arguments: &DoctorArguments,
    common: &Common,
    findings: &mut Findings,
    console: &mut Console,
) -> Option<Outcome> {
    if arguments.uploads.is_empty() && arguments.store.is_empty() {
        return None;
    }
    let Some(session) = existing_session(common, console) else {
        return Some(Outcome::Failed);
    };
    let folders = session.folders(&arguments.store);
    match folders.and_then(|tried| Ok((tried, session.folders(&arguments.uploads)?))) {
        Ok((tried, listed)) => {
            for folder in &tried {
                probe(folder, findings);
            }
            for folder in &listed {
                uploads(folder, arguments, findings);
            }
            None
        }
        Err(failure) => Some(ended(Err::<(), _>(failure), console)),
    }
}

/// Tries a store.
fn probe(folder: &DeviceFolder, findings: &mut Findings) {
    let what = format!("store {folder}");
    let (state, detail) = match folder.probe() {
        Err(error) => (State::Error, error.to_string()),
        Ok(None) => (State::Error, "this is no URL of a store".to_owned()),
        Ok(Some(found)) if !found.keeps_object => (
            State::Error,
            "it ignores the condition not to overwrite: of two backups to one name at the same time, one is lost; back up \
             to folders (a URL that ends in a slash), or to names with <GUID>"
                .to_owned(),
        ),
        Ok(Some(found)) if !found.deletes => (
            State::Warning,
            "it writes, lists, and keeps what is not to be overwritten; the key may not delete: the trial object stays, and so \
             do stripes of a backup that fails at its end"
                .to_owned(),
        ),
        Ok(Some(found)) if !found.keeps_what_is_another => (
            State::Warning,
            "it ignores the condition to delete only the object that is meant: a backup that takes the name of an older one \
             (FORMAT) in the very moment in which `expire` deletes that one would be deleted; do not let the two run at the \
             same time, or back up to names that do not come again"
                .to_owned(),
        ),
        Ok(Some(_)) => (
            State::Ok,
            "it writes, lists, deletes, and keeps what is not to be overwritten".to_owned(),
        ),
    };
    findings.add(state, what, detail);
}

/// Runs the command.
pub(super) fn run(arguments: &DoctorArguments, common: &Common, settings: &Settings) -> Outcome {
    let mut findings = Findings(Vec::new());
    for (file, is_there) in &settings.files {
        let detail = if *is_there { "read" } else { "not there" };
        findings.add(State::Ok, format!("settings {}", file.display()), detail);
    }
    let mut console = Console::new(common.json, Layout::Table);
    match common.instance.as_deref() {
        None => findings.add(
            State::Warning,
            "instance",
            "none: no history, no server options, no queue; name one with --instance, \
             WINDLASS_INSTANCE or a settings file",
        ),
        Some(folder) if matches!(folder.join(FILE_NAME).try_exists(), Ok(false)) => findings.add(
            State::Error,
            format!("instance {}", folder.display()),
            "there is none; correct the name, or let the first backup or statement make it",
        ),
        Some(folder) => {
            let Some(mut session) = session(common, &mut console) else {
                return Outcome::Failed;
            };
            instance(folder, &mut session, &mut findings);
        }
    }
    if let Some(outcome) = stores(arguments, common, &mut findings, &mut console) {
        return outcome;
    }
    findings.add(
        State::Ok,
        "QAT_DEFLATE",
        format!("software: {}", windlass_instance::qat_deflate_software()),
    );
    for (letter, folder) in &common.drive {
        let (state, detail) = folder_state(folder);
        findings.add(
            state,
            format!("drive {letter}: {}", folder.display()),
            detail,
        );
    }
    if let Some(path) = settings.metrics() {
        let (state, detail) = folder_state(path.parent().unwrap_or(Path::new(".")));
        findings.add(state, format!("metrics {}", path.display()), detail);
    }
    let failed = findings.0.iter().any(|(state, ..)| *state == State::Error);
    let rows = findings.0.into_iter().map(|(state, what, detail)| {
        let state = match state {
            State::Ok => "ok",
            State::Warning => "warning",
            State::Error => "ERROR",
        };
        vec![state.to_owned(), what, detail]
    });
    texts(&["state", "what", "found"], rows.collect()).send(&mut console);
    if failed {
        Outcome::Failed
    } else {
        Outcome::Succeeded
    }
}

fn instance(folder: &Path, session: &mut Session, findings: &mut Findings) {
    let what = format!("instance {}", folder.display());
    match std::fs::metadata(folder) {
        Ok(_) => findings.add(State::Ok, &what, "opened"),
        Err(error) => findings.add(State::Error, &what, error.to_string()),
    }
    for name in ["", FILE_NAME, SERVICE_KEY_FILE] {
        let path = folder.join(name);
        let mode = std::fs::metadata(&path).map_or(0, |found| found.permissions().mode() & 0o7777);
        if mode & 0o077 != 0 {
            let what = path.display().to_string();
            let detail = format!("others may use it (mode {mode:04o}): chmod go= {what}");
            findings.add(State::Warning, what, detail);
        }
    }
    match check_database(&folder.join(FILE_NAME)) {
        Ok(()) => findings.add(State::Ok, "catalog", "integrity_check is ok"),
        Err(error) => findings.add(State::Error, "catalog", error),
    }
    if let Ok(Some(free)) = windlass_io::directory::free_bytes(folder) {
        let state = if free < FREE_BYTES_LOW {
            State::Warning
        } else {
            State::Ok
        };
        let detail = format!("{} MB are free", free >> 20);
        findings.add(state, format!("room in {}", folder.display()), detail);
    }
    let (catalog, machine) = (
        session.instance().catalog(),
        &session.instance().identity().machine,
    );
    let mut looker = Looker::asking(session.instance()).unwrap_or_else(|error| {
        findings.add(State::Error, "catalog", error.to_string());
        Looker::default()
    });
    if let Err(error) = databases(catalog, machine, &mut looker, findings) {
        findings.add(State::Error, "catalog", error.to_string());
    }
    copies(catalog, findings);
    remains(folder, catalog, findings);
    looker.note(session.instance_mut().catalog_mut(), Moment::now().0);
}

/// Names, and aborts if that is wanted, the uploads that killed backups have left.
fn uploads(folder: &DeviceFolder, arguments: &DoctorArguments, findings: &mut Findings) {
    let what = format!("uploads below {folder}");
    let found = match folder.unfinished_uploads() {
        Ok(found) => found,
        Err(error) => return findings.add(State::Error, what, error.to_string()),
    };
    if found.is_empty() {
        findings.add(State::Ok, what, "none is unfinished");
    }
    let now = jiff::Timestamp::now().as_second();
    for upload in found {
        let hours = (now - upload.began) / 3600;
        let what = format!("upload {}", upload.url);
        let is_old = now - upload.began >= arguments.older_than.saturating_mul(60);
        match arguments.clean && is_old {
            true => match folder.abort_upload(&upload) {
                Ok(()) => findings.add(State::Ok, what, format!("begun {hours} hours ago; aborted")),
                Err(error) => findings.add(State::Error, what, format!("not aborted: {error}")),
            },
            false => findings.add(
                State::Warning,
                what,
                format!("unfinished, begun {hours} hours ago; --clean aborts what is older than --older-than"),
            ),
        }
    }
}

/// Names what killed creations have left. They are in no one's way, but take room.
fn remains(folder: &Path, catalog: &Catalog, findings: &mut Findings) {
    for (path, bytes) in super::remains::find(folder, catalog).unwrap_or_default() {
        let detail = format!(
            "{bytes} bytes that a killed CREATE DATABASE, import or export has left; the next one of this \
             name replaces it, and nobody needs it"
        );
        findings.add(State::Warning, path.display().to_string(), detail);
    }
}

fn databases(
    catalog: &Catalog,
    machine: &str,
    looker: &mut Looker,
    findings: &mut Findings,
) -> Result<(), windlass_catalog::Error> {
    let (databases, mut past) = (catalog.databases()?, catalog.past_backups(None)?);
    tell_apart(&mut past, &databases, machine);
    in_zone_of_now(&mut past);
    let failures = watched::failures(catalog, &past, &databases, machine)?;
    let standings = standings(&past, Some(looker), Now::here());
    let all = watched(&databases, &standings, &failures);
    let mut kept = all.iter().filter(|one| one.is_kept).peekable();
    if kept.peek().is_none() {
        findings.add(State::Warning, "databases", "none is registered");
    }
    for one in kept {
        let ill = match (one.record, one.standing) {
            (Some(record), _) => looker.damages().of(record),
            (None, standing) => standing.and_then(|standing| standing.ill.as_ref()),
        };
        watched_one(one, ill, findings);
    }
    Ok(())
}

/// Checks a database, however it is known.
fn watched_one(one: &Watched<'_, '_>, ill: Option<&KnownDamage>, findings: &mut Findings) {
    let (name, last) = (one.name, one.failures.map(|failures| &failures.last));
    // What is not registered may have been backed up as it is.
    let found = || match (one.record, one.standing, last) {
        (Some(record), ..) => open(record),
        (None, Some(standing), _) => look(Path::new(standing.path())),
        (None, None, last) => {
            let path = last.and_then(|last| last.path.as_deref());
            path.map_or(Ok(()), |path| look(Path::new(path)))
        }
    };
    let state = one.record.map(|record| record.state);
    match (state, one.standing) {
        (Some(DatabaseState::Restoring | DatabaseState::Standby), None) => findings.add(
            State::Ok,
            format!("database {name}"),
            "is being restored: it waits for further backups, or for recovery",
        ),
        (_, standing) => database(name, found(), standing, findings),
    }
    if let Some(known) = ill {
        let what = format!("database {name}");
        findings.add(State::Error, what, damage::summary(known));
    }
    if let Some(last) = last
        && one.failures.is_some_and(|failures| failures.is_latest)
    {
        let what = format!("last run of {name}");
        let detail = format!("failed on {}: {}", last.failed, last.message);
        findings.add(State::Error, what, detail);
    }
}

/// Whether a registered database exists and is one.
fn open(record: &DatabaseRecord) -> Result<(), String> {
    look(&record.path)?;
    match &record.log_path {
        None => check_header(&record.path),
        // The log identifies a page engine database; opening it would run recovery.
        Some(log) => look(log),
    }
}

fn look(path: &Path) -> Result<(), String> {
    let found = std::fs::metadata(path).map(|_| ());
    found.map_err(|error| format!("{}: {error}", path.display()))
}

/// Checks a database: was it found, is it backed up?
fn database(
    name: &str,
    found: Result<(), String>,
    standing: Option<&Standing<'_>>,
    findings: &mut Findings,
) {
    let what = format!("database {name}");
    if let Err(error) = found {
        return findings.add(State::Error, what, error);
    }
    let Some(standing) = standing else {
        return findings.add(State::Error, what, "has never been backed up");
    };
    for (lost, why) in standing.lost.iter().rev().take(LOST_REPORTED) {
        let made = lost.finished.map_or_else(String::new, |at| at.to_string());
        let detail = format!("the backup of {made} cannot be restored: {why}");
        findings.add(State::Error, &what, detail);
    }
    if let Some(ahead) = standing.ahead.last() {
        let dated = ahead.started.map_or_else(String::new, |at| at.to_string());
        findings.add(
            State::Error,
            &what,
            format!("the backup of {dated} is {AHEAD}"),
        );
        if standing.newest().is_none() {
            return;
        }
    }
    if let Restorable::Unknown(why) = standing.restorable() {
        let detail = format!("whether its newest backup can be restored is unknown: {why}");
        return findings.add(State::Error, what, detail);
    }
    let Some(last) = standing.newest().and_then(|newest| newest.finished) else {
        return findings.add(State::Error, what, "has no restorable backup");
    };
    let age = seconds(last, Moment::now().0);
    let hours = age / 3600;
    if hours >= HOURS_WITHOUT_BACKUP {
        findings.add(
            State::Warning,
            what,
            format!("the last restorable backup is {hours} hours old"),
        );
    } else {
        findings.add(State::Ok, what, format!("last restorable backup {last}"));
    }
}

fn copies(catalog: &Catalog, findings: &mut Findings) {
    match catalog.queued_copies() {
        Ok(queued) => {
            for copy in queued.iter().filter(|copy| copy.attempts > 0) {
                let error = copy.last_error.clone().unwrap_or_default();
                findings.add(
                    State::Warning,
                    format!("copy to {}", copy.target.display()),
                    format!("failed {} times: {error}", copy.attempts),
                );
            }
        }
        Err(error) => findings.add(State::Error, "copies", error.to_string()),
    }
}

/// Reads the schema: checks that the file is a database and can be opened.
fn check_header(path: &Path) -> Result<(), String> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let schema = "SELECT count(*) FROM sqlite_schema";
    let opened = Connection::open_with_flags(path, flags)
        .and_then(|connection| connection.query_row(schema, [], |_| Ok(())));
    match opened {
        // SQLite needs to write beside a database in WAL mode, or to roll back; a backup does not.
        Err(error) if is_refusal_to_write(&error) => check_content(path),
        other => other.map_err(|error| format!("{}: {error}", path.display())),
    }
}

fn is_refusal_to_write(error: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode::{CannotOpen, ReadOnly};
    matches!(error.sqlite_error_code(), Some(ReadOnly | CannotOpen))
}

/// Checks what a database begins with.
fn check_content(path: &Path) -> Result<(), String> {
    let reason = match sqlite::content(path).map_err(|error| error.to_string())? {
        Content::Database | Content::Empty => return Ok(()),
        Content::Unknown => "it is encrypted, or no database".to_owned(),
        Content::Cut {
            expected_bytes,
            found_bytes,
        } => format!("it has {found_bytes} bytes of {expected_bytes}"),
    };
    Err(format!("{}: {reason}", path.display()))
}

fn check_database(path: &Path) -> Result<(), String> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let found: String = Connection::open_with_flags(path, flags)
        .and_then(|connection| connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)))
        .map_err(|error| error.to_string())?;
    if found == "ok" { Ok(()) } else { Err(found) }
}

fn folder_state(folder: &Path) -> (State, String) {
    match std::fs::metadata(folder) {
        Ok(metadata) if metadata.is_dir() => match windlass_io::directory::free_bytes(folder) {
            Ok(Some(free)) if free < FREE_BYTES_LOW => {
                (State::Warning, format!("only {} MB are free", free >> 20))
            }
            Ok(Some(free)) => (State::Ok, format!("{} MB are free", free >> 20)),
            Ok(None) => (State::Ok, "its free space is unknown".to_owned()),
            Err(error) => (State::Warning, error.to_string()),
        },
        Ok(_) => (State::Error, "is not a folder".to_owned()),
        Err(error) => (State::Error, error.to_string()),
    }
}
