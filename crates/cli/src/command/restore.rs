//! `windlass restore`

mod history;
mod target;

use windlass_base::Message;
use windlass_base::message::table;
use windlass_instance::operation::{
    Aim, FollowedRestore, MediaOptions, NewestRequest, Recovery, RestoreOptions, RestoreOutcome,
    RestoreStep, Sequence, Stop, StopAt, StoreOptions,
};
use windlass_instance::tsql::print;
use windlass_instance::{Session, logical_name};
use windlass_media::SetType;
use windlass_pipeline::OnDamage;

use super::{
    Outcome, absolute, disks, engine_elsewhere, io_method_refused, is_there, keys, misused,
    refused, reported, run_served, session_for,
};
use crate::args::{Common, Point, RestoreArguments};
use crate::output::{Console, Layout};
use target::{left_open, name_in_tsql, needs_replace, sequence, waits, without_target};

/// Runs the command.
pub(crate) fn run(arguments: &RestoreArguments, common: &Common) -> Outcome {
    if let Some(outcome) =
        refusal(arguments, common).or_else(|| history::refusal(arguments, common))
    {
        return outcome;
    }
    let mut console = Console::new(common.json, Layout::Table).with_plan(arguments.run.plan);
    if history::is_meant(arguments) && !is_there(common, &mut console) {
        return Outcome::Failed;
    }
    let Some(mut session) = session_for(arguments.run.dry_run, common, &mut console) else {
        return Outcome::Failed;
    };
    crate::cancel::ends_reads(session.cancel_flag());
    match target::by_drives(&session, arguments, &mut console) {
        Some(arguments) => restore(&mut session, &arguments, &mut console),
        None => Outcome::Failed,
    }
}

/// Restores what the arguments name.
fn restore(session: &mut Session, arguments: &RestoreArguments, console: &mut Console) -> Outcome {
    let name = name(arguments);
    let mut options = options(arguments);
    match keys::ring(&arguments.keys) {
        Ok(keys) => options.keys = keys,
        Err(message) => return refused(message, console),
    }
    let Some(over) = reported(session.restored_over(&name, &options), console) else {
        return Outcome::Failed;
    };
    let last = followed(arguments, &mut options);
    let Some(mut steps) = steps(session, arguments, options, &name, console) else {
        return Outcome::Failed;
    };
    steps.end_with(last);
    let keys = &arguments.keys;
    let has_keys = !keys.key.is_empty() || keys.passphrase_file.is_some();
    if over.is_some() && !engine_elsewhere(session, &name, has_keys, "windlass restore") {
        return Outcome::Failed;
    }
    if let Some(message) = needs_replace(session, arguments, &name, over.is_some()) {
        return refused(message, console);
    }
    let mut outcome = Outcome::Succeeded;
    let goes_on = steps.continues || {
        // Only a set that is named by its number has not been looked at.
        let is_open = steps.is_unknown;
        is_open && matches!(sequence(session, arguments, &name), Ok(Sequence::Waits(_)))
    };
    let mut is_left = false;
    for (index, step) in steps.restores.iter().enumerate() {
        match restored(session, arguments, &name, (index, step), console) {
            Restored::Whole { waits } => is_left = waits,
            // The next backup may contain what this one lost.
            Restored::WithLosses => outcome = Outcome::Failed,
            Restored::Not => {
                advise(arguments, console);
                if (index > 0 || goes_on) && !arguments.run.dry_run {
                    left_open(session, arguments, &name, console);
                }
                return Outcome::Failed;
            }
        }
    }
    if arguments.at.is_some() && !arguments.run.dry_run {
        // A log that ends before the moment leaves the database restoring.
        is_left = is_left && reach(session, arguments, &name, &steps, console);
        let found = sequence(session, arguments, &name);
        if is_left || matches!(found, Ok(Sequence::Waits(_) | Sequence::Torn)) {
            left_open(session, arguments, &name, console);
            outcome = Outcome::Failed;
        }
    }
    if arguments.no_recovery && outcome == Outcome::Succeeded && !arguments.run.dry_run {
        waits(arguments, &name, console);
    }
    match &arguments.to {
        Some(path)
            if arguments.read_only && !arguments.run.dry_run && outcome == Outcome::Succeeded =>
        {
            make_read_only(path, console)
        }
        _ => outcome,
    }
}

