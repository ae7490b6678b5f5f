//! A simulated disk: crashes that keep any part of unsynced writes, errors of reads, writes and
//! syncs, and a full disk.
//!
//! Invariants:
//! - Reads see every earlier write until a crash.
//! - After a crash each sector of 512 bytes holds what was synced last, or what any later unsynced
//!   write put there; sectors are independent, so writes are torn and reordered.
//! - A failed sync leaves some sectors on disk and the others lost at the next crash, although reads
//!   still see them and a second sync would succeed: as Linux does.
//! - A file whose folder was not synced may be gone after a crash.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use windlass_engine::storage::{FileSystem, OpenMode, SECTOR_BYTES, StorageFile};

use crate::rng::Rng;

#[derive(Debug)]
enum Change {
    Write(u64, Vec<u8>),
    Length(u64),
}

#[derive(Debug, Default)]
struct File {
    seen: Vec<u8>,
    durable: Vec<u8>,
    unsynced: Vec<Change>,
    name_durable: bool,
    reserved: u64,
}

impl File {
    fn apply(content: &mut Vec<u8>, change: &Change) {
        match change {
            Change::Write(offset, bytes) => {
                let start = *offset as usize;
                let end = start + bytes.len();
                if content.len() < end {
                    content.resize(end, 0);
                }
                content[start..end].copy_from_slice(bytes);
            }
            Change::Length(bytes) => content.resize(*bytes as usize, 0),
        }
    }

    fn sync(&mut self) {
        for change in self.unsynced.drain(..) {
            Self::apply(&mut self.durable, &change);
        }
    }

    /// Some of the unsynced changes reach the disk; none remains pending.
    fn sync_partly(&mut self, rng: &mut Rng) {
        // Whole crashes of one kind reveal as much as a mixture.
        let percent = [0, 10, 50, 90, 100][rng.below(5) as usize];
        for change in self.unsynced.drain(..) {
            match change {
                Change::Length(bytes) => {
                    if rng.chance(percent) {
                        Self::apply(&mut self.durable, &Change::Length(bytes));
                    }
                }
                Change::Write(offset, bytes) => {
                    let mut done = 0;
                    while done < bytes.len() {
                        let at = offset + done as u64;
                        let rest = SECTOR_BYTES - (at as usize % SECTOR_BYTES);
                        let end = (done + rest).min(bytes.len());
                        if rng.chance(percent) {
                            let part = bytes[done..end].to_vec();
                            Self::apply(&mut self.durable, &Change::Write(at, part));
                        }
                        done = end;
                    }
                }
            }
        }
    }

    fn allocated(&self) -> u64 {
        self.reserved.max(self.seen.len() as u64)
    }
}

/// A fault at a numbered operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    Crash,
    /// This operation fails; syncs lose data as they do.
    Error,
}

#[derive(Debug)]
struct Inner {
    files: BTreeMap<PathBuf, File>,
    rng: Rng,
    operations: u64,
    fault: Option<(u64, Fault)>,
    crashed: bool,
    had_fault: bool,
    capacity: Option<u64>,
    failed_syncs: u64,
    asked_again: bool,
}

/// The disk. Clones are the same disk.
#[derive(Debug, Clone)]
pub struct Disk(Arc<Mutex<Inner>>);

