//! The records of a spool.

use windlass_base::bytes::{Reader, Writer};
use windlass_base::{Guid, checksum};
use windlass_media::WalPosition;

/// First bytes of every record.
pub(super) const MAGIC: [u8; 4] = *b"WSPR";

/// Longest body: pages of 1 MB with their numbers, or the commits of a long moment.
pub(crate) const BODY_BYTES_MAX: usize = 16 << 20;

/// What a record is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    /// The first record of a segment.
    Segment = 1,
    /// The state from which on commits are captured.
    Start = 2,
    /// Pages that the next moment changed.
    Pages = 3,
    /// A state that can be restored.
    Moment = 4,
    /// Commits may have been missed.
    Gap = 5,
    /// Nothing new was committed until then.
    Seen = 6,
    /// The clock was changed.
    Clock = 7,
    /// Parts of pages that the next moment changed.
    Parts = 8,
}

impl Kind {
    fn of(id: u8) -> Option<Self> {
        [
            Self::Segment,
            Self::Start,
            Self::Pages,
            Self::Moment,
            Self::Gap,
            Self::Seen,
            Self::Clock,
            Self::Parts,
        ]
        .into_iter()
        .find(|kind| *kind as u8 == id)
    }

    /// Whether it counts only with the moment behind it.
    pub(crate) fn has_pages(self) -> bool {
        matches!(self, Self::Pages | Self::Parts)
    }
}

/// The head of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) kind: Kind,
    /// Algorithm of the body, as in chunk headers.
    pub(crate) algorithm: u8,
    /// Filter of the body, as in chunk headers.
    pub(crate) filter: u16,
    /// Ascending through all segments.
    pub(crate) sequence: u64,
    pub(crate) stored_bytes: u32,
    pub(crate) raw_bytes: u32,
    /// The head's checksum of the record before it.
    pub(crate) previous: u64,
    pub(crate) body_checksum: u64,
}

impl Head {
    pub(crate) const BYTES: usize = 48;

    /// The stored form, and its checksum.
    pub(crate) fn to_stored(self) -> (Vec<u8>, u64) {
        let mut out = Writer::default();
        out.bytes(&MAGIC);
        out.u8(self.kind as u8);
        out.u8(self.algorithm);
        out.u16(self.filter);
        out.u64(self.sequence);
        out.u32(self.stored_bytes);
        out.u32(self.raw_bytes);
        out.u64(self.previous);
        out.u64(self.body_checksum);
        let own = checksum(&out.0);
        out.u64(own);
        (out.0, own)
    }

    /// `None` if the bytes are no head, or its checksum is wrong.
    pub(crate) fn parse(bytes: &[u8; Self::BYTES]) -> Option<(Self, u64)> {
        if !bytes.starts_with(&MAGIC) {
            return None;
        }
        let (covered, own) = bytes.split_last_chunk::<8>()?;
        let own = u64::from_le_bytes(*own);
        if checksum(covered) != own {
            return None;
        }
        let mut reader = Reader::new(covered);
        reader.array::<4>()?;
        let head = Self {
            kind: Kind::of(reader.u8()?)?,
            algorithm: reader.u8()?,
            filter: reader.u16()?,
            sequence: reader.u64()?,
            stored_bytes: reader.u32()?,
            raw_bytes: reader.u32()?,
            previous: reader.u64()?,
            body_checksum: reader.u64()?,
        };
        let is_short = |bytes: u32| bytes as usize <= BODY_BYTES_MAX;
        (is_short(head.stored_bytes) && is_short(head.raw_bytes)).then_some((head, own))
    }
}

/// The body of a segment's first record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) version: u16,
    pub(crate) spool_guid: Guid,
    pub(crate) number: u32,
    pub(crate) time_us: u64,
    /// Path of the database.
    pub(crate) database: String,
    pub(crate) state: State,
}

/// Where a spool is: what a new segment and a follower continue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct State {
    pub(crate) position: WalPosition,
    pub(crate) time_us: u64,
    /// Commits captured so far.
    pub(crate) commit_number: u64,
    /// Identity of the database file.
    pub(crate) inode: u64,
}

/// Pages of a moment, and what they contain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pages<'a> {
    pub(crate) page_bytes: u32,
    numbers: &'a [u8],
    content: &'a [u8],
}

