//! Reads the state of a closed database from its log file alone: its files, the differential map,
//! and what opening it would replay.
//!
//! It scans the log as recovery does, so it never misses a mark. Nothing is written.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use crate::differential::ExtentMap;
use crate::error::{EngineError, Result};
use crate::files::{FilePage, check_regions, extent_of, file_id, index_of, locate_extent};
use crate::log::block::HEADER_BYTES;
use crate::log::header::Header;
use crate::log::reader::{LogReader, find_end, load_sequences};
use crate::log::record::{Record, Records};
use crate::options::EXTENT_PAGES;
use crate::storage::StorageFile;

/// The state of a closed database, read from its log file.
pub(super) struct Told {
    pub(super) header: Header,
    map: ExtentMap,
    pub(super) page_count: u32,
    /// Pages that opening the database will replay.
    redone: ExtentMap,
}

/// Reads what recovery would find, without changing anything.
pub(super) fn read_log(log: &Arc<dyn StorageFile>, path: &Path) -> Result<Told> {
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
    let broken = |what: String| EngineError::Corrupt {
        path: path.to_owned(),
        what,
    };
    if end <= header.checkpoint {
        return Err(broken("the log ends before its last checkpoint".to_owned()));
    }
    let (mut map, mut redone) = (ExtentMap::default(), ExtentMap::default());
    let mut page_count = header.page_count;
    let mut group = header.redo;
    let mut reader = reader();
    while let Some((block, bytes)) = reader.next()? {
        if block.position >= end {
            break;
        }
        if block.first {
            group = block.position;
        }
        let records = &bytes[HEADER_BYTES..HEADER_BYTES + block.payload as usize];
        for record in Records::new(records) {
            let what = || {
                broken(format!(
                    "block {:?} holds what is no record",
                    block.position
                ))
            };
            match record.ok_or_else(what)? {
                Record::PageImage { page, .. } | Record::PageRanges { page, .. } if page > 0 => {
                    redone.set(extent_of(page));
                    if block.position > header.checkpoint {
                        map.set(extent_of(page));
                    }
                }
                Record::MapPart { first, bytes } => map.merge(first, bytes),
                Record::Commit {
                    page_count: pages, ..
                } => page_count = pages,
                Record::Checkpoint { .. } if group == header.checkpoint => {
                    map = ExtentMap::default();
                }
                _ => {}
            }
        }
    }
    Ok(Told {
        header,
        map,
        page_count,
        redone,
    })
}

/// The extents in use of each file. Fails if any of them may have changed.
pub(super) fn extents_of(told: &Told, file_ids: &[u32]) -> Result<BTreeMap<usize, Vec<u32>>> {
    let header = &told.header;
    let mut wanted = BTreeMap::new();
    for &file_id in file_ids {
        let index = index_of(file_id).filter(|&index| index < header.files.len());
        let index = index.ok_or_else(|| {
            EngineError::Invalid(format!(
                "file {file_id} of database '{}' is none of its data files",
                header.name
            ))
        })?;
        wanted.insert(index, Vec::new());
    }
    let mut changed = Vec::new();
    for extent in 0..told.page_count.div_ceil(EXTENT_PAGES) {
        let (index, at) = locate_extent(&header.regions, extent);
        let Some(extents) = wanted.get_mut(&index) else {
            continue;
        };
        extents.push(extent);
        if told.map.is_set(extent) || told.redone.is_set(extent) {
            changed.push(FilePage {
                file_id: file_id(index),
                page: at * u64::from(EXTENT_PAGES),
            });
        }
    }
    if changed.is_empty() {
        return Ok(wanted);
    }
    changed.sort_unstable();
    Err(EngineError::PagesChanged {
        database: header.name.clone(),
        pages: changed,
    })
}
