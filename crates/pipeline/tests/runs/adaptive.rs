//! Runs that adapt, that are limited, and that are carried by threads.

use std::sync::Mutex;

use windlass_codec::{Compression, Effort, Level};
use windlass_io::queue::{IoMethod, IoMethodChoice};
use windlass_pipeline::{
    Goal, Limits, MediaSet, Observer, Probe, ProbeRequest, ReadRequest, Stages, Tuning, Unobserved,
    Way, backup, probe, restore, verify,
};
use windlass_source::sqlite::{Existing, RestoreRequest, SqliteTarget};
use windlass_source::{Recovery, RestoreTarget as _};

use crate::support::{
    Folder, back_up, devices, prepared, read_request, request, restore_to, same, snapshot,
};

fn adaptive(goal: Goal) -> Tuning {
    Tuning {
        goal,
        adapts_level: true,
        ..Tuning::default()
    }
}

#[test]
fn a_set_of_mixed_levels_says_so_and_restores() {
    // About 60 MB: some 15 chunks.
    let Folder { folder, database } = prepared(90_000);
    let devices = devices(folder.path(), &["1.bak", "2.bak"]);
    let goals = [Goal::Fast, Goal::Small, Goal::Gentle];
    for (index, goal) in goals.into_iter().enumerate() {
        let mut request = request(&devices, Compression::ZSTD_LOW);
        request.tuning = Tuning {
            limits: Limits {
                write: Some(10 << 20),
                ..Limits::default()
            },
            ..adaptive(goal)
        };
        let report = back_up(&database, &request);
        assert_eq!(report.set.compression_level, Level::AUTO_ID);
        assert_eq!(report.plan.method(), "ZSTD:AUTO");
        assert_eq!(report.plan.priority.is_some(), goal == Goal::Gentle);
        let levels = &report.adapted.levels;
        let chunks: u64 = levels.iter().map(|level| level.chunks).sum();
        let raw: u64 = levels.iter().map(|level| level.raw_bytes).sum();
        assert_eq!(
            (chunks, raw),
            (report.set.chunk_count, report.set.backup_bytes)
        );
        let above_low = levels.iter().any(|level| level.effort > Effort::Low);
        assert!(goal != Goal::Gentle || !above_low, "{levels:?}");
        // Three times the least time is enough for more than LOW, whatever the machine.
        assert!(goal != Goal::Small || levels.len() >= 2, "{levels:?}");
        let media = MediaSet::open(&devices).unwrap();
        let position = index as u16 + 1;
        verify(&media, position, &read_request(), &Unobserved).unwrap();
        let target = folder.path().join(format!("{position}.db"));
        restore_to(&media, position, &target, Recovery::Recovery).unwrap();
        assert!(same(&database, &target), "{goal:?}");
    }
}

#[test]
fn limits_are_kept_and_the_verdict_names_them() {
    let Folder { folder, database } = prepared(9000);
    let bytes = std::fs::metadata(&database).unwrap().len();
    let devices = devices(folder.path(), &["1.bak"]);
    let mut request = request(&devices, Compression::NONE);
    request.tuning.limits.read = Some(bytes);
    let report = back_up(&database, &request);
    assert!(report.stages.read.held_back > report.stages.read.busy / 2);
    let verdict = report.stages.verdict(&report.plan, Way::Backup).unwrap();
    assert!(verdict.contains("--max-rate"), "{verdict}");
    request.tuning = Tuning {
        limits: Limits {
            write: Some(bytes),
            ..Limits::default()
        },
        ..Tuning::default()
    };
    let report = back_up(&database, &request);
    assert!(report.stages.write.held_back > report.stages.write.busy / 2);
    assert!(report.stages.read.held_back.is_zero());
    let verdict = report.stages.verdict(&report.plan, Way::Backup).unwrap();
    assert!(verdict.contains("--max-write-rate"), "{verdict}");
    let probed = ProbeRequest {
        probe: Probe::Transform,
        compression: Compression::ZSTD_LOW,
        deflate: None,
        encryption: None,
        checksum: false,
        tuning: adaptive(Goal::Fast),
    };
    let report = probe(&probed, snapshot(&database), &Unobserved).unwrap();
    assert!(!report.adapted.levels.is_empty());
}

