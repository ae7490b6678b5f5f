//! What differs between the restore of a SQLite file and of a page engine database.

use std::sync::{Arc, OnceLock};

use windlass_base::{FileId, Guid};
use windlass_catalog::{DatabaseRecord, FileRecord, Origin};
use windlass_media::{SetConfiguration, SourceKind};
use windlass_pipeline::ReadKeys;
use windlass_source::RestoreTarget;
use windlass_source::engine::Rolled;
use windlass_source::ownership::Left;
use windlass_source::sqlite::Existing;

use super::engine::EngineFiles;
use super::reader::SetReader;
use super::sqlite::SqliteFile;
use crate::{Failure, Session};

/// A kind of database as the target of a restore.
pub(super) trait TargetKind {
    /// Refuses a set of another kind, and the replacement of a database of another kind.
    fn admit(&self, reader: &SetReader<'_>, known: Option<&DatabaseRecord>) -> Result<(), Failure>;

    /// Whether a database is not the one the set was made from.
    fn is_other(&self, known: &DatabaseRecord, set: &SetConfiguration) -> bool;

    /// Files with the names of the database to replace that belong to another one.
    fn others(&self, _known: Option<&DatabaseRecord>, _own: &[FileRecord]) -> Vec<Left> {
        Vec::new()
    }

    /// Whether the files wait for a differential.
    fn waits(&self, files: &[FileRecord]) -> Result<bool, Failure> {
        Ok(self.restored_set(files)?.is_some())
    }

    /// The set that was restored last, where the files were left open for a differential.
    fn restored_set(&self, files: &[FileRecord]) -> Result<Option<Guid>, Failure>;

    /// The registered database for which a restore to these files waits.
    fn waits_for(&self, files: &[FileRecord]) -> Option<Guid>;

    /// Closes the session's connections to the files.
    fn release(
        &self,
        session: &mut Session,
        name: Option<&str>,
        files: &[FileRecord],
    ) -> Result<(), Failure>;

    /// Reserves the targets for this restore. The files with their final names change only when it ends.
    fn begin(&self, wanted: &Wanted<'_>) -> Result<Begun, Failure>;

    /// The number of data files in the sequence of restores that is open at the files.
    fn data_files_in_sequence(&self, _files: &[FileRecord]) -> usize {
        1
    }

    /// Whether the database to replace has commits that no backup has, which it keeps for its log backups.
    fn has_unsaved_tail(
        &self,
        session: &Session,
        reader: &SetReader<'_>,
        known: &DatabaseRecord,
    ) -> bool;

    /// The origin of a file that existed before the restore replaced it.
    fn origin_of_replaced(&self) -> Origin;
}

/// A restore that has begun.
pub(super) struct Begun {
    pub(super) target: Box<dyn RestoreTarget>,
    /// Of a log backup: what it has left, once it has finished.
    pub(super) rolled: Option<Arc<OnceLock<Rolled>>>,
}

impl Begun {
    pub(super) fn of(target: Box<dyn RestoreTarget>) -> Self {
        let rolled = None;
        Self { target, rolled }
    }
}

/// The restore to begin.
pub(super) struct Wanted<'a> {
    pub(super) session: &'a Session,
    pub(super) reader: &'a SetReader<'a>,
    /// The database to replace.
    pub(super) known: Option<&'a DatabaseRecord>,
    pub(super) files: &'a [FileRecord],
    pub(super) keys: &'a ReadKeys,
    pub(super) made_for: Option<Guid>,
}

impl Wanted<'_> {
    /// What to do with files that are at the targets.
    pub(super) fn existing(&self) -> Existing {
        match self.reader.options.replaces {
            true => Existing::Replace,
            false if self.known.is_some() || self.reader.continues() => Existing::Approved,
            false => Existing::Refuse,
        }
    }
}

/// The kind of database that a set was made from.
pub(super) fn kind_of(set: &SetConfiguration) -> &'static dyn TargetKind {
    match set.source_kind {
        SourceKind::Engine => &EngineFiles,
        // Sets of SQL Server are refused or restored before.
        SourceKind::Sqlite
        | SourceKind::Postgres
        | SourceKind::SqlServer
        | SourceKind::SqlServerFiles => &SqliteFile,
    }
}

/// Whether it is the log, or one of the first `count` data files.
pub(super) fn is_among(file: &FileRecord, count: usize) -> bool {
    let number = u16::try_from(file.file_id).map(FileId);
    let index = number.ok().and_then(FileId::data_index);
    file.is_log || index.is_some_and(|index| index < count)
}

/// The first data file.
pub(super) fn first(files: &[FileRecord]) -> Option<&FileRecord> {
    files.iter().find(|file| !file.is_log)
}

/// The log; `None` for a SQLite file.
pub(super) fn log(files: &[FileRecord]) -> Option<&FileRecord> {
    files.iter().find(|file| file.is_log)
}
