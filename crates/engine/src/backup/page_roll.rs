//! Restores single pages from a full backup, and rolls them forward with log backups and the log of the database, which
//! stays in use.
//!
//! ```text
//!  begin        take, apply_log       roll (each log backup)      Database::finish_page_roll
//!  which pages  their bytes in the    the records of the pages    the rest from the log of the database, with
//!               full backup           in a whole, unbroken log    the writer's token; write, sync, forget in the pool
//! ```
//!
//! A log describes a change of a page completely, and the log backups and the tail of the log together have every
//! change since the full backup. So the pages get the content that the last commit gave them, whatever is in the data
//! files.
//!
//! Invariants:
//! - Each log continues the one before: the same recovery fork, and the checksum of the last block.
//! - Nothing is written to the database before the pages have reached the end of its log.

use std::collections::BTreeMap;

use windlass_base::{FileId, FilePage, Guid, Lsn, PageNumber};

use super::BackupDescription;
use super::follow::LogFollower;
use super::roll_forward::{Reached, RollForward};
use super::roll_state::RollState;
use super::stop::StopAt;
use crate::database::page_restore::names_in;
use crate::error::{EngineError, PageRefusal, Result};
use crate::log::record::Record;
use windlass_base::bytes::Writer;
use windlass_base::page::{PAGE_BYTES, checksum};

/// A page that is being restored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RolledPage {
    pub(crate) name: FilePage,
    /// `None` until the set or a log has it whole.
    pub(crate) content: Option<Box<[u8]>>,
}

/// The pages, restored up to a position of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageRoll {
    pub(crate) roll: RollState,
    pub(crate) pages: BTreeMap<PageNumber, RolledPage>,
}

/// The read of a full backup, from which the pages begin.
#[derive(Debug)]
pub struct PageRollBegin {
    roll: PageRoll,
    names: BTreeMap<FilePage, PageNumber>,
    follower: LogFollower,
    commit_ms: Option<u64>,
}

/// A log backup that is being applied to the pages.
#[derive(Debug)]
pub struct PageRollLog {
    roll: PageRoll,
    log: BackupDescription,
    scan: RollForward,
    follower: LogFollower,
    commit_ms: u64,
}

impl PageRollBegin {
    pub(crate) fn new(state: &BackupDescription, pages: BTreeMap<PageNumber, FilePage>) -> Self {
        let names = pages.iter().map(|(&page, &name)| (name, page)).collect();
        let rolled = |(page, name)| {
            let content = None;
            (page, RolledPage { name, content })
        };
        Self {
            names,
            follower: LogFollower::new(state),
            commit_ms: None,
            roll: PageRoll {
                roll: RollState {
                    state: state.clone(),
                    reached: Reached::default(),
                },
                pages: pages.into_iter().map(rolled).collect(),
            },
        }
    }

    /// Whether a range of a data file contains one of the pages.
    pub fn wants(&self, file_id: FileId, offset: u64, bytes: u64) -> bool {
        self.names_in(file_id, offset, bytes).next().is_some()
    }

    /// The pages that are completely inside a range of a data file. What the set has behind the end of its database is
    /// none of its pages.
    fn names_in(
        &self,
        file_id: FileId,
        offset: u64,
        bytes: u64,
    ) -> impl Iterator<Item = (FilePage, PageNumber)> {
        let page_count = self.roll.roll.state.page_count();
        names_in(&self.names, file_id, offset, bytes)
            .filter(move |(_, page)| page.is_within(page_count))
    }

    /// Takes the pages out of a range of a data file, as read from the set.
    pub fn take(&mut self, file_id: FileId, offset: u64, bytes: &[u8]) {
        let found: Vec<_> = self.names_in(file_id, offset, bytes.len() as u64).collect();
        for (name, page) in found {
            let start = (name.byte_offset(PAGE_BYTES) - offset) as usize;
            if let Some(rolled) = self.roll.pages.get_mut(&page) {
                rolled.content = Some(bytes[start..start + PAGE_BYTES].into());
            }
        }
    }

    /// Takes the next bytes of the set's log. Call it after all pages have been taken.
    ///
    /// # Errors
    /// The log is damaged.
    pub fn apply_log(&mut self, bytes: &[u8]) -> Result<()> {
        let Self {
            roll,
            follower,
            commit_ms,
            ..
        } = self;
        follower.feed_records(bytes, &mut |record| {
            if let Record::Commit { unix_ms, .. } = *record {
                *commit_ms = (*commit_ms).max(Some(unix_ms));
            }
            roll.apply(record)
        })
    }

    /// The pages as of the end of the backup.
    ///
    /// # Errors
    /// The log is incomplete; a page within the set is not in it.
    pub fn settle(mut self) -> Result<PageRoll> {
        self.follower.check_end()?;
        let page_count = self.roll.roll.state.page_count();
        for (page, rolled) in &self.roll.pages {
            if page.is_within(page_count) && rolled.content.is_none() {
                return Err(self.roll.refuse(rolled.name, PageRefusal::NotInSet));
            }
        }
        self.roll.roll.reached = Reached {
            checksum: self.follower.checksum(),
            unix_ms: self.commit_ms.unwrap_or(self.roll.roll.state.ended_ms()),
            applied: 0,
        };
        Ok(self.roll)
    }
}

