//! The mark of a session's transaction: the engine writes it into the log with the commit.
//!
//! Invariant: no transaction gets the mark of an earlier one.

use windlass_base::Lsn;
use windlass_catalog::Catalog;

use super::Queries;
use crate::Failure;

/// The pragma of the engine that gives the next commit a mark; without a value it says which commit got it.
const MARK: &str = "windlass_mark";

/// The mark of a transaction that is not committed yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PendingMark {
    pub(crate) name: String,
    pub(crate) description: String,
}

/// A mark in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Marked {
    pub(crate) mark: PendingMark,
    pub(crate) lsn: Lsn,
    /// When it was committed, in milliseconds since 1970, UTC.
    pub(crate) unix_ms: u64,
}

impl Queries {
    /// Gives the open transaction a mark; `false` if it has one.
    pub(crate) fn mark(&mut self, catalog: &Catalog, mark: PendingMark) -> Result<bool, Failure> {
        if self.mark.is_some() {
            return Ok(false);
        }
        let text = match mark.description.is_empty() {
            true => mark.name.clone(),
            false => format!("{}\n{}", mark.name, mark.description),
        };
        self.connection(catalog)?
            .pragma_update(Some("main"), MARK, text)?;
        self.mark = Some(mark);
        Ok(true)
    }

    /// The commit that got the mark; `None` if it changed nothing.
    pub(super) fn marked(&self, mark: PendingMark) -> Option<Marked> {
        let connection = self.connection.as_ref()?;
        let mut found = String::new();
        let asked = connection.pragma_query(Some("main"), MARK, |row| {
            found = row.get(0)?;
            Ok(())
        });
        asked.ok()?;
        let (lsn, unix_ms) = found.split_once(' ')?;
        Some(Marked {
            mark,
            lsn: lsn.parse().ok()?,
            unix_ms: unix_ms.parse().ok()?,
        })
    }

    /// Takes the mark back, so that no later transaction gets it.
    pub(super) fn forget_mark(&mut self) {
        if self.mark.take().is_none() {
            return;
        }
        let cleared = self
            .connection
            .as_ref()
            .map(|connection| connection.pragma_update(Some("main"), MARK, ""));
        if let Some(Err(_)) = cleared {
            // A connection that cannot forget it ends.
            self.connection = None;
        }
    }
}
