//! What the content of a database of the page engine looks like.

use std::sync::Arc;

use windlass_base::PageNumber;
use windlass_engine::Database;

use super::FIRST_BYTES;
use crate::Content;

/// Judges a database by the beginning of its first page, as of its last commit. A page that cannot be read is no
/// verdict: whoever reads the rest of it reports that.
pub fn content(database: &Arc<Database>) -> Content {
    let now = database.begin_read();
    let mut start = [0; FIRST_BYTES.len()];
    if now.page_count() == 0 {
        return Content::Database;
    }
    match now.read_part(PageNumber::FIRST, 0, &mut start) {
        Ok(()) if start != *FIRST_BYTES => Content::Unknown,
        _ => Content::Database,
    }
}
