//! The reader of spools, fed with arbitrary bytes.
//!
//! Checksums and the chain of records stop a fuzzer at its first change. So all of them are corrected first, if the
//! first byte wants that.

use std::path::Path;
use std::sync::OnceLock;

use windlass_base::checksum;

use super::parts::Parts;
use super::range::{Stop, find, list};
use super::reader::{Found, Records, last};
use super::record::{Head, Kind, MAGIC, Pages};
use crate::Error;

/// Where the fields of a head are that are corrected.
const SEQUENCE: usize = 8;
const STORED_BYTES: usize = 16;
const PREVIOUS: usize = 24;
const BODY_CHECKSUM: usize = 32;
const CHECKSUM: usize = 40;

/// States that are looked for in one spool.
const STATES_MAX: usize = 8;

/// Reads `data` as a spool in all ways in which one is read. Must neither panic nor take unbounded time.
///
/// Bytes that begin like a record are one segment, read unchanged and then corrected. Otherwise the first byte says
/// whether to correct, and whether to divide the rest into two segments, at the place that the next two say.
///
/// # Panics
/// If the temporary folder cannot be written.
pub fn fuzz_spool(data: &[u8]) {
    if data.starts_with(&MAGIC) {
        read_everything(&[data]);
        let mut corrected = data.to_vec();
        correct(&mut corrected, (0, 0));
        return read_everything(&[&corrected]);
    }
    let [mode, low, high, rest @ ..] = data else {
        return;
    };
    let at = usize::from(u16::from_le_bytes([*low, *high])).min(rest.len());
    let at = if mode & 2 == 0 { rest.len() } else { at };
    let (one, other) = rest.split_at(at);
    let (mut one, mut other) = (one.to_vec(), other.to_vec());
    if mode & 1 != 0 {
        let chain = correct(&mut one, (0, 0));
        correct(&mut other, chain);
    }
    match other.is_empty() {
        true => read_everything(&[&one]),
        false => read_everything(&[&one, &other]),
    }
}

/// Corrects the records in `segment`; the sequence number and checksum that the next segment continues.
fn correct(segment: &mut [u8], mut chain: (u64, u64)) -> (u64, u64) {
    let mut at = 0;
    while segment.len() - at >= Head::BYTES {
        let (head, behind) = segment[at..].split_at_mut(Head::BYTES);
        let stored = u32_at(head, STORED_BYTES) as usize;
        let stored = stored.min(behind.len());
        head[..MAGIC.len()].copy_from_slice(&MAGIC);
        head[STORED_BYTES..][..4].copy_from_slice(&(stored as u32).to_le_bytes());
        for (place, value) in [
            (SEQUENCE, chain.0),
            (PREVIOUS, chain.1),
            (BODY_CHECKSUM, checksum(&behind[..stored])),
        ] {
            head[place..][..8].copy_from_slice(&value.to_le_bytes());
        }
        let own = checksum(&head[..CHECKSUM]);
        head[CHECKSUM..].copy_from_slice(&own.to_le_bytes());
        chain = (chain.0.wrapping_add(1), own);
        at += Head::BYTES + stored;
    }
    chain
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes[at..]
        .first_chunk()
        .map_or(0, |bytes| u32::from_le_bytes(*bytes))
}

/// A folder for the segments, one for each process.
fn folder() -> &'static Path {
    static FOLDER: OnceLock<std::path::PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let name = format!("windlass-spool-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).expect("a temporary folder");
        folder
    })
}

fn read_everything(segments: &[&[u8]]) {
    let folder = folder();
    for number in 1..=2 {
        let path = folder.join(format!("{number:08}{}", super::SEGMENT_SUFFIX));
        match segments.get(number - 1) {
            Some(segment) => std::fs::write(&path, segment).expect("a segment"),
            None => drop(std::fs::remove_file(&path)),
        }
    }
    let joined = folder.join("joined");
    std::fs::write(&joined, segments.concat()).expect("joined segments");
    // Whether these succeed does not matter, only that they return soon.
    let mut states = Vec::new();
    for records in [Records::open(folder), Ok(Records::joined(joined))] {
        drop(records.and_then(|mut records| walk(&mut records, &mut states)));
    }
    drop(list(folder));
    drop(last(folder));
    for (position, time_us, commit) in states {
        for stop in [Stop::Latest, Stop::Time(time_us), Stop::Commit(commit)] {
            let reach = find(folder, &position, stop);
            let first = reach.ok().and_then(|reach| reach.records);
            if let (Some((first, _)), Ok(mut records)) = (first, Records::open(folder)) {
                drop(records.go_back(&first).and_then(|()| records.next()));
            }
        }
    }
}

