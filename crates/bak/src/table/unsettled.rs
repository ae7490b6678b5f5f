//! What the log of a backup says against the copies of its pages.
//!
//! Pages are copied while the database is in use. The log in the backup leads to the moment at its end: a page that has
//! a change of a transaction without an end shows rows that a server would undo, and a page that was copied before a
//! change of an ended transaction lacks rows that a server would redo. The LSN in a page's header tells which changes
//! it has. Neither is done here: such pages are counted by table.

use std::collections::BTreeMap;

use super::catalog::Database;
use super::owners::{Owner, OwnerPart, Owners};
use super::pages::Pages;
use crate::error::{Error, PageId};
use crate::page::{PAGE_BYTES, PageHeader};
use crate::transactions::{RowChanges, Transactions};
use windlass_base::Lsn;

/// The objects whose pages do not have what the log says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Unsettled {
    /// The transactions without an end, in words.
    pub transactions: Vec<String>,
    /// By object.
    pub objects: Vec<UnsettledObject>,
    /// Pages of unknown objects with changes of open transactions.
    pub unknown_pages: u64,
    /// Log records read.
    pub records: u64,
    /// Why more may be unsettled; `None` if the whole log was read.
    pub doubt: Option<String>,
}

/// An object with unsettled rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnsettledObject {
    pub owner: Owner,
    /// Pages with changes of transactions without an end.
    pub open_pages: u64,
    /// The changes of rows on them: some may not have been made yet when the page was copied.
    pub rows: RowChanges,
    /// Pages that lack changes of ended transactions.
    pub older_pages: u64,
}

impl UnsettledObject {
    /// What is unsettled, in words.
    pub fn text(&self) -> String {
        let mut parts = Vec::new();
        if self.open_pages > 0 {
            parts.push(format!(
                "{} pages have changes of transactions that had not ended: up to {}, which a server would undo",
                self.open_pages, self.rows
            ));
        }
        if self.older_pages > 0 {
            parts.push(format!(
                "{} pages were copied before the last changes of their rows, which a server would redo from the log",
                self.older_pages
            ));
        }
        parts.join("; ")
    }
}

impl Unsettled {
    /// The entry of an object.
    pub fn object(&self, object: u32) -> Option<&UnsettledObject> {
        self.objects
            .iter()
            .find(|found| found.owner.object == object)
    }

    /// Whether the log leaves nothing open.
    pub fn is_settled(&self) -> bool {
        self.transactions.is_empty()
            && self.objects.is_empty()
            && self.unknown_pages == 0
            && self.doubt.is_none()
    }
}

/// Collects objects.
struct Collect<'p> {
    pages: &'p mut dyn Pages,
    owners: Owners,
    page: Vec<u8>,
    objects: BTreeMap<u32, UnsettledObject>,
    unknown_pages: u64,
}

impl Collect<'_> {
    /// The LSN of the last change on the copy of a page; `None` if there is no copy.
    fn copied_at(&mut self, id: PageId) -> Result<Option<Lsn>, Error> {
        let is_there = self.pages.page(id, &mut self.page)?;
        let header = PageHeader::new(&self.page);
        Ok((is_there && header.id() == id).then(|| header.lsn()))
    }

    /// The entry of the object of an allocation unit, if its rows are there and not an index of them.
    fn object(&mut self, unit: u64) -> Option<&mut UnsettledObject> {
        let Some((owner, part)) = self.owners.of(unit) else {
            self.unknown_pages += 1;
            return None;
        };
        if part == OwnerPart::Index {
            return None;
        }
        let make = || UnsettledObject {
            owner: owner.clone(),
            open_pages: 0,
            rows: RowChanges::default(),
            older_pages: 0,
        };
        Some(self.objects.entry(owner.object).or_insert_with(make))
    }
}

impl Database {
    /// The objects whose pages do not have what the log says.
    ///
    /// # Errors
    /// Pages cannot be read.
    pub fn unsettled(
        &mut self,
        pages: &mut dyn Pages,
        log: &Transactions,
    ) -> Result<Unsettled, Error> {
        let owners = self.owners(pages)?;
        let mut collect = Collect {
            pages,
            owners,
            page: vec![0; PAGE_BYTES],
            objects: BTreeMap::new(),
            unknown_pages: 0,
        };
        let open = log.open();
        for transaction in &open {
            for (page, changes) in &transaction.pages {
                let copied = collect.copied_at(*page)?;
                if copied.is_some_and(|copied| copied >= changes.first)
                    && let Some(object) = collect.object(changes.unit)
                {
                    object.open_pages += 1;
                    object.rows.add(changes.rows);
                }
            }
        }
        for (page, last, unit) in log.changed() {
            let copied = collect.copied_at(page)?;
            if copied.is_some_and(|copied| copied < last)
                && let Some(object) = collect.object(unit)
            {
                object.older_pages += 1;
            }
        }
        Ok(Unsettled {
            transactions: open.iter().map(ToString::to_string).collect(),
            objects: collect.objects.into_values().collect(),
            unknown_pages: collect.unknown_pages,
            records: log.records,
            doubt: doubt(log),
        })
    }
}

/// Why the log may say more than was read.
fn doubt(log: &Transactions) -> Option<String> {
    if log.records == 0 {
        return Some("the log of the backup is not in these files".to_owned());
    }
    if log.unreadable_blocks > 0 {
        let count = log.unreadable_blocks;
        return Some(format!(
            "the log has {count} blocks or gaps that cannot be read"
        ));
    }
    let cut = "the log has more transactions or changed pages than are kept in memory";
    log.is_cut.then(|| cut.to_owned())
}
