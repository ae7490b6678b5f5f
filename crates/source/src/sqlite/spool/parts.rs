//! Parts of pages: the bytes that a moment has touched, with the content that they have at its end.
//!
//! They can be written onto any state from the one before the moment to its last commit, because every byte that
//! differs between two of these states is among them. The checksum of the page says whether that was so.

use std::ops::Range;

use windlass_base::bytes::{Reader, Writer};
use windlass_base::checksum;

/// Bytes of a page's number, checksum and count of runs.
const PAGE_OVERHEAD: usize = 14;
/// Bytes of a run's offset and length.
const RUN_OVERHEAD: usize = 4;

/// Collects the parts of pages of one record.
#[derive(Debug, Default)]
pub(crate) struct PartsBuilder {
    numbers: Vec<u32>,
    checksums: Vec<u64>,
    counts: Vec<u16>,
    runs: Vec<(u16, u16)>,
    bytes: Vec<u8>,
}

impl PartsBuilder {
    /// Adds a page by its number, from 1: `runs` of its content, ascending and apart, none empty.
    pub(crate) fn add(
        &mut self,
        number: u32,
        content: &[u8],
        runs: impl Iterator<Item = Range<usize>>,
    ) {
        let before = self.runs.len();
        for run in runs {
            let bytes = &content[run.clone()];
            // A page has at most 65,536 bytes, and a run at least one.
            self.runs.push((run.start as u16, (bytes.len() - 1) as u16));
            self.bytes.extend_from_slice(bytes);
        }
        self.numbers.push(number);
        self.checksums.push(checksum(content));
        self.counts.push((self.runs.len() - before) as u16);
    }

    /// Length of the body, but for its first fields.
    pub(crate) fn raw_bytes(&self) -> usize {
        self.numbers.len() * PAGE_OVERHEAD + self.runs.len() * RUN_OVERHEAD + self.bytes.len()
    }

    /// The body; nothing is left here.
    pub(crate) fn take(&mut self, page_bytes: u32) -> Vec<u8> {
        let mut out = Writer::default();
        out.u32(page_bytes);
        out.u32(self.numbers.len() as u32);
        self.numbers.drain(..).for_each(|number| out.u32(number));
        self.checksums.drain(..).for_each(|own| out.u64(own));
        self.counts.drain(..).for_each(|count| out.u16(count));
        for (offset, length) in self.runs.drain(..) {
            out.u16(offset);
            out.u16(length);
        }
        out.bytes(&self.bytes);
        self.bytes.clear();
        out.0
    }
}

/// Parts of pages of a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Parts<'a> {
    pub(crate) page_bytes: u32,
    numbers: &'a [u8],
    checksums: &'a [u8],
    counts: &'a [u8],
    runs: &'a [u8],
    bytes: &'a [u8],
}

/// The parts of one page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PageParts<'a> {
    /// From 1.
    pub(crate) number: u32,
    /// Of the whole page at the end of the moment.
    checksum: u64,
    runs: &'a [u8],
    bytes: &'a [u8],
}

impl<'a> Parts<'a> {
    /// `None` unless every run is within its page, behind the one before it, and has all of its bytes.
    pub(crate) fn parse(body: &'a [u8]) -> Option<Self> {
        let mut reader = Reader::new(body);
        let page_bytes = reader.u32()?;
        let count = reader.u32()? as usize;
        let is_size = page_bytes.is_power_of_two() && (512..=65536).contains(&page_bytes);
        let numbers = reader.take(count.checked_mul(4)?)?;
        let checksums = reader.take(count.checked_mul(8)?)?;
        let counts = reader.take(count.checked_mul(2)?)?;
        let run_count: usize = counts_of(counts).sum();
        let runs = reader.take(run_count * RUN_OVERHEAD)?;
        let parts = Self {
            page_bytes,
            numbers,
            checksums,
            counts,
            runs,
            bytes: reader.rest(),
        };
        (is_size && parts.is_sound()).then_some(parts)
    }

    fn is_sound(&self) -> bool {
        let mut rest = self.runs;
        let mut bytes = 0;
        for count in counts_of(self.counts) {
            let Some((runs, behind)) = rest.split_at_checked(count * RUN_OVERHEAD) else {
                return false;
            };
            rest = behind;
            let mut end = 0;
            for run in runs_of(runs) {
                if run.start < end || run.end > self.page_bytes as usize {
                    return false;
                }
                end = run.end;
                bytes += run.len();
            }
        }
        bytes == self.bytes.len()
    }

    /// The pages, in the order of the record.
    pub(crate) fn each(&self) -> impl Iterator<Item = PageParts<'a>> {
        let (mut runs, mut bytes) = (self.runs, self.bytes);
        let numbers = self.numbers.as_chunks::<4>().0.iter();
        let checksums = self.checksums.as_chunks::<8>().0.iter();
        let counts = counts_of(self.counts);
        (numbers.zip(checksums).zip(counts)).map_while(move |((number, own), count)| {
            let (own_runs, other_runs) = runs.split_at_checked(count * RUN_OVERHEAD)?;
            let length = runs_of(own_runs).map(|run| run.len()).sum();
            let (own_bytes, other_bytes) = bytes.split_at_checked(length)?;
            (runs, bytes) = (other_runs, other_bytes);
            Some(PageParts {
                number: u32::from_le_bytes(*number),
                checksum: u64::from_le_bytes(*own),
                runs: own_runs,
                bytes: own_bytes,
            })
        })
    }
}

