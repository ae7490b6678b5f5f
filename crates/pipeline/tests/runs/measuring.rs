//! What a run says it moved is what it moved: at its end, and while it runs.

use std::sync::Mutex;
use std::time::Instant;

use windlass_base::page::pages_of;
use windlass_codec::Compression;
use windlass_device::DeviceAddress;
use windlass_pipeline::{
    FilePages, MediaSet, Observer, Probe, ProbeRequest, ReadRequest, StageCounters, Stages, Tuning,
    Unobserved, backup, probe, restore, verify,
};
use windlass_source::sqlite::SqliteTarget;
use windlass_source::{Recovery, RestoreTarget as _};

use crate::coverage::{EXTENT, in_extents};
use crate::crafted::Crafted;
use crate::support::{
    Folder, devices, prepared, read_request, request, restore_request, restore_to, snapshot,
};
use crate::troubled::Troubled;

/// All that a run tells while it runs.
#[derive(Default)]
struct Reported {
    progress: Mutex<Vec<(u64, u64, u64)>>,
    last: Mutex<Stages>,
}

impl Observer for Reported {
    fn progress(&self, done: u64, total: u64, stored: u64) {
        self.progress.lock().unwrap().push((done, total, stored));
    }

    fn moved(&self, stages: &Stages) {
        *self.last.lock().unwrap() = *stages;
    }
}

impl Reported {
    /// Each step of at most `step_bytes` is reported once, `total` is never exceeded, and the last step is the whole.
    fn check(&self, step_bytes: u64, total: u64, stored: u64) {
        let reported = self.progress.lock().unwrap();
        assert_eq!(reported.len() as u64, total.div_ceil(step_bytes));
        assert!(
            reported
                .iter()
                .all(|(done, of, _)| done <= of && *of == total)
        );
        let most = |of: fn(&(u64, u64, u64)) -> u64| reported.iter().map(of).max();
        assert_eq!(most(|reported| reported.0), Some(total));
        assert_eq!(most(|reported| reported.2), Some(stored));
        let least = reported.iter().map(|reported| reported.0).min().unwrap();
        assert!((1..=step_bytes).contains(&least), "{least}");
    }
}

/// Calls, bytes in and bytes out.
fn moved(counters: &StageCounters) -> (u64, u64, u64) {
    (counters.calls, counters.bytes_in, counters.bytes_out)
}

/// Time passed in the stage, and no more than all its threads had.
fn is_timed(counters: &StageCounters, elapsed: std::time::Duration) {
    let all = elapsed * counters.threads;
    assert!(!counters.busy.is_zero() && counters.busy <= all, "{all:?}");
    assert!(counters.wait_input <= all && counters.wait_output <= all);
}

#[test]
fn every_stage_of_a_backup_and_of_what_reads_it_counts_what_went_through() {
    let Folder { folder, database } = prepared(12_000);
    let size = std::fs::metadata(&database).unwrap().len();
    for (name, compression) in [
        ("plain.bak", Compression::NONE),
        ("packed.bak", Compression::ZSTD_LOW),
    ] {
        let devices = devices(folder.path(), &[name]);
        let reported = Reported::default();
        let wanted = in_extents(request(&devices, compression));
        let report = backup(&wanted, snapshot(&database), &reported).unwrap();
        let frame_bytes = report.plan.frame_bytes.value as u64;
        let chunks = size.div_ceil(frame_bytes);
        let stored: u64 = (Crafted::of(&devices, 1).chunks.iter())
            .map(|chunk| chunk.payload.len() as u64)
            .sum();
        assert_eq!(report.set.stored_bytes, stored);
        assert_eq!(moved(&report.stages.read), (chunks, size, size));
        assert_eq!(moved(&report.stages.transform), (chunks, size, stored));
        let on_media = std::fs::metadata(devices[0].file().unwrap()).unwrap().len();
        let written = &report.stages.write;
        assert_eq!(written.bytes_in, stored);
        assert!(written.calls > 0 && written.bytes_out >= on_media);
        assert!(written.bytes_out < on_media + (1 << 20));
        if compression == Compression::NONE {
            assert_eq!(
                (written.calls, written.bytes_per_call()),
                (chunks, size / chunks)
            );
            assert!(written.block_calls >= chunks, "a header before each chunk");
            assert_eq!(written.bytes_out - written.block_bytes, size);
            assert!(
                reported.last.lock().unwrap().write.calls > 0,
                "while it runs"
            );
        }
        assert!(!written.in_flight.is_zero() && !report.stages.read.in_flight.is_zero());
        for stage in [&report.stages.read, &report.stages.transform] {
            is_timed(stage, report.elapsed);
        }
        reported.check(frame_bytes, size, stored);
        let (most, mean) = (report.plan.threads.value, report.adapted.mean_threads);
        assert!(mean > 0.9 && mean < most as f64 + 0.1, "{mean} of {most}");
        let pages = |files: &[FilePages]| files.iter().map(|file| file.pages).sum::<u64>();
        assert_eq!(pages(&report.files), pages_of(size));

        let media = MediaSet::open(&devices).unwrap();
        let in_pieces = ReadRequest {
            tuning: Tuning {
                transfer_bytes: Some(EXTENT as u32),
                ..Tuning::default()
            },
            ..read_request()
        };
        let reported = Reported::default();
        let verified = verify(&media, 1, &in_pieces, &reported).unwrap();
        reported.check(frame_bytes, size, stored);
        let reported = Reported::default();
        let path = folder.path().join(name).with_extension("db");
        let target = SqliteTarget::begin(&restore_request(&media, 1, &path).unwrap()).unwrap();
        let restored = restore(&media, 1, &in_pieces, &target, &reported).unwrap();
        Box::new(target).finish(Recovery::Recovery).unwrap();
        reported.check(frame_bytes, size, stored);
        assert_eq!(moved(&restored.stages.write), (chunks, size, size));
        let last = reported.last.lock().unwrap().transform;
        assert!(last.bytes_out > 0 && last.bytes_out <= size);
        for report in [verified, restored] {
            assert_eq!(
                (report.processed_bytes, report.stored_bytes),
                (size, stored)
            );
            assert_eq!(pages(&report.files), pages_of(size));
            let read = &report.stages.read;
            assert_eq!((read.bytes_in, read.bytes_out), (stored, stored));
            assert!(read.calls >= stored / EXTENT, "{}", read.calls);
            assert_eq!(moved(&report.stages.transform), (chunks, stored, size));
            is_timed(read, report.elapsed);
            is_timed(&report.stages.transform, report.elapsed);
        }
    }
}

