//! Rolls the data files of an unfinished restore forward with a log backup.
//!
//! ```text
//!  begin: right history?  -->  scan: every block, where to stop  -->  open  -->  apply up to there, settle
//!         (nothing is touched)       (nothing is touched)
//! ```
//!
//! Invariants:
//! - Nothing is written before the whole log of the set was seen and found unbroken, from the block that was
//!   applied last to the end that the set names.
//! - Whole groups are applied: the files then show the database at a commit.
//! - Applying the same log again, up to the same point or further, gives the same files, whatever part of it a
//!   crash has left in them.

use std::path::PathBuf;
use std::sync::Arc;

use super::BackupDescription;
use super::description::Content;
use super::follow::{INVALID, LogFollower, broken};
use super::restore::{Pages, Restore, apply_record, write_pages};
use super::scan::{Scan, check_continues};
use super::stop::StopAt;
use crate::database::{make_file, open_files};
use crate::error::{EngineError, LogRefusal, Result};
use crate::files::{DataFile, DataFiles};
use crate::log::Position;
use crate::log::block::BlockHeader;
use crate::log::header::Header;
use crate::log::record::{Record, Records};
use crate::options::FileSpec;
use crate::storage::{FileSystem, OpenMode, StorageFile};

/// Up to where data files have been restored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reached {
    /// Checksum of the last block that was applied; `None` if unknown.
    pub checksum: Option<u64>,
    /// The last commit is not later, in milliseconds since 1970, UTC; 0 if unknown.
    pub unix_ms: u64,
    /// An interrupted roll forward may have changed files up to this position of the log; 0 if there was none.
    pub applied: u64,
}

/// What the scan of a log found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scanned {
    /// The end of the part to apply.
    pub end: Position,
    /// Whether the point to stop at is in the set; otherwise further log is needed to get there.
    pub is_reached: bool,
}

/// A roll forward in progress.
#[derive(Debug)]
pub struct RollForward {
    state: BackupDescription,
    reached: Reached,
    log: BackupDescription,
    stop: StopAt,
    scan: Scan,
    files: Option<Files>,
}

/// The files being rolled forward.
#[derive(Debug)]
struct Files {
    system: Arc<dyn FileSystem>,
    /// Of the data files at the end of the log, in order.
    places: Vec<PathBuf>,
    header: Header,
    data: DataFiles,
    pages: Pages,
    follower: LogFollower,
    end: Position,
    reached: Reached,
    /// Original paths of the data files.
    paths: Vec<PathBuf>,
}

impl RollForward {
    /// Starts to roll the data files of `state` forward with the log backup `log`.
    ///
    /// # Errors
    /// [`EngineError::LogRefused`]; nothing was read then.
    pub fn begin(
        state: &BackupDescription,
        reached: Reached,
        log: &BackupDescription,
        stop: StopAt,
    ) -> Result<Self> {
        let from = state.end();
        let refuse = |refusal| Err(refused(state, refusal));
        if !log.is_log() {
            return Err(EngineError::Invalid("this is no log backup".to_owned()));
        }
        let of =
            |description: &BackupDescription| (description.guid(), description.recovery_fork());
        if of(state) != of(log) {
            return refuse(LogRefusal::OtherFork);
        }
        let lsn = from.lsn(1);
        if log.header.redo > from {
            let first = log.first_lsn();
            return refuse(LogRefusal::TooRecent {
                first,
                reached: lsn,
            });
        }
        if log.end() < from {
            let last = log.last_lsn();
            return refuse(LogRefusal::TooEarly { last, reached: lsn });
        }
        let is_passed = match &stop {
            // Which marks are behind is not known.
            StopAt::End | StopAt::Mark(_) | StopAt::BeforeMark(_) => false,
            StopAt::Time(unix_ms) => *unix_ms < reached.unix_ms,
            StopAt::Lsn(stop) | StopAt::BeforeLsn(stop) => *stop < lsn,
        };
        if is_passed {
            return refuse(LogRefusal::StopPassed { reached: lsn });
        }
        Ok(Self {
            scan: Scan::new(from, log),
            state: state.clone(),
            reached,
            log: log.clone(),
            stop,
            files: None,
        })
    }