impl PageParts<'_> {
    /// Writes them into `page`, which has the length of a page; whether it has its content at the end of the moment then.
    pub(crate) fn apply(&self, page: &mut [u8]) -> bool {
        let mut bytes = self.bytes;
        for run in runs_of(self.runs) {
            let parts = page
                .get_mut(run.clone())
                .zip(bytes.split_at_checked(run.len()));
            let Some((place, (own, rest))) = parts else {
                return false;
            };
            place.copy_from_slice(own);
            bytes = rest;
        }
        checksum(page) == self.checksum
    }
}

fn counts_of(bytes: &[u8]) -> impl Iterator<Item = usize> {
    let counts = bytes.as_chunks::<2>().0.iter();
    counts.map(|count| usize::from(u16::from_le_bytes(*count)))
}

fn runs_of(bytes: &[u8]) -> impl Iterator<Item = Range<usize>> {
    let runs = bytes.as_chunks::<RUN_OVERHEAD>().0.iter();
    runs.map(|[a, b, c, d]| {
        let start = usize::from(u16::from_le_bytes([*a, *b]));
        start..start + usize::from(u16::from_le_bytes([*c, *d])) + 1
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(fill: u8, page_bytes: usize) -> Vec<u8> {
        (0..page_bytes).map(|at| (at % 251) as u8 ^ fill).collect()
    }

    fn built(page_bytes: usize) -> (Vec<u8>, Vec<u8>, Vec<u8>) {
        let (old, mut new) = (page(0, page_bytes), page(0, page_bytes));
        let runs = [0..8, 100..101, page_bytes - 16..page_bytes];
        for run in runs.clone() {
            new[run].fill(0xAB);
        }
        let mut builder = PartsBuilder::default();
        builder.add(7, &new, runs.into_iter());
        builder.add(9, &old, std::iter::empty());
        assert_eq!(
            builder.raw_bytes() + 8,
            8 + 2 * PAGE_OVERHEAD + 3 * RUN_OVERHEAD + 25
        );
        (builder.take(page_bytes as u32), old, new)
    }

    #[test]
    fn parts_make_the_new_page_of_the_old_one_and_of_no_other() {
        for page_bytes in [512, 4096, 65536] {
            let (body, old, new) = built(page_bytes);
            let parts = Parts::parse(&body).unwrap();
            let pages: Vec<_> = parts.each().collect();
            assert_eq!([pages[0].number, pages[1].number], [7, 9]);
            let mut found = old.clone();
            assert!(pages[0].apply(&mut found));
            assert_eq!(found, new);
            // Again, as after a crash.
            assert!(pages[0].apply(&mut found));
            assert!(pages[1].apply(&mut old.clone()));
            assert!(!pages[1].apply(&mut found));
            let mut other = old.clone();
            other[50] ^= 1;
            assert!(!pages[0].apply(&mut other));
        }
    }

    #[test]
    fn a_whole_page_is_one_run() {
        let content = page(3, 65536);
        let mut builder = PartsBuilder::default();
        builder.add(1, &content, std::iter::once(0..65536));
        let body = builder.take(65536);
        let parts = Parts::parse(&body).unwrap();
        let mut found = vec![0; 65536];
        assert!(parts.each().next().unwrap().apply(&mut found));
        assert_eq!(found, content);
    }

    #[test]
    fn runs_beyond_the_page_out_of_order_or_without_bytes_are_refused() {
        let (body, ..) = built(512);
        for length in 0..body.len() {
            assert_eq!(Parts::parse(&body[..length]), None, "{length}");
        }
        let runs_at = 8 + 2 * PAGE_OVERHEAD;
        for (at, value) in [
            // The second run before the end of the first.
            (runs_at + 4, 7_u16),
            // The third beyond the page.
            (runs_at + 8, 500),
            (runs_at + 10, 30),
            // A count of runs that are another page's, and one of runs that are not there.
            (8 + 2 * 12, 2),
            (8 + 2 * 12 + 2, 9),
        ] {
            let mut bad = body.clone();
            bad[at..at + 2].copy_from_slice(&value.to_le_bytes());
            assert_eq!(Parts::parse(&bad), None, "{at}");
        }
        for page_bytes in [0_u32, 256, 513, 1 << 17] {
            let mut bad = body.clone();
            bad[..4].copy_from_slice(&page_bytes.to_le_bytes());
            assert_eq!(Parts::parse(&bad), None, "{page_bytes}");
        }
        let mut bad = body.clone();
        bad[4..8].copy_from_slice(&u32::MAX.to_le_bytes());
        assert_eq!(Parts::parse(&bad), None);
    }
}
