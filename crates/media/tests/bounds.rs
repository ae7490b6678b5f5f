//! The cost of reading a family is bounded by its length, whatever its content: counted as bytes
//! read and memory used, not as time.
#![expect(clippy::unwrap_used, reason = "a surprise fails the test")]
#![allow(unsafe_code, reason = "an allocator that counts")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::path::Path;

use windlass_media::craft::{self, Counted, Medium, Set};
use windlass_media::{FamilyReader, Listing, SetListing};

/// Listing reads at most this multiple of the family's length, as documented in
/// `docs/format/media.md`.
const READS: u64 = 10;
/// Constant part of the memory: one configuration with its files, one segment of the index, a scan
/// buffer.
const MEMORY: usize = 24 << 20;

struct Counting;

thread_local! {
    static LIVE: Cell<usize> = const { Cell::new(0) };
    static PEAK: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: every call goes to the system's allocator with the same arguments.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // Unavailable while a thread exits, which does not matter here.
        let counted = LIVE.try_with(|live| {
            live.set(live.get().wrapping_add(layout.size()));
            live.get()
        });
        if let Ok(now) = counted
            && now < usize::MAX / 2
        {
            let _gone = PEAK.try_with(|peak| peak.set(peak.get().max(now)));
        }
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        let _gone = LIVE.try_with(|live| live.set(live.get().wrapping_sub(layout.size())));
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn list(reader: &FamilyReader<'_>) -> Listing {
    reader.list()
}

/// Bytes read and memory used by `work` on a family.
fn cost<T>(bytes: &[u8], work: impl FnOnce(&FamilyReader<'_>) -> T) -> (u64, usize, T) {
    let family = Counted::new(bytes);
    let before = LIVE.get();
    PEAK.set(before);
    let (reader, _) = FamilyReader::open(&family).unwrap();
    let result = work(&reader);
    (family.read.get(), PEAK.get() - before, result)
}

/// Lists the sets of a family within the bounds; returns them.
fn listed(what: &str, bytes: &[u8]) -> Vec<SetListing> {
    let (read, memory, listing) = cost(bytes, list);
    assert!(
        read <= READS * bytes.len() as u64,
        "{what}: {read} bytes read of {}",
        bytes.len()
    );
    assert!(
        memory <= MEMORY + bytes.len(),
        "{what}: {memory} bytes of memory"
    );
    listing.sets
}

#[test]
fn overlapping_sets_are_read_once() {
    for bytes in [1 << 20, 9 << 20] {
        let content = craft::overlapping_sets(bytes);
        let sets = listed("overlapping", &content);
        assert!(
            sets.len() > bytes / 1100,
            "the filemarks lead to all of them"
        );
        assert!(sets.iter().all(|set| set.end.is_none()));
        // Also with breaks in the chain to them, or without its end.
        for step in [7, 51, 52] {
            let mut broken = content.clone();
            for block in broken.chunks_mut(512).skip(9).step_by(step) {
                block.fill(0);
            }
            listed("broken", &broken);
        }
        listed("cut", &content[..content.len() - 700]);
    }
}

#[test]
fn many_sets_with_many_files_are_listed_in_little_memory() {
    let bytes = craft::crowded_sets(6);
    assert!(bytes.len() > 40 << 20);
    let (_, memory, listing) = cost(&bytes, list);
    assert_eq!(listing.complete_sets(), 6);
    assert!(memory <= MEMORY, "{memory} bytes of memory");
    let set = &listing.sets[5];
    assert_eq!(set.configuration.files.len(), 1);
    let (read, memory, whole) = cost(&bytes, |reader| reader.configuration(set).unwrap());
    assert_eq!(whole.files.len(), 26_000);
    assert!(
        read <= bytes.len() as u64 && memory <= MEMORY,
        "{read}, {memory}"
    );
}

#[test]
fn a_good_family_is_listed_by_a_few_blocks() {
    let medium = (0..60).fold(Medium::new(), |medium, number| {
        medium.with(&Set::full(
            &format!("database {number}"),
            &[number; 200_000],
        ))
    });
    let bytes = medium.bytes();
    let (read, _, listing) = cost(&bytes, list);
    assert!(listing.trouble.is_none());
    assert_eq!(listing.complete_sets(), 60);
    assert!(read < bytes.len() as u64 / 20, "{read} of {}", bytes.len());
    // The label is in the first blocks, so it is readable without the end.
    let cut = &bytes[..bytes.len() - 1000];
    let (read, _, database) = cost(cut, |reader| reader.first_set().map(|set| set.database));
    assert_eq!(database.as_deref(), Some("database 0"));
    assert!(read < 8192, "{read}");
}

#[test]
fn crafted_media_are_good_but_for_what_was_asked() {
    let content: Vec<u8> = (0..300_000_u32).map(|at| (at / 7) as u8).collect();
    let mut hole = Set::full("shop", &content);
    hole.chunks.remove(2);
    let mut hostile = Set::full("a\u{1b}[31m\r\nMsg 0, OK", &content);
    hostile.configuration.files[0].physical_name = "/etc/cron.d/../x".to_owned();
    let base = Set::full("base", &content);
    let forged = Set::differential_upon(
        &base.configuration,
        vec![craft::Chunk::new(65536, b"FORGED")],
    );
    let medium = Medium::striped(2)
        .with(&hole)
        .with(&hostile)
        .with(&base)
        .with(&forged);
    for family in medium.families() {
        let bytes = family.as_slice();
        let (reader, _) = FamilyReader::open(&bytes).unwrap();
        let listing = reader.list();
        assert!(listing.trouble.is_none());
        assert_eq!(listing.sets.len(), 4);
        for set in &listing.sets {
            reader.walk(set, &mut |_, _| true).unwrap();
            reader.index(set, &mut |_| true).unwrap();
        }
        let headers = craft::sets(&family);
        assert_eq!(headers[0].chunk_count, 4);
        assert_eq!(headers[3].differential_base_guid, headers[2].set_guid);
        assert_eq!(headers[1].files[0].physical_name, "/etc/cron.d/../x");
    }
}

/// Crafted media are seeds of the fuzz target `media_family`, which enforces the same bounds for
/// all mutations.
#[test]
fn seeds_of_the_fuzzer_are_read_within_the_bounds() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/seeds");
    if std::env::var_os("WINDLASS_WRITE_GOLDEN").is_some() {
        let mut files = Set::full("files", b"x");
        files.configuration.files = (1..200)
            .map(|file_id| windlass_media::DatabaseFile {
                file_id,
                ..Default::default()
            })
            .collect();
        let mut hole = Set::full("hole", &[3; 1500]);
        hole.chunks = vec![
            craft::Chunk::new(0, &[3; 100]),
            craft::Chunk::new(400, &[4; 700]),
        ];
        let forged = Set::differential_upon(&hole.configuration, hole.chunks.clone());
        let medium = Medium::new().with(&hole).with(&forged);
        std::fs::create_dir_all(&folder).unwrap();
        let write = |name: &str, bytes: Vec<u8>| std::fs::write(folder.join(name), bytes).unwrap();
        write("overlapping.family", craft::overlapping_sets(70_000));
        write("crowded.family", Medium::new().with(&files).bytes());
        write("hole-and-forged.family", medium.bytes());
    }
    let mut seeds = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        windlass_media::fuzz_family(&std::fs::read(entry.unwrap().path()).unwrap());
        seeds += 1;
    }
    assert_eq!(seeds, 3);
    windlass_media::fuzz_family(&craft::overlapping_sets(2 << 20));
}
