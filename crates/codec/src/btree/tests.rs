use proptest::prelude::*;

use super::*;

fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = vec![(value & 0x7F) as u8];
    while value > 0x7F {
        value >>= 7;
        bytes.insert(0, 0x80 | (value & 0x7F) as u8);
    }
    bytes
}

/// A cell with a payload that fits into its page.
fn cell(kind: u8, rowid: u64, payload: &[u8]) -> Vec<u8> {
    let child = [0, 0, 1, 2];
    let length = varint(payload.len() as u64);
    match kind {
        2 => [&child[..], &length, payload].concat(),
        5 => [&child[..], &varint(rowid)].concat(),
        10 => [&length[..], payload].concat(),
        _ => [&length[..], &varint(rowid), payload].concat(),
    }
}

/// A page whose cells were added one after the other, as far as there is room, with `gap` bytes between.
fn page(pages: BTreePages, kind: u8, cells: &[Vec<u8>], gap: usize) -> Vec<u8> {
    let mut page = vec![0x11; pages.page_bytes as usize];
    let header = Kind::from_byte(kind).unwrap().header_bytes();
    page[..header].fill(0);
    let (mut end, mut count) = (pages.usable_bytes(), 0);
    for cell in cells {
        let bytes = cell.len().max(4) + gap;
        let pointer = header + 2 * count;
        if end < pointer + 2 + bytes {
            break;
        }
        end -= bytes;
        page[end..end + cell.len()].copy_from_slice(cell);
        put_u16(&mut page, pointer, end as u16);
        count += 1;
    }
    page[0] = kind;
    put_u16(&mut page, CELL_COUNT_AT, count as u16);
    put_u16(&mut page, CONTENT_START_AT, end as u16);
    page
}

fn comes_back(chunk: &[u8], pages: BTreePages) -> bool {
    let mut form = chunk.to_vec();
    let changed = promises(chunk, pages) && regularize(chunk, &mut form, pages);
    if changed {
        assert_eq!(restore(&mut form, pages), Ok(()));
    }
    assert!(form == chunk, "{pages:?}");
    changed
}

fn layouts() -> impl Iterator<Item = BTreePages> {
    let lengths = (9..=16).map(|power| 1 << power);
    lengths.flat_map(|length| [0, 8, 31].map(|reserved| BTreePages::new(length, reserved).unwrap()))
}

#[test]
fn only_pages_that_sqlite_has_are_a_layout() {
    for (page_bytes, reserved) in [(0, 0), (256, 0), (768, 0), (131_072, 0), (512, 33)] {
        assert_eq!(BTreePages::new(page_bytes, reserved), None, "{page_bytes}");
    }
    assert!(BTreePages::new(512, 32).is_some() && BTreePages::new(65_536, 255).is_some());
}

#[test]
fn pointers_and_rowids_of_a_page_filled_in_order_become_zeros() {
    for pages in layouts() {
        let rows = (1000..).map(|rowid| cell(13, rowid, &[7; 20]));
        let rows: Vec<_> = rows.take(pages.page_bytes as usize / 20).collect();
        let chunk = page(pages, 13, &rows, 0);
        let mut form = chunk.clone();
        assert!(regularize(&chunk, &mut form, pages));
        assert_eq!(form[0], 0x8D);
        let shape = Shape::of(&chunk, Kind::LeafTable, pages.usable_bytes()).unwrap();
        assert!(
            form[shape.pointer_at(0)..shape.pointers_end()]
                .iter()
                .all(|byte| *byte == 0)
        );
        for index in 0..shape.cells - 1 {
            let at = usize::from(u16_at(&chunk, shape.pointer_at(index)));
            assert_eq!(form[at..at + 3], [20, 0x80, 0], "row {index}");
        }
        // The last row keeps its own.
        let at = usize::from(u16_at(&chunk, shape.pointer_at(shape.cells - 1)));
        assert_eq!(form[at..at + 3], chunk[at..at + 3]);
        assert!(comes_back(&chunk, pages));
    }
}

