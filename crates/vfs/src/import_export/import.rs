//! From a SQLite file to an engine database.
//!
//! If a database reserves room for page checksums, the engine verifies the checksum of every page
//! it reads. A copy keeps the checksums of the source, even wrong ones, so that damage stays
//! detectable. But if that of the first page is wrong, a SQLite without checksum support wrote to
//! the file, and all pages get new checksums, as they do when SQLite rewrites the database.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use windlass_base::page::checksum;
use windlass_base::{PAGE_BYTES, PageNumber};
use windlass_engine::storage::unnamed;
use windlass_engine::{CreateDatabase, Database, Instance, NewContent, NewDatabase};
use windlass_io::{AlignedBuffer, DirectFile, own};

use super::source::Source;
use super::{CHUNK_BYTES, Claimed, beside, io_error};
use crate::error::{Result, VfsError};

/// Where page 1 has the journal mode, in two bytes: 2 for WAL, 1 otherwise.
const FORMAT_OFFSET: usize = 18;

/// Bytes to reserve at the end of each page for its checksum.
const CHECKSUM_BYTES: i32 = 8;

/// Whether pages of an imported database have checksums.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageChecksums {
    /// If the source reserves room for them.
    AsInSource,
    /// Always: SQLite rewrites a source without room for them.
    Always,
}

/// `D` is a [`NewDatabase`] until its files have their names.
#[derive(Debug)]
pub struct Imported<D = Arc<Database>> {
    /// The new database, open.
    pub database: D,
    /// Bytes of its pages.
    pub bytes: u64,
    /// Whether SQLite had to rewrite it: a different page size, a write-ahead log that is not empty,
    /// or no room for the requested page checksums.
    pub converted: bool,
    /// Whether its pages carry checksums.
    pub page_checksums: bool,
}

/// Creates the engine database that `request` describes from the SQLite file `source`.
///
/// `source` may be in use and is not changed. With pages of 8192 bytes, no content in a write-ahead
/// log, and the requested room for checksums, its pages are copied; otherwise SQLite rewrites it.
///
/// # Errors
/// If `source` is not a SQLite database or must be rolled back first, if files of the target exist,
/// or if the disk refuses. Nothing is left of the target then.
pub fn import(
    instance: &Instance,
    source: &Path,
    request: &CreateDatabase,
    checksums: PageChecksums,
) -> Result<Imported> {
    let new = prepare(instance, source, request, checksums)?;
    Ok(Imported {
        database: instance.publish(new.database)?,
        bytes: new.bytes,
        converted: new.converted,
        page_checksums: new.page_checksums,
    })
}

/// As [`import`], but the files keep their temporary names for now.
pub fn prepare(
    instance: &Instance,
    source: &Path,
    request: &CreateDatabase,
    checksums: PageChecksums,
) -> Result<Imported<NewDatabase>> {
    let not_importable = |reason: &str| VfsError::NotImportable {
        path: source.to_owned(),
        reason: reason.to_owned(),
    };
    let Some(first) = request.data_files.first() else {
        return Err(not_importable("no data file is named for it"));
    };
    let all = request.data_files.iter().chain([&request.log]);
    for path in all.map(|file| &file.path) {
        if own::is_there(path) {
            return Err(not_importable(&format!(
                "'{}' exists already",
                path.display()
            )));
        }
    }
    let opened = Source::open(source)?;
    let reserved = match checksums {
        PageChecksums::AsInSource => opened.reserved_bytes,
        PageChecksums::Always => CHECKSUM_BYTES,
    };
    let converted = !opened.is_whole() || opened.reserved_bytes != reserved;
    let (database, bytes) = match request.data_files.len() {
        1 => {
            let held = claim(&first.path)?;
            let bytes = match converted {
                true => convert(opened, reserved, &held.file)?,
                false => copy(&Pages::new(opened, source)?, &held.file)?,
            };
            let database = instance.prepare_adopted(request, Arc::clone(&held.file))?;
            held.keep();
            (database, bytes)
        }
        _ if converted => {
            // SQLite writes one file, from which the pages go to their places.
            let held = claim(&beside(&first.path, ".windlass-import"))?;
            let bytes = convert(opened, reserved, &held.file)?;
            let pages = Rewritten { held, bytes };
            (instance.prepare_filled(request, &pages)?, bytes)
        }
        _ => {
            let bytes = opened.bytes;
            let pages = Pages::new(opened, source)?;
            (instance.prepare_filled(request, &pages)?, bytes)
        }
    };
    Ok(Imported {
        database,
        bytes,
        converted,
        page_checksums: reserved == CHECKSUM_BYTES,
    })
}

