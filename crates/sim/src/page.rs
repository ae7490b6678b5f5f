//! The content of pages.

use std::sync::Arc;

use windlass_base::{PAGE_BYTES, PageNumber};

use crate::world::World;

impl World {
    /// A new page, or a few bytes changed.
    pub(crate) fn content(&mut self, page: PageNumber, old: Option<&Arc<[u8]>>) -> Vec<u8> {
        let mut content = match old {
            Some(old) if self.rng.chance(70) => old.to_vec(),
            _ => {
                let fill = self.rng.draw() as u8;
                vec![fill; PAGE_BYTES]
            }
        };
        for _ in 0..self.rng.below(4) {
            let start = self.rng.below(PAGE_BYTES as u64) as usize;
            let end = (start + 1 + self.rng.below(200) as usize).min(PAGE_BYTES);
            let byte = self.rng.draw() as u8;
            content[start..end].fill(byte);
        }
        if page == PageNumber::FIRST {
            content[..16].copy_from_slice(b"SQLite format 3\0");
            content[20] = if self.checksums { 8 } else { 0 };
        }
        content
    }
}
