//! The extent digests of a full backup, as a flat file that differentials compare against.
//!
//! Layout, little-endian: a header of 4096 bytes, then for each database file its digests, 16
//! bytes an extent, at the place that follows from the file sizes in the header. Written in any
//! order by the transform threads, so nothing grows in memory with the database.
//!
//! The file is a cache: the media carry the same digests. A damaged digest can only make an extent
//! look changed, never unchanged, so only the header has a checksum. It counts only once it has
//! its final name, which [`DigestWriter::commit`] gives it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use windlass_base::{Digest, EXTENT_BYTES, Guid, Lsn, checksum};
use windlass_io::{Access, DirectFile, directory, own};

const MAGIC: &[u8; 8] = b"WLDIGST1";
const HEADER_BYTES: usize = 4096;
/// Behind the names of digest files.
const EXTENSION: &str = "digests";
const STAGING_EXTENSION: &str = "new";
/// A staging file that is younger may not have been locked yet by whoever made it.
const STAGING_SETTLED: Duration = Duration::from_secs(60);
const FILES_OFFSET: usize = 64;
const FILE_ENTRY_BYTES: usize = 16;
/// What fits between the fixed fields and the checksum.
const FILES_MAX: usize = (HEADER_BYTES - FILES_OFFSET - 8) / FILE_ENTRY_BYTES;

/// What can be wrong with a digest file.
#[derive(Debug, thiserror::Error)]
pub enum DigestError {
    /// The operating system refused.
    #[error("digest file '{}': {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        #[source]
        source: io::Error,
    },
    /// Not a digest file, or a damaged one.
    #[error("'{}' is not a digest file or is damaged; make a new full backup", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
    },
    /// A database with more files than the format holds.
    #[error("a digest file holds {FILES_MAX} database files, but the database has {found}")]
    TooManyFiles {
        /// How many it has.
        found: usize,
    },
}

/// A database file in a digest file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DigestedFile {
    /// Its id.
    pub file_id: u16,
    /// Its size in bytes at the time of the backup.
    pub size_bytes: u64,
}

impl DigestedFile {
    fn extents(&self) -> u64 {
        self.size_bytes.div_ceil(EXTENT_BYTES as u64)
    }
}

/// Where each file's digests begin, and how many there are.
#[derive(Debug)]
struct Layout(Vec<(DigestedFile, u64)>);

impl Layout {
    fn new(files: &[DigestedFile]) -> Self {
        let mut next = HEADER_BYTES as u64;
        let place = |file: &DigestedFile| {
            let start = next;
            next = next.saturating_add(file.extents().saturating_mul(Digest::BYTES as u64));
            (*file, start)
        };
        Self(files.iter().map(place).collect())
    }

    /// File offset of an extent's digest, and how many extents the file has from there on.
    fn place(&self, file_id: u16, extent: u64) -> Option<(u64, u64)> {
        let (file, start) = self.0.iter().find(|(file, _)| file.file_id == file_id)?;
        let left = file.extents().checked_sub(extent)?;
        Some((start + extent * Digest::BYTES as u64, left))
    }
}

/// Digests to compare with.
#[derive(Debug)]
pub struct DigestFile {
    file: DirectFile,
    layout: Layout,
    set_guid: Guid,
    lsn: Lsn,
}

impl DigestFile {
    /// Opens a finished digest file.
    pub fn open(path: &Path) -> Result<Self, DigestError> {
        let io = |source| DigestError::Io {
            path: path.to_owned(),
            source,
        };
        let file = DirectFile::open(path, Access::Read).map_err(io)?;
        let mut header = vec![0; HEADER_BYTES];
        file.read_at(&mut header, 0).map_err(io)?;
        let (set_guid, lsn, files) =
            parse_header(&header).ok_or_else(|| DigestError::Malformed {
                path: path.to_owned(),
            })?;
        Ok(Self {
            file,
            layout: Layout::new(&files),
            set_guid,
            lsn,
        })
    }

    /// The full backup whose digests these are.
    pub fn set_guid(&self) -> Guid {
        self.set_guid
    }

    /// That backup's checkpoint LSN.
    pub fn lsn(&self) -> Lsn {
        self.lsn
    }

    /// Fills `digests` with those of the extents from `extent` on and returns how many the base
    /// has there: fewer when the file was shorter then, none when it did not exist.
    pub fn read(
        &self,
        file_id: u16,
        extent: u64,
        digests: &mut Vec<Digest>,
        count: usize,
    ) -> Result<(), DigestError> {
        digests.clear();
        let Some((offset, left)) = self.layout.place(file_id, extent) else {
            return Ok(());
        };
        let count = count.min(usize::try_from(left).unwrap_or(usize::MAX));
        digests.resize(count, Digest([0; Digest::BYTES]));
        for (index, digest) in digests.iter_mut().enumerate() {
            let at = offset + (index * Digest::BYTES) as u64;
            self.file
                .read_exact_at(&mut digest.0, at)
                .map_err(|source| DigestError::Io {
                    path: self.file.path().to_owned(),
                    source,
                })?;
        }
        Ok(())
    }
}

