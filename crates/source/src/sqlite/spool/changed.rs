//! Which extents of a database have changed since the base of its differential backups, as its log says.
//!
//! Log backups take the oldest segments out of a spool. What was changed in these is kept in a file of the folder,
//! *changed*, with the place in the chain of records up to which it counts. So from the state of the base to that of a
//! snapshot every commit is either in the file or in the spool, or there is no answer, and the whole database is read.
//!
//! The file is begun when the snapshot of a full backup is pinned, and gets the GUID of the set when that has become the
//! base; then those of earlier bases go.
//!
//! Invariants:
//! 1. An answer has every extent in which the two states differ. It may have more.
//! 2. A file counts only for the base that it names, and only if the spool has the very record behind it.
//! 3. Behind a gap there is no answer until there is another base.
//! 4. Files are changed only by who holds the *order* of the spool.
//!
//! The file is described in `docs/format/spool.md`.

use std::ops::Range;
use std::path::{Path, PathBuf};

use windlass_base::bytes::{Reader, Writer};
use windlass_base::{EXTENT_BYTES, Guid, Lsn, checksum};
use windlass_io::own;
use windlass_media::WalPosition;

use super::Order;
use super::parts::Parts;
use super::reader::{Found, Records};
use super::record::{Kind, Moment, Pages};
use super::slice::Slice;
use crate::Error;
use crate::sqlite::file_error;

/// What the name begins with; the LSN of the base follows.
const NAME: &str = "changed.";
const MAGIC: [u8; 4] = *b"WSCH";
const VERSION: u16 = 1;

/// Longest file; past it the whole database is read.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// Extents of the largest database of which changes are kept: 16 TB.
const EXTENTS_MAX: u64 = 1 << 28;

/// A full backup that may become the base of differentials: from its state on, changes are kept.
#[derive(Debug)]
pub(in crate::sqlite) struct NewBase {
    path: PathBuf,
    folder: PathBuf,
    is_settled: bool,
}

impl NewBase {
    /// Begins with the state of a snapshot; the caller holds the order of the spool.
    pub(in crate::sqlite) fn begin(
        folder: &Path,
        lsn: Lsn,
        position: WalPosition,
        size_bytes: u64,
    ) -> Result<Self, Error> {
        let path = folder.join(format!("{NAME}{lsn}"));
        let changed = Changed {
            set_guid: Guid::NIL,
            position,
            next: None,
            low_bytes: size_bytes,
            extents: Vec::new(),
        };
        changed.store(&path)?;
        Ok(Self {
            path,
            folder: folder.to_owned(),
            is_settled: false,
        })
    }

    /// The set is the base now, and every earlier one is none any more.
    pub(in crate::sqlite) fn settle(&mut self, set_guid: Guid) -> Result<(), Error> {
        let _order = Order::take(&self.folder)?;
        self.is_settled = true;
        if let Some(mut changed) = Changed::load(&self.path)? {
            changed.set_guid = set_guid;
            changed.store(&self.path)?;
        }
        let all = files(&self.folder)?.into_iter();
        let mut others = all.filter(|path| *path != self.path);
        others.try_for_each(|path| forget(&path))
    }
}

impl Drop for NewBase {
    fn drop(&mut self) {
        if !self.is_settled {
            // Left over, it costs its place, and counts for no set.
            let _left = own::remove(&self.path);
        }
    }
}

fn files(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let fail = |error| file_error("read", folder, error);
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(fail)? {
        let entry = entry.map_err(fail)?;
        if entry.file_name().to_string_lossy().starts_with(NAME) {
            files.push(entry.path());
        }
    }
    Ok(files)
}

fn forget(path: &Path) -> Result<(), Error> {
    own::remove(path).map_err(|error| file_error("remove", path, error))
}

/// Keeps what was changed in slices that are about to be removed.
///
/// # Errors
/// Those of the operating system and the spool.
pub(in crate::sqlite) fn keep(folder: &Path, slices: &[&Slice]) -> Result<(), Error> {
    let _order = Order::take(folder)?;
    for path in files(folder)? {
        let known = Changed::load(&path)?;
        match known.map(|known| known.with(slices)).transpose()? {
            Some(Some(changed)) => changed.store(&path)?,
            Some(None) | None => forget(&path)?,
        }
    }
    Ok(())
}

/// What may have changed between the base, by the GUID of its set, and the state `to`, as ranges of bytes in the first
/// `size_bytes` of the file; `None` if the log does not say.
///
/// # Errors
/// Those of the operating system and the spool.
pub(in crate::sqlite) fn changed_since(
    folder: &Path,
    base: Guid,
    to: &WalPosition,
    size_bytes: u64,
) -> Result<Option<Vec<Range<u64>>>, Error> {
    if base.is_nil() || to.is_unknown() {
        return Ok(None);
    }
    for path in files(folder)? {
        let changed = Changed::load(&path)?.filter(|changed| changed.set_guid == base);
        let Some(mut changed) = changed else {
            continue;
        };
        let walked = changed.walk(&mut Records::open(folder)?, Some(to))?;
        return Ok((walked == Walked::Reached).then(|| changed.ranges(size_bytes)));
    }
    Ok(None)
}