impl<'a> Pages<'a> {
    /// The body for these pages, whose content follows in the same order.
    pub(crate) fn begin(page_bytes: u32, numbers: &[u32]) -> Vec<u8> {
        let mut out = Writer::default();
        out.u32(page_bytes);
        out.u32(numbers.len() as u32);
        for number in numbers {
            out.u32(*number);
        }
        out.0
    }

    pub(crate) fn parse(body: &'a [u8]) -> Option<Self> {
        let mut reader = Reader::new(body);
        let page_bytes = reader.u32()?;
        let count = reader.u32()? as usize;
        let is_size = page_bytes.is_power_of_two() && (512..=65536).contains(&page_bytes);
        let numbers = reader.take(count.checked_mul(4)?)?;
        let content = reader.rest();
        let is_complete = content.len() == count.checked_mul(page_bytes as usize)?;
        (is_size && is_complete).then_some(Self {
            page_bytes,
            numbers,
            content,
        })
    }

    /// Numbers from 1, and content.
    pub(crate) fn each(&self) -> impl Iterator<Item = (u32, &'a [u8])> {
        let (numbers, _) = self.numbers.as_chunks::<4>();
        let numbers = numbers.iter().map(|number| u32::from_le_bytes(*number));
        numbers.zip(self.content.chunks_exact(self.page_bytes as usize))
    }
}

/// A commit within a generation of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Commit {
    pub(crate) frame: u32,
    pub(crate) checksum: [u32; 2],
}

/// The commits of a moment in one generation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) salt: [u8; 8],
    /// Whether the span has the first frames of the generation.
    pub(crate) is_begin: bool,
    /// Ascending.
    pub(crate) commits: Vec<Commit>,
}

/// A state that can be restored: the pages before it, and these numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Moment {
    /// No commit in it is later.
    pub(crate) time_us: u64,
    pub(crate) from: WalPosition,
    pub(crate) to: WalPosition,
    pub(crate) page_bytes: u32,
    /// Pages of the database.
    pub(crate) page_count: u32,
    /// Number of its last commit in the spool.
    pub(crate) commit_number: u64,
    /// How many records of pages belong to it.
    pub(crate) records: u32,
    pub(crate) spans: Vec<Span>,
}

impl Moment {
    pub(crate) fn commits(&self) -> u64 {
        self.spans
            .iter()
            .map(|span| span.commits.len() as u64)
            .sum()
    }

    /// Whether the state at `position` is before this moment, and all pages that changed since are in it; or is this
    /// moment.
    pub(crate) fn covers(&self, position: &WalPosition) -> bool {
        self.from.is_same_content(position)
            || self.to.is_same_content(position)
            || self.spans.iter().any(|span| span.has(position))
    }

    pub(crate) fn store(&self) -> Vec<u8> {
        let mut out = Writer::default();
        out.u64(self.time_us);
        out.bytes(&self.from.to_stored());
        out.bytes(&self.to.to_stored());
        out.u32(self.page_bytes);
        out.u32(self.page_count);
        out.u64(self.commit_number);
        out.u32(self.records);
        out.u16(self.spans.len() as u16);
        for span in &self.spans {
            out.bytes(&span.salt);
            out.u8(u8::from(span.is_begin));
            out.u32(span.commits.len() as u32);
            for commit in &span.commits {
                out.u32(commit.frame);
                out.u32(commit.checksum[0]);
                out.u32(commit.checksum[1]);
            }
        }
        out.0
    }

    pub(crate) fn parse(body: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(body);
        let mut moment = Self {
            time_us: reader.u64()?,
            from: WalPosition::from_stored(reader.array()?),
            to: WalPosition::from_stored(reader.array()?),
            page_bytes: reader.u32()?,
            page_count: reader.u32()?,
            commit_number: reader.u64()?,
            records: reader.u32()?,
            spans: Vec::new(),
        };
        for _ in 0..reader.u16()? {
            moment.spans.push(Span::parse(&mut reader)?);
        }
        let is_size =
            moment.page_bytes.is_power_of_two() && (512..=65536).contains(&moment.page_bytes);
        (reader.is_empty() && is_size).then_some(moment)
    }
}

