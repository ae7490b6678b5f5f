//! Redo records: the content of a log group, and its encoding.
//!
//! Invariant: applying the records of the log in order, from a redo start on, gives each page its
//! last state, whichever state between redo start and end the page had on disk. A page that may be
//! torn has a whole image in the log before any byte ranges.

use super::Position;
use super::header::{Region, read_region, read_spec, write_region, write_spec};
use crate::options::FileSpec;
use windlass_base::Guid;
use windlass_base::bytes::{Reader, Writer};
use windlass_base::page::{PAGE_BYTES, PageNumber};

const PAGE_IMAGE: u8 = 1;
const PAGE_RANGES: u8 = 2;
const COMMIT: u8 = 3;
const CHECKPOINT: u8 = 4;
const MAP_PART: u8 = 5;
const LAYOUT: u8 = 6;
const DATA_FILE: u8 = 7;
const REGION: u8 = 8;
const MARK: u8 = 9;

/// Number of equal bytes between two changed ranges for which one longer range is cheaper than two.
const GAP_BYTES: usize = 8;

/// A record read from the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Record<'a> {
    /// The whole page; the bytes after `content` are zero.
    PageImage {
        page: PageNumber,
        /// Its bytes without trailing zeros.
        content: &'a [u8],
    },
    /// Byte ranges of a page: `(offset u16, length u16, bytes)` each.
    PageRanges {
        page: PageNumber,
        /// The ranges as stored, checked to be inside the page.
        ranges: &'a [u8],
    },
    /// End of a transaction.
    Commit {
        /// Number of pages of the database from here on.
        page_count: u32,
        /// Milliseconds since 1970, UTC.
        unix_ms: u64,
    },
    /// A checkpoint: everything before `redo` is in the data files. Parts of the map follow.
    Checkpoint {
        /// First position that recovery needs.
        redo: Position,
        /// Its identity, which the stamps of the data files repeat.
        identity: Guid,
    },
    /// The bytes of the differential map that are not zero.
    MapPart {
        /// Index of the first byte in the map.
        first: u32,
        bytes: &'a [u8],
    },
    /// From here on the database has the first so many of its data files and regions, and those that
    /// follow in the group.
    Layout { files: u16, regions: u16 },
    /// The next data file, as stored.
    DataFile(&'a [u8]),
    /// The next region, as stored.
    Region(&'a [u8]),
    /// The mark of the transaction whose commit follows, as stored.
    Mark { name: &'a str, description: &'a str },
}

/// The name and description of a marked transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    name: String,
    description: String,
}

impl Mark {
    /// Most bytes of a name, and of a description: more than SQL Server's 128 and 255 characters can take.
    pub const BYTES_MAX: usize = 2048;

    /// `None` if there is no name, or if one of them is too long.
    pub fn new(name: &str, description: &str) -> Option<Self> {
        let fits = |text: &str| text.len() <= Self::BYTES_MAX;
        (!name.is_empty() && fits(name) && fits(description)).then(|| Self {
            name: name.to_owned(),
            description: description.to_owned(),
        })
    }
}

/// The encoded records of one group, before they are split into blocks.
#[derive(Debug, Default)]
pub(crate) struct Group {
    pub(crate) bytes: Vec<u8>,
    pub(crate) ends: Vec<usize>,
}

impl Group {
    fn record(&mut self, write: impl FnOnce(&mut Writer)) {
        let mut out = Writer(std::mem::take(&mut self.bytes));
        write(&mut out);
        self.bytes = out.0;
        self.ends.push(self.bytes.len());
    }

    pub(crate) fn page_image(&mut self, page: PageNumber, content: &[u8]) {
        let used = content.iter().rposition(|&byte| byte != 0);
        self.record(|out| {
            out.u8(PAGE_IMAGE);
            out.u32(page.sqlite());
            out.text(&content[..used.map_or(0, |last| last + 1)]);
        });
    }

    /// Logs the bytes in which `new` differs from `old`, or the whole page if they would take half of it
    /// or more. Returns false, and logs nothing, if they are equal.
    pub(crate) fn page_change(&mut self, page: PageNumber, old: &[u8], new: &[u8]) -> bool {
        let ranges = changed_ranges(old, new);
        let stored: usize = ranges.iter().map(|&(start, end)| 4 + end - start).sum();
        if ranges.is_empty() {
            return false;
        }
        if stored >= PAGE_BYTES / 2 {
            self.page_image(page, new);
            return true;
        }
        self.record(|out| {
            out.u8(PAGE_RANGES);
            out.u32(page.sqlite());
            out.u16(stored as u16);
            for (start, end) in ranges {
                out.u16(start as u16);
                out.text(&new[start..end]);
            }
        });
        true
    }

