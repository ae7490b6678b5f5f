//! `windlass verify`

use windlass_base::message::table;
use windlass_instance::operation::{MediaOptions, StoreOptions, VERIFICATION, VerifyOptions};
use windlass_instance::tsql::print;
use windlass_instance::{Failure, Session};
use windlass_pipeline::OnDamage;

use super::{
    Outcome, absolute, disks, io_method_refused, is_there, keys, refused, reported, session_for,
};
use crate::args::{Common, Threads, VerifyArguments};
use crate::output::{Console, Layout};

/// Runs the command: verifies every backup set unless one is named.
pub(crate) fn run(arguments: &VerifyArguments, common: &Common) -> Outcome {
    if let Some(outcome) = io_method_refused(arguments.io) {
        return outcome;
    }
    let mut console = Console::new(common.json, Layout::Table).with_plan(arguments.run.plan);
    if !is_there(common, &mut console) {
        return Outcome::Failed;
    }
    let Some(mut session) = session_for(arguments.run.dry_run, common, &mut console) else {
        return Outcome::Failed;
    };
    crate::cancel::ends_reads(session.cancel_flag());
    let keys = match keys::ring(&arguments.keys) {
        Ok(keys) => keys,
        Err(message) => return refused(message, &mut console),
    };
    let media = MediaOptions {
        devices: disks(&arguments.media),
        needs_checksums: arguments.checksum,
        store: StoreOptions {
            json: arguments.restore_options.clone(),
            ..StoreOptions::default()
        },
        ..MediaOptions::default()
    };
    let mut options = VerifyOptions {
        media,
        on_damage: match arguments.stop_on_error {
            true => OnDamage::Stop,
            false => OnDamage::Continue,
        },
        keys,
        signed_by: arguments
            .signed_by
            .iter()
            .map(|path| absolute(path))
            .collect(),
        is_without_key: arguments.without_key,
        part: arguments.subset,
        threads: arguments.threads.and_then(Threads::count).map(i64::from),
        io_method: arguments.io,
        stats: arguments.run.stats.map(i64::from),
        ..VerifyOptions::default()
    };
    let (positions, damage) = match arguments.set {
        Some(position) => (vec![position], None),
        None => match positions(&mut session, &options.media, &mut console) {
            Some(found) => found,
            None => return Outcome::Failed,
        },
    };
    // A number is needed only if there are several sets.
    let is_named = arguments.set.is_some() || positions.len() > 1;
    let mut outcome = Outcome::Succeeded;
    for position in positions {
        options.media.position = is_named.then_some(position.into());
        if arguments.run.tsql || arguments.run.dry_run {
            console.tsql(&print::verify(&options));
        }
        let result = session.verify(&options, &mut console);
        if reported(result, &mut console).is_none() {
            outcome = Outcome::Failed;
        }
    }
    // Sets that are intact are verified all the same: what is known of them depends on it.
    if let Some(damage) = damage {
        let closing = table::terminating_abnormally(VERIFICATION);
        let _failed: Option<()> = reported(Err(damage.then(closing)), &mut console);
        outcome = Outcome::Failed;
    }
    outcome
}

/// The positions of the sets on the media, and damage among the headers, which is a failure even if complete sets
/// precede it.
fn positions(
    session: &mut Session,
    media: &MediaOptions,
    console: &mut Console,
) -> Option<(Vec<u16>, Option<Failure>)> {
    let closing = table::terminating_abnormally(VERIFICATION);
    let found = session.headers(media, console);
    let headers = reported(found.map_err(|failure| failure.then(closing)), console)?;
    let positions = headers.positions.clone();
    let damage = headers.conclude(console).err();
    if positions.is_empty() && damage.is_none() {
        let device = media.devices.first();
        console.message(table::volume_empty(
            device.map_or_else(String::new, ToString::to_string),
        ));
        return None;
    }
    Some((positions, damage))
}
