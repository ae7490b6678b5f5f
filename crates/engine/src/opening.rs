//! The mark of an opening in page 1 of a SQLite database.
//!
//! Each opening in which something is committed has an identity, which the log's header names. Page 1 has it in the
//! bytes that SQLite reserves for expansion: SQLite neither reads nor changes them, except when it rewrites the whole
//! file (VACUUM), which leaves zeros. So a log that was closed before a later opening is known for an older
//! copy by the data file, whoever wrote to that since.
//!
//! Invariant: page 1 of an only data file has the mark of an opening, durably, before that opening writes any
//! other page into it.

use std::ops::Range;

use windlass_base::Guid;

/// Reserved for expansion in SQLite's file format; here magic bytes and the identity of the opening.
const MARK: Range<usize> = 72..92;

const MAGIC: &[u8; 4] = b"WLOP";

const SQLITE: &[u8; 16] = b"SQLite format 3\0";

/// Marks the first page; `false` if it is not that of a SQLite database.
pub(crate) fn mark(first: &mut [u8], opening: Guid) -> bool {
    let is_sqlite = first.starts_with(SQLITE);
    if is_sqlite {
        let (magic, identity) = first[MARK].split_at_mut(MAGIC.len());
        magic.copy_from_slice(MAGIC);
        identity.copy_from_slice(&opening.to_stored());
    }
    is_sqlite
}

/// The opening whose mark the first page has; `None` if it has none.
pub(crate) fn of(first: &[u8]) -> Option<Guid> {
    let identity = first.get(MARK)?.strip_prefix(MAGIC)?;
    let is_sqlite = first.starts_with(SQLITE);
    is_sqlite.then(|| identity.try_into().ok().map(Guid::from_stored))?
}
