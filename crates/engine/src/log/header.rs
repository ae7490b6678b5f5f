//! The header of the log file: the parts of the database, and where recovery starts.
//!
//! It has two slots, written alternately, each with a checksum and a counter; the valid one with
//! the higher counter is used. A torn write therefore leaves the previous header.

use std::ops::Range;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use windlass_base::{ExtentNumber, Guid, Lsn, checksum};

use super::vlf::Vlf;
use super::{Position, Tail};
use crate::error::{EngineError, Result};
use crate::files::FileExtent;
use crate::options::{FileSpec, Growth, RecoveryModel};
use crate::storage::StorageFile;
use windlass_base::bytes::{Reader, Writer};

/// Bytes of one header slot.
pub(crate) const SLOT_BYTES: usize = 64 * 1024;

/// Offset of the first virtual log file, in bytes.
pub(crate) const LOG_AREA: u64 = 2 * SLOT_BYTES as u64;

/// First bytes of the log file of a database with the recovery model SIMPLE.
pub const MAGIC: &[u8; 8] = b"WLLOG001";

/// First bytes of the others: a program that does not know the recovery model would truncate the log.
pub const MAGIC_KEPT: &[u8; 8] = b"WLLOG003";

/// How both begin, whatever their version.
const MAGIC_ANY: &[u8; 5] = b"WLLOG";

/// A range of extents that are spread over the same files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Region {
    /// First extent of the database in it.
    pub(crate) first_extent: ExtentNumber,
    /// For each file of the region: its index, and the extent in it where the region starts.
    pub(crate) files: Vec<(u16, FileExtent)>,
}

/// The full backup on which differential ones are based.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DifferentialBase {
    /// Identity of the backup set; nil when there is no base.
    pub set: Guid,
    pub first_lsn: Lsn,
}

/// What changes when another program writes to the only data file, or another copy takes its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Fingerprint {
    /// Length of the file, bytes.
    pub(crate) length: u64,
    /// Of its first 100 bytes, missing ones as zeros.
    pub(crate) checksum: u64,
    /// SQLite's change counter in them.
    pub(crate) change_counter: u32,
}

/// Everything durable about a database besides pages and log records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) counter: u64,
    pub(crate) guid: Guid,
    /// Identity of its history since it was created or last restored: within it, LSNs only grow.
    pub(crate) recovery_fork: Guid,
    /// Identity of the last opening with a commit, which page 1 of a SQLite database has as its mark; nil if none.
    pub(crate) opening: Guid,
    pub(crate) name: String,
    pub(crate) epoch: u32,
    /// Set by a clean close, when the pool has no pages and the log has nothing to replay.
    pub(crate) clean: bool,
    /// Of the only data file, at the last checkpoint or clean close.
    pub(crate) fingerprint: Fingerprint,
    pub(crate) page_count: u32,
    pub(crate) sequence: u64,
    /// First position that recovery needs.
    pub(crate) redo: Position,
    /// Position of the group of the last checkpoint.
    pub(crate) checkpoint: Position,
    /// Identity of the last checkpoint.
    pub(crate) checkpoint_identity: Guid,
    pub(crate) base: DifferentialBase,
    /// 0: automatic checkpoints.
    pub(crate) target_recovery_ms: u64,
    pub(crate) log: FileSpec,
    pub(crate) files: Vec<FileSpec>,
    /// For each data file, the bytes that it had at least at the last checkpoint; it is never shorter.
    pub(crate) lengths: Vec<u64>,
    pub(crate) regions: Vec<Region>,
    pub(crate) vlfs: Vec<Vlf>,
    pub(crate) recovery_model: RecoveryModel,
    /// What no log backup has yet; `None` if no chain of log backups has begun.
    pub(crate) tail: Option<Tail>,
    /// No commit before the redo start, and no end of a log backup, is later: milliseconds since 1970, UTC. Only in
    /// the recovery model FULL.
    pub(crate) last_ms: u64,
}

