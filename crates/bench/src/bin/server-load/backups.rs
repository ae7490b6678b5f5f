//! Backups and restores in turn, beside the load; each copy must be a state that was committed.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};

use crate::load::{BALANCE, Board, Load, Measured, Phase, run as run_load};
use crate::served::{Served, Session, create};

/// Ballast, so that a backup takes a while.
pub(crate) const MEGABYTES: u64 = 200;
/// Load alone, between two backups.
const PAUSE: Duration = Duration::from_secs(3);

/// What is backed up in turn: options, and whether it is a differential.
const KINDS: [(&str, bool); 5] = [
    ("CHECKSUM", false),
    ("CHECKSUM, DIFFERENTIAL", true),
    ("CHECKSUM, COMPRESSION", false),
    ("CHECKSUM, COMPRESSION, DIFFERENTIAL", true),
    (
        "CHECKSUM, COMPRESSION (ALGORITHM = ZSTD, LEVEL = HIGH)",
        false,
    ),
];

/// How many copies were restored and checked.
#[derive(Debug, Default)]
pub(crate) struct Copies {
    full: u32,
    differential: u32,
}

impl fmt::Display for Copies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "copies restored under load, each a state that was committed: {} of full backups, {} of differentials",
            self.full, self.differential
        )
    }
}

/// Runs the load on a server, with backups and restores beside it.
pub(crate) fn run(
    program: &Path,
    folder: &Path,
    load: &Load,
) -> anyhow::Result<(Measured, Copies)> {
    let served = Served::start(program, &folder.join("instance"))?;
    create(&served, folder, MEGABYTES)?;
    let board = Board::new(load.sessions);
    let mut copies = Copies::default();
    let begun = Instant::now();
    let measured = run_load(
        load,
        &board,
        |_| Session::open(&served),
        || {
            let rounds = KINDS.iter().cycle();
            for (options, is_differential) in rounds {
                std::thread::sleep(PAUSE);
                if begun.elapsed() >= load.lasts {
                    break;
                }
                one(&served, folder, &board, options, *is_differential)
                    .with_context(|| format!("a backup WITH {options}"))?;
                match is_differential {
                    true => copies.differential += 1,
                    false => copies.full += 1,
                }
            }
            Ok(())
        },
    )?;
    served.stop()?;
    Ok((measured, copies))
}

/// A backup, its restore, and the check of the copy.
fn one(
    served: &Served<'_>,
    folder: &Path,
    board: &Arc<Board>,
    options: &str,
    is_differential: bool,
) -> anyhow::Result<()> {
    let place = folder.display();
    let name = if is_differential { "diff" } else { "full" };
    let before = board.acknowledged();
    board.enter(Phase::Backup);
    served.sql(&format!(
        "BACKUP DATABASE shop TO DISK = '{place}/{name}.bak' WITH INIT, FORMAT, {options}"
    ))?;
    board.enter(Phase::Alone);
    let after = board.begun();
    std::thread::sleep(PAUSE);
    board.enter(Phase::Restore);
    let places = format!(
        "MOVE 'shop' TO '{place}/copy.mdf', MOVE 'shop_log' TO '{place}/copy.ldf', REPLACE"
    );
    if is_differential {
        served.sql(&format!(
            "RESTORE DATABASE copy FROM DISK = '{place}/full.bak' WITH {places}, NORECOVERY; \
             RESTORE DATABASE copy FROM DISK = '{place}/diff.bak'"
        ))?;
    } else {
        served.sql(&format!(
            "RESTORE DATABASE copy FROM DISK = '{place}/full.bak' WITH {places}"
        ))?;
    }
    check(served, &before, &after)?;
    served.sql("DROP DATABASE copy")?;
    board.enter(Phase::Alone);
    Ok(())
}

/// The copy is what a prefix of the committed transactions made, from between the two moments.
fn check(served: &Served<'_>, before: &[u64], after: &[u64]) -> anyhow::Result<()> {
    let wrong = served.sql(&format!(
        "USE copy; SELECT COUNT(*) FROM accounts a LEFT JOIN (SELECT account, SUM(amount) AS moved FROM \
         (SELECT source AS account, -amount AS amount FROM ledger UNION ALL SELECT target, amount FROM ledger) moves \
         GROUP BY account) m ON m.account = a.id WHERE a.balance <> {BALANCE} + COALESCE(m.moved, 0)"
    ))?;
    ensure!(
        wrong.trim() == "0",
        "balances that do not follow from the ledger: {wrong}"
    );
    let gaps = served.sql("USE copy; SELECT COALESCE(MAX(id), 0) - COUNT(*) FROM ledger")?;
    ensure!(gaps.trim() == "0", "the ledger has gaps: {gaps}");
    let rows = served.sql(
        "USE copy; SELECT session, COUNT(*), MAX(number) FROM ledger GROUP BY session ORDER BY session",
    )?;
    let mut last = vec![0; before.len()];
    for row in rows.lines() {
        let mut fields = row.split_whitespace().map(str::parse::<u64>);
        let (Some(Ok(session)), Some(Ok(count)), Some(Ok(max))) =
            (fields.next(), fields.next(), fields.next())
        else {
            continue;
        };
        ensure!(
            count == max,
            "session {session} has {count} of {max} transactions"
        );
        let last = last.get_mut(usize::try_from(session)?);
        *last.context("a session that is not there")? = max;
    }
    for (session, ((last, before), after)) in last.iter().zip(before).zip(after).enumerate() {
        ensure!(
            (before..=after).contains(&last),
            "session {session}: the copy ends with {last}, acknowledged before the backup were {before}, begun at its end {after}"
        );
    }
    Ok(())
}
