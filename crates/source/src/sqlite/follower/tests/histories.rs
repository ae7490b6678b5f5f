//! Random histories: an application and a follower take turns, with every kind of checkpoint in between, and with nothing
//! held at the worst moments. Every state that can be restored is one that was committed, and none is missing between two
//! of them.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::Connection;
use windlass_base::Lsn;
use windlass_media::WalPosition;

use super::super::*;
use crate::sqlite::restore::{Existing, ForwardRequest, RestoreRequest, SqliteTarget, forward};
use crate::sqlite::spool::{Listed, SpoolError, Stop, list};
use crate::sqlite::{SnapshotOptions, SqliteSnapshot};
use crate::{Recovery, RestoreTarget, Snapshot};

struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) % end
    }
}

mod changes;
mod logs;

/// A full backup in memory.
struct Backup {
    image: Vec<u8>,
    position: Option<WalPosition>,
    lsn: Lsn,
}

struct History {
    folder: tempfile::TempDir,
    random: Random,
    application: Option<Connection>,
    follower: Option<Follower>,
    /// Of each state that was committed, how many commits it took. Equal states have the last.
    states: HashMap<u64, Vec<u64>>,
    commits: u64,
    backups: Vec<Backup>,
    /// Log backups, if they are made: then they take from the spool what they have.
    logs: Option<Vec<logs::LogSet>>,
    gaps: u64,
}

fn connect(path: &Path) -> Connection {
    let connection = Connection::open(path).unwrap();
    // The follower is in the same thread: nobody would answer a wait.
    connection.busy_timeout(Duration::ZERO).unwrap();
    connection
        .execute_batch(
            "PRAGMA synchronous = OFF; PRAGMA wal_autocheckpoint = 0; PRAGMA cache_size = 20;",
        )
        .unwrap();
    connection
}

/// A digest of the content as SQL sees it.
fn digest(connection: &Connection) -> u64 {
    let mut statement = connection.prepare("SELECT a, b FROM t ORDER BY a").unwrap();
    let mut rows = statement.query([]).unwrap();
    let mut sum = 7_u64;
    while let Some(row) = rows.next().unwrap() {
        let (a, b): (i64, Vec<u8>) = (row.get(0).unwrap(), row.get(1).unwrap());
        for byte in a.to_le_bytes().iter().chain(&b) {
            sum = (sum ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01B3);
        }
    }
    sum
}

impl History {
    fn new(seed: u64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut random = Random(seed);
        let page_bytes = 512 << random.below(4);
        let path = folder.path().join("a.db");
        let application = connect(&path);
        application
            .execute_batch(&format!(
                "PRAGMA page_size = {page_bytes}; PRAGMA auto_vacuum = {}; PRAGMA journal_mode = WAL;
                 CREATE TABLE t(a INTEGER PRIMARY KEY, b BLOB);",
                random.below(3)
            ))
            .unwrap();
        let mut history = Self {
            folder,
            random,
            application: Some(application),
            follower: None,
            states: HashMap::new(),
            commits: 0,
            backups: Vec::new(),
            logs: None,
            gaps: 0,
        };
        history.note();
        history
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("a.db")
    }

    fn options(&self) -> FollowOptions {
        FollowOptions {
            folder: self.folder.path().join("spool"),
            every: Duration::from_secs(3600),
            each_commit: self.random.0 & (1 << 20) != 0,
            spool_bytes_max: None,
            when_full: WhenFull::Gap,
        }
    }

    /// Remembers the state that was just committed.
    fn note(&mut self) {
        let application = self.application.as_ref().unwrap();
        let digest = digest(application);
        self.states.entry(digest).or_default().push(self.commits);
    }

    fn commit(&mut self) {
        let mut script = vec!["BEGIN IMMEDIATE".to_owned()];
        for _ in 0..=self.random.below(4) {
            let a = self.random.below(60);
            let bytes = self.random.below(3000);
            script.push(match self.random.below(8) {
                0 => format!("DELETE FROM t WHERE a BETWEEN {a} AND {a} + 5"),
                _ => format!("INSERT OR REPLACE INTO t VALUES ({a}, randomblob({bytes}))"),
            });
        }
        // Each commit changes something.
        let number = self.commits + 1;
        script.push(format!(
            "INSERT OR REPLACE INTO t VALUES (1000, CAST('{number}' AS BLOB))"
        ));
        script.push("COMMIT".to_owned());
        let script = script.join(";");
        let application = self.application.as_ref().unwrap();
        application.execute_batch(&script).unwrap();
        self.commits += 1;
        self.note();
    }

    fn pragma(&self, pragma: &str) {
        let application = self.application.as_ref().unwrap();
        // A refused checkpoint is an answer, too.
        let _answer = application.query_row(&format!("PRAGMA {pragma}"), [], |_| Ok(()));
    }