/// How a step ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Restored {
    Whole {
        /// Whether the database waits for more.
        waits: bool,
    },
    WithLosses,
    Not,
}

/// A step in T-SQL. The first one says where the files go; the instance that runs it knows that from then on.
fn tsql(session: &mut Session, name: &str, step: &RestoreOptions, is_first: bool) -> String {
    let name = &name_in_tsql(session, name, step);
    if !is_first {
        return print::restore(name, step);
    }
    // What cannot be read, the restore reports.
    let places = session.moves_of_target(name, step).unwrap_or_default();
    let moves = [places, step.moves.clone()].concat();
    print::restore(
        name,
        &RestoreOptions {
            moves,
            ..step.clone()
        },
    )
}

/// Restores one step, here or by the server that has the database.
fn restored(
    session: &mut Session,
    arguments: &RestoreArguments,
    name: &str,
    (index, step): (usize, &RestoreOptions),
    console: &mut Console,
) -> Restored {
    if arguments.run.tsql || arguments.run.dry_run {
        console.tsql(&tsql(session, name, step, index == 0));
    }
    let result = match session.is_elsewhere() {
        true => {
            let done = run_served(session, &print::restore(name, step), console);
            done.map(|()| matches!(sequence(session, arguments, name), Ok(Sequence::Waits(_))))
        }
        false => session.restore(name, step, console).map(|outcome| {
            let left = Recovery::NoRecovery;
            matches!(outcome, RestoreOutcome::Restored { recovery, .. } if recovery == left)
        }),
    };
    let is_lost = result.as_ref().is_err_and(|failure| failure.is_done);
    match reported(result, console) {
        Some(waits) => Restored::Whole { waits },
        None if is_lost => Restored::WithLosses,
        None => Restored::Not,
    }
}

/// Goes on until a commit shows that the moment is reached; if none does, the end of the last backup counts as long as its
/// clock can be believed. Returns whether the database waits for more.
fn reach(
    session: &mut Session,
    arguments: &RestoreArguments,
    name: &str,
    steps: &Steps,
    console: &mut Console,
) -> bool {
    for step in &steps.further {
        match restored(session, arguments, name, (1, step), console) {
            Restored::Whole { waits: true } => {}
            Restored::Whole { waits: false } | Restored::WithLosses => return false,
            Restored::Not => return true,
        }
    }
    let Some((end, said)) = &steps.end else {
        return true;
    };
    let ended = restored(session, arguments, name, (1, end), console);
    let is_over = ended == Restored::Whole { waits: false };
    if is_over {
        console.message(said.clone());
    }
    !is_over
}

/// Why the arguments make no restore.
fn refusal(arguments: &RestoreArguments, common: &Common) -> Option<Outcome> {
    let has_target = arguments.to.is_some() || !arguments.moves.is_empty();
    if arguments.database.is_some() && common.instance.is_none() {
        return Some(misused(
            "--database registers the database with an instance: name it by --instance",
        ));
    }
    if let Some(to) = arguments.to.as_deref()
        && to.as_os_str().as_encoded_bytes().ends_with(b"/")
        && !to.is_dir()
    {
        let to = to.display();
        return Some(misused(&format!(
            "--to {to}: there is no folder of this name"
        )));
    }
    let has_backups = !arguments.media.is_empty() || history::is_meant(arguments);
    if arguments.no_recovery && !has_backups && arguments.database.is_none() {
        return Some(misused(
            "no backup is named: windlass restore BACKUP --to FILE --no-recovery",
        ));
    }
    if !has_target && arguments.database.is_none() {
        return Some(misused(&without_target(&arguments.media)));
    }
    if let Some(folder) = &arguments.follow
        && !folder.is_dir()
    {
        return Some(misused(&format!(
            "--follow {}: there is no such folder of a follower",
            folder.display()
        )));
    }
    if arguments.follow.is_some() && matches!(arguments.at, Some(Point::Lsn(_))) {
        return Some(misused(
            "--at lsn:N is for log backups; with --follow give a time, or --at-commit N",
        ));
    }
    io_method_refused(arguments.tuning.io)
}