impl Disk {
    /// An empty disk with random events derived from `seed`.
    pub fn new(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(Inner {
            files: BTreeMap::new(),
            rng: Rng::new(seed),
            operations: 0,
            fault: None,
            crashed: false,
            had_fault: false,
            capacity: None,
            failed_syncs: 0,
            asked_again: false,
        })))
    }

    /// Makes the operation after the next `after` fail.
    pub fn plan(&self, after: u64, fault: Fault) {
        let mut inner = self.0.lock();
        inner.fault = Some((inner.operations + after, fault));
    }

    /// Cancels the planned fault.
    pub fn calm(&self) {
        self.0.lock().fault = None;
    }

    /// Limits the total size of files.
    pub fn set_capacity(&self, capacity: Option<u64>) {
        self.0.lock().capacity = capacity;
    }

    /// Current total size of files.
    pub fn allocated(&self) -> u64 {
        self.0.lock().files.values().map(File::allocated).sum()
    }

    pub fn is_crashed(&self) -> bool {
        self.0.lock().crashed
    }

    /// Whether a planned fault has occurred since the last restart.
    pub fn had_fault(&self) -> bool {
        self.0.lock().had_fault
    }

    pub fn failed_syncs(&self) -> u64 {
        self.0.lock().failed_syncs
    }

    /// Whether a file was written or synced again through the descriptor whose sync had failed,
    /// which would take the second answer for the first.
    pub fn asked_again(&self) -> bool {
        self.0.lock().asked_again
    }

    /// The readable content of a file.
    pub fn content(&self, path: &Path) -> Option<Vec<u8>> {
        self.0.lock().files.get(path).map(|file| file.seen.clone())
    }

    /// Another disk whose files have the readable content of these, durably.
    pub fn fork(&self) -> Self {
        let fork = Self::new(0);
        for (path, file) in &self.0.lock().files {
            fork.put(path, &file.seen);
        }
        fork
    }

    /// Puts a file there durably, in the place of another if there is one.
    pub fn put(&self, path: &Path, content: &[u8]) {
        let file = File {
            seen: content.to_vec(),
            durable: content.to_vec(),
            name_durable: true,
            ..File::default()
        };
        self.0.lock().files.insert(path.to_owned(), file);
    }

    pub fn operations(&self) -> u64 {
        self.0.lock().operations
    }

    /// Loses power now, if not yet lost, and restarts with what a crash leaves.
    pub fn restart(&self) {
        let mut inner = self.0.lock();
        let Inner { files, rng, .. } = &mut *inner;
        files.retain(|_, file| file.name_durable || rng.chance(50));
        for file in files.values_mut() {
            file.sync_partly(rng);
            file.seen.clone_from(&file.durable);
            file.name_durable = true;
        }
        inner.crashed = false;
        inner.had_fault = false;
        inner.fault = None;
    }
}

fn power_lost() -> io::Error {
    io::Error::other("power lost")
}

impl Inner {
    /// Counts an operation; returns the fault planned for it.
    fn step(&mut self) -> io::Result<Option<Fault>> {
        if self.crashed {
            return Err(power_lost());
        }
        self.operations += 1;
        match self.fault {
            Some((at, fault)) if at < self.operations => {
                self.fault = None;
                self.had_fault = true;
                self.crashed = fault == Fault::Crash;
                Ok(Some(fault))
            }
            _ => Ok(None),
        }
    }

    fn file(&mut self, path: &Path) -> io::Result<&mut File> {
        self.files
            .get_mut(path)
            .ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn room_for(&self, path: &Path, bytes: u64) -> io::Result<()> {
        let Some(capacity) = self.capacity else {
            return Ok(());
        };
        let others: u64 = self
            .files
            .iter()
            .filter(|(name, _)| name.as_path() != path)
            .map(|(_, file)| file.allocated())
            .sum();
        let own = self.files.get(path).map_or(0, File::allocated).max(bytes);
        if others + own > capacity {
            return Err(io::ErrorKind::StorageFull.into());
        }
        Ok(())
    }
}

impl FileSystem for Disk {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn StorageFile>> {
        let mut inner = self.0.lock();
        if inner.step()?.is_some() {
            return Err(power_lost());
        }
        let known = inner.files.contains_key(path);
        match mode {
            OpenMode::Existing if !known => return Err(io::ErrorKind::NotFound.into()),
            // Files have their names from the beginning here.
            OpenMode::Begun => return Err(io::ErrorKind::NotFound.into()),
            OpenMode::CreateNew | OpenMode::Begin if known => {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            OpenMode::CreateNew | OpenMode::Begin | OpenMode::Claim => {
                inner.files.insert(path.to_owned(), File::default());
            }
            OpenMode::Existing => {}
        }
        Ok(Arc::new(Handle {
            disk: self.clone(),
            path: path.to_owned(),
            sync_failed: AtomicBool::new(false),
        }))
    }

    fn exists(&self, path: &Path) -> bool {
        self.0.lock().files.contains_key(path)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut inner = self.0.lock();
        inner.step()?;
        inner.files.remove(path);
        Ok(())
    }

    fn sync_folder_of(&self, path: &Path) -> io::Result<()> {
        let mut inner = self.0.lock();
        if inner.step()?.is_some() {
            return Err(power_lost());
        }
        for (name, file) in &mut inner.files {
            if name.parent() == path.parent() {
                file.name_durable = true;
            }
        }
        Ok(())
    }
}

#[derive(Debug)]
struct Handle {
    disk: Disk,
    path: PathBuf,
    sync_failed: AtomicBool,
}

impl Handle {
    fn note_use(&self, inner: &mut Inner) {
        inner.asked_again |= self.sync_failed.load(Ordering::Relaxed);
    }
}

impl StorageFile for Handle {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut inner = self.disk.0.lock();
        if inner.step()?.is_some() {
            return Err(io::Error::other("read error"));
        }
        let file = inner.file(&self.path)?;
        let start = (offset as usize).min(file.seen.len());
        let length = buffer.len().min(file.seen.len() - start);
        buffer[..length].copy_from_slice(&file.seen[start..start + length]);
        Ok(length)
    }

