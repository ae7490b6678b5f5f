//! The same load on stock SQLite: as many threads, each with a connection, WAL mode, every commit synced.

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::{Connection as Sqlite, TransactionBehavior, params};

use crate::backups::MEGABYTES;
use crate::load::{Board, Connection, Load, Measured, Phase, Transfer, run as run_load};
use crate::served::tables;

const PAUSE: Duration = Duration::from_secs(3);

/// Runs the load, with SQLite's own backups beside it.
pub(crate) fn run(folder: &Path, load: &Load) -> anyhow::Result<Measured> {
    let path = folder.join("stock.db");
    let first = open(&path)?;
    for statement in tables(MEGABYTES) {
        first.execute_batch(&statement)?;
    }
    let board = Board::new(load.sessions);
    let begun = Instant::now();
    run_load(
        load,
        &board,
        |_| Ok(Stock(open(&path)?)),
        || {
            loop {
                std::thread::sleep(PAUSE);
                if begun.elapsed() >= load.lasts {
                    return Ok(());
                }
                board.enter(Phase::Backup);
                copy(&path, &folder.join("stock-copy.db"))?;
                board.enter(Phase::Alone);
            }
        },
    )
}

fn open(path: &Path) -> anyhow::Result<Sqlite> {
    let connection = Sqlite::open(path)?;
    connection.busy_timeout(Duration::from_secs(30))?;
    connection.execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL")?;
    Ok(connection)
}

/// `VACUUM INTO` copies a snapshot; `.backup` begins again after each commit of another connection.
fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    if to.exists() {
        std::fs::remove_file(to)?;
    }
    open(from)?.execute("VACUUM INTO ?1", [to.display().to_string()])?;
    Ok(())
}

struct Stock(Sqlite);

impl Connection for Stock {
    fn transfer(&mut self, transfer: &Transfer) -> anyhow::Result<bool> {
        match commit(&mut self.0, transfer) {
            Ok(()) => Ok(true),
            Err(rusqlite::Error::SqliteFailure(error, _))
                if error.code == rusqlite::ErrorCode::DatabaseBusy =>
            {
                Ok(false)
            }
            Err(error) => Err(error.into()),
        }
    }

    fn read(&mut self, account: u64) -> anyhow::Result<()> {
        let mut read = self
            .0
            .prepare_cached("SELECT balance FROM accounts WHERE id = ?1")?;
        let _balance: i64 = read.query_row([account as i64], |row| row.get(0))?;
        Ok(())
    }
}

fn commit(connection: &mut Sqlite, transfer: &Transfer) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let amount = transfer.amount as i64;
    for (account, moved) in [(transfer.from, -amount), (transfer.to, amount)] {
        transaction
            .prepare_cached("UPDATE accounts SET balance = balance + ?1 WHERE id = ?2")?
            .execute(params![moved, account as i64])?;
    }
    transaction
        .prepare_cached("INSERT INTO ledger (session, number, source, target, amount) VALUES (?1, ?2, ?3, ?4, ?5)")?
        .execute(params![
            transfer.session as i64,
            transfer.number as i64,
            transfer.from as i64,
            transfer.to as i64,
            amount
        ])?;
    transaction.commit()
}
