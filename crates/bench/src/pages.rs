//! Commits of pages to a database of the page engine.

use std::sync::Arc;

use windlass_base::page::{PAGE_BYTES, PageNumber};
use windlass_engine::Database;

/// Commits pages whose content differs from page to page and compresses to about a third.
///
/// # Errors
/// Those of the engine.
pub fn commit(
    database: &Arc<Database>,
    pages: impl Iterator<Item = PageNumber>,
    fill: u64,
) -> anyhow::Result<()> {
    let mut writer = database.begin_write(&database.begin_read())?;
    let mut content = [0; PAGE_BYTES];
    for page in pages {
        let mut state = fill ^ (u64::from(page.sqlite()) << 20);
        for word in content.chunks_exact_mut(24) {
            state = next(state);
            word[..8].copy_from_slice(&state.to_le_bytes());
        }
        writer.write_page(page, &content)?;
    }
    writer.commit()?;
    Ok(())
}

/// Commits the first `count` pages of a new database, a thousand at a time.
///
/// # Errors
/// Those of the engine.
pub fn fill(database: &Arc<Database>, count: u32) -> anyhow::Result<()> {
    for first in (0..count).step_by(1024) {
        let next = (first..count).take(1024);
        commit(database, next.filter_map(PageNumber::from_index), 1)?;
    }
    Ok(())
}

/// The next number of a simple sequence by chance.
pub fn next(state: u64) -> u64 {
    state
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407)
}
