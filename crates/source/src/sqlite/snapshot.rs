//! A pinned `SQLite` database, read by any number of threads.

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use rusqlite::Connection;
use windlass_base::page::checksum::{self, CHECKSUM_BYTES};
use windlass_base::{EXTENT_BYTES, FileId, FilePage, Guid};
use windlass_io::DirectFile;
use windlass_media::{SourceKind, WalPosition};

use super::follower;
use super::header::{HEADER_BYTES, Header};
use super::identity::{FileIdentity, created, position_at};
use super::made::remove_log_with;
use super::mount::Mount;
use super::open::{Pin, Pinned, pin, refuse_log};
use super::options::SnapshotOptions;
use super::spool::{self, NewBase, Order};
use super::wal::Overlay;
use super::watched::{Stamp, confirm_name};
use super::{
    descriptors, extent, ffi, file_error, overwritten, sqlite_error, temporary_copy, wal_path,
};
use crate::{
    Content, DatabaseIdentity, Error, FileKind, FileRanges, Position, RecoveryModel, Snapshot,
    SourceFile, TemporaryCopy, WritersHeld, ranges_of,
};

/// The number of the only file of a `SQLite` database.
pub(super) const FILE_ID: u16 = FileId::PRIMARY.0;

/// The page size assumed if the content does not say: `SQLite`'s default.
const PAGE_BYTES_ASSUMED: u32 = 4096;

/// One committed state of a `SQLite` database. The module explains why it stays one.
#[derive(Debug)]
pub struct SqliteSnapshot {
    path: PathBuf,
    /// Taken when the pin is released. A connection may move between threads but not be shared.
    connection: Mutex<Option<Connection>>,
    pin: Pin,
    made_wal: bool,
    file: Arc<DirectFile>,
    /// The state of the file when it was pinned, and its length.
    start: Stamp,
    start_bytes: u64,
    overlay: Option<Overlay>,
    files: [SourceFile; 1],
    /// What is to be read, where that is not the whole file.
    narrowed: Option<FileRanges>,
    identity: DatabaseIdentity,
    position: Position,
    wal_position: Option<WalPosition>,
    page_checksums: bool,
    content: Content,
    writers: Option<Writers>,
    new_base: Option<Mutex<NewBase>>,
}

/// State for the writers of a database in rollback mode, who cannot write while the pin is held.
#[derive(Debug)]
struct Writers {
    held_since: Instant,
    /// How long they were locked out, once they no longer are.
    held: OnceLock<Duration>,
    copied: TemporaryCopy,
}

impl SqliteSnapshot {
    /// Pins the newest committed state of the database at `path`.
    ///
    /// Waits up to `options.busy_timeout` for a connection that has locked the database. Follows
    /// links.
    pub fn open(path: &Path, options: &SnapshotOptions) -> Result<Self, Error> {
        let path = std::fs::canonicalize(path).map_err(|error| file_error("open", path, error))?;
        let metadata =
            std::fs::metadata(&path).map_err(|error| file_error("examine", &path, error))?;
        if !metadata.is_file() {
            return Err(Error::NotAFile { path });
        }
        if let Some(spool) = &options.spool
            && matches!(spool::has_follower(spool), Ok(false))
        {
            // A gap that nobody has noticed yet ends before this backup, with which the log can then go on. The backup itself
            // is as good without.
            let cancel = options.cancel.clone().unwrap_or_default();
            let _cut = follower::cut(&path, spool, options.after, &cancel);
        }
        let order = options.spool.as_deref().map(Order::take).transpose()?;
        let pinned = pin(&path, options)?;
        let mut snapshot = Self::of_pinned(path, pinned, options)?;
        snapshot.begin_base(options);
        drop(order);
        snapshot.copy_first(options)?;
        snapshot.look_at_first_page()?;
        Ok(snapshot)
    }

