//! Proves that a restored database is correct.

use std::io::Read as _;
use std::path::Path;

use rusqlite::{Connection, OpenFlags};

#[derive(Debug, thiserror::Error)]
pub(super) enum Disproof {
    /// SQLite finds damage.
    #[error("integrity_check says: {0}")]
    Damaged(String),
    /// The balances do not follow from the ledger.
    #[error("{0} accounts have a balance that does not follow from the ledger")]
    Unbalanced(i64),
    /// The ledger has gaps.
    #[error("the ledger has {count} entries, the last has number {last}")]
    Gap {
        /// Number of entries.
        count: i64,
        /// Number of the last entry.
        last: i64,
    },
    /// The state is from before or after the backup.
    #[error("the copy stands at commit {found}; it should be between {from} and {to}")]
    OutOfTime {
        found: i64,
        /// Last commit before the backup started.
        from: i64,
        /// Last commit after it ended.
        to: i64,
    },
    /// A file differs.
    #[error("the files differ at byte {0}")]
    Differs(u64),
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

/// The number of the last committed transaction.
pub(super) fn last_commit(database: &Path) -> rusqlite::Result<i64> {
    let connection = Connection::open_with_flags(database, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    connection.busy_timeout(std::time::Duration::from_secs(30))?;
    connection.query_row(
        "SELECT ifnull(max(sequence), 0) FROM demo_ledger",
        [],
        |row| row.get(0),
    )
}

const UNBALANCED: &str = "
SELECT count(*) FROM demo_account WHERE balance <>
    (SELECT ifnull(sum(amount), 0) FROM demo_ledger WHERE taker = id) -
    (SELECT ifnull(sum(amount), 0) FROM demo_ledger WHERE giver = id)";

/// Proves that a copy is one committed state from the time of the backup, and returns its last
/// transaction.
pub(super) fn is_committed_state(copy: &Path, from: i64, to: i64) -> Result<i64, Disproof> {
    let connection = Connection::open_with_flags(copy, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let number = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0));
    let verdict: String = connection.query_row("PRAGMA integrity_check", [], |row| row.get(0))?;
    if verdict != "ok" {
        return Err(Disproof::Damaged(verdict));
    }
    let unbalanced = number(UNBALANCED)?;
    if unbalanced > 0 {
        return Err(Disproof::Unbalanced(unbalanced));
    }
    let count = number("SELECT count(*) FROM demo_ledger")?;
    let last = number("SELECT ifnull(max(sequence), 0) FROM demo_ledger")?;
    if count != last {
        return Err(Disproof::Gap { count, last });
    }
    if !(from..=to).contains(&last) {
        return Err(Disproof::OutOfTime {
            found: last,
            from,
            to,
        });
    }
    Ok(last)
}

/// Proves that two files are identical, byte by byte.
pub(super) fn is_identical(one: &Path, other: &Path) -> Result<u64, Disproof> {
    let mut files = (std::fs::File::open(one)?, std::fs::File::open(other)?);
    let mut buffers = (vec![0; 1 << 20], vec![0; 1 << 20]);
    let mut offset = 0;
    loop {
        let read = read_full(&mut files.0, &mut buffers.0)?;
        let other_read = read_full(&mut files.1, &mut buffers.1)?;
        let pair = buffers
            .0
            .iter()
            .take(read)
            .zip(buffers.1.iter().take(other_read));
        if let Some(place) = pair.clone().position(|(left, right)| left != right) {
            return Err(Disproof::Differs(offset + place as u64));
        }
        if read != other_read {
            return Err(Disproof::Differs(offset + read.min(other_read) as u64));
        }
        if read == 0 {
            return Ok(offset);
        }
        offset += read as u64;
    }
}

fn read_full(file: &mut std::fs::File, buffer: &mut [u8]) -> std::io::Result<usize> {
    let mut filled = 0;
    while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match file.read(rest)? {
            0 => break,
            read => filled += read,
        }
    }
    Ok(filled)
}