#[test]
fn stripes_on_one_disk_or_on_request_hold_the_same_number_of_bytes() {
    let Folder { folder, database } = prepared(20_000);
    for compression in [Compression::NONE, Compression::ZSTD_LOW] {
        let name = |stripe| format!("{compression}-{stripe}.bak");
        let names = ["0", "1", "2"].map(name);
        let devices = devices(folder.path(), &names.each_ref().map(String::as_str));
        let report = backup(
            &in_extents(request(&devices, compression)),
            snapshot(&database),
            &Unobserved,
        )
        .unwrap();
        assert_eq!(report.plan.even, Some("one device serves all stripes"));
        let stored =
            |device: &DeviceAddress| std::fs::metadata(device.file().unwrap()).unwrap().len();
        let bytes: Vec<u64> = devices.iter().map(stored).collect();
        let (least, most) = (bytes.iter().min().unwrap(), bytes.iter().max().unwrap());
        // A chunk, its header, and an index that is as long as its chunks are many.
        let chunk = report.plan.frame_bytes.value as u64;
        assert!(most - least <= chunk + 3 * 4096, "{compression}: {bytes:?}");
        restore_to(
            &MediaSet::open(&devices).unwrap(),
            1,
            &folder.path().join("r.db"),
            Recovery::Recovery,
        )
        .unwrap();
    }
    let apart = [
        DeviceAddress::nul(),
        DeviceAddress::disk(folder.path().join("one")),
    ];
    let plan = |is_even| {
        let mut request = request(&apart, Compression::NONE);
        request.tuning.is_even = is_even;
        let size = windlass_pipeline::SourceSize {
            bytes: 1 << 20,
            ranges: 1,
        };
        windlass_pipeline::rehearse(&request, size)
            .unwrap()
            .plan
            .even
    };
    assert_eq!((plan(false), plan(true)), (None, Some("as given")));
}

#[test]
fn a_measuring_run_reads_all_of_the_database_and_says_how_much() {
    let Folder { folder, database } = prepared(12_000);
    let size = std::fs::metadata(&database).unwrap().len();
    for wanted in [Probe::Read, Probe::Transform] {
        let request = ProbeRequest {
            probe: wanted,
            compression: Compression::ZSTD_LOW,
            deflate: None,
            encryption: None,
            checksum: false,
            tuning: Tuning {
                transfer_bytes: Some(EXTENT as u32),
                ..Tuning::default()
            },
        };
        let reported = Reported::default();
        let report = probe(&request, snapshot(&database), &reported).unwrap();
        let frame_bytes = report.plan.frame_bytes.value as u64;
        let frames = size.div_ceil(frame_bytes);
        assert_eq!(report.processed_bytes, size);
        assert_eq!(moved(&report.stages.read), (frames, size, size));
        match wanted {
            Probe::Read => assert_eq!(report.stored_bytes, size),
            Probe::Transform => assert!(report.stored_bytes < size),
        }
        let stored = report.stored_bytes;
        assert_eq!(moved(&report.stages.transform), (frames, size, stored));
        assert_eq!(moved(&report.stages.write), (0, 0, 0));
        reported.check(frame_bytes, size, stored);
        let last = reported.last.lock().unwrap().transform;
        assert!(last.bytes_in >= frame_bytes.min(size / 2), "{last:?}");
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn a_part_of_a_database_is_all_that_is_announced_and_all_that_is_read() {
    let Folder { folder, database } = prepared(3000);
    let devices = devices(folder.path(), &["1.bak"]);
    let part = Troubled {
        ranges: Some(vec![EXTENT..3 * EXTENT, 5 * EXTENT..6 * EXTENT]),
        ..Troubled::new(snapshot(&database))
    };
    let reported = Reported::default();
    let wanted = in_extents(request(&devices, Compression::NONE));
    backup(&wanted, Box::new(part), &reported).unwrap();
    reported.check(EXTENT, 3 * EXTENT, 3 * EXTENT);
}

/// Fails if more was read than the rate allows until then.
struct Hurry {
    begun: Instant,
    bytes_a_second: u64,
}

impl Observer for Hurry {
    fn moved(&self, stages: &Stages) {
        let allowed = self.bytes_a_second as f64 * (self.begun.elapsed().as_secs_f64() + 0.25);
        assert!(
            stages.read.bytes_in as f64 <= allowed,
            "{} of {allowed}",
            stages.read.bytes_in
        );
    }
}

#[test]
fn a_rate_is_kept_all_the_time_and_not_only_in_the_end() {
    let Folder { folder, database } = prepared(6000);
    let size = std::fs::metadata(&database).unwrap().len();
    let devices = devices(folder.path(), &["1.bak"]);
    let mut wanted = in_extents(request(&devices, Compression::NONE));
    wanted.tuning.limits.read = Some(size);
    let observer = Hurry {
        begun: Instant::now(),
        bytes_a_second: size,
    };
    backup(&wanted, snapshot(&database), &observer).unwrap();
}
