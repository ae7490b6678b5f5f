//! Writers and followers as processes of their own, which are stopped and killed.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use windlass_source::Error;
use windlass_source::sqlite::{FollowOptions, Follower, Following, SpoolError, Stop, WhenFull};

use super::model::{self, Random};
use super::{Place, check_moments, seed};
use crate::process::{Process, command, say};

const SEED: &str = "WINDLASS_TEST_SEED";
const STOP: &str = "stop";

/// The role of a writer: what an application may do to its database, until it is killed. Each of its commits has a
/// number, so that none can be missing; a VACUUM, which has none, is part of the random histories in the crate.
pub(crate) fn write_model(path: &Path) {
    let mut random = Random(std::env::var(SEED).unwrap().parse().unwrap());
    let mut connection = model::connect(path, 100);
    say("ready");
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(120) {
        let pragma = |pragma: String| {
            // A refused checkpoint is an answer, too.
            let _answer = connection.query_row(&format!("PRAGMA {pragma}"), [], |_| Ok(()));
        };
        match random.below(400) {
            0 => pragma("wal_checkpoint(TRUNCATE)".to_owned()),
            1 => pragma("wal_checkpoint(RESTART)".to_owned()),
            2 => pragma("wal_checkpoint(FULL)".to_owned()),
            3 => pragma("wal_checkpoint(PASSIVE)".to_owned()),
            4 => pragma(format!(
                "journal_size_limit = {}",
                random.below(3_000_000) as i64 - 1
            )),
            5 => pragma(format!("wal_autocheckpoint = {}", 1 + random.below(1500))),
            8 => connection = model::connect(path, 1000),
            9 => std::thread::sleep(Duration::from_millis(random.below(60))),
            10 => connection
                .execute_batch("BEGIN; SELECT count(*) FROM item; COMMIT")
                .unwrap(),
            11 => connection
                .execute_batch("BEGIN IMMEDIATE; UPDATE item SET value = randomblob(500); ROLLBACK")
                .unwrap(),
            _ => {
                model::commit(&connection, &mut random, 8);
            }
        }
    }
}

fn options(database: &Path) -> FollowOptions {
    let folder = database.parent().unwrap().join("spool");
    let every = Duration::from_millis(25);
    FollowOptions {
        folder,
        every,
        each_commit: false,
        spool_bytes_max: None,
        when_full: WhenFull::Gap,
    }
}

/// The role of a follower, until there is a file that ends it.
pub(crate) fn follow(database: &Path) {
    let mut follower = Follower::begin(database, &options(database)).unwrap();
    say("ready");
    let stop = database.parent().unwrap().join(STOP);
    let flag = AtomicBool::new(false);
    let mut look = |_: &_| flag.store(stop.exists(), Ordering::Relaxed);
    let status = follower.run(&flag, &mut look).unwrap();
    say(&format!("{status:?}"));
}

fn start(role: &str, place: &Place, random: &mut Random) -> Process {
    let mut command = command(role, &place.database());
    command.env(SEED, (random.below(u64::MAX) | 1).to_string());
    let mut process = Process::of(command);
    assert_eq!(process.answer(), "ready", "{role}");
    process
}

/// One round: writers and a follower, stopped and killed at random. How many moments could be restored.
fn round(seed: u64) -> usize {
    let mut random = Random(seed | 1);
    let place = Place::new(1024 << random.below(4));
    let mut writers: Vec<Process> = (0..=random.below(2))
        .map(|_| start("model writer", &place, &mut random))
        .collect();
    let mut follower = start("follower", &place, &mut random);
    let mut backups = Vec::new();
    for _ in 0..4 + random.below(6) {
        std::thread::sleep(Duration::from_millis(random.below(120)));
        match random.below(6) {
            0 => {
                follower.signal(Signal::KILL);
                drop(follower);
                std::thread::sleep(Duration::from_millis(random.below(30)));
                follower = start("follower", &place, &mut random);
            }
            1 => {
                follower.signal(Signal::STOP);
                std::thread::sleep(Duration::from_millis(random.below(150)));
                follower.signal(Signal::CONT);
            }
            2 => {
                writers.pop();
                writers.push(start("model writer", &place, &mut random));
            }
            _ => backups.push(place.back_up()),
        }
    }
    drop(writers);
    std::fs::write(place.database().with_file_name(STOP), "").unwrap();
    println!("{}", follower.answer());
    follower.wait();
    println!("gaps: {:?}", place.gaps());
    let mut restored = 0;
    for backup in &backups {
        restored += check_moments(&place, backup, &mut random, 4);
    }
    // What is left is whole, and can be followed on.
    let last = model::check(&place.database());
    let late = place.back_up();
    if let Ok((_, number)) = place.forward(&late, Stop::Latest) {
        assert_eq!(number, last);
    }
    restored
}

