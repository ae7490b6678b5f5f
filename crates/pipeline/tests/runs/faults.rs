//! Threads that fail in the middle of a run: no failure ends in success, in a set that looks complete,
//! or in a run that hangs.

use std::collections::HashMap;
use std::io::Write as _;
use std::path::Path;
use std::sync::Mutex;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use windlass_codec::Compression;
use windlass_device::DeviceAddress;
use windlass_engine::BackupMode;
use windlass_pipeline::{
    BackupRequest, Error, Fault, FaultPoint, MediaSet, Observer, Tuning, Unobserved, backup,
    restore, restore_selected, verify,
};
use windlass_source::Snapshot;
use windlass_source::engine::EngineSnapshot;
use windlass_source::sqlite::SqliteTarget;

use crate::support::{
    Everything, Folder, devices, prepared, read_request, request, restore_request, snapshot,
};

/// No run of these tests takes a hundredth of it.
const HANGS: Duration = Duration::from_secs(100);

/// Lets one unit of the work at one place fail, and counts the units of all.
#[derive(Debug)]
struct Failing {
    wanted: Option<(FaultPoint, u64, Fault)>,
    units: Mutex<HashMap<FaultPoint, u64>>,
}

impl Failing {
    fn new(wanted: Option<(FaultPoint, u64, Fault)>) -> Self {
        Self {
            wanted,
            units: Mutex::default(),
        }
    }
}

impl Observer for Failing {
    fn fault(&self, at: FaultPoint) -> Option<Fault> {
        let mut units = self.units.lock().unwrap();
        let unit = units.entry(at).or_default();
        *unit += 1;
        let (point, wanted, fault) = self.wanted?;
        (point == at && wanted == *unit).then_some(fault)
    }
}

/// Runs `work` without a fault, and then once for each fault of the first, the middle and the last unit
/// at each of `points`. What it returns must be an error whenever there was a fault.
fn fail_everywhere(points: &[FaultPoint], work: &(impl Fn(&Failing) -> Result<(), Error> + Sync)) {
    let whole = Failing::new(None);
    work(&whole).unwrap();
    for &point in points {
        let units = whole.units.lock().unwrap().get(&point).copied();
        let units = units.unwrap_or_else(|| panic!("{point:?} is never reached"));
        for unit in [1, units.div_ceil(2), units] {
            for fault in [Fault::Panic, Fault::Error, Fault::End] {
                let reported = format!("{fault:?} at {point:?}, unit {unit} of {units}");
                let failing = Failing::new(Some((point, unit, fault)));
                let error = within_time(&reported, || work(&failing)).expect_err(&reported);
                match (fault, &error) {
                    (Fault::Panic, Error::Panicked(panicked)) => {
                        assert_eq!(panicked.reason, "a test asked for it", "{reported}");
                    }
                    (Fault::Error, Error::FrameTooLarge { .. }) | (Fault::End, _) => {}
                    _ => panic!("{reported}: {error}"),
                }
            }
        }
    }
}

/// Ends the test program when the work does not come to its end.
fn within_time<T>(reported: &str, work: impl FnOnce() -> T) -> T {
    let (done, waiting) = channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            if waiting.recv_timeout(HANGS) == Err(RecvTimeoutError::Timeout) {
                writeln!(std::io::stderr(), "{reported}: hangs").ok();
                std::process::abort();
            }
        });
        let result = work();
        drop(done);
        result
    })
}

/// Many small frames, so that there is a middle.
fn in_small_frames(request: BackupRequest) -> BackupRequest {
    BackupRequest {
        tuning: Tuning {
            transfer_bytes: Some(64 << 10),
            threads: Some(2),
            ..Tuning::default()
        },
        ..request
    }
}

const IN_BACKUP: [FaultPoint; 3] = [
    FaultPoint::BackupRead,
    FaultPoint::BackupTransform,
    FaultPoint::BackupWrite,
];

/// Appends to `devices` under every fault, and looks at what is on them each time.
fn append_everywhere(
    points: &[FaultPoint],
    devices: &[DeviceAddress],
    compression: Compression,
    open: &(dyn Fn() -> Box<dyn Snapshot> + Sync),
) {
    let wanted = in_small_frames(request(devices, compression));
    backup(&wanted, open(), &Unobserved).unwrap();
    let lengths = || -> Vec<u64> {
        let length =
            |device: &DeviceAddress| std::fs::metadata(device.file().unwrap()).unwrap().len();
        devices.iter().map(length).collect()
    };
    let before = lengths();
    fail_everywhere(points, &|failing| {
        let outcome = backup(&wanted, open(), failing).map(drop);
        let media = MediaSet::open(devices).unwrap();
        assert!(media.sets()[0].is_complete);
        match &outcome {
            Ok(()) => {
                assert_eq!(media.sets().len(), 2);
                cut(devices, &before);
            }
            Err(_) => {
                assert_eq!(media.sets().len(), 1, "no set but the earlier one");
                assert_eq!(lengths(), before);
            }
        }
        outcome
    });
    verify(
        &MediaSet::open(devices).unwrap(),
        1,
        &read_request(),
        &Unobserved,
    )
    .unwrap();
}