    fn application_step(&mut self) {
        match self.random.below(20) {
            0 => self.pragma("wal_checkpoint(TRUNCATE)"),
            1 => self.pragma("wal_checkpoint(RESTART)"),
            2 => self.pragma("wal_checkpoint(FULL)"),
            3..=6 => self.pragma("wal_checkpoint(PASSIVE)"),
            7 => {
                let limit = self.random.below(60_000) as i64 - 1;
                self.pragma(&format!("journal_size_limit = {limit}"));
            }
            8 => {
                // A transaction that leaves frames behind, and none of them counts.
                let application = self.application.as_ref().unwrap();
                application
                    .execute_batch("BEGIN IMMEDIATE; INSERT INTO t SELECT a + 5000, randomblob(4000) FROM t; ROLLBACK")
                    .unwrap();
            }
            9 if self.random.below(4) == 0 => {
                let application = self.application.as_ref().unwrap();
                application.execute_batch("VACUUM").unwrap();
                self.commits += 1;
                self.note();
            }
            10 if self.random.below(4) == 0 => {
                self.application = None;
                self.application = Some(connect(&self.path()));
            }
            11 => {
                let autocheckpoint = [0, 1, 10, 50][self.random.below(4) as usize];
                self.pragma(&format!("wal_autocheckpoint = {autocheckpoint}"));
            }
            12 if self.random.below(3) == 0 => self.change_mode(),
            _ => self.commit(),
        }
    }

    /// To rollback mode, where the page size can be changed, and back. Refused while the follower is connected.
    fn change_mode(&mut self) {
        self.pragma("journal_mode = DELETE");
        let page_bytes = 512 << self.random.below(4);
        self.pragma(&format!("page_size = {page_bytes}"));
        self.commit();
        let application = self.application.as_ref().unwrap();
        application.execute_batch("VACUUM").unwrap();
        self.commits += 1;
        self.note();
        self.pragma("journal_mode = WAL");
    }

    fn follower_step(&mut self) {
        let options = self.options();
        let path = self.path();
        let kind = self.random.below(24);
        let is_due = self.random.below(3) == 0;
        let Some(follower) = &mut self.follower else {
            self.follower = Some(Follower::begin(&path, &options).unwrap());
            return;
        };
        match kind {
            // The follower is killed: what it had not made durable is lost to it.
            0 => {
                self.gaps += follower.status.gaps;
                self.follower = None;
            }
            1 => {
                follower.finish().unwrap();
                self.gaps += follower.status.gaps;
                self.follower = None;
            }
            2..=6 => self.without_hold(),
            7 => {
                // The mark is renewed only if nothing was committed for a while.
                std::thread::sleep(Duration::from_millis(13));
                follower.step(is_due).unwrap();
            }
            8 => self.back_up(),
            9 if self.logs.is_some() => self.back_up_log(),
            _ => follower.step(is_due).unwrap(),
        }
    }

    /// Lets go as the follower does past a limit, only that anything may happen meanwhile.
    fn without_hold(&mut self) {
        let Some(follower) = &mut self.follower else {
            return;
        };
        follower.step(false).unwrap();
        if let Some(reading) = &mut follower.reading {
            reading.holder.let_go().unwrap();
        }
        for _ in 0..self.random.below(6) {
            self.application_step();
        }
        if self.random.below(2) == 0 {
            // Lock 0 comes when all is copied, and only then the commits are read.
            self.pragma("wal_checkpoint(PASSIVE)");
            let later = Instant::now() + Duration::from_secs(3600);
            let reading = self
                .follower
                .as_mut()
                .and_then(|follower| follower.reading.as_mut());
            if let Some(reading) = reading {
                reading.loose = Some((later, super::super::proof::Cover::Absent));
            }
        }
        let Some(follower) = &mut self.follower else {
            return;
        };
        // As with lock 0, if it can be had.
        follower.step(self.random.below(2) == 0).unwrap();
    }

