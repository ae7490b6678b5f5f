//! Appends records to a spool, and makes them durable.
//!
//! Every start of a follower begins a new segment, whose first record names the last record that could be read: what
//! a crash left behind that is not part of the spool, and stays where it is.

mod pages;

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt as _};
use std::path::{Path, PathBuf};

use windlass_base::bytes::Writer;
use windlass_base::{Guid, checksum};
use windlass_codec::{Algorithm, Compression, Encoder};
use windlass_io::{directory, own};
use windlass_media::WalPosition;

use super::super::file_error;
use super::reader;
use super::record::{BODY_BYTES_MAX, ClockChange, Gap, Head, Kind, Moment, Segment, State};
use super::{SpoolError, VERSION, now_us};
use crate::Error;
use pages::PAGES_BYTES;

/// A new segment begins behind this length, or an eighth of what a spool may have, so that old ones can be removed.
const SEGMENT_BYTES: u64 = 64 << 20;
const SEGMENTS_MIN: u64 = 8;

/// A moment has at least, and at most, so many bytes of pages before others follow in the next one. The most is half of
/// what a follower keeps in memory, so that only pages of a very large commit leave it early, as whole ones.
const MOMENT_BYTES_MIN: u64 = 64 << 10;
const MOMENT_BYTES_MAX: u64 = 16 << 20;
const MOMENTS_MIN: u64 = 16;

/// Room that is kept for the record of a gap.
const RESERVED_BYTES: u64 = 64 << 10;

/// The name of the file that a follower locks.
const LOCK_NAME: &str = "follower.lock";

/// Where the chain of records is.
#[derive(Debug, Clone, Copy)]
struct Place {
    /// Bytes of the segment.
    offset: u64,
    /// Sequence number of the next record.
    sequence: u64,
    /// Checksum of the last one.
    previous: u64,
    state: State,
    /// Whether the last record is a gap, which has a segment of its own.
    is_gap: bool,
}

/// A spool that is written.
#[derive(Debug)]
pub(crate) struct SpoolWriter {
    folder: PathBuf,
    /// Locks the folder while it is open.
    lock: File,
    database: String,
    spool_guid: Guid,
    file: File,
    number: u32,
    /// Bytes of the segment's first record.
    begin_bytes: u64,
    /// Bytes of all segments before this one.
    before_bytes: u64,
    bytes_max: Option<u64>,
    written: Place,
    synced: Place,
    encoder: Encoder,
    raw: Vec<u8>,
    stored: Vec<u8>,
}

/// What an earlier follower left.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Continued {
    pub(crate) state: State,
}

impl SpoolWriter {
    /// Opens the spool in `folder`, or creates one, and begins a new segment.
    pub(crate) fn open(
        folder: &Path,
        database: &Path,
        bytes_max: Option<u64>,
    ) -> Result<(Self, Option<Continued>), Error> {
        let fail = |error| file_error("open", folder, error);
        directory::create(folder).map_err(fail)?;
        own::check_owner(folder).map_err(fail)?;
        let lock =
            own::claim_file(&folder.join(LOCK_NAME)).map_err(|error| match error.kind() {
                io::ErrorKind::WouldBlock => SpoolError::InUse {
                    folder: folder.to_owned(),
                }
                .told(),
                _ => fail(error),
            })?;
        let database = database.to_string_lossy().into_owned();
        let found = reader::last(folder)?;
        if let Some((segment, _)) = &found
            && segment.database != database
        {
            return Err(SpoolError::OfOther {
                folder: folder.to_owned(),
                found: segment.database.clone(),
                expected: database,
            }
            .told());
        }
        let spool_guid = found
            .as_ref()
            .map_or_else(Guid::random, |(segment, _)| segment.spool_guid);
        let begun = match &found {
            Some((_, end)) => Place {
                offset: 0,
                sequence: end.sequence,
                previous: end.previous,
                state: end.state,
                is_gap: false,
            },
            None => Place {
                offset: 0,
                sequence: 0,
                previous: 0,
                state: State::default(),
                is_gap: false,
            },
        };
        let segments = reader::segments(folder)?;
        let number = segments
            .last()
            .map_or(Some(1), |(number, _)| number.checked_add(1));
        let number =
            number.ok_or_else(|| fail(io::Error::other("it has the last segment of all")))?;
        let mut writer = Self {
            folder: folder.to_owned(),
            lock,
            database,
            spool_guid,
            file: create(folder, number)?,
            number,
            begin_bytes: 0,
            before_bytes: total_bytes(folder)?,
            bytes_max,
            written: begun,
            synced: begun,
            encoder: Encoder::new(Compression::ZSTD_LOW, 2 * PAGES_BYTES)
                .map_err(|error| SpoolError::Codec(error).told())?,
            raw: Vec::new(),
            stored: Vec::new(),
        };
        writer.begin_segment()?;
        Ok((writer, found.map(|(_, end)| Continued { state: end.state })))
    }