impl Span {
    fn parse(reader: &mut Reader<'_>) -> Option<Self> {
        let salt = reader.array()?;
        let is_begin = match reader.u8()? {
            0 => false,
            1 => true,
            _ => return None,
        };
        let count = reader.u32()? as usize;
        let mut bytes = Reader::new(reader.take(count.checked_mul(12)?)?);
        let mut commits = Vec::with_capacity(count);
        while !bytes.is_empty() {
            commits.push(Commit {
                frame: bytes.u32()?,
                checksum: [bytes.u32()?, bytes.u32()?],
            });
        }
        Some(Self {
            salt,
            is_begin,
            commits,
        })
    }

    fn has(&self, position: &WalPosition) -> bool {
        if self.salt != position.salt {
            // Of a generation without a commit, which the follower did not see.
            let last = self.commits.last();
            return last.is_some_and(|commit| position.keeps(commit.checksum));
        }
        if position.frame == 0 {
            return self.is_begin;
        }
        let found = (self.commits).binary_search_by_key(&position.frame, |commit| commit.frame);
        found.is_ok_and(|index| self.commits[index].checksum == position.checksum)
    }
}

/// Commits that may have been missed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Gap {
    /// Until then everything was captured.
    pub(crate) from_us: u64,
    /// From then on everything is captured again.
    pub(crate) to_us: u64,
    pub(crate) from: WalPosition,
    pub(crate) to: WalPosition,
    /// The identity of the database file from then on.
    pub(crate) inode: u64,
    pub(crate) reason: String,
}

impl Gap {
    pub(crate) fn store(&self) -> Vec<u8> {
        let mut out = Writer::default();
        out.u64(self.from_us);
        out.u64(self.to_us);
        out.bytes(&self.from.to_stored());
        out.bytes(&self.to.to_stored());
        out.u64(self.inode);
        out.text(self.reason.as_bytes());
        out.0
    }

    pub(crate) fn parse(body: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(body);
        let gap = Self {
            from_us: reader.u64()?,
            to_us: reader.u64()?,
            from: WalPosition::from_stored(reader.array()?),
            to: WalPosition::from_stored(reader.array()?),
            inode: reader.u64()?,
            reason: String::from_utf8_lossy(reader.text()?).into_owned(),
        };
        reader.is_empty().then_some(gap)
    }
}

/// Times that are not unique, or not right, because the clock was changed: from the earlier of its two readings to the
/// later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ClockChange {
    pub(crate) from_us: u64,
    pub(crate) to_us: u64,
}

impl ClockChange {
    pub(crate) fn store(self) -> Vec<u8> {
        let mut out = Writer::default();
        out.u64(self.from_us);
        out.u64(self.to_us);
        out.0
    }

    pub(crate) fn parse(body: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(body);
        let change = Self {
            from_us: reader.u64()?,
            to_us: reader.u64()?,
        };
        (reader.is_empty() && change.from_us <= change.to_us).then_some(change)
    }

    /// Whether it cannot be told which state this time means.
    pub(crate) fn has(self, time_us: u64) -> bool {
        self.from_us < time_us && time_us <= self.to_us
    }
}

impl State {
    pub(crate) fn store(&self, out: &mut Writer) {
        out.bytes(&self.position.to_stored());
        out.u64(self.time_us);
        out.u64(self.commit_number);
        out.u64(self.inode);
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Option<Self> {
        Some(Self {
            position: WalPosition::from_stored(reader.array()?),
            time_us: reader.u64()?,
            commit_number: reader.u64()?,
            inode: reader.u64()?,
        })
    }

    /// The body of a start, or of what was seen.
    pub(crate) fn parse(body: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(body);
        let state = Self::read(&mut reader)?;
        reader.is_empty().then_some(state)
    }
}

impl Segment {
    pub(crate) fn store(&self) -> Vec<u8> {
        let mut out = Writer::default();
        out.u16(self.version);
        out.guid(self.spool_guid);
        out.u32(self.number);
        out.u64(self.time_us);
        self.state.store(&mut out);
        out.text(self.database.as_bytes());
        out.0
    }

    /// `Err` has the version, if it is not known.
    pub(crate) fn parse(body: &[u8]) -> Option<Result<Self, u16>> {
        let mut reader = Reader::new(body);
        let version = reader.u16()?;
        if !(1..=super::VERSION).contains(&version) {
            return Some(Err(version));
        }
        let segment = Self {
            version,
            spool_guid: reader.guid()?,
            number: reader.u32()?,
            time_us: reader.u64()?,
            state: State::read(&mut reader)?,
            database: String::from_utf8_lossy(reader.text()?).into_owned(),
        };
        reader.is_empty().then_some(Ok(segment))
    }
}
