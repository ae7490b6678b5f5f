//! The claims of a set are compared with its content: the number of chunks, their ordinals, and the
//! content of each file. A differential contains exactly what changed.

use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;

use windlass_codec::Compression;
use windlass_device::DeviceAddress;
use windlass_media::{Held, Run, chunk_mix};
use windlass_pipeline::{
    BackupKind, BackupRequest, Damage, DifferentialBase, Error, MediaSet, Unobserved, backup,
    extract_digests, verify,
};
use windlass_source::Recovery;

use crate::coverage::{EXTENT, in_extents, outcome, refused};
use crate::crafted::Crafted;
use crate::support::{
    Folder, back_up, devices, prepared, read_request, request, restore_to, same, snapshot,
};

#[test]
fn a_set_whose_chunks_have_other_numbers_than_it_says_is_refused() {
    let Folder { folder, database } = prepared(3000);
    let devices = devices(folder.path(), &["1.bak"]);
    let wanted = in_extents(request(&devices, Compression::NONE));
    backup(&wanted, snapshot(&database), &Unobserved).unwrap();
    let whole = std::fs::read(devices[0].file().unwrap()).unwrap();
    let count = Crafted::of(&devices, 1).chunks.len() as u64;
    // The last chunk has the ordinal of the first, or the one after the last.
    for number in [0, count, count + 100] {
        std::fs::write(devices[0].file().unwrap(), &whole).unwrap();
        let mut crafted = Crafted::of(&devices, 1);
        crafted.agree();
        let header = &mut crafted.chunks.last_mut().unwrap().header;
        let mixed = |ordinal| chunk_mix(ordinal, header.raw_checksum);
        let change = mixed(number).wrapping_sub(mixed(header.ordinal));
        header.ordinal = number;
        crafted.set.set_checksum = crafted.set.set_checksum.wrapping_add(change);
        crafted.write();
        let damage = refused(&devices);
        let is_number =
            matches!(damage, Damage::UnexpectedChunk { ordinal, .. } if ordinal == number);
        assert!(is_number, "{damage}");
    }
}

#[test]
fn more_chunks_than_the_media_can_hold_are_refused_before_room_is_made_for_them() {
    let Folder { folder, database } = prepared(300);
    let devices = devices(folder.path(), &["1.bak"]);
    backup(
        &request(&devices, Compression::NONE),
        snapshot(&database),
        &Unobserved,
    )
    .unwrap();
    let mut crafted = Crafted::of(&devices, 1);
    crafted.agree();
    crafted.set.chunk_count = u64::MAX;
    crafted.write();
    let damage = refused(&devices);
    assert!(
        matches!(
            damage,
            Damage::MissingChunks {
                expected: u64::MAX,
                ..
            }
        ),
        "{damage}"
    );
    let media = MediaSet::open(&devices).unwrap();
    windlass_pipeline::check(&media, 1, &read_request().keys).unwrap_err();
}

#[test]
fn as_many_chunks_as_fit_the_media_are_looked_for_and_not_one_more() {
    let Folder { folder, database } = prepared(300);
    let devices = devices(folder.path(), &["1.bak"]);
    back_up(&database, &request(&devices, Compression::NONE));
    // The header of a stream and that of a chunk are the least that one takes.
    let most = std::fs::metadata(devices[0].file().unwrap()).unwrap().len() / (22 + 64);
    for (count, fits) in [(most, true), (most + 1, false)] {
        let mut crafted = Crafted::of(&devices, 1);
        crafted.agree();
        crafted.set.chunk_count = count;
        crafted.write();
        let media = MediaSet::open(&devices).unwrap();
        let checked = windlass_pipeline::check(&media, 1, &read_request().keys);
        assert_eq!(checked.is_ok(), fits, "{count} of {most}: {checked:?}");
    }
}

#[test]
fn a_set_that_states_frames_of_no_bytes_is_read_all_the_same() {
    let Folder { folder, database } = prepared(3000);
    let devices = devices(folder.path(), &["1.bak"]);
    back_up(&database, &in_extents(request(&devices, Compression::NONE)));
    let mut crafted = Crafted::of(&devices, 1);
    crafted.agree();
    crafted.set.frame_bytes = 0;
    crafted.write();
    outcome(&devices, &read_request()).unwrap();
}

#[test]
fn a_count_of_chunks_that_is_not_theirs_is_refused() {
    let Folder { folder, database } = prepared(300);
    let devices = devices(folder.path(), &["1.bak"]);
    back_up(&database, &request(&devices, Compression::NONE));
    let mut crafted = Crafted::of(&devices, 1);
    crafted.agree();
    let count = crafted.set.chunk_count;
    crafted.set.chunk_count = count + 1;
    crafted.write();
    let damage = refused(&devices);
    let is_count = matches!(
        damage,
        Damage::MissingChunks { found, expected } if (found, expected) == (count, count + 1)
    );
    assert!(is_count, "{damage}");
}