fn cut(devices: &[DeviceAddress], lengths: &[u64]) {
    for (device, length) in devices.iter().zip(lengths) {
        let file = std::fs::File::options()
            .write(true)
            .open(device.file().unwrap())
            .unwrap();
        file.set_len(*length).unwrap();
    }
}

#[test]
fn a_thread_that_fails_in_a_backup_of_a_sqlite_file_ends_it_without_a_set() {
    let Folder { folder, database } = prepared(3000);
    for (names, compression) in [
        (&["1.bak"][..], Compression::NONE),
        (&["2.bak", "3.bak"], Compression::ZSTD_LOW),
    ] {
        let devices = devices(folder.path(), names);
        append_everywhere(&IN_BACKUP, &devices, compression, &|| snapshot(&database));
    }
}

#[test]
fn a_thread_that_fails_in_a_backup_of_an_engine_database_ends_it_without_a_set() {
    let folder = tempfile::tempdir().unwrap();
    let database = crate::engine::create(folder.path());
    let points = [&IN_BACKUP[..], &[FaultPoint::BackupLog]].concat();
    let devices = devices(folder.path(), &["1.bak", "2.bak"]);
    append_everywhere(&points, &devices, Compression::ZSTD_LOW, &|| {
        Box::new(EngineSnapshot::open(&database, BackupMode::Full).unwrap())
    });
}

#[test]
fn a_failure_while_the_end_is_written_leaves_no_set() {
    let Folder { folder, database } = prepared(300);
    let devices = devices(folder.path(), &["1.bak", "2.bak"]);
    let wanted = request(&devices, Compression::ZSTD_LOW);
    backup(&wanted, snapshot(&database), &Unobserved).unwrap();
    for point in [FaultPoint::BackupEndData, FaultPoint::BackupEndSet] {
        for (unit, fault) in [
            (1, Fault::Panic),
            (2, Fault::Panic),
            (1, Fault::Error),
            (2, Fault::Error),
        ] {
            let reported = format!("{fault:?} at {point:?}, family {unit}");
            let failing = Failing::new(Some((point, unit, fault)));
            let failed = within_time(&reported, || backup(&wanted, snapshot(&database), &failing));
            let error = failed.expect_err(&reported);
            assert!(!matches!(error, Error::Cancelled), "{reported}: {error}");
            assert_eq!(
                MediaSet::open(&devices).unwrap().sets().len(),
                1,
                "{reported}"
            );
        }
    }
}

fn media_of(folder: &Path, database: &Path, names: &[&str], compression: Compression) -> MediaSet {
    let devices = devices(folder, names);
    let wanted = in_small_frames(request(&devices, compression));
    backup(&wanted, snapshot(database), &Unobserved).unwrap();
    MediaSet::open(&devices).unwrap()
}

#[test]
fn a_thread_that_fails_in_a_verification_ends_it_with_an_error() {
    let Folder { folder, database } = prepared(3000);
    for (names, compression) in [
        (&["1.bak"][..], Compression::NONE),
        (&["2.bak", "3.bak"], Compression::ZSTD_LOW),
    ] {
        let media = media_of(folder.path(), &database, names, compression);
        let points = [FaultPoint::RestoreRead, FaultPoint::RestoreTransform];
        fail_everywhere(&points, &|failing| {
            verify(&media, 1, &read_request(), failing).map(drop)
        });
    }
}

#[test]
fn a_thread_that_fails_in_a_restore_ends_it_with_an_error() {
    let Folder { folder, database } = prepared(3000);
    let target = folder.path().join("copy.db");
    for (names, compression) in [
        (&["1.bak"][..], Compression::NONE),
        (&["2.bak", "3.bak"], Compression::ZSTD_LOW),
    ] {
        let media = media_of(folder.path(), &database, names, compression);
        let points = [
            FaultPoint::RestoreRead,
            FaultPoint::RestoreTransform,
            FaultPoint::RestoreWrite,
        ];
        fail_everywhere(&points, &|failing| {
            let wanted = restore_request(&media, 1, &target)?;
            let stage = SqliteTarget::begin(&wanted)?;
            let restored = restore(&media, 1, &read_request(), &stage, failing);
            drop(stage);
            assert!(!target.exists());
            restored.map(drop)
        });
    }
}

#[test]
fn a_failure_in_a_restore_of_chosen_pages_ends_it_with_an_error() {
    let Folder { folder, database } = prepared(3000);
    let media = media_of(
        folder.path(),
        &database,
        &["1.bak", "2.bak"],
        Compression::ZSTD_LOW,
    );
    fail_everywhere(&[FaultPoint::RestoreSelected], &|failing| {
        let mut all = Everything(0);
        restore_selected(&media, 1, &read_request(), &mut all, failing).map(drop)
    });
}
