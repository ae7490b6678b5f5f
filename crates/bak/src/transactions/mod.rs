//! The transactions in the log of a backup: which had not committed at its end, and what they changed.
//!
//! A server redoes and undoes the log when it restores. Here the log only tells where the pages cannot be trusted:
//! pages with changes of transactions that were still open, and pages that were copied before a change in the log.
//!
//! - `block`: whole log blocks from pieces of the log, as they were before sectors got their parity.
//! - `record`: log records.

mod block;
mod record;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;

use windlass_base::Lsn;

use self::block::Blocks;
pub use self::record::{Begin, TransactionId};
use self::record::{Operation, Record};
use crate::error::PageId;
use crate::mtf::log::VirtualLog;

/// Maximum number of open transactions that are kept.
const TRANSACTIONS_MAX: usize = 1 << 16;

/// Maximum number of pages that the text of a transaction names.
const PAGES_NAMED: usize = 5;

/// Maximum number of changed pages that are kept, of all transactions together.
const PAGES_MAX: usize = 1 << 20;

/// Changes of rows, by kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RowChanges {
    pub inserted: u64,
    pub deleted: u64,
    pub modified: u64,
}

impl RowChanges {
    pub fn total(self) -> u64 {
        self.inserted + self.deleted + self.modified
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.inserted += other.inserted;
        self.deleted += other.deleted;
        self.modified += other.modified;
    }
}

/// What a transaction changed on a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageChanges {
    /// The allocation unit that the page belongs to.
    pub unit: u64,
    /// The LSNs of the first change and of the last one.
    pub first: Lsn,
    pub last: Lsn,
    pub rows: RowChanges,
}

/// A transaction without an end in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenTransaction {
    pub id: TransactionId,
    /// How it began; `None` if that is not in the log.
    pub begin: Option<Begin>,
    /// Its first record in the log.
    pub first: Lsn,
    /// Its changes of rows.
    pub rows: RowChanges,
    /// Its other records that change pages.
    pub other_changes: u64,
    /// The pages whose rows it changed.
    pub pages: BTreeMap<PageId, PageChanges>,
}

impl OpenTransaction {
    fn new(id: TransactionId, first: Lsn) -> Self {
        Self {
            id,
            begin: None,
            first,
            rows: RowChanges::default(),
            other_changes: 0,
            pages: BTreeMap::new(),
        }
    }
}

impl fmt::Display for RowChanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            inserted,
            deleted,
            modified,
        } = self;
        write!(
            f,
            "{inserted} inserted, {deleted} deleted, {modified} modified rows"
        )
    }
}

