//! Finds the sets of a family, and the end of its intact part.
//!
//! Normally the last block is the filemark after the last set, and its list leads to the ends of
//! all sets: only a few blocks are read, whatever the family contains. If the last block is not
//! such a filemark, an append was interrupted or something was damaged. Then the last good filemark
//! between sets is searched for, first by walking forward from set to set and, if a walk meets
//! damage, block by block from the end: a set after a damaged one must not be taken for free space.

use crate::configuration::SetConfiguration;
use crate::cursor::require_at_most;
use crate::error::{MediaError, ReadError};
use crate::filemark::{Filemark, capacity};
use crate::mtf::Id;
use crate::reader::{FamilyReader, read_start};
use crate::set_blocks::SetEnd;
use crate::streams::{ReadAt, read_exact};
use crate::writer::AppendPosition;

/// Bytes per read while searching for filemarks from the end.
const SCAN_BYTES: u64 = 1 << 20;

/// Minimum number of bad filemarks that are skipped to reach those that no good one lists.
const PASSED_OVER_MAX: usize = 1024;

/// A set found on a family.
#[derive(Debug, Clone)]
pub struct SetListing {
    /// The final configuration; the one from the start if the set is incomplete or its end is
    /// damaged; only the position if both are. Of the list of files, which may be long, only the first: see
    /// [`FamilyReader::configuration`].
    pub configuration: SetConfiguration,
    /// Family offset of its first block.
    pub offset: u64,
    /// Its end; `None` if it was never finished or is damaged.
    pub end: Option<SetEnd>,
    /// Family offset after its last filemark; nothing of the set is read beyond it.
    limit: u64,
}

/// The sets of a family.
#[derive(Debug)]
pub struct Listing {
    /// In the order of their positions, from 1.
    pub sets: Vec<SetListing>,
    /// The first problem found, except inside of sets, which only [`FamilyReader::walk`] checks. A
    /// truncation, or a problem after the last complete set, comes from an interrupted append.
    pub trouble: Option<MediaError>,
    /// Filemarks up to the last kept set, in order: one after the header, two per set.
    filemarks: Vec<u64>,
    /// Whether the last of them is bad although the set before it is good.
    needs_filemark: bool,
    /// Whether the family ends with the filemark after its last set.
    is_closed: bool,
    block_bytes: u32,
}

/// The end of the trusted part.
struct Rest {
    mark: Filemark,
    /// A set after it with a good end but a bad last filemark: the filemarks of its data and of its
    /// end.
    unclosed: Option<[u64; 2]>,
    trouble: Option<MediaError>,
}

impl Listing {
    /// Number of finished sets. Whether one was damaged later shows in its end or in a walk; an
    /// append keeps it in any case.
    pub fn complete_sets(&self) -> u16 {
        (self.filemarks.len().saturating_sub(1) / 2) as u16
    }

    /// Whether the family is cut off within the filemark behind its last set, which is complete.
    pub fn lacks_filemark(&self) -> bool {
        let is_cut = self.trouble.as_ref().is_some_and(MediaError::is_truncation);
        self.needs_filemark && is_cut
    }

    /// Whether no set can follow the last one unseen, whatever is damaged before it.
    pub fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Where to append after the first `sets` finished sets.
    pub fn append_position(&self, sets: u16) -> AppendPosition {
        let kept = self.complete_sets();
        let sets = sets.min(kept);
        let marks = self.filemarks.get(..=2 * usize::from(sets));
        let mut filemarks: Vec<u64> = marks.unwrap_or_default().iter().rev().copied().collect();
        let needs_filemark = self.needs_filemark && sets == kept;
        let last = filemarks.first().copied().unwrap_or(0);
        let mut offset = last + u64::from(self.block_bytes);
        if needs_filemark {
            offset = last;
            filemarks.remove(0);
        }
        AppendPosition {
            offset,
            sets,
            filemarks,
            needs_filemark,
        }
    }

    pub(crate) fn of(reader: &FamilyReader<'_>) -> Self {
        let mut listing = Self {
            sets: Vec::new(),
            trouble: None,
            filemarks: vec![reader.first_filemark],
            needs_filemark: false,
            is_closed: false,
            block_bytes: reader.identity.block_bytes,
        };
        let rest = Rest::find(reader);
        match chain(reader, &rest.mark) {
            Ok(filemarks) => listing.filemarks = filemarks,
            Err(trouble) => {
                listing.trouble = Some(trouble);
                return listing;
            }
        }
        let behind = rest.mark.offset + u64::from(listing.block_bytes);
        listing.is_closed = rest.unclosed.is_none() && behind == reader.family.len();
        if let Some(marks) = rest.unclosed {
            listing.filemarks.extend(marks);
            listing.needs_filemark = true;
        }
        for number in 1..=listing.complete_sets() {
            listing.add_set(reader, number);
        }
        listing.trouble = listing.trouble.or(rest.trouble);
        listing.add_unfinished(reader);
        listing
    }

