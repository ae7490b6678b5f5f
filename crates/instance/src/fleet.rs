//! All databases of all machines that back up to one folder of a store, from its listings alone.
//!
//! Nothing is opened: the layout of the keys (`layout.rs`) says of what, when and in how many stripes a backup was made, and an
//! object is listed only when it is complete. Memory grows with the number of databases, not with that of backups.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use windlass_device::DeviceFolder;

use crate::layout::Laid;

/// Listings that are read at a time.
const LISTINGS_MAX: usize = 16;

/// What is listed of one database.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Kept {
    /// Backups with all their stripes.
    pub backups: u64,
    /// Backups that lack stripes.
    pub incomplete: u64,
    /// Of all objects.
    pub bytes: u64,
    /// Seconds since 1970, UTC, at which the newest whole backup of each kind began.
    pub full: Option<i64>,
    differential: Option<i64>,
    log: Option<i64>,
    first_full: Option<i64>,
}

impl Kept {
    /// When the newest backup began that has a full backup before it.
    pub fn newest(&self) -> Option<i64> {
        let first = self.first_full?;
        let follows = |began: &i64| *began > first;
        let following = self.differential.into_iter().chain(self.log);
        self.full.into_iter().chain(following.filter(follows)).max()
    }

    fn add(&mut self, laid: &Laid<'_>) {
        self.backups += 1;
        let newest = match laid.kind {
            "FULL" => &mut self.full,
            "DIFF" => &mut self.differential,
            _ => &mut self.log,
        };
        *newest = (*newest).max(Some(laid.began));
        if laid.kind == "FULL" {
            let first = self.first_full.map_or(laid.began, |at| at.min(laid.began));
            self.first_full = Some(first);
        }
    }
}

/// What is below a folder of a store.
#[derive(Debug, Default)]
pub struct Fleet {
    /// By server and database.
    pub databases: BTreeMap<(String, String), Kept>,
    /// Objects of another layout.
    pub others: u64,
}

impl Fleet {
    /// Lists a folder: those in it at the same time.
    ///
    /// # Errors
    /// If any of it cannot be listed to its end: half a list says nothing.
    pub fn of(folder: &DeviceFolder) -> io::Result<Self> {
        let parts: Vec<DeviceFolder> = folder
            .folders()?
            .into_iter()
            .map(|(_, part)| part)
            .collect();
        let (next, whole) = (AtomicUsize::new(0), Mutex::new(Self::default()));
        let list = || -> io::Result<()> {
            while let Some(part) = parts.get(next.fetch_add(1, Ordering::Relaxed)) {
                let mut listing = Listing::default();
                part.each_object(&mut |object| listing.add(&object.key, object.bytes))?;
                let found = listing.end();
                let mut whole = whole.lock().unwrap_or_else(PoisonError::into_inner);
                whole.join(found);
            }
            Ok(())
        };
        std::thread::scope(|scope| {
            let count = parts.len().min(LISTINGS_MAX);
            let start = |_| std::thread::Builder::new().spawn_scoped(scope, list).ok();
            let lists: Vec<_> = (0..count).map_while(start).collect();
            if lists.is_empty() {
                return list();
            }
            let failed = || Err(io::Error::other("a listing ended unexpectedly"));
            let mut ended = lists
                .into_iter()
                .map(|list| list.join().unwrap_or_else(|_| failed()));
            ended.try_for_each(|ended| ended)
        })?;
        Ok(whole.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    fn join(&mut self, other: Self) {
        self.others += other.others;
        for (name, kept) in other.databases {
            let own = self.databases.entry(name).or_default();
            own.backups += kept.backups;
            own.incomplete += kept.incomplete;
            own.bytes += kept.bytes;
            own.full = own.full.max(kept.full);
            own.differential = own.differential.max(kept.differential);
            own.log = own.log.max(kept.log);
            own.first_full = match (own.first_full, kept.first_full) {
                (Some(one), Some(other)) => Some(one.min(other)),
                (one, other) => one.or(other),
            };
        }
    }
}

/// Reads keys in their order, in which the stripes of a backup follow each other.
#[derive(Debug, Default)]
struct Listing {
    fleet: Fleet,
    /// The first key of the last backup, and the stripes of it that were seen.
    open: Option<(String, BTreeSet<u16>)>,
}

impl Listing {
    fn add(&mut self, key: &str, bytes: u64) {
        let Some(laid) = Laid::of(key) else {
            self.fleet.others += 1;
            return;
        };
        let name = (laid.server.to_owned(), laid.database.to_owned());
        self.fleet.databases.entry(name).or_default().bytes += bytes;
        let folder = |key: &str| key.rsplit_once('/').map(|(folder, _)| folder.to_owned());
        match &mut self.open {
            Some((first, stripes)) if folder(first) == folder(key) => {
                stripes.insert(laid.stripe);
            }
            _ => {
                self.close();
                self.open = Some((key.to_owned(), BTreeSet::from([laid.stripe])));
            }
        }
    }

    /// Counts the last backup.
    fn close(&mut self) {
        let Some((key, stripes)) = self.open.take() else {
            return;
        };
        let Some(laid) = Laid::of(&key) else {
            return;
        };
        let name = (laid.server.to_owned(), laid.database.to_owned());
        let kept = self.fleet.databases.entry(name).or_default();
        match stripes.len() == usize::from(laid.stripes) {
            true => kept.add(&laid),
            false => kept.incomplete += 1,
        }
    }

    fn end(mut self) -> Fleet {
        self.close();
        self.fleet
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_backups_count_and_nothing_without_a_full_backup_before_it() {
        let mut listing = Listing::default();
        let mut add = |database: &str, kind: &str, second: u32, file: &str| {
            let run = format!("20261125T1705{second:02}Z-00112233445566778899AABBCCDDEEFF");
            listing.add(&format!("x/db1/{database}/{kind}/{run}/{file}"), 10);
        };
        add("a", "DIFF", 8, "1-of-1.bak");
        add("a", "FULL", 3, "1-of-2.bak");
        add("a", "FULL", 3, "2-of-2.bak");
        add("a", "FULL", 9, "1-of-2.bak");
        add("a", "LOG", 1, "1-of-1.bak");
        add("b", "LOG", 9, "1-of-1.bak");
        add("b", "LOG", 9, "readme.txt");
        let fleet = listing.end();
        let start = 1_795_626_300;
        let kept = |name: &str| fleet.databases[&("db1".to_owned(), name.to_owned())].clone();
        let a = kept("a");
        assert_eq!((a.backups, a.incomplete, a.bytes), (3, 1, 50));
        assert_eq!((a.full, a.newest()), (Some(start + 3), Some(start + 8)));
        assert_eq!(kept("b").newest(), None);
        assert_eq!(fleet.others, 1);
    }
}
