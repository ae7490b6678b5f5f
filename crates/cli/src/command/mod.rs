//! The commands.

pub(crate) mod backup;
mod backup_all;
pub(crate) mod bench;
pub(crate) mod extract;
pub(crate) mod follow;
pub(crate) mod import_export;
pub(crate) mod inspect;
pub(crate) mod install;
pub(crate) mod keys;
mod measuring;
mod on;
pub(crate) mod prompt;
pub(crate) mod rekey;
pub(crate) mod repack;
pub(crate) mod restore;
pub(crate) mod serve;
pub(crate) mod signing_key;
pub(crate) mod sql;
mod sqlcmd;
pub(crate) mod sqlserver;
pub(crate) mod tune;
pub(crate) mod verify;

use std::path::{Path, PathBuf};

use windlass_base::Message;
use windlass_base::message::table;
use windlass_base::similar::nearest;
use windlass_catalog::{DatabaseRecord, Drive, FILE_NAME};
use windlass_device::DeviceAddress;
use windlass_instance::operation::DeviceName;
use windlass_instance::{BatchEnd, Failure, Instance, Session, Settings, Sink, is_of_windows};
use windlass_io::queue::{IoMethodChoice, ring_refusal};
use windlass_local::client::{LocalClient, Purpose};

use crate::args::Common;
use crate::output::{Console, error_line};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Succeeded,
    /// It failed and reported why.
    Failed,
    /// The command line is invalid.
    Misused,
    /// A check: the exit code gives its result.
    Checked(u8),
}

impl Outcome {
    /// The exit code of the program.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Succeeded => 0,
            Self::Failed => 1,
            Self::Misused => 2,
            Self::Checked(code) => code,
        }
    }
}

impl From<BatchEnd> for Outcome {
    fn from(end: BatchEnd) -> Self {
        match end {
            BatchEnd::Clean => Self::Succeeded,
            BatchEnd::Failed | BatchEnd::Refused => Self::Failed,
        }
    }
}

/// Returns the result of an operation; prints the messages of its failure.
pub(crate) fn reported<T>(result: Result<T, Failure>, console: &mut Console) -> Option<T> {
    match result {
        Ok(found) => Some(found),
        Err(failure) => {
            for message in failure.messages {
                console.message(message);
            }
            None
        }
    }
}

/// The outcome of an operation; prints the messages of its failure.
pub(crate) fn ended<T>(result: Result<T, Failure>, console: &mut Console) -> Outcome {
    match reported(result, console) {
        Some(_) => Outcome::Succeeded,
        None => Outcome::Failed,
    }
}

/// A session on the instance that the command line names, or on a temporary one.
pub(crate) fn session(common: &Common, console: &mut Console) -> Option<Session> {
    session_for(false, common, console)
}

/// As [`session`], for a command that looks at what there is: a mistyped name makes no new instance, in which all
/// is well.
pub(crate) fn existing_session(common: &Common, console: &mut Console) -> Option<Session> {
    is_there(common, console)
        .then(|| session(common, console))
        .flatten()
}

/// Whether the instance of the command line exists, if it names one; reports if it does not.
pub(crate) fn is_there(common: &Common, console: &mut Console) -> bool {
    let missing = missing_instance(common);
    if let Some(folder) = missing {
        console.message(table::no_instance(folder.display()));
    }
    missing.is_none()
}

/// The folder of the instance that the command line names, if there is none in it.
pub(crate) fn missing_instance(common: &Common) -> Option<&Path> {
    let folder = common.instance.as_deref()?;
    matches!(folder.join(FILE_NAME).try_exists(), Ok(false)).then_some(folder)
}

/// What is said of an instance that is made: its name may be mistyped. Asked before, and said after it.
pub(crate) fn new_instance(common: &Common) -> Option<Message> {
    missing_instance(common).map(|folder| table::instance_made(folder.display()))
}

