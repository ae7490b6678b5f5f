//! `windlass verify`

use windlass_base::message::table;
use windlass_instance::statement::verify_only::VerifyExtras;
use windlass_instance::{Collected, Session, Value as Cell};
use windlass_tsql::ast::{
    RestoreAction, RestoreOption, RestoreSource, RestoreStatement, Statement, Value,
};

use super::{Outcome, absolute, disk, io_method_refused, keys, made, refused, session_for};
use crate::args::{Common, Threads, VerifyArguments};
use crate::output::{Console, Layout};

/// The closing message of a statement that failed.
const TERMINATING: u32 = 3013;

/// Verifies every backup set, or the named one.
pub(crate) fn run(arguments: &VerifyArguments, common: &Common) -> Outcome {
    if let Some(outcome) = io_method_refused(arguments.io) {
        return outcome;
    }
    let mut console = Console::new(common.json, Layout::Table).with_plan(arguments.run.plan);
    let Some(mut session) = session_for(arguments.run.dry_run, common, &mut console) else {
        return Outcome::Failed;
    };
    let keys = match keys::ring(&arguments.keys) {
        Ok(keys) => keys,
        Err(message) => return refused(message, &mut console),
    };
    let extras = VerifyExtras {
        threads: arguments.threads.and_then(Threads::count),
        io_method: arguments.io,
        keys,
    };
    let positions = match arguments.set {
        Some(position) => vec![position],
        None => match positions(&mut session, arguments, common, &mut console) {
            Some(positions) => positions,
            None => return Outcome::Failed,
        },
    };
    // The only set needs no number.
    let is_named = arguments.set.is_some() || positions.len() > 1;
    let mut outcome = Outcome::Succeeded;
    for position in positions {
        let statement = statement(arguments, common, is_named.then_some(position));
        if arguments.run.tsql || arguments.run.dry_run {
            console.tsql(&Statement::Restore(Box::new(statement.clone())));
        }
        if Outcome::from(session.verify(&statement, &extras, &mut console)) != Outcome::Succeeded {
            outcome = Outcome::Failed;
        }
    }
    outcome
}

/// The positions of the sets on the media. Passes on the messages of RESTORE HEADERONLY.
fn positions(
    session: &mut Session,
    arguments: &VerifyArguments,
    common: &Common,
    console: &mut Console,
) -> Option<Vec<u16>> {
    let header = RestoreStatement {
        action: RestoreAction::HeaderOnly,
        options: Vec::new(),
        ..statement(arguments, common, None)
    };
    let mut collected = Collected::default();
    let header = made(Statement::Restore(Box::new(header)));
    session.execute_statements(&[header], 1, &mut collected);
    let failed = collected.has_failed();
    for message in collected.messages {
        // A verification does not print headers.
        console.message(match message.number {
            TERMINATING => table::terminating_abnormally("VERIFY DATABASE"),
            _ => message,
        });
    }
    let result = collected.results.first()?;
    let positions: Vec<u16> = (0..result.rows.len())
        .filter_map(|row| match result.value(row, "Position") {
            Some(Cell::Integer(position)) => u16::try_from(*position).ok(),
            _ => None,
        })
        .collect();
    if positions.is_empty() && !failed {
        console.message(table::volume_empty(
            arguments.media.first().map_or("", String::as_str),
        ));
    }
    // Damage among the headers is a failure, however many intact sets precede it.
    (!failed && !positions.is_empty()).then_some(positions)
}

fn statement(
    arguments: &VerifyArguments,
    common: &Common,
    position: Option<u16>,
) -> RestoreStatement {
    use RestoreOption as O;
    let options = [
        position.map(|position| O::File(Value::Number(position.into()))),
        arguments.checksum.then_some(O::Checksum),
        arguments.stop_on_error.then_some(O::StopOnError),
        arguments.without_key.then_some(O::WithoutKey),
        arguments
            .run
            .stats
            .map(|every| O::Stats(Some(Value::Number(i64::from(every))))),
    ];
    let signers = arguments
        .signed_by
        .iter()
        .map(|path| O::SignedBy(Value::national(absolute(path))));
    RestoreStatement {
        action: RestoreAction::VerifyOnly,
        source: RestoreSource::Devices(
            arguments
                .media
                .iter()
                .map(|path| disk(path, common))
                .collect(),
        ),
        options: options
            .into_iter()
            .flatten()
            .chain(signers)
            .map(made)
            .collect(),
    }
}
