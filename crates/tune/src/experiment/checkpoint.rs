//! The 2017 article's experiment: backup of a small database on a server with a large buffer pool,
//! with automatic and with indirect checkpoints, and the same with a pool a thousand times smaller.
//!
//! The pools are the page engine's. For a large pool, address space is reserved for the pages, but
//! the descriptors are real and in use, as on a server that has been running for a while: automatic
//! checkpoints visit all of them.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Map, json};
use windlass_base::size::Bytes;
use windlass_base::{PAGE_BYTES, PageNumber};
use windlass_codec::Compression;
use windlass_device::DeviceAddress;
use windlass_engine::storage::RealFileSystem;
use windlass_engine::{
    BackupMode, CreateDatabase, Database, EngineError, FileSpec, Instance, InstanceOptions,
    PhaseReport,
};
use windlass_report::{
    BarGroup, Bars, Chart, ChartKind, Column, Fact, Report, Section, Spread, Table, TableOf,
};
use windlass_source::{Opened, SourceDatabase};

use crate::error::Error;
use crate::measure::{Clock, Measured, Scope, Setting, processors, request};
use crate::memory;
use crate::present::{self, Outcome, runs_json};
use crate::rounds::{Runs, interleaved, spread};

/// Buffers of 8 KB in a pool of 2 TB.
pub const POOL_PAGES: u64 = 268_435_456;

/// One page in this many is dirty when a backup starts.
const DIRTY_SHARE: usize = 13;

/// The article's figure for 2 TB of memory: a factor between 30 and 100.
const ARTICLE_FACTOR: &str = "The article reports backups 30 to 100 times as fast. The old flow visits all buffers twice, as there: when the differential map is cleared, and when the backup waits for pending writes.";

/// Conditions of the experiment.
#[derive(Debug, Clone)]
pub struct CheckpointConditions {
    /// Folder for databases and backups.
    pub folder: PathBuf,
    /// Buffers of the large pool; the small one has a thousandth of them.
    pub pool_pages: u64,
    /// Sizes of the databases in bytes.
    pub database_bytes: Vec<u64>,
    /// Runs of each variant.
    pub rounds: usize,
}

impl CheckpointConditions {
    /// For a reader who tries it.
    pub fn short(folder: PathBuf) -> Self {
        Self {
            folder,
            pool_pages: POOL_PAGES / 8,
            database_bytes: vec![10 << 20],
            rounds: 2,
        }
    }
}

/// The kind of checkpoints of a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Automatic,
    Indirect,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Automatic => "automatic",
            Self::Indirect => "indirect",
        }
    }

    fn target(self) -> Option<Duration> {
        (self == Self::Indirect).then(|| Duration::from_secs(60))
    }
}

/// The target of a backup: a file, synced, or nowhere, to measure only the database's part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    File,
    Nul,
}

impl Place {
    fn name(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Nul => "NUL",
        }
    }
}

/// A database on a pool, and the target of its backups.
struct Subject {
    database: Arc<Database>,
    bytes: u64,
    pool_pages: u64,
    kind: Kind,
    place: Place,
    visited: Mutex<Vec<u64>>,
}

impl Subject {
    fn label(&self) -> String {
        format!(
            "{}, {} checkpoints, pool of {} pages, to {}",
            Bytes(self.bytes),
            self.kind.name(),
            self.pool_pages,
            self.place.name()
        )
    }

    fn visited(&self) -> f64 {
        let visited = self.visited.lock().unwrap_or_else(PoisonError::into_inner);
        spread(visited.iter().map(|visited| *visited as f64)).median
    }
}

/// A database and its runs.
type Line<'a> = (&'a Subject, Runs);

/// Runs the experiment. Reports progress to `announce`; `cancel` stops it.
///
/// # Errors
/// The first run that failed; nothing is left behind.
pub fn run_checkpoint(
    conditions: &CheckpointConditions,
    cancel: &AtomicBool,
    announce: &dyn Fn(&str),
) -> Result<Outcome, Error> {
    let needed = memory_needed(conditions);
    let available = memory::available();
    let in_words = available.map_or_else(String::new, |bytes| {
        format!(" of {} available", Bytes(bytes))
    });
    announce(&format!(
        "the descriptors of the pools take {} of memory{in_words}",
        Bytes(needed)
    ));
    if let Some(available) = available.filter(|available| *available < needed) {
        return Err(Error::NoMemory { needed, available });
    }
    let folder = tempfile::Builder::new()
        .prefix("windlass-bench-")
        .tempdir_in(&conditions.folder)
        .map_err(|source| Error::Folder {
            action: "write to",
            path: conditions.folder.clone(),
            source,
        })?;
    let mut subjects = Vec::new();
    for pool_pages in [conditions.pool_pages, conditions.pool_pages / 1000] {
        announce(&format!("preparing a pool of {pool_pages} pages"));
        let instance = pool(pool_pages)?;
        for bytes in &conditions.database_bytes {
            for kind in [Kind::Automatic, Kind::Indirect] {
                let number = subjects.len();
                let database = create(&instance, folder.path(), number, *bytes, kind)?;
                subjects.extend([Place::File, Place::Nul].map(|place| Subject {
                    database: Arc::clone(&database),
                    bytes: *bytes,
                    pool_pages,
                    kind,
                    place,
                    visited: Mutex::default(),
                }));
            }
        }
    }
    let file = DeviceAddress::disk(folder.path().join("bench.bak"));
    let runs = interleaved(&subjects, conditions.rounds, |subject, round| {
        if cancel.load(Ordering::Relaxed) {
            return Err(windlass_pipeline::Error::Cancelled.into());
        }
        announce(&format!(
            "round {} of {}: {}",
            round + 1,
            conditions.rounds,
            subject.label()
        ));
        let device = match subject.place {
            Place::File => file.clone(),
            Place::Nul => DeviceAddress::nul(),
        };
        back_up(subject, &device, round)
    })?;
    let lines: Vec<Line<'_>> = subjects.iter().zip(runs).collect();
    Ok(outcome(conditions, &lines))
}