impl Header {
    pub(crate) fn encode(&self) -> Result<Vec<u8>> {
        let mut out = Writer::default();
        let is_kept = self.recovery_model == RecoveryModel::Full;
        out.0.extend_from_slice(match is_kept {
            true => MAGIC_KEPT,
            false => MAGIC,
        });
        out.u64(0);
        out.u64(self.counter);
        out.guid(self.guid);
        out.guid(self.recovery_fork);
        out.guid(self.opening);
        out.text(self.name.as_bytes());
        out.u32(self.epoch);
        out.u8(u8::from(self.clean));
        out.u64(self.fingerprint.length);
        out.u64(self.fingerprint.checksum);
        out.u32(self.fingerprint.change_counter);
        out.u32(self.page_count);
        out.u64(self.sequence);
        out.u64(self.redo.0);
        out.u64(self.checkpoint.0);
        out.guid(self.checkpoint_identity);
        out.guid(self.base.set);
        out.0.extend_from_slice(&self.base.first_lsn.to_stored());
        out.u64(self.target_recovery_ms);
        write_spec(&mut out, &self.log);
        out.u16(self.files.len() as u16);
        for file in &self.files {
            write_spec(&mut out, file);
        }
        out.u16(self.lengths.len() as u16);
        for &length in &self.lengths {
            out.u64(length);
        }
        out.u16(self.regions.len() as u16);
        for region in &self.regions {
            write_region(&mut out, region);
        }
        out.u16(self.vlfs.len() as u16);
        for vlf in &self.vlfs {
            out.u64(vlf.offset);
            out.u32(vlf.blocks);
        }
        if is_kept {
            out.u64(self.tail.map_or(0, |tail| tail.start.0));
            out.u64(self.tail.map_or(0, |tail| tail.previous));
            out.u64(self.last_ms);
        }
        let sum = checksum(&out.0);
        let length = out.0.len() as u64;
        if length + 16 > SLOT_BYTES as u64 {
            return Err(EngineError::Invalid(format!(
                "the names of the files of database '{}' are too long together",
                self.name
            )));
        }
        // The length comes first, so that the checksum after it can be found.
        out.0[8..16].copy_from_slice(&length.to_le_bytes());
        out.u64(sum);
        Ok(out.0)
    }

    /// Bytes of the header at the start of `bytes`, with its checksum.
    pub(crate) fn stored_bytes(bytes: &[u8]) -> Option<usize> {
        let length = Reader::new(bytes.get(8..)?).u64()?;
        usize::try_from(length).ok()?.checked_add(8)
    }

    /// Reads a slot; `None` if it is empty or damaged.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let length = Reader::new(bytes.get(8..)?).u64()?;
        let length = usize::try_from(length).ok().filter(|&l| l <= SLOT_BYTES)?;
        let mut content = bytes.get(..length)?.to_vec();
        content.get_mut(8..16)?.fill(0);
        let stored = Reader::new(bytes.get(length..)?).u64()?;
        let is_kept = content.starts_with(MAGIC_KEPT);
        if !(is_kept || content.starts_with(MAGIC)) || checksum(&content) != stored {
            return None;
        }
        let mut input = Reader::new(&content[16..]);
        let header = Self::fields(&mut input)?;
        if !is_kept {
            return Some(header);
        }
        let (start, previous) = (Position(input.u64()?), input.u64()?);
        Some(Self {
            recovery_model: RecoveryModel::Full,
            tail: (start.0 > 0).then_some(Tail { start, previous }),
            last_ms: input.u64()?,
            ..header
        })
    }

    fn fields(input: &mut Reader<'_>) -> Option<Self> {
        Some(Self {
            counter: input.u64()?,
            guid: input.guid()?,
            recovery_fork: input.guid()?,
            opening: input.guid()?,
            name: String::from_utf8(input.text()?.to_vec()).ok()?,
            epoch: input.u32()?,
            clean: input.u8()? != 0,
            fingerprint: Fingerprint {
                length: input.u64()?,
                checksum: input.u64()?,
                change_counter: input.u32()?,
            },
            page_count: input.u32()?,
            sequence: input.u64()?,
            redo: Position(input.u64()?),
            checkpoint: Position(input.u64()?),
            checkpoint_identity: input.guid()?,
            base: DifferentialBase {
                set: input.guid()?,
                first_lsn: Lsn::from_stored(input.array()?),
            },
            target_recovery_ms: input.u64()?,
            log: read_spec(input)?,
            files: list(input, read_spec)?,
            lengths: list(input, read_length)?,
            regions: list(input, read_region)?,
            vlfs: list(input, |input| {
                Some(Vlf {
                    offset: input.u64()?,
                    blocks: input.u32()?,
                    sequence: 0,
                })
            })?,
            recovery_model: RecoveryModel::Simple,
            tail: None,
            last_ms: 0,
        })
    }

    /// The byte range of this header in the file.
    pub(crate) fn slot(&self) -> Range<u64> {
        let start = (self.counter % 2) * SLOT_BYTES as u64;
        start..start + SLOT_BYTES as u64
    }

    /// Writes the header into its slot and syncs it.
    pub(crate) fn store(&self, file: &dyn StorageFile, path: &Path) -> Result<()> {
        let bytes = self.encode()?;
        file.write_at(&bytes, self.slot().start)
            .and_then(|()| file.sync())
            .map_err(|error| EngineError::io("write the header of", path, error))
    }

    /// Reads both slots and returns the valid one with the higher counter.
    pub(crate) fn load(file: &dyn StorageFile, path: &Path) -> Result<Self> {
        let mut best: Option<Self> = None;
        let mut other_version = None;
        let mut slot = vec![0; SLOT_BYTES];
        for index in 0..2 {
            let length = file
                .read_at(&mut slot, index * SLOT_BYTES as u64)
                .map_err(|error| EngineError::io("read the header of", path, error))?;
            let magic = &slot[..length.min(MAGIC.len())];
            if magic.starts_with(MAGIC_ANY) && magic != MAGIC && magic != MAGIC_KEPT {
                other_version = Some(String::from_utf8_lossy(magic).into_owned());
            }
            if let Some(found) = Self::parse(&slot[..length])
                && best
                    .as_ref()
                    .is_none_or(|best| best.counter < found.counter)
            {
                best = Some(found);
            }
        }
        best.ok_or_else(|| EngineError::Corrupt {
            path: path.to_owned(),
            what: match other_version {
                Some(version) => {
                    format!("a log of the format {version}, which this program does not know")
                }
                None => "no valid header: not a log file of the page engine, or damaged".to_owned(),
            },
        })
    }
}

