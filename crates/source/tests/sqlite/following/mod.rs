//! A follower beside real programs, and restores from its spool.

mod model;
mod processes;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use windlass_source::sqlite::{
    Existing, FollowOptions, FollowStatus, Follower, ForwardRequest, Listed, Reach, RestoreRequest,
    SpoolError, Stop, WhenFull, forward, list,
};
use windlass_source::{Error, Recovery, Snapshot};

use crate::support::{image, open, request, restore};
use model::Random;
pub(crate) use processes::{follow, follow_on_full_disk, write_model};

/// A folder with a database, its spool, and backups.
struct Place {
    folder: tempfile::TempDir,
    /// The folder of the spool, if it is elsewhere.
    spool: Option<PathBuf>,
}

/// A full backup: its image, and what ties it to the spool.
struct Backup {
    image: Vec<u8>,
    request: RestoreRequest,
}

impl Place {
    fn new(page_bytes: u32) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let spool = None;
        let place = Self { folder, spool };
        model::create(&place.database(), page_bytes);
        place
    }

    fn database(&self) -> PathBuf {
        self.folder.path().join("app.db")
    }

    fn spool(&self) -> PathBuf {
        let beside = || self.folder.path().join("spool");
        self.spool.clone().unwrap_or_else(beside)
    }

    fn target(&self) -> PathBuf {
        self.folder.path().join("restored.db")
    }

    fn options(&self) -> FollowOptions {
        FollowOptions {
            folder: self.spool(),
            every: Duration::from_millis(20),
            each_commit: false,
            spool_bytes_max: None,
            when_full: WhenFull::Gap,
        }
    }

    fn back_up(&self) -> Backup {
        let snapshot = open(&self.database());
        let size_bytes = snapshot.files()[0].size_bytes;
        let request = RestoreRequest {
            wal_position: snapshot.wal_position(),
            ..request(&self.target(), size_bytes)
        };
        let image = image(snapshot, 4);
        Backup { image, request }
    }

    /// Restores a backup and the spool, and checks the result; the number of its last transaction.
    fn forward(&self, backup: &Backup, stop: Stop) -> Result<(Reach, i64), Error> {
        let target = self.target();
        drop(std::fs::remove_file(&target));
        restore(&backup.request, &backup.image, Recovery::NoRecovery);
        let reach = forward(&ForwardRequest {
            target: target.clone(),
            spool: self.spool(),
            stop,
            existing: Existing::Refuse,
            cancel: Arc::default(),
        })?;
        let number = model::check(&target);
        for suffix in ["", "-wal", "-shm"] {
            drop(std::fs::remove_file(format!(
                "{}{suffix}",
                target.display()
            )));
        }
        Ok((reach, number))
    }

    fn gaps(&self) -> Vec<String> {
        let (listed, _) = list(&self.spool()).unwrap();
        let gaps = listed.into_iter().filter_map(|listed| match listed {
            Listed::Gap { reason, .. } => Some(reason),
            Listed::Range { .. } => None,
        });
        gaps.collect()
    }
}

/// A follower in a thread.
struct Running {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Result<FollowStatus, Error>>,
}

impl Running {
    fn start(database: &Path, options: &FollowOptions) -> Self {
        let mut follower = Follower::begin(database, options).unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || follower.run(&stopped, &mut |_| {}));
        Self { stop, thread }
    }

    fn end(self) -> FollowStatus {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap().unwrap()
    }
}

fn seed() -> u64 {
    let time = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap();
    let seed = std::env::var("WINDLASS_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or(time.as_nanos() as u64 | 1);
    println!("WINDLASS_SEED={seed}");
    seed
}

/// Restores random moments onto a backup; every one is a committed state, and no commit is missing between them. How
/// many could be restored.
fn check_moments(place: &Place, backup: &Backup, random: &mut Random, count: usize) -> usize {
    let (listed, _) = list(&place.spool()).unwrap();
    let ends = listed.iter().map(|listed| match listed {
        Listed::Range { from_us, to_us, .. } | Listed::Gap { from_us, to_us, .. } => {
            (*from_us, *to_us)
        }
    });
    let from = ends.clone().map(|(from, _)| from).min().unwrap();
    let to = ends.map(|(_, to)| to).max().unwrap();
    let mut offset = None;
    let mut restored = 0;
    for index in 0..count {
        let stop = match index {
            0 => Stop::Latest,
            _ => Stop::Time(from + random.below(to - from + 2)),
        };
        match place.forward(backup, stop) {
            Ok((reach, number)) => {
                let found = number - reach.commit_number as i64;
                let expected = *offset.get_or_insert(found);
                assert_eq!(found, expected, "a commit is missing before {reach:?}");
                restored += 1;
            }
            Err(Error::Spool(SpoolError::NotCaptured { why, .. })) => {
                println!("{stop}: {why}");
            }
            Err(Error::Spool(SpoolError::NotTied { .. } | SpoolError::NoPosition { .. })) => break,
            Err(error) => panic!("{stop}: {error}"),
        }
    }
    restored
}

#[test]
fn every_moment_onto_a_backup_is_a_committed_state() {
    let place = Place::new(4096);
    let mut random = Random(seed());
    let connection = model::connect(&place.database(), 200);
    for _ in 0..20 {
        model::commit(&connection, &mut random, 10);
    }
    let running = Running::start(&place.database(), &place.options());
    for _ in 0..300 {
        model::commit(&connection, &mut random, 10);
    }
    let backup = place.back_up();
    let mut last = 0;
    for _ in 0..3000 {
        last = model::commit(&connection, &mut random, 10);
    }
    let status = running.end();
    println!("{status:?}");
    assert!(status.let_goes > 0, "{status:?}");
    assert_eq!(status.gaps as usize, place.gaps().len());
    let restored = check_moments(&place, &backup, &mut random, 20);
    if status.gaps == 0 {
        assert!(restored > 10, "{restored}");
        let (reach, number) = place.forward(&backup, Stop::Latest).unwrap();
        assert_eq!((number, reach.commit_number as i64), (last, last - 20));
    }
    // After the follower's end everything is as without it.
    let late = place.back_up();
    let (reach, number) = place.forward(&late, Stop::Latest).unwrap();
    assert_eq!((number, reach.moments), (last, 0));
}
