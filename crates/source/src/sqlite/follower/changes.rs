//! Pages that changed since the last moment: of each, only the newest content, in bounded memory.
//!
//! Where it is known what a page was before its first frame, only the bytes that one of its frames has touched are
//! spooled. So they lead to the moment from every state since the last one: a backup may have any of them.

use std::collections::HashMap;

use windlass_media::WalPosition;

use super::log::Frame;
use super::touched;
use crate::Error;
use crate::sqlite::spool::{Commit, Moment, Span, SpoolWriter};

/// Bytes of pages that are kept in memory; more go to the spool before their moment.
const CONTENT_BYTES_MAX: usize = 32 << 20;

/// Commits of one moment, so that its record is not too long.
const COMMITS_MAX: usize = 500_000;

/// Changes since `from`.
#[derive(Debug, Default)]
pub(super) struct Changes {
    from: WalPosition,
    page_bytes: u32,
    /// The number of a page's slot in the next three.
    slots: HashMap<u32, usize>,
    content: Vec<u8>,
    touched: Vec<u64>,
    /// Whether nothing is known of the page before.
    is_whole: Vec<bool>,
    /// How many records of pages are in the spool already.
    records: u32,
    spans: Vec<Span>,
    commits: usize,
    page_count: u32,
    /// The fewest pages that the database has had since `from`: those behind have no content in some state since.
    low_count: u32,
    /// Whether the last frame was not of a commit that was confirmed.
    is_open: bool,
}

impl Changes {
    /// Since a state with `page_count` pages; 0 if that is not known.
    pub(super) fn since(from: WalPosition, page_count: u32) -> Self {
        Self {
            from,
            low_count: page_count,
            ..Self::default()
        }
    }

    /// The same since another state, if nothing was committed between.
    pub(super) fn restart(&mut self, from: WalPosition) {
        *self = Self::since(from, self.low_count);
    }

    /// Whether it counts what the page was before.
    pub(super) fn wants_before(&self, page: u32) -> bool {
        page <= self.low_count && !self.slots.contains_key(&page)
    }

    /// Whether nothing was committed.
    pub(super) fn is_empty(&self) -> bool {
        self.commits == 0
    }

    /// Bytes of pages since the last moment that are in memory.
    pub(super) fn content_bytes(&self) -> usize {
        self.content.len()
    }

    /// Whether they must become a moment before more is taken.
    pub(super) fn is_long(&self) -> bool {
        self.content.len() >= CONTENT_BYTES_MAX || self.records > 0 || self.commits >= COMMITS_MAX
    }

    /// Whether frames were taken that may not be of this history.
    pub(super) fn is_open(&self) -> bool {
        self.is_open
    }

    /// Frames follow whose end is not confirmed yet.
    pub(super) fn open(&mut self) {
        self.is_open = true;
    }

    /// All frames are of this history.
    pub(super) fn close(&mut self) {
        self.is_open = false;
    }

    /// Takes a frame of the generation with this salt, and the content of its page before, if that was wanted and is
    /// known.
    pub(super) fn take(
        &mut self,
        salt: [u8; 8],
        frame: &Frame<'_>,
        before: Option<&[u8]>,
        spool: &mut SpoolWriter,
    ) -> Result<(), Error> {
        self.page_bytes = frame.content.len() as u32;
        self.put(frame, before);
        if self.spans.last().is_none_or(|span| span.salt != salt) {
            self.spans.push(Span {
                salt,
                is_begin: frame.number == 1,
                commits: Vec::new(),
            });
        }
        if frame.commit_pages > 0 {
            self.page_count = frame.commit_pages;
            self.low_count = self.low_count.min(frame.commit_pages);
            self.commits += 1;
            if let Some(span) = self.spans.last_mut() {
                span.commits.push(Commit {
                    frame: frame.number,
                    checksum: frame.checksum,
                });
            }
        }
        match self.content.len() >= CONTENT_BYTES_MAX {
            true => self.spill(spool),
            false => Ok(()),
        }
    }