/// The descriptors of both pools, and the pages of all databases: each is in a pool once.
fn memory_needed(conditions: &CheckpointConditions) -> u64 {
    let pools = conditions.pool_pages + conditions.pool_pages / 1000;
    let pages: u64 = conditions.database_bytes.iter().sum();
    // Two kinds of checkpoints on each of two pools; what else a backup takes is small.
    Instance::descriptor_bytes(pools) + 4 * pages + (256 << 20)
}

fn engine_error(error: EngineError) -> Error {
    windlass_source::Error::Engine(error).into()
}

fn pool(pool_pages: u64) -> Result<Arc<Instance>, Error> {
    let options = InstanceOptions {
        pool_pages: pool_pages.max(1024),
        ..InstanceOptions::default()
    };
    let instance = Instance::new(options, Arc::new(RealFileSystem)).map_err(engine_error)?;
    instance.touch_descriptors();
    Ok(instance)
}

fn create(
    instance: &Instance,
    folder: &Path,
    number: usize,
    bytes: u64,
    kind: Kind,
) -> Result<Arc<Database>, Error> {
    let path = |extension| folder.join(format!("{number}.{extension}"));
    let request = CreateDatabase {
        target_recovery_time: kind.target(),
        data_files: vec![FileSpec {
            size: bytes,
            ..FileSpec::data("data", path("mdf"))
        }],
        ..CreateDatabase::new(&format!("bench{number}"), path("mdf"), path("ldf"))
    };
    let database = instance.create_database(&request).map_err(engine_error)?;
    let pages = pages_of(bytes);
    for first in (0..pages).step_by(256) {
        let next = (first..pages).take(256);
        let next = next.filter_map(PageNumber::from_index);
        commit(&database, next, 1).map_err(engine_error)?;
    }
    Ok(database)
}

fn pages_of(bytes: u64) -> u32 {
    u32::try_from(bytes / PAGE_BYTES as u64).unwrap_or(u32::MAX)
}

fn commit(
    database: &Arc<Database>,
    pages: impl Iterator<Item = PageNumber>,
    fill: u64,
) -> Result<(), EngineError> {
    let mut writer = database.begin_write(&database.begin_read())?;
    let mut content = [0; PAGE_BYTES];
    for page in pages {
        for word in content.chunks_exact_mut(64) {
            word[..8].copy_from_slice(&(fill ^ u64::from(page.sqlite())).to_le_bytes());
        }
        writer.write_page(page, &content)?;
    }
    writer.commit().map(drop)
}

/// Makes some pages dirty, then backs up to a file: measures a whole BACKUP, synced.
fn back_up(subject: &Subject, device: &DeviceAddress, round: usize) -> Result<Measured, Error> {
    let database = &subject.database;
    let dirty = PageNumber::all(pages_of(subject.bytes)).step_by(DIRTY_SHARE);
    // The content must differ from all earlier runs: a page written with its old content does not
    // become dirty.
    let fill = 2 * (round as u64 + 1) + u64::from(subject.place == Place::Nul);
    commit(database, dirty, fill).map_err(engine_error)?;
    let setting = Setting::new(Scope::Disk, Compression::NONE);
    let request = request(&setting, std::slice::from_ref(device));
    let clock = Clock::start();
    let Opened {
        snapshot, phases, ..
    } = SourceDatabase::Engine {
        database: Arc::clone(database),
        name: database.name().to_owned(),
    }
    .open(BackupMode::Full)?;
    let (opening, _) = clock.stop();
    let report = windlass_pipeline::backup(&request, snapshot, &windlass_pipeline::Unobserved)?;
    let (elapsed, cpu) = clock.stop();
    let phases = phases.lock().unwrap_or_else(PoisonError::into_inner);
    let visited = phases.iter().map(|phase: &PhaseReport| phase.visited).sum();
    let mut all = subject
        .visited
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    all.push(visited);
    Ok(Measured {
        elapsed,
        opening,
        cpu,
        processed_bytes: report.processed_bytes,
        stored_bytes: report.set.stored_bytes,
        stages: report.stages,
    })
}

