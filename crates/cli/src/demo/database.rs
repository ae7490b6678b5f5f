//! The database of the demo: generated, or a copy of the user's.
//!
//! Besides its content it has accounts whose balances add up to zero, and a ledger with every
//! transfer between them, numbered without gaps. A state in which a balance does not follow from
//! the ledger was never committed.

use std::path::Path;

use rusqlite::{Connection, params};

use super::text::Writer;

pub(super) const ACCOUNTS: i64 = 100;

const SCHEMA: &str = "
CREATE TABLE users (id INTEGER PRIMARY KEY, reputation INTEGER, created TEXT, display_name TEXT,
    location TEXT, about TEXT);
CREATE TABLE posts (id INTEGER PRIMARY KEY, type INTEGER, parent_id INTEGER, owner_id INTEGER,
    score INTEGER, views INTEGER, created TEXT, title TEXT, tags TEXT, body TEXT);
CREATE TABLE comments (id INTEGER PRIMARY KEY, post_id INTEGER, user_id INTEGER, score INTEGER,
    created TEXT, body TEXT);
CREATE INDEX posts_owner ON posts (owner_id);
CREATE INDEX comments_post ON comments (post_id);
";

const LEDGER: &str = "
CREATE TABLE demo_account (id INTEGER PRIMARY KEY, balance INTEGER NOT NULL);
CREATE TABLE demo_ledger (sequence INTEGER PRIMARY KEY, giver INTEGER NOT NULL,
    taker INTEGER NOT NULL, amount INTEGER NOT NULL, note TEXT NOT NULL);
";

/// Posts per transaction while generating.
const POSTS_PER_TRANSACTION: i64 = 2000;

/// Creates a database of about `bytes`.
pub(super) fn make(path: &Path, bytes: i64) -> rusqlite::Result<()> {
    let mut connection = Connection::open(path)?;
    // Like nvarchar in SQL Server, in pages of the same size.
    connection.pragma_update(None, "page_size", 8192)?;
    connection.pragma_update(None, "encoding", "UTF-16le")?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    // It can be recreated at any time, so it need not survive a power failure.
    connection.pragma_update(None, "synchronous", "OFF")?;
    connection.execute_batch(SCHEMA)?;
    let mut writer = Writer::new(20_170_101);
    let mut post_id = 0;
    while size(&connection)? < bytes {
        let transaction = connection.transaction()?;
        fill(&transaction, &mut writer, &mut post_id)?;
        transaction.commit()?;
    }
    add_ledger(&mut connection)
}

/// Makes a consistent copy of a database that may be in use.
pub(super) fn copy(from: &Path, to: &Path) -> rusqlite::Result<()> {
    let source = Connection::open_with_flags(from, rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    source.execute("VACUUM INTO ?1", [to.to_string_lossy()])?;
    let mut connection = Connection::open(to)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    add_ledger(&mut connection)
}

fn size(connection: &Connection) -> rusqlite::Result<i64> {
    let pages: i64 = connection.pragma_query_value(None, "page_count", |row| row.get(0))?;
    let page: i64 = connection.pragma_query_value(None, "page_size", |row| row.get(0))?;
    Ok(pages * page)
}

fn add_ledger(connection: &mut Connection) -> rusqlite::Result<()> {
    let transaction = connection.transaction()?;
    transaction.execute_batch(LEDGER)?;
    for id in 0..ACCOUNTS {
        transaction.execute("INSERT INTO demo_account VALUES (?1, 0)", [id])?;
    }
    transaction.commit()
}

fn fill(connection: &Connection, writer: &mut Writer, post_id: &mut i64) -> rusqlite::Result<()> {
    let mut post = connection
        .prepare_cached("INSERT INTO posts VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)")?;
    let mut comment =
        connection.prepare_cached("INSERT INTO comments VALUES (NULL, ?1, ?2, ?3, ?4, ?5)")?;
    let mut user =
        connection.prepare_cached("INSERT INTO users VALUES (NULL, ?1, ?2, ?3, ?4, ?5)")?;
    for _ in 0..POSTS_PER_TRANSACTION {
        *post_id += 1;
        let created = date(writer, *post_id);
        let is_question = writer.dice.below(3) == 0;
        post.execute(params![
            *post_id,
            if is_question { 1 } else { 2 },
            (!is_question).then(|| writer.dice.below(*post_id)),
            writer.dice.below(*post_id / 3 + 1),
            writer.dice.below(40),
            writer.dice.below(20_000),
            created,
            is_question.then(|| writer.title()),
            is_question.then_some("<sql-server><backup>"),
            writer.post(),
        ])?;
        for _ in 0..writer.dice.below(4) {
            comment.execute(params![
                *post_id,
                writer.dice.below(*post_id / 3 + 1),
                writer.dice.below(9),
                created,
                writer.comment(),
            ])?;
        }
        if writer.dice.below(3) == 0 {
            let reputation = writer.dice.below(1 << (1 + *post_id % 16));
            let about = writer.comment();
            user.execute(params![
                reputation,
                created,
                writer.person(),
                writer.person(),
                about
            ])?;
        }
    }
    Ok(())
}

fn date(writer: &mut Writer, post_id: i64) -> String {
    let day = post_id / 400;
    format!(
        "{}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}",
        2008 + day / 336 % 18,
        1 + day / 28 % 12,
        1 + day % 28,
        writer.dice.below(24),
        writer.dice.below(60),
        writer.dice.below(60),
        writer.dice.below(1000)
    )
}
