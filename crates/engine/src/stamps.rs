//! Whether all files of a database belong to one moment, and are as long as they were.
//!
//! A data file that is not the only one has a *stamp*: a sector in an extent of its own, which names
//! a checkpoint. A checkpoint writes its record to the log, then the stamps, syncs the data files,
//! and stores the header last.
//!
//! Invariants:
//! - Whichever of these steps a crash cuts off, each stamp names the header's checkpoint or a later
//!   one whose record is in the log. A file with an earlier one is an older copy: the log that
//!   would bring it forward is gone. A file with any other belongs to another log.
//! - When a second file is added, the header names no lengths until the checkpoint that follows at
//!   once: up to then a missing stamp is no defect.
//! - The only data file has no stamp, because it is a plain SQLite file. Its first bytes are those
//!   of the header's checkpoint, or of a version of page 1 in the log after it: they are in one
//!   sector, so no crash tears them. After a clean close, other programs may change it; but it has the mark of the
//!   opening that the log's header names ([`crate::opening`]), or none.
//! - No file is shorter than at the header's checkpoint, when its length was made durable. What an
//!   earlier process wrote is durable only because recovery writes the ends of the files again.

use std::path::Path;

use windlass_base::bytes::{Reader, Writer};
use windlass_base::page::{PAGE_BYTES, PageNumber};
use windlass_base::{ExtentNumber, Guid, checksum};

use crate::error::{EngineError, Result};
use crate::files::{DataFile, DataFiles, EXTENT_BYTES, FileExtent, extents_used};
use crate::log::Position;
use crate::log::header::{Fingerprint, Header, Region};
use crate::log::reader::LogReader;
use crate::log::replay::{Replayed, replay};
use crate::opening;
use crate::storage::{SECTOR_BYTES, StorageFile};

const MAGIC: &[u8; 8] = b"WLDATA01";

/// Bytes of a stamp without its checksum.
const COVERED: usize = 8 + 16 + 2 + 8 + 16;

/// Bytes of a SQLite file's header.
const HEAD_BYTES: usize = 100;

/// A checkpoint of a database, as stamps name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Moment {
    /// Of the database.
    pub(crate) guid: Guid,
    /// Of the checkpoint's group in the log.
    pub(crate) position: Position,
    /// Of the checkpoint.
    pub(crate) identity: Guid,
}

impl Moment {
    pub(crate) fn of(header: &Header) -> Self {
        Self {
            guid: header.guid,
            position: header.checkpoint,
            identity: header.checkpoint_identity,
        }
    }

    fn encode(self, file: usize) -> [u8; SECTOR_BYTES] {
        let mut out = Writer::default();
        out.0.extend_from_slice(MAGIC);
        out.guid(self.guid);
        out.u16(file as u16);
        out.u64(self.position.0);
        out.guid(self.identity);
        let sum = checksum(&out.0);
        out.u64(sum);
        let mut sector = [0; SECTOR_BYTES];
        sector[..out.0.len()].copy_from_slice(&out.0);
        sector
    }

    /// The moment in the stamp of file `file`; `None` if it is none, or damaged.
    fn parse(sector: &[u8; SECTOR_BYTES], file: usize) -> Option<Self> {
        let (covered, rest) = sector.split_at(COVERED);
        let mut input = Reader::new(covered.strip_prefix(MAGIC)?);
        let guid = input.guid()?;
        let number = input.u16()?;
        let moment = Self {
            guid,
            position: Position(input.u64()?),
            identity: input.guid()?,
        };
        let is_whole = Reader::new(rest).u64()? == checksum(covered);
        (is_whole && usize::from(number) == file).then_some(moment)
    }

    /// Writes the stamps of all data files, and returns what the header of this checkpoint says of them: the
    /// fingerprint of an only one, and their lengths with `page_count` pages. The caller syncs the
    /// files before it stores that.
    pub(crate) fn mark(self, data: &DataFiles, page_count: u32) -> Result<(Fingerprint, Vec<u64>)> {
        self.stamp(data)?;
        let fingerprint = match data.single() {
            Some(only) => fingerprint(only.as_ref(), &data.path(0))?,
            None => Fingerprint::default(),
        };
        Ok((fingerprint, lengths(data, page_count)?))
    }