/// How a walk has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Walked {
    /// At the wanted state.
    Reached,
    /// At the end of the records.
    ToEnd,
    /// Something is missing.
    Broken,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Changed {
    /// That of the base; nil before it is one.
    set_guid: Guid,
    /// That of its snapshot.
    position: WalPosition,
    /// The sequence number of the next record that counts, and the checksum of the one before; `None` before the base.
    next: Option<(u64, u64)>,
    /// The shortest length that the database has had: behind it everything may have changed.
    low_bytes: u64,
    extents: Vec<u64>,
}

impl Changed {
    /// With what the slices have; `None` if something is missing.
    fn with(mut self, slices: &[&Slice]) -> Result<Option<Self>, Error> {
        for slice in slices {
            let is_behind_gap = slice.gap.is_some() && self.next.is_some();
            if is_behind_gap || self.walk(&mut slice.records(), None)? == Walked::Broken {
                return Ok(None);
            }
        }
        Ok(Some(self))
    }

    /// Adds what the records have behind the base, or behind what is known already, up to the state `to`.
    fn walk(&mut self, records: &mut Records, to: Option<&WalPosition>) -> Result<Walked, Error> {
        let is_to = |position: &WalPosition| to.is_some_and(|to| position.is_same_state(to));
        // The numbers of pages whose moment is still to come, and whether the records count yet.
        let (mut pages, mut is_on) = (Vec::new(), false);
        while let Some(found) = records.next()? {
            if let Some((sequence, previous)) = self.next.filter(|_| !is_on) {
                is_on = (found.head.sequence, found.head.previous) == (sequence, previous);
                if !is_on && found.head.sequence >= sequence {
                    return Ok(Walked::Broken);
                }
            }
            let mut state = None;
            match found.head.kind {
                Kind::Pages | Kind::Parts => {
                    add_numbers(records, &found, &mut pages)?;
                    continue;
                }
                Kind::Moment => {
                    let moment = records.moment(&found)?;
                    let begins = self.next.is_none() && moment.covers(&self.position);
                    let is_exact = begins && moment.to.is_same_state(&self.position);
                    if (is_on || begins && !is_exact) && !self.add(&moment, &pages) {
                        return Ok(Walked::Broken);
                    }
                    is_on |= begins;
                    if is_on && to.is_some_and(|to| moment.covers(to)) {
                        return Ok(Walked::Reached);
                    }
                }
                Kind::Gap if is_on => return Ok(Walked::Broken),
                Kind::Gap => state = Some(records.gap(&found)?.to),
                Kind::Segment => state = records.segment().map(|segment| segment.state.position),
                Kind::Start | Kind::Seen => state = Some(records.state(&found)?.position),
                Kind::Clock => {}
            }
            pages.clear();
            let state = state.filter(|state| !state.is_unknown());
            let is_base = |state: &WalPosition| state.is_same_state(&self.position);
            is_on |= self.next.is_none() && state.as_ref().is_some_and(is_base);
            if is_on && state.as_ref().is_some_and(is_to) {
                return Ok(Walked::Reached);
            }
            if is_on && self.next.is_none() {
                // From here on it is the chain of records that counts.
                self.next = records.chain();
            }
        }
        if is_on {
            self.next = records.closed();
        }
        Ok(Walked::ToEnd)
    }

    /// Adds the pages of a moment; `false` if the database is too large.
    fn add(&mut self, moment: &Moment, pages: &[u32]) -> bool {
        let page_bytes = u64::from(moment.page_bytes);
        let size_bytes = u64::from(moment.page_count) * page_bytes;
        self.low_bytes = self.low_bytes.min(size_bytes);
        for number in pages {
            let Some(index) = number.checked_sub(1) else {
                continue;
            };
            let extent = u64::from(index) * page_bytes / EXTENT_BYTES as u64;
            if extent >= EXTENTS_MAX {
                return false;
            }
            let (word, bit) = ((extent / 64) as usize, extent % 64);
            if self.extents.len() <= word {
                self.extents.resize(word + 1, 0);
            }
            self.extents[word] |= 1 << bit;
        }
        true
    }

    /// The changed extents, neighbours together.
    fn runs(&self) -> Vec<Range<u64>> {
        let mut runs: Vec<Range<u64>> = Vec::new();
        for (word, bits) in (0..).zip(&self.extents) {
            for bit in (0..64).filter(|bit| bits >> bit & 1 == 1) {
                let extent = word * 64 + bit;
                match runs.last_mut().filter(|run| run.end == extent) {
                    Some(run) => run.end += 1,
                    None => runs.push(extent..extent + 1),
                }
            }
        }
        runs
    }

