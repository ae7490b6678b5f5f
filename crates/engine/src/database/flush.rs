//! Writes dirty pages to the data files: sorted, merged with neighbours, with a limited number in
//! flight.
//!
//! Invariants:
//! - Before a page is passed to the dispenser, the log is on disk up to the page's last change.
//! - A page is written by one request at a time.
//! - A page whose write failed is dirty again from its old position; the caller gets the error.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use parking_lot::{Condvar, Mutex};
use windlass_base::PageNumber;
use windlass_base::panic::contained;
use windlass_io::AlignedBuffer;

use super::Database;
use crate::dirty::DirtyPages;
use crate::dispenser::{MERGED_BYTES, PAGE_WRITER, Request};
use crate::error::{EngineError, Result};
use crate::files::Place;
use crate::instance::Shared;
use crate::log::Position;
use crate::pool::{DatabaseNumber, PageKey, Picked};
use windlass_base::page::PAGE_BYTES;

/// Neighbouring pages collected for one request.
struct Run {
    place: Place,
    buffer: AlignedBuffer,
    pages: Vec<(PageNumber, Position)>,
    end: Position,
}

/// Requests in flight, and the first failure.
#[derive(Debug, Default)]
struct Batch {
    state: Mutex<(u64, Option<EngineError>)>,
    ended: Condvar,
}

impl Batch {
    fn begin(&self) {
        self.state.lock().0 += 1;
    }

    fn end(&self, failure: Option<EngineError>) {
        let mut state = self.state.lock();
        state.0 -= 1;
        if state.1.is_none() {
            state.1 = failure;
        }
        self.ended.notify_all();
    }

    fn wait(&self) -> Result<()> {
        let mut state = self.state.lock();
        while state.0 > 0 {
            self.ended.wait(&mut state);
        }
        match state.1.take() {
            Some(failure) => Err(failure),
            None => Ok(()),
        }
    }
}

impl Database {
    /// Writes those of `pages` (in order) that are dirty, and waits for all of them. Returns how many
    /// were written. Nothing is synced.
    pub(crate) fn write_pages(&self, pages: &[PageNumber]) -> Result<u64> {
        let batch = Arc::new(Batch::default());
        let mut todo = pages.to_vec();
        let mut written = 0;
        while !todo.is_empty() {
            let mut again = Vec::new();
            let submitted = self.submit_pages(&todo, &batch, &mut again);
            // Requests refer to the batch, so it must be idle before any error returns.
            batch.wait()?;
            written += submitted?;
            self.dirty.wait_written(&again);
            todo = again;
        }
        Ok(written)
    }

    /// Picks and submits pages; pages that another thread is writing go to `again`.
    fn submit_pages(
        &self,
        pages: &[PageNumber],
        batch: &Arc<Batch>,
        again: &mut Vec<PageNumber>,
    ) -> Result<u64> {
        let mut run: Option<Run> = None;
        let mut count = 0;
        for &page in pages {
            let place = self.data.place(page);
            if let Some(open) = run.take_if(|open| !open.continues(&place)) {
                self.submit(open, batch)?;
            }
            let open = run.get_or_insert_with(|| Run {
                place,
                buffer: self.shared.dispenser.buffer(),
                pages: Vec::new(),
                end: Position::default(),
            });
            let start = open.pages.len() * PAGE_BYTES;
            let content = &mut open.buffer[start..start + PAGE_BYTES];
            match self.shared.pool.pick(self.key(page), content, &self.dirty) {
                Picked::Page(change) => {
                    open.pages.push((page, change.first));
                    open.end = open.end.max(change.end);
                    count += 1;
                }
                Picked::Writing => again.push(page),
                Picked::Clean => {}
            }
            // A run that could not take its first page restarts with the next.
            if open.pages.is_empty() {
                run = None;
            }
        }
        if let Some(open) = run {
            self.submit(open, batch)?;
        }
        Ok(count)
    }

    fn submit(&self, run: Run, batch: &Arc<Batch>) -> Result<()> {
        let Run {
            place,
            buffer,
            pages,
            end,
        } = run;
        if let Err(error) = self.log.flush_to(end) {
            for &(page, first) in &pages {
                self.shared
                    .pool
                    .written(self.key(page), Some(first), &self.dirty);
            }
            return Err(error);
        }
        self.figures
            .pages_written
            .fetch_add(pages.len() as u64, Ordering::Relaxed);
        self.figures.write_requests.fetch_add(1, Ordering::Relaxed);
        self.copies
            .note(pages.iter().map(|&(page, _)| page.extent()));
        batch.begin();
        let batch = Arc::clone(batch);
        let ending = Ending {
            shared: Arc::clone(&self.shared),
            dirty: Arc::clone(&self.dirty),
            database: self.number,
            path: self.data.path(place.index),
        };
        self.shared.dispenser.submit(Request {
            database: self.number,
            file: place.file,
            offset: place.offset,
            length: pages.len() * PAGE_BYTES,
            buffer,
            done: Box::new(move |outcome| {
                let ended = contained(PAGE_WRITER, || ending.end(&pages, outcome));
                batch.end(ended.unwrap_or_else(|panicked| Some(panicked.into())));
            }),
        });
        Ok(())
    }
}

impl Run {
    fn continues(&self, place: &Place) -> bool {
        let bytes = self.pages.len() * PAGE_BYTES;
        self.place.index == place.index
            && self.place.offset + bytes as u64 == place.offset
            && bytes < MERGED_BYTES
    }
}

/// The parts of the database needed when a write completes.
struct Ending {
    shared: Arc<Shared>,
    dirty: Arc<DirtyPages>,
    database: DatabaseNumber,
    path: PathBuf,
}

impl Ending {
    fn end(
        &self,
        pages: &[(PageNumber, Position)],
        outcome: std::io::Result<()>,
    ) -> Option<EngineError> {
        let failure = outcome
            .err()
            .map(|error| EngineError::io("write", &self.path, error));
        for &(page, first) in pages {
            let key = PageKey {
                database: self.database,
                page,
            };
            let restored = failure.as_ref().map(|_| first);
            self.shared.pool.written(key, restored, &self.dirty);
        }
        failure
    }
}
