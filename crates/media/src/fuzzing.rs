//! The reader's entry points, fed with arbitrary octets.

use crate::reader::FamilyReader;

/// Reads `data` as a media family through every entry point. Must neither panic nor run away.
pub fn fuzz_family(data: &[u8]) {
    let Ok((reader, _)) = FamilyReader::open(&data) else {
        return;
    };
    let listing = reader.list();
    for set in &listing.sets {
        // Whether the walk succeeds does not matter here, only that it comes back.
        drop(reader.walk(set, &mut |header, _| header.stored_bytes < u32::MAX));
    }
    for sets in 0..=listing.complete_sets() {
        assert!(listing.append_position(sets).offset <= data.len() as u64);
    }
}
