//! Opens a catalog.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior};

use crate::error::Doing;
use crate::{Error, schema};

/// The catalog's file in the directory of an instance.
pub const FILE_NAME: &str = "windlass.catalog";

/// How long a call waits for another writing process.
pub const BUSY_SECONDS: u64 = 30;

/// An open catalog.
#[derive(Debug)]
pub struct Catalog {
    connection: Connection,
    /// How to open further connections.
    location: Location,
}

#[derive(Debug)]
enum Location {
    File(PathBuf),
    /// A name shared by all connections of this process; see SQLite's `memdb` VFS.
    Memory(String),
}

/// A unique name for a database in memory.
fn memory_name() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("file:/windlass-catalog-{number}?vfs=memdb")
}

fn open_memory(name: &str) -> Result<Connection, Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_URI
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    Connection::open_with_flags(name, flags).map_err(|source| Error::Open {
        path: PathBuf::from(":memory:"),
        source,
    })
}

impl Catalog {
    /// Opens the catalog in `folder`, creating both if missing, for their owner only: the sealed
    /// master key and private keys are in it. SQLite gives its journal the mode of the file, and for
    /// root its owner.
    ///
    /// # Errors
    /// [`Error::Folder`], [`Error::Open`], [`Error::Version`].
    pub fn open(folder: &Path) -> Result<Self, Error> {
        let failed = |source| Error::Folder {
            path: folder.to_owned(),
            source,
        };
        windlass_io::directory::create(folder).map_err(failed)?;
        windlass_io::own::check_owner(folder).map_err(failed)?;
        let path = folder.canonicalize().map_err(failed)?.join(FILE_NAME);
        windlass_io::own::refuse_planted(&path).map_err(failed)?;
        windlass_io::secret::ensure(&path).map_err(failed)?;
        let flags = OpenFlags::default() | OpenFlags::SQLITE_OPEN_NOFOLLOW;
        let opened = Connection::open_with_flags(&path, flags);
        let connection = opened.map_err(|source| Error::Open {
            path: path.clone(),
            source,
        })?;
        let mut catalog = Self::prepare(connection, Location::File(path))?;
        // Who may only read does not move it either.
        let _unsettled = catalog.settle();
        Ok(catalog)
    }

    /// Creates a catalog that lives as long as the value.
    ///
    /// # Errors
    /// [`Error::Open`] if memory is short.
    pub fn in_memory() -> Result<Self, Error> {
        let name = memory_name();
        Self::prepare(open_memory(&name)?, Location::Memory(name))
    }

    /// A copy in memory of the catalog in `folder`, or of a new one if there is none: the file is
    /// not changed, and changes to the copy are lost.
    ///
    /// # Errors
    /// [`Error::Open`], [`Error::Version`].
    pub fn rehearsal(folder: &Path) -> Result<Self, Error> {
        let path = folder.join(FILE_NAME);
        windlass_io::own::refuse_planted(&path).map_err(|source| Error::Folder {
            path: folder.to_owned(),
            source,
        })?;
        if !path.exists() {
            return Self::in_memory();
        }
        let failed = |source| Error::Open {
            path: path.clone(),
            source,
        };
        let name = memory_name();
        // The database in memory ends with its last connection.
        let copy = open_memory(&name)?;
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
            | OpenFlags::SQLITE_OPEN_URI
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let source = Connection::open_with_flags(file_uri(&path), flags).map_err(failed)?;
        source
            .busy_timeout(Duration::from_secs(BUSY_SECONDS))
            .and_then(|()| source.execute("VACUUM INTO ?1", [&name]))
            .map_err(failed)?;
        Self::prepare(copy, Location::Memory(name))
    }

    fn prepare(connection: Connection, location: Location) -> Result<Self, Error> {
        connection
            .busy_timeout(Duration::from_secs(BUSY_SECONDS))
            .doing("setting the time to wait")?;
        let mut catalog = Self {
            connection,
            location,
        };
        catalog.create()?;
        Ok(catalog)
    }