#[test]
fn threads_carry_a_backup_and_a_restore_as_the_ring_does() {
    let Folder { folder, database } = prepared(9000);
    let devices = devices(folder.path(), &["1.bak", "2.bak"]);
    for (index, io_method) in [IoMethodChoice::Threads, IoMethodChoice::Auto]
        .into_iter()
        .enumerate()
    {
        for compression in [Compression::NONE, Compression::ZSTD_LOW] {
            let mut request = request(&devices, compression);
            request.tuning.io_method = io_method;
            let report = back_up(&database, &request);
            let by = (
                report.plan.reads_by.method,
                report.plan.writes_by.unwrap().method,
            );
            if io_method == IoMethodChoice::Threads {
                assert_eq!(by, (IoMethod::Threads, IoMethod::Threads));
            }
            let media = MediaSet::open(&devices).unwrap();
            let read = ReadRequest {
                tuning: Tuning {
                    io_method,
                    ..Tuning::default()
                },
                ..read_request()
            };
            let set = media.set(report.set.position).unwrap().configuration;
            let path = folder.path().join(format!("{index}-{}.db", set.position));
            let target = SqliteTarget::begin(&RestoreRequest {
                target: path.clone(),
                size_bytes: set.files[0].size_bytes,
                existing: Existing::Replace,
                set_guid: set.set_guid,
                checkpoint_lsn: set.checkpoint_lsn,
                database_name: set.database.clone(),
                family_guid: set.family_guid,
                as_is: true,
                ..RestoreRequest::default()
            })
            .unwrap();
            let restored = restore(&media, set.position, &read, &target, &Unobserved).unwrap();
            Box::new(target).finish(Recovery::Recovery).unwrap();
            if io_method == IoMethodChoice::Threads {
                assert_eq!(restored.plan.reads_by.method, IoMethod::Threads);
            }
            assert!(same(&database, &path), "{io_method:?} {compression}");
        }
    }
}

/// The nice value of the thread that asks.
fn niceness() -> i64 {
    let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
    let after_name = stat.rsplit(')').next().unwrap();
    after_name
        .split_whitespace()
        .nth(16)
        .unwrap()
        .parse()
        .unwrap()
}

/// Records the state of the threads that report progress.
#[derive(Default)]
struct Standing(Mutex<Vec<i64>>);

impl Observer for Standing {
    fn progress(&self, _: u64, _: u64, _: u64) {
        self.0.lock().unwrap().push(niceness());
    }
}

#[test]
fn a_gentle_run_stands_behind_others_and_its_caller_does_not() {
    let Folder { folder, database } = prepared(3000);
    let devices = devices(folder.path(), &["1.bak"]);
    let before = niceness();
    let mut request = request(&devices, Compression::ZSTD_LOW);
    for (goal, expected) in [(Goal::Fast, before), (Goal::Gentle, 19)] {
        request.tuning.goal = goal;
        let standing = Standing::default();
        backup(&request, snapshot(&database), &standing).unwrap();
        let seen = standing.0.into_inner().unwrap();
        assert!(
            !seen.is_empty() && seen.iter().all(|nice| *nice == expected),
            "{seen:?}"
        );
    }
    assert_eq!(niceness(), before);
}

/// Keeps the last report.
#[derive(Default)]
struct Watching(Mutex<Stages>);

impl Observer for Watching {
    fn moved(&self, stages: &Stages) {
        *self.0.lock().unwrap() = *stages;
    }
}

#[test]
fn what_is_told_while_it_runs_ends_at_what_is_reported() {
    let Folder { folder, database } = prepared(9000);
    let devices = devices(folder.path(), &["1.bak"]);
    let watching = Watching::default();
    let request = request(&devices, Compression::ZSTD_LOW);
    let report = backup(&request, snapshot(&database), &watching).unwrap();
    let reported = *watching.0.lock().unwrap();
    assert_eq!(
        reported.transform.bytes_in,
        report.stages.transform.bytes_in
    );
    assert_eq!(reported.transform.calls, report.stages.transform.calls);
    assert!(reported.read.bytes_out > 0 && reported.read.busy <= report.stages.read.busy);
    assert!(reported.write.bytes_in <= report.stages.write.bytes_in);
}