    /// Writes the first record of the segment, if that failed before, or begins another behind a gap. Must come before
    /// the state changes: the record says what is durable.
    fn ensure_segment(&mut self) -> Result<(), Error> {
        if self.written.offset == 0 {
            self.begin_segment()
        } else if self.written.is_gap {
            self.next_segment()
        } else {
            Ok(())
        }
    }

    fn begin_segment(&mut self) -> Result<(), Error> {
        let segment = Segment {
            version: VERSION,
            spool_guid: self.spool_guid,
            number: self.number,
            time_us: now_us(),
            database: self.database.clone(),
            state: self.written.state,
        };
        self.append(Kind::Segment, &segment.store())?;
        self.begin_bytes = self.written.offset;
        self.sync()
    }

    /// Ends the segment. What was written is durable then.
    fn next_segment(&mut self) -> Result<(), Error> {
        if self.is_ahead() {
            self.sync()?;
        }
        let last = || io::Error::other("it has the last segment of all");
        let number = self.number.checked_add(1);
        let number = number.ok_or_else(|| self.failed("continue", last()))?;
        let file = create(&self.folder, number)?;
        self.before_bytes += self.written.offset;
        self.file = file;
        self.number = number;
        self.written.offset = 0;
        self.written.is_gap = false;
        self.synced = self.written;
        self.begin_segment()
    }

    /// Ends the segment, unless nothing is in it; the number of the one in which the spool continues.
    pub(crate) fn cut(&mut self) -> Result<u32, Error> {
        if self.written.offset != self.begin_bytes {
            self.next_segment()?;
        }
        Ok(self.number)
    }

    /// Bytes of all segments.
    pub(crate) fn bytes(&self) -> u64 {
        self.before_bytes + self.written.offset
    }

    /// Whether somebody has removed or replaced the folder or the segment that is written, or cut the segment off.
    pub(crate) fn is_gone(&self) -> bool {
        let is_there = |held: &File, name: &Path, bytes: u64| {
            let (held, named) = (held.metadata(), std::fs::metadata(name));
            matches!((held, named), (Ok(held), Ok(named))
                if (held.dev(), held.ino()) == (named.dev(), named.ino()) && named.len() >= bytes)
        };
        let segment = segment_path(&self.folder, self.number);
        !is_there(&self.lock, &self.folder.join(LOCK_NAME), 0)
            || !is_there(&self.file, &segment, self.written.offset)
    }

    /// Bytes of pages after which a moment is to be made, so that a spool with little room takes what it can.
    pub(crate) fn moment_bytes(&self) -> usize {
        let share = self
            .bytes_max
            .map_or(MOMENT_BYTES_MAX, |max| max / MOMENTS_MIN);
        share.clamp(MOMENT_BYTES_MIN, MOMENT_BYTES_MAX) as usize
    }

    /// Counts the bytes again, because somebody may have removed segments; whether there is room for more.
    pub(crate) fn has_room(&mut self) -> Result<bool, Error> {
        self.before_bytes = total_bytes(&self.folder)?.saturating_sub(self.written.offset);
        Ok(!self.is_full(RESERVED_BYTES))
    }

    /// The state of the last record that is durable.
    pub(crate) fn state(&self) -> State {
        self.synced.state
    }