    /// Looks at the next bytes of the log.
    ///
    /// # Errors
    /// The log is damaged, or does not continue the state.
    pub fn scan(&mut self, bytes: &[u8]) -> Result<()> {
        let Self {
            state,
            reached,
            log,
            stop,
            scan,
            ..
        } = self;
        let mut follower = std::mem::replace(&mut scan.follower, LogFollower::new(log));
        let fed = follower.feed_blocks(bytes, &mut |block, records| {
            scan.block(state, *reached, stop, block, records)
        });
        scan.follower = follower;
        fed
    }

    /// All of the log was looked at: where it stops.
    ///
    /// # Errors
    /// The log is not complete, or [`EngineError::LogRefused`].
    pub fn scanned(&self) -> Result<Scanned> {
        let scan = &self.scan;
        scan.follower.check_end()?;
        if !scan.is_behind {
            check_continues(&self.state, self.reached, scan.before)?;
        }
        if let Some((later, earlier)) = scan.contradicted {
            let refusal = LogRefusal::TimesContradict { later, earlier };
            return Err(refused(&self.state, refusal));
        }
        let end = self.log.end().lsn(1);
        let is_reached = scan.is_stopped
            || match &self.stop {
                StopAt::End => true,
                StopAt::Lsn(lsn) => *lsn < end,
                StopAt::BeforeLsn(lsn) => *lsn <= end,
                // Of a time, only a later commit shows it: the clock of the backup may have been ahead.
                StopAt::Time(_) | StopAt::Mark(_) | StopAt::BeforeMark(_) => false,
            };
        if scan.end.0 < self.reached.applied {
            let applied = Position(self.reached.applied).lsn(1);
            return Err(refused(
                &self.state,
                match self.stop {
                    StopAt::End => LogRefusal::TooEarly {
                        last: self.log.last_lsn(),
                        reached: applied,
                    },
                    _ => LogRefusal::GoneFurther { applied },
                },
            ));
        }
        Ok(Scanned {
            end: scan.end,
            is_reached,
        })
    }

    /// Opens the data files at `places`: those of the state, and then those that the log adds.
    ///
    /// # Errors
    /// Those of the operating system, and of [`RollForward::scanned`].
    pub fn open(&mut self, system: Arc<dyn FileSystem>, places: &[PathBuf]) -> Result<()> {
        let scanned = self.scanned()?;
        let mut header = self.state.header.clone();
        let paths = header.files.iter().map(|file| file.path.clone()).collect();
        if places.len() < header.files.len() {
            return Err(EngineError::Invalid(format!(
                "the database has {} data files, but {} places are given",
                header.files.len(),
                places.len()
            )));
        }
        for (spec, place) in header.files.iter_mut().zip(places) {
            spec.path.clone_from(place);
        }
        let data = open_files(system.as_ref(), &header.name, &header, &[])?;
        self.files = Some(Files {
            system,
            places: places.to_vec(),
            header,
            data,
            pages: Pages::new(),
            follower: LogFollower::new(&self.log),
            end: scanned.end,
            reached: self.reached,
            paths,
        });
        Ok(())
    }

    /// The open data files, in order.
    pub fn data_files(&self) -> Vec<Arc<dyn StorageFile>> {
        let files = self.files.as_ref();
        files.map_or_else(Vec::new, |files| files.data.handles())
    }

    /// Applies the next bytes of the log, which were scanned before.
    ///
    /// # Errors
    /// Those of the operating system; the log is not the one that was scanned.
    pub fn apply(&mut self, bytes: &[u8]) -> Result<()> {
        let from = self.state.end();
        let Some(files) = &mut self.files else {
            return Err(not_open());
        };
        let mut follower = std::mem::replace(&mut files.follower, LogFollower::new(&self.log));
        let fed = follower.feed_blocks(bytes, &mut |block, records| match (from..files.end)
            .contains(&block.position)
        {
            true => files.block(block, records),
            false => Ok(()),
        });
        files.follower = follower;
        fed
    }

