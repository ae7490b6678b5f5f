//! Which files are parts of databases, by their first bytes, whatever their names.

/// First bytes, and what begins with them.
const PARTS: [(&[u8], &str); 5] = [
    (b"SQLite format 3\0", "a SQLite database"),
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
];

/// Bytes of a file that [`part_of_database`] looks at.
pub const FIRST_BYTES: usize = 16;

/// What a file is that begins so, if it is a part of a database.
pub fn part_of_database(first: &[u8]) -> Option<&'static str> {
    let mut parts = PARTS.iter();
    let found = parts.find(|(magic, _)| first.starts_with(magic));
    found.map(|(_, what)| *what)
}
