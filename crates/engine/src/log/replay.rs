//! What the log says from the redo start of its header on: pages to replay, the last commit, and the
//! differential map. Recovery and restores of a closed database read it in the same way.
//!
//! Invariant: the map is that of the checkpoint which the header names, with the extents of all
//! later commits.

use std::path::Path;

use super::Position;
use super::block::HEADER_BYTES;
use super::header::Header;
use super::reader::LogReader;
use super::record::{Record, Records};
use crate::differential::ExtentMap;
use crate::error::{EngineError, Result};
use crate::versions::Commit;
use windlass_base::{Guid, PageNumber};

/// The state that the log leads to.
#[derive(Debug)]
pub(crate) struct Replayed {
    pub(crate) map: ExtentMap,
    pub(crate) latest: Commit,
    /// Position and identity of the header's checkpoint, and of those after it.
    pub(crate) checkpoints: Vec<(Position, Guid)>,
    /// Numbers of data files and regions after the last change of them.
    pub(crate) layout: Option<(usize, usize)>,
    /// The latest time of a commit, in milliseconds since 1970, UTC.
    pub(crate) last_ms: u64,
}

/// Reads the complete groups before `end`. Calls `on_page` with each record of a page and the
/// position of its group, in order.
pub(crate) fn replay(
    mut reader: LogReader,
    header: &Header,
    path: &Path,
    end: Position,
    mut on_page: impl FnMut(PageNumber, Position, &Record<'_>) -> Result<()>,
) -> Result<Replayed> {
    let mut map = ExtentMap::default();
    let mut latest = Commit {
        sequence: header.sequence,
        page_count: header.page_count,
    };
    let mut checkpoints = Vec::new();
    let mut layout: Option<(usize, usize)> = None;
    let mut last_ms = header.last_ms;
    let mut group = header.redo;
    while let Some((block, bytes)) = reader.next()? {
        if block.position >= end {
            break;
        }
        if block.first {
            group = block.position;
        }
        let records = &bytes[HEADER_BYTES..HEADER_BYTES + block.payload as usize];
        for record in Records::new(records) {
            let record = record.ok_or_else(|| EngineError::Corrupt {
                path: path.to_owned(),
                what: format!("block {:?} has an invalid record", block.position),
            })?;
            match record {
                Record::PageImage { page, .. } | Record::PageRanges { page, .. } => {
                    on_page(page, group, &record)?;
                    if block.position > header.checkpoint {
                        map.set(page.extent());
                    }
                }
                Record::MapPart { first, bytes } => map.merge(first, bytes),
                Record::Commit {
                    page_count,
                    unix_ms,
                } => {
                    last_ms = last_ms.max(unix_ms);
                    latest = Commit {
                        sequence: block.sequence,
                        page_count,
                    };
                }
                Record::Checkpoint { identity, .. } => {
                    if group == header.checkpoint {
                        map = ExtentMap::default();
                    }
                    if group >= header.checkpoint {
                        checkpoints.push((group, identity));
                    }
                }
                Record::Mark { .. } => {}
                Record::Layout { files, regions } => layout = Some((files.into(), regions.into())),
                Record::DataFile(_) => layout = layout.map(|(files, regions)| (files + 1, regions)),
                Record::Region(_) => layout = layout.map(|(files, regions)| (files, regions + 1)),
            }
        }
    }
    Ok(Replayed {
        map,
        latest,
        checkpoints,
        layout,
        last_ms,
    })
}