    /// Syncs the data files. Returns the restore to go on with, the new state, and how far it goes.
    ///
    /// # Errors
    /// Those of the operating system; not all of the log was applied.
    pub fn settle(self) -> Result<(Restore, BackupDescription, Reached)> {
        let Some(mut files) = self.files else {
            return Err(not_open());
        };
        files.follower.check_end()?;
        write_pages(&files.data, &mut files.pages)?;
        files.data.sync()?;
        let mut header = files.header;
        header.regions = files.data.regions();
        header.recovery_model = self.log.recovery_model();
        let mut described = header.clone();
        header.files = files.data.specs();
        described.files.clone_from(&header.files);
        for (spec, path) in described.files.iter_mut().zip(files.paths) {
            spec.path = path;
        }
        let state = BackupDescription {
            header: described,
            end: files.end,
            content: Content::Log,
            ended_ms: self.log.ended_ms,
            previous: self.log.previous,
            ending: files.reached.checksum.unwrap_or(0),
        };
        let restore = Restore::rolled(files.system, header, files.data, &state);
        Ok((
            restore,
            state,
            Reached {
                applied: 0,
                ..files.reached
            },
        ))
    }
}

impl Files {
    fn block(&mut self, block: &BlockHeader, records: &[u8]) -> Result<()> {
        for record in Records::new(records) {
            let record = record.ok_or_else(|| self.broken(block, INVALID))?;
            match record {
                Record::PageImage { page, .. } | Record::PageRanges { page, .. } => {
                    apply_record(&self.data, &mut self.pages, page, &record)?;
                }
                Record::Commit {
                    page_count,
                    unix_ms,
                } => {
                    self.data.ensure(page_count)?;
                    self.header.page_count = page_count;
                    self.header.sequence = block.sequence;
                    self.reached.unix_ms = self.reached.unix_ms.max(unix_ms);
                }
                Record::Checkpoint { .. } | Record::MapPart { .. } | Record::Mark { .. } => {}
                Record::Layout { files, regions } => {
                    self.cut(block, files.into(), regions.into())?;
                }
                Record::DataFile(stored) => {
                    let spec = Record::data_file(stored);
                    self.add_file(spec.ok_or_else(|| self.broken(block, INVALID))?)?;
                }
                Record::Region(stored) => {
                    let region = Record::region(stored);
                    let region = region.ok_or_else(|| self.broken(block, INVALID))?;
                    self.data.push_region(region)?;
                }
            }
        }
        self.reached.checksum = Some(block.checksum);
        self.header.epoch = self.header.epoch.max(block.epoch);
        Ok(())
    }

    /// What follows changes the places of new pages; a file that is not part of the database after all has none.
    fn cut(&mut self, block: &BlockHeader, files: usize, regions: usize) -> Result<()> {
        write_pages(&self.data, &mut self.pages)?;
        let found = (self.data.specs().len(), self.data.regions().len());
        if files > found.0 || regions > found.1 || files == 0 || regions == 0 {
            return Err(self.broken(block, "it changes other data files than the database has"));
        }
        for gone in self.data.cut(files, regions) {
            drop(gone.file);
            let path = &gone.spec.path;
            self.system
                .remove(path)
                .map_err(|error| EngineError::io("remove", path, error))?;
        }
        self.paths.truncate(files);
        Ok(())
    }

    fn add_file(&mut self, spec: FileSpec) -> Result<()> {
        let index = self.paths.len();
        let place = self.places.get(index).cloned().ok_or_else(|| {
            EngineError::Invalid(format!(
                "the log adds the data file '{}', for which no place is given",
                spec.logical_name
            ))
        })?;
        self.paths.push(spec.path.clone());
        let spec = FileSpec {
            path: place,
            ..spec
        };
        let path = &spec.path;
        let file = match self.system.exists(path) {
            // An interrupted roll forward has left it.
            true => self
                .system
                .open(path, OpenMode::Existing)
                .and_then(|file| file.reserve(0, spec.size).map(|()| file))
                .map_err(|error| EngineError::io("open", path, error))?,
            false => make_file(self.system.as_ref(), &spec, OpenMode::CreateNew)?,
        };
        self.data.push(DataFile { spec, file });
        Ok(())
    }

    fn broken(&self, block: &BlockHeader, what: &str) -> EngineError {
        broken(&self.header.name, block.position, what)
    }
}

pub(super) fn refused(state: &BackupDescription, refusal: LogRefusal) -> EngineError {
    EngineError::LogRefused {
        database: state.name().to_owned(),
        refusal,
    }
}

fn not_open() -> EngineError {
    EngineError::Invalid("the data files are not open".to_owned())
}