/// Claims the temporary name of a file. What a killed import left there is replaced; until the file has its name,
/// nobody else makes one of this name.
fn claim(path: &Path) -> Result<Claimed> {
    let unfinished = unnamed(path);
    let held = own::claim(&unfinished).map_err(|error| io_error("create", path, &error))?;
    remove_journal(&unfinished);
    Ok(Claimed::new(held))
}

/// Makes SQLite write the data file; returns its length.
fn convert(source: Source, reserved: i32, file: &DirectFile) -> Result<u64> {
    let path = file.path();
    let fail = |error| io_error("write", path, &error);
    let converted = source.convert(path, reserved);
    remove_journal(path);
    converted?;
    let bytes = file.len().map_err(fail)?;
    if reserved == CHECKSUM_BYTES {
        let mut buffer = AlignedBuffer::new(CHUNK_BYTES);
        for offset in (0..bytes).step_by(CHUNK_BYTES) {
            let content = &mut buffer[..(bytes - offset).min(CHUNK_BYTES as u64) as usize];
            file.read_exact_at(content, offset).map_err(fail)?;
            if offset == 0 && !checksum::is_reserved(content) {
                return Err(VfsError::Sqlite {
                    action: "reserve room for page checksums",
                    reason: format!("SQLite {} does not know how", rusqlite::version()),
                });
            }
            stamp(content);
            file.write_at(content, offset).map_err(fail)?;
        }
    }
    file.sync().map_err(fail)?;
    Ok(bytes)
}

/// Removes the journal that SQLite keeps while it writes a file, if a failure left it.
fn remove_journal(path: &Path) {
    // Usually it does not exist.
    let _gone = std::fs::remove_file(beside(path, "-journal"));
}

/// Copies the data file; returns its length.
fn copy(pages: &Pages, file: &DirectFile) -> Result<u64> {
    let fail = |error| io_error("write", file.path(), &error);
    let mut buffer = AlignedBuffer::new(CHUNK_BYTES);
    let bytes = pages.source.bytes;
    for offset in (0..bytes).step_by(CHUNK_BYTES) {
        let content = &mut buffer[..(bytes - offset).min(CHUNK_BYTES as u64) as usize];
        pages.read_at(content, offset)?;
        file.write_at(content, offset).map_err(fail)?;
    }
    file.sync().map_err(fail)?;
    Ok(bytes)
}

/// The pages of a source as they are in the engine.
#[derive(Debug)]
struct Pages {
    source: Source,
    path: PathBuf,
    /// Whether pages have room for a checksum.
    reserved: bool,
    /// Whether all pages get a checksum.
    stamps: bool,
}

impl Pages {
    fn new(source: Source, path: &Path) -> Result<Self> {
        let mut first = AlignedBuffer::new(PAGE_BYTES);
        source.read(&mut first, 0)?;
        let reserved = checksum::is_reserved(&first);
        Ok(Self {
            stamps: reserved && !checksum::is_valid(&first),
            reserved,
            source,
            path: path.to_owned(),
        })
    }

    /// Fills `content` with whole pages.
    fn read_at(&self, content: &mut [u8], offset: u64) -> Result<()> {
        self.source.read(content, offset)?;
        if offset == 0 {
            let first = &mut content[..PAGE_BYTES];
            first[FORMAT_OFFSET..FORMAT_OFFSET + 2].fill(1);
            if self.reserved {
                checksum::stamp(first);
            }
        }
        if self.stamps {
            stamp(content);
        }
        Ok(())
    }
}

impl NewContent for Pages {
    fn path(&self) -> &Path {
        &self.path
    }

    fn page_count(&self) -> u32 {
        page_count(self.source.bytes)
    }

    fn read(&self, first: PageNumber, buffer: &mut [u8]) -> io::Result<()> {
        self.read_at(buffer, first.byte_offset(PAGE_BYTES))
            .map_err(io::Error::other)
    }
}

/// The file that SQLite wrote, until the pages are in the data files.
#[derive(Debug)]
struct Rewritten {
    held: Claimed,
    bytes: u64,
}

impl NewContent for Rewritten {
    fn path(&self) -> &Path {
        self.held.file.path()
    }

    fn page_count(&self) -> u32 {
        page_count(self.bytes)
    }

    fn read(&self, first: PageNumber, buffer: &mut [u8]) -> io::Result<()> {
        self.held
            .file
            .read_exact_at(buffer, first.byte_offset(PAGE_BYTES))
    }
}

/// SQLite's number of pages has 32 bits.
fn page_count(bytes: u64) -> u32 {
    (bytes / PAGE_BYTES as u64) as u32
}

/// Writes the checksum of each page into its last bytes.
fn stamp(pages: &mut [u8]) {
    pages.chunks_exact_mut(PAGE_BYTES).for_each(checksum::stamp);
}