/// The options on the command line, except the keys, whose files are not read.
fn options(arguments: &RestoreArguments) -> RestoreOptions {
    let tuning = &arguments.tuning;
    RestoreOptions {
        media: MediaOptions {
            devices: disks(&arguments.media),
            position: arguments
                .set
                .filter(|_| !arguments.media.is_empty())
                .map(i64::from),
            media_name: arguments.media_name.clone(),
            block_bytes: None,
            needs_checksums: arguments.checksum,
            store: StoreOptions {
                json: arguments.restore_options.clone(),
                ..StoreOptions::default()
            },
        },
        recovery: match arguments.no_recovery {
            true => Recovery::NoRecovery,
            false => Recovery::Recovery,
        },
        moves: arguments
            .moves
            .iter()
            .map(|(logical, path)| (logical.clone(), absolute(std::path::Path::new(path))))
            .collect(),
        target: arguments.to.clone(),
        stop: stop(arguments),
        needs_target: true,
        is_unregistered: arguments.database.is_none(),
        replaces: arguments.replace,
        is_as_is: arguments.as_is,
        allows_unencrypted: arguments.allow_unencrypted,
        signed_by: arguments
            .signed_by
            .iter()
            .map(|path| absolute(path))
            .collect(),
        on_damage: match arguments.continue_after_error {
            true => OnDamage::Continue,
            false => OnDamage::Stop,
        },
        buffer_count: tuning.buffer_count.map(i64::from),
        transfer_bytes: tuning.max_transfer_size,
        threads: tuning.threads(),
        io_method: tuning.io,
        stats: arguments.run.stats.map(i64::from),
        ..RestoreOptions::default()
    }
}

/// Where log backups stop; a follower's spool has moments of its own.
fn stop(arguments: &RestoreArguments) -> StopAt {
    let point = arguments.at.filter(|_| arguments.follow.is_none());
    point.map_or(StopAt::End, Point::stop)
}

/// The step that applies a follower's spool, if that is wanted; the steps before it leave the database restoring.
fn followed(arguments: &RestoreArguments, options: &mut RestoreOptions) -> Option<RestoreOptions> {
    let folder = arguments.follow.clone()?;
    options.recovery = Recovery::NoRecovery;
    let stop = match (arguments.at, arguments.at_commit) {
        (Some(Point::Time(time)), _) => Stop::Time(time),
        (_, Some(commit)) => Stop::Commit(commit),
        (_, None) => Stop::Latest,
    };
    Some(RestoreOptions {
        media: MediaOptions::default(),
        follow: Some(FollowedRestore { folder, stop }),
        recovery: Recovery::Recovery,
        ..options.clone()
    })
}

/// What is restored.
struct Steps {
    /// One after the other: the set that is named, or those that give the newest state.
    restores: Vec<RestoreOptions>,
    /// Whether the first is a differential of a full backup that was restored WITH NORECOVERY.
    continues: bool,
    /// Whether that is not known yet.
    is_unknown: bool,
    /// The log backups behind them, for as long as the moment is not shown to be reached.
    further: Vec<RestoreOptions>,
    /// Ends the sequence if they do not show it either, and what is said then.
    end: Option<(RestoreOptions, Message)>,
}

impl Steps {
    fn of(options: RestoreOptions, is_unknown: bool) -> Self {
        Self {
            restores: vec![options],
            continues: false,
            is_unknown,
            further: Vec::new(),
            end: None,
        }
    }
}

impl Steps {
    /// Without media, the backups have been restored before.
    fn end_with(&mut self, last: Option<RestoreOptions>) {
        let Some(last) = last else {
            return;
        };
        self.restores.retain(|step| !step.media.devices.is_empty());
        self.restores.push(last);
    }
}

/// The state that the backups are to lead to.
fn aim(arguments: &RestoreArguments) -> Aim {
    match (arguments.at, arguments.follow.is_some()) {
        (None, _) => Aim::Newest,
        // The spool goes on from there.
        (Some(Point::Time(time_us)), true) => Aim::Before(time_us / 1000),
        (Some(point), _) => Aim::At(point.stop()),
    }
}

