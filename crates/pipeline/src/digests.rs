//! The extent digests of a full backup, as a flat file that differentials compare with.
//!
//! Layout, little-endian: a header of 4096 bytes, then the digests of each database file, 16 bytes
//! per extent, at an offset that follows from the file sizes in the header. The transform threads
//! write it in any order, so memory does not grow with the database.
//!
//! The file is a cache: the media contain the same digests. A damaged digest can only make an
//! extent look changed, never unchanged, so only the header has a checksum. The file is valid only
//! under its final name, which [`DigestWriter::commit`] gives it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use windlass_base::{Digest, EXTENT_BYTES, Guid, Lsn, checksum};
use windlass_io::{Access, DirectFile, directory, own};

const MAGIC: &[u8; 8] = b"WLDIGST1";
const HEADER_BYTES: usize = 4096;
/// Extension of digest files.
const EXTENSION: &str = "digests";
const STAGING_EXTENSION: &str = "new";
/// A younger staging file may not have been locked yet by its writer.
const STAGING_SETTLED: Duration = Duration::from_secs(60);
const FILES_OFFSET: usize = 64;
const FILE_ENTRY_BYTES: usize = 16;
/// As many as fit between the fixed fields and the checksum.
const FILES_MAX: usize = (HEADER_BYTES - FILES_OFFSET - 8) / FILE_ENTRY_BYTES;

/// Errors of digest files.
#[derive(Debug, thiserror::Error)]
pub enum DigestError {
    #[error("digest file '{}': {source}", path.display())]
    Io {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("'{}' is not a digest file or is damaged; make a new full backup", path.display())]
    Malformed { path: PathBuf },
    /// The database has more files than the format allows.
    #[error("a digest file holds {FILES_MAX} database files, but the database has {found}")]
    TooManyFiles { found: usize },
}

/// A database file in a digest file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DigestedFile {
    pub file_id: u16,
    /// Size at the time of the backup.
    pub size_bytes: u64,
}

impl DigestedFile {
    fn extents(&self) -> u64 {
        self.size_bytes.div_ceil(EXTENT_BYTES as u64)
    }
}

/// Where each file's digests start, and how many there are.
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

    /// Offset of an extent's digest, and the number of extents of the file from there on.
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

    /// The full backup that the digests describe.
    pub fn set_guid(&self) -> Guid {
        self.set_guid
    }

    pub fn lsn(&self) -> Lsn {
        self.lsn
    }

    /// Fills `digests` with those of the extents from `extent` on and returns how many the base has
    /// there: fewer if the file was shorter, none if it did not exist.
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

/// The path of a set's digest file in a folder.
pub fn path(folder: &Path, set_guid: Guid) -> PathBuf {
    folder.join(format!("{set_guid}.{EXTENSION}"))
}

/// Removes the digest files in `folder` except those of the `kept` sets, and staging files of dead
/// programs.
///
/// # Errors
/// If the folder cannot be listed, or a file cannot be removed.
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
                // Another program removed it first.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                removed => removed?,
            }
        }
    }
    Ok(())
}

/// Whether a program is writing the file, or may just have started to.
fn is_being_written(staging: &Path) -> bool {
    let Ok(file) = std::fs::File::open(staging) else {
        return true;
    };
    let modified = file.metadata().and_then(|metadata| metadata.modified());
    let is_old = modified.is_ok_and(|at| at.elapsed().is_ok_and(|age| age > STAGING_SETTLED));
    !is_old || file.try_lock_shared().is_err()
}

/// Writes a digest file. If dropped before [`DigestWriter::commit`], it leaves nothing behind.
#[derive(Debug)]
pub struct DigestWriter {
    /// The first error, in uses where it is no reason to stop.
    failed: Mutex<Option<DigestError>>,
    file: DirectFile,
    layout: Layout,
    path: PathBuf,
    committed: bool,
}

impl DigestWriter {
    /// Starts a digest file for `path`, in the same folder.
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
        // The lock shows that the writer is alive. File systems without locks lack this protection.
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

    /// Stores the digests of consecutive extents starting at `extent`. Can be called from any
    /// thread.
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

    /// As [`Self::write`], for a backup, which continues without the cache:
    /// [`DigestWriter::commit`] reports the failure.
    pub(crate) fn write_or_note(&self, file_id: u16, extent: u64, digests: &[Digest]) {
        let failed = || self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        if failed().is_some() {
            return;
        }
        if let Err(error) = self.write(file_id, extent, digests) {
            failed().get_or_insert(error);
        }
    }

    /// Makes the file durable and gives it its final name.
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
            // The file is only a cache; the next backup replaces leftovers.
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