    /// Restores moments onto backups.
    fn check(&mut self) -> (u64, u64) {
        if let Some(mut follower) = self.follower.take() {
            follower.finish().unwrap();
            self.gaps += follower.status.gaps;
        }
        let spool = self.options().folder;
        if !spool.exists() {
            return (0, 0);
        }
        let (listed, rest) = list(&spool).unwrap();
        assert_eq!(rest, 0);
        let gaps = listed
            .iter()
            .filter(|listed| matches!(listed, Listed::Gap { .. }));
        assert_eq!(gaps.count() as u64, self.gaps, "every gap is named");
        let last = listed.iter().map(|listed| match listed {
            Listed::Range { last_commit, .. } => *last_commit,
            Listed::Gap { .. } => 0,
        });
        let last = last.max().unwrap_or(0);
        let mut restored = 0;
        for backup in std::mem::take(&mut self.backups) {
            let mut possible: Option<Vec<i64>> = None;
            for index in 0..4 {
                let stop = match index {
                    0 => Stop::Latest,
                    _ => Stop::Commit(self.random.below(last + 1)),
                };
                let Some((number, digest)) = self.restore(&backup, stop) else {
                    continue;
                };
                restored += 1;
                let commits = self
                    .states
                    .get(&digest)
                    .expect("a state that was committed");
                // How many commits of the application the spool's first one is after; the same for all
                // moments onto one backup, or a commit would be missing between them.
                let offsets = commits.iter().map(|commit| *commit as i64 - number as i64);
                let offsets: Vec<i64> = match possible {
                    None => offsets.collect(),
                    Some(before) => offsets.filter(|offset| before.contains(offset)).collect(),
                };
                assert!(!offsets.is_empty(), "a commit is missing before {stop}");
                possible = Some(offsets);
            }
        }
        (restored, self.gaps)
    }

    fn restore(&self, backup: &Backup, stop: Stop) -> Option<(u64, u64)> {
        let target = self.folder.path().join("restored.db");
        let request = RestoreRequest {
            target: target.clone(),
            size_bytes: backup.image.len() as u64,
            wal_position: backup.position,
            ..RestoreRequest::default()
        };
        let full = Box::new(SqliteTarget::begin(&request).unwrap());
        full.write(1, 0, &backup.image).unwrap();
        full.finish(Recovery::NoRecovery).unwrap();
        let forwarded = forward(&ForwardRequest {
            target: target.clone(),
            spool: self.options().folder,
            stop,
            existing: Existing::Refuse,
            cancel: Arc::default(),
        });
        let reach = match forwarded {
            Ok(reach) => reach,
            Err(Error::Spool(
                SpoolError::NotCaptured { .. }
                | SpoolError::NotTied { .. }
                | SpoolError::NoPosition { .. },
            )) => {
                assert!(!target.exists());
                return None;
            }
            Err(error) => panic!("{stop}: {error}"),
        };
        let connection = Connection::open(&target).unwrap();
        let whole: String = connection
            .query_row("PRAGMA integrity_check", [], |row| row.get(0))
            .unwrap();
        assert_eq!(whole, "ok");
        let digest = digest(&connection);
        let size = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size";
        let bytes: i64 = connection.query_row(size, [], |row| row.get(0)).unwrap();
        assert_eq!(
            std::fs::metadata(&target).unwrap().len() as i64,
            bytes,
            "its length"
        );
        drop(connection);
        std::fs::remove_file(&target).unwrap();
        Some((reach.commit_number, digest))
    }
}

impl History {
    fn back_up(&mut self) {
        let options = SnapshotOptions {
            spool: Some(self.options().folder),
            after: self.last_lsn(),
            ..SnapshotOptions::default()
        };
        let snapshot = SqliteSnapshot::open(&self.path(), &options).unwrap();
        let mut image = vec![0; snapshot.files()[0].size_bytes as usize];
        snapshot.read(1, 0, &mut image).unwrap();
        snapshot.close().unwrap();
        self.backups.push(Backup {
            image,
            position: snapshot.wal_position(),
            lsn: snapshot.position().last_lsn,
        });
    }
}

/// The seeds of histories, each of which is printed: that of the environment, or the time.
fn seeds(default: u64) -> (Option<u64>, impl Iterator<Item = u64>) {
    let number = |name| std::env::var(name).ok()?.parse().ok();
    let count = number("WINDLASS_HISTORIES");
    let time = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap();
    let seed = number("WINDLASS_SEED").unwrap_or(time.as_nanos() as u64);
    let seeds = (0..count.unwrap_or(default)).map(move |round| {
        let seed = seed.wrapping_add(round.wrapping_mul(0x9E37_79B9)) | 1;
        println!("WINDLASS_SEED={seed} WINDLASS_HISTORIES=1");
        seed
    });
    (count, seeds)
}

#[test]
fn random_histories_restore_to_states_that_were_committed() {
    let (count, seeds) = seeds(100);
    let (mut restored, mut gaps) = (0, 0);
    for seed in seeds {
        let mut history = History::new(seed);
        for _ in 0..40 + history.random.below(120) {
            match history.random.below(3) {
                0 => history.follower_step(),
                _ => history.application_step(),
            }
        }
        let (more, more_gaps) = history.check();
        restored += more;
        gaps += more_gaps;
    }
    println!("{restored} moments restored, {gaps} gaps");
    assert!(count.is_some_and(|count| count < 50) || restored > 50 && gaps > 10);
}
