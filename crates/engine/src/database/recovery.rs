//! Opens a database: finds the end of the log, replays it from the redo start, and continues.
//!
//! Invariants:
//! - Groups without their last block are not replayed. Nothing after the last complete group ever
//!   counts: its virtual log files are wiped and new blocks have a higher epoch.
//! - Everything that recovery found is written again and synced before anything builds on it. That
//!   it can be read proves nothing: after a failed sync, the operating system shows data that the
//!   disk has lost, and a second sync does nothing.
//! - Recovery can itself be interrupted at any point and started again: it writes only committed
//!   pages.

use std::io::ErrorKind;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use super::read::Checksum;
use super::{Database, create, foreign, open_files};
use crate::differential::DifferentialMaps;
use crate::error::{EngineError, OtherDatabase, Result};
use crate::files::{DataFile, DataFiles};
use crate::instance::Shared;
use crate::log::Position;
use crate::log::header::Header;
use crate::log::reader::{LogEnd, LogReader, find_end, load_sequences};
use crate::log::record::{Group, Record};
use crate::log::replay::{Replayed, replay};
use crate::log::writer::{AppendError, Resume};
use crate::options::OpenDatabase;
use crate::pool::{Change, DatabaseNumber};
use crate::stamps;
use crate::storage::{OpenMode, SECTOR_BYTES, StorageFile};
use crate::versions::Versions;
use windlass_base::page::{ExtentNumber, PAGE_BYTES, PageNumber};

/// Minimum log bytes replayed for a useful measurement.
const MEASURED_BYTES: u64 = 1 << 20;

/// Bytes rewritten at a time.
const REWRITE_BYTES: usize = 1 << 20;

impl Database {
    pub(crate) fn open(
        shared: Arc<Shared>,
        number: DatabaseNumber,
        request: &OpenDatabase,
    ) -> Result<Self> {
        let start = Instant::now();
        let path = &request.log_path;
        let fail = |error| EngineError::io("open", path, error);
        let files = shared.files.as_ref();
        let log_file = match files.open(path, OpenMode::Existing) {
            Err(error) if error.kind() == ErrorKind::NotFound && create::complete(files, path)? => {
                files.open(path, OpenMode::Existing)
            }
            opened => opened,
        }
        .map_err(fail)?;
        log_file
            .lock_exclusive()
            .map_err(|error| EngineError::lock(path, error))?;
        let mut header = Header::load(log_file.as_ref(), path)?;
        check_identity(request, &header)?;
        let slot = header.slot();
        header.log.path.clone_from(path);
        load_sequences(log_file.as_ref(), path, header.guid, &mut header.vlfs)?;
        let data = open_files(
            shared.files.as_ref(),
            &request.name,
            &header,
            &request.data_paths,
        )?;
        data.lock()?;
        if header.clean && data.single().is_some() {
            foreign::refuse_leftovers(shared.files.as_ref(), &data.path(0))?;
        }
        let from = |header: &Header| {
            let file = Arc::clone(&log_file);
            LogReader::new(file, path, header.guid, &header.vlfs, header.redo)
        };
        let end = find_end(from(&header), header.redo)?;
        if end.position <= header.checkpoint {
            return Err(EngineError::Corrupt {
                path: path.clone(),
                what: format!(
                    "the log ends at {:?}, before its last checkpoint at {:?}",
                    end.position, header.checkpoint
                ),
            });
        }
        stamps::check(&header, &data, from(&header), end.position)?;
        rewrite(log_file.as_ref(), slot)
            .and_then(|()| rewrite_log(log_file.as_ref(), &header, end))
            .and_then(|()| settle(log_file.as_ref(), &mut header, end))
            .map_err(|error| EngineError::io("write", path, error))?;
        rewrite_ends(&data)?;
        let page_count = reopened_pages(&header, &data)?;
        let current = Header {
            name: request.name.clone(),
            clean: false,
            ..header.clone()
        };
        let resume = Resume {
            position: end.position,
            previous: end.previous,
            epoch: header.epoch,
            redo: header.redo,
            tail: header.tail,
        };
        let mut database = Self::assemble(shared, number, current, data, log_file, resume);
        database.is_read_only = request.is_read_only;
        database.recover(&header, page_count, start)?;
        Ok(database)
    }

