//! Whether the pages of a database carry checksums.
//!
//! Invariants:
//! - Only the writer changes it.
//! - While pages with and without checksums are mixed, none is checked.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use windlass_base::page::checksum;

use super::writer::WriterToken;
use crate::error::Result;

#[derive(Debug, Default)]
pub(super) struct PageChecksums {
    on: AtomicBool,
    /// Number of times they were turned on or off.
    changes: AtomicU64,
}

impl PageChecksums {
    pub(super) fn are_on(&self) -> bool {
        self.on.load(Relaxed)
    }

    pub(super) fn changes(&self) -> u64 {
        self.changes.load(Relaxed)
    }

    /// Takes over what page 1 on disk says.
    pub(super) fn note(&self, _writer: &WriterToken, first_page: &[u8]) {
        self.on.store(checksum::is_reserved(first_page), Relaxed);
    }

    /// Runs `commit`, after which pages carry checksums if `on` says so; a failure changes nothing.
    pub(super) fn turn<T>(
        &self,
        _writer: &WriterToken,
        on: bool,
        commit: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let before = self.are_on();
        if before != on {
            self.changes.fetch_add(1, Relaxed);
        }
        self.on.store(before && on, Relaxed);
        let outcome = commit();
        self.on
            .store(if outcome.is_ok() { on } else { before }, Relaxed);
        outcome
    }
}