    fn write_at(&self, buffer: &[u8], offset: u64) -> io::Result<()> {
        let mut inner = self.disk.0.lock();
        self.note_use(&mut inner);
        let fault = inner.step()?;
        inner.room_for(&self.path, offset + buffer.len() as u64)?;
        let Inner { files, rng, .. } = &mut *inner;
        let file = files.get_mut(&self.path).ok_or(io::ErrorKind::NotFound)?;
        let mut bytes = buffer.to_vec();
        if fault.is_some() {
            // The beginning is written, the rest is not.
            bytes
                .truncate(rng.below(bytes.len() as u64 + 1) as usize / SECTOR_BYTES * SECTOR_BYTES);
        }
        let change = Change::Write(offset, bytes);
        File::apply(&mut file.seen, &change);
        file.unsynced.push(change);
        match fault {
            Some(_) => Err(io::Error::other("write error")),
            None => Ok(()),
        }
    }

    fn sync(&self) -> io::Result<()> {
        let mut inner = self.disk.0.lock();
        self.note_use(&mut inner);
        let fault = inner.step()?;
        let Inner { files, rng, .. } = &mut *inner;
        let file = files.get_mut(&self.path).ok_or(io::ErrorKind::NotFound)?;
        match fault {
            None => {
                file.sync();
                Ok(())
            }
            Some(Fault::Crash) => {
                // It may have been done, but the result was lost.
                if rng.chance(50) {
                    file.sync();
                }
                Err(power_lost())
            }
            Some(Fault::Error) => {
                file.sync_partly(rng);
                inner.failed_syncs += 1;
                self.sync_failed.store(true, Ordering::Relaxed);
                Err(io::Error::other("sync error"))
            }
        }
    }

    fn len(&self) -> io::Result<u64> {
        let mut inner = self.disk.0.lock();
        Ok(inner.file(&self.path)?.seen.len() as u64)
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        let mut inner = self.disk.0.lock();
        if inner.step()?.is_some() {
            return Err(io::Error::other("truncate error"));
        }
        inner.room_for(&self.path, bytes)?;
        let file = inner.file(&self.path)?;
        let change = Change::Length(bytes);
        File::apply(&mut file.seen, &change);
        file.unsynced.push(change);
        Ok(())
    }

    fn reserve(&self, offset: u64, bytes: u64) -> io::Result<()> {
        let mut inner = self.disk.0.lock();
        if inner.step()?.is_some() {
            return Err(io::Error::other("reserve error"));
        }
        inner.room_for(&self.path, offset + bytes)?;
        let file = inner.file(&self.path)?;
        file.reserved = file.reserved.max(offset + bytes);
        Ok(())
    }

    fn lock_exclusive(&self) -> io::Result<()> {
        Ok(())
    }

    fn lock_database(&self) -> io::Result<()> {
        Ok(())
    }

    fn unlock(&self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_synced_survives_and_what_was_not_may_be_torn() {
        let path = Path::new("/d/f");
        let mut torn = false;
        for seed in 0..50 {
            let disk = Disk::new(seed);
            let file = disk.open(path, OpenMode::CreateNew).unwrap();
            disk.sync_folder_of(path).unwrap();
            file.write_at(&[1; 4096], 0).unwrap();
            file.sync().unwrap();
            file.write_at(&[2; 4096], 0).unwrap();
            disk.restart();
            let mut found = [0; 4096];
            file.read_at(&mut found, 0).unwrap();
            for sector in found.chunks(SECTOR_BYTES) {
                assert!(sector.iter().all(|byte| *byte == sector[0]) && sector[0] > 0);
            }
            torn |= found.contains(&1) && found.contains(&2);
        }
        assert!(torn);
    }

    #[test]
    fn a_failed_sync_is_not_made_good_by_a_second_one() {
        let path = Path::new("/d/f");
        let mut lost = false;
        for seed in 0..50 {
            let disk = Disk::new(seed);
            let file = disk.open(path, OpenMode::CreateNew).unwrap();
            disk.sync_folder_of(path).unwrap();
            file.write_at(&[2; 512], 0).unwrap();
            disk.plan(0, Fault::Error);
            assert!(file.sync().is_err());
            file.sync().unwrap();
            disk.restart();
            lost |= file.len().unwrap() == 0;
        }
        assert!(lost);
    }
}
