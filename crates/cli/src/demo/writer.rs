//! The process that writes while backups run.
//!
//! Each transaction moves an amount from one account to another, records it in the ledger and
//! updates a post somewhere in the database. The process exits at the end of its standard input.

use std::io::Read as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension as _, TransactionBehavior, params};

use super::database::ACCOUNTS;
use super::text::Writer;
use crate::command::Outcome;
use crate::output::message_line;

/// Pause between two transactions.
const PAUSE: Duration = Duration::from_millis(1);

/// A running writer.
#[derive(Debug)]
pub(super) struct WriterProcess(Child);

impl WriterProcess {
    pub(super) fn start(database: &Path) -> std::io::Result<Self> {
        let program = std::env::current_exe()?;
        Command::new(program)
            .arg("demo-writer")
            .arg(database)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .map(Self)
    }

    /// Stops it and waits until it has exited.
    pub(super) fn stop(mut self) -> std::io::Result<bool> {
        drop(self.0.stdin.take());
        Ok(self.0.wait()?.success())
    }
}

impl Drop for WriterProcess {
    fn drop(&mut self) {
        // The end of its input stops it as well; this is for error paths.
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

pub(crate) fn run(database: &Path) -> Outcome {
    let stopped = Arc::new(AtomicBool::new(false));
    let stop = Arc::clone(&stopped);
    std::thread::spawn(move || {
        let mut rest = Vec::new();
        std::io::stdin().lock().read_to_end(&mut rest).ok();
        stop.store(true, Ordering::Relaxed);
    });
    match write(database, &stopped) {
        Ok(()) => Outcome::Succeeded,
        Err(error) => {
            message_line(&format!("the writer failed: {error}"));
            Outcome::Failed
        }
    }
}

fn write(database: &Path, stopped: &AtomicBool) -> rusqlite::Result<()> {
    let mut connection = Connection::open(database)?;
    connection.busy_timeout(Duration::from_secs(30))?;
    let mut writer = Writer::new(u64::from(std::process::id()));
    let posts: Option<i64> = connection
        .query_row("SELECT max(id) FROM posts", [], |row| row.get(0))
        .optional()
        .unwrap_or(None)
        .flatten();
    while !stopped.load(Ordering::Relaxed) {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let giver = writer.dice.below(ACCOUNTS);
        let taker = writer.dice.below(ACCOUNTS);
        let amount = 1 + writer.dice.below(1000);
        let change = "UPDATE demo_account SET balance = balance + ?2 WHERE id = ?1";
        transaction.execute(change, params![giver, -amount])?;
        transaction.execute(change, params![taker, amount])?;
        transaction.execute(
            "INSERT INTO demo_ledger SELECT ifnull(max(sequence), 0) + 1, ?1, ?2, ?3, ?4 \
             FROM demo_ledger",
            params![giver, taker, amount, writer.comment()],
        )?;
        if let Some(posts) = posts {
            transaction.execute(
                "UPDATE posts SET score = score + 1, body = body || ?2 WHERE id = ?1",
                params![1 + writer.dice.below(posts), writer.comment()],
            )?;
        }
        transaction.commit()?;
        std::thread::sleep(PAUSE);
    }
    Ok(())
}
