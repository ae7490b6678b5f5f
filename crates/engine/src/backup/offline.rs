//! Reads the state of a closed database from its log file alone: its files, the differential map,
//! and what opening it would replay.
//!
//! It scans the log as recovery does, so it never misses a mark. Nothing is written.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::database::FileDescription;
use crate::differential::ExtentMap;
use crate::error::{EngineError, Result};
use crate::files::{check_regions, locate_extent};
use crate::log::Position;
use crate::log::header::Header;
use crate::log::reader::{LogReader, find_end, load_sequences};
use crate::log::replay::{Replayed, replay};
use crate::options::RecoveryModel;
use crate::storage::{FileSystem, OpenMode, StorageFile};
use windlass_base::{ExtentNumber, FileId, Guid};

/// What a log file says of its database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogIdentity {
    pub guid: Guid,
    pub name: String,
    pub data_paths: Vec<PathBuf>,
    /// As they were when the header was written.
    pub files: Vec<FileDescription>,
    /// `None` for automatic checkpoints.
    pub target_recovery_time: Option<Duration>,
    pub recovery_model: RecoveryModel,
    /// Whether a chain of log backups has begun.
    pub has_log_chain: bool,
    pub recovery_fork: Guid,
}

impl LogIdentity {
    /// Reads it from the log's header; `None` if that is damaged, or there is none.
    ///
    /// # Errors
    /// Those of the operating system.
    pub fn of(files: &dyn FileSystem, log: &Path) -> Result<Option<Self>> {
        let opened = files.open(log, OpenMode::Existing);
        let file = opened.map_err(|error| EngineError::io("open", log, error))?;
        match Header::load(file.as_ref(), log) {
            Ok(header) => Ok(Some(Self {
                guid: header.guid,
                recovery_model: header.recovery_model,
                has_log_chain: header.tail.is_some(),
                recovery_fork: header.recovery_fork,
                name: header.name,
                data_paths: header.files.iter().map(|file| file.path.clone()).collect(),
                files: FileDescription::list(header.files, header.log),
                target_recovery_time: (header.target_recovery_ms > 0)
                    .then(|| Duration::from_millis(header.target_recovery_ms)),
            })),
            Err(EngineError::Corrupt { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// The state of a closed database, read from its log file.
pub(crate) struct ClosedDatabase {
    pub(super) header: Header,
    map: ExtentMap,
    pub(super) page_count: u32,
    /// The end of the log.
    pub(super) end: Position,
    /// Pages that opening the database will replay.
    redone: ExtentMap,
    /// Numbers of data files and regions, if the log changes them after what the header says.
    layout: Option<(usize, usize)>,
}

impl ClosedDatabase {
    /// Fails if the log has changed the data files after what the header says.
    pub(super) fn check_layout(&self) -> Result<()> {
        let header = &self.header;
        let known = (header.files.len(), header.regions.len());
        match self.layout.is_none_or(|layout| layout == known) {
            true => Ok(()),
            false => Err(EngineError::Invalid(format!(
                "a file was being added to database '{}' when it stopped: restore the whole database",
                header.name
            ))),
        }
    }

    /// Whether the data files have everything: opening the database replays nothing.
    pub(crate) fn is_replayed(&self) -> bool {
        self.redone.count() == 0
    }

    /// Whether nothing has changed since the last full backup or restore.
    pub(crate) fn is_unchanged(&self) -> bool {
        self.map.count() == 0
    }
}

/// Reads what recovery would find, without changing anything.
pub(crate) fn read_log(log: &Arc<dyn StorageFile>, path: &Path) -> Result<ClosedDatabase> {
    let mut header = Header::load(log.as_ref(), path)?;
    load_sequences(log.as_ref(), path, header.guid, &mut header.vlfs)?;
    check_regions(&header.name, &header.regions, header.files.len())?;
    let reader = || {
        LogReader::new(
            Arc::clone(log),
            path,
            header.guid,
            &header.vlfs,
            header.redo,
        )
    };
    let end = find_end(reader(), header.redo)?.position;
    if end <= header.checkpoint {
        return Err(EngineError::Corrupt {
            path: path.to_owned(),
            what: "the log ends before its last checkpoint".to_owned(),
        });
    }
    let mut redone = ExtentMap::default();
    let Replayed {
        map,
        latest,
        layout,
        ..
    } = replay(reader(), &header, path, end, |page, _, _| {
        redone.set(page.extent());
        Ok(())
    })?;
    Ok(ClosedDatabase {
        header,
        map,
        page_count: latest.page_count,
        end,
        redone,
        layout,
    })
}

/// The extents in use of each file, by its index.
pub(super) fn extents_in(
    closed: &ClosedDatabase,
    file_ids: &[FileId],
) -> Result<BTreeMap<usize, Vec<ExtentNumber>>> {
    let header = &closed.header;
    let mut wanted = BTreeMap::new();
    for &file_id in file_ids {
        let index = file_id
            .data_index()
            .filter(|&index| index < header.files.len());
        let index = index.ok_or_else(|| {
            EngineError::Invalid(format!(
                "file {file_id} of database '{}' is none of its data files",
                header.name
            ))
        })?;
        wanted.insert(index, Vec::new());
    }
    for extent in ExtentNumber::all(closed.page_count) {
        let (index, _) = locate_extent(&header.regions, extent);
        if let Some(extents) = wanted.get_mut(&index) {
            extents.push(extent);
        }
    }
    Ok(wanted)
}

/// Fails if any of the extents may have changed since the full backup.
pub(super) fn refuse_changes(
    closed: &ClosedDatabase,
    wanted: &BTreeMap<usize, Vec<ExtentNumber>>,
) -> Result<()> {
    let header = &closed.header;
    let extents = wanted.values().flatten();
    let changed =
        extents.filter(|&&extent| closed.map.is_set(extent) || closed.redone.is_set(extent));
    let mut pages: Vec<_> = changed
        .map(|&extent| {
            let (index, at) = locate_extent(&header.regions, extent);
            at.page(index, 0)
        })
        .collect();
    if pages.is_empty() {
        return Ok(());
    }
    pages.sort_unstable();
    Err(EngineError::PagesChanged {
        database: header.name.clone(),
        pages,
    })
}
