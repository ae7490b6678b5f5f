//! A database: snapshots, one writer at a time, durable commits.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use windlass_base::Lsn;

use crate::error::{EngineError, Result};
use crate::options::{CreateDatabase, OpenDatabase, PAGE_SIZE};
use crate::storage::{FileSystem, OpenMode, StorageFile};

type Pages = Arc<Vec<Arc<Vec<u8>>>>;

/// Figures of a database, for views and tests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Pages changed since they were last written to the data files.
    pub dirty_pages: u64,
}

/// An open database of an instance.
#[derive(Debug)]
pub struct Database {
    name: String,
    file: Arc<dyn StorageFile>,
    committed: Mutex<(u64, Pages)>,
    writing: AtomicBool,
}

impl Database {
    pub(crate) fn create(files: &dyn FileSystem, request: &CreateDatabase) -> Result<Arc<Self>> {
        let path = &request.data_files[0].path;
        let file = files
            .open(path, OpenMode::CreateNew)
            .map_err(|error| EngineError::io("create", path, error))?;
        files
            .open(&request.log.path, OpenMode::CreateNew)
            .and_then(|log| log.write_at(path.as_os_str().as_encoded_bytes(), 0))
            .map_err(|error| EngineError::io("create", &request.log.path, error))?;
        Ok(Arc::new(Self {
            name: request.name.clone(),
            file,
            committed: Mutex::new((0, Pages::default())),
            writing: AtomicBool::new(false),
        }))
    }

    pub(crate) fn open(files: &dyn FileSystem, request: &OpenDatabase) -> Result<Arc<Self>> {
        let mut text = vec![0; 4096];
        let fail = |error| EngineError::io("open", &request.log_path, error);
        let log = files
            .open(&request.log_path, OpenMode::Existing)
            .map_err(fail)?;
        let length = log.read_at(&mut text, 0).map_err(fail)?;
        let path = String::from_utf8_lossy(&text[..length]).into_owned();
        let file = files
            .open(path.as_ref(), OpenMode::Existing)
            .map_err(fail)?;
        let count = file.len().map_err(fail)? / PAGE_SIZE as u64;
        let mut pages = Vec::new();
        for page in 0..count {
            let mut content = vec![0; PAGE_SIZE];
            file.read_at(&mut content, page * PAGE_SIZE as u64)
                .map_err(fail)?;
            pages.push(Arc::new(content));
        }
        Ok(Arc::new(Self {
            name: request.name.clone(),
            file,
            committed: Mutex::new((1, Arc::new(pages))),
            writing: AtomicBool::new(false),
        }))
    }

    /// Name within the instance.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The state at the last durable commit, for as long as the snapshot lives.
    pub fn begin_read(self: &Arc<Self>) -> ReadSnapshot {
        let (sequence, pages) = self.committed.lock().clone();
        ReadSnapshot {
            database: Arc::clone(self),
            sequence,
            pages,
        }
    }

    /// The state at the last commit, even if its log is still on the way to disk.
    ///
    /// A writer begins with this one, so that several commits share one sync of the log: its own
    /// commit lies behind in the log and cannot survive without. Whoever only reads and must not see
    /// what a crash might still take back uses [`Database::begin_read`].
    pub fn begin_read_latest(self: &Arc<Self>) -> ReadSnapshot {
        self.begin_read()
    }

    /// Begins the only write transaction, on top of a snapshot.
    ///
    /// # Errors
    /// [`EngineError::Busy`] when one is open, [`EngineError::BusySnapshot`] when something was
    /// committed after the snapshot; neither waits.
    pub fn begin_write(self: &Arc<Self>, snapshot: &ReadSnapshot) -> Result<WriteTransaction> {
        if self.writing.swap(true, Ordering::Acquire) {
            return Err(EngineError::Busy {
                database: self.name.clone(),
            });
        }
        if self.committed.lock().0 != snapshot.sequence {
            self.writing.store(false, Ordering::Release);
            return Err(EngineError::BusySnapshot {
                database: self.name.clone(),
            });
        }
        Ok(WriteTransaction {
            snapshot: snapshot.clone(),
            page_count: snapshot.page_count(),
            pages: BTreeMap::new(),
        })
    }

    /// Writes all changed pages to the data files.
    pub fn checkpoint(&self) -> Result<()> {
        Ok(())
    }

    /// Indirect checkpoints with a target, or automatic ones (`None`).
    pub fn set_target_recovery_time(&self, _target: Option<Duration>) -> Result<()> {
        Ok(())
    }

    /// Current figures.
    pub fn counters(&self) -> Counters {
        Counters::default()
    }

    /// Ends all use of the database; its data file is a plain SQLite file afterwards.
    pub fn close(&self) -> Result<()> {
        Ok(())
    }
}

/// A database at one commit. Cheap to clone; readable from any thread.
#[derive(Debug, Clone)]
pub struct ReadSnapshot {
    database: Arc<Database>,
    sequence: u64,
    pages: Pages,
}

impl ReadSnapshot {
    /// The database it belongs to.
    pub fn database(&self) -> &Arc<Database> {
        &self.database
    }

    /// Pages of the database at this commit.
    pub fn page_count(&self) -> u32 {
        self.pages.len() as u32
    }

    /// Number of the commit; two snapshots of one database with the same number are equal.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Copies page `page` (from 1) into `buffer` of [`PAGE_SIZE`] octets.
    pub fn read_page(&self, page: u32, buffer: &mut [u8]) -> Result<()> {
        self.read_part(page, 0, buffer)
    }