impl PageRoll {
    pub(crate) fn apply(&mut self, record: &Record<'_>) -> Result<()> {
        let (Record::PageImage { page, .. } | Record::PageRanges { page, .. }) = *record else {
            return Ok(());
        };
        let Some(rolled) = self.pages.get_mut(&page) else {
            return Ok(());
        };
        if let (None, Record::PageImage { .. }) = (&rolled.content, record) {
            rolled.content = Some(vec![0; PAGE_BYTES].into());
        }
        match &mut rolled.content {
            Some(content) => {
                record.apply_to(content);
                Ok(())
            }
            None => {
                let name = rolled.name;
                Err(self.refuse(name, PageRefusal::NotInSet))
            }
        }
    }

    pub(crate) fn refuse(&self, page: FilePage, refusal: PageRefusal) -> EngineError {
        EngineError::PageRefused {
            database: self.roll.state.name().to_owned(),
            page,
            refusal,
        }
    }

    /// The position of the log up to which they are restored.
    pub fn reached_lsn(&self) -> Lsn {
        self.roll.state.last_lsn()
    }

    /// Identity of the history that they belong to.
    pub fn recovery_fork(&self) -> Guid {
        self.roll.state.recovery_fork()
    }

    /// The pages, in order.
    pub fn pages(&self) -> impl Iterator<Item = FilePage> {
        self.pages.values().map(|rolled| rolled.name)
    }

    /// Fails for pages that are damaged in the set.
    pub(crate) fn verify(&self, have_checksums: bool) -> Result<()> {
        for rolled in self.pages.values() {
            let content = rolled.content.as_deref();
            let content = content.ok_or_else(|| self.refuse(rolled.name, PageRefusal::NotInSet))?;
            let damage = checksum::mismatch(content).filter(|_| have_checksums);
            if let Some((expected, found)) = damage {
                let refusal = PageRefusal::Damaged { expected, found };
                return Err(self.refuse(rolled.name, refusal));
            }
        }
        Ok(())
    }

    /// Starts to apply a log backup.
    ///
    /// # Errors
    /// [`EngineError::LogRefused`].
    pub fn begin_log(self, log: &BackupDescription) -> Result<PageRollLog> {
        Ok(PageRollLog {
            scan: RollForward::begin(&self.roll.state, self.roll.reached, log, StopAt::End)?,
            follower: LogFollower::new(log),
            log: log.clone(),
            commit_ms: self.roll.reached.unix_ms,
            roll: self,
        })
    }

    /// To be kept until the next log backup.
    ///
    /// # Errors
    /// The description cannot be stored.
    pub fn encode(&self) -> Result<Vec<u8>> {
        let mut out = Writer::default();
        out.0.extend_from_slice(MAGIC);
        self.roll.encode(&mut out)?;
        out.u32(self.pages.len() as u32);
        for (page, rolled) in &self.pages {
            out.u32(page.sqlite());
            out.u16(rolled.name.file_id.0);
            out.u64(rolled.name.page);
            out.u8(u8::from(rolled.content.is_some()));
            if let Some(content) = &rolled.content {
                out.0.extend_from_slice(content);
            }
        }
        let sum = windlass_base::checksum(&out.0);
        out.u64(sum);
        Ok(out.0)
    }

    /// Reads what [`PageRoll::encode`] wrote.
    ///
    /// # Errors
    /// It is damaged.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let damaged = || {
            EngineError::Invalid(
                "the pages of an unfinished restore are damaged: begin it again".to_owned(),
            )
        };
        let (roll, mut input) = RollState::open(*MAGIC, bytes).ok_or_else(damaged)?;
        let mut parse = || {
            let mut pages = BTreeMap::new();
            for _ in 0..input.u32()? {
                let page = PageNumber::from_sqlite(input.u32()?)?;
                let name = FilePage {
                    file_id: FileId(input.u16()?),
                    page: input.u64()?,
                };
                let content = match input.u8()? {
                    0 => None,
                    _ => Some(input.array::<PAGE_BYTES>()?.to_vec().into_boxed_slice()),
                };
                pages.insert(page, RolledPage { name, content });
            }
            Some(pages)
        };
        let pages = parse().ok_or_else(damaged)?;
        Ok(Self { roll, pages })
    }
}

const MAGIC: &[u8; 8] = b"WLPAGE01";

impl PageRollLog {
    /// Looks at the next bytes of the log. All of it is looked at before any is applied.
    ///
    /// # Errors
    /// The log is damaged, or does not continue the pages.
    pub fn scan(&mut self, bytes: &[u8]) -> Result<()> {
        self.scan.scan(bytes)
    }

    /// All of the log was looked at.
    ///
    /// # Errors
    /// It is not complete, or does not continue the pages.
    pub fn scanned(&self) -> Result<()> {
        self.scan.scanned().map(|_| ())
    }

    /// Applies the next bytes of the log.
    ///
    /// # Errors
    /// The log is not the one that was scanned.
    pub fn apply(&mut self, bytes: &[u8]) -> Result<()> {
        let Self {
            roll,
            follower,
            commit_ms,
            ..
        } = self;
        let from = roll.roll.state.end();
        follower.feed_blocks(bytes, &mut |block, records| {
            if block.position < from {
                return Ok(());
            }
            for record in crate::log::record::Records::new(records).flatten() {
                if let Record::Commit { unix_ms, .. } = record {
                    *commit_ms = (*commit_ms).max(unix_ms);
                }
                roll.apply(&record)?;
            }
            roll.roll.reached.checksum = Some(block.checksum);
            Ok(())
        })
    }

    /// The pages as of the end of the log.
    ///
    /// # Errors
    /// Not all of the log was applied.
    pub fn settle(mut self) -> Result<PageRoll> {
        self.follower.check_end()?;
        self.roll.roll.reached.unix_ms = self.commit_ms;
        self.roll.roll.advance(&self.log);
        Ok(self.roll)
    }
}