    fn recover(&mut self, header: &Header, page_count: u32, start: Instant) -> Result<()> {
        let bytes = self.log.distance(header.redo);
        let changed = header.clean && was_changed(header, self)?;
        let header = Header {
            page_count,
            ..header.clone()
        };
        let (reader, end) = (self.log.reader(header.redo), self.log.end());
        let path = &header.log.path;
        let replayed = replay(reader, &header, path, end, |page, group, record| {
            self.redo(page, group, record)
        })?;
        let Replayed {
            map,
            latest,
            layout,
            last_ms,
            ..
        } = replayed;
        self.header.note_time(last_ms);
        self.maps = DifferentialMaps::new(map);
        self.data.ensure(latest.page_count)?;
        if changed {
            // Another program wrote to the file while it was closed, which no map records.
            self.maps.mark(ExtentNumber::all(latest.page_count));
            foreign::take_over(&self.data, latest.page_count)?;
            self.break_chain();
        }
        self.versions = Versions::new(latest);
        self.commits.are_durable(latest.sequence);
        self.note_checksums(&self.writer_token()?, latest.page_count)?;
        let elapsed = start.elapsed();
        let figures = &self.figures;
        figures
            .recovery_us
            .store(elapsed.as_micros() as u64, Ordering::Relaxed);
        if bytes > MEASURED_BYTES && !elapsed.is_zero() {
            let rate = bytes as f64 / elapsed.as_secs_f64();
            self.checkpointer.measured_redo_rate(rate as u64);
        }
        self.correct_layout(layout, latest.sequence)?;
        // The first header of this epoch: from here on, the database no longer counts as cleanly
        // closed.
        match self.advance_redo(&self.checkpointer.lock()) {
            // The log waits for its backup, for which the database must be open.
            Err(EngineError::LogFull { .. }) if self.log.tail().is_some() => {
                self.header
                    .write(&self.log, &self.data, |header| header.clean = false)
            }
            advanced => advanced,
        }
    }

    /// Logs that a data file is not part of the database, if a crash prevented the header that adds it.
    fn correct_layout(&self, logged: Option<(usize, usize)>, sequence: u64) -> Result<()> {
        let layout = (self.data.specs().len(), self.data.regions().len());
        if logged.is_none_or(|logged| logged == layout) {
            return Ok(());
        }
        let mut group = Group::default();
        group.layout(layout.0, layout.1, None);
        match self.log.append(&group, sequence, 0) {
            Ok(appended) => self.log.flush_to(appended.end),
            Err(AppendError::NoRoom(room)) => Err(self.log_full(room, "its size does not suffice")),
            Err(AppendError::Failed(error)) => Err(error),
        }
    }

    /// Replays the record of a page into the pool.
    fn redo(&self, page: PageNumber, group: Position, record: &Record<'_>) -> Result<()> {
        let mut content = [0; PAGE_BYTES];
        if let Record::PageRanges { .. } = record {
            self.read_current(page, 0, &mut content, Checksum::Ignored)?;
        }
        record.apply_to(&mut content);
        let change = Change {
            first: group,
            end: self.log.durable(),
            scheduler: self.dirty.scheduler(),
        };
        self.install_page(page, &content, change)
    }
}

/// Called before anything is written: another database's files may have the names by now.
fn check_identity(request: &OpenDatabase, header: &Header) -> Result<()> {
    match request.guid.filter(|expected| *expected != header.guid) {
        None => Ok(()),
        Some(expected) => Err(EngineError::OtherDatabase(Box::new(OtherDatabase {
            database: request.name.clone(),
            expected,
            log: request.log_path.clone(),
            name: header.name.clone(),
            found: header.guid,
        }))),
    }
}

/// Rewrites a range of a file with its own content. A crash in the middle changes nothing that was
/// durable.
fn rewrite(file: &dyn StorageFile, range: Range<u64>) -> std::io::Result<()> {
    let mut piece = vec![0; REWRITE_BYTES.min((range.end - range.start) as usize)];
    let mut at = range.start;
    while at < range.end {
        let wanted = piece.len().min((range.end - at) as usize);
        let length = file.read_at(&mut piece[..wanted], at)?;
        if length == 0 {
            break;
        }
        file.write_at(&piece[..length], at)?;
        at += length as u64;
    }
    Ok(())
}