    fn of_pinned(
        path: PathBuf,
        mut pinned: Pinned,
        options: &SnapshotOptions,
    ) -> Result<Self, Error> {
        let held_since = Instant::now();
        let position = position_at(SystemTime::now(), options.after);
        let file = descriptors::open(&path)?;
        if pinned.connection.as_ref().is_some_and(ffi::has_moved) {
            return Err(Error::ChangedWhileReading { path });
        }
        let start = Stamp::of(&file).map_err(|error| file_error("examine", &path, error))?;
        let start_bytes = file
            .len()
            .map_err(|error| file_error("examine", &path, error))?;
        let overlay = match &pinned.pin {
            Pin::Log(mark) => {
                let overlay = Overlay::pinned(&wal_path(&path), mark)?;
                let look = || pinned.connection.as_ref().and_then(ffi::wal_index);
                overwritten::refuse(&file, &overlay, mark, &look)?;
                Some(overlay)
            }
            Pin::File | Pin::Raw | Pin::Watched(_) => pinned.overlay.take(),
        };
        let holds_writers = !pinned.is_wal && pinned.connection.is_some();
        let size_bytes = (overlay.as_ref()).map_or(start_bytes, Overlay::database_bytes);
        let name = options.database_name.clone().unwrap_or_else(|| stem(&path));
        Ok(Self {
            files: [SourceFile {
                id: FILE_ID,
                logical_name: options.logical_name.clone().unwrap_or_else(|| name.clone()),
                physical_name: path.to_string_lossy().into_owned(),
                path: path.clone(),
                kind: FileKind::Data,
                size_bytes,
                page_bytes: PAGE_BYTES_ASSUMED,
                reserved_bytes: None,
            }],
            identity: identity_of(&path, name, &pinned, options),
            path,
            connection: Mutex::new(pinned.connection),
            pin: pinned.pin,
            made_wal: pinned.made_wal,
            wal_position: pinned.wal_position,
            file,
            start,
            start_bytes,
            overlay,
            narrowed: None,
            position,
            page_checksums: false,
            content: Content::Empty,
            new_base: None,
            writers: holds_writers.then(|| Writers {
                held_since,
                held: OnceLock::new(),
                copied: TemporaryCopy::None(String::new()),
            }),
        })
    }

    /// Has the spool keep what changes from here on.
    fn begin_base(&mut self, options: &SnapshotOptions) {
        if let (Some(spool), Some(position)) = (&options.spool, self.wal_position)
            && options.is_new_base
            && !position.is_unknown()
        {
            let (lsn, size_bytes) = (self.position.checkpoint_lsn, self.files[0].size_bytes);
            // Without it, differentials upon this backup read the whole database.
            let begun = NewBase::begin(spool, lsn, position, size_bytes).ok();
            self.new_base = begun.map(Mutex::new);
        }
    }

    /// Makes a temporary copy of the database, if its writers wait and a copy was requested, and lets
    /// the writers continue.
    fn copy_first(&mut self, options: &SnapshotOptions) -> Result<(), Error> {
        let Some(writers) = &mut self.writers else {
            return Ok(());
        };
        let (file, copied) = temporary_copy::make(&self.path, &self.file, options)?;
        writers.copied = copied;
        if let Some(file) = file {
            self.close()?;
            self.file = Arc::new(file);
        }
        Ok(())
    }

    /// Reads the properties of the database from its first page, as of the snapshot.
    fn look_at_first_page(&mut self) -> Result<(), Error> {
        let mut bytes = vec![0; self.files[0].size_bytes.min(65536) as usize];
        if bytes.is_empty() {
            return Ok(());
        }
        self.read(FILE_ID, 0, &mut bytes)?;
        let header = Header::parse(bytes.get(..HEADER_BYTES).unwrap_or_default());
        self.content = match &self.overlay {
            Some(overlay) if extent::is_cut(self, overlay, self.start_bytes)? => Content::Cut {
                expected_bytes: self.files[0].size_bytes,
                found_bytes: self.start_bytes,
            },
            _ => header.content(self.files[0].size_bytes),
        };
        if header.page_bytes > 0 {
            self.files[0].page_bytes = header.page_bytes;
            self.files[0].reserved_bytes = Some(header.reserved_bytes);
        }
        self.identity.page_bytes = self.files[0].page_bytes;
        self.identity.product_version = header.written_by;
        self.identity.user_version = header.user_version;
        self.identity.application_id = header.application_id;
        self.page_checksums = usize::from(header.reserved_bytes) == CHECKSUM_BYTES
            && bytes
                .get(..header.page_bytes as usize)
                .is_some_and(checksum::is_valid);
        Ok(())
    }