    /// The mark of the transaction whose commit is next.
    pub(crate) fn mark(&mut self, mark: &Mark) {
        self.record(|out| {
            out.u8(MARK);
            out.text(mark.name.as_bytes());
            out.text(mark.description.as_bytes());
        });
    }

    pub(crate) fn commit(&mut self, page_count: u32, unix_ms: u64) {
        self.record(|out| {
            out.u8(COMMIT);
            out.u32(page_count);
            out.u64(unix_ms);
        });
    }

    /// The first `files` data files and `regions` regions, and what was added to them.
    pub(crate) fn layout(
        &mut self,
        files: usize,
        regions: usize,
        added: Option<(&FileSpec, &Region)>,
    ) {
        self.record(|out| {
            out.u8(LAYOUT);
            out.u16(files as u16);
            out.u16(regions as u16);
        });
        let Some((spec, region)) = added else {
            return;
        };
        let mut stored = Writer::default();
        write_spec(&mut stored, spec);
        self.record(|out| {
            out.u8(DATA_FILE);
            out.text(&stored.0);
        });
        let mut stored = Writer::default();
        write_region(&mut stored, region);
        self.record(|out| {
            out.u8(REGION);
            out.text(&stored.0);
        });
    }

    pub(crate) fn checkpoint(&mut self, redo: Position, identity: Guid, map: &[u8]) {
        self.record(|out| {
            out.u8(CHECKPOINT);
            out.u64(redo.0);
            out.guid(identity);
        });
        for (index, part) in map.chunks(MAP_PART_BYTES).enumerate() {
            if part.iter().any(|&byte| byte != 0) {
                self.record(|out| {
                    out.u8(MAP_PART);
                    out.u32((index * MAP_PART_BYTES) as u32);
                    out.text(part);
                });
            }
        }
    }
}

/// Bytes of the differential map in one record.
pub(crate) const MAP_PART_BYTES: usize = 512;

fn changed_ranges(old: &[u8], new: &[u8]) -> Vec<(usize, usize)> {
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for (index, (before, after)) in old.chunks(8).zip(new.chunks(8)).enumerate() {
        if before == after {
            continue;
        }
        let base = index * 8;
        for offset in 0..after.len() {
            if before[offset] == after[offset] {
                continue;
            }
            match ranges.last_mut() {
                Some((_, end)) if base + offset <= *end + GAP_BYTES => *end = base + offset + 1,
                _ => ranges.push((base + offset, base + offset + 1)),
            }
        }
    }
    ranges
}

impl Record<'_> {
    /// The data file that the record adds.
    pub(crate) fn data_file(stored: &[u8]) -> Option<FileSpec> {
        read_spec(&mut Reader::new(stored))
    }

    /// The region that the record adds.
    pub(crate) fn region(stored: &[u8]) -> Option<Region> {
        read_region(&mut Reader::new(stored))
    }

    /// Applies the record to its page in `target`.
    pub(crate) fn apply_to(&self, target: &mut [u8]) {
        match *self {
            Self::PageImage { content, .. } => {
                target[..content.len()].copy_from_slice(content);
                target[content.len()..].fill(0);
            }
            Self::PageRanges { ranges, .. } => {
                let mut input = Reader::new(ranges);
                while let (Some(start), Some(bytes)) = (input.u16(), input.text()) {
                    let start = usize::from(start);
                    target[start..start + bytes.len()].copy_from_slice(bytes);
                }
            }
            _ => {}
        }
    }
}

/// Decodes the records of a block; ends with an inner `None` if something is invalid.
#[derive(Debug)]
pub(crate) struct Records<'a>(Reader<'a>);