/// The name of a set's digest file among those of other sets.
pub fn path(folder: &Path, set_guid: Guid) -> PathBuf {
    folder.join(format!("{set_guid}.{EXTENSION}"))
}

/// Removes the digest files in `folder` of all sets but some, and what dead programs have left there.
///
/// # Errors
/// When the folder cannot be listed, or a file not be removed.
pub fn remove_others(folder: &Path, kept: &[String]) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let is_kept = match path.extension() {
            Some(extension) if extension == EXTENSION => {
                let stem = path.file_stem().unwrap_or_default().to_string_lossy();
                kept.iter().any(|kept| stem.eq_ignore_ascii_case(kept))
            }
            Some(extension) if extension == STAGING_EXTENSION => is_being_written(&path),
            _ => true,
        };
        if !is_kept {
            match std::fs::remove_file(&path) {
                // Another program was faster.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                removed => removed?,
            }
        }
    }
    Ok(())
}

/// Whether somebody writes the file, or may just have begun to.
fn is_being_written(staging: &Path) -> bool {
    let Ok(file) = std::fs::File::open(staging) else {
        return true;
    };
    let modified = file.metadata().and_then(|metadata| metadata.modified());
    let is_old = modified.is_ok_and(|at| at.elapsed().is_ok_and(|age| age > STAGING_SETTLED));
    !is_old || file.try_lock_shared().is_err()
}

/// Makes a digest file. Dropped before [`DigestWriter::commit`], it leaves nothing.
#[derive(Debug)]
pub struct DigestWriter {
    /// What went wrong first, where that is no reason to stop.
    failed: Mutex<Option<DigestError>>,
    file: DirectFile,
    layout: Layout,
    path: PathBuf,
    committed: bool,
}

impl DigestWriter {
    /// Begins a digest file for `path`, beside it.
    pub fn create(
        path: &Path,
        set_guid: Guid,
        lsn: Lsn,
        files: &[DigestedFile],
    ) -> Result<Self, DigestError> {
        if files.len() > FILES_MAX {
            return Err(DigestError::TooManyFiles { found: files.len() });
        }
        let staging = staging_path(path);
        let io = |source| DigestError::Io {
            path: path.to_owned(),
            source,
        };
        own::remove(&staging).map_err(io)?;
        let file = DirectFile::open(&staging, Access::CreateNew).map_err(io)?;
        // So that nobody takes it for a dead program's. A file system without locks has no such help.
        drop(file.as_file().try_lock());
        let writer = Self {
            failed: Mutex::default(),
            file,
            layout: Layout::new(files),
            path: path.to_owned(),
            committed: false,
        };
        writer
            .file
            .write_at(&emit_header(set_guid, lsn, files), 0)
            .map_err(io)?;
        Ok(writer)
    }

    /// Records the digests of consecutive extents from `extent` on. From any thread.
    pub fn write(&self, file_id: u16, extent: u64, digests: &[Digest]) -> Result<(), DigestError> {
        let Some((offset, _)) = self.layout.place(file_id, extent) else {
            return Ok(());
        };
        let bytes: Vec<u8> = digests.iter().flat_map(|digest| digest.0).collect();
        self.file
            .write_at(&bytes, offset)
            .map_err(|source| DigestError::Io {
                path: self.path.clone(),
                source,
            })
    }

    /// The same for a backup, which goes on without the cache: [`DigestWriter::commit`] tells what failed.
    pub(crate) fn write_or_note(&self, file_id: u16, extent: u64, digests: &[Digest]) {
        let failed = || self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        if failed().is_some() {
            return;
        }
        if let Err(error) = self.write(file_id, extent, digests) {
            failed().get_or_insert(error);
        }
    }

    /// Makes the file durable and gives it its name.
    pub fn commit(mut self) -> Result<(), DigestError> {
        let failed = self
            .failed
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(error) = failed {
            return Err(error);
        }
        let io = |source| DigestError::Io {
            path: self.path.clone(),
            source,
        };
        self.file.sync().map_err(io)?;
        directory::replace(&staging_path(&self.path), &self.path).map_err(io)?;
        self.committed = true;
        Ok(())
    }
}

impl Drop for DigestWriter {
    fn drop(&mut self) {
        if !self.committed {
            // The file is only a cache; what stays behind is replaced by the next backup.
            drop(std::fs::remove_file(staging_path(&self.path)));
        }
    }
}

fn staging_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(STAGING_EXTENSION);
    PathBuf::from(name)
}