    /// Adds the set between two known filemarks.
    fn add_set(&mut self, reader: &FamilyReader<'_>, number: u16) {
        let block = u64::from(self.block_bytes);
        let index = 2 * (usize::from(number) - 1);
        let Some(&[before, between, behind]) = self.filemarks.get(index..index + 3) else {
            return;
        };
        let offset = before + block;
        // A set ends at its filemarks, so no byte is read for two sets.
        let (data, end) = (UpTo::new(reader, between), UpTo::new(reader, behind));
        let set = reader.read_listing(offset, (&data, &end), between + block, number);
        let mut set = set.unwrap_or_else(|trouble| {
            self.trouble.get_or_insert(crosses_filemark(trouble));
            let start = read_start(&data, offset).ok();
            let start = start.filter(|start| start.position == number);
            SetListing::of(
                start.unwrap_or_else(|| SetConfiguration {
                    position: number,
                    ..SetConfiguration::default()
                }),
                offset,
                None,
            )
        });
        set.limit = behind + block;
        self.sets.push(set);
    }

    /// Adds the set after the last filemark, if enough of it exists to identify it.
    fn add_unfinished(&mut self, reader: &FamilyReader<'_>) {
        let block = u64::from(self.block_bytes);
        let offset = self.filemarks.last().map_or(0, |last| last + block);
        let number = self.sets.len() as u16 + 1;
        if let Ok(configuration) = read_start(reader.family, offset)
            && configuration.position == number
        {
            self.sets.push(SetListing::of(configuration, offset, None));
        }
    }
}

impl SetListing {
    pub(crate) fn of(
        mut configuration: SetConfiguration,
        offset: u64,
        end: Option<SetEnd>,
    ) -> Self {
        configuration.files.truncate(1);
        configuration.files.shrink_to_fit();
        Self {
            configuration,
            offset,
            end,
            limit: u64::MAX,
        }
    }

    /// The part of the family that can contain the set.
    pub(crate) fn part<'a>(&self, reader: &FamilyReader<'a>) -> UpTo<'a> {
        UpTo::new(reader, self.limit)
    }
}

/// A family truncated at a filemark.
pub(crate) struct UpTo<'a> {
    family: &'a dyn ReadAt,
    end: u64,
}

impl<'a> UpTo<'a> {
    fn new(reader: &FamilyReader<'a>, end: u64) -> Self {
        let family = reader.family;
        Self {
            family,
            end: end.min(family.len()),
        }
    }
}

impl ReadAt for UpTo<'_> {
    fn len(&self) -> u64 {
        self.end
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), ReadError> {
        self.family.read_at(offset, buffer)
    }
}

/// A structure that would cross a filemark is damaged; the family is not truncated there.
pub(crate) fn crosses_filemark(trouble: MediaError) -> MediaError {
    match trouble {
        MediaError::Truncated {
            offset,
            what,
            needed,
            available,
        } => MediaError::Damaged {
            offset,
            what,
            expected: available,
            found: needed,
        },
        other => other,
    }
}

impl Rest {
    /// The last good filemark between sets.
    fn find(reader: &FamilyReader<'_>) -> Self {
        let block = u64::from(reader.identity.block_bytes);
        let first = Filemark::read(reader.family, reader.first_filemark, &reader.identity);
        let first_trouble = first.err();
        let last = reader.family.len().saturating_sub(block);
        if let Ok(mark) = Filemark::read(reader.family, last, &reader.identity)
            && mark.is_between_sets()
        {
            return Self {
                mark,
                unclosed: None,
                trouble: first_trouble,
            };
        }
        let mut rest = Self {
            mark: Filemark {
                offset: reader.first_filemark,
                number: Filemark::number_behind(0),
                earlier: Vec::new(),
            },
            unclosed: None,
            trouble: None,
        };
        rest.advance(reader);
        rest.trouble = first_trouble.or(rest.trouble);
        rest
    }