type States = Vec<(windlass_media::WalPosition, u64, u64)>;

fn walk(records: &mut Records, states: &mut States) -> Result<(), Error> {
    while let Some(found) = records.next()? {
        let state = state_of(records, &found)?;
        if states.len() < STATES_MAX {
            states.extend(state);
        }
    }
    Ok(())
}

fn state_of(
    records: &mut Records,
    found: &Found,
) -> Result<Option<(windlass_media::WalPosition, u64, u64)>, Error> {
    Ok(match found.head.kind {
        Kind::Pages => {
            let pages = Pages::parse(records.body(found)?).map(|pages| pages.each().count());
            assert!(pages.is_none_or(|count| count <= found.head.raw_bytes as usize));
            None
        }
        Kind::Parts => {
            if let Some(parts) = Parts::parse(records.body(found)?) {
                let mut page = vec![0; parts.page_bytes as usize];
                for page_parts in parts.each() {
                    page_parts.apply(&mut page);
                }
            }
            None
        }
        Kind::Clock => {
            let change = records.clock(found)?;
            assert!(!change.has(change.from_us));
            None
        }
        Kind::Moment => {
            let moment = records.moment(found)?;
            assert!(moment.covers(&moment.to) && moment.covers(&moment.from));
            Some((moment.to, moment.time_us, moment.commit_number))
        }
        Kind::Gap => {
            let gap = records.gap(found)?;
            Some((gap.to, gap.to_us, 0))
        }
        Kind::Start | Kind::Seen => {
            let state = records.state(found)?;
            Some((state.position, state.time_us, state.commit_number))
        }
        Kind::Segment => records.segment().map(|segment| {
            let state = segment.state;
            (state.position, state.time_us, state.commit_number)
        }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOLDEN: &[u8] = include_bytes!("golden/spool-1.wspool");
    /// One moment, with a whole page and parts of two.
    const GOLDEN_2: &[u8] = include_bytes!("golden/spool-2.wspool");

    #[test]
    fn spools_of_each_version_are_read_and_so_is_any_byte_of_them_changed() {
        for golden in [GOLDEN, GOLDEN_2] {
            let folder = tempfile::tempdir().unwrap();
            std::fs::write(folder.path().join("00000001.wspool"), golden).unwrap();
            let (listed, rest) = list(folder.path()).unwrap();
            assert_eq!((listed.len(), rest), (1, 0));
            fuzz_spool(golden);
            for at in (0..golden.len()).step_by(3) {
                for change in [1, 0x80, 0xFF] {
                    let mut bytes = golden.to_vec();
                    bytes[at] ^= change;
                    fuzz_spool(&bytes);
                    let split = [3, (at & 255) as u8, (at >> 8) as u8];
                    fuzz_spool(&[&split, bytes.as_slice()].concat());
                }
            }
        }
        std::fs::remove_dir_all(super::folder()).unwrap();
    }

    #[test]
    fn parts_of_pages_are_read_as_version_2_wrote_them() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("00000001.wspool"), GOLDEN_2).unwrap();
        let mut records = Records::open(folder.path()).unwrap();
        let mut found = Vec::new();
        while let Some(record) = records.next().unwrap() {
            if record.head.kind != Kind::Parts {
                continue;
            }
            let parts = Parts::parse(records.body(&record).unwrap()).unwrap();
            for page_parts in parts.each() {
                let mut page = [0x11; 512];
                assert!(page_parts.apply(&mut page), "{}", page_parts.number);
                let changed = (0..512).filter(|at| page[*at] != 0x11);
                found.push((page_parts.number, changed.collect::<Vec<_>>()));
            }
        }
        let second: Vec<usize> = (0..8).chain(504..512).collect();
        assert_eq!(found, [(2, second), (3, Vec::new())]);
    }

    #[test]
    fn corrected_records_are_read() {
        let mut bytes = GOLDEN.to_vec();
        // The time of the first record's segment: only a checksum says that it is wrong.
        bytes[Head::BYTES + 30] ^= 1;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("00000001.wspool");
        std::fs::write(&path, &bytes).unwrap();
        assert!(list(folder.path()).map_or(true, |(listed, _)| listed.is_empty()));
        correct(&mut bytes, (0, 0));
        std::fs::write(&path, &bytes).unwrap();
        assert_eq!(list(folder.path()).unwrap().0.len(), 1);
    }
}
