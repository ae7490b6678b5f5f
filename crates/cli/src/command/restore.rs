//! `windlass restore`

use std::path::PathBuf;

use windlass_base::message::table;
use windlass_instance::statement::newest::{NewestRequest, Sequence};
use windlass_instance::statement::restore::RestoreExtras;
use windlass_instance::{BatchEnd, Session, logical_name};
use windlass_tsql::ast::{
    Device, Identifier, Name, RestoreAction, RestoreOption, RestoreSource, RestoreStatement,
    Statement, Value,
};

use windlass_tsql::span::Spanned;

use super::{
    Outcome, absolute, disk, io_method_refused, keys, made, misused, refused, session_for,
};
use crate::args::{Common, RestoreArguments, Threads};
use crate::output::{Console, Layout};

/// Runs the command.
pub(crate) fn run(arguments: &RestoreArguments, common: &Common) -> Outcome {
    let has_target = arguments.to.is_some() || !arguments.moves.is_empty();
    if !has_target && arguments.database.is_none() {
        return misused("no target: give --to FILE, or --database NAME of the instance");
    }
    if let Some(outcome) = io_method_refused(arguments.tuning.io) {
        return outcome;
    }
    let mut console = Console::new(common.json, Layout::Table).with_plan(arguments.run.plan);
    let Some(mut session) = session_for(arguments.run.dry_run, common, &mut console) else {
        return Outcome::Failed;
    };
    let name = name(arguments);
    let keys = match keys::ring(&arguments.keys) {
        Ok(keys) => keys,
        Err(message) => return refused(message, &mut console),
    };
    let extras = RestoreExtras {
        keys,
        target: arguments.to.clone(),
        threads: arguments.tuning.threads.and_then(Threads::count),
        io_method: arguments.tuning.io,
        is_passing: arguments.database.is_none(),
        needs_target: true,
    };
    let steps = match steps(&mut session, arguments, common, &name, &mut console) {
        Ok(steps) => steps,
        Err(outcome) => return outcome,
    };
    let mut outcome = Outcome::Succeeded;
    for (index, statement) in steps.into_iter().enumerate() {
        if arguments.run.tsql || arguments.run.dry_run {
            console.tsql(&Statement::Restore(Box::new(statement.clone())));
        }
        let end = session.restore(&statement, &name, &extras, &mut console);
        match end {
            BatchEnd::Clean => {}
            // Later sets may even contain what it lost.
            BatchEnd::Lost => outcome = Outcome::Failed,
            BatchEnd::Failed => {
                advise(&mut console);
                if index > 0 && !arguments.run.dry_run {
                    left_open(&session, arguments, &name, &mut console);
                }
                return Outcome::Failed;
            }
        }
    }
    match &arguments.to {
        Some(path)
            if arguments.read_only && !arguments.run.dry_run && outcome == Outcome::Succeeded =>
        {
            make_read_only(path, &mut console)
        }
        _ => outcome,
    }
}

/// The restores in order: of the named set, or of those that give the newest state.
fn steps(
    session: &mut Session,
    arguments: &RestoreArguments,
    common: &Common,
    name: &str,
    console: &mut Console,
) -> Result<Vec<RestoreStatement>, Outcome> {
    let given: Vec<_> = arguments
        .media
        .iter()
        .map(|path| disk(path, common))
        .collect();
    let recovers = !arguments.no_recovery;
    let plain = Part {
        devices: given,
        position: arguments.set,
        is_first: true,
        recovers,
    };
    let statement_of = |part: Part| statement(arguments, name, part);
    if arguments.set.is_some() || arguments.media.is_empty() {
        return Ok(vec![statement_of(plain)]);
    }
    let request = NewestRequest {
        of: arguments.of.as_deref(),
        name,
        target: arguments.to.as_deref(),
        leaves_open: arguments.no_recovery,
    };
    let newest = match session.newest(&statement_of(plain.clone()), &request) {
        Ok(newest) => newest,
        Err(failure) => {
            for message in failure.messages {
                console.message(message);
            }
            return Err(Outcome::Failed);
        }
    };
    for note in newest.notes {
        console.message(note);
    }
    if newest.steps.is_empty() {
        return Ok(vec![statement_of(plain)]);
    }
    let last = newest.steps.len() - 1;
    let parts = newest
        .steps
        .into_iter()
        .enumerate()
        .map(|(index, step)| Part {
            devices: step.devices,
            position: Some(step.position),
            is_first: index == 0,
            recovers: recovers && index == last,
        });
    Ok(parts.map(statement_of).collect())
}

