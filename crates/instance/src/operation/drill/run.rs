//! Runs a drill, and enters it in the ledger.

use std::path::{Path, PathBuf};
use std::time::Instant;

use windlass_base::message::table;
use windlass_base::{Moment, local_of_unix_ms};
use windlass_catalog::DrillRecord;
use windlass_media::{SetConfiguration, SourceKind};
use windlass_source::Recovery;
use windlass_source::engine::{StopAt, describe};

use super::proof::{Proof, Restored};
use super::{DrillOptions, DrillOutcome, DrilledSet};
use crate::message_of::unreadable_file;
use crate::operation::device;
use crate::operation::media::MediaOptions;
use crate::operation::restore::{Newest, NewestRequest, RestoreOptions, Sequence, Step, ended_ms};
use crate::scratch::Scratch;
use crate::{Failure, Session, Silent, Sink};

/// How the folders of drills are named.
const PREFIX: &str = "windlass-drill-";

impl Session {
    /// Restores a database from its backups to a scratch folder, checks it, and deletes it. The result enters the ledger.
    ///
    /// # Errors
    /// Why it is not proven that the database can be restored.
    pub fn drill(
        &mut self,
        database: &str,
        options: &DrillOptions,
        sink: &mut dyn Sink,
    ) -> Result<DrillOutcome, Failure> {
        let began = Moment::now().0;
        let mut outcome = DrillOutcome {
            sets: Vec::new(),
            restored_to: None,
            database_bytes: 0,
            restore: None,
            check: None,
            answer: None,
            kept: None,
        };
        let result = attempt(self, database, options, &mut outcome, sink);
        if !self.is_rehearsal() && !self.is_cancelled() {
            let failure = result.as_ref().err();
            let record = record_of(database, began, options, &outcome, failure);
            if let Err(error) = self.instance.catalog_mut().record_drill(&record) {
                sink.message(table::drill_not_recorded(error));
            }
        }
        result.map(|()| outcome)
    }
}

fn attempt(
    session: &mut Session,
    database: &str,
    options: &DrillOptions,
    outcome: &mut DrillOutcome,
    sink: &mut dyn Sink,
) -> Result<(), Failure> {
    let begun = Instant::now();
    // No restore of a database of that name waits for its end.
    let name = format!("{database} (drill)");
    let plan = plan(session, database, &name, options)?;
    for note in &plan.notes {
        sink.message(note.clone());
    }
    let Some(last) = plan.steps.last() else {
        return Err(table::drill_needs_own_media(database).into());
    };
    if last.set.source_kind == SourceKind::SqlServerFiles {
        return Err(table::drill_needs_own_media(database).into());
    }
    outcome.sets = plan.steps.iter().map(drilled).collect();
    outcome.restored_to = state_of(&plan, &last.set);
    outcome.database_bytes = bytes_of(&last.set);
    if let Some(most) = options.space_bytes_max
        && outcome.database_bytes > most
    {
        return Err(table::drill_needs_space(database, outcome.database_bytes, most).into());
    }
    if session.is_rehearsal() {
        return Ok(());
    }
    let failed = |path: &Path, error: &std::io::Error| Failure::from(unreadable_file(path, error));
    let scratch = Scratch::begin(&options.scratch, PREFIX)
        .map_err(|error| failed(&options.scratch, &error))?;
    let count = plan.steps.len();
    for (step, index) in plan.steps.iter().zip(1..) {
        let recovery = match index == count {
            true => Recovery::Recovery,
            false => Recovery::NoRecovery,
        };
        let restore = restore_of(step, plan.stop.clone(), recovery, scratch.path(), options);
        session.restore(&name, &restore, &mut Silent)?;
    }
    reach(session, &name, &plan, scratch.path(), options)?;
    let mut proof = Proof::open(session, database, restored(scratch.path()))?;
    outcome.restore = Some(begun.elapsed());
    outcome.check = Some(proof.check(options.depth)?);
    if let Some(query) = &options.query {
        outcome.answer = Some(proof.ask(query)?);
    }
    proof.close()?;
    match options.keeps_files {
        true => outcome.kept = Some(scratch.keep()),
        false => {
            let path = scratch.path().to_owned();
            scratch.end().map_err(|error| failed(&path, &error))?;
        }
    }
    Ok(())
}

