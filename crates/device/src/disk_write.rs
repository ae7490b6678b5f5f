//! Writes a media family to a file on disk.
//!
//! A new or overwritten family is written to `NAME.windlass-new` in the same folder and renamed on
//! commit, so that an interrupted overwrite leaves the old backup intact and an interrupted new
//! backup leaves nothing that could be taken for one. An append writes to the file itself: earlier
//! sets are never touched, and the next backup truncates the remains of an interrupted append.

use std::fs::Metadata;
use std::io;
use std::ops::Range;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use rustix::fs::FlockOperation;
use windlass_io::queue::{self, Direction, IoMethod, Memory, Queue, Transfer};
use windlass_io::{
    Access, AlignedBuffer, DIRECT_ALIGNMENT, DirectFile, PooledBuffer, directory, own,
};

use crate::error::{Error, Operation};
use crate::naming::{Naming, refuse_fixed, staging_path};
use crate::transfer::TransferBuffer;
use crate::{DeviceWriter, Start, WriteCounters, WriteTuning, busy, lock};

/// Space reserved ahead of the writes, so that the file system need not grow the file each time.
const RESERVE_BYTES: u64 = 64 << 20;

/// Writes a disk file, with several writes in flight.
#[derive(Debug)]
pub(crate) struct DiskWriter {
    file: Arc<DirectFile>,
    name: String,
    naming: Naming,
    start: Start,
    /// The overwritten file.
    earlier: Option<Earlier>,
    transfer: TransferBuffer,
    /// Whether the gathered bytes contain data, not only blocks.
    gathers_data: bool,
    /// Transfer buffers that are neither gathering nor in flight.
    spare: Vec<AlignedBuffer>,
    queue: Queue,
    io_method: (IoMethod, String),
    reserved_to: u64,
    /// Writes in flight whose buffers are borrowed from the caller.
    held: usize,
    counters: WriteCounters,
    committed: bool,
    /// After a failed write or sync, nothing about this file can be guaranteed.
    failed: bool,
}

impl DiskWriter {
    pub(crate) fn open(
        path: &Path,
        name: &str,
        start: Start,
        tuning: WriteTuning,
    ) -> Result<Self, Error> {
        let fail = |error: io::Error| Error::new(Operation::Open, name, error);
        let target = directory::follow(path).map_err(fail)?;
        let (file, earlier, offset) = match start {
            Start::Create | Start::Replace => {
                let (file, earlier) = open_staging(&target, start).map_err(fail)?;
                (file, earlier, 0)
            }
            Start::Append { at, length } => {
                let file = open_append(&target, at, length).map_err(fail)?;
                (file, None, at)
            }
        };
        let io_method = queue::io_method_for(tuning.io_method, file.is_direct());
        Ok(Self {
            file: Arc::new(file),
            name: name.to_owned(),
            naming: Naming::new(
                target,
                earlier.as_ref().map(|earlier| earlier.metadata.ino()),
            ),
            start,
            earlier,
            transfer: TransferBuffer::new(tuning.transfer_bytes, offset),
            gathers_data: false,
            spare: AlignedBuffer::several(tuning.depth, tuning.transfer_bytes),
            queue: Queue::new(tuning.depth, io_method.0, &[]),
            io_method,
            reserved_to: offset,
            counters: WriteCounters::default(),
            held: 0,
            committed: false,
            failed: false,
        })
    }

    fn check_usable(&self) -> Result<(), Error> {
        if self.failed {
            let earlier = io::Error::other("an earlier write to this device failed");
            return Err(Error::new(Operation::Write, &self.name, earlier));
        }
        Ok(())
    }

