//! What the rows of a page with PAGE compression share: for each column a prefix, and values that
//! occur several times.

use super::record::{self, Slot};
use crate::fields::Fields;
use crate::page::HEADER_BYTES;

/// Flags in the first byte. Its lowest bit is set in every compressed record, and never here.
const IS_RECORD: u8 = 1;
const HAS_PREFIXES: u8 = 2;
const HAS_DICTIONARY: u8 = 4;

/// Bytes before the prefixes, without and with a dictionary.
const HEAD_BYTES: usize = 5;
const HEAD_WITH_DICTIONARY_BYTES: usize = 7;

/// The shared content of a page. Buffers are kept from page to page.
#[derive(Debug, Default)]
pub(super) struct Shared {
    /// The record with the prefixes, and what it has for each column.
    prefix_record: Vec<u8>,
    prefixes: Vec<Slot>,
    /// The dictionary, and the end of each entry in it.
    dictionary: Vec<u8>,
    ends: Vec<u16>,
}

impl Shared {
    pub(super) fn clear(&mut self) {
        self.prefix_record.clear();
        self.prefixes.clear();
        self.dictionary.clear();
        self.ends.clear();
    }

    /// Reads what a page shares, if it has anything before `first_record`.
    pub(super) fn read(&mut self, page: &[u8], first_record: usize) -> Result<(), &'static str> {
        const OUTSIDE: &str = "its prefixes and its dictionary do not fit";
        self.clear();
        let Some(bytes) = page.get(HEADER_BYTES..first_record) else {
            return Ok(());
        };
        let fields = Fields(bytes);
        let flags = fields.u8(0);
        if flags & IS_RECORD != 0 || flags & (HAS_PREFIXES | HAS_DICTIONARY) == 0 {
            return Ok(());
        }
        let has_dictionary = flags & HAS_DICTIONARY != 0;
        let prefixes_end = usize::from(fields.u16(3));
        let (head, end) = match has_dictionary {
            true => (HEAD_WITH_DICTIONARY_BYTES, usize::from(fields.u16(5))),
            false => (HEAD_BYTES, prefixes_end),
        };
        if flags & HAS_PREFIXES != 0 {
            let record = bytes.get(head..prefixes_end).ok_or(OUTSIDE)?;
            self.prefix_record.extend_from_slice(record);
            record::parse(record, &mut self.prefixes)?;
        }
        if has_dictionary {
            let dictionary = bytes.get(prefixes_end..end).ok_or(OUTSIDE)?;
            let count = usize::from(Fields(dictionary).u16(0));
            let mut last = 2 + 2 * count;
            for entry in 0..count {
                let end = Fields(dictionary).u16(2 + 2 * entry);
                if usize::from(end) < last || usize::from(end) > dictionary.len() {
                    return Err(OUTSIDE);
                }
                last = end.into();
                self.ends.push(end);
            }
            self.dictionary.extend_from_slice(dictionary);
        }
        Ok(())
    }

    /// The prefix of a column; `None` if its values are stored without one.
    fn prefix(&self, column: usize) -> Result<Option<&[u8]>, &'static str> {
        Ok(match self.prefixes.get(column) {
            None | Some(Slot::Null) => None,
            Some(Slot::Empty) => Some(&[]),
            Some(Slot::Bytes { at, length }) => {
                Some(Fields(&self.prefix_record).bytes((*at).into(), (*length).into()))
            }
            Some(_) => return Err("the prefix of its column on the page is no value"),
        })
    }

    /// An entry of the dictionary.
    pub(super) fn entry(&self, number: u8) -> Result<&[u8], &'static str> {
        let number = usize::from(number);
        let begin = match number.checked_sub(1) {
            None => Some(2 + 2 * self.ends.len() as u16),
            Some(before) => self.ends.get(before).copied(),
        };
        let entry = begin.zip(self.ends.get(number).copied());
        let entry = entry.and_then(|(begin, end)| self.dictionary.get(begin.into()..end.into()));
        entry.ok_or("the dictionary of the page has no such value")
    }

    /// The value of a column that is stored as nothing: exactly the prefix, or empty.
    pub(super) fn empty(&self, column: usize) -> Result<&[u8], &'static str> {
        Ok(self.prefix(column)?.unwrap_or_default())
    }

    /// The value of a column from its stored bytes: the length of the part of the prefix, and the rest.
    /// `whole` is for values that have to be put together.
    pub(super) fn value<'a>(
        &self,
        column: usize,
        stored: &'a [u8],
        whole: &'a mut Vec<u8>,
    ) -> Result<&'a [u8], &'static str> {
        let Some(prefix) = self.prefix(column)? else {
            return Ok(stored);
        };
        let (length, begin) = record::prefix_number(stored).ok_or("a value without its length")?;
        let prefix = prefix
            .get(..length)
            .ok_or("a value with more than the prefix of its column on the page")?;
        whole.clear();
        whole.extend_from_slice(prefix);
        whole.extend_from_slice(stored.get(begin..).unwrap_or_default());
        Ok(whole)
    }
}
