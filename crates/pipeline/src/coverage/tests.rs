#![expect(clippy::single_range_in_vec_init, reason = "one run is one range here")]

use super::*;

const EXTENT: u64 = EXTENT_BYTES as u64;

fn coverage(size_bytes: u64) -> Coverage {
    let file = |file_id, is_log| CoveredFile {
        file_id,
        is_log,
        name: format!("f{file_id}"),
        size_bytes,
    };
    Coverage::new([file(1, false), file(2, true)].into_iter())
}

fn run(offset: u64, bytes: u64) -> Run {
    Run {
        offset,
        bytes: bytes as u32,
    }
}

fn missing(coverage: &Coverage, file_id: u16, wanted: &[Range<u64>]) -> Vec<(u64, u64)> {
    let mut ranges = FileRanges::default();
    coverage.missing(file_id, wanted.iter().cloned(), &mut ranges);
    let named = ranges.named.iter();
    named.map(|gap| (gap.offset, gap.bytes)).collect()
}

fn unexpected(coverage: &Coverage, file_id: u16, wanted: &[Range<u64>]) -> Vec<(u64, u64)> {
    let mut ranges = FileRanges::default();
    coverage.unexpected(file_id, wanted.iter().cloned(), &mut ranges);
    let named = ranges.named.iter();
    named.map(|gap| (gap.offset, gap.bytes)).collect()
}

#[test]
fn what_nobody_claimed_is_missing_and_what_nobody_wanted_is_unexpected() {
    let size = 200 * EXTENT + 5;
    let coverage = coverage(size);
    let hold = |first: u64, count: u64| {
        let end = ((first + count) * EXTENT).min(size);
        let runs = [run(first * EXTENT, end - first * EXTENT)];
        coverage.hold(ChunkKind::Data, 1, &runs)
    };
    for (first, count) in [(70, 100), (0, 63), (64, 1), (200, 1)] {
        hold(first, count).unwrap();
    }
    coverage.leave_out(1, 63 * EXTENT..64 * EXTENT).unwrap();
    assert_eq!(
        missing(&coverage, 1, &[0..size]),
        [(65 * EXTENT, 5 * EXTENT), (170 * EXTENT, 30 * EXTENT)]
    );
    assert_eq!(
        unexpected(&coverage, 1, &[0..EXTENT, 64 * EXTENT..size]),
        [(EXTENT, 62 * EXTENT), (63 * EXTENT, EXTENT)]
    );
    hold(65, 5).unwrap();
    hold(170, 30).unwrap();
    assert!(missing(&coverage, 1, &[0..size]).is_empty());
    assert!(unexpected(&coverage, 1, &[0..size]).is_empty());
    assert_eq!(coverage.held_bytes(1), size - EXTENT);
    assert_eq!(coverage.held_extents(1), [0..63, 64..201]);
}

#[test]
fn what_lies_behind_the_end_of_a_file_is_told_with_its_length() {
    let coverage = coverage(2 * EXTENT);
    coverage
        .hold(ChunkKind::Data, 1, &[run(2 * EXTENT, EXTENT)])
        .unwrap();
    assert_eq!(
        unexpected(&coverage, 1, &[0..2 * EXTENT]),
        [(2 * EXTENT, EXTENT)]
    );
}

#[test]
fn nothing_is_claimed_twice_nor_by_halves_nor_outside_of_its_file() {
    let size = 10 * EXTENT + 5;
    let coverage = coverage(size);
    let hold = |runs: &[Run]| coverage.hold(ChunkKind::Data, 1, runs);
    hold(&[run(EXTENT, EXTENT)]).unwrap();
    assert_eq!(
        hold(&[run(5 * EXTENT, EXTENT), run(0, 3 * EXTENT)]),
        Err(Refusal::Twice)
    );
    assert_eq!(
        coverage.held_extents(1),
        [1..2],
        "all of a chunk or nothing"
    );
    assert_eq!(
        hold(&[run(2 * EXTENT, EXTENT), run(2 * EXTENT, EXTENT)]),
        Err(Refusal::Twice)
    );
    for (offset, bytes) in [
        (7, EXTENT - 7),
        (3 * EXTENT, 7),
        (10 * EXTENT, 6),
        (9 * EXTENT, 0),
    ] {
        assert_eq!(hold(&[run(offset, bytes)]), Err(Refusal::Misplaced));
    }
    assert_eq!(
        coverage.hold(ChunkKind::Log, 1, &[run(0, EXTENT)]),
        Err(Refusal::Misplaced)
    );
    assert_eq!(
        coverage.hold(ChunkKind::Data, 3, &[run(0, EXTENT)]),
        Err(Refusal::Misplaced)
    );
    assert_eq!(coverage.leave_out(1, 0..2 * EXTENT), Err(Refusal::Twice));
    coverage.leave_out(1, 0..EXTENT).unwrap();
    assert_eq!(hold(&[run(0, EXTENT)]), Err(Refusal::Twice));
    hold(&[run(10 * EXTENT, 5)]).unwrap();
    assert_eq!(coverage.held_bytes(1), EXTENT + 5);
}