    /// The same of the last one that was written.
    pub(crate) fn state_written(&self) -> State {
        self.written.state
    }

    /// The number of the last commit that was written.
    pub(crate) fn written_commits(&self) -> u64 {
        self.written.state.commit_number
    }

    /// The position of the last record that was written.
    pub(crate) fn written_position(&self) -> WalPosition {
        self.written.state.position
    }

    /// Whether something is written that is not durable.
    pub(crate) fn is_ahead(&self) -> bool {
        self.written.offset != self.synced.offset
    }

    fn is_full(&self, more_bytes: u64) -> bool {
        let bytes = self.bytes() + more_bytes;
        self.bytes_max.is_some_and(|max| bytes > max)
    }

    /// The state from which on commits are captured.
    pub(crate) fn start(&mut self, state: State) -> Result<(), Error> {
        self.ensure_segment()?;
        self.written.state = state;
        let body = self.state_body();
        self.append(Kind::Start, &body)
    }

    /// Nothing was committed until `time_us`. Not worth a sync. The position may be that of another generation, in
    /// which nothing was committed yet.
    pub(crate) fn seen(&mut self, position: WalPosition, time_us: u64) -> Result<(), Error> {
        self.ensure_segment()?;
        self.written.state.position = position;
        self.written.state.time_us = time_us;
        let body = self.state_body();
        self.append(Kind::Seen, &body)
    }

    /// The clock was changed.
    pub(crate) fn clock(&mut self, change: ClockChange) -> Result<(), Error> {
        self.ensure_segment()?;
        self.append(Kind::Clock, &change.store())
    }

    fn state_body(&self) -> Vec<u8> {
        let mut out = Writer::default();
        self.written.state.store(&mut out);
        out.0
    }

    /// The pages before it are the state that it describes.
    pub(crate) fn moment(&mut self, moment: &Moment) -> Result<(), Error> {
        self.ensure_segment()?;
        self.written.state.position = moment.to;
        self.written.state.time_us = moment.time_us;
        self.written.state.commit_number = moment.commit_number;
        self.append(Kind::Moment, &moment.store())
    }

    /// What is between two states may be missing. Such a record is alone in its segment, so that a log backup can end
    /// before it, and begin behind it.
    pub(crate) fn gap(&mut self, gap: &Gap) -> Result<(), Error> {
        self.ensure_segment()?;
        self.cut()?;
        self.written.state.position = gap.to;
        self.written.state.time_us = gap.to_us;
        self.written.state.inode = gap.inode;
        self.append(Kind::Gap, &gap.store())?;
        self.written.is_gap = true;
        Ok(())
    }

    fn append(&mut self, kind: Kind, body: &[u8]) -> Result<(), Error> {
        self.append_body(kind, (Algorithm::None.id(), 0), body.len(), body)
    }

    fn append_body(
        &mut self,
        kind: Kind,
        (algorithm, filter): (u8, u16),
        raw_bytes: usize,
        body: &[u8],
    ) -> Result<(), Error> {
        debug_assert!(
            raw_bytes <= BODY_BYTES_MAX,
            "the caller keeps records short"
        );
        let more = (Head::BYTES + body.len()) as u64;
        if kind.has_pages() && self.is_full(more + RESERVED_BYTES) {
            let full = io::Error::from(io::ErrorKind::QuotaExceeded);
            return Err(self.failed("write", full));
        }
        let head = Head {
            kind,
            algorithm,
            filter,
            sequence: self.written.sequence,
            stored_bytes: body.len() as u32,
            raw_bytes: raw_bytes as u32,
            previous: self.written.previous,
            body_checksum: checksum(body),
        };
        let (head, own) = head.to_stored();
        let offset = self.written.offset;
        let written = (self.file.write_all_at(&head, offset))
            .and_then(|()| self.file.write_all_at(body, offset + head.len() as u64));
        written.map_err(|error| self.failed("write", error))?;
        self.written.offset += more;
        self.written.sequence = self.written.sequence.wrapping_add(1);
        self.written.previous = own;
        Ok(())
    }