    fn put(&mut self, frame: &Frame<'_>, before: Option<&[u8]>) {
        let page_bytes = frame.content.len();
        let words = touched::words(page_bytes);
        let next = self.slots.len();
        let slot = *self.slots.entry(frame.page).or_insert(next);
        if slot == next {
            let before = before.filter(|before| before.len() == page_bytes);
            self.touched.resize((slot + 1) * words, 0);
            if let Some(before) = before {
                touched::mark(&mut self.touched[slot * words..], before, frame.content);
            }
            self.is_whole.push(before.is_none());
            self.content.extend_from_slice(frame.content);
            return;
        }
        let content = &mut self.content[slot * page_bytes..][..page_bytes];
        if !self.is_whole[slot] {
            let touched = &mut self.touched[slot * words..][..words];
            touched::mark(touched, content, frame.content);
        }
        content.copy_from_slice(frame.content);
    }

    /// Writes whole pages, of a moment that is still to end.
    fn spill(&mut self, spool: &mut SpoolWriter) -> Result<(), Error> {
        let mut all: Vec<(u32, usize)> = self.slots.drain().collect();
        all.sort_unstable();
        self.write_whole(&all, spool)?;
        self.clear();
        Ok(())
    }

    fn write_whole(
        &mut self,
        pages: &[(u32, usize)],
        spool: &mut SpoolWriter,
    ) -> Result<(), Error> {
        if pages.is_empty() {
            return Ok(());
        }
        let (page_bytes, content) = (self.page_bytes as usize, &self.content);
        let numbers: Vec<u32> = pages.iter().map(|(number, _)| *number).collect();
        let mut of = |index: usize| &content[pages[index].1 * page_bytes..][..page_bytes];
        self.records += spool.pages(self.page_bytes, &numbers, &mut of)?;
        Ok(())
    }

    fn write_parts(
        &mut self,
        pages: &[(u32, usize)],
        spool: &mut SpoolWriter,
    ) -> Result<(), Error> {
        if pages.is_empty() {
            return Ok(());
        }
        let page_bytes = self.page_bytes as usize;
        let words = touched::words(page_bytes);
        let (content, all) = (&self.content, &self.touched);
        self.records += spool.parts(self.page_bytes, pages.len(), &mut |index, parts| {
            let (number, slot) = pages[index];
            let content = &content[slot * page_bytes..][..page_bytes];
            parts.add(
                number,
                content,
                touched::runs(&all[slot * words..][..words]),
            );
        })?;
        Ok(())
    }

    /// Writes what the pages have at the end of the moment: the bytes that were touched, or all.
    fn write_pages(&mut self, spool: &mut SpoolWriter) -> Result<(), Error> {
        let page_count = self.page_count;
        let words = touched::words(self.page_bytes as usize);
        // Not what a later commit of the moment has cut off.
        let mut all: Vec<(u32, usize)> = (self.slots.drain())
            .filter(|(number, _)| *number <= page_count)
            .collect();
        all.sort_unstable();
        let (mut whole, mut parts) = (Vec::new(), Vec::new());
        for (number, slot) in all {
            let is_known = !self.is_whole[slot] && number <= self.low_count;
            match is_known.then(|| touched::bytes(&self.touched[slot * words..][..words])) {
                // Also without any: then its checksum says that it stayed as it was.
                Some(bytes) if bytes <= self.page_bytes as usize / 2 => parts.push((number, slot)),
                _ => whole.push((number, slot)),
            }
        }
        self.write_whole(&whole, spool)?;
        self.write_parts(&parts, spool)?;
        self.clear();
        Ok(())
    }

    fn clear(&mut self) {
        self.slots.clear();
        self.content.clear();
        self.touched.clear();
        self.is_whole.clear();
    }

    /// Writes everything as one moment that ends at `to`; does not sync.
    pub(super) fn write(
        &mut self,
        to: WalPosition,
        time_us: u64,
        spool: &mut SpoolWriter,
    ) -> Result<(), Error> {
        self.write_pages(spool)?;
        let page_count = self.page_count;
        let moment = Moment {
            time_us,
            from: self.from,
            to,
            page_bytes: self.page_bytes,
            page_count,
            commit_number: spool.written_commits() + self.commits as u64,
            records: self.records,
            spans: std::mem::take(&mut self.spans),
        };
        spool.moment(&moment)?;
        // Their memory is used again.
        *self = Self {
            from: to,
            low_count: page_count,
            slots: std::mem::take(&mut self.slots),
            content: std::mem::take(&mut self.content),
            touched: std::mem::take(&mut self.touched),
            is_whole: std::mem::take(&mut self.is_whole),
            is_open: self.is_open,
            ..Self::default()
        };
        Ok(())
    }
}
