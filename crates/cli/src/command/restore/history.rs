//! The backups that the history of the instance names, where the command line names none.

use crate::args::{Common, RestoreArguments};
use crate::command::{Outcome, misused};

/// Whether the media are those of the history: nobody asks for a state to finish a sequence of restores.
pub(super) fn is_meant(arguments: &RestoreArguments) -> bool {
    let asks = arguments.latest || arguments.at.is_some() || arguments.of.is_some();
    asks && arguments.media.is_empty() && arguments.follow.is_none()
}

/// Why the history cannot be asked.
pub(super) fn refusal(arguments: &RestoreArguments, common: &Common) -> Option<Outcome> {
    if arguments.of.is_some() && arguments.follow.is_some() && arguments.media.is_empty() {
        return Some(misused(
            "--of chooses among backups: with --follow, name them, or omit it where they are restored already",
        ));
    }
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

/// Whose backups, as the history names the database.
pub(super) fn of(arguments: &RestoreArguments) -> Option<&str> {
    let named = arguments.of.as_deref().or(arguments.database.as_deref());
    named.filter(|_| is_meant(arguments))
}
