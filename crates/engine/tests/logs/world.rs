//! A database with a model of each of its commits, its backups, and restores of them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use windlass_base::{Guid, Lsn, PAGE_BYTES, PageNumber};
use windlass_engine::storage::RealFileSystem;
use windlass_engine::{
    Backup, BackupDescription, BackupMode, BackupRange, CreateDatabase, Database, EngineError,
    FileSpec, Growth, Instance, InstanceOptions, LogBackup, LogCheck, LogRefusal, Mark,
    OpenDatabase, Reached, RecoveryModel, Restore, RollForward, StopAt,
};

/// A small generator, so that a seed gives one history.
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % limit.max(1)
    }

    pub(crate) fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

pub(crate) type State = Arc<Vec<Arc<Vec<u8>>>>;

/// A state of the database, from the commit on.
#[derive(Clone)]
pub(crate) struct Moment {
    pub(crate) lsn: Lsn,
    /// The time just before the commit, and just after it.
    pub(crate) before_ms: u64,
    pub(crate) after_ms: u64,
    pub(crate) pages: State,
    /// The mark of the transaction, if the log has it.
    pub(crate) mark: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Full,
    CopyOnly,
    Differential(Guid),
    Log,
}

#[derive(Clone)]
pub(crate) struct Set {
    pub(crate) kind: Kind,
    pub(crate) guid: Guid,
    pub(crate) description: Vec<u8>,
    pub(crate) ranges: Arc<Vec<(BackupRange, Vec<u8>)>>,
    pub(crate) log: Arc<Vec<u8>>,
    /// Number of the last commit in it.
    pub(crate) moment: usize,
    /// The chain whose log backups follow it without a gap.
    pub(crate) chain: Option<u32>,
}

impl Set {
    pub(crate) fn describe(&self) -> BackupDescription {
        BackupDescription::decode(&self.description).unwrap()
    }
}

pub(crate) struct World {
    pub(crate) folder: PathBuf,
    instance: Arc<Instance>,
    pub(crate) database: Arc<Database>,
    /// All commits of the history; the first is the empty database.
    pub(crate) moments: Vec<Moment>,
    pub(crate) sets: Vec<Set>,
    /// Number of the chain of log backups.
    pub(crate) chain: u32,
    pub(crate) rng: Rng,
    files_added: u32,
    fill: u32,
}

pub(crate) fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    now.as_millis() as u64
}

fn instance() -> Arc<Instance> {
    let options = InstanceOptions {
        pool_pages: 64,
        background: false,
        ..InstanceOptions::default()
    };
    Instance::new(options, Arc::new(RealFileSystem)).unwrap()
}

impl World {
    /// A new database in the recovery model FULL, whose log grows without limit.
    pub(crate) fn new(folder: &Path, seed: u64) -> Self {
        let mut request = CreateDatabase::new("a", folder.join("a.mdf"), folder.join("a.ldf"));
        request.log.size = 512 << 10;
        request.log.growth = Growth::Bytes(256 << 10);
        request.data_files[0].size = 1 << 20;
        Self::create(folder, seed, &request)
    }

    pub(crate) fn create(folder: &Path, seed: u64, request: &CreateDatabase) -> Self {
        let instance = instance();
        let database = instance.create_database(request).unwrap();
        database.set_recovery_model(RecoveryModel::Full).unwrap();
        let (lsn, now) = (Lsn::ZERO, now_ms());
        let first = Moment {
            lsn,
            before_ms: now,
            after_ms: now,
            pages: State::default(),
            mark: None,
        };
        Self {
            folder: folder.to_owned(),
            instance,
            database,
            moments: vec![first],
            sets: Vec::new(),
            chain: 0,
            rng: Rng::new(seed),
            files_added: 0,
            fill: 0,
        }
    }

    pub(crate) fn latest(&self) -> &Moment {
        &self.moments[self.moments.len() - 1]
    }

