//! The commands.

pub(crate) mod backup;
pub(crate) mod bench;
pub(crate) mod extract;
pub(crate) mod import_export;
pub(crate) mod inspect;
mod keys;
mod measuring;
pub(crate) mod prompt;
pub(crate) mod rekey;
pub(crate) mod restore;
pub(crate) mod sql;
pub(crate) mod sqlserver;
pub(crate) mod tune;
pub(crate) mod verify;

use std::path::Path;

use windlass_base::Message;
use windlass_catalog::Drive;
use windlass_instance::{BatchEnd, Failure, Instance, Session, Sink};
use windlass_io::queue::{IoMethodChoice, ring_refusal};
use windlass_tsql::ast::{Device, DeviceKind, Value};
use windlass_tsql::span::Spanned;

use crate::args::Common;
use crate::output::{Console, message_line};

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It did all it was asked to do.
    Succeeded,
    /// It did not, and said why.
    Failed,
    /// The command line makes no sense.
    Misused,
    /// It looked for trouble; the exit code that says how much there is.
    Checked(u8),
}

impl Outcome {
    /// What the program tells whoever started it.
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
            BatchEnd::Lost | BatchEnd::Failed => Self::Failed,
        }
    }
}

/// A session on the instance that the command line names, or on none.
pub(crate) fn session(common: &Common, console: &mut Console) -> Option<Session> {
    match open(common) {
        Ok(instance) => {
            let session = Session::new(instance);
            crate::cancel::watch(&session.cancel_flag());
            Some(session)
        }
        Err(messages) => {
            for message in messages {
                console.message(message);
            }
            None
        }
    }
}

/// The same for a command that may be a dry run: then on a copy of what the instance remembers.
pub(crate) fn session_for(
    is_dry_run: bool,
    common: &Common,
    console: &mut Console,
) -> Option<Session> {
    if !is_dry_run {
        return session(common, console);
    }
    let opened = Instance::rehearsal(common.instance.as_deref());
    let opened = opened.map(|instance| with_drives(instance, common));
    match opened {
        Ok(instance) => Some(Session::new(instance).rehearsing()),
        Err(error) => {
            failed(&error, console);
            None
        }
    }
}

fn with_drives(mut instance: Instance, common: &Common) -> Instance {
    for (letter, folder) in &common.drive {
        let folder = windlass_instance::absolute(folder).unwrap_or_else(|_| folder.clone());
        instance.map_drive(Drive {
            letter: *letter,
            folder,
        });
    }
    instance.restrict_restores(common.restores.clone());
    instance
}

/// The instance that the command line names, or none.
pub(crate) fn open(common: &Common) -> Result<Instance, Vec<Message>> {
    let instance = Instance::open(common.instance.as_deref())
        .map_err(|error| Failure::from(error).messages)?;
    Ok(with_drives(instance, common))
}

/// The name under which the session knows the database: a registered name, or that of a file.
pub(crate) fn database_name(
    session: &mut Session,
    written: &str,
    console: &mut Console,
) -> Option<String> {
    let registered = session.instance().database(written);
    if let Ok(Some(record)) = &registered {
        return Some(record.name.clone());
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

/// `DISK = 'path'` for a file of the command line, absolute so that nothing else is read into it.
pub(crate) fn disk(path: &str, common: &Common) -> Spanned<Device> {
    let is_mapped = path.split_once(':').is_some_and(|(letter, _)| {
        common
            .drive
            .iter()
            .any(|(known, _)| letter.eq_ignore_ascii_case(&known.to_string()))
    });
    let text = if path.eq_ignore_ascii_case("NUL") || is_mapped {
        path.to_owned()
    } else {
        absolute(Path::new(path))
    };
    Spanned::unplaced(Device::Physical {
        kind: DeviceKind::Disk,
        path: Value::national(text),
    })
}

/// A path as text, absolute.
pub(crate) fn absolute(path: &Path) -> String {
    let absolute = std::path::absolute(path);
    absolute
        .unwrap_or_else(|_| path.to_owned())
        .to_string_lossy()
        .into_owned()
}

/// An option that was made rather than read.
pub(crate) fn made<T>(node: T) -> Spanned<T> {
    Spanned::unplaced(node)
}

/// Says what is wrong with the instance.
pub(crate) fn failed(error: &windlass_catalog::Error, console: &mut Console) -> Outcome {
    for message in Failure::from(error).messages {
        console.message(message);
    }
    Outcome::Failed
}

/// The refusal of `--io io_uring` where the kernel has none: an option must not do nothing.
pub(crate) fn io_method_refused(choice: IoMethodChoice) -> Option<Outcome> {
    let refusal = ring_refusal().filter(|_| choice == IoMethodChoice::Ring)?;
    message_line(&format!(
        "error: --io io_uring: not available here ({refusal}); omit --io"
    ));
    Some(Outcome::Failed)
}

/// Says that the command line makes no sense.
pub(crate) fn misused(text: &str) -> Outcome {
    message_line(&format!("error: {text}"));
    Outcome::Misused
}

/// Says why the command cannot begin.
pub(crate) fn refused(message: Message, console: &mut Console) -> Outcome {
    console.message(message);
    Outcome::Failed
}