    /// Copies a part of page `page`, from octet `offset` in it.
    pub fn read_part(&self, page: u32, offset: usize, buffer: &mut [u8]) -> Result<()> {
        let content = (page as usize)
            .checked_sub(1)
            .and_then(|index| self.pages.get(index))
            .ok_or_else(|| EngineError::NoSuchPage {
                database: self.database.name.clone(),
                page,
                page_count: self.page_count(),
            })?;
        buffer.copy_from_slice(&content[offset..offset + buffer.len()]);
        Ok(())
    }

    /// Waits until the commit it shows is on disk. At once, unless it is of `begin_read_latest`.
    pub fn wait_durable(&self) -> Result<()> {
        Ok(())
    }
}

/// The one open write transaction of a database. Dropped without commit, it never was.
#[derive(Debug)]
pub struct WriteTransaction {
    snapshot: ReadSnapshot,
    page_count: u32,
    pages: BTreeMap<u32, Arc<Vec<u8>>>,
}

impl WriteTransaction {
    /// Pages, with the changes of this transaction.
    pub fn page_count(&self) -> u32 {
        self.page_count
    }

    /// Copies page `page`, with the changes of this transaction.
    pub fn read_page(&self, page: u32, buffer: &mut [u8]) -> Result<()> {
        self.read_part(page, 0, buffer)
    }

    /// Copies a part of page `page`, from octet `offset` in it.
    pub fn read_part(&self, page: u32, offset: usize, buffer: &mut [u8]) -> Result<()> {
        match self.pages.get(&page) {
            Some(content) => {
                buffer.copy_from_slice(&content[offset..offset + buffer.len()]);
                Ok(())
            }
            None if page <= self.page_count && page > self.snapshot.page_count() => {
                buffer.fill(0);
                Ok(())
            }
            None => self.snapshot.read_part(page, offset, buffer),
        }
    }

    /// Replaces page `page` (from 1) with `content` of [`PAGE_SIZE`] octets. A page behind the last
    /// extends the database; pages between that are never written are zero.
    pub fn write_page(&mut self, page: u32, content: &[u8]) -> Result<()> {
        if page == 0 || content.len() != PAGE_SIZE {
            return Err(EngineError::Invalid(format!(
                "page {page} with {} octets",
                content.len()
            )));
        }
        self.pages.insert(page, Arc::new(content.to_vec()));
        self.page_count = self.page_count.max(page);
        Ok(())
    }

    /// Sets the number of pages; pages that are added are zero.
    pub fn truncate(&mut self, page_count: u32) -> Result<()> {
        let _cut = self.pages.split_off(&page_count.saturating_add(1));
        self.page_count = page_count;
        Ok(())
    }

    /// Makes the changes durable and visible, all or none. Returns when they are on disk.
    pub fn commit(self) -> Result<(Lsn, ReadSnapshot)> {
        let database = &self.snapshot.database;
        let mut pages: Vec<_> = self.snapshot.pages.as_ref().clone();
        pages.resize_with(self.page_count as usize, || Arc::new(vec![0; PAGE_SIZE]));
        let fail = |error| EngineError::io("write", "data file".as_ref(), error);
        database
            .file
            .set_len(u64::from(self.page_count) * PAGE_SIZE as u64)
            .map_err(fail)?;
        for (page, content) in &self.pages {
            let index = *page as usize - 1;
            database
                .file
                .write_at(content, index as u64 * PAGE_SIZE as u64)
                .map_err(fail)?;
            pages[index] = Arc::clone(content);
        }
        database.file.sync().map_err(fail)?;
        let sequence = self.snapshot.sequence + 1;
        *database.committed.lock() = (sequence, Arc::new(pages));
        let lsn = Lsn {
            vlf: 1,
            block: sequence as u32,
            slot: 1,
        };
        Ok((lsn, database.begin_read()))
    }
}

impl Drop for WriteTransaction {
    fn drop(&mut self) {
        self.snapshot
            .database
            .writing
            .store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instance::Instance;
    use crate::options::InstanceOptions;
    use crate::storage::RealFileSystem;

    #[test]
    fn snapshots_do_not_see_later_commits() {
        let folder = tempfile::tempdir().unwrap();
        let instance = Instance::new(InstanceOptions::default(), Arc::new(RealFileSystem)).unwrap();
        let (data, log) = (folder.path().join("a.mdf"), folder.path().join("a.ldf"));
        let database = instance
            .create_database(&CreateDatabase::new("a", data, &log))
            .unwrap();
        let before = database.begin_read();
        let mut writer = database.begin_write(&before).unwrap();
        assert!(matches!(
            database.begin_write(&before),
            Err(EngineError::Busy { .. })
        ));
        writer.write_page(2, &[7; PAGE_SIZE]).unwrap();
        writer.commit().unwrap();
        assert_eq!(before.page_count(), 0);
        assert!(matches!(
            database.begin_write(&before),
            Err(EngineError::BusySnapshot { .. })
        ));
        let after = database.begin_read();
        assert_eq!(after.page_count(), 2);
        let mut page = [1; PAGE_SIZE];
        after.read_page(2, &mut page).unwrap();
        assert_eq!(page, [7; PAGE_SIZE]);
        after.read_page(1, &mut page).unwrap();
        assert_eq!(page, [0; PAGE_SIZE]);
        database.close().unwrap();
        let again = instance
            .open_database(&OpenDatabase::new("a", &log))
            .unwrap();
        assert_eq!(again.begin_read().page_count(), 2);
    }
}
