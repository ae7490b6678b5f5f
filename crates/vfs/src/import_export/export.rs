//! From an engine database to a plain SQLite file.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use windlass_base::panic::contained;
use windlass_base::{PAGE_BYTES, PageNumber};
use windlass_engine::storage::unnamed;
use windlass_engine::{Database, EngineError, ReadSnapshot};
use windlass_io::{AlignedBuffer, DirectFile, own};

use super::{CHUNK_BYTES, Claimed, io_error};
use crate::error::{Result, VfsError};

const CHUNK_PAGES: u32 = (CHUNK_BYTES / PAGE_BYTES) as u32;

/// Chunks read and written concurrently. The engine reads page by page; several readers keep the
/// disk busy if the buffer pool does not have the pages.
const WORKERS: usize = 8;

/// Writes the last committed state of `database` to the new SQLite file `target`; returns its
/// length.
///
/// Writers continue meanwhile. A database without content becomes an empty file, which is SQLite's
/// empty database.
///
/// # Errors
/// If `target` or a log of it exists, a page cannot be read, or the disk refuses. Nothing is left at `target`
/// then.
pub fn export(database: &Arc<Database>, target: &Path) -> Result<u64> {
    if target.exists() {
        return Err(VfsError::Io {
            action: "export to",
            path: target.to_owned(),
            reason: "the file exists and is not overwritten".to_owned(),
        });
    }
    let refuse_log =
        || own::refuse_left_log(target).map_err(|error| io_error("export to", target, &error));
    refuse_log()?;
    let beside = unnamed(target);
    // Replaces what a killed export left; nobody else makes a file of this name until it has it.
    let file = own::claim(&beside).map_err(|error| io_error("create", target, &error))?;
    let held = Claimed::new(file);
    let bytes = write(database, &held.file)?;
    refuse_log()?;
    own::take_name(held.file.as_file(), &beside, target)
        .map_err(|error| io_error("rename to", target, &error))?;
    held.keep();
    Ok(bytes)
}

fn write(database: &Arc<Database>, file: &DirectFile) -> Result<u64> {
    let snapshot = database.begin_read_durable();
    let next = AtomicU32::new(0);
    std::thread::scope(|scope| {
        let copy = || {
            let copied = contained("copier of pages", || copy(&snapshot, file, &next));
            copied.unwrap_or_else(|panicked| Err(EngineError::from(panicked).into()))
        };
        let workers: Vec<_> = (0..WORKERS).map(|_| scope.spawn(copy)).collect();
        workers.into_iter().try_for_each(|worker| {
            worker
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    })?;
    let bytes = u64::from(snapshot.page_count()) * PAGE_BYTES as u64;
    file.set_len(bytes)
        .and_then(|()| file.sync())
        .map_err(|error| io_error("write", file.path(), &error))?;
    Ok(bytes)
}

/// Copies chunks until none are left. An error ends only its own thread; the others copy the rest.
fn copy(snapshot: &ReadSnapshot, file: &DirectFile, next: &AtomicU32) -> Result<()> {
    let mut buffer = AlignedBuffer::new(CHUNK_BYTES);
    loop {
        let chunk = next.fetch_add(1, Ordering::Relaxed);
        let first = chunk.saturating_mul(CHUNK_PAGES);
        let count = CHUNK_PAGES.min(snapshot.page_count().saturating_sub(first));
        if count == 0 {
            return Ok(());
        }
        let content = &mut buffer[..count as usize * PAGE_BYTES];
        let pages = (first..first + count).filter_map(PageNumber::from_index);
        for (page, content) in pages.zip(content.chunks_exact_mut(PAGE_BYTES)) {
            snapshot.read_page(page, content)?;
        }
        file.write_at(content, u64::from(first) * PAGE_BYTES as u64)
            .map_err(|error| io_error("write", file.path(), &error))?;
    }
}
