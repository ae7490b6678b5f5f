//! BACKUP LOG of a SQLite file: what its follower has spooled since the last one.
//!
//! The spool is cut at the newest commit: by the follower, if one runs, or else by one that runs for a moment and proves
//! that nothing was missed since the last one. If it cannot be established that this is the newest commit, the backup
//! fails; if the spool has no room until it is backed up, what is there is backed up, and the lack is an error. What cannot
//! be proven is a gap: a log backup ends before it, with an error as well. The log behind a gap is backed up when a full or differential backup was made there, without which it could
//! not be restored.

use windlass_base::message::table;
use windlass_base::{Message, time_text};
use windlass_catalog::EarlierBackups;
use windlass_pipeline::MediaRequest;
use windlass_source::sqlite::{CutLog, LogOf, Slice, SpooledLog, SqliteLogSnapshot};

use super::{BackupOperation, BackupOutcome, LogChoice};
use crate::{Failure, Session, Sink};

/// What keeps the log of a SQLite file.
const FOLLOW_ADVICE: &str = "The log of a SQLite file is kept while it is followed: by windlass serve, of databases in recovery \
     model FULL, or by windlass follow.";

/// No backup leads into the log that is kept.
fn no_base() -> Message {
    let advice = "A full or differential backup that is made while the log is kept begins it; one that is older than the follower \
         does not.";
    table::no_current_backup().with_advice(Some(advice))
}

impl BackupOperation<'_> {
    pub(super) fn run_sqlite_log(
        mut self,
        choice: &LogChoice,
        media: MediaRequest,
        sink: &mut dyn Sink,
    ) -> Result<BackupOutcome, Failure> {
        let given = self.options.spool.clone();
        let spool = given.or_else(|| self.session.instance.kept_log(&self.record));
        let not_kept = || {
            let message = table::not_in_simple_recovery("BACKUP LOG");
            Failure::from(message.with_advice(Some(FOLLOW_ADVICE)))
        };
        let spool = spool.ok_or_else(not_kept)?;
        if matches!(choice, LogChoice::NoRecovery | LogChoice::Standby(_)) {
            return Err(table::tail_of_sqlite_not_supported().into());
        }
        Session::note_other_file(&mut self.record, sink);
        let _in_use = self.session.use_beside(&self.record.name)?;
        let before = self.session.earlier(&self.record)?;
        let log = SpooledLog {
            path: self.record.path.clone(),
            spool,
        };
        let cancel = self.session.cancel_flag();
        let CutLog { slices, lack } = match (log.cut(before.last_lsn, &cancel), choice) {
            (Err(_), LogChoice::NoTruncate) => log.as_it_is()?,
            (cut, _) => cut?,
        };
        // A backup may have been finished since.
        let earlier = self.session.earlier(&self.record)?;
        let (slice, dropped) = self.choose(slices, &earlier)?;
        let ended_by = slice.ended_by.clone();
        let ended_us = slice.ended_us();
        let of = LogOf {
            name: self.record.name.clone(),
            logical_name: self.record.logical_name.clone(),
            family_guid: self.record.family_guid,
        };
        let truncates =
            *choice == LogChoice::Truncate && !self.settled.is_copy_only && !media.is_discarded();
        let snapshot = SqliteLogSnapshot::of(&log, slice, dropped, &of, truncates);
        let mut outcome = self.back_up_log(Box::new(snapshot), media, sink)?;
        if let BackupOutcome::Made(made) = &mut outcome {
            let name = &self.record.name;
            made.lacks = match (ended_by, lack) {
                (Some((from_us, to_us, reason)), _) => {
                    let (from, to) = (time_text(from_us), time_text(to_us));
                    Some(table::log_ends_at_gap(name, from, to, reason))
                }
                (None, Some(reason)) => {
                    Some(table::log_ends_early(name, time_text(ended_us), reason))
                }
                (None, None) => None,
            };
        }
        Ok(outcome)
    }

    /// The slice to back up, and those before it that have nothing, or nothing that could be restored.
    fn choose(
        &self,
        slices: Vec<Slice>,
        earlier: &EarlierBackups,
    ) -> Result<(Slice, Vec<Slice>), Failure> {
        // Without a directory there is no history.
        let is_known = self.session.instance.folder().is_some();
        let count = slices.len();
        let mut dropped = Vec::new();
        for (index, slice) in slices.into_iter().enumerate() {
            let is_last = index + 1 == count;
            // Between two gaps, only a backup that was made there leads into the slice.
            let is_between = !is_last && slice.gap().is_some();
            let last = is_between.then(|| slice.last_lsn());
            let is_based = !is_known || earlier.lead_between(slice.first_lsn(), last);
            if !is_last && (slice.commits == 0 || is_between && !is_based) {
                dropped.push(slice);
                continue;
            }
            if is_based {
                return Ok((slice, dropped));
            }
            let failure = Failure::from(no_base());
            return Err(match slice.gap() {
                None => failure,
                Some((from_us, to_us, reason)) => {
                    let (from, to) = (time_text(from_us), time_text(to_us));
                    failure.then(table::log_gap_open(&self.record.name, from, to, reason))
                }
            });
        }
        Err(no_base().into())
    }
}