    fn stamp(self, data: &DataFiles) -> Result<()> {
        let (files, regions) = data.all();
        for (index, file) in files.iter().enumerate() {
            self.stamp_file(&regions, index, file.file.as_ref(), &file.spec.path)?;
        }
        Ok(())
    }

    /// Writes the stamp of the data file with this index, if it has one.
    pub(crate) fn stamp_file(
        self,
        regions: &[Region],
        index: usize,
        file: &dyn StorageFile,
        path: &Path,
    ) -> Result<()> {
        let Some(offset) = offset_of(regions, index) else {
            return Ok(());
        };
        file.write_at(&self.encode(index), offset)
            .map_err(|error| EngineError::io("write", path, error))
    }
}

/// The byte offset of a file's stamp: in the extent before its part of the first region of several
/// files.
fn offset_of(regions: &[Region], index: usize) -> Option<u64> {
    let several = regions.iter().filter(|region| region.files.len() > 1);
    let mut starts = several.flat_map(|region| &region.files);
    let &(_, base) = starts.find(|&&(file, _)| usize::from(file) == index)?;
    Some(FileExtent(base.0.checked_sub(1)?).byte_offset())
}

/// For each data file, the bytes that a database of this many pages has in it now.
fn lengths(data: &DataFiles, page_count: u32) -> Result<Vec<u64>> {
    let (files, regions) = data.all();
    let used = match files.len() {
        1 => vec![u64::from(page_count) * PAGE_BYTES as u64],
        count => {
            let extents = ExtentNumber::all(page_count).count() as u32;
            let used = extents_used(&regions, count, extents);
            used.iter().map(|&n| u64::from(n) * EXTENT_BYTES).collect()
        }
    };
    let shortest = |(file, used): (&DataFile, u64)| Ok(length_of(file)?.min(used));
    files.iter().zip(used).map(shortest).collect()
}

/// The length and the first bytes of a data file.
pub(crate) fn fingerprint(file: &dyn StorageFile, path: &Path) -> Result<Fingerprint> {
    let fail = |error| EngineError::io("read", path, error);
    let mut head = [0; HEAD_BYTES];
    file.read_at(&mut head, 0).map_err(fail)?;
    Ok(Fingerprint {
        length: file.len().map_err(fail)?,
        checksum: checksum(&head),
        change_counter: big_endian(&head, 24),
    })
}

fn big_endian(head: &[u8; HEAD_BYTES], at: usize) -> u32 {
    u32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]])
}

fn length_of(file: &DataFile) -> Result<u64> {
    let length = file.file.len();
    length.map_err(|error| EngineError::io("read", &file.spec.path, error))
}

/// Fails unless the data files belong to the log, which ends at `end`. `reader` starts at the redo
/// start. Nothing is written.
pub(crate) fn check(
    header: &Header,
    data: &DataFiles,
    reader: LogReader,
    end: Position,
) -> Result<()> {
    let (files, regions) = data.all();
    if let ([only], true) = (files.as_slice(), header.clean) {
        return check_closed(header, only);
    }
    for (file, &expected) in files.iter().zip(&header.lengths) {
        let found = length_of(file)?;
        if found < expected {
            return Err(too_short(file, found, expected));
        }
    }
    let mut content = [0; PAGE_BYTES];
    if let [only] = files.as_slice() {
        let read = only.file.read_at(&mut content, 0);
        read.map_err(|error| EngineError::io("read", &only.spec.path, error))?;
    }
    let found = checksum(&content[..HEAD_BYTES]);
    let mut is_known = found == header.fingerprint.checksum;
    let path = &header.log.path;
    let Replayed { checkpoints, .. } = replay(reader, header, path, end, |page, _, record| {
        if page == PageNumber::FIRST && files.len() == 1 {
            record.apply_to(&mut content);
            is_known |= found == checksum(&content[..HEAD_BYTES]);
        }
        Ok(())
    })?;
    match files.as_slice() {
        [_] if is_known => Ok(()),
        [only] => Err(other_moment(
            only,
            "its first page is none that the log knows since the last checkpoint: the page is damaged, or \
             the file or the log is a copy from another moment",
        )),
        files => files.iter().enumerate().try_for_each(|(index, file)| {
            let Some(offset) = offset_of(&regions, index) else {
                return Ok(());
            };
            let is_new = header.lengths.get(index) == Some(&0);
            match read_stamp(file, index, offset)? {
                None if is_new => Ok(()),
                stamp => check_stamp(header, file, stamp, &checkpoints),
            }
        }),
    }
}