    /// What the content looks like.
    pub fn content(&self) -> Content {
        self.content
    }

    /// Checks that callers may request this range.
    fn check_range(&self, file_id: u16, offset: u64, bytes: usize) -> Result<(), Error> {
        let size_bytes = if file_id == FILE_ID {
            self.files[0].size_bytes
        } else {
            0
        };
        let bytes = bytes as u64;
        match offset.checked_add(bytes) {
            Some(end) if end <= size_bytes => Ok(()),
            _ => Err(Error::OutOfRange {
                file_id,
                offset,
                bytes,
                size_bytes,
            }),
        }
    }

    /// Confirms that everything that was read is what was pinned.
    fn confirm(&self, connection: Option<&Connection>) -> Result<(), Error> {
        let changed = || Error::ChangedWhileReading {
            path: self.path.clone(),
        };
        if connection.is_some_and(ffi::has_moved) {
            return Err(changed());
        }
        confirm_name(&self.path, &self.file)?;
        match &self.pin {
            Pin::Watched(watched) => return watched.confirm(self.overlay.as_ref()),
            Pin::Raw => refuse_log(&self.path)?,
            Pin::File | Pin::Log(_) => {}
        }
        if let Some(overlay) = &self.overlay {
            return overlay.confirm();
        }
        let now = Stamp::of(&self.file);
        let now = now.map_err(|error| file_error("examine", &self.path, error))?;
        // On other file systems the time of an earlier change may become visible late.
        let is_local = Mount::of(&self.path).is_some_and(|mount| mount.is_local());
        let is_unchanged = match is_local {
            true => now.has_content_of(&self.start),
            false => now.has_length_of(&self.start),
        };
        if is_unchanged { Ok(()) } else { Err(changed()) }
    }

    /// Ends the transaction and returns the connection to close, so that only the files that
    /// existed before stay next to the database.
    fn release(&self) -> Result<Option<Connection>, rusqlite::Error> {
        let mut connection = self
            .connection
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let Some(connection) = connection.take() else {
            return Ok(None);
        };
        if let Pin::Watched(watched) = &self.pin {
            watched.release(&connection);
        }
        if !connection.is_autocommit() {
            connection.execute_batch("ROLLBACK")?;
        }
        remove_log_with(&connection, &self.path, self.made_wal);
        Ok(Some(connection))
    }
}

impl Snapshot for SqliteSnapshot {
    fn identity(&self) -> &DatabaseIdentity {
        &self.identity
    }

    fn position(&self) -> Position {
        self.position
    }

    fn wal_position(&self) -> Option<WalPosition> {
        self.wal_position
    }

    fn files(&self) -> &[SourceFile] {
        &self.files
    }

    fn ranges(&self, file_id: u16) -> Vec<Range<u64>> {
        if let Some(ranges) = &self.narrowed {
            return ranges_of(ranges, file_id);
        }
        let whole = 0..self.files[0].size_bytes;
        if file_id == FILE_ID && !whole.is_empty() {
            vec![whole]
        } else {
            Vec::new()
        }
    }

    fn narrow(&mut self, ranges: FileRanges) {
        self.narrowed = Some(ranges);
    }