fn steps(
    session: &mut Session,
    arguments: &RestoreArguments,
    options: RestoreOptions,
    name: &str,
    console: &mut Console,
) -> Option<Steps> {
    let known = history::of(arguments);
    if arguments.set.is_some() || arguments.media.is_empty() && known.is_none() {
        return Some(Steps::of(options, true));
    }
    let request = NewestRequest {
        of: known.or(arguments.of.as_deref()),
        name,
        target: arguments.to.as_deref(),
        leaves_open: arguments.no_recovery,
        aim: aim(arguments),
        keys: &options.keys,
    };
    let newest = match known {
        Some(_) => session.newest_known(&request),
        None => session.newest(&options.media, &request),
    };
    let newest = reported(newest, console)?;
    for note in newest.notes {
        console.message(note);
    }
    let Some(last) = newest.steps.len().checked_sub(1) else {
        return Some(Steps::of(options, false));
    };
    let first = newest.steps.first();
    let continues = first.is_some_and(|step| step.set.set_type != SetType::Full);
    let all: Vec<&RestoreStep> = newest.steps.iter().chain(&newest.further).collect();
    let unknown = unknown_moves(&options.moves, &all);
    let restore = |(index, step): (usize, RestoreStep)| RestoreOptions {
        moves: match index {
            0 => [moves_of(&options.moves, &step), unknown.clone()].concat(),
            _ => moves_of(&options.moves, &step),
        },
        recovery: match index >= last {
            true => options.recovery,
            false => Recovery::NoRecovery,
        },
        // The sequence knows which files it may replace.
        replaces: options.replaces && index == 0,
        ..step.restore(options.clone())
    };
    let recovers = options.recovery == Recovery::Recovery;
    let further = newest.further.into_iter().filter(|_| recovers);
    let further = further.enumerate();
    Some(Steps {
        restores: newest.steps.into_iter().enumerate().map(restore).collect(),
        continues,
        is_unknown: false,
        further: further
            .map(|(index, step)| restore((last + 1 + index, step)))
            .collect(),
        end: newest.end.filter(|_| recovers).map(|said| {
            let end = RestoreOptions {
                media: MediaOptions::default(),
                stop: StopAt::End,
                ..options.clone()
            };
            (end, said)
        }),
    })
}

/// The places of the files that a set has: a later one may add files.
fn moves_of(moves: &[(String, String)], step: &RestoreStep) -> Vec<(String, String)> {
    let moves = moves.iter().filter(|(logical, _)| step.has_file(logical));
    moves.cloned().collect()
}

/// Those of files that no set has: the first restore refuses them.
fn unknown_moves(moves: &[(String, String)], steps: &[&RestoreStep]) -> Vec<(String, String)> {
    let is_known = |logical: &str| steps.iter().any(|step| step.has_file(logical));
    let unknown = moves.iter().filter(|(logical, _)| !is_known(logical));
    unknown.cloned().collect()
}

/// Advice for refusals that mention T-SQL options.
fn advise(arguments: &RestoreArguments, console: &mut Console) {
    const OCCUPIED: [u32; 2] = [1834, 3156];
    const NOT_READY: u32 = 3117;
    let is_named = arguments.to.is_some() || !arguments.moves.is_empty();
    let is_enough = is_named && !arguments.replace;
    let advice = if console.has_reported(3154) || console.has_reported(3142) && is_enough {
        table::give_replace_or_another_place()
    } else if console.has_reported(3142) {
        table::give_name_and_replace()
    } else if arguments.media.is_empty() && console.has_reported(NOT_READY) {
        table::no_backup_named()
    } else if console.has_reported(NOT_READY) {
        table::give_full_backup()
    } else if OCCUPIED.iter().any(|number| console.has_reported(*number)) {
        table::give_another_place()
    } else {
        return;
    };
    console.message(advice);
}

/// The name of the database: as given, or the name of its file.
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
            console.message(windlass_instance::message_of::unreadable_file(path, &error));
            Outcome::Failed
        }
    }
}
