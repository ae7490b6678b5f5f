//! Random histories of a database: whatever happened to it and to its clock, the newest state that its media lead to is the
//! last one that was backed up, or a restore is refused; and the same after `expire` has deleted what nobody needs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use rusqlite::config::DbConfig;
use windlass_crypt::KeyRing;
use windlass_device::DeviceFolder;
use windlass_engine::BackupDescription;
use windlass_media::craft;
use windlass_source::Recovery;
use windlass_source::engine::describe;

use super::{Aim, NewestRequest, RestoreOptions};
use crate::operation::expire::{ExpireOptions, Removal, Trust};
use crate::operation::{DeviceName, MediaOptions};
use crate::outcome::Collected;
use crate::retention::Policy;
use crate::{Failure, Instance, Session, Silent};

/// What happens to a database beside commits and backups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trouble {
    /// It is restored to earlier states.
    Forks,
    /// So it is, and its clock is wrong by hours at times.
    Clocks,
    /// Its files and those of its instance are put back from a copy.
    Snapshots,
    /// The same of a `SQLite` file, whose log is begun again at times.
    File,
}

impl Trouble {
    /// The errors of restores that are refused because nobody can tell which state is the newest.
    fn refusals(self) -> &'static [u32] {
        match self {
            Self::Forks => &[],
            Self::Clocks => &[50065, 50066, 50220],
            Self::Snapshots | Self::File => &[50220],
        }
    }
}

struct Rng(u64);

impl Rng {
    fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 11).unwrap() % limit.max(1)
    }
}

/// The rows of the database, and the media of the history that it has now.
#[derive(Debug, Clone, Default)]
struct Line {
    rows: Vec<u32>,
    media: Vec<String>,
}

struct History {
    folder: tempfile::TempDir,
    rng: Rng,
    trouble: Trouble,
    row: u32,
    made: usize,
    line: Line,
    /// The rows in each backup.
    states: BTreeMap<String, Vec<u32>>,
    copied: Option<(BTreeMap<PathBuf, Vec<u8>>, Line)>,
    hours: i64,
    /// What happened, for messages.
    told: Vec<String>,
}

/// What a copy of the machine has.
const FILES: [&str; 6] = [
    "shop.mdf",
    "shop.ldf",
    "shop.db",
    "shop.db-wal",
    "shop.db-shm",
    "instance",
];

/// The files at a path, or below it.
fn read_all(path: &Path, into: &mut BTreeMap<PathBuf, Vec<u8>>) {
    if path.is_dir() {
        for entry in std::fs::read_dir(path).unwrap() {
            read_all(&entry.unwrap().path(), into);
        }
    } else if let Ok(bytes) = std::fs::read(path) {
        into.insert(path.to_owned(), bytes);
    }
}

impl History {
    fn new(seed: u64, trouble: Trouble) -> Self {
        let mut history = Self {
            folder: tempfile::tempdir().unwrap(),
            rng: Rng::new(seed),
            trouble,
            row: 0,
            made: 0,
            line: Line::default(),
            states: BTreeMap::new(),
            copied: None,
            hours: 0,
            told: Vec::new(),
        };
        std::fs::create_dir(history.at("media")).unwrap();
        match trouble {
            Trouble::File => history.make_file(),
            _ => history.make_database(),
        }
        history.back_up("DATABASE", "");
        history
    }

    fn make_file(&self) {
        let create = "PRAGMA journal_mode = WAL; CREATE TABLE t(n INTEGER)";
        self.application().execute_batch(create).unwrap();
        self.succeed(
            "EXEC sp_attach_db 'Shop', '{at}/shop.db'
ALTER DATABASE Shop SET RECOVERY FULL",
        );
    }

    /// It leaves its log behind when it is closed.
    fn application(&self) -> Connection {
        let application = Connection::open(self.at("shop.db")).unwrap();
        let leaves_log = DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE;
        application.set_db_config(leaves_log, true).unwrap();
        let manual = "PRAGMA wal_autocheckpoint = 0";
        application.execute_batch(manual).unwrap();
        application
    }