fn outcome(conditions: &CheckpointConditions, lines: &[Line<'_>]) -> Outcome {
    let named = lines.iter().map(|(subject, runs)| (subject.label(), runs));
    Outcome {
        kind: "checkpoint",
        report: Report {
            title: "Backups and the size of the buffer pool".to_owned(),
            subtitle: "Automatic and indirect checkpoints".to_owned(),
            facts: facts(conditions),
            sections: vec![Section {
                heading: "Duration of BACKUP".to_owned(),
                charts: vec![chart(conditions, lines)],
                tables: vec![table(conditions, lines)],
                ..Section::default()
            }],
            notes: [ARTICLE_FACTOR.to_owned()]
                .into_iter()
                .chain(present::notes())
                .collect(),
            ..Report::default()
        },
        runs: runs_json(named),
        extra: Map::from_iter([("pool_pages".to_owned(), json!(conditions.pool_pages))]),
    }
}

/// The runs that differ from `other`'s only in pool and kind.
fn find(lines: &[Line<'_>], other: &Subject, pool_pages: u64, kind: Kind) -> Option<Spread> {
    let is_it = |(subject, _): &&Line<'_>| {
        (subject.bytes, subject.place) == (other.bytes, other.place)
            && (subject.pool_pages, subject.kind) == (pool_pages, kind)
    };
    lines.iter().find(is_it).map(|(_, runs)| runs.seconds())
}

fn chart(conditions: &CheckpointConditions, lines: &[Line<'_>]) -> Chart {
    let on_large = |(subject, _): &&Line<'_>| {
        subject.pool_pages == conditions.pool_pages && subject.kind == Kind::Indirect
    };
    let groups = lines.iter().filter(on_large).map(|(subject, _)| BarGroup {
        label: format!("{} to {}", Bytes(subject.bytes), subject.place.name()),
        values: [Kind::Automatic, Kind::Indirect]
            .map(|kind| find(lines, subject, conditions.pool_pages, kind))
            .to_vec(),
    });
    Chart {
        title: "Seconds on the large pool. Shorter is better".to_owned(),
        description: "For each database size, one bar per kind of checkpoint.".to_owned(),
        kind: ChartKind::Bars(Bars {
            unit: "s".to_owned(),
            decimals: 2,
            series: vec!["automatic".to_owned(), "indirect".to_owned()],
            groups: groups.collect(),
            ..Bars::default()
        }),
    }
}

fn table(conditions: &CheckpointConditions, lines: &[Line<'_>]) -> Table {
    let automatic = |(subject, runs): &&Line<'_>| {
        let automatic = find(lines, subject, subject.pool_pages, Kind::Automatic);
        automatic.map(|automatic| automatic.median / runs.seconds().median)
    };
    let large = |(subject, runs): &&Line<'_>| {
        let large = find(lines, subject, conditions.pool_pages, subject.kind);
        large.map(|large| large.median / runs.seconds().median)
    };
    TableOf::default()
        .column(
            Column::text("database", "Database"),
            |(subject, _): &&Line<'_>| Bytes(subject.bytes).to_string(),
        )
        .column(
            Column::number("pool_pages", "Pool", "pages", 0),
            |(subject, _)| subject.pool_pages as f64,
        )
        .column(Column::text("to", "To"), |(subject, _)| {
            subject.place.name()
        })
        .column(
            Column::text("checkpoints", "Checkpoints"),
            |(subject, _)| subject.kind.name(),
        )
        .column(
            Column::number("milliseconds", "Time", "ms", 1),
            |(_, runs)| runs.seconds().median * 1e3,
        )
        .column(
            Column::number("spread_percent", "Spread", "%", 0),
            |(_, runs)| runs.spread_percent(),
        )
        .column(
            Column::number("visited", "Buffers visited", "", 0),
            |(subject, _)| subject.visited(),
        )
        .column(
            Column::number("times_automatic", "× automatic", "", 1),
            automatic,
        )
        .column(
            Column::number("times_large_pool", "× large pool", "", 2),
            large,
        )
        .of("checkpoint", "Whole backups: medians", lines)
}

fn facts(conditions: &CheckpointConditions) -> Vec<Fact> {
    let pool = Bytes(conditions.pool_pages * PAGE_BYTES as u64);
    vec![
        Fact::new(
            "large pool",
            format!("{pool}, {} pages", conditions.pool_pages),
        ),
        Fact::new(
            "dirty",
            format!("one page in {DIRTY_SHARE} when the backup starts"),
        ),
        Fact::new("memory", Bytes(memory_needed(conditions)).to_string()),
        Fact::new("processors", processors().to_string()),
        Fact::new(
            "repetition",
            format!("{} rounds, variants alternate", conditions.rounds),
        ),
        Fact::new("version", concat!("Windlass ", env!("CARGO_PKG_VERSION"))),
    ]
}
