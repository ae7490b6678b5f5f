//! `windlass restore`

use windlass_base::message::table;
use windlass_instance::statement::restore::RestoreExtras;
use windlass_instance::{Sink as _, logical_name};
use windlass_tsql::ast::{
    Identifier, Name, RestoreAction, RestoreOption, RestoreSource, RestoreStatement, Statement,
    Value,
};

use super::{Outcome, absolute, disk, engine_refused, keys, made, misused, refused, session};
use crate::args::{Common, RestoreArguments, Threads};
use crate::output::{Console, Layout, result_line};

/// Runs the command.
pub(crate) fn run(arguments: &RestoreArguments, common: &Common) -> Outcome {
    let has_target = arguments.to.is_some() || !arguments.moves.is_empty();
    if !has_target && arguments.database.is_none() {
        return misused("where to? Give --to FILE, or --database NAME of the instance");
    }
    if let Some(outcome) = engine_refused(arguments.tuning.io) {
        return outcome;
    }
    let mut console = Console::new(common.json, Layout::Table).with_plan(arguments.run.plan);
    let Some(mut session) = session(common, &mut console) else {
        return Outcome::Failed;
    };
    let name = name(arguments);
    let statement = statement(arguments, common, &name);
    if arguments.run.tsql {
        result_line(&format!(
            "{};",
            Statement::Restore(Box::new(statement.clone()))
        ));
    }
    let keys = match keys::ring(&arguments.keys) {
        Ok(keys) => keys,
        Err(message) => return refused(message, &mut console),
    };
    let extras = RestoreExtras {
        keys,
        target: arguments.to.clone(),
        threads: arguments.tuning.threads.and_then(Threads::count),
        engine: arguments.tuning.io,
        is_passing: arguments.database.is_none(),
        needs_target: true,
    };
    let outcome = Outcome::from(session.restore(&statement, &name, &extras, &mut console));
    match (&arguments.to, outcome) {
        (Some(path), Outcome::Succeeded) if arguments.read_only => {
            make_read_only(path, &mut console)
        }
        _ => outcome,
    }
}

/// The name of the database: as given, or as its file is called.
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

fn statement(arguments: &RestoreArguments, common: &Common, name: &str) -> RestoreStatement {
    let devices: Vec<_> = arguments
        .media
        .iter()
        .map(|path| disk(path, common))
        .collect();
    RestoreStatement {
        action: RestoreAction::Database {
            name: made(Name::Identifier(Identifier::new(name))),
            files: Vec::new(),
        },
        source: if devices.is_empty() {
            RestoreSource::None
        } else {
            RestoreSource::Devices(devices)
        },
        options: options(arguments).into_iter().map(made).collect(),
    }
}

fn options(arguments: &RestoreArguments) -> Vec<RestoreOption> {
    use RestoreOption as O;
    let number = |number: Option<u32>| number.map(|number| Value::Number(i64::from(number)));
    let flag = |is_set: bool, option: O| is_set.then_some(option);
    let tuning = &arguments.tuning;
    let moves = arguments.moves.iter().map(|(logical, path)| O::Move {
        logical: made(Value::national(logical)),
        path: made(Value::national(absolute(std::path::Path::new(path)))),
    });
    let has_media = !arguments.media.is_empty();
    let rest = [
        flag(
            has_media && arguments.set != 1,
            O::File(Value::Number(i64::from(arguments.set))),
        ),
        flag(arguments.replace, O::Replace),
        flag(arguments.as_is, O::AsIs),
        flag(arguments.allow_unencrypted, O::AllowUnencrypted),
        flag(arguments.no_recovery, O::NoRecovery),
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
    moves.chain(rest.into_iter().flatten()).collect()
}
