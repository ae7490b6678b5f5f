//! What a page was before a frame: the version that the frame replaces.
//!
//! It is the page's newest frame before that in the log, or, if the generation has none, what is in the database file. The
//! first is there as long as a mark or lock 0 keeps the log from being begun again. The second is the state that the
//! generation began with, as long as no checkpoint can have copied the frame: it is behind the mark that is held, or behind the
//! commit at which lock 0 was taken. Where that is not known, there is no answer.

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::Path;
use std::sync::Arc;

use windlass_io::DirectFile;

use super::super::descriptors;
use super::super::header::be32;
use super::super::wal::FRAME_HEADER_BYTES;
use super::log::{Frame, Shape};

/// Pages of a log that are kept in mind.
const PAGES_MAX: usize = 1 << 20;

/// The newest frame of each page in one generation of the log.
#[derive(Debug)]
pub(super) struct Versions {
    log: Option<File>,
    database: Option<Arc<DirectFile>>,
    /// The generation that was read from its first frame on.
    known: Option<[u8; 8]>,
    newest: HashMap<u32, u32>,
    frame: Vec<u8>,
}

impl Versions {
    /// Of the database at `path`, whose file has the number `inode`. What cannot be opened has no answers.
    pub(super) fn of(log: Option<File>, path: &Path, inode: u64) -> Self {
        let database = descriptors::open(path).ok().filter(|file| {
            let metadata = file.as_file().metadata();
            metadata.is_ok_and(|metadata| metadata.ino() == inode)
        });
        Self {
            log,
            database,
            known: None,
            newest: HashMap::new(),
            frame: Vec::new(),
        }
    }

    /// What was read may not be of this history, or is read again.
    pub(super) fn forget(&mut self) {
        self.known = None;
        self.newest.clear();
    }

    /// Frames behind `from` in the generation with this salt follow.
    pub(super) fn begin(&mut self, salt: [u8; 8], from: u32) {
        if from == 0 {
            self.newest.clear();
            self.known = Some(salt);
        } else if self.known != Some(salt) {
            self.forget();
        }
    }

    /// Notes a frame whose page may be asked for later.
    pub(super) fn note(&mut self, frame: &Frame<'_>) {
        if self.known.is_some() {
            self.newest.insert(frame.page, frame.number);
        }
        if self.newest.len() > PAGES_MAX {
            self.forget();
        }
    }

    /// The content of the page before this frame, all of whose generation up to it was noted. `copied_max` is the last
    /// frame that may be in the database file, by what is held.
    pub(super) fn before(
        &mut self,
        shape: &Shape,
        frame: &Frame<'_>,
        copied_max: u32,
    ) -> Option<&[u8]> {
        if self.known != Some(shape.salt) {
            return None;
        }
        self.frame
            .resize(FRAME_HEADER_BYTES + shape.page_bytes as usize, 0);
        match self.newest.get(&frame.page) {
            Some(&earlier) if earlier < frame.number => self.in_log(shape, frame.page, earlier),
            None if copied_max < frame.number => self.in_database(frame.page),
            _ => None,
        }
    }

    fn in_log(&mut self, shape: &Shape, page: u32, number: u32) -> Option<&[u8]> {
        let read = self
            .log
            .as_ref()?
            .read_exact_at(&mut self.frame, shape.offset(number));
        let is_it = read.is_ok() && be32(&self.frame, 0) == page && self.frame[8..16] == shape.salt;
        is_it.then(|| &self.frame[FRAME_HEADER_BYTES..])
    }

    fn in_database(&mut self, page: u32) -> Option<&[u8]> {
        let content = &mut self.frame[FRAME_HEADER_BYTES..];
        let offset = u64::from(page.checked_sub(1)?) * content.len() as u64;
        let file = self.database.as_ref()?.as_file();
        file.read_exact_at(content, offset).ok()?;
        Some(content)
    }
}
