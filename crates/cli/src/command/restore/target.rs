//! What a command restores upon: a registered database's file, or a sequence that waits; and what it leaves there.

use std::path::{Path, PathBuf};

use windlass_base::Message;
use windlass_base::message::table;
use windlass_instance::operation::{RestoreOptions, Sequence};
use windlass_instance::{Failure, Session, is_url};

use crate::args::RestoreArguments;
use crate::command::placed;
use crate::output::Console;

/// The arguments with the files that names of Windows mean, by the session's drives.
pub(super) fn by_drives(
    session: &Session,
    arguments: &RestoreArguments,
    console: &mut Console,
) -> Option<RestoreArguments> {
    let mut arguments = arguments.clone();
    if let Some(path) = &mut arguments.to {
        *path = placed(session, [&*path], console)?.remove(0);
    }
    for (_, path) in &mut arguments.moves {
        let file = placed(session, [&PathBuf::from(&*path)], console)?.remove(0);
        *path = file.to_string_lossy().into_owned();
    }
    Some(arguments)
}

/// Refuses the file of a registered database, which T-SQL would replace as the database's own: whoever names a target
/// file does not say that there is one.
pub(super) fn needs_replace(
    session: &Session,
    arguments: &RestoreArguments,
    name: &str,
    is_registered: bool,
) -> Option<Message> {
    let target = arguments.to.as_deref()?;
    if arguments.replace || arguments.media.is_empty() || arguments.database.is_some() {
        return None;
    }
    let begins = matches!(sequence(session, arguments, name), Ok(Sequence::None));
    (is_registered && begins && target.exists())
        .then(|| table::target_needs_replace(target.display()))
}

/// The state of the sequence of restores at the target.
pub(super) fn sequence(
    session: &Session,
    arguments: &RestoreArguments,
    name: &str,
) -> Result<Sequence, Failure> {
    let moved = arguments.moves.first().map(|(_, path)| PathBuf::from(path));
    let target = arguments.to.clone().or(moved);
    let target = target.filter(|_| arguments.database.is_none() || arguments.to.is_some());
    session.sequence(name, target.as_deref())
}

/// Reports the state of a sequence that failed after its full backup, and how to continue.
pub(super) fn left_open(
    session: &Session,
    arguments: &RestoreArguments,
    name: &str,
    console: &mut Console,
) {
    match sequence(session, arguments, name) {
        Err(_) | Ok(Sequence::None) => {}
        Ok(Sequence::Torn) => console.message(table::sequence_torn(name)),
        Ok(Sequence::Waits(_)) if arguments.follow.is_some() => {
            let (place, _) = ways_on(arguments, name);
            console.message(table::spool_waits(name, place));
        }
        Ok(Sequence::Waits(_)) => {
            let (place, recovery) = ways_on(arguments, name);
            console.message(table::sequence_waits(name, place, recovery));
        }
    }
}

/// Tells how a sequence that was left open goes on.
pub(super) fn waits(arguments: &RestoreArguments, name: &str, console: &mut Console) {
    let (place, _) = ways_on(arguments, name);
    console.message(table::restoring_waits(name, place));
}

/// The words that name the target on the command line, and the command that recovers the full backup
/// alone.
fn ways_on(arguments: &RestoreArguments, name: &str) -> (String, String) {
    let mut words = Vec::new();
    if arguments.database.is_some() {
        words.extend(["--database".to_owned(), name.to_owned()]);
    }
    if let Some(path) = &arguments.to {
        words.extend(["--to".to_owned(), path.display().to_string()]);
    }
    let mut recovering = words.clone();
    if arguments.replace {
        recovering.push("--replace".to_owned());
    }
    let recovery = match words.is_empty() {
        true => String::new(),
        false => format!(
            " To take the state of the full backup: windlass restore {}.",
            shell_words::join(recovering)
        ),
    };
    for (logical, path) in &arguments.moves {
        words.extend(["--move".to_owned(), format!("{logical}={path}")]);
    }
    (shell_words::join(words), recovery)
}

/// The name of the database in T-SQL that does what the command does. There every restore registers, so it is another one
/// where the instance has a database of the name that the command leaves alone.
pub(super) fn name_in_tsql(session: &Session, name: &str, step: &RestoreOptions) -> String {
    let is_taken = |name: &str| matches!(session.instance().database(name), Ok(Some(_)));
    if !is_taken(name) || matches!(session.restored_over(name, step), Ok(Some(_))) {
        return name.to_owned();
    }
    let mut names = (1..).map(|number| format!("{name}_restored{number}"));
    names.find(|name| !is_taken(name)).unwrap_or_default()
}

/// What to write for a restore that names no target: perhaps the last of its backups is meant to be that.
pub(super) fn without_target(media: &[String]) -> String {
    let plain = "no target: give --to FILE, or --database NAME of the instance";
    match media {
        [] => "no backup and no target: windlass restore BACKUP --to FILE, or --database NAME of the instance"
            .to_owned(),
        [.., _, last] if !is_url(last) && !Path::new(last).exists() => {
            format!("{plain}. If '{last}' is to be the database: --to {last}")
        }
        _ => plain.to_owned(),
    }
}