#[test]
fn the_sum_of_what_a_set_holds_stands_for_its_runs() {
    let Folder { folder, database } = prepared(3000);
    let devices = devices(folder.path(), &["1.bak"]);
    back_up(&database, &in_extents(request(&devices, Compression::NONE)));
    let extents = std::fs::metadata(&database).unwrap().len().div_ceil(EXTENT);
    let saying = |run: std::ops::Range<u64>| {
        let mut crafted = Crafted::of(&devices, 1);
        crafted.agree();
        crafted.set.files[0].held = Held::store(std::iter::once(run), 0);
        assert!(matches!(
            Held::parse(&crafted.set.files[0].held),
            Some(Held::Sum { .. })
        ));
        crafted.write();
    };
    saying(0..extents);
    outcome(&devices, &read_request()).unwrap();
    // As many, but others; fewer; more.
    for (run, is_other) in [
        (1..extents + 1, true),
        (0..extents - 1, true),
        (0..extents + 2, false),
    ] {
        saying(run);
        match refused(&devices) {
            Damage::OtherExtents { .. } => assert!(is_other),
            Damage::Missing(missing) => {
                assert!(!is_other);
                assert_eq!(missing.bytes, 2 * EXTENT);
            }
            damage => panic!("{damage}"),
        }
    }
}

#[test]
fn damage_between_the_chunks_is_told_as_what_it_is_and_not_as_what_follows_from_it() {
    let Folder { folder, database } = prepared(3000);
    let devices = devices(folder.path(), &["1.bak"]);
    back_up(&database, &in_extents(request(&devices, Compression::NONE)));
    let mut family = std::fs::read(devices[0].file().unwrap()).unwrap();
    let chunk = Crafted::of(&devices, 1).chunks[4].payload.clone();
    let at = family.windows(chunk.len()).position(|found| found == chunk);
    // The end of its header.
    family[at.unwrap() - 3] ^= 1;
    std::fs::write(devices[0].file().unwrap(), &family).unwrap();
    let media = MediaSet::open(&devices).unwrap();
    let error = verify(&media, 1, &read_request(), &Unobserved).unwrap_err();
    assert!(
        matches!(&error, Error::Media { device, .. } if device.ends_with("1.bak")),
        "{error}"
    );
}

/// A full backup, and a differential based on it after `change`.
pub(crate) fn with_differential(
    folder: &Path,
    database: &Path,
    compression: Compression,
    change: impl FnOnce(),
) -> [DeviceAddress; 2] {
    let all = devices(folder, &["full.bak", "diff.bak"]);
    let full = back_up(database, &request(&all[..1], compression)).set;
    change();
    let media = MediaSet::open(&all[..1]).unwrap();
    let digests = extract_digests(&media, 1, &folder.join("digests")).unwrap();
    let differential = BackupRequest {
        kind: BackupKind::Differential(DifferentialBase {
            set_guid: full.set_guid,
            lsn: full.checkpoint_lsn,
            digests: Some(Arc::new(digests)),
        }),
        ..request(&all[1..], compression)
    };
    back_up(database, &differential);
    all.try_into().unwrap()
}

pub(crate) fn restored(folder: &Path, media: &[DeviceAddress; 2]) -> std::path::PathBuf {
    let target = folder.join("copy.db");
    let [full, differential] = media;
    let open = |device: &DeviceAddress| MediaSet::open(std::slice::from_ref(device)).unwrap();
    restore_to(&open(full), 1, &target, Recovery::NoRecovery).unwrap();
    restore_to(&open(differential), 1, &target, Recovery::Recovery).unwrap();
    target
}

#[test]
fn a_differential_of_scattered_changes_names_each_and_puts_each_back_where_it_was() {
    let Folder { folder, database } = prepared(3000);
    let media = with_differential(folder.path(), &database, Compression::NONE, || {
        let file = std::fs::File::options().write(true).open(&database);
        let file = file.unwrap();
        for extent in [1, 2, 5, 9] {
            file.write_all_at(b"changed", extent * EXTENT + 3000)
                .unwrap();
        }
    });
    let differential = Crafted::of(&media[1..], 1);
    let runs: Vec<Run> = differential
        .chunks
        .iter()
        .flat_map(|chunk| chunk.header.runs.clone())
        .collect();
    let run = |first: u64, count: u64| Run {
        offset: first * EXTENT,
        bytes: (count * EXTENT) as u32,
    };
    assert_eq!(runs, [run(1, 2), run(5, 1), run(9, 1)]);
    assert!(same(&database, &restored(folder.path(), &media)));
}

#[test]
fn a_differential_of_a_database_in_which_nothing_changed_is_whole() {
    let Folder { folder, database } = prepared(300);
    let media = with_differential(folder.path(), &database, Compression::NONE, || {});
    outcome(&media[1..], &read_request()).unwrap();
    assert!(same(&database, &restored(folder.path(), &media)));
}
