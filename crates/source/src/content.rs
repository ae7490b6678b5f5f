//! Recognises files of databases by their first bytes, whatever their names.

/// How SQLite databases begin, those of the page engine too.
const DATABASE: &[u8] = b"SQLite format 3\0";

/// First bytes, and the kind of file that starts with them.
const PARTS: [(&[u8], &str); 6] = [
    (DATABASE, "a SQLite database"),
    (
        b"\x37\x7f\x06\x82",
        "the write-ahead log of a SQLite database",
    ),
    (
        b"\x37\x7f\x06\x83",
        "the write-ahead log of a SQLite database",
    ),
    (
        b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7",
        "the rollback journal of a SQLite database",
    ),
    (
        windlass_engine::LOG_MAGIC,
        "the log of a database of the page engine",
    ),
    (
        windlass_engine::KEPT_LOG_MAGIC,
        "the log of a database of the page engine",
    ),
];

/// Number of bytes that [`part_of_database`] and [`begins_database`] examine.
pub const FIRST_BYTES: usize = 16;

/// Whether these bytes begin a database itself, not one of the files beside it.
pub fn begins_database(first: &[u8]) -> bool {
    first.starts_with(DATABASE)
}

/// The kind of database file that starts with these bytes, if any.
pub fn part_of_database(first: &[u8]) -> Option<&'static str> {
    let mut parts = PARTS.iter();
    let found = parts.find(|(magic, _)| first.starts_with(magic));
    found.map(|(_, what)| *what)
}