/// As [`session`], for a command that may be a dry run: then on a copy of the instance's data.
pub(crate) fn session_for(
    is_dry_run: bool,
    common: &Common,
    console: &mut Console,
) -> Option<Session> {
    let made = new_instance(common).filter(|_| !is_dry_run);
    let opened = try_session(is_dry_run, common);
    if opened.is_ok()
        && let Some(message) = made
    {
        console.message(message);
    }
    opened
        .map_err(|messages| {
            for message in messages {
                console.message(message);
            }
        })
        .ok()
}

/// The same, or why the instance cannot be used.
pub(crate) fn try_session(is_dry_run: bool, common: &Common) -> Result<Session, Vec<Message>> {
    if is_dry_run {
        let opened = Instance::rehearsal(common.instance.as_deref());
        let instance = opened.map_err(|error| Failure::from(error).messages)?;
        return Ok(Session::new(with_drives(instance, common)).rehearsing());
    }
    let session = Session::new(open(common)?);
    crate::cancel::watch(&session.cancel_flag());
    Ok(session)
}

/// Lets the server of the instance run the session's batches, if there is one; false if it does not answer as it
/// should, which is reported.
pub(crate) fn through_server(session: &mut Session, program: &str) -> bool {
    let instance = session.instance();
    let Some(folder) = instance.folder() else {
        return true;
    };
    let whom = format!("the server of the instance in {}", folder.display());
    let connected = LocalClient::connect(folder, program, instance.identity());
    hand_over(session, connected, &whom)
}

/// Lets the process that was connected to, if there is one, run the session's batches; false if it does not answer as
/// it should, which is reported.
fn hand_over(
    session: &mut Session,
    connected: std::io::Result<Option<LocalClient>>,
    whom: &str,
) -> bool {
    match connected {
        Ok(None) => true,
        Ok(Some(client)) => {
            session.run_elsewhere(Box::new(client));
            true
        }
        Err(error) => {
            error_line(&format!("{whom}: {error}"));
            false
        }
    }
}

/// As [`through_server`], for an operation on one database: only what the server, or a program with the extension, has
/// open goes there. Keys from files of the command do not.
pub(crate) fn engine_elsewhere(
    session: &mut Session,
    database: &str,
    has_keys: bool,
    program: &str,
) -> bool {
    let record = match session.instance().database(database) {
        Ok(Some(record)) if record.log_path.is_some() && !session.is_rehearsal() => record,
        _ => return true,
    };
    if record.database_id >= 0 && !through_server(session, program) {
        return false;
    }
    if !session.is_elsewhere() && !through_program(session, &record, program) {
        return false;
    }
    if session.is_elsewhere() && has_keys {
        error_line(
            "another program has this database open, and keys from files do not go through it: use certificates \
             of the instance (CREATE CERTIFICATE), or end that program",
        );
        return false;
    }
    true
}

/// Lets the program that has a database open through the extension run the session's batches, if there is one; false if
/// it does not answer as it should, which is reported.
fn through_program(session: &mut Session, record: &DatabaseRecord, program: &str) -> bool {
    let instance = session.instance();
    // The program knows the file under its real name.
    let path = record.path.canonicalize();
    let path = path.as_deref().unwrap_or(&record.path);
    let purpose = Purpose {
        database: &record.name,
        instance: instance.folder(),
    };
    let whom = format!("the program that has '{}' open", path.display());
    let connected = LocalClient::connect_beside(path, program, instance.identity(), &purpose);
    hand_over(session, connected, &whom)
}

/// Runs a statement in the server; its messages are printed.
pub(crate) fn run_served(
    session: &mut Session,
    statement: &str,
    sink: &mut dyn Sink,
) -> Result<(), Failure> {
    match session.execute_batch(statement, 1, sink) {
        BatchEnd::Clean => Ok(()),
        BatchEnd::Failed | BatchEnd::Refused => Err(Failure::from(Vec::new())),
    }
}

/// A text in T-SQL.
pub(crate) fn literal(text: &str) -> String {
    format!("N'{}'", text.replace('\'', "''"))
}

/// What the settings say to an instance.
pub(crate) fn instance_settings(common: &Common) -> Settings {
    let drive = |(letter, folder): &(char, PathBuf)| Drive {
        letter: *letter,
        folder: windlass_instance::absolute(folder).unwrap_or_else(|_| folder.clone()),
    };
    Settings {
        drives: common.drive.iter().map(drive).collect(),
        restores: common.restores.clone(),
    }
}

