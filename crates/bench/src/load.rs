//! A program that commits to a SQLite database in WAL mode: four rows a commit, `synchronous=FULL`.

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::{Connection, params};

/// Rows of one commit.
pub const ROWS: i64 = 4;

/// Events that are written at once until a database is large enough.
const FILL: i64 = 50_000;

/// What the program has done.
#[derive(Debug, Clone, Copy)]
pub struct Written {
    pub commits_per_second: f64,
    /// 99 of 100 commits took no longer.
    pub p99_milliseconds: f64,
}

/// Makes the database, with events until it has `bytes`.
///
/// # Errors
/// Those of SQLite.
pub fn create(path: &Path, bytes: u64) -> rusqlite::Result<()> {
    let connection = Connection::open(path)?;
    connection.execute_batch(
        "PRAGMA journal_mode = WAL;
         CREATE TABLE event(id INTEGER PRIMARY KEY, device INTEGER, at INTEGER, text TEXT);
         CREATE INDEX event_device ON event(device, at);
         CREATE TABLE device(id INTEGER PRIMARY KEY, events INTEGER, last TEXT);
         WITH RECURSIVE n(v) AS (SELECT 1 UNION ALL SELECT v + 1 FROM n WHERE v < 20000)
           INSERT INTO device SELECT v, 0, printf('device number %d', v) FROM n;",
    )?;
    let fill = format!(
        "WITH RECURSIVE n(v) AS (SELECT 1 UNION ALL SELECT v + 1 FROM n WHERE v < {FILL})
           INSERT INTO event(device, at, text)
           SELECT abs(random()) % 20000 + 1, -1,
             printf('event %x of device %d, and some more text about it', random(), v) FROM n"
    );
    let mut filled = 0;
    while filled < bytes {
        connection.execute_batch(&fill)?;
        let pages: i64 = connection.query_row(
            "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size",
            [],
            |row| row.get(0),
        )?;
        filled = u64::try_from(pages).unwrap_or(u64::MAX);
    }
    connection.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)")
}

/// The number of the last commit; 0 before the first.
///
/// # Errors
/// Those of SQLite.
pub fn last_commit(path: &Path) -> rusqlite::Result<i64> {
    let connection = Connection::open(path)?;
    let last = "SELECT max(at) FROM event WHERE id > (SELECT max(id) - 100 FROM event)";
    let last: Option<i64> = connection.query_row(last, [], |row| row.get(0))?;
    Ok(last.unwrap_or(0).max(0))
}

/// Writes three events of random devices and updates one, again and again; at most `pace` times a second.
///
/// # Errors
/// Those of SQLite.
pub fn write(path: &Path, seconds: u64, pace: Option<u64>) -> rusqlite::Result<Written> {
    let connection = Connection::open(path)?;
    connection.execute_batch("PRAGMA synchronous = FULL")?;
    let mut times = Vec::new();
    let begun = Instant::now();
    let mut random = 88_172_645_463_325_252_u64;
    while begun.elapsed() < Duration::from_secs(seconds) {
        if let Some(pace) = pace {
            let due = Duration::from_secs_f64(times.len() as f64 / pace as f64);
            std::thread::sleep(due.saturating_sub(begun.elapsed()));
        }
        let at = Instant::now();
        connection.execute_batch("BEGIN IMMEDIATE")?;
        for row in 0..ROWS {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let device = (random % 20_000) as i64 + 1;
            let text = format!("event {random:x} of device {device}, and some more text about it");
            match row {
                0 => connection
                    .prepare_cached(
                        "UPDATE device SET events = events + 1, last = ?2 WHERE id = ?1",
                    )?
                    .execute(params![device, text])?,
                _ => connection
                    .prepare_cached("INSERT INTO event(device, at, text) VALUES (?1, ?2, ?3)")?
                    .execute(params![device, times.len() as i64 + 1, text])?,
            };
        }
        connection.execute_batch("COMMIT")?;
        times.push(at.elapsed().as_secs_f64() * 1000.0);
    }
    let seconds = begun.elapsed().as_secs_f64();
    let commits = times.len();
    times.sort_by(f64::total_cmp);
    Ok(Written {
        commits_per_second: commits as f64 / seconds,
        p99_milliseconds: times.get(commits * 99 / 100).copied().unwrap_or(0.0),
    })
}
