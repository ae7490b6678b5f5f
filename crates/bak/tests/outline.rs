//! Copies of real backups in other media: their addresses, and what describes them.
mod common;

use windlass_bak::{Container, Original, Outline};

/// Everything that is replaced in the stream of a compressed file is in plain files as it is computed
/// for them: so the replacements are what a server would have written.
#[test]
fn a_plain_file_has_what_a_compressed_one_gets() {
    let mut checked = 0;
    for sample in common::samples() {
        let outline = Outline::read(&sample.bytes[..]).unwrap();
        if outline.container == Container::Compressed {
            assert!(outline.patches.len() >= 8, "{}", sample.name);
            continue;
        }
        for (at, bytes) in &outline.patches {
            let found = &sample.bytes[*at as usize..][..bytes.len()];
            assert_eq!(found, bytes, "{} at {at}", sample.name);
            checked += 1;
        }
    }
    assert!(checked == 0 || checked > 200, "{checked}");
}

#[test]
fn the_description_of_a_set_is_read_back_and_damage_in_it_is_no_panic() {
    for sample in common::samples() {
        let outlines = [Outline::read(&sample.bytes[..]).unwrap()];
        for index in 0..outlines[0].sets.len() {
            let stored = Original::store(&outlines, index).unwrap();
            assert!(stored.len() < 4096, "{} bytes", stored.len());
            let original = Original::load(&stored).unwrap();
            let (was, is) = (&outlines[0].sets[index].listing, &original.listing);
            assert_eq!((&was.header, &was.machine), (&is.header, &is.machine));
            assert_eq!((&was.start, &was.end), (&is.start, &is.end));
            assert_eq!(usize::from(original.set_count), outlines[0].sets.len());
            let part = original.families[0];
            let behind = outlines[0].sets.get(index + 1);
            let end = behind.map_or(outlines[0].stream_bytes, |next| next.begins);
            assert_eq!(part.end(), Some(end));
            for at in 0..stored.len() {
                assert_eq!(Original::load(&stored[..at]).map(drop), None, "cut at {at}");
                let mut flipped = stored.clone();
                flipped[at] ^= 1 << (at % 8);
                // Whatever it says now: only that it returns matters.
                std::hint::black_box(Original::load(&flipped));
            }
        }
    }
}