/// Rewrites the log from the redo start to its end, with the headers of its virtual log files.
fn rewrite_log(file: &dyn StorageFile, header: &Header, end: LogEnd) -> std::io::Result<()> {
    let sector = SECTOR_BYTES as u64;
    for vlf in &header.vlfs {
        let in_use = header.redo.vlf()..=end.position.vlf();
        if vlf.sequence == 0 || !in_use.contains(&vlf.sequence) {
            continue;
        }
        rewrite(file, vlf.offset..vlf.offset + sector)?;
        let first = match vlf.sequence == header.redo.vlf() {
            true => header.redo.block(),
            false => 1,
        };
        let last = match vlf.sequence == end.position.vlf() {
            true => end.position.block(),
            false => vlf.blocks,
        };
        let byte = |block: u32| vlf.offset + u64::from(block) * sector;
        rewrite(file, byte(first)..byte(last.max(first)))?;
    }
    Ok(())
}

/// Rewrites the first and the last sector of each data file: the next header names their first bytes
/// and their lengths, which the sync before it must make durable.
fn rewrite_ends(data: &DataFiles) -> Result<()> {
    let sector = SECTOR_BYTES as u64;
    for DataFile { spec, file } in data.all().0 {
        let outcome = file.len().and_then(|length| {
            rewrite(file.as_ref(), 0..sector.min(length))?;
            rewrite(file.as_ref(), length.saturating_sub(sector)..length)
        });
        outcome.map_err(|error| EngineError::io("write", &spec.path, error))?;
    }
    Ok(())
}

/// Makes the recovered state durable, wipes everything after the end, and starts a new epoch.
fn settle(file: &dyn StorageFile, header: &mut Header, end: LogEnd) -> std::io::Result<()> {
    for vlf in &mut header.vlfs {
        let behind = vlf.sequence > end.position.vlf();
        if behind {
            file.write_at(&[0; SECTOR_BYTES], vlf.offset)?;
            vlf.sequence = 0;
        }
        let at = end.position.block();
        if vlf.sequence == end.position.vlf() && vlf.sequence > 0 && (1..vlf.blocks).contains(&at) {
            // The next block may go elsewhere, and what a crash left here would continue the last one.
            let offset = vlf.offset + u64::from(at) * SECTOR_BYTES as u64;
            file.write_at(&[0; SECTOR_BYTES], offset)?;
        }
    }
    header.epoch = header.epoch.max(end.epoch) + 1;
    file.sync()
}

/// Number of pages of a database that was closed cleanly and may have been changed by other
/// programs since.
fn reopened_pages(header: &Header, data: &DataFiles) -> Result<u32> {
    match data.single() {
        Some(file) if header.clean => {
            let path = data.path(0);
            let bytes = file
                .len()
                .map_err(|error| EngineError::io("open", &path, error))?;
            page_count_of(bytes).ok_or_else(|| EngineError::Corrupt {
                path,
                what: format!(
                    "{bytes} bytes are not whole pages of {PAGE_BYTES}, or too many of them"
                ),
            })
        }
        _ => Ok(header.page_count),
    }
}

fn was_changed(header: &Header, database: &Database) -> Result<bool> {
    let Some(file) = database.data.single() else {
        return Ok(false);
    };
    let now = stamps::fingerprint(file.as_ref(), &database.data.path(0))?;
    Ok(now != header.fingerprint)
}

/// The number of pages in a file of this length; `None` if they are not whole, or too many for a
/// database.
fn page_count_of(bytes: u64) -> Option<u32> {
    let page_bytes = PAGE_BYTES as u64;
    let is_whole = bytes.is_multiple_of(page_bytes);
    u32::try_from(bytes / page_bytes).ok().filter(|_| is_whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_more_pages_than_a_database_can_have_is_not_taken_for_a_small_one() {
        assert_eq!(page_count_of(9 << 13), Some(9));
        assert_eq!(page_count_of((9 << 13) + 1), None);
        assert_eq!(page_count_of(u64::from(u32::MAX) << 13), Some(u32::MAX));
        assert_eq!(page_count_of((1 << 45) + (9 << 13)), None);
    }
}