/// Advice for refusals that mention T-SQL options.
fn advise(console: &mut Console) {
    const EXISTING: [u32; 2] = [3142, 3154];
    const OCCUPIED: [u32; 2] = [1834, 3156];
    let advice = if EXISTING.iter().any(|number| console.has_told(*number)) {
        table::give_replace_or_another_place()
    } else if OCCUPIED.iter().any(|number| console.has_told(*number)) {
        table::give_another_place()
    } else {
        return;
    };
    console.message(advice);
}

/// What a sequence that failed behind its full backup leaves, and how to go on.
fn left_open(session: &Session, arguments: &RestoreArguments, name: &str, console: &mut Console) {
    let moved = arguments.moves.first().map(|(_, path)| PathBuf::from(path));
    let target = arguments.to.clone().or(moved);
    let target = target.filter(|_| arguments.database.is_none() || arguments.to.is_some());
    match session.sequence(name, target.as_deref()) {
        Err(_) | Ok(Sequence::None) => {}
        Ok(Sequence::Torn) => console.message(table::sequence_torn(name)),
        Ok(Sequence::Waits(_)) => {
            let (place, recovery) = ways_on(arguments, name);
            console.message(table::sequence_waits(name, place, recovery));
        }
    }
}

/// Where a differential goes on, and how the full backup alone is recovered, as the command line says it.
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

/// One restore of a sequence.
#[derive(Debug, Clone)]
struct Part {
    devices: Vec<Spanned<Device>>,
    position: Option<u16>,
    is_first: bool,
    recovers: bool,
}

/// The name of the database: as given, or that of its file.
fn name(arguments: &RestoreArguments) -> String {
    match (&arguments.database, &arguments.to, arguments.moves.first()) {
        (Some(name), ..) => name.clone(),
        (None, Some(path), _) => logical_name(path),
        (None, None, Some((_, path))) => logical_name(std::path::Path::new(path)),
        (None, None, None) => String::new(),
    }
}

fn make_read_only(path: &std::path::Path, console: &mut Console) -> Outcome {
    let result = std::fs::metadata(path).and_then(|metadata| {
        let mut permissions = metadata.permissions();
        permissions.set_readonly(true);
        std::fs::set_permissions(path, permissions)
    });
    match result {
        Ok(()) => Outcome::Succeeded,
        Err(error) => {
            let error = windlass_instance::message_of::os_error(&error);
            console.message(table::cannot_open_file(path.display(), error));
            Outcome::Failed
        }
    }
}

fn statement(arguments: &RestoreArguments, name: &str, part: Part) -> RestoreStatement {
    let options = options(arguments, &part).into_iter().map(made).collect();
    RestoreStatement {
        action: RestoreAction::Database {
            name: made(Name::Identifier(Identifier::new(name))),
            files: Vec::new(),
        },
        source: if part.devices.is_empty() {
            RestoreSource::None
        } else {
            RestoreSource::Devices(part.devices)
        },
        options,
    }
}

fn options(arguments: &RestoreArguments, part: &Part) -> Vec<RestoreOption> {
    use RestoreOption as O;
    let number = |number: Option<u32>| number.map(|number| Value::Number(i64::from(number)));
    let flag = |is_set: bool, option: O| is_set.then_some(option);
    let tuning = &arguments.tuning;
    let moves = arguments.moves.iter().map(|(logical, path)| O::Move {
        logical: made(Value::national(logical)),
        path: made(Value::national(absolute(std::path::Path::new(path)))),
    });
    let has_media = !arguments.media.is_empty();
    let signers = arguments
        .signed_by
        .iter()
        .map(|path| O::SignedBy(Value::national(absolute(path))));
    let rest = [
        part.position
            .filter(|_| has_media)
            .map(|position| O::File(Value::Number(i64::from(position)))),
        flag(arguments.replace && part.is_first, O::Replace),
        flag(arguments.as_is, O::AsIs),
        flag(arguments.allow_unencrypted, O::AllowUnencrypted),
        flag(!part.recovers, O::NoRecovery),
        flag(!has_media && !arguments.no_recovery, O::Recovery),
        flag(arguments.checksum, O::Checksum),
        flag(arguments.continue_after_error, O::ContinueAfterError),
        arguments
            .media_name
            .as_ref()
            .map(|name| O::MediaName(Value::national(name))),
        number(tuning.buffer_count).map(O::BufferCount),
        tuning
            .max_transfer_size
            .map(|bytes| O::MaxTransferSize(Value::Number(bytes))),
        number(arguments.run.stats).map(|every| O::Stats(Some(every))),
    ];
    let rest = rest.into_iter().flatten();
    moves.chain(rest).chain(signers).collect()
}
