//! The callbacks of a walk through a file.

use crate::error::{Error, Finding, Place};
use crate::mtf::Tag;
use crate::mtf::configuration::Configuration;
use crate::mtf::log::VirtualLog;
use crate::mtf::media::MediaHeader;
use crate::mtf::set::SetHeader;

/// A descriptor block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    pub tag: Tag,
    pub place: Place,
    /// Bytes before its first stream.
    pub bytes: u64,
}

/// A stream of a descriptor block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stream {
    pub tag: Tag,
    /// Position of its header.
    pub place: Place,
    /// Bytes after its header.
    pub bytes: u64,
}

/// Receives the content of a file during a walk. The default methods do nothing, or pass calls about
/// media and sets to another visitor.
pub trait Visit {
    /// The visitor for media and sets, if this one does not handle them.
    fn inner(&mut self) -> Option<&mut dyn Visit> {
        None
    }
    fn media(&mut self, media: &MediaHeader) {
        if let Some(inner) = self.inner() {
            inner.media(media);
        }
    }
    /// A descriptor block, before its streams.
    fn block(&mut self, _block: Block) {}
    /// A stream, before its data.
    fn stream(&mut self, _stream: Stream) {}
    /// Whether [`Visit::content`] and [`Visit::records`] are called.
    fn wants_content(&self) -> bool {
        false
    }
    /// The bytes of a descriptor block, of a configuration, or of a set map.
    fn content(&mut self, _tag: Tag, _place: Place, _bytes: &[u8]) {}
    /// The records of a compressed file, in order: stream offset and file offset.
    fn records(&mut self, _records: Vec<(u64, u64)>) {}
    /// A backup set starts.
    fn set(&mut self, header: &SetHeader, place: Place) {
        if let Some(inner) = self.inner() {
            inner.set(header, place);
        }
    }
    /// The machine on which the set was made.
    fn machine(&mut self, name: &str) {
        if let Some(inner) = self.inner() {
            inner.machine(name);
        }
    }
    /// The configuration of the set, at its start or at its end.
    fn configuration(&mut self, configuration: &Configuration, is_final: bool) {
        if let Some(inner) = self.inner() {
            inner.configuration(configuration, is_final);
        }
    }
    /// A virtual log file of the set.
    fn virtual_log(&mut self, log: &VirtualLog) {
        if let Some(inner) = self.inner() {
            inner.virtual_log(log);
        }
    }
    /// Whether to read pages and log; called for each stream that has them.
    fn wants_data(&mut self) -> bool {
        true
    }
    /// 64 KB of pages.
    ///
    /// # Errors
    /// An error ends the walk.
    fn extent(&mut self, _at: ExtentPlace, _extent: &[u8]) -> Result<(), Error> {
        Ok(())
    }
    /// A piece of the log, at `offset` of the log file.
    ///
    /// # Errors
    /// An error ends the walk.
    fn log(
        &mut self,
        _log: &VirtualLog,
        _offset: u64,
        _place: Place,
        _piece: &[u8],
    ) -> Result<(), Error> {
        Ok(())
    }
    /// A correct checksum of WITH CHECKSUM.
    fn backup_checksum_is_good(&mut self, _tag: Tag) {}
    /// The set is complete.
    fn set_ends(&mut self) {
        if let Some(inner) = self.inner() {
            inner.set_ends();
        }
    }
    fn finding(&mut self, _finding: Finding) {}
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExtentPlace {
    /// Position of its first byte.
    pub place: Place,
    /// Its offset within the expanded record, if the file is compressed.
    pub in_record: u32,
}
