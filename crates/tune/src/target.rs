//! The target of a measured restore: files in a folder that is removed with its content.

use std::path::Path;

use windlass_pipeline::SetEntry;
use windlass_source::engine::{EngineRestoreRequest, EngineTarget, PlacedFile};
use windlass_source::sqlite::{Existing, RestoreRequest, SqliteTarget};
use windlass_source::{RestoreTarget, SourceDatabase};

use crate::Error;

/// Starts the restore of a full backup of `source` into `folder`, naming each file by its number.
pub(crate) fn begin(
    source: &SourceDatabase,
    entry: &SetEntry,
    folder: &Path,
) -> Result<Box<dyn RestoreTarget>, Error> {
    let set = &entry.configuration;
    let path = |file_id: u16| folder.join(format!("restored-{file_id}"));
    Ok(match source {
        SourceDatabase::Sqlite { .. } => {
            let file = set.files.first();
            Box::new(SqliteTarget::begin(&RestoreRequest {
                target: path(file.map_or(1, |file| file.file_id)),
                existing: Existing::Refuse,
                database_name: set.database.clone(),
                family_guid: set.family_guid,
                set_guid: set.set_guid,
                checkpoint_lsn: set.checkpoint_lsn,
                size_bytes: file.map_or(0, |file| file.size_bytes),
                as_is: true,
                ..RestoreRequest::default()
            })?)
        }
        SourceDatabase::Engine { .. } => {
            let files = set.files.iter();
            let log = set.files.iter().find(|file| file.is_log);
            Box::new(EngineTarget::begin(&EngineRestoreRequest {
                description: set.source_description.clone(),
                files: files
                    .map(|file| PlacedFile {
                        file_id: file.file_id,
                        path: path(file.file_id),
                        mode: None,
                    })
                    .collect(),
                database_name: set.database.clone(),
                log_bytes: log.map_or(0, |log| log.size_bytes),
                set_guid: set.set_guid,
                checkpoint_lsn: set.checkpoint_lsn,
                as_is: true,
                ..EngineRestoreRequest::default()
            })?)
        }
    })
}
