//! What a restore refuses before anything is changed.

use std::path::{Path, PathBuf};

use windlass_base::message::table;
use windlass_catalog::{DatabaseRecord, DatabaseState, FileRecord, Origin};
use windlass_media::SourceKind;
use windlass_source::RecoveryModel;
use windlass_source::engine::StopAt;
use windlass_source::ownership::{self, Left, Owner};

use super::RestoreOperation;
use super::places::Placed;
use super::placing::all;
use super::target::{first, is_among};
use crate::Failure;
use crate::message_of::unreadable_file;

impl RestoreOperation<'_> {
    /// A full or differential backup is restored whole: it must not end after the point to stop at.
    pub(super) fn check_stop(&self) -> Result<(), Failure> {
        let (reader, set) = (&self.reader, &self.reader.opened.set);
        if reader.is_log() || reader.options.stop == StopAt::End {
            return Ok(());
        }
        if set.source_kind != SourceKind::Engine {
            // Its LSNs are times.
            return match (set.wal_position, &reader.options.stop) {
                (Some(_), StopAt::Time(unix_ms))
                    if *unix_ms / 1000 >= u64::from(set.checkpoint_lsn.vlf) =>
                {
                    Ok(())
                }
                (Some(_), StopAt::Time(_)) => Err(table::stop_too_early().into()),
                _ => Err(table::stop_at_in_simple_recovery("STOPAT").into()),
            };
        }
        let description = windlass_source::engine::describe(&set.source_description)?;
        if description.recovery_model() == RecoveryModel::Simple {
            return Err(table::stop_at_in_simple_recovery("STOPAT").into());
        }
        let is_early = match &reader.options.stop {
            // Whether a mark is behind it, no backup of data says.
            StopAt::End | StopAt::Mark(_) | StopAt::BeforeMark(_) => false,
            StopAt::Time(unix_ms) => *unix_ms < description.ended_ms(),
            StopAt::Lsn(lsn) | StopAt::BeforeLsn(lsn) => *lsn < description.last_lsn(),
        };
        match is_early {
            true => Err(table::stop_too_early().into()),
            false => Ok(()),
        }
    }

    /// Why a file that has the name of one of the replaced database is another's.
    fn others(&self, own: &[FileRecord]) -> Result<Vec<Left>, Failure> {
        let is_whole = |known: &&DatabaseRecord| {
            known.origin == Origin::Restored && known.state == DatabaseState::Online
        };
        let mut others = self.kind.others(self.known.as_ref(), own);
        let own = match self.known.as_ref().filter(is_whole) {
            Some(_) if !self.reader.continues() => own,
            _ => return Ok(others),
        };
        for FileRecord { path, .. } in own {
            let found = ownership::owner(path, self.made_for)
                .map_err(|error| unreadable_file(path, &error))?;
            if let Owner::Other { why } = found {
                let path = path.clone();
                others.push(Left { path, why });
            }
        }
        Ok(others)
    }

    /// Applies SQL Server's rules for overwriting.
    pub(super) fn check_targets(
        &self,
        files: &[Placed],
        own: &[FileRecord],
    ) -> Result<(), Failure> {
        let reader = &self.reader;
        let others = self.others(own)?;
        let other = |path: &Path| others.iter().find(|other| other.path == path);
        let own = own.iter().map(|file| file.path.clone());
        let mut own: Vec<PathBuf> = own.filter(|path| other(path).is_none()).collect();
        if reader.continues() {
            // The full backup was allowed to go there; a log may add files.
            let records: Vec<FileRecord> = files.iter().map(|file| file.record.clone()).collect();
            let count = match reader.is_log() {
                true => self.kind.data_files_in_sequence(&records),
                false => usize::MAX,
            };
            let there = records.iter().filter(|file| is_among(file, count));
            own.extend(there.map(|file| file.path.clone()));
        } else if let Some(known) = &self.known
            && !reader.options.replaces
        {
            if self.kind.is_other(known, &reader.opened.set) {
                return Err(table::other_database(reader.name).with_state(4).into());
            }
            if reader.options.stop == StopAt::End
                && self.kind.has_unsaved_tail(self.session, reader, known)
            {
                let is_file = reader.opened.set.source_kind == SourceKind::Sqlite;
                let advice = match is_file {
                    true => {
                        "Of a SQLite file: BACKUP LOG without NORECOVERY. On the command line, WITH REPLACE is --replace."
                    }
                    false => "On the command line, WITH REPLACE is --replace.",
                };
                let message = table::tail_not_backed_up(reader.name);
                return Err(message.with_advice(Some(advice)).into());
            }
        }
        let together: Vec<PathBuf> = files.iter().map(|file| file.record.path.clone()).collect();
        let checks = files.iter().map(|file| {
            let checked = self.check_place(file, &own, &together);
            checked.map_err(|failure| match other(&file.record.path) {
                Some(Left { path, why }) => {
                    failure.then(table::file_is_anothers(path.display(), reader.name, why))
                }
                None => failure,
            })
        });
        all(checks)?;
        match reader.continues() {
            true => self.check_sequence(files),
            false => Ok(()),
        }
    }

    /// Another database's restore may wait for its end at the targets. A differential continues it.
    pub(super) fn check_waiting(&self, files: &[FileRecord]) -> Result<(), Failure> {
        let reader = &self.reader;
        if reader.continues() || reader.options.replaces {
            return Ok(());
        }
        let waiting = self.kind.waits_for(files);
        let own = self.keeps_mark().then_some(self.made_for);
        if waiting.is_none() || waiting == own {
            return Ok(());
        }
        let target = first(files).map_or_else(PathBuf::new, |file| file.path.clone());
        let why = ownership::WAITS_FOR_OTHER;
        Err(table::file_is_anothers(target.display(), reader.name, why).into())
    }

    /// A differential or log backup continues a sequence of restores that is still open.
    fn check_sequence(&self, files: &[Placed]) -> Result<(), Failure> {
        // In a rehearsal the restore before it changed nothing either.
        if self.session.is_rehearsal() {
            return Ok(());
        }
        let files: Vec<FileRecord> = files.iter().map(|file| file.record.clone()).collect();
        match (self.kind.waits(&files)?, &self.known) {
            (true, _) => Ok(()),
            (false, None) if self.reader.options.target.is_none() => {
                Err(table::restore_cannot_create(self.reader.name).into())
            }
            (false, _) => Err(table::not_ready_to_rollforward().into()),
        }
    }
}