    /// Makes everything durable. After an error the file is not used any more.
    pub(crate) fn sync(&mut self) -> Result<(), Error> {
        (self.file.sync_data()).map_err(|error| self.failed("sync", error))?;
        self.synced = self.written;
        Ok(())
    }

    /// Begins another segment if this one is long. Everything must be synced.
    pub(crate) fn roll(&mut self) -> Result<(), Error> {
        let share = (self.bytes_max).map_or(SEGMENT_BYTES, |max| max / SEGMENTS_MIN);
        if self.written.offset < SEGMENT_BYTES.min(share) {
            return Ok(());
        }
        self.next_segment()
    }

    /// Removes what was written since the last sync.
    pub(crate) fn rollback(&mut self) -> Result<(), Error> {
        let truncated = self.file.set_len(self.synced.offset);
        truncated.map_err(|error| self.failed("truncate", error))?;
        self.written = self.synced;
        Ok(())
    }

    fn failed(&self, action: &'static str, error: io::Error) -> Error {
        file_error(action, &segment_path(&self.folder, self.number), error)
    }
}

/// Removes the spool in `folder`, and the folder. A follower that writes to it ends.
pub fn remove(folder: &Path) -> Result<(), Error> {
    let fail = |error| file_error("remove", folder, error);
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries.map_err(fail)?,
    };
    own::check_owner(folder).map_err(fail)?;
    for entry in entries {
        own::remove(&entry.map_err(fail)?.path()).map_err(fail)?;
    }
    std::fs::remove_dir(folder).map_err(fail)
}

/// Whether a follower writes to the spool in `folder`.
pub fn has_follower(folder: &Path) -> Result<bool, Error> {
    let path = folder.join(LOCK_NAME);
    own::is_held(&path).map_err(|error| file_error("lock", &path, error))
}

/// Whether an error says that there is no room for the spool.
pub(crate) fn is_full(error: &Error) -> bool {
    let Error::Io { source, .. } = error else {
        return false;
    };
    matches!(
        source.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge
    )
}

fn segment_path(folder: &Path, number: u32) -> PathBuf {
    folder.join(format!("{number:08}{}", super::SEGMENT_SUFFIX))
}

fn create(folder: &Path, number: u32) -> Result<File, Error> {
    let path = segment_path(folder, number);
    let file = own::create(&path).map_err(|error| file_error("create", &path, error))?;
    directory::sync(folder).map_err(|error| file_error("sync", folder, error))?;
    Ok(file)
}

fn total_bytes(folder: &Path) -> Result<u64, Error> {
    let mut bytes = 0;
    for (_, path) in reader::segments(folder)? {
        // A segment may be removed at any time.
        bytes += std::fs::metadata(&path).map_or(0, |metadata| metadata.len());
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_that_could_not_be_begun_is_begun_later() {
        let folder = tempfile::tempdir().unwrap();
        let (mut spool, _) = SpoolWriter::open(folder.path(), Path::new("/a.db"), None).unwrap();
        let state = State {
            time_us: 5,
            inode: 7,
            ..State::default()
        };
        spool.start(state).unwrap();
        spool.sync().unwrap();
        // As after a new segment whose first record found no room.
        spool.file = create(folder.path(), 2).unwrap();
        spool.number = 2;
        spool.written.offset = 0;
        spool.synced.offset = 0;
        spool.rollback().unwrap();
        let gap = Gap {
            from_us: 5,
            to_us: 9,
            from: WalPosition::default(),
            to: WalPosition {
                frame: 3,
                ..WalPosition::default()
            },
            inode: 7,
            reason: "of this test".to_owned(),
        };
        spool.gap(&gap).unwrap();
        spool.sync().unwrap();
        let mut records = reader::Records::open(folder.path()).unwrap();
        let mut kinds = Vec::new();
        while let Some(found) = records.next().unwrap() {
            kinds.push(found.head.kind);
        }
        let expected = [Kind::Segment, Kind::Start, Kind::Segment, Kind::Gap];
        assert_eq!(kinds, expected);
        let second = records.segment().unwrap();
        assert_eq!(
            second.state, state,
            "the gap is not in the segment's first record"
        );
    }
}