    /// Creates the tables of a new catalog, and those that an older one lacks.
    fn create(&mut self) -> Result<(), Error> {
        let path = self.path();
        if version_of(&self.connection, &path)? == schema::VERSION {
            return Ok(());
        }
        let transaction = self.write("beginning a new catalog")?;
        // Another process may have created it while this one waited.
        let found = match version_of(&transaction, &path)? {
            0 if is_empty(&transaction, &path)? => 0,
            0 => return Err(Error::Foreign { path }),
            found if found <= schema::VERSION => found,
            found => {
                return Err(Error::Version {
                    path,
                    found,
                    supported: schema::VERSION,
                });
            }
        };
        let doing = "making the catalog's tables";
        for (_, text) in schema::LAYOUTS.iter().filter(|(since, _)| *since > found) {
            transaction.execute_batch(text).doing(doing)?;
        }
        transaction
            .pragma_update(None, "user_version", schema::VERSION)
            .doing(doing)?;
        transaction.commit().doing(doing)
    }

    /// The catalog's file; `:memory:` without an instance.
    pub fn path(&self) -> PathBuf {
        match &self.location {
            Location::File(path) => path.clone(),
            Location::Memory(_) => PathBuf::from(":memory:"),
        }
    }

    /// Whether the catalog ends with the process.
    pub fn is_in_memory(&self) -> bool {
        matches!(self.location, Location::Memory(_))
    }

    /// A separate, read-only connection to the catalog.
    ///
    /// # Errors
    /// [`Error::Open`].
    pub fn reader(&self) -> Result<Connection, Error> {
        let uri = match &self.location {
            Location::File(path) => file_uri(path),
            Location::Memory(name) => name.clone(),
        };
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
            | OpenFlags::SQLITE_OPEN_URI
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let opened = Connection::open_with_flags(&uri, flags);
        let connection = opened.map_err(|source| Error::Open {
            path: self.path(),
            source,
        })?;
        connection
            .busy_timeout(Duration::from_secs(BUSY_SECONDS))
            .doing("setting the time to wait")?;
        Ok(connection)
    }