    /// A transaction that writes some pages whole and some in part.
    pub(crate) fn commit(&mut self) -> Result<(), EngineError> {
        let mut pages = Vec::clone(&self.latest().pages);
        if self.rng.chance(10) && pages.len() > 4 {
            let kept = 1 + self.rng.below(pages.len() as u64 - 1) as usize;
            pages.truncate(kept);
        }
        self.fill += 1;
        for _ in 0..=self.rng.below(6) {
            let added = self.rng.below(3) as usize;
            let page = self.rng.below((pages.len() + added) as u64 + 1) as usize;
            while pages.len() <= page {
                pages.push(Arc::new(vec![0; PAGE_BYTES]));
            }
            let mut content = Vec::clone(&pages[page]);
            let mark = self.fill.to_le_bytes();
            let length = match self.rng.chance(30) {
                true => PAGE_BYTES,
                false => 8 + self.rng.below(200) as usize,
            };
            let at = self.rng.below((PAGE_BYTES - length) as u64 + 1) as usize;
            for (index, byte) in content[at..at + length].iter_mut().enumerate() {
                *byte = mark[index % 4] ^ page as u8 ^ (index / 4) as u8;
            }
            pages[page] = Arc::new(content);
        }
        self.commit_pages(pages)
    }

    /// A transaction that changes a few bytes of the first page.
    pub(crate) fn touch(&mut self) -> Result<(), EngineError> {
        self.fill += 1;
        let mut pages = Vec::clone(&self.latest().pages);
        if let Some(first) = pages.first_mut() {
            let mut content = Vec::clone(first);
            content[..4].copy_from_slice(&self.fill.to_le_bytes());
            *first = Arc::new(content);
        }
        self.commit_pages(pages)
    }

    fn commit_pages(&mut self, pages: Vec<Arc<Vec<u8>>>) -> Result<(), EngineError> {
        let before_ms = now_ms();
        let old = Arc::clone(&self.latest().pages);
        let snapshot = self.database.begin_read();
        let mut writer = self.database.begin_write(&snapshot)?;
        drop(snapshot);
        if pages.len() < old.len() {
            writer.truncate(pages.len() as u32)?;
        }
        for (index, page) in pages.iter().enumerate() {
            let is_same = old.get(index).is_some_and(|old| Arc::ptr_eq(old, page));
            if !is_same {
                let number = PageNumber::from_index(index as u32).unwrap();
                writer.write_page(number, page)?;
            }
        }
        let mark = self.rng.chance(25).then(|| match self.rng.below(3) {
            0 => "begin".to_owned(),
            1 => "Begin".to_owned(),
            _ => "näme".repeat(30),
        });
        writer.set_mark(mark.as_deref().and_then(|mark| Mark::new(mark, "why")));
        let committed = writer.commit_and_read()?;
        let is_kept = self.database.recovery_model() == RecoveryModel::Full;
        assert_eq!(committed.marked_ms.is_some(), is_kept && mark.is_some());
        self.moments.push(Moment {
            lsn: committed.lsn,
            before_ms,
            after_ms: now_ms(),
            pages: Arc::new(pages),
            mark: mark.filter(|_| is_kept),
        });
        Ok(())
    }

    /// Adds a data file; all later pages are spread over it as well.
    pub(crate) fn add_file(&mut self) -> Result<(), EngineError> {
        self.files_added += 1;
        let name = format!("f{}", self.files_added);
        let spec = FileSpec {
            size: 1 << 20,
            ..FileSpec::data(&name, self.folder.join(&name))
        };
        self.database.add_file(&spec)
    }

    /// Opens it, whatever is in its data files.
    pub(crate) fn open_unchecked(&mut self) {
        self.instance = instance();
        let request = OpenDatabase::new("a", self.folder.join("a.ldf"));
        self.database = self.instance.open_database(&request).unwrap();
    }

    fn open(&mut self) {
        self.open_unchecked();
        assert!(
            pages_of(&self.database) == *self.latest().pages,
            "after opening"
        );
    }

    pub(crate) fn reopen(&mut self) {
        self.database.close().unwrap();
        self.open();
    }

