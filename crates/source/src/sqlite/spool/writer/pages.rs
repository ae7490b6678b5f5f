//! Records of pages, whole or in parts, which count with the moment behind them.

use windlass_codec::{Algorithm, Stored};

use super::super::SpoolError;
use super::super::parts::PartsBuilder;
use super::super::record::{Kind, Pages};
use super::SpoolWriter;
use crate::Error;

/// Pages in one record, in bytes.
pub(super) const PAGES_BYTES: usize = 1 << 20;

impl SpoolWriter {
    /// Appends pages of the next moment; returns the number of records.
    pub(crate) fn pages<'a>(
        &mut self,
        page_bytes: u32,
        numbers: &[u32],
        content: &mut dyn FnMut(usize) -> &'a [u8],
    ) -> Result<u32, Error> {
        self.ensure_segment()?;
        let at_once = PAGES_BYTES / page_bytes as usize;
        let mut records = 0;
        for (index, part) in numbers.chunks(at_once).enumerate() {
            let mut raw = std::mem::take(&mut self.raw);
            raw.clear();
            raw.extend_from_slice(&Pages::begin(page_bytes, part));
            for place in 0..part.len() {
                raw.extend_from_slice(content(index * at_once + place));
            }
            let appended = self.append_pages(Kind::Pages, &raw);
            self.raw = raw;
            appended?;
            records += 1;
        }
        Ok(records)
    }

    /// Appends parts of pages of the next moment; `add` gives those of the page at an index. Returns the number of
    /// records.
    pub(crate) fn parts(
        &mut self,
        page_bytes: u32,
        count: usize,
        add: &mut dyn FnMut(usize, &mut PartsBuilder),
    ) -> Result<u32, Error> {
        self.ensure_segment()?;
        let mut records = 0;
        let mut builder = PartsBuilder::default();
        for index in 0..count {
            add(index, &mut builder);
            if builder.raw_bytes() >= PAGES_BYTES || index + 1 == count {
                self.append_pages(Kind::Parts, &builder.take(page_bytes))?;
                records += 1;
            }
        }
        Ok(records)
    }

    fn append_pages(&mut self, kind: Kind, raw: &[u8]) -> Result<(), Error> {
        let mut stored = std::mem::take(&mut self.stored);
        stored.resize(raw.len(), 0);
        let encoded = self.encoder.encode(raw, &mut stored);
        let appended = match encoded.map_err(|error| SpoolError::Codec(error).told())? {
            Stored::Plain => self.append(kind, raw),
            Stored::Compressed { bytes, filter } => {
                let how = (Algorithm::Zstd.id(), filter.id());
                self.append_body(kind, how, raw.len(), &stored[..bytes])
            }
        };
        self.stored = stored;
        appended
    }
}