#[test]
fn pages_that_overlap_are_out_of_order_or_marked_stay_as_they_are() {
    let pages = BTreePages::new(1024, 0).unwrap();
    let rows: Vec<_> = (1..9).map(|rowid| cell(13, rowid, &[7; 20])).collect();
    let good = page(pages, 13, &rows, 0);
    let pointer = |index: usize| 8 + 2 * index;
    let mut overlapping = good.clone();
    let first = u16_at(&good, pointer(0));
    put_u16(&mut overlapping, pointer(1), first - 5);
    let mut twice = good.clone();
    put_u16(&mut twice, pointer(1), first);
    let mut over_pointers = good.clone();
    put_u16(&mut over_pointers, pointer(7), 10);
    let mut beyond = good.clone();
    put_u16(&mut beyond, pointer(0), 1023);
    for page in [&overlapping, &twice, &over_pointers, &beyond] {
        let mut form = page.clone();
        assert!(!regularize(page, &mut form, pages) && form == *page);
    }
    let mut marked = good.clone();
    marked[0] |= REGULAR;
    assert!(promises(&good, pages));
    assert!(!promises(&[good, marked].concat(), pages));
}

/// A file may be longer than its pages. What is reserved of the last one may be all that it lacks.
#[test]
fn a_page_that_is_cut_stays_as_it_is() {
    let pages = BTreePages::new(1024, 31).unwrap();
    let rows: Vec<_> = (1..9).map(|rowid| cell(13, rowid, &[7; 20])).collect();
    let whole = page(pages, 13, &rows, 0);
    for length in [1, 500, 992, 993, 1000, 1023] {
        let chunk = [&whole[..], &whole[..length]].concat();
        assert!(comes_back(&chunk, pages), "{length}");
    }
}

#[test]
fn a_page_that_is_no_regular_form_is_an_error() {
    let pages = BTreePages::new(1024, 0).unwrap();
    let rows: Vec<_> = (1..9).map(|rowid| cell(13, rowid, &[7; 20])).collect();
    let chunk = page(pages, 13, &rows, 0);
    let mut form = chunk.clone();
    assert!(regularize(&chunk, &mut form, pages));
    for (at, bytes) in [
        (CELL_COUNT_AT, [0, 0]),
        (CELL_COUNT_AT, [9, 0]),
        (8, [3, 9]),
    ] {
        let mut wrong = form.clone();
        wrong[at..at + 2].copy_from_slice(&bytes);
        assert!(restore(&mut wrong, pages).is_err(), "{at} {bytes:?}");
    }
}

/// Chunks of a few pages: of every kind, with rowids that rise, fall and have every length.
fn chunks() -> impl Strategy<Value = (BTreePages, Vec<u8>)> {
    let layout = (9..13_u32, prop::sample::select(vec![0_u8, 8, 31]));
    let rowid = prop_oneof![0..300_u64, any::<u64>().prop_map(|any| any >> (any % 64))];
    let cells = prop::collection::vec((rowid, prop::collection::vec(any::<u8>(), 0..90)), 1..60);
    let kind = prop::sample::select(vec![2_u8, 5, 10, 13, 13]);
    let gap = prop_oneof![Just(0_usize), 0..9_usize];
    let damage = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..3);
    let page_of = (kind, cells, gap, damage);
    (layout, prop::collection::vec(page_of, 1..5)).prop_map(|((power, reserved), all)| {
        let pages = BTreePages::new(1 << power, reserved).unwrap();
        let chunk = all.into_iter().flat_map(|(kind, cells, gap, damage)| {
            let cells: Vec<_> = cells
                .into_iter()
                .map(|(rowid, payload)| cell(kind, rowid >> 8, &payload))
                .collect();
            let mut page = page(pages, kind, &cells, gap);
            for (at, byte) in damage {
                let at = at.index(page.len());
                page[at] = byte;
            }
            page
        });
        (pages, chunk.collect())
    })
}

proptest! {
    #[test]
    fn every_chunk_comes_back((pages, chunk) in chunks()) {
        comes_back(&chunk, pages);
    }

    #[test]
    fn a_damaged_form_is_restored_to_something_or_refused(
        (pages, chunk) in chunks(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..9),
    ) {
        let mut form = chunk.clone();
        regularize(&chunk, &mut form, pages);
        for (at, byte) in damage {
            let at = at.index(form.len());
            form[at] = byte;
        }
        let _refused = restore(&mut form, pages);
    }
}