/// Goes on until a commit shows that the moment is reached, or nothing is left that could.
fn reach(
    session: &mut Session,
    name: &str,
    plan: &Newest,
    folder: &Path,
    options: &DrillOptions,
) -> Result<(), Failure> {
    let waits = |session: &Session| {
        let sequence = session.sequence(name, Some(&target(folder)));
        sequence.map(|sequence| matches!(sequence, Sequence::Waits(_)))
    };
    for step in &plan.further {
        if !waits(session)? {
            return Ok(());
        }
        let restore = restore_of(step, plan.stop.clone(), Recovery::Recovery, folder, options);
        session.restore(name, &restore, &mut Silent)?;
    }
    match (waits(session)?, &plan.end, plan.steps.last()) {
        (true, Some(_), Some(last)) => {
            let mut end = restore_of(last, StopAt::End, Recovery::Recovery, folder, options);
            (end.media, end.wants) = (MediaOptions::default(), None);
            session.restore(name, &end, &mut Silent).map(|_| ())
        }
        (true, ..) => Err(table::stop_not_reached().into()),
        (false, ..) => Ok(()),
    }
}

/// The sets to restore, from the media of the options or those of the history.
fn plan(
    session: &mut Session,
    database: &str,
    name: &str,
    options: &DrillOptions,
) -> Result<Newest, Failure> {
    let request = NewestRequest {
        of: Some(database),
        name,
        target: None,
        leaves_open: false,
        aim: options.aim.clone(),
        keys: &options.keys,
    };
    if options.media.is_empty() {
        return session.newest_known(&request);
    }
    let tags = session.instance.tags();
    let store = device::Store {
        takes_folders: true,
        ..device::Store::default()
    };
    let devices = device::resolve_several(session, &options.media, &tags, &store)?;
    session.newest_on(devices, &request)
}

fn restore_of(
    step: &Step,
    stop: StopAt,
    recovery: Recovery,
    folder: &Path,
    options: &DrillOptions,
) -> RestoreOptions {
    let others = RestoreOptions {
        stop,
        target: Some(target(folder)),
        needs_target: true,
        is_unregistered: true,
        signed_by: options.signed_by.clone(),
        keys: options.keys.clone(),
        threads: options.threads,
        io_method: options.io_method,
        ..RestoreOptions::default()
    };
    RestoreOptions {
        recovery,
        ..step.clone().restore(others)
    }
}

/// The first file of the restored database; restores name the others after it.
fn target(folder: &Path) -> PathBuf {
    folder.join("drill.db")
}

/// The files that restores have left in the folder.
fn restored(folder: &Path) -> Restored {
    let first = target(folder);
    let log = Some(windlass_vfs::log_path(&first)).filter(|log| log.exists());
    let further = (2..=u16::MAX)
        .map(|number| PathBuf::from(format!("{}.{number}", first.display())))
        .filter(|path| path.exists());
    // A SQLite file is one.
    let further = further.take(if log.is_some() { usize::MAX } else { 0 });
    Restored {
        data: std::iter::once(first.clone()).chain(further).collect(),
        log,
    }
}

/// What the files of a database take: all that its newest set names.
fn bytes_of(set: &SetConfiguration) -> u64 {
    let engine = (set.source_kind == SourceKind::Engine)
        .then(|| describe(&set.source_description).ok())
        .flatten();
    match engine {
        Some(description) => {
            let data = description.data_files().iter().map(|file| file.size);
            data.fold(description.log_file().size, u64::saturating_add)
        }
        None => (set.files.iter().map(|file| file.size_bytes)).fold(0, u64::saturating_add),
    }
}

fn drilled(step: &Step) -> DrilledSet {
    DrilledSet {
        set_type: step.set.set_type,
        started: step.set.started,
        finished: step.set.finished,
    }
}

/// The time of the state to which the sets lead.
fn state_of(plan: &Newest, last: &SetConfiguration) -> Option<String> {
    if let Some(unix_ms) = plan.stop.time() {
        return Some(local_of_unix_ms(unix_ms));
    }
    if let Some(mark) = plan.stop.mark_name() {
        return Some(mark);
    }
    let ended = ended_ms(last).filter(|unix_ms| *unix_ms > 0);
    ended
        .map(local_of_unix_ms)
        .or_else(|| last.started.map(|at| at.to_string()))
}

/// The entry in the ledger.
fn record_of(
    database: &str,
    began: Moment,
    options: &DrillOptions,
    outcome: &DrillOutcome,
    failure: Option<&Failure>,
) -> DrillRecord {
    let mut errors = failure.iter().flat_map(|failure| &failure.messages);
    let error = errors.find(|message| message.is_error());
    let depth = options.depth.name().to_owned();
    DrillRecord {
        database: database.to_owned(),
        began,
        restored_to: outcome.restored_to.clone(),
        backup_sets: outcome.sets_in_words(),
        database_bytes: outcome.database_bytes,
        restore: outcome.restore,
        check: outcome.check.map(|time| (depth, time)),
        query: options.query.clone(),
        answer: outcome.answer.clone(),
        // A failure always has an error; should it have none, it is no proof all the same.
        error_number: error.map_or(u32::from(failure.is_some()), |error| error.number),
        message: error.map(|error| error.text.clone()),
    }
}