    fn located(
        &self,
        file_id: u16,
        offset: u64,
        bytes: usize,
    ) -> Result<Option<Arc<DirectFile>>, Error> {
        self.check_range(file_id, offset, bytes)?;
        let is_in_log = self
            .overlay
            .as_ref()
            .is_some_and(|overlay| overlay.covers(offset, bytes));
        Ok((!is_in_log).then(|| Arc::clone(&self.file)))
    }

    fn amend(
        &self,
        _file_id: u16,
        offset: u64,
        buffer: &mut [u8],
        outcome: io::Result<usize>,
    ) -> Result<(), Error> {
        let bytes = outcome.map_err(|error| file_error("read", &self.path, error))?;
        if let Pin::Watched(watched) = &self.pin {
            // No need to read further if the file has already changed.
            watched.look(&self.connection)?;
        }
        let overlay = self.overlay.as_ref();
        // What the file no longer has must be in the log, or never have been in the file.
        let end = offset + bytes as u64;
        let lost = self.start_bytes.min(offset + buffer.len() as u64);
        let lost = lost.saturating_sub(end) as usize;
        let is_in_log = |overlay: &Overlay| lost == 0 || overlay.covers(end, lost);
        if bytes < buffer.len() && !overlay.is_some_and(is_in_log) {
            return Err(Error::ChangedWhileReading {
                path: self.path.clone(),
            });
        }
        buffer[bytes..].fill(0);
        overlay.map_or(Ok(()), |overlay| overlay.apply(offset, buffer))
    }

    fn check_pages(
        &self,
        file_id: u16,
        offset: u64,
        bytes: &[u8],
        on_bad: &mut dyn FnMut(FilePage),
    ) {
        let page_bytes = self.files[0].page_bytes as usize;
        if !self.page_checksums {
            return;
        }
        // A partial page at the end of the file does not count.
        for (index, page) in bytes.chunks_exact(page_bytes).enumerate() {
            if !checksum::is_valid(page) {
                let at = offset + (index * page_bytes) as u64;
                on_bad(FilePage::at_byte(FileId(file_id), at, page_bytes));
            }
        }
    }

    fn has_page_checksums(&self) -> bool {
        self.page_checksums
    }

    fn complete(&self, set_guid: Guid) -> Result<(), Error> {
        let Some(new_base) = &self.new_base else {
            return Ok(());
        };
        let mut new_base = new_base.lock().unwrap_or_else(PoisonError::into_inner);
        new_base.settle(set_guid)
    }

    fn writers_held(&self) -> Option<WritersHeld> {
        let writers = self.writers.as_ref()?;
        let held = writers.held.get().copied();
        Some(WritersHeld {
            time: held.unwrap_or_else(|| writers.held_since.elapsed()),
            copied: writers.copied.clone(),
        })
    }

    fn close(&self) -> Result<(), Error> {
        let is_copied = |writers: &Writers| writers.held.get().is_some();
        if self.writers.as_ref().is_some_and(is_copied) {
            // The copy is private.
            return Ok(());
        }
        let confirmed = {
            let connection = self
                .connection
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            self.confirm(connection.as_ref())
        };
        let released = self.release().and_then(|connection| match connection {
            Some(connection) => connection.close().map_err(|(_, error)| error),
            None => Ok(()),
        });
        if let Some(writers) = &self.writers {
            let _first = writers.held.set(writers.held_since.elapsed());
        }
        confirmed?;
        released.map_err(|error| sqlite_error("close", &self.path, error))
    }
}

impl Drop for SqliteSnapshot {
    fn drop(&mut self) {
        // Errors cannot be returned from a drop; the connection closes either way.
        drop(self.release());
    }
}