    /// Goes on with the files as a kill leaves them.
    pub(crate) fn crash(&mut self, folder: &Path) {
        for entry in std::fs::read_dir(&self.folder).unwrap() {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_file() {
                std::fs::copy(entry.path(), folder.join(entry.file_name())).unwrap();
            }
        }
        // The names of the files are in the header: they are put back under them.
        let database = Arc::clone(&self.database);
        let _closed = database.close();
        drop(database);
        for entry in std::fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            std::fs::copy(entry.path(), self.folder.join(entry.file_name())).unwrap();
            std::fs::remove_file(entry.path()).unwrap();
        }
        self.open();
    }

    /// A full or differential backup, during which transactions are committed.
    pub(crate) fn back_up(&mut self, mode: BackupMode, completes: bool) -> Result<(), EngineError> {
        let base = self.database.differential_base().set;
        let mut backup = self.database.begin_backup(mode)?;
        let mut ranges = Vec::new();
        for range in backup.ranges(128 << 10) {
            if self.rng.chance(30) {
                self.commit()?;
            }
            let mut bytes = vec![0; range.bytes];
            backup.read_range(&range, &mut bytes)?;
            ranges.push((range, bytes));
        }
        let description = backup.finish_data()?.encode()?;
        self.finish((mode, base), (description, ranges), backup, completes)
    }

    fn finish(
        &mut self,
        (mode, base): (BackupMode, Guid),
        (description, ranges): (Vec<u8>, Vec<(BackupRange, Vec<u8>)>),
        backup: Backup,
        completes: bool,
    ) -> Result<(), EngineError> {
        let moment = self.moments.len() - 1;
        if self.rng.chance(30) {
            self.commit()?;
        }
        let mut log = Vec::new();
        backup.read_log(|bytes| {
            log.extend_from_slice(bytes);
            Ok(())
        })?;
        if !completes {
            return Ok(());
        }
        let guid = Guid::random();
        backup.complete(guid)?;
        let last = BackupDescription::decode(&description)?.last_lsn();
        let tail = self.database.tail_start();
        let chain = tail.filter(|tail| *tail <= last).map(|_| self.chain);
        self.sets.push(Set {
            kind: match mode {
                BackupMode::Full => Kind::Full,
                BackupMode::CopyOnly => Kind::CopyOnly,
                BackupMode::Differential => Kind::Differential(base),
            },
            guid,
            description,
            ranges: Arc::new(ranges),
            log: Arc::new(log),
            moment,
            chain,
        });
        Ok(())
    }

    /// A log backup; `completes` is whether the engine learns that the set is durable.
    pub(crate) fn back_up_log(
        &mut self,
        truncates: bool,
        completes: bool,
    ) -> Result<(), EngineError> {
        let backup = self.database.begin_log_backup(truncates)?;
        let moment = self.moments.len() - 1;
        if self.rng.chance(50) {
            // The log may be full.
            let _behind_the_end = self.commit();
        }
        self.keep(&backup, moment)?;
        if completes {
            backup.complete()?;
        }
        Ok(())
    }

    /// The states of the data backups that end within a log backup of the same chain, and the checksums before them.
    fn states_within(&self, log: &BackupDescription) -> BTreeMap<Lsn, Option<u64>> {
        let own = self.sets.iter().filter(|set| set.chain == Some(self.chain));
        let data = own.filter(|set| !matches!(set.kind, Kind::Log));
        let states = data.map(Set::describe);
        let within = states.filter(|state| {
            log.first_lsn() < state.last_lsn() && state.last_lsn() < log.last_lsn()
        });
        within
            .map(|state| (state.last_lsn(), state.ending()))
            .collect()
    }

    pub(crate) fn keep(&mut self, backup: &LogBackup, moment: usize) -> Result<(), EngineError> {
        let mut copy = backup.copy();
        let (mut log, mut piece) = (Vec::new(), vec![0; 64 << 10]);
        let states = self.states_within(backup.description());
        let check = || LogCheck::new(backup.description().clone()).asking(states.keys().copied());
        let (mut onward, mut backward) = (check(), check());
        let mut pieces = Vec::new();
        loop {
            let bytes = copy.read(&mut piece)?;
            if bytes == 0 {
                break;
            }
            onward.piece(log.len() as u64, &piece[..bytes])?;
            pieces.push(log.len()..log.len() + bytes);
            log.extend_from_slice(&piece[..bytes]);
        }
        for piece in pieces.into_iter().rev() {
            backward.piece(piece.start as u64, &log[piece])?;
        }
        for check in [onward, backward] {
            check.finish()?;
            assert!(check.knows_before());
            assert_eq!(check.before(), states);
        }
        self.sets.push(Set {
            kind: Kind::Log,
            guid: Guid::random(),
            description: backup.description().encode()?,
            ranges: Arc::default(),
            log: Arc::new(log),
            moment,
            chain: Some(self.chain),
        });
        Ok(())
    }
}

