//! The backups that the history of the instance names, where the command line names none.

use std::borrow::Cow;

use windlass_instance::{Failure, Session};

use crate::args::{Common, RestoreArguments};
use crate::command::{Outcome, misused};

/// Whether the media are those of the history: nobody asks for a state to finish a sequence of restores.
pub(super) fn is_meant(arguments: &RestoreArguments) -> bool {
    let asks = arguments.latest || arguments.at.is_some() || arguments.of.is_some();
    asks && arguments.media.is_empty() && arguments.follow.is_none()
}

/// Why the history cannot be asked.
pub(super) fn refusal(arguments: &RestoreArguments, common: &Common) -> Option<Outcome> {
    if !is_meant(arguments) {
        return None;
    }
    if common.instance.is_none() {
        return Some(misused(
            "--latest, --at and --of need backups, or an instance whose history names them (--instance)",
        ));
    }
    match of(arguments) {
        Some(_) => None,
        None => Some(misused("whose backups in the history? Give --of NAME")),
    }
}

fn of(arguments: &RestoreArguments) -> Option<&str> {
    arguments.of.as_deref().or(arguments.database.as_deref())
}

/// The arguments with the media that are meant.
pub(super) fn with_media<'a>(
    session: &Session,
    arguments: &'a RestoreArguments,
) -> Result<Cow<'a, RestoreArguments>, Failure> {
    let Some(database) = of(arguments).filter(|_| is_meant(arguments)) else {
        return Ok(Cow::Borrowed(arguments));
    };
    let known = session.known_media(database)?;
    // That a moment is reached, the log shows.
    if let (Some(lacking), None) = (known.lacking, arguments.at) {
        return Err(lacking.into());
    }
    Ok(Cow::Owned(RestoreArguments {
        media: known.media,
        of: Some(database.to_owned()),
        ..arguments.clone()
    }))
}
