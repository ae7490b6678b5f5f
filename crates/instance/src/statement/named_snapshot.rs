//! A snapshot whose file has the logical name that the instance knows.
//!
//! A database file does not know its logical name; `CREATE DATABASE ... (NAME = x)` gives it one, and
//! a restore keeps the one from the backup.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use windlass_io::DirectFile;
use windlass_source::{DatabaseIdentity, Error, Position, Snapshot, SourceFile};

/// A snapshot of a database of one file.
#[derive(Debug)]
pub(super) struct NamedSnapshot<S> {
    inner: S,
    files: Vec<SourceFile>,
}

impl<S: Snapshot> NamedSnapshot<S> {
    /// Gives the file of a snapshot its name.
    pub(super) fn new(inner: S, logical_name: &str) -> Self {
        let mut files = inner.files().to_vec();
        if let [file] = files.as_mut_slice() {
            logical_name.clone_into(&mut file.logical_name);
        }
        Self { inner, files }
    }
}

impl<S: Snapshot> Snapshot for NamedSnapshot<S> {
    fn identity(&self) -> &DatabaseIdentity {
        self.inner.identity()
    }

    fn position(&self) -> Position {
        self.inner.position()
    }

    fn files(&self) -> &[SourceFile] {
        &self.files
    }

    fn ranges(&self, file_id: u16) -> Vec<Range<u64>> {
        self.inner.ranges(file_id)
    }

    fn read(&self, file_id: u16, offset: u64, buffer: &mut [u8]) -> Result<(), Error> {
        self.inner.read(file_id, offset, buffer)
    }

    fn located(
        &self,
        file_id: u16,
        offset: u64,
        bytes: usize,
    ) -> Result<Option<Arc<DirectFile>>, Error> {
        self.inner.located(file_id, offset, bytes)
    }

    fn amend(
        &self,
        file_id: u16,
        offset: u64,
        buffer: &mut [u8],
        outcome: io::Result<usize>,
    ) -> Result<(), Error> {
        self.inner.amend(file_id, offset, buffer, outcome)
    }

    fn check_pages(&self, file_id: u16, offset: u64, octets: &[u8], on_bad: &mut dyn FnMut(u64)) {
        self.inner.check_pages(file_id, offset, octets, on_bad);
    }

    fn has_page_checksums(&self) -> bool {
        self.inner.has_page_checksums()
    }

    fn close(self: Box<Self>) -> Result<(), Error> {
        Box::new(self.inner).close()
    }
}
