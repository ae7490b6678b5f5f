//! Chosen ranges of a set: found through its index, all of them, and nothing else in their place.

use std::cell::RefCell;

use windlass_base::EXTENT_BYTES;
use windlass_codec::Compression;
use windlass_media::FamilyReader;
use windlass_pipeline::{Damage, Error, MediaSet, Selection, Unobserved, restore_selected};

use crate::coverage::{EXTENT, in_extents};
use crate::crafted::{Chunk, Crafted};
use crate::support::{Folder, back_up, devices, prepared, read_request, request};

/// Wants extents and counts what comes; once something is asked for, does something to the media.
struct Chosen<'a> {
    wants: fn(u64) -> bool,
    taken: Vec<u64>,
    first_asked: RefCell<Option<Box<dyn FnOnce() + 'a>>>,
}

impl<'a> Chosen<'a> {
    fn new(wants: fn(u64) -> bool, first_asked: impl FnOnce() + 'a) -> Self {
        Self {
            wants,
            taken: Vec::new(),
            first_asked: RefCell::new(Some(Box::new(first_asked))),
        }
    }
}

impl Selection for Chosen<'_> {
    fn wants(&self, file_id: u16, offset: u64, bytes: u64) -> bool {
        assert!(file_id == 1 && bytes <= EXTENT);
        if let Some(work) = self.first_asked.take() {
            work();
        }
        (self.wants)(offset / EXTENT)
    }

    fn take(
        &mut self,
        _file_id: u16,
        offset: u64,
        bytes: &[u8],
    ) -> Result<(), windlass_source::Error> {
        assert_eq!(bytes.len(), EXTENT_BYTES);
        self.taken.push(offset / EXTENT);
        Ok(())
    }
}

#[test]
fn chunks_are_found_in_every_segment_of_the_index() {
    let folder = tempfile::tempdir().unwrap();
    let database = folder.path().join("app.db");
    let file = std::fs::File::create(&database).unwrap();
    // More than a segment describes.
    file.set_len(1100 * EXTENT).unwrap();
    let devices = devices(folder.path(), &["1.bak"]);
    back_up(&database, &in_extents(request(&devices, Compression::NONE)));
    let media = MediaSet::open(&devices).unwrap();
    let mut chosen = Chosen::new(|extent| extent % 50 == 7, || ());
    restore_selected(&media, 1, &read_request(), &mut chosen, &Unobserved).unwrap();
    let expected: Vec<u64> = (0..1100).filter(|extent| extent % 50 == 7).collect();
    assert_eq!(chosen.taken, expected);
}

#[test]
fn a_chunk_that_is_not_the_one_of_the_index_is_refused() {
    let Folder { folder, database } = prepared(3000);
    let devices = devices(folder.path(), &["1.bak"]);
    back_up(&database, &in_extents(request(&devices, Compression::NONE)));
    let written = |swapped: bool| {
        let mut crafted = Crafted::of(&devices, 1);
        // Threads number them as they come: here chunk 2 is that of extent 2.
        let place = |chunk: &Chunk| chunk.header.runs[0].offset;
        crafted.chunks.sort_by_key(place);
        crafted.agree();
        if swapped {
            crafted.chunks.swap(2, 3);
        }
        crafted.write();
        std::fs::read(devices[0].file().unwrap()).unwrap()
    };
    let (swapped, ordered) = (written(true), written(false));
    assert_eq!(swapped.len(), ordered.len());
    let media = MediaSet::open(&devices).unwrap();
    // Somebody exchanges the two after the index was read.
    let exchange = || {
        use std::os::unix::fs::FileExt as _;
        let file = std::fs::File::options()
            .write(true)
            .open(devices[0].file().unwrap());
        file.unwrap().write_all_at(&swapped, 0).unwrap();
    };
    let mut chosen = Chosen::new(|extent| extent == 2, exchange);
    let refused = restore_selected(&media, 1, &read_request(), &mut chosen, &Unobserved);
    let Err(Error::SetDamaged { damage, .. }) = refused else {
        panic!("{refused:?}");
    };
    let is_foreign = matches!(damage, Damage::ForeignChunk { ordinal: 3, .. });
    assert!(is_foreign, "{damage}");
    assert!(chosen.taken.is_empty());
}

#[test]
fn plain_chunks_lie_where_direct_writes_may_begin_and_packed_ones_close_together() {
    let Folder { folder, database } = prepared(9000);
    for (name, compression) in [
        ("plain.bak", Compression::NONE),
        ("packed.bak", Compression::ZSTD_LOW),
    ] {
        let devices = devices(folder.path(), &[name]);
        back_up(&database, &in_extents(request(&devices, compression)));
        let family = std::fs::read(devices[0].file().unwrap()).unwrap();
        let family = family.as_slice();
        let (reader, _) = FamilyReader::open(&family).unwrap();
        let listing = reader.list();
        let (mut aligned, mut all) = (0, 0);
        let walked = reader.walk(&listing.sets[0], &mut |_, offset| {
            aligned += u32::from(offset.is_multiple_of(4096));
            all += 1;
            true
        });
        walked.unwrap();
        assert!(all > 1);
        assert_eq!(aligned == all, compression == Compression::NONE, "{name}");
    }
}