#[test]
fn nothing_is_missed_silently_whoever_is_stopped_or_killed() {
    let rounds = std::env::var("WINDLASS_FOLLOW_ROUNDS")
        .ok()
        .and_then(|rounds| rounds.parse().ok());
    let seed = seed();
    let mut restored = 0;
    for index in 0..rounds.unwrap_or(4_u64) {
        let seed = seed.wrapping_add(index.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        println!("round {index}, WINDLASS_SEED={seed}");
        restored += round(seed);
    }
    println!("{restored} moments restored");
}

/// Commits until the follower has no room for its spool.
fn fill(follower: &mut Follower, connection: &rusqlite::Connection, random: &mut Random) {
    let begun = Instant::now();
    while follower.status().following != Following::SpoolFull {
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "{:?}",
            follower.status()
        );
        for _ in 0..50 {
            model::commit(connection, random, 20);
        }
        follower.step(true).unwrap();
    }
    let truncate = "PRAGMA wal_checkpoint(TRUNCATE)";
    let busy: i64 = connection
        .query_row(truncate, [], |row| row.get(0))
        .unwrap();
    assert_eq!(busy, 0, "the log is not held");
}

/// Captures again after there is room, behind a gap; and what was captured before stays.
fn go_on(place: &Place, follower: &mut Follower, before: &super::Backup, random: &mut Random) {
    let connection = model::connect(&place.database(), 1000);
    for _ in 0..20 {
        model::commit(&connection, random, 20);
    }
    std::thread::sleep(Duration::from_millis(1100));
    follower.step(true).unwrap();
    assert_eq!(follower.status().gaps, 1, "{:?}", follower.status());
    assert_eq!(follower.status().last_error, None);
    let after = place.back_up();
    let last = model::commit(&connection, random, 20);
    follower.finish().unwrap();
    let gaps = place.gaps();
    assert!(
        matches!(gaps.as_slice(), [gap] if gap.contains("was full")),
        "{gaps:?}"
    );
    let (_, number) = place.forward(&after, Stop::Latest).unwrap();
    assert_eq!(number, last);
    let error = place.forward(before, Stop::Latest).unwrap_err();
    assert!(error.to_string().contains("may be missing"), "{error}");
    check_moments(place, before, random, 5);
}

/// The role of a follower whose spool is on a small file system of its own.
pub(crate) fn follow_on_full_disk(disk: &Path) {
    say("ready");
    let mut random = Random(77);
    let place = Place {
        spool: Some(disk.join("spool")),
        ..Place::new(4096)
    };
    std::fs::write(disk.join("filler"), vec![1; 1 << 20]).unwrap();
    let mut follower = Follower::begin(&place.database(), &place.options()).unwrap();
    let connection = model::connect(&place.database(), 1000);
    let before = place.back_up();
    fill(&mut follower, &connection, &mut random);
    std::fs::remove_file(disk.join("filler")).unwrap();
    go_on(&place, &mut follower, &before, &mut random);
    say("done");
}

#[test]
fn a_full_disk_of_the_spool_is_a_gap_and_nobody_waits_for_it() {
    let folder = tempfile::tempdir().unwrap();
    let mounts = "mount -t tmpfs -o size=2m none \"$1\"";
    let answer = crate::media::elsewhere("follower, full disk", folder.path(), mounts);
    assert!(
        matches!(answer.as_deref(), None | Some("done")),
        "{answer:?}"
    );
}

#[test]
fn a_spool_at_its_limit_goes_on_when_segments_are_removed() {
    let mut random = Random(seed());
    let place = Place::new(4096);
    let options = FollowOptions {
        spool_bytes_max: Some(2 << 20),
        ..place.options()
    };
    let mut follower = Follower::begin(&place.database(), &options).unwrap();
    let connection = model::connect(&place.database(), 1000);
    let first = place.back_up();
    let segments = || {
        let names = crate::support::names(&place.spool());
        let segments = names.into_iter().filter(|name| name.ends_with(".wspool"));
        segments
            .map(|name| place.spool().join(name))
            .collect::<Vec<_>>()
    };
    while segments().len() < 4 {
        model::commit(&connection, &mut random, 20);
        follower.step(true).unwrap();
    }
    let last = place.back_up();
    fill(&mut follower, &connection, &mut random);
    let all = segments();
    assert!(all.len() > 4, "{all:?}");
    let bytes: u64 = all.iter().map(|path| path.metadata().unwrap().len()).sum();
    assert!(bytes <= 2 << 20, "{bytes}");
    for path in &all[..2] {
        std::fs::remove_file(path).unwrap();
    }
    go_on(&place, &mut follower, &last, &mut random);
    let error = place.forward(&first, Stop::Latest).unwrap_err();
    assert!(
        matches!(error, Error::Spool(SpoolError::NotTied { .. })),
        "{error}"
    );
    // One from the middle is not missed silently.
    std::fs::remove_file(&segments()[1]).unwrap();
    let error = windlass_source::sqlite::list(&place.spool()).unwrap_err();
    assert!(
        matches!(error, Error::Spool(SpoolError::Damaged { .. })),
        "{error}"
    );
}
