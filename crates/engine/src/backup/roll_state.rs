//! Up to where parts of a database are rolled forward, pages and data files alike.

use windlass_base::bytes::{Reader, Writer};
use windlass_base::{Guid, PageNumber};

use super::BackupDescription;
use super::description::Content;
use super::roll_forward::Reached;
use crate::error::{EngineError, LogRefusal, Result};
use crate::log::Tail;
use crate::options::RecoveryModel;

/// Up to where parts of a database in use are restored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RollState {
    pub(crate) state: BackupDescription,
    pub(crate) reached: Reached,
}

impl RollState {
    /// The end of a log backup was reached.
    pub(super) fn advance(&mut self, log: &BackupDescription) {
        self.state.end = log.end();
        self.state.content = Content::Log;
        self.state.previous = log.previous;
        self.state.ending = log.ending;
        self.state.ended_ms = log.ended_ms();
    }

    pub(super) fn encode(&self, out: &mut Writer) -> Result<()> {
        let described = self.state.encode()?;
        out.u32(described.len() as u32);
        out.0.extend_from_slice(&described);
        out.u8(u8::from(self.reached.checksum.is_some()));
        out.u64(self.reached.checksum.unwrap_or(0));
        out.u64(self.reached.unix_ms);
        Ok(())
    }

    /// Reads it from a file that begins with `magic` and ends with a checksum. Returns what follows, too; `None` if the
    /// file is damaged.
    pub(super) fn open(magic: [u8; 8], bytes: &[u8]) -> Option<(Self, Reader<'_>)> {
        let (content, sum) = bytes.split_last_chunk::<8>()?;
        if windlass_base::checksum(content) != u64::from_le_bytes(*sum) {
            return None;
        }
        let mut input = Reader::new(content.strip_prefix(&magic)?);
        let length = input.u32()? as usize;
        let state = BackupDescription::decode(input.take(length)?).ok()?;
        let has_checksum = input.u8()? != 0;
        let reached = Reached {
            checksum: Some(input.u64()?).filter(|_| has_checksum),
            unix_ms: input.u64()?,
            applied: 0,
        };
        Some((Self { state, reached }, input))
    }
}

/// Fails if the log of a database does not lead from a backup to its last commit: it has no chain of log backups, or
/// another history.
pub(crate) fn check_continued(
    (database, model): (&str, RecoveryModel),
    tail: Option<Tail>,
    own: (Guid, Guid),
    description: &BackupDescription,
) -> Result<()> {
    let database = database.to_owned();
    if tail.is_none() {
        return Err(EngineError::NoLogChain { database, model });
    }
    let is_own = (description.guid(), description.recovery_fork()) == own;
    let is_whole =
        !description.is_differential() && description.recovery_model() == RecoveryModel::Full;
    match is_own && is_whole {
        true => Ok(()),
        false => Err(EngineError::LogRefused {
            database,
            refusal: LogRefusal::OtherFork,
        }),
    }
}

/// One bit for each page; grows as bits are set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Pages(Vec<u8>);

impl Pages {
    pub(super) fn of(bytes: &[u8]) -> Self {
        Self(bytes.to_vec())
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }

    pub(super) fn set(&mut self, page: PageNumber) {
        let (index, bit) = (page.index() as usize / 8, page.index() % 8);
        if self.0.len() <= index {
            self.0.resize(index + 1, 0);
        }
        self.0[index] |= 1 << bit;
    }

    pub(super) fn is_set(&self, page: PageNumber) -> bool {
        let (index, bit) = (page.index() as usize / 8, page.index() % 8);
        self.0.get(index).is_some_and(|byte| byte & (1 << bit) != 0)
    }
}