pub(crate) fn pages_of(database: &Arc<Database>) -> Vec<Arc<Vec<u8>>> {
    let snapshot = database.begin_read();
    let read = |page| {
        let mut content = vec![0; PAGE_BYTES];
        snapshot.read_page(page, &mut content).unwrap();
        Arc::new(content)
    };
    PageNumber::all(snapshot.page_count()).map(read).collect()
}

/// A restore in progress: data files at places of their own.
pub(crate) struct Restored {
    folder: PathBuf,
    restore: Option<Restore>,
    pub(crate) state: BackupDescription,
    pub(crate) reached: Reached,
}

impl Restored {
    fn places(folder: &Path) -> Vec<PathBuf> {
        (0..40)
            .map(|index| folder.join(format!("{index}.data")))
            .collect()
    }

    /// Restores a full backup, or a differential one onto its base.
    pub(crate) fn data(sets: &[&Set], folder: &Path) -> Self {
        let mut restored = None;
        for set in sets {
            let description = set.describe();
            let places = &Self::places(folder)[..description.data_files().len()];
            let files = Arc::new(RealFileSystem);
            let mut restore = match restored {
                None => Restore::begin(files, &description, places).unwrap(),
                Some(_) => Restore::onto(files, &description, places).unwrap(),
            };
            for (range, bytes) in set.ranges.iter() {
                restore.write_range(range, bytes).unwrap();
            }
            for piece in set.log.chunks(10_000) {
                restore.apply_log(piece).unwrap();
            }
            restore.settle().unwrap();
            restored = Some((restore, description));
        }
        let (restore, state) = restored.unwrap();
        Self {
            folder: folder.to_owned(),
            reached: restore.reached(),
            restore: Some(restore),
            state,
        }
    }

    /// Rolls forward with a log backup; whether the point to stop at was reached. `tears` applies only so many bytes
    /// and then forgets it, as a crash would.
    pub(crate) fn roll(
        &mut self,
        set: &Set,
        stop: StopAt,
        tears: Option<usize>,
    ) -> Result<bool, EngineError> {
        let log = set.describe();
        let mut roll = RollForward::begin(&self.state, self.reached, &log, stop)?;
        for piece in set.log.chunks(7777) {
            roll.scan(piece)?;
        }
        let scanned = roll.scanned()?;
        self.restore = None;
        roll.open(Arc::new(RealFileSystem), &Self::places(&self.folder))?;
        let torn = tears.unwrap_or(set.log.len()).min(set.log.len());
        for piece in set.log[..torn].chunks(9999) {
            roll.apply(piece)?;
        }
        if tears.is_some() {
            self.reached.applied = self.reached.applied.max(scanned.end.0);
            return Ok(false);
        }
        let (restore, state, reached) = roll.settle()?;
        (self.restore, self.state, self.reached) = (Some(restore), state, reached);
        Ok(scanned.is_reached)
    }

    /// Ends the sequence.
    pub(crate) fn recover(mut self) -> Arc<Database> {
        let log = FileSpec {
            size: 512 << 10,
            ..FileSpec::log("r_log", self.folder.join("r.ldf"))
        };
        self.restore
            .take()
            .unwrap()
            .finish("r", &log, None)
            .unwrap();
        let request = OpenDatabase::new("r", &log.path);
        instance().open_database(&request).unwrap()
    }
}

/// Why a log backup was refused.
pub(crate) fn refusal(error: &EngineError) -> Option<LogRefusal> {
    match error {
        EngineError::LogRefused { refusal, .. } => Some(*refusal),
        _ => None,
    }
}