    /// Advances, from set to set and over damage, to the last good filemark between sets.
    fn advance(&mut self, reader: &FamilyReader<'_>) {
        let block = u64::from(reader.identity.block_bytes);
        loop {
            let offset = self.mark.offset + block;
            if offset == reader.family.len() {
                return;
            }
            let number = self.mark.sets().saturating_add(1);
            let (trouble, unclosed) = match step(reader, offset, number) {
                Step::Closed(mark) => {
                    self.mark = mark;
                    continue;
                }
                Step::Unclosed(trouble, marks) => (trouble, Some(marks)),
                Step::Bad(trouble) => (trouble, None),
            };
            // A walk to the end of the family shows that nothing follows.
            if !trouble.is_truncation()
                && let Some(mark) = scan_back(reader, offset)
            {
                self.mark = mark;
                continue;
            }
            self.trouble = Some(trouble);
            self.unclosed = unclosed;
            return;
        }
    }
}

/// Result of walking the set after a filemark.
enum Step {
    /// The filemark after the set.
    Closed(Filemark),
    /// The set is good, but not the filemark after it; with the filemarks of its data and of its
    /// end.
    Unclosed(MediaError, [u64; 2]),
    Bad(MediaError),
}

fn step(reader: &FamilyReader<'_>, offset: u64, number: u16) -> Step {
    let walked = match reader.walk_at(offset, number, &mut |_, _| true) {
        Ok(walked) => walked,
        Err(trouble) => return Step::Bad(trouble),
    };
    if let Some(trouble) = walked.end_trouble {
        return Step::Unclosed(trouble, [walked.data_filemark, walked.end_filemark]);
    }
    match Filemark::read(reader.family, walked.end_filemark, &reader.identity) {
        Ok(mark) => Step::Closed(mark),
        Err(trouble) => Step::Bad(trouble),
    }
}

/// The last good filemark between sets from `from` on, searched block by block from the end.
fn scan_back(reader: &FamilyReader<'_>, from: u64) -> Option<Filemark> {
    let block = u64::from(reader.identity.block_bytes);
    let mut buffer = vec![0; SCAN_BYTES as usize];
    let mut end = reader.family.len() / block * block;
    while end > from {
        let begin = end.saturating_sub(SCAN_BYTES).max(from);
        let window = buffer.get_mut(..(end - begin) as usize).unwrap_or_default();
        // Unreadable blocks contain no good filemark.
        if read_exact(reader.family, begin, window, "soft filemark").is_ok() {
            let mut at = end;
            for candidate in window.chunks_exact(block as usize).rev() {
                at -= block;
                if candidate.starts_with(&Id::SFMB.0)
                    && let Ok(mark) = Filemark::parse(candidate, at, &reader.identity)
                    && mark.is_between_sets()
                {
                    return Some(mark);
                }
            }
        }
        end = begin;
    }
    None
}

/// The offsets of all filemarks up to `last`, in order.
///
/// Filemarks that `last` does not list are found through older ones. A bad one is skipped if
/// another lists what it would have listed, as long as most of them are good.
fn chain(reader: &FamilyReader<'_>, last: &Filemark) -> Result<Vec<u64>, MediaError> {
    let maximum = u64::from(Filemark::number_behind(u16::MAX));
    require_at_most(
        last.number.into(),
        maximum,
        "number of a filemark",
        last.offset,
    )?;
    let wanted = last.number as usize;
    let listed_at_most = capacity(reader.identity.block_bytes);
    let mut reads_left = 2 * (wanted / listed_at_most) + (2 * listed_at_most).min(PASSED_OVER_MAX);
    let mut marks = vec![last.offset];
    marks.extend(&last.earlier);
    let mut listed = 0;
    while marks.len() < wanted {
        let candidates = marks.iter().enumerate().skip(listed + 1).rev();
        let mut older = candidates.filter_map(|(index, &offset)| {
            reads_left = reads_left.checked_sub(1)?;
            let mark = Filemark::read(reader.family, offset, &reader.identity).ok()?;
            (mark.number as usize == wanted - index).then_some((index, mark))
        });
        let Some((index, mark)) = older.next() else {
            break;
        };
        marks.truncate(index + 1);
        marks.extend(&mark.earlier);
        listed = index;
    }
    let first = marks.last().copied().unwrap_or(0);
    if marks.len() != wanted || first != reader.first_filemark {
        return Err(MediaError::Damaged {
            offset: last.offset,
            what: "chain of filemarks",
            expected: wanted as u64,
            found: marks.len() as u64,
        });
    }
    marks.reverse();
    Ok(marks)
}