    pub(crate) fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Starts a write transaction; waits for other writers now rather than at the first write.
    pub(crate) fn write(&mut self, doing: &'static str) -> Result<Transaction<'_>, Error> {
        self.connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .doing(doing)
    }
}

fn version_of(connection: &Connection, path: &Path) -> Result<u32, Error> {
    connection
        .pragma_query_value(None, "user_version", |row| row.get(0))
        .map_err(|source| Error::Open {
            path: path.to_owned(),
            source,
        })
}

fn is_empty(connection: &Connection, path: &Path) -> Result<bool, Error> {
    let text = "SELECT count(*) = 0 FROM sqlite_schema";
    connection
        .query_row(text, [], |row| row.get(0))
        .map_err(|source| Error::Open {
            path: path.to_owned(),
            source,
        })
}

/// The read-only URI of a file, with special characters escaped.
fn file_uri(path: &Path) -> String {
    use std::fmt::Write as _;
    let mut uri = String::from("file:");
    for &byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' => {
                uri.push(char::from(byte));
            }
            _ => {
                // Writing to a String cannot fail.
                let _ = write!(uri, "%{byte:02X}");
            }
        }
    }
    uri.push_str("?mode=ro");
    uri
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_catalog_is_made_once_and_found_again() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("new/instance #1 50%");
        for _ in 0..2 {
            let catalog = Catalog::open(&place).unwrap();
            assert!(place.join(FILE_NAME).exists());
            assert!(!catalog.is_in_memory());
        }
    }

    #[test]
    fn a_reader_reads_and_cannot_write() {
        let folder = tempfile::tempdir().unwrap();
        let in_file = Catalog::open(&folder.path().join("a b%#?")).unwrap();
        let in_memory = Catalog::in_memory().unwrap();
        for catalog in [&in_file, &in_memory] {
            let reader = catalog.reader().unwrap();
            let sets: i64 = reader
                .query_row("SELECT count(*) FROM backupset", [], |row| row.get(0))
                .unwrap();
            assert_eq!(sets, 0);
            assert!(reader.execute("DELETE FROM own_backupset", []).is_err());
        }
    }

    #[test]
    fn a_catalog_of_another_version_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        drop(Catalog::open(folder.path()).unwrap());
        let connection = Connection::open(folder.path().join(FILE_NAME)).unwrap();
        connection.pragma_update(None, "user_version", 99).unwrap();
        drop(connection);
        let error = Catalog::open(folder.path()).unwrap_err();
        assert!(matches!(error, Error::Version { found: 99, .. }), "{error}");
    }

    #[test]
    fn a_catalog_of_the_first_version_gets_what_it_lacks_and_keeps_what_it_has() {
        let folder = tempfile::tempdir().unwrap();
        drop(Catalog::open(folder.path()).unwrap());
        let path = folder.path().join(FILE_NAME);
        std::fs::remove_file(&path).unwrap();
        let connection = Connection::open(&path).unwrap();
        let (_, first) = schema::LAYOUTS.first().unwrap();
        connection.execute_batch(first).unwrap();
        let kept = "INSERT INTO own_drive VALUES ('D', '/srv/d'); PRAGMA user_version = 1";
        connection.execute_batch(kept).unwrap();
        drop(connection);
        let catalog = Catalog::open(folder.path()).unwrap();
        assert_eq!(catalog.drives().unwrap().len(), 1);
        assert!(catalog.logins().unwrap().is_empty());
    }

    #[test]
    fn folder_catalog_and_journal_are_for_their_owner_alone() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("instance");
        let mut catalog = Catalog::open(&place).unwrap();
        let transaction = catalog.write("looking at the journal").unwrap();
        transaction
            .execute("CREATE TABLE own_test (x)", [])
            .unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&place), 0o700);
        let files: Vec<_> = std::fs::read_dir(&place).unwrap().flatten().collect();
        assert_eq!(files.len(), 2, "catalog and journal");
        for file in files {
            assert_eq!(mode(&file.path()), 0o600, "{file:?}");
        }
    }

    #[test]
    fn a_database_of_somebody_else_is_refused_and_stays_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let theirs = folder.path().join("theirs.db");
        let connection = Connection::open(&theirs).unwrap();
        connection.execute_batch("CREATE TABLE theirs (x)").unwrap();
        drop(connection);
        let before = std::fs::read(&theirs).unwrap();
        let path = folder.path().join("i").join(FILE_NAME);
        std::fs::create_dir(folder.path().join("i")).unwrap();
        std::os::unix::fs::symlink(&theirs, &path).unwrap();
        let open = || Catalog::open(&folder.path().join("i")).unwrap_err();
        assert!(open().to_string().contains("symbolic link"), "{}", open());
        std::fs::remove_file(&path).unwrap();
        std::fs::copy(&theirs, &path).unwrap();
        assert!(matches!(open(), Error::Foreign { .. }), "{}", open());
        assert_eq!(std::fs::read(&path).unwrap(), before);
        assert_eq!(std::fs::read(&theirs).unwrap(), before);
    }

    #[test]
    fn a_file_that_is_no_database_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(
            folder.path().join(FILE_NAME),
            "not a database, but text. ".repeat(99),
        )
        .unwrap();
        let error = Catalog::open(folder.path()).unwrap_err();
        assert!(matches!(error, Error::Open { .. }), "{error}");
    }

    #[test]
    fn processes_that_open_a_new_catalog_together_agree() {
        let folder = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| Catalog::open(folder.path()).unwrap());
            }
        });
    }
}