fn identity_of(
    path: &Path,
    name: String,
    pinned: &Pinned,
    options: &SnapshotOptions,
) -> DatabaseIdentity {
    let found = FileIdentity::of(path);
    let family_guid = options.family_guid.unwrap_or(found.family_guid);
    DatabaseIdentity {
        name,
        family_guid,
        database_guid: found.database_guid,
        recovery_fork_guid: family_guid,
        created: created(path),
        page_bytes: PAGE_BYTES_ASSUMED,
        recovery_model: match options.spool {
            Some(_) => RecoveryModel::Full,
            None => RecoveryModel::Simple,
        },
        kind: SourceKind::Sqlite,
        product_version: 0,
        user_version: 0,
        application_id: 0,
        journal_mode: if pinned.is_wal { "wal" } else { "delete" }.to_owned(),
        is_read_only: pinned.is_read_only,
    }
}

fn stem(path: &Path) -> String {
    path.file_stem()
        .map(|stem| stem.to_string_lossy().into_owned())
        .unwrap_or_default()
}

const _: () = assert!(
    EXTENT_BYTES.is_multiple_of(65536),
    "a page never spans two extents"
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_verified_where_they_carry_checksums() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sealed.db");
        let mut bytes: Vec<u8> = (0..9 * 1024_u32).map(|index| (index % 241) as u8).collect();
        bytes[..16].copy_from_slice(b"SQLite format 3\0");
        bytes[16..21].copy_from_slice(&[4, 0, 1, 1, 8]);
        bytes.chunks_mut(1024).for_each(checksum::stamp);
        bytes[7 * 1024 + 3] ^= 4;
        bytes.extend_from_slice(b"a part of a page");
        let bad_pages = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            let snapshot = SqliteSnapshot::open(&path, &SnapshotOptions::default()).unwrap();
            let bad = |from: usize| {
                let mut bad = Vec::new();
                snapshot.check_pages(FILE_ID, from as u64, &bytes[from..], &mut |page| {
                    bad.push(page.to_string());
                });
                bad
            };
            assert_eq!(bad(0), bad(3 * 1024), "pages are those of the file");
            (snapshot.has_page_checksums(), bad(0))
        };
        assert_eq!(bad_pages(&bytes), (true, vec!["(1:7)".to_owned()]));
        let mut first = bytes.clone();
        first[100] ^= 1;
        assert_eq!(bad_pages(&first), (false, vec![]), "not even the first one");
        bytes[20] = 0;
        checksum::stamp(&mut bytes[..1024]);
        assert_eq!(
            bad_pages(&bytes),
            (false, vec![]),
            "no reserved bytes, no checksums"
        );
    }

    #[test]
    fn what_is_unknown_is_assumed_and_what_is_cut_short_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("unknown.db");
        std::fs::write(&path, [0xEE; 9000]).unwrap();
        let mut snapshot = SqliteSnapshot::open(&path, &SnapshotOptions::default()).unwrap();
        assert_eq!(snapshot.content(), Content::Unknown);
        assert_eq!(snapshot.identity().page_bytes, PAGE_BYTES_ASSUMED);
        assert_eq!(snapshot.files()[0].page_bytes, PAGE_BYTES_ASSUMED);
        let mut buffer = [0; 8192];
        snapshot.amend(FILE_ID, 0, &mut buffer, Ok(8192)).unwrap();
        for bytes in [0, 8191] {
            let cut = snapshot.amend(FILE_ID, 0, &mut buffer, Ok(bytes));
            let is_change = matches!(cut, Err(Error::ChangedWhileReading { .. }));
            assert!(is_change, "{cut:?}");
        }
        let part = vec![65536..70000, 131_072..140_000];
        snapshot.narrow(vec![(FILE_ID, part.clone())]);
        assert_eq!(snapshot.ranges(FILE_ID), part);
        assert!(snapshot.ranges(FILE_ID + 1).is_empty());
    }

    #[test]
    fn a_snapshot_that_is_dropped_takes_the_files_it_made_with_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.db");
        let connection = Connection::open(&path).unwrap();
        let script = "PRAGMA journal_mode = WAL; CREATE TABLE t(a)";
        connection.execute_batch(script).unwrap();
        drop(connection);
        drop(SqliteSnapshot::open(&path, &SnapshotOptions::default()).unwrap());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