impl fmt::Display for OpenTransaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "transaction {}", self.id)?;
        match &self.begin {
            Some(begin) => write!(f, " '{}' of {}", begin.name, begin.time)?,
            None => f.write_str(", begun before the log of the backup,")?,
        }
        write!(f, " has no end in the log: {}", self.rows)?;
        for (index, page) in self.pages.keys().take(PAGES_NAMED).enumerate() {
            let word = if index == 0 { " on pages " } else { ", " };
            write!(f, "{word}{page}")?;
        }
        match self.pages.len().saturating_sub(PAGES_NAMED) {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

/// The transactions in the log of a set.
#[derive(Debug, Default)]
pub struct Transactions {
    blocks: Blocks,
    open: HashMap<TransactionId, OpenTransaction>,
    /// Transactions whose end was read before their beginning, as the virtual log files are not always in order.
    ended: HashSet<TransactionId>,
    /// The last change of rows by an ended transaction on each page, and the allocation unit.
    changed: HashMap<PageId, (Lsn, u64)>,
    /// Number of entries for pages, together.
    pages: usize,
    /// Log records read.
    pub records: u64,
    /// Transactions whose end is in the log.
    pub ended_count: u64,
    /// Log blocks whose records cannot be read, and places where blocks are missing.
    pub unreadable_blocks: u64,
    /// Whether more transactions or pages were in the log than are kept.
    pub is_cut: bool,
}

impl Transactions {
    /// Reads the next piece of the log, at `offset` of the log file.
    pub(crate) fn piece(&mut self, log: &VirtualLog, offset: u64, piece: &[u8]) {
        let mut blocks = std::mem::take(&mut self.blocks);
        blocks.add(log, offset, piece, &mut |block| {
            let is_good = block.records(&mut |record| self.record(record));
            self.unreadable_blocks += u64::from(!is_good);
        });
        self.unreadable_blocks += blocks.take_gaps();
        self.blocks = blocks;
    }

    /// The transactions without an end, by their first record.
    pub fn open(&self) -> Vec<&OpenTransaction> {
        let mut open: Vec<&OpenTransaction> = self.open.values().collect();
        open.sort_by_key(|transaction| (transaction.first, transaction.id));
        open
    }

    /// The pages whose rows were changed by transactions with an end: the last change, and the allocation unit.
    pub fn changed(&self) -> impl Iterator<Item = (PageId, Lsn, u64)> {
        let changed = self.changed.iter();
        changed.map(|(page, (lsn, unit))| (*page, *lsn, *unit))
    }

    /// Whether every record of the log was read and is remembered.
    pub fn is_complete(&self) -> bool {
        self.records > 0 && self.unreadable_blocks == 0 && !self.is_cut
    }

    fn record(&mut self, record: Record<'_>) {
        self.records += 1;
        let Some(id) = record.transaction() else {
            return;
        };
        let operation = record.operation();
        if operation == Operation::End {
            self.end(id);
            return;
        }
        if self.ended.contains(&id) {
            if let Operation::Rows(_) = operation {
                self.note_change(record.page(), record.lsn, record.unit());
            }
            return;
        }
        if self.open.len() >= TRANSACTIONS_MAX && !self.open.contains_key(&id) {
            self.is_cut = true;
            return;
        }
        let make = || OpenTransaction::new(id, record.lsn);
        let transaction = self.open.entry(id).or_insert_with(make);
        transaction.first = transaction.first.min(record.lsn);
        match operation {
            Operation::Begin => transaction.begin = Some(record.begin()),
            Operation::Page => transaction.other_changes += 1,
            Operation::Rows(rows) => {
                transaction.rows.add(rows);
                let is_full = self.pages >= PAGES_MAX;
                match transaction.note_page(rows, record, is_full) {
                    Noted::New => self.pages += 1,
                    Noted::Known => {}
                    Noted::Not => self.is_cut = true,
                }
            }
            Operation::End | Operation::Other => {}
        }
    }

    /// A transaction was committed, or undone completely: its changes belong to the database.
    fn end(&mut self, id: TransactionId) {
        self.ended_count += 1;
        let known = self.open.remove(&id);
        let is_whole = known.as_ref().is_some_and(|known| known.begin.is_some());
        if !is_whole {
            match self.ended.len() < TRANSACTIONS_MAX {
                true => drop(self.ended.insert(id)),
                false => self.is_cut = true,
            }
        }
        for (page, changes) in known.into_iter().flat_map(|known| known.pages) {
            self.pages -= 1;
            self.note_change(page, changes.last, changes.unit);
        }
    }

    fn note_change(&mut self, page: PageId, lsn: Lsn, unit: u64) {
        let is_full = self.pages >= PAGES_MAX;
        match self.changed.get_mut(&page) {
            Some((last, _)) => *last = lsn.max(*last),
            None if is_full => self.is_cut = true,
            None => {
                self.changed.insert(page, (lsn, unit));
                self.pages += 1;
            }
        }
    }
}

/// How a change of a page was remembered.
enum Noted {
    New,
    Known,
    Not,
}

impl OpenTransaction {
    fn note_page(&mut self, rows: RowChanges, record: Record<'_>, is_full: bool) -> Noted {
        let lsn = record.lsn;
        if let Some(changes) = self.pages.get_mut(&record.page()) {
            changes.first = changes.first.min(lsn);
            changes.last = changes.last.max(lsn);
            changes.rows.add(rows);
            return Noted::Known;
        }
        if is_full {
            return Noted::Not;
        }
        let changes = PageChanges {
            unit: record.unit(),
            first: lsn,
            last: lsn,
            rows,
        };
        self.pages.insert(record.page(), changes);
        Noted::New
    }
}
