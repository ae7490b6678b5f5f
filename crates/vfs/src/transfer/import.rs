//! From a SQLite file to an engine database.

use std::path::Path;
use std::sync::Arc;

use windlass_engine::{CreateDatabase, Database, Instance};
use windlass_io::{Access, AlignedBuffer, DirectFile, directory};

use super::source::Source;
use super::{CHUNK_BYTES, io_error, unfinished};
use crate::error::{Result, VfsError};

/// Where page 1 tells whether SQLite reads and writes through its own log: 2 if so, 1 if not.
const FORMAT_OFFSET: usize = 18;

/// What an import did.
#[derive(Debug)]
pub struct Imported {
    /// The new database, open.
    pub database: Arc<Database>,
    /// Octets of its data file.
    pub octets: u64,
    /// Whether SQLite had to rewrite it: other pages than the engine's, or a log not yet checkpointed.
    pub converted: bool,
}

/// Makes the engine database that `request` describes, with one data file, from the SQLite file `source`.
///
/// `source` may be in use and is not changed. With pages of 8192 octets and no write-ahead log beside
/// it, it is copied as it is; otherwise SQLite writes it anew with such pages.
///
/// # Errors
/// When `source` is no SQLite database, files of the target exist, or the disk refuses. Nothing is
/// left of the target then.
pub fn import(instance: &Instance, source: &Path, request: &CreateDatabase) -> Result<Imported> {
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
        if path.exists() {
            return Err(not_importable(&format!(
                "'{}' exists already",
                path.display()
            )));
        }
    }
    let opened = Source::open(source)?;
    if opened.octets == 0 {
        return Err(not_importable("it is empty; create the database instead"));
    }
    let beside = unfinished(&data.path);
    // An earlier import that was interrupted may have left one.
    let _gone = std::fs::remove_file(&beside);
    let converted = !opened.is_whole();
    let outcome = write(opened, converted, &beside).and_then(|octets| {
        directory::replace(&beside, &data.path)
            .map_err(|error| io_error("rename to", &data.path, &error))?;
        let adopted = instance.adopt_database(request).inspect_err(|_| {
            let _gone = std::fs::remove_file(&data.path);
        });
        Ok(Imported {
            database: adopted?,
            octets,
            converted,
        })
    });
    if outcome.is_err() {
        // The first error is the one that counts.
        let _gone = std::fs::remove_file(&beside);
    }
    outcome
}

/// Writes the data file; returns its octets.
fn write(source: Source, converted: bool, path: &Path) -> Result<u64> {
    let fail = |error| io_error("write", path, &error);
    if converted {
        source.convert(path)?;
        let file = DirectFile::open(path, Access::ReadWrite).map_err(fail)?;
        file.sync().map_err(fail)?;
        return file.len().map_err(fail);
    }
    let file = DirectFile::open(path, Access::CreateNew).map_err(fail)?;
    let mut buffer = AlignedBuffer::new(CHUNK_BYTES);
    let mut offset = 0;
    while offset < source.octets {
        let length = (source.octets - offset).min(CHUNK_BYTES as u64) as usize;
        let content = &mut buffer[..length];
        source.read(content, offset)?;
        if offset == 0 {
            content[FORMAT_OFFSET..FORMAT_OFFSET + 2].fill(1);
        }
        file.write_at(content, offset).map_err(fail)?;
        offset += length as u64;
    }
    file.sync().map_err(fail)?;
    Ok(offset)
}