fn read_stamp(file: &DataFile, index: usize, offset: u64) -> Result<Option<Moment>> {
    let mut sector = [0; SECTOR_BYTES];
    let read = file.file.read_at(&mut sector, offset);
    read.map_err(|error| EngineError::io("read", &file.spec.path, error))?;
    Ok(Moment::parse(&sector, index))
}

fn check_stamp(
    header: &Header,
    file: &DataFile,
    stamp: Option<Moment>,
    checkpoints: &[(Position, Guid)],
) -> Result<()> {
    let why = match stamp {
        None => "it has no valid stamp where this data file of the database has one",
        Some(moment) if moment.guid != header.guid => "it belongs to another database",
        Some(moment) if checkpoints.contains(&(moment.position, moment.identity)) => return Ok(()),
        Some(moment) if moment.position < header.checkpoint => {
            "it is a copy from before the log's last checkpoint"
        }
        Some(_) => "it has been written since the log ends: the log is an older copy",
    };
    Err(other_moment(file, why))
}

/// A plain SQLite file may have been changed by other programs, but not be older or cut.
fn check_closed(header: &Header, file: &DataFile) -> Result<()> {
    let found = fingerprint(file.file.as_ref(), &file.spec.path)?;
    let closed = header.fingerprint;
    if found == closed {
        return Ok(());
    }
    if found.length == 0 && header.page_count > 0 {
        return Err(too_short(file, 0, closed.length));
    }
    let head = head_of(file)?;
    check_whole(file, &head)?;
    if opening::of(&head).is_some_and(|found| found != header.opening) {
        return Err(other_moment(
            file,
            "its last opening is none that the log knows: the log or the file is a copy from another moment",
        ));
    }
    // It only counts up, around its end.
    let ahead = found.change_counter.wrapping_sub(closed.change_counter);
    if closed.length > 0 && (ahead as i32) < 0 {
        return Err(other_moment(
            file,
            "its change counter is lower than when the database was closed: it is an older copy",
        ));
    }
    Ok(())
}

fn head_of(file: &DataFile) -> Result<[u8; HEAD_BYTES]> {
    let mut head = [0; HEAD_BYTES];
    let read = file.file.read_at(&mut head, 0);
    read.map_err(|error| EngineError::io("read", &file.spec.path, error))?;
    Ok(head)
}

/// Fails if a SQLite file has fewer pages than its own header says.
fn check_whole(file: &DataFile, head: &[u8; HEAD_BYTES]) -> Result<()> {
    // As in SQLite, the number counts only if the last writer knew of it.
    let counts = big_endian(head, 24) == big_endian(head, 92);
    let expected = u64::from(big_endian(head, 28)) * PAGE_BYTES as u64;
    let found = length_of(file)?;
    if head.starts_with(b"SQLite format 3\0") && counts && found < expected {
        return Err(too_short(file, found, expected));
    }
    Ok(())
}

fn too_short(file: &DataFile, found: u64, expected: u64) -> EngineError {
    EngineError::FileTooShort {
        path: file.spec.path.clone(),
        found,
        expected,
    }
}

fn other_moment(file: &DataFile, why: &'static str) -> EngineError {
    EngineError::FilesDiffer {
        path: file.spec.path.clone(),
        why,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_is_read_back_and_no_changed_one_is() {
        let moment = Moment {
            guid: Guid::from_stored([1; 16]),
            position: Position::new(3, 4),
            identity: Guid::from_stored([2; 16]),
        };
        let mut sector = moment.encode(1);
        assert_eq!(Moment::parse(&sector, 1), Some(moment));
        assert_eq!(Moment::parse(&sector, 0), None, "another file's");
        for at in 0..COVERED + 8 {
            sector[at] ^= 4;
            assert_eq!(Moment::parse(&sector, 1), None, "byte {at}");
            sector[at] ^= 4;
        }
        assert_eq!(Moment::parse(&[0; SECTOR_BYTES], 0), None);
    }
}