fn emit_header(set_guid: Guid, lsn: Lsn, files: &[DigestedFile]) -> Vec<u8> {
    let mut header = vec![0; HEADER_BYTES];
    header[..8].copy_from_slice(MAGIC);
    header[8..24].copy_from_slice(&set_guid.to_stored());
    header[24..34].copy_from_slice(&lsn.to_stored());
    header[40..44].copy_from_slice(&(files.len() as u32).to_le_bytes());
    for (entry, file) in header[FILES_OFFSET..]
        .chunks_exact_mut(FILE_ENTRY_BYTES)
        .zip(files)
    {
        entry[..2].copy_from_slice(&file.file_id.to_le_bytes());
        entry[8..].copy_from_slice(&file.size_bytes.to_le_bytes());
    }
    let sum = checksum(&header[..HEADER_BYTES - 8]);
    header[HEADER_BYTES - 8..].copy_from_slice(&sum.to_le_bytes());
    header
}

fn parse_header(header: &[u8]) -> Option<(Guid, Lsn, Vec<DigestedFile>)> {
    let (body, sum) = header.split_last_chunk::<8>()?;
    if body.get(..8)? != MAGIC || checksum(body) != u64::from_le_bytes(*sum) {
        return None;
    }
    let guid = Guid::from_stored(body.get(8..24)?.try_into().ok()?);
    let lsn = Lsn::from_stored(body.get(24..34)?.try_into().ok()?);
    let count = u32::from_le_bytes(body.get(40..44)?.try_into().ok()?) as usize;
    let entries = body
        .get(FILES_OFFSET..)?
        .chunks_exact(FILE_ENTRY_BYTES)
        .take(count);
    let files = entries.map(|entry| {
        let file_id = u16::from_le_bytes(entry.get(..2)?.try_into().ok()?);
        let size_bytes = u64::from_le_bytes(entry.get(8..)?.try_into().ok()?);
        Some(DigestedFile {
            file_id,
            size_bytes,
        })
    });
    Some((guid, lsn, files.collect::<Option<_>>()?))
}

#[cfg(test)]
mod tests {
    use windlass_base::digest;

    use super::*;

    const LSN: Lsn = Lsn {
        vlf: 1,
        block: 2,
        slot: 3,
    };

    fn files() -> [DigestedFile; 2] {
        let file = |file_id, size_bytes| DigestedFile {
            file_id,
            size_bytes,
        };
        [file(1, 3 * EXTENT_BYTES as u64 - 5), file(3, 10)]
    }

    #[test]
    fn digests_come_back_by_file_and_extent() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("d");
        let guid = Guid::random();
        let writer = DigestWriter::create(&path, guid, LSN, &files()).unwrap();
        writer.write(3, 0, &[digest(b"z")]).unwrap();
        writer.write(1, 1, &[digest(b"b"), digest(b"c")]).unwrap();
        writer.write(1, 0, &[digest(b"a")]).unwrap();
        assert!(!path.exists(), "nothing under the name before commit");
        writer.commit().unwrap();

        let file = DigestFile::open(&path).unwrap();
        assert_eq!((file.set_guid(), file.lsn()), (guid, LSN));
        let mut found = Vec::new();
        file.read(1, 0, &mut found, 16).unwrap();
        assert_eq!(
            found,
            [digest(b"a"), digest(b"b"), digest(b"c")],
            "no more than the file had"
        );
        file.read(3, 0, &mut found, 16).unwrap();
        assert_eq!(found, [digest(b"z")]);
        file.read(2, 0, &mut found, 16).unwrap();
        assert!(found.is_empty(), "a file that the base did not have");
    }

    #[test]
    fn a_damaged_header_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("d");
        DigestWriter::create(&path, Guid::random(), LSN, &files())
            .unwrap()
            .commit()
            .unwrap();
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[70] ^= 1;
        std::fs::write(&path, bytes).unwrap();
        assert!(matches!(
            DigestFile::open(&path),
            Err(DigestError::Malformed { .. })
        ));
    }

    #[test]
    fn only_the_digests_of_kept_sets_and_of_running_backups_stay() {
        let folder = tempfile::tempdir().unwrap();
        let [kept, old, running] = [(); 3].map(|()| Guid::random());
        let begin = |guid| DigestWriter::create(&path(folder.path(), guid), guid, LSN, &files());
        for guid in [kept, old] {
            begin(guid).unwrap().commit().unwrap();
        }
        let writer = begin(running).unwrap();
        let dead = folder.path().join("dead.digests.new");
        std::fs::write(&dead, "").unwrap();
        let long_ago = std::time::SystemTime::now() - 2 * STAGING_SETTLED;
        for staging in [&dead, &staging_path(&path(folder.path(), running))] {
            let file = std::fs::File::options().write(true).open(staging).unwrap();
            file.set_modified(long_ago).unwrap();
        }
        remove_others(folder.path(), &[kept.to_string()]).unwrap();
        writer.commit().unwrap();
        let names = std::fs::read_dir(folder.path()).unwrap();
        let mut names: Vec<PathBuf> = names.map(|entry| entry.unwrap().path()).collect();
        let mut expected = [kept, running].map(|guid| path(folder.path(), guid));
        names.sort();
        expected.sort();
        assert_eq!(names, expected);
    }

    #[test]
    fn an_abandoned_file_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        drop(
            DigestWriter::create(&folder.path().join("d"), Guid::random(), LSN, &files()).unwrap(),
        );
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
