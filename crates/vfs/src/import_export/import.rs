//! From a SQLite file to an engine database.
//!
//! If a database reserves room for page checksums, the engine verifies the checksum of every page
//! it reads. A copy keeps the checksums of the source, even wrong ones, so that damage stays
//! detectable. But if that of the first page is wrong, a SQLite without checksum support wrote to
//! the file, and all pages get new checksums, as they do when SQLite rewrites the database.

use std::path::Path;
use std::sync::Arc;

use windlass_base::PAGE_BYTES;
use windlass_base::page::checksum;
use windlass_engine::storage::unnamed;
use windlass_engine::{CreateDatabase, Database, Instance, NewDatabase};
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
    /// Bytes of its data file.
    pub bytes: u64,
    /// Whether SQLite had to rewrite it: a different page size, a write-ahead log that is not empty,
    /// or no room for the requested page checksums.
    pub converted: bool,
    /// Whether its pages carry checksums.
    pub page_checksums: bool,
}

/// Creates the engine database that `request` describes, with one data file, from the SQLite file
/// `source`.
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
    let [data] = request.data_files.as_slice() else {
        return Err(not_importable(
            "an import makes exactly one data file; add more afterwards",
        ));
    };
    for path in [&data.path, &request.log.path] {
        if own::is_there(path) {
            return Err(not_importable(&format!(
                "'{}' exists already",
                path.display()
            )));
        }
    }
    let opened = Source::open(source)?;
    let unfinished = unnamed(&data.path);
    // Replaces what a killed one left. Until the file has its name, nobody else makes one of this name.
    let held = own::claim(&unfinished).map_err(|error| io_error("create", &data.path, &error))?;
    let held = Claimed::new(held);
    remove_journal(&unfinished);
    let reserved = match checksums {
        PageChecksums::AsInSource => opened.reserved_bytes,
        PageChecksums::Always => CHECKSUM_BYTES,
    };
    let converted = !opened.is_whole() || opened.reserved_bytes != reserved;
    let bytes = if converted {
        convert(opened, reserved, &held.file)?
    } else {
        copy(&opened, &held.file)?
    };
    let database = instance.prepare_adopted(request, Arc::clone(&held.file))?;
    held.keep();
    Ok(Imported {
        database,
        bytes,
        converted,
        page_checksums: reserved == CHECKSUM_BYTES,
    })
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
fn copy(source: &Source, file: &DirectFile) -> Result<u64> {
    let fail = |error| io_error("write", file.path(), &error);
    let mut buffer = AlignedBuffer::new(CHUNK_BYTES);
    let mut stamps = false;
    for offset in (0..source.bytes).step_by(CHUNK_BYTES) {
        let content = &mut buffer[..(source.bytes - offset).min(CHUNK_BYTES as u64) as usize];
        source.read(content, offset)?;
        if offset == 0 {
            let first = &mut content[..PAGE_BYTES];
            let reserved = checksum::is_reserved(first);
            stamps = reserved && !checksum::is_valid(first);
            first[FORMAT_OFFSET..FORMAT_OFFSET + 2].fill(1);
            if reserved {
                checksum::stamp(first);
            }
        }
        if stamps {
            stamp(content);
        }
        file.write_at(content, offset).map_err(fail)?;
    }
    file.sync().map_err(fail)?;
    Ok(source.bytes)
}

/// Writes the checksum of each page into its last bytes.
fn stamp(pages: &mut [u8]) {
    pages.chunks_exact_mut(PAGE_BYTES).for_each(checksum::stamp);
}
