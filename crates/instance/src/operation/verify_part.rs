//! Reads a part of a backup set and checks that: `windlass verify --subset 2/7`.
//!
//! Which chunks a part has depends on where they are in the database, so that the parts of all numbers have each
//! chunk once, today and tomorrow. The log of a set is in every part. What was not read is not called valid, and the
//! ledger of proofs gets no entry but that of damage.

use std::cell::Cell;

use windlass_base::checksum::checksum;
use windlass_base::message::table;
use windlass_base::size::Bytes;
use windlass_catalog::Depth;
use windlass_pipeline::{ReadRequest, Selection, restore_selected};

use super::history;
use super::media::OpenedSet;
use super::observer::Watch;
use crate::{Failure, Session, Sink};

/// A part of a set: the `number`th of `of`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// From 1 on.
    pub number: u32,
    pub of: u32,
}

impl Part {
    /// The finest.
    pub const OF_MAX: u32 = 1000;

    /// Whether it has the chunk that begins there.
    fn has(self, file_id: u16, offset: u64) -> bool {
        let mut place = [0; 10];
        place[..2].copy_from_slice(&file_id.to_le_bytes());
        place[2..].copy_from_slice(&offset.to_le_bytes());
        checksum(&place) % u64::from(self.of) == u64::from(self.number.saturating_sub(1))
    }
}

/// Takes what is read of a part, and keeps nothing: that it arrives is the proof.
struct Checked {
    part: Part,
    /// Bytes of data in the set, and in the part.
    all: Cell<u64>,
    chosen: Cell<u64>,
}

impl Selection for Checked {
    fn wants(&self, file_id: u16, offset: u64, bytes: u64) -> bool {
        let is_chosen = self.part.has(file_id, offset);
        self.all.update(|all| all + bytes);
        if is_chosen {
            self.chosen.update(|chosen| chosen + bytes);
        }
        is_chosen
    }

    fn take(
        &mut self,
        _file_id: u16,
        _offset: u64,
        _bytes: &[u8],
    ) -> Result<(), windlass_source::Error> {
        Ok(())
    }
}

/// Checks a part of a set that must be complete, and says how much that was.
pub(super) fn run(
    session: &mut Session,
    opened: &OpenedSet,
    part: Part,
    request: &ReadRequest,
    stats: Option<u32>,
    sink: &mut dyn Sink,
) -> Result<(), Failure> {
    let mut checked = Checked {
        part,
        all: Cell::new(0),
        chosen: Cell::new(0),
    };
    let read = {
        let watch = Watch::new(session, super::VERIFICATION, "", stats, sink);
        let (media, position) = (&opened.media, opened.position);
        let read = restore_selected(media, position, request, &mut checked, &watch);
        if read.is_ok() {
            watch.finish();
        }
        read
    };
    let (bytes, _) = read.map_err(|error| {
        let failure = Failure::from(error);
        history::record_verification(session, opened, Depth::Content, Some(&failure));
        failure
    })?;
    let unread = checked.all.get() - checked.chosen.get();
    if bytes == 0 && unread > 0 {
        let (number, of, position) = (part.number, part.of, opened.position);
        sink.message(table::set_part_empty(number, of, position, Bytes(unread)));
        return Ok(());
    }
    sink.message(table::set_part_right(
        part.number,
        part.of,
        opened.position,
        Bytes(bytes),
        Bytes(bytes + unread),
    ));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_have_each_chunk_once_and_about_as_many() {
        let mut counts = [0; 7];
        for chunk in 0..7000 {
            let having = (1..=7).filter(|&number| Part { number, of: 7 }.has(1, chunk << 20));
            let having: Vec<u32> = having.collect();
            assert_eq!(having.len(), 1, "{chunk}");
            counts[having[0] as usize - 1] += 1;
        }
        assert!(
            counts.iter().all(|count| (900..1100).contains(count)),
            "{counts:?}"
        );
    }
}
