//! What a restore does differently for a SQLite file and for the files of the page engine.

use windlass_base::Guid;
use windlass_catalog::{DatabaseRecord, FileRecord, Origin};
use windlass_media::{SetConfiguration, SourceKind};
use windlass_pipeline::ReadKeys;
use windlass_source::RestoreTarget;

use super::engine::EngineFiles;
use super::reader::SetReader;
use super::sqlite::SqliteFile;
use crate::{Failure, Session};

/// A kind of database as the target of a restore.
pub(super) trait TargetKind {
    /// Refuses a set that this kind cannot be made of, and to replace a database of the other kind.
    fn admit(&self, reader: &SetReader<'_>, known: Option<&DatabaseRecord>) -> Result<(), Failure>;

    /// Whether a database is another one than that of the set.
    fn is_other(&self, known: &DatabaseRecord, set: &SetConfiguration) -> bool;

    /// Whether the files were left open for a differential.
    fn waits(&self, files: &[FileRecord]) -> Result<bool, Failure> {
        Ok(self.restored_set(files)?.is_some())
    }

    /// The set that was restored last, where the files were left open for a differential.
    fn restored_set(&self, files: &[FileRecord]) -> Result<Option<Guid>, Failure>;

    /// Lets go of what the session has open of the files.
    fn release(
        &self,
        session: &mut Session,
        name: &str,
        files: &[FileRecord],
    ) -> Result<(), Failure>;

    /// Takes the places of the files for this restore alone. Nothing changes under their names before it ends.
    fn begin(&self, wanted: &Wanted<'_>) -> Result<Box<dyn RestoreTarget>, Failure>;

    /// Whose a file is that was there before the restore replaced it.
    fn origin_of_replaced(&self) -> Origin;
}

/// What is to be restored, and where.
pub(super) struct Wanted<'a> {
    pub(super) session: &'a Session,
    pub(super) reader: &'a SetReader<'a>,
    /// The database that is replaced.
    pub(super) known: Option<&'a DatabaseRecord>,
    pub(super) files: &'a [FileRecord],
    /// The keys of the set.
    pub(super) keys: &'a ReadKeys,
}

/// The kind of the database that a set was made from.
pub(super) fn kind_of(set: &SetConfiguration) -> &'static dyn TargetKind {
    match set.source_kind {
        SourceKind::Engine => &EngineFiles,
        SourceKind::Sqlite | SourceKind::Postgres => &SqliteFile,
    }
}

/// The first data file.
pub(super) fn first(files: &[FileRecord]) -> Option<&FileRecord> {
    files.iter().find(|file| !file.is_log)
}

/// The log; none of a SQLite file.
pub(super) fn log(files: &[FileRecord]) -> Option<&FileRecord> {
    files.iter().find(|file| file.is_log)
}