    fn ranges(&self, size_bytes: u64) -> Vec<Range<u64>> {
        let extent_bytes = EXTENT_BYTES as u64;
        // Whole extents: they are what is compared with the base.
        let low_bytes = self.low_bytes / extent_bytes * extent_bytes;
        let runs = self.runs().into_iter();
        let below = runs.map(|run| run.start * extent_bytes..run.end * extent_bytes);
        let below = below.map(|range| range.start..range.end.min(low_bytes));
        let mut ranges: Vec<Range<u64>> = below.collect();
        ranges.push(low_bytes..size_bytes);
        let cut = ranges.into_iter();
        cut.map(|range| range.start..range.end.min(size_bytes))
            .filter(|range| !range.is_empty())
            .collect()
    }

    fn store(&self, path: &Path) -> Result<(), Error> {
        let mut out = Writer::default();
        out.bytes(&MAGIC);
        out.u16(VERSION);
        out.guid(self.set_guid);
        out.bytes(&self.position.to_stored());
        out.u8(u8::from(self.next.is_some()));
        let (sequence, previous) = self.next.unwrap_or_default();
        out.u64(sequence);
        out.u64(previous);
        out.u64(self.low_bytes);
        for run in self.runs() {
            out.u64(run.start);
            out.u64(run.end);
        }
        let own = checksum(&out.0);
        out.u64(own);
        if out.0.len() as u64 > FILE_BYTES_MAX {
            return forget(path);
        }
        own::replace(path, &out.0).map_err(|error| file_error("write", path, error))
    }

    /// `None` if there is none that can be used.
    fn load(path: &Path) -> Result<Option<Self>, Error> {
        match own::read(path, FILE_BYTES_MAX) {
            Ok(bytes) => Ok(Self::parse(&bytes)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(file_error("read", path, error)),
        }
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let (covered, own) = bytes.split_last_chunk::<8>()?;
        if checksum(covered) != u64::from_le_bytes(*own) {
            return None;
        }
        let mut reader = Reader::new(covered);
        if reader.array()? != MAGIC || reader.u16()? != VERSION {
            return None;
        }
        let set_guid = reader.guid()?;
        let position = WalPosition::from_stored(reader.array()?);
        let is_tied = reader.u8()? == 1;
        let next = (reader.u64()?, reader.u64()?);
        let mut changed = Self {
            set_guid,
            position,
            next: is_tied.then_some(next),
            low_bytes: reader.u64()?,
            extents: Vec::new(),
        };
        while !reader.is_empty() {
            let run = reader.u64()?..reader.u64()?;
            if run.start >= run.end || run.end > EXTENTS_MAX {
                return None;
            }
            let words = usize::try_from(run.end.div_ceil(64)).ok()?;
            if changed.extents.len() < words {
                changed.extents.resize(words, 0);
            }
            for extent in run {
                changed.extents[(extent / 64) as usize] |= 1 << (extent % 64);
            }
        }
        Some(changed)
    }
}

/// The numbers of the pages in a record.
fn add_numbers(records: &mut Records, found: &Found, pages: &mut Vec<u32>) -> Result<(), Error> {
    let body = records.body(found)?;
    let parsed = match found.head.kind {
        Kind::Parts => {
            Parts::parse(body).map(|parsed| pages.extend(parsed.each().map(|parts| parts.number)))
        }
        _ => Pages::parse(body).map(|parsed| pages.extend(parsed.each().map(|(number, _)| number))),
    };
    parsed.ok_or_else(|| records.damaged_at(found, "pages cannot be read"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(extents: &[u64], low_bytes: u64) -> Changed {
        let mut changed = Changed {
            set_guid: Guid::from_stored([7; 16]),
            position: WalPosition::from_stored([3; 24]),
            next: Some((5, 6)),
            low_bytes,
            extents: Vec::new(),
        };
        changed.extents = vec![0; 3];
        for extent in extents {
            changed.extents[(extent / 64) as usize] |= 1 << (extent % 64);
        }
        changed
    }

    #[test]
    fn the_file_is_read_as_it_was_written_and_damage_is_no_answer() {
        let folder = tempfile::tempdir().unwrap();
        let written = changed(&[0, 1, 63, 64, 130], 300_000);
        let path = folder.path().join("changed.1");
        written.store(&path).unwrap();
        assert_eq!(Changed::load(&path).unwrap(), Some(written));
        let bytes = std::fs::read(&path).unwrap();
        for index in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[index] ^= 1;
            assert_eq!(Changed::parse(&damaged), None, "{index}");
        }
        forget(&path).unwrap();
        assert_eq!(Changed::load(&path).unwrap(), None);
    }

    #[test]
    fn what_lies_behind_the_shortest_length_counts_as_changed() {
        let extent = EXTENT_BYTES as u64;
        let ranges = changed(&[0, 1, 5, 9], 4 * extent + 100).ranges(8 * extent + 5);
        assert_eq!(ranges, [0..2 * extent, 4 * extent..8 * extent + 5]);
        let none = changed(&[], 1 << 20).ranges(1 << 20);
        assert!(none.is_empty());
        let shorter = changed(&[1], 2 * extent).ranges(extent + 7);
        let expected = extent..extent + 7;
        assert_eq!(shorter, vec![expected]);
    }
}
