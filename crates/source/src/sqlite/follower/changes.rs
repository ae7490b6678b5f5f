//! Pages that changed since the last moment: of each, only the newest content, in bounded memory.

use std::collections::HashMap;

use windlass_media::WalPosition;

use super::log::Frame;
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
    /// Where the content of a page is.
    slots: HashMap<u32, usize>,
    content: Vec<u8>,
    /// How many records of pages are in the spool already.
    records: u32,
    spans: Vec<Span>,
    commits: usize,
    page_count: u32,
    /// Whether the last frame was not of a commit that was confirmed.
    is_open: bool,
}

impl Changes {
    pub(super) fn since(from: WalPosition) -> Self {
        Self {
            from,
            ..Self::default()
        }
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

    /// Takes a frame of the generation with this salt.
    pub(super) fn take(
        &mut self,
        salt: [u8; 8],
        frame: &Frame<'_>,
        spool: &mut SpoolWriter,
    ) -> Result<(), Error> {
        let page_bytes = frame.content.len();
        self.page_bytes = page_bytes as u32;
        let next = self.content.len();
        let slot = *self.slots.entry(frame.page).or_insert(next);
        if slot == next {
            self.content.extend_from_slice(frame.content);
        } else {
            self.content[slot..slot + page_bytes].copy_from_slice(frame.content);
        }
        if self.spans.last().is_none_or(|span| span.salt != salt) {
            self.spans.push(Span {
                salt,
                is_begin: frame.number == 1,
                commits: Vec::new(),
            });
        }
        if frame.commit_pages > 0 {
            self.page_count = frame.commit_pages;
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

    fn spill(&mut self, spool: &mut SpoolWriter) -> Result<(), Error> {
        let mut numbers: Vec<u32> = self.slots.keys().copied().collect();
        numbers.sort_unstable();
        let (slots, content) = (&self.slots, &self.content);
        let page_bytes = self.page_bytes as usize;
        let mut of = |index: usize| {
            let slot = slots[&numbers[index]];
            &content[slot..slot + page_bytes]
        };
        if !numbers.is_empty() {
            self.records += spool.pages(self.page_bytes, &numbers, &mut of)?;
        }
        self.slots.clear();
        self.content.clear();
        Ok(())
    }

    /// Writes everything as one moment that ends at `to`; does not sync.
    pub(super) fn write(
        &mut self,
        to: WalPosition,
        time_us: u64,
        spool: &mut SpoolWriter,
    ) -> Result<(), Error> {
        let page_count = self.page_count;
        // What a later commit of the moment has cut off.
        self.slots.retain(|page, _| *page <= page_count);
        self.spill(spool)?;
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
        let (slots, content) = (
            std::mem::take(&mut self.slots),
            std::mem::take(&mut self.content),
        );
        *self = Self {
            from: to,
            slots,
            content,
            is_open: self.is_open,
            ..Self::default()
        };
        Ok(())
    }
}