fn with_drives(mut instance: Instance, common: &Common) -> Instance {
    let settings = instance_settings(common);
    for drive in settings.drives {
        instance.map_drive(drive);
    }
    instance.restrict_restores(settings.restores);
    if let Some(machine) = &common.machine_name {
        instance.name_machine(machine.clone());
    }
    instance
}

/// The instance of the command line, or a temporary one.
pub(crate) fn open(common: &Common) -> Result<Instance, Vec<Message>> {
    let instance = Instance::open(common.instance.as_deref())
        .map_err(|error| Failure::from(error).messages)?;
    Ok(with_drives(instance, common))
}

/// The session's name for the database: its registered name, or a name made from its file.
pub(crate) fn database_name(
    session: &mut Session,
    written: &str,
    console: &mut Console,
) -> Option<String> {
    if written.is_empty() {
        console.message(table::database_does_not_exist(""));
        return None;
    }
    let registered = session.instance().database(written);
    if let Ok(Some(record)) = &registered {
        return Some(record.name.clone());
    }
    if !Path::new(written).exists() {
        let known = session.instance().catalog().databases().unwrap_or_default();
        let known = known.iter().map(|record| record.name.as_str());
        if let Some(meant) = nearest(written, known) {
            console.message(table::database_was_meant(meant));
        }
    }
    let passed = registered.and_then(|_| session.instance_mut().pass(Path::new(written)));
    match passed {
        Ok(name) => Some(name),
        Err(error) => {
            failed(&error, console);
            None
        }
    }
}

/// The device for a URL or a file on the command line; absolute, so that a name cannot be mistaken for a drive
/// letter or a device.
fn disk(path: &str) -> DeviceName {
    if windlass_instance::is_url(path) {
        return DeviceName::Url(path.to_owned());
    }
    // Which drives there are, the instance knows.
    let is_special = DeviceAddress::special(path).is_some() || is_of_windows(path);
    DeviceName::Disk(if is_special {
        path.to_owned()
    } else {
        absolute(Path::new(path))
    })
}

/// The files that names of Windows mean, by the session's drives; others as they are. Reports a drive that is not mapped.
pub(crate) fn placed<'a>(
    session: &Session,
    written: impl IntoIterator<Item = &'a PathBuf>,
    console: &mut Console,
) -> Option<Vec<PathBuf>> {
    let drives = session.instance().drives();
    let files = written.into_iter().map(|path| drives.file(path));
    let files: Result<Vec<_>, _> = files.collect();
    reported(files.map_err(Failure::from), console)
}

/// The devices for some files.
pub(crate) fn disks(paths: &[String]) -> Vec<DeviceName> {
    paths.iter().map(|path| disk(path)).collect()
}

pub(crate) fn absolute(path: &Path) -> String {
    let absolute = std::path::absolute(path);
    absolute
        .unwrap_or_else(|_| path.to_owned())
        .to_string_lossy()
        .into_owned()
}

/// Prints an error of the instance.
pub(crate) fn failed(error: &windlass_catalog::Error, console: &mut Console) -> Outcome {
    for message in Failure::from(error).messages {
        console.message(message);
    }
    Outcome::Failed
}

/// Refuses `--io io_uring` if it is not available: an option must not be ignored silently.
pub(crate) fn io_method_refused(choice: IoMethodChoice) -> Option<Outcome> {
    let refusal = ring_refusal().filter(|_| choice == IoMethodChoice::Ring)?;
    error_line(&format!(
        "--io io_uring: not available here ({refusal}); omit --io"
    ));
    Some(Outcome::Failed)
}

/// Reports an invalid command line.
pub(crate) fn misused(text: &str) -> Outcome {
    error_line(text);
    Outcome::Misused
}

/// Reports why the command cannot start.
pub(crate) fn refused(message: Message, console: &mut Console) -> Outcome {
    console.message(message);
    Outcome::Failed
}