    fn reserve(&mut self, end: u64) -> io::Result<()> {
        if end > self.reserved_to {
            let bytes = (end - self.reserved_to).max(RESERVE_BYTES);
            // Failing to reserve space is not an error yet: the bytes may still fit, and the write
            // itself decides.
            match self.file.reserve(self.reserved_to, bytes) {
                Ok(()) => self.reserved_to += bytes,
                Err(error) if error.kind() == io::ErrorKind::StorageFull => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Waits for one write in flight and keeps its buffer for reuse; `false` if none was in flight.
    fn complete(&mut self) -> Result<bool, Error> {
        let (begun, in_flight) = (Instant::now(), self.queue.in_flight() as u32);
        let waited_for = self.queue.wait();
        let Some(done) = waited_for.map_err(|error| self.write_failed(error))? else {
            return Ok(false);
        };
        let waited = begun.elapsed();
        self.counters.busy += waited;
        self.counters.in_flight += waited * in_flight;
        match done.transfer.memory {
            Memory::Own(buffer) => self.spare.push(buffer),
            _ => self.held -= 1,
        }
        match done.result {
            Ok(_) => Ok(true),
            Err(error) => Err(self.write_failed(error)),
        }
    }

    fn write_failed(&mut self, error: io::Error) -> Error {
        self.failed = true;
        Error::new(Operation::Write, &self.name, error)
    }

    /// Starts a write as soon as the queue has a free slot.
    fn submit(
        &mut self,
        memory: Memory,
        range: Range<usize>,
        offset: u64,
        holds_data: bool,
    ) -> Result<(), Error> {
        self.check_usable()?;
        while !self.queue.has_room() {
            self.complete()?;
        }
        self.reserve(offset + range.len() as u64)
            .map_err(|error| self.write_failed(error))?;
        self.counters.count(range.len() as u64, holds_data);
        let transfer = Transfer {
            file: Arc::clone(&self.file),
            direction: Direction::Write,
            offset,
            memory,
            range,
            tag: 0,
        };
        self.queue.submit(transfer).map_err(|_| {
            let refused = io::Error::other("the write does not fit its buffer");
            self.write_failed(refused)
        })
    }

    /// Starts writing the gathered bytes; the next byte goes to `next`.
    fn flush(&mut self, next: u64) -> Result<(), Error> {
        if self.transfer.is_empty() {
            self.transfer.restart(next);
            return Ok(());
        }
        let fresh = loop {
            match self.spare.pop() {
                Some(buffer) => break buffer,
                None if self.complete()? => {}
                None => {
                    let lost = io::Error::other("a transfer buffer did not come back");
                    return Err(self.write_failed(lost));
                }
            }
        };
        let (memory, range, offset) = self.transfer.exchange(fresh, next);
        let holds_data = std::mem::take(&mut self.gathers_data);
        self.submit(Memory::Own(memory), range, offset, holds_data)
    }

    /// Copies bytes into transfer buffers, and starts writing those that are full.
    fn gather(&mut self, bytes: &[u8], are_data: bool) -> Result<(), Error> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let count = self.transfer.fill(rest);
            rest = &rest[count..];
            self.gathers_data |= are_data;
            if self.transfer.is_full() {
                self.flush(self.transfer.position())?;
            }
        }
        Ok(())
    }

    fn is_append(&self) -> bool {
        matches!(self.start, Start::Append { .. })
    }

    fn undo(&self) {
        // Errors cannot be returned from a drop: the cause has already been reported. The next
        // backup truncates the remains, and readers ignore them.
        match self.start {
            Start::Create | Start::Replace => {
                if self.naming.is_staged() {
                    drop(std::fs::remove_file(self.naming.staging()));
                }
            }
            Start::Append { at, .. } => drop(self.file.set_len(at)),
        }
    }
}

impl DeviceWriter for DiskWriter {
    fn position(&self) -> u64 {
        self.transfer.position()
    }

    fn append_blocks(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.gather(bytes, false)
    }

    fn append(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.gather(bytes, true)
    }