    fn make_database(&self) {
        self.succeed(
            "CREATE DATABASE Shop ON (NAME = Shop, FILENAME = '{at}/shop.mdf') \
             LOG ON (NAME = Shop_log, FILENAME = '{at}/shop.ldf')
ALTER DATABASE Shop SET RECOVERY FULL
GO
USE Shop
GO
CREATE TABLE t(n INTEGER)",
        );
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs batches in a session of their own; the databases are closed afterwards.
    fn run(&self, instance: &str, text: &str) -> Collected {
        let mut said = Collected::default();
        let instance = Instance::open(Some(&self.at(instance))).unwrap();
        let mut session = Session::new(instance);
        let at = self.folder.path().display().to_string();
        for batch in text.replace("{at}", &at).split("GO\n") {
            let _end = session.execute_batch(batch, 1, &mut said);
        }
        assert!(session.instance().close_engine_databases().is_empty());
        said
    }

    #[track_caller]
    fn succeed(&self, text: &str) {
        let said = self.run("instance", text);
        assert!(
            !said.has_failed(),
            "{text}: {:?}: {:?}",
            said.messages,
            self.told
        );
    }

    fn insert(&mut self) {
        for _ in 0..[1, 1, 3][self.rng.below(3)] {
            self.row += 1;
            let insert = format!("INSERT INTO t VALUES ({})", self.row);
            match self.trouble {
                Trouble::File => self.application().execute_batch(&insert).unwrap(),
                _ => self.succeed(&format!("USE Shop\nGO\n{insert}")),
            }
            self.line.rows.push(self.row);
        }
    }

    /// One that is refused, as a differential without a base, did not happen.
    fn back_up(&mut self, what: &str, options: &str) {
        self.made += 1;
        let name = format!("{:03}.bak", self.made);
        let statement =
            format!("BACKUP {what} Shop TO DISK = '{{at}}/media/{name}' WITH INIT{options}");
        let said = self.run("instance", &statement);
        if said.has_failed() {
            self.told
                .push(format!("refused {what}{options}: {:?}", said.numbers()));
            return;
        }
        self.line.media.push(name.clone());
        self.states.insert(name.clone(), self.line.rows.clone());
        if self.trouble == Trouble::Clocks && self.rng.below(4) == 0 {
            self.hours = [0, 0, 5, -5, 2][self.rng.below(5)];
        }
        redate(&self.at("media").join(&name), self.hours);
        self.told
            .push(format!("{name} {what}{options}, by {} h", self.hours));
    }

    /// Restores an earlier state over the database.
    fn fork(&mut self) {
        let name = self.line.media[self.rng.below(self.line.media.len())].clone();
        let restore =
            format!("RESTORE DATABASE Shop FROM DISK = '{{at}}/media/{name}' WITH REPLACE");
        // Of a differential or a log backup alone, it is refused.
        if self.run("instance", &restore).has_failed() {
            return;
        }
        self.told.push(format!("restored {name}"));
        self.line.rows = self.states[&name].clone();
        self.line
            .media
            .truncate(self.line.media.iter().position(|own| *own == name).unwrap() + 1);
        self.back_up("DATABASE", "");
    }

    fn put_back(&mut self) {
        match self.copied.clone() {
            Some((files, line)) if self.rng.below(3) > 0 => {
                std::fs::remove_dir_all(self.at("instance")).unwrap();
                for (path, bytes) in files {
                    // Files of the database stay the same ones.
                    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                    std::fs::write(path, bytes).unwrap();
                }
                self.line = line;
                self.told.push("put back".to_owned());
            }
            _ => {
                let mut files = BTreeMap::new();
                for name in FILES {
                    read_all(&self.at(name), &mut files);
                }
                self.copied = Some((files, self.line.clone()));
                self.told.push("copied".to_owned());
            }
        }
    }

    /// Of a file: the log is begun again, once or twice; of two, the follower can have missed one.
    fn checkpoint(&mut self) {
        for _ in 0..=self.rng.below(2) {
            self.insert();
            let checkpoint = "PRAGMA wal_checkpoint(TRUNCATE)";
            let busy = |row: &rusqlite::Row<'_>| row.get::<_, i64>(0);
            let busy = self.application().query_row(checkpoint, [], busy);
            assert_eq!(busy, Ok(0));
        }
        self.told.push("checkpoint".to_owned());
    }

    fn step(&mut self) {
        match self.rng.below(20) {
            0..6 => self.insert(),
            6..11 => {
                self.insert();
                self.back_up("LOG", "");
            }
            11 | 12 => {
                self.insert();
                self.back_up("DATABASE", "");
            }
            13 | 14 => {
                self.insert();
                self.back_up("DATABASE", ", DIFFERENTIAL");
            }
            15 => {
                self.insert();
                self.back_up("DATABASE", ", COPY_ONLY");
            }
            19 if self.trouble == Trouble::File => self.checkpoint(),
            _ if matches!(self.trouble, Trouble::Snapshots | Trouble::File) => self.put_back(),
            _ => self.fork(),
        }
    }

    /// The rows of the newest state on the media, or the numbers of the errors.
    fn restored(&self) -> Result<Vec<u32>, Vec<u32>> {
        let numbers = |failure: Failure| -> Vec<u32> {
            failure
                .messages
                .iter()
                .map(|message| message.number)
                .collect()
        };
        let _absent = std::fs::remove_dir_all(self.at("other"));
        let mut session = Session::new(Instance::open(Some(&self.at("other"))).unwrap());
        let media = MediaOptions {
            devices: vec![DeviceName::physical(self.at("media").display().to_string())],
            ..MediaOptions::default()
        };
        let target = self.at("other/copy.mdf");
        let request = NewestRequest {
            of: None,
            name: "Copy",
            target: Some(&target),
            leaves_open: false,
            aim: Aim::Newest,
            keys: &KeyRing::default(),
        };
        let plan = session.newest(&media, &request).map_err(numbers)?;
        let last = plan.steps.len() - 1;
        for (index, step) in plan.steps.into_iter().enumerate() {
            let restore = step.restore(RestoreOptions {
                target: (index == 0).then(|| target.clone()),
                ..RestoreOptions::default()
            });
            let restore = match index == last {
                true => RestoreOptions {
                    recovery: Recovery::Recovery,
                    ..restore
                },
                false => restore,
            };
            session
                .restore("Copy", &restore, &mut Silent)
                .map_err(numbers)?;
        }
        assert!(session.instance().close_engine_databases().is_empty());
        drop(session);
        if self.trouble == Trouble::File {
            let copy = Connection::open(&target).unwrap();
            let mut query = copy.prepare("SELECT n FROM t ORDER BY n").unwrap();
            let rows = query.query_map([], |row| row.get(0)).unwrap();
            return Ok(rows.map(Result::unwrap).collect());
        }
        let said = self.run("other", "USE Copy\nGO\nSELECT n FROM t ORDER BY n");
        let rows = said.results.last().expect("a result").rows.iter();
        Ok(rows
            .map(|row| row[0].to_string().parse().unwrap())
            .collect())
    }

    fn expire(&self) {
        let policy = Policy {
            last: 1,
            ..Policy::default()
        };
        let options = ExpireOptions {
            folders: &[DeviceFolder::disk(self.at("media"))],
            policy: &policy,
            database: None,
            removal: Removal::Delete,
            trust: Trust::default(),
            gone: &[],
        };
        let mut session = Session::new(Instance::open(Some(&self.at("expiring"))).unwrap());
        let _report = session.expire(&options, &mut Silent).unwrap();
    }
}

/// Moves the dates of the only set of a medium.
fn redate(medium: &Path, hours: i64) {
    if hours == 0 {
        return;
    }
    let mut bytes = std::fs::read(medium).unwrap();
    let description = describe(&craft::sets(&bytes)[0].source_description);
    let ended_ms = description.as_ref().map(BackupDescription::ended_ms);
    craft::redate(&mut bytes, hours, ended_ms.ok());
    std::fs::write(medium, bytes).unwrap();
}

/// Whether the restores before and after `expire` were refused.
fn live(seed: u64, trouble: Trouble) -> [bool; 2] {
    let mut history = History::new(seed, trouble);
    for _ in 0..4 + history.rng.below(11) {
        history.step();
    }
    history.hours = 0;
    history.trouble = match trouble {
        Trouble::Clocks => Trouble::Forks,
        other => other,
    };
    history.insert();
    for (what, options) in [
        ("LOG", ""),
        ("DATABASE", ", DIFFERENTIAL"),
        ("DATABASE", ""),
    ] {
        let made = history.line.media.len();
        history.back_up(what, options);
        // Behind a gap, a log backup is refused.
        if history.line.media.len() > made {
            break;
        }
    }
    let [before, after] = [false, true].map(|is_expired| {
        if is_expired {
            history.expire();
        }
        let told = || {
            format!(
                "{trouble:?} {seed}, expired: {is_expired}: {:#?}",
                history.told
            )
        };
        match history.restored() {
            Ok(rows) => {
                assert_eq!(rows, history.line.rows, "{}", told());
                false
            }
            Err(numbers) => {
                let is_known = numbers
                    .iter()
                    .any(|number| trouble.refusals().contains(number));
                assert!(is_known, "{numbers:?}: {}", told());
                true
            }
        }
    });
    // What shows that a clock was wrong may be gone.
    assert!(
        trouble == Trouble::Clocks || before || !after,
        "{trouble:?} {seed}: refused only after expire: {:#?}",
        history.told
    );
    [before, after]
}

/// Of some histories, how many were refused before and after `expire`.
fn live_all(seeds: std::ops::Range<u64>, trouble: Trouble) {
    let count = seeds.end - seeds.start;
    let lived: Vec<[bool; 2]> = seeds.map(|seed| live(seed, trouble)).collect();
    let refused = [0, 1].map(|at| lived.iter().filter(|refused| refused[at]).count());
    println!("{trouble:?}: {count} histories, refused before and after expire: {refused:?}");
}

#[test]
fn the_newest_state_of_any_history_is_the_last_one_or_is_refused() {
    for trouble in [
        Trouble::Forks,
        Trouble::Clocks,
        Trouble::Snapshots,
        Trouble::File,
    ] {
        live_all(0..6, trouble);
    }
}

#[test]
#[ignore = "takes minutes"]
fn many_histories_with_forks() {
    live_all(1000..1400, Trouble::Forks);
}

#[test]
#[ignore = "takes minutes"]
fn many_histories_with_wrong_clocks() {
    live_all(1000..1400, Trouble::Clocks);
}

#[test]
#[ignore = "takes minutes"]
fn many_histories_with_snapshots() {
    live_all(1000..1400, Trouble::Snapshots);
}

#[test]
#[ignore = "takes minutes"]
fn many_histories_with_a_file() {
    live_all(1000..1400, Trouble::File);
}
