//! Log backups in random histories: every backup that the LSNs say a log continues is rolled forward with that log and
//! those behind it, to states that were committed, with none missing in between.

use super::*;
use crate::engine::StopAt;
use crate::sqlite::log_description::LogDescription;
use crate::sqlite::log_snapshot::{LOG_FILE_ID, SpooledLog};
use crate::sqlite::restore::{LogRestoreRequest, SqliteLogTarget, restoring};
use crate::sqlite::spool::Slice;

/// A log backup in memory.
pub(super) struct LogSet {
    description: LogDescription,
    bytes: Vec<u8>,
}

impl LogSet {
    fn of(slice: &Slice) -> Self {
        let mut bytes = vec![0; slice.bytes as usize + 1];
        let mut reader = slice.reader();
        let count = reader.read(&mut bytes).unwrap();
        assert_eq!(count as u64, slice.bytes);
        bytes.truncate(count);
        Self {
            description: LogDescription::of(slice),
            bytes,
        }
    }

    fn has(&self, lsn: Lsn) -> bool {
        (self.description.first_lsn()..=self.description.last_lsn()).contains(&lsn)
    }
}

impl History {
    /// The LSN of the newest backup, as an instance knows it.
    pub(super) fn last_lsn(&self) -> Lsn {
        let logs = self
            .logs
            .iter()
            .flatten()
            .map(|log| log.description.last_lsn());
        let backups = self.backups.iter().map(|backup| backup.lsn);
        logs.chain(backups).max().unwrap_or(Lsn::ZERO)
    }

    pub(super) fn back_up_log(&mut self) {
        let log = SpooledLog {
            path: self.path(),
            spool: self.options().folder,
        };
        let after = self.last_lsn();
        let slices = match &mut self.follower {
            Some(follower) => {
                let cut = follower.cut(spool::time_behind(after)).unwrap();
                if cut.lack.is_some_and(|lack| !lack.is_full) {
                    return;
                }
                spool::slices(&log.spool, cut.before).unwrap()
            }
            None => match log.cut(after, &AtomicBool::new(false)) {
                Ok(log) => log.slices,
                Err(Error::Spool(
                    SpoolError::NotWal { .. }
                    | SpoolError::Empty { .. }
                    | SpoolError::NotReached { .. },
                )) => return,
                Err(error) => panic!("{error}"),
            },
        };
        let count = slices.len();
        let mut is_removing = true;
        for (index, slice) in slices.into_iter().enumerate() {
            let is_kept = slice.commits > 0 || index + 1 == count;
            if is_kept {
                self.logs.as_mut().unwrap().push(LogSet::of(&slice));
            }
            // A crash may keep the end from being removed: the next log backup has it once more.
            is_removing &= self.random.below(8) > 0;
            if is_removing || self.random.below(2) == 0 {
                spool::keep_changed(&log.spool, &[&slice]).unwrap();
            }
            if is_removing {
                slice.remove().unwrap();
            }
            if is_kept {
                break;
            }
        }
    }

    /// Rolls each backup forward with the logs that continue it.
    fn check_logs(&mut self) -> u64 {
        if let Some(mut follower) = self.follower.take() {
            follower.finish().unwrap();
        }
        if !self.options().folder.exists() {
            return 0;
        }
        for _ in 0..self.gaps + 40 {
            self.back_up_log();
        }
        let logs = self.logs.take().unwrap();
        let mut restored = 0;
        for backup in std::mem::take(&mut self.backups) {
            let mut possible: Option<Vec<i64>> = None;
            for (number, digest) in self.roll(&backup, &logs) {
                restored += 1;
                let commits = self
                    .states
                    .get(&digest)
                    .expect("a state that was committed");
                let offsets = commits.iter().map(|commit| *commit as i64 - number as i64);
                let offsets: Vec<i64> = match possible {
                    None => offsets.collect(),
                    Some(before) => offsets.filter(|offset| before.contains(offset)).collect(),
                };
                assert!(!offsets.is_empty(), "a commit is missing before {number}");
                possible = Some(offsets);
            }
        }
        restored
    }