#[test]
fn pieces_of_the_log_join_in_any_order_and_never_overlap() {
    let coverage = coverage(1000);
    let hold = |offset, bytes| coverage.hold(ChunkKind::Log, 2, &[run(offset, bytes)]);
    for (offset, bytes) in [(500, 100), (0, 100), (300, 200), (100, 100)] {
        hold(offset, bytes).unwrap();
    }
    for (offset, bytes) in [(50, 10), (150, 100), (250, 51), (0, 1000), (599, 1)] {
        assert_eq!(hold(offset, bytes), Err(Refusal::Twice));
    }
    assert_eq!(hold(900, 101), Err(Refusal::Misplaced));
    assert_eq!(hold(900, 0), Err(Refusal::Misplaced));
    assert_eq!(missing(&coverage, 2, &[0..600]), [(200, 100)]);
    hold(200, 100).unwrap();
    assert!(missing(&coverage, 2, &[0..600]).is_empty());
    assert_eq!(unexpected(&coverage, 2, &[0..599]), [(599, 1)]);
    assert_eq!(coverage.files()[1].log.len(), 1, "joined to one");
}

#[test]
fn bytes_that_the_target_did_not_take_are_told() {
    let coverage = coverage(EXTENT);
    coverage
        .hold(ChunkKind::Data, 1, &[run(0, EXTENT)])
        .unwrap();
    coverage.write(1, EXTENT - 1);
    assert_eq!(
        coverage.unwritten(),
        Some(("f1".to_owned(), EXTENT - 1, EXTENT))
    );
    coverage.write(1, 1);
    assert_eq!(coverage.unwritten(), None);
}

#[test]
fn a_report_names_a_thousand_ranges_and_counts_the_rest() {
    let size = 5000 * EXTENT;
    let coverage = coverage(size);
    let mut ranges = FileRanges::default();
    let wanted = (0..2500).map(|number| 2 * number * EXTENT..(2 * number + 1) * EXTENT);
    coverage.missing(1, wanted, &mut ranges);
    assert_eq!(
        (ranges.named.len(), ranges.count, ranges.bytes),
        (NAMED_MAX, 2500, 2500 * EXTENT)
    );
    assert_eq!(
        ranges.to_string(),
        "file 'f1' (1), bytes 0 to 65535 (8 KB pages 0 to 7) (2499 more ranges with 163774464 bytes follow)"
    );
}

#[test]
fn one_stretch_is_told_alone_and_what_has_no_place_is_counted() {
    let coverage = coverage(5 * EXTENT);
    let mut one = FileRanges::default();
    assert!(one.is_empty());
    coverage.name(1, &[run(EXTENT, EXTENT)], &mut one);
    assert!(!one.is_empty());
    assert_eq!(
        one.to_string(),
        "file 'f1' (1), bytes 65536 to 131071 (8 KB pages 8 to 15)"
    );
    let mut nowhere = FileRanges::default();
    nowhere.add_unplaced(7);
    nowhere.add_unplaced(5);
    assert_eq!((nowhere.count, nowhere.bytes), (2, 12));
    assert_eq!(
        nowhere.to_string(),
        "12 bytes at places that the set does not name"
    );
}

#[test]
fn a_stretch_ends_with_its_file_unless_it_begins_behind_it() {
    let size = 2 * EXTENT + 5;
    let coverage = coverage(size);
    assert_eq!(missing(&coverage, 1, &[0..size]), [(0, size)]);
    let behind = [run(5 * EXTENT, EXTENT)];
    coverage.hold(ChunkKind::Data, 1, &behind).unwrap();
    assert_eq!(unexpected(&coverage, 1, &[0..size]), [(5 * EXTENT, EXTENT)]);
}

#[test]
fn what_is_lost_is_claimed_and_counts_as_nothing_held() {
    let coverage = coverage(5 * EXTENT);
    let lose = |offset| coverage.lose(ChunkKind::Data, 1, &[run(offset, EXTENT)]);
    let hold = |offset| coverage.hold(ChunkKind::Data, 1, &[run(offset, EXTENT)]);
    hold(0).unwrap();
    lose(EXTENT).unwrap();
    assert_eq!(coverage.held_bytes(1), EXTENT);
    assert_eq!(hold(EXTENT), Err(Refusal::Twice));
    assert_eq!(lose(EXTENT), Err(Refusal::Twice));
    assert_eq!(coverage.held_bytes(1), EXTENT);
    assert_eq!(missing(&coverage, 1, &[0..2 * EXTENT]), []);
}

#[test]
fn the_end_of_the_source_tells_the_length_of_its_own_log_only() {
    let coverage = coverage(EXTENT);
    assert!(!coverage.is_source_ended());
    assert_eq!(coverage.log_bytes(2), 0);
    coverage.end_source(Some((2, 700)));
    assert!(coverage.is_source_ended());
    assert_eq!((coverage.log_bytes(2), coverage.log_bytes(1)), (700, 0));
    coverage.end_source(None);
    assert!(coverage.is_source_ended());
    assert_eq!(coverage.log_bytes(2), 0);
}

#[test]
fn a_backup_that_cannot_account_for_a_stretch_names_it() {
    let coverage = coverage(5 * EXTENT);
    let reported = |refusal| coverage.not_stored(1, EXTENT..3 * EXTENT, refusal);
    let expected = FileRanges {
        named: vec![FileRange {
            file_id: 1,
            file: "f1".to_owned(),
            offset: EXTENT,
            bytes: 2 * EXTENT,
        }],
        count: 1,
        bytes: 2 * EXTENT,
    };
    assert!(matches!(reported(Refusal::Misplaced), Error::NotStored(found) if found == expected));
    assert!(matches!(reported(Refusal::Twice), Error::StoredTwice(found) if found == expected));
}