fn list<T>(
    input: &mut Reader<'_>,
    mut one: impl FnMut(&mut Reader<'_>) -> Option<T>,
) -> Option<Vec<T>> {
    let count = input.u16()?;
    (0..count).map(|_| one(input)).collect()
}

pub(crate) fn write_region(out: &mut Writer, region: &Region) {
    out.u32(region.first_extent.0);
    out.u16(region.files.len() as u16);
    for &(file, extent) in &region.files {
        out.u16(file);
        out.u32(extent.0);
    }
}

pub(crate) fn read_region(input: &mut Reader<'_>) -> Option<Region> {
    Some(Region {
        first_extent: ExtentNumber(input.u32()?),
        files: list(input, |input| {
            Some((input.u16()?, FileExtent(input.u32()?)))
        })?,
    })
}

pub(crate) fn write_spec(out: &mut Writer, spec: &FileSpec) {
    out.text(spec.logical_name.as_bytes());
    out.text(spec.path.as_os_str().as_bytes());
    out.u64(spec.size);
    let (kind, amount) = match spec.growth {
        Growth::Fixed => (0, 0),
        Growth::Bytes(bytes) => (1, bytes),
        Growth::Percent(percent) => (2, u64::from(percent)),
    };
    out.u8(kind);
    out.u64(amount);
    out.u64(spec.max_size.unwrap_or(0));
}

fn read_length(input: &mut Reader<'_>) -> Option<u64> {
    input.u64()
}

pub(crate) fn read_spec(input: &mut Reader<'_>) -> Option<FileSpec> {
    let logical_name = String::from_utf8(input.text()?.to_vec()).ok()?;
    let path = PathBuf::from(std::ffi::OsString::from_vec(input.text()?.to_vec()));
    let size = input.u64()?;
    let growth = match (input.u8()?, input.u64()?) {
        (0, _) => Growth::Fixed,
        (1, bytes) => Growth::Bytes(bytes),
        (_, percent) => Growth::Percent(u32::try_from(percent).ok()?),
    };
    let max_size = Some(input.u64()?).filter(|&bytes| bytes > 0);
    Some(FileSpec {
        logical_name,
        path,
        size,
        growth,
        max_size,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_read_back_and_damage_is_found() {
        let header = Header {
            counter: 3,
            guid: Guid::from_stored([4; 16]),
            recovery_fork: Guid::from_stored([7; 16]),
            opening: Guid::from_stored([8; 16]),
            name: "näme".to_owned(),
            epoch: 2,
            clean: true,
            fingerprint: Fingerprint {
                length: 8192,
                checksum: 5,
                change_counter: 6,
            },
            page_count: 9,
            sequence: 11,
            redo: Position::new(2, 3),
            checkpoint: Position::new(2, 7),
            checkpoint_identity: Guid::from_stored([6; 16]),
            base: DifferentialBase {
                set: Guid::from_stored([5; 16]),
                first_lsn: Position::new(1, 1).lsn(1),
            },
            target_recovery_ms: 60_000,
            log: FileSpec::log("l", "/l"),
            files: vec![FileSpec::data("a", "/a"), FileSpec::data("b", "/b")],
            lengths: vec![8192, 65536],
            regions: vec![Region {
                first_extent: ExtentNumber(0),
                files: vec![(0, FileExtent(0)), (1, FileExtent(0))],
            }],
            vlfs: super::super::vlf::divide(LOG_AREA, 1 << 20),
            recovery_model: RecoveryModel::Simple,
            tail: None,
            last_ms: 0,
        };
        let bytes = header.encode().unwrap();
        assert!(bytes.starts_with(MAGIC));
        assert_eq!(Header::parse(&bytes).as_ref(), Some(&header));
        let header = Header {
            recovery_model: RecoveryModel::Full,
            tail: Some(Tail {
                start: Position::new(2, 5),
                previous: 17,
            }),
            last_ms: 18,
            ..header
        };
        let mut bytes = header.encode().unwrap();
        assert!(bytes.starts_with(MAGIC_KEPT));
        assert_eq!(Header::parse(&bytes), Some(header));
        for index in 0..bytes.len() {
            bytes[index] ^= 0x10;
            assert_eq!(Header::parse(&bytes), None, "byte {index}");
            bytes[index] ^= 0x10;
        }
        assert_eq!(Header::parse(&bytes[..20]), None);
    }
}