impl<'a> Records<'a> {
    /// Over the bytes of a block after its header.
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(Reader::new(bytes))
    }

    fn parse(&mut self) -> Option<Record<'a>> {
        let input = &mut self.0;
        Some(match input.u8()? {
            PAGE_IMAGE => Record::PageImage {
                page: page_number(input)?,
                content: input.text().filter(|content| content.len() <= PAGE_BYTES)?,
            },
            PAGE_RANGES => Record::PageRanges {
                page: page_number(input)?,
                ranges: input.text().filter(|ranges| ranges_fit(ranges))?,
            },
            COMMIT => Record::Commit {
                page_count: input.u32()?,
                unix_ms: input.u64()?,
            },
            CHECKPOINT => Record::Checkpoint {
                redo: Position(input.u64()?),
                identity: input.guid()?,
            },
            MAP_PART => Record::MapPart {
                first: input.u32()?,
                bytes: input.text()?,
            },
            LAYOUT => Record::Layout {
                files: input.u16()?,
                regions: input.u16()?,
            },
            DATA_FILE => Record::DataFile(input.text()?),
            REGION => Record::Region(input.text()?),
            MARK => Record::Mark {
                name: str::from_utf8(input.text()?).ok()?,
                description: str::from_utf8(input.text()?).ok()?,
            },
            _ => return None,
        })
    }
}

fn page_number(input: &mut Reader<'_>) -> Option<PageNumber> {
    PageNumber::from_sqlite(input.u32()?)
}

fn ranges_fit(ranges: &[u8]) -> bool {
    let mut input = Reader::new(ranges);
    while !input.is_empty() {
        match (input.u16(), input.text()) {
            (Some(start), Some(bytes)) if usize::from(start) + bytes.len() <= PAGE_BYTES => {}
            _ => return false,
        }
    }
    true
}

impl<'a> Iterator for Records<'a> {
    /// Inner `None`: the bytes are not a valid record.
    type Item = Option<Record<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let record = self.parse();
        if record.is_none() {
            self.0 = Reader::new(&[]);
        }
        Some(record)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(number: u32) -> PageNumber {
        PageNumber::from_sqlite(number).unwrap()
    }

    #[test]
    fn ranges_turn_the_old_page_into_the_new_one() {
        let old = vec![3; PAGE_BYTES];
        let mut new = old.clone();
        new[0] = 1;
        new[5] = 2;
        new[4000..4100].fill(9);
        new[PAGE_BYTES - 1] = 8;
        let mut group = Group::default();
        assert!(group.page_change(page(7), &old, &new));
        assert!(!group.page_change(page(7), &new, &new));
        group.page_image(page(8), &[0; PAGE_BYTES]);
        group.mark(&Mark::new("begin", "").unwrap());
        group.commit(8, 1);
        assert!(group.bytes.len() < 200, "{}", group.bytes.len());
        let records: Vec<_> = Records::new(&group.bytes).map(Option::unwrap).collect();
        let mut page = old;
        records[0].apply_to(&mut page);
        assert_eq!(page, new);
        records[1].apply_to(&mut page);
        assert_eq!(page, vec![0; PAGE_BYTES]);
        let mark = Record::Mark {
            name: "begin",
            description: "",
        };
        assert_eq!(records[2], mark);
        assert_eq!(
            records[3],
            Record::Commit {
                page_count: 8,
                unix_ms: 1
            }
        );
    }

    #[test]
    fn hostile_records_end_the_walk() {
        let outside = [&[PAGE_RANGES, 1, 0, 0, 0, 5, 0][..], &[0xFF, 0x1F, 1, 0, 7]].concat();
        assert_eq!(
            Records::new(&outside).next().flatten(),
            Some(Record::PageRanges {
                page: page(1),
                ranges: &[0xFF, 0x1F, 1, 0, 7]
            })
        );
        let outside = [
            &[PAGE_RANGES, 1, 0, 0, 0, 6, 0][..],
            &[0xFF, 0x1F, 2, 0, 7, 7],
        ]
        .concat();
        assert_eq!(Records::new(&outside).collect::<Vec<_>>(), [None]);
        let no_page = [PAGE_RANGES, 0, 0, 0, 0, 5, 0, 0xFF, 0x1F, 1, 0, 7];
        assert_eq!(Records::new(&no_page).collect::<Vec<_>>(), [None]);
        assert_eq!(Records::new(&[99]).collect::<Vec<_>>(), [None]);
        let no_text = [MARK, 1, 0, 0xFF, 0, 0];
        assert_eq!(Records::new(&no_text).collect::<Vec<_>>(), [None]);
        assert_eq!(Mark::new("", "x"), None);
        assert_eq!(Mark::new(&"x".repeat(Mark::BYTES_MAX + 1), ""), None);
    }
}