    /// The states after each log that continues a backup: number of the last commit in the spool, digest.
    fn roll(&self, backup: &Backup, logs: &[LogSet]) -> Vec<(u64, u64)> {
        let target = self.folder.path().join("rolled.db");
        let mut reached = Vec::new();
        let Some(first) = logs.iter().rposition(|log| log.has(backup.lsn)) else {
            return reached;
        };
        let request = RestoreRequest {
            target: target.clone(),
            size_bytes: backup.image.len() as u64,
            checkpoint_lsn: backup.lsn,
            wal_position: backup.position,
            ..RestoreRequest::default()
        };
        let full = Box::new(SqliteTarget::begin(&request).unwrap());
        full.write(1, 0, &backup.image).unwrap();
        full.finish(Recovery::NoRecovery).unwrap();
        let mut end = logs[first].description.first_lsn();
        for log in &logs[first..] {
            if log.description.first_lsn() > end {
                break;
            }
            if log.description.last_lsn() < end {
                continue;
            }
            Self::apply(&target, log);
            end = log.description.last_lsn();
            let staged = crate::sqlite::beside(&target, ".windlass-restoring");
            let copy = self.folder.path().join("looked-at.db");
            std::fs::copy(staged, &copy).unwrap();
            let connection = Connection::open(&copy).unwrap();
            let whole: String = connection
                .query_row("PRAGMA integrity_check", [], |row| row.get(0))
                .unwrap();
            assert_eq!(whole, "ok");
            reached.push((log.description.end.commit_number, digest(&connection)));
        }
        assert!(restoring(&target).unwrap().is_some());
        reached
    }

    fn apply(target: &Path, log: &LogSet) {
        let rolling = SqliteLogTarget::begin(LogRestoreRequest {
            target: target.to_owned(),
            description: log.description.store(),
            family_guid: RestoreRequest::default().family_guid,
            set_guid: RestoreRequest::default().set_guid,
            checkpoint_lsn: log.description.last_lsn(),
            stop: StopAt::End,
            existing: Existing::Refuse,
            protection: RestoreRequest::default().protection,
            allow_less_protected: false,
            made_for: None,
            cancel: Arc::default(),
        });
        let rolling = Box::new(rolling.unwrap());
        rolling.write(LOG_FILE_ID, 0, &log.bytes).unwrap();
        rolling.finish(Recovery::NoRecovery).unwrap();
    }
}

/// A history; how many states were restored.
fn run(seed: u64) -> u64 {
    let mut history = History::new(seed);
    history.logs = Some(Vec::new());
    for _ in 0..40 + history.random.below(120) {
        match history.random.below(3) {
            0 => history.follower_step(),
            _ => history.application_step(),
        }
    }
    history.check_logs()
}

#[test]
fn random_histories_with_log_backups_restore_to_states_that_were_committed() {
    let (count, seeds) = seeds(40);
    let mut restored = 0;
    for seed in seeds {
        restored += run(seed);
    }
    println!("{restored} states restored");
    assert!(count.is_some_and(|count| count < 50) || restored > 50);
}

#[test]
fn a_log_continues_one_that_ends_where_a_new_wal_begins_without_a_commit() {
    let mut history = History::new(1);
    history.logs = Some(Vec::new());
    let mut follower = Follower::begin(&history.path(), &history.options()).unwrap();
    history.commit();
    follower.step(true).unwrap();
    history.back_up();
    for _ in 0..40 {
        history.commit();
    }
    follower.step(true).unwrap();
    follower.reading.as_mut().unwrap().holder.let_go().unwrap();
    history.pragma("wal_checkpoint(RESTART)");
    // Frames of a transaction that is rolled back begin the new write-ahead log.
    let application = history.application.as_ref().unwrap();
    application
        .execute_batch(
            "BEGIN IMMEDIATE; WITH RECURSIVE n(a) AS (SELECT 5000 UNION ALL SELECT a + 1 FROM n WHERE a < 5040)
             INSERT INTO t SELECT a, randomblob(4000) FROM n;
             ROLLBACK",
        )
        .unwrap();
    follower.step(true).unwrap();
    history.follower = Some(follower);
    history.back_up_log();
    history.commit();
    history.follower.as_mut().unwrap().step(true).unwrap();
    history.back_up_log();
    let logs = history.logs.take().unwrap();
    let end = &logs[0].description.end;
    assert!(end.position.frame == 0 && end.commit_number > 0, "{end:?}");
    let backup = history.backups.remove(0);
    let reached = history.roll(&backup, &logs);
    let (_, digest) = reached.last().unwrap();
    assert_eq!(history.states[digest].last(), Some(&history.commits));
}

#[test]
fn a_log_continues_a_backup_of_a_wal_that_was_begun_again_without_a_commit() {
    // The backup's generation of the log has no frame, and the follower never saw it.
    assert!(run(427_384_419_935) > 0);
    // Nor did it see that; the spool has the commit before, at the end of a gap.
    assert!(run(7_713_791_121_715) > 0);
}