    fn append_in_place(&mut self, buffer: &Arc<PooledBuffer>, bytes: usize) -> Result<(), Error> {
        let position = self.position();
        let aligned = (buffer.as_ptr() as usize).is_multiple_of(DIRECT_ALIGNMENT)
            && position.is_multiple_of(DIRECT_ALIGNMENT as u64);
        let whole = if aligned {
            bytes / DIRECT_ALIGNMENT * DIRECT_ALIGNMENT
        } else {
            0
        };
        if whole > 0 {
            self.flush(position + whole as u64)?;
            let memory = Memory::Shared(Arc::clone(buffer));
            self.submit(memory, 0..whole, position, true)?;
            self.held += 1;
        }
        self.append(&buffer[whole..bytes])
    }

    fn sync(&mut self) -> Result<(), Error> {
        self.flush(self.transfer.position())?;
        while self.complete()? {}
        self.check_usable()?;
        let begun = Instant::now();
        let result = self.file.sync();
        self.counters.busy += begun.elapsed();
        self.failed = result.is_err();
        result.map_err(|error| Error::new(Operation::Sync, &self.name, error))
    }

    fn release(&mut self) -> Result<bool, Error> {
        let held = self.held;
        while self.held == held && held > 0 && self.complete()? {}
        Ok(self.held < held)
    }

    fn barrier(&mut self) -> Result<(), Error> {
        match self.start {
            // Nothing appears under the device's name before the rename, which follows a sync.
            Start::Create | Start::Replace => Ok(()),
            Start::Append { .. } => self.sync(),
        }
    }

    fn prepare(&mut self) -> Result<(), Error> {
        self.check_usable()?;
        // Releases the space reserved ahead; the length is already exact.
        let end = self.transfer.position();
        let fail = |error| Error::new(Operation::Write, &self.name, error);
        self.file.set_len(end).map_err(fail)?;
        if let Some(earlier) = &self.earlier {
            windlass_io::output::keep(self.file.as_file(), &earlier.metadata).map_err(fail)?;
        }
        self.sync()
    }

    fn take_name(&mut self, keeps_earlier: bool) -> Result<(), Error> {
        if self.is_append() {
            return Ok(());
        }
        let named = self.naming.take(keeps_earlier);
        named.map_err(|error| Error::new(Operation::Rename, &self.name, error))
    }

    fn give_back_name(&mut self) -> bool {
        self.is_append() || self.naming.give_back().is_ok()
    }

    fn keep(mut self: Box<Self>) -> Option<String> {
        self.committed = true;
        let place = match self.is_append() {
            true => self.naming.target().to_owned(),
            false => self.naming.place(),
        };
        Some(place.display().to_string())
    }

    fn settle(mut self: Box<Self>) {
        self.committed = true;
        // It is removed only if nobody holds it.
        self.earlier = None;
        self.naming.settle();
    }

    fn counters(&self) -> WriteCounters {
        self.counters
    }

    fn io_method(&self) -> Option<(IoMethod, &str)> {
        Some((self.io_method.0, &self.io_method.1))
    }
}

impl Drop for DiskWriter {
    fn drop(&mut self) {
        if !self.committed {
            // Writes in flight must finish before the file is truncated.
            while self.queue.in_flight() > 0 {
                drop(self.queue.wait());
            }
            self.undo();
        }
    }
}

/// A file that is overwritten. It can be read until the new one gets its name, and no other backup writes to it or
/// deletes it: what that wrote would be lost.
#[derive(Debug)]
struct Earlier {
    _held: DirectFile,
    /// Its owner and permissions are kept.
    metadata: Metadata,
}

/// Creates the staging file, replacing one left by a crash but not one in use. Also returns the
/// file to be overwritten.
fn open_staging(target: &Path, start: Start) -> io::Result<(DirectFile, Option<Earlier>)> {
    unused_at(target)?;
    refuse_fixed(target)?;
    own::refuse_database(&staging_path(target))?;
    let file = own::claim(&staging_path(target)).map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock => busy(FlockOperation::NonBlockingLockExclusive),
        _ => error,
    })?;
    // From here on no other backup gets the name; one that had it may have ended since.
    let earlier = unused_at(target);
    let earlier = earlier.and_then(|earlier| match &earlier {
        Some(found) if start == Start::Create && found.metadata.len() > 0 => Err(changed()),
        _ => Ok(earlier),
    });
    if earlier.is_err() {
        // The first error counts.
        let _left = std::fs::remove_file(staging_path(target));
    }
    Ok((file, earlier?))
}

/// The file to be replaced, which must not be in use.
fn unused_at(target: &Path) -> io::Result<Option<Earlier>> {
    match DirectFile::open(target, Access::ReadWrite) {
        Ok(held) => {
            lock(&held, FlockOperation::NonBlockingLockExclusive)?;
            lock(&held, FlockOperation::NonBlockingLockShared)?;
            let metadata = held.as_file().metadata()?;
            let earlier = Earlier {
                _held: held,
                metadata,
            };
            Ok(Some(earlier))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn open_append(target: &Path, at: u64, length: u64) -> io::Result<DirectFile> {
    let file = DirectFile::open(target, Access::ReadWrite)?;
    lock(&file, FlockOperation::NonBlockingLockExclusive)?;
    if file.len()? != length {
        return Err(changed());
    }
    if length > at {
        file.set_len(at)?;
        file.sync()?;
    }
    Ok(file)
}

/// What was found out about a file holds no more.
fn changed() -> io::Error {
    let reason = "another backup wrote to it at the same time; try again";
    io::Error::new(io::ErrorKind::WouldBlock, reason)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DeviceAddress;
    use crate::testing::{TUNING, write};

    fn device(folder: &tempfile::TempDir) -> DeviceAddress {
        DeviceAddress::disk(folder.path().join("a.bak"))
    }

    #[test]
    fn a_new_file_appears_only_on_commit() {
        let folder = tempfile::tempdir().unwrap();
        let device = device(&folder);
        let writer = write(&device, Start::Replace, &[1; 20_000]);
        assert!(!device.file().unwrap().exists());
        writer.commit().unwrap();
        assert_eq!(std::fs::read(device.file().unwrap()).unwrap(), [1; 20_000]);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn an_abandoned_overwrite_leaves_the_old_file() {
        let folder = tempfile::tempdir().unwrap();
        let device = device(&folder);
        write(&device, Start::Replace, b"old").commit().unwrap();
        drop(write(&device, Start::Replace, b"new"));
        assert_eq!(std::fs::read(device.file().unwrap()).unwrap(), b"old");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn an_abandoned_append_is_cut_off() {
        let folder = tempfile::tempdir().unwrap();
        let device = device(&folder);
        write(&device, Start::Replace, &[1; 5000]).commit().unwrap();
        drop(write(
            &device,
            Start::Append {
                at: 5000,
                length: 5000,
            },
            &[2; 50_000],
        ));
        assert_eq!(std::fs::read(device.file().unwrap()).unwrap(), [1; 5000]);
        write(
            &device,
            Start::Append {
                at: 4000,
                length: 5000,
            },
            &[3; 9000],
        )
        .commit()
        .unwrap();
        let content = std::fs::read(device.file().unwrap()).unwrap();
        assert_eq!(
            (content.len(), content[3999], content[4000]),
            (13_000, 1, 3)
        );
    }

    #[test]
    fn pieces_in_place_and_copied_keep_their_order() {
        let folder = tempfile::tempdir().unwrap();
        let device = device(&folder);
        let mut page = windlass_io::BufferPool::new(1, 16384).take().unwrap();
        page.fill(9);
        let page = Arc::new(page);
        let mut writer = device.open_writer(Start::Replace, TUNING).unwrap();
        writer.append(&[1; 4096]).unwrap();
        writer.append_in_place(&page, 16384).unwrap();
        writer.append(&[2; 10]).unwrap();
        writer.append_in_place(&page, 5000).unwrap();
        assert_eq!(writer.position(), 4096 + 16384 + 10 + 5000);
        writer.sync().unwrap();
        writer.commit().unwrap();
        let content = std::fs::read(device.file().unwrap()).unwrap();
        let expected = [&[1; 4096][..], &page, &[2; 10], &page[..5000]].concat();
        assert!(content == expected);
    }

    #[test]
    fn writes_of_blocks_alone_are_counted_apart() {
        let folder = tempfile::tempdir().unwrap();
        let device = device(&folder);
        let page = Arc::new(windlass_io::BufferPool::new(1, 16384).take().unwrap());
        let mut writer = device.open_writer(Start::Replace, TUNING).unwrap();
        for _ in 0..3 {
            writer.append_blocks(&[1; 4096]).unwrap();
            writer.append_in_place(&page, 16384).unwrap();
        }
        // Gathered with the data, so no write of its own.
        writer.append_blocks(&[1; 4096]).unwrap();
        writer.append(&[2; 4000]).unwrap();
        writer.sync().unwrap();
        let counters = writer.counters();
        assert_eq!((counters.calls, counters.block_calls), (4, 3));
        assert_eq!(counters.block_bytes, 3 * 4096);
        assert_eq!(counters.bytes, 3 * (4096 + 16384) + 4096 + 4000);
    }

    #[test]
    fn a_device_has_one_writer_or_readers() {
        let folder = tempfile::tempdir().unwrap();
        let device = device(&folder);
        write(&device, Start::Replace, b"old").commit().unwrap();
        let reader = device.open_reader().unwrap();
        assert!(
            device
                .open_writer(Start::Append { at: 3, length: 3 }, TUNING)
                .is_err()
        );
        assert!(device.open_writer(Start::Replace, TUNING).is_err());
        drop(reader);
        let _writer = device.open_writer(Start::Replace, TUNING).unwrap();
        assert!(
            device.open_writer(Start::Replace, TUNING).is_err(),
            "staging file is in use"
        );
    }

    /// Two backups that found the same state of a medium: the second one to write would destroy the first.
    #[test]
    fn a_medium_that_another_backup_wrote_to_in_the_meantime_is_refused_and_stays() {
        let folder = tempfile::tempdir().unwrap();
        let device = device(&folder);
        write(&device, Start::Create, &[1; 5000]).commit().unwrap();
        let append = |at| Start::Append { at, length: 5000 };
        write(&device, append(5000), &[2; 100]).commit().unwrap();
        for late in [Start::Create, append(5000), append(3000)] {
            let error = device.open_writer(late, TUNING).unwrap_err();
            assert_eq!(error.source.kind(), io::ErrorKind::WouldBlock, "{late:?}");
            assert_eq!(std::fs::read(device.file().unwrap()).unwrap().len(), 5100);
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
        std::fs::write(device.file().unwrap(), "").unwrap();
        write(&device, Start::Create, b"new").commit().unwrap();
    }

    /// What is appended would be lost when the new file gets the name.
    #[test]
    fn nothing_is_appended_to_a_medium_that_is_being_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let device = device(&folder);
        write(&device, Start::Create, b"old").commit().unwrap();
        let writer = write(&device, Start::Replace, b"new");
        let append = Start::Append { at: 3, length: 3 };
        let error = device.open_writer(append, TUNING).unwrap_err();
        assert_eq!(error.source.kind(), io::ErrorKind::WouldBlock, "{error}");
        device.open_reader().unwrap();
        writer.commit().unwrap();
        assert_eq!(std::fs::read(device.file().unwrap()).unwrap(), b"new");
    }

    #[test]
    fn a_file_that_gets_the_name_meanwhile_stays() {
        for (start, others) in [(Start::Create, 0), (Start::Replace, 0), (Start::Create, 1)] {
            let folder = tempfile::tempdir().unwrap();
            let device = device(&folder);
            if start == Start::Replace {
                write(&device, Start::Create, b"old").commit().unwrap();
            }
            // With a second family, earlier files are kept until all have their names.
            let mut writers = vec![write(&device, start, b"new")];
            let other = DeviceAddress::disk(folder.path().join("b.bak"));
            writers.extend((0..others).map(|_| write(&other, start, b"new")));
            let theirs = folder.path().join("theirs");
            std::fs::write(&theirs, "theirs").unwrap();
            std::fs::rename(&theirs, device.file().unwrap()).unwrap();
            let error = crate::commit(writers).unwrap_err();
            assert_eq!(error.source.kind(), io::ErrorKind::AlreadyExists, "{error}");
            assert_eq!(std::fs::read(device.file().unwrap()).unwrap(), b"theirs");
        }
    }

    /// None gets an error that does not say so, and each that succeeded was there.
    #[test]
    fn first_backups_to_one_medium_at_once_refuse_each_other_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let device = device(&folder);
        for _ in 0..300 {
            let first = |_| {
                let mut writer = device.open_writer(Start::Create, TUNING)?;
                writer.append(b"set")?;
                writer.sync()?;
                writer.commit()
            };
            let results: Vec<Result<(), Error>> = std::thread::scope(|scope| {
                let threads: Vec<_> = (0..3).map(|n| scope.spawn(move || first(n))).collect();
                threads.into_iter().map(|t| t.join().unwrap()).collect()
            });
            let refused = results.iter().filter_map(|result| result.as_ref().err());
            for error in refused {
                assert_eq!(error.source.kind(), io::ErrorKind::WouldBlock, "{error}");
            }
            assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 1);
            std::fs::remove_file(device.file().unwrap()).unwrap();
        }
    }

    #[test]
    fn a_staging_file_left_by_a_crash_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let device = device(&folder);
        std::fs::write(staging_path(device.file().unwrap()), "half").unwrap();
        write(&device, Start::Replace, b"new").commit().unwrap();
        assert_eq!(std::fs::read(device.file().unwrap()).unwrap(), b"new");
    }

    #[test]
    fn an_overwritten_file_keeps_its_permissions() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let device = device(&folder);
        write(&device, Start::Replace, b"old").commit().unwrap();
        let shared = std::fs::Permissions::from_mode(0o640);
        std::fs::set_permissions(device.file().unwrap(), shared).unwrap();
        write(&device, Start::Replace, b"new").commit().unwrap();
        let mode = std::fs::metadata(device.file().unwrap())
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o640);
        assert_eq!(std::fs::read(device.file().unwrap()).unwrap(), b"new");
    }

    #[test]
    fn a_link_that_leads_nowhere_yet_is_followed() {
        let folder = tempfile::tempdir().unwrap();
        let device = device(&folder);
        std::os::unix::fs::symlink("far.bak", device.file().unwrap()).unwrap();
        write(&device, Start::Replace, b"new").commit().unwrap();
        assert_eq!(
            std::fs::read(folder.path().join("far.bak")).unwrap(),
            b"new"
        );
        let link = std::fs::symlink_metadata(device.file().unwrap()).unwrap();
        assert!(link.is_symlink());
    }

    #[test]
    fn what_is_planted_at_the_staging_name_is_not_written_through() {
        let folder = tempfile::tempdir().unwrap();
        let device = device(&folder);
        let victim = folder.path().join("victim");
        let staging = staging_path(device.file().unwrap());
        for hard in [true, false] {
            std::fs::write(&victim, "theirs").unwrap();
            match hard {
                true => std::fs::hard_link(&victim, &staging).unwrap(),
                false => std::os::unix::fs::symlink(&victim, &staging).unwrap(),
            }
            write(&device, Start::Replace, b"new").commit().unwrap();
            assert_eq!(std::fs::read(&victim).unwrap(), b"theirs");
            assert_eq!(std::fs::read(device.file().unwrap()).unwrap(), b"new");
        }
    }
}
