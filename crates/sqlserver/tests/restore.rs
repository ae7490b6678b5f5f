//! Data files from real backups, checked page by page.
#![expect(clippy::unwrap_used, reason = "a test may")]

#[path = "../../bak/tests/common/mod.rs"]
mod common;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use windlass_bak::page::{PAGE_BYTES, PageHeader};
use windlass_bak::page_checksum;
use windlass_device::DeviceAddress;
use windlass_sqlserver::{Continuation, Destination, Error, Restored, Step, restore};

const CUBE: &str = "sql2008r2_lab_Cube_Query_History__";

fn steps(folder: &Path, names: &[&[&str]]) -> Vec<Step> {
    let step = |files: &&[&str]| Step {
        devices: files
            .iter()
            .map(|name| DeviceAddress::disk(folder.join(name)))
            .collect(),
        position: 1,
    };
    names.iter().map(step).collect()
}

fn restored(names: &[&[&str]], to: &Path) -> Option<Restored> {
    let folder = common::folder()?;
    let destination = Destination {
        folder: Some(to.to_owned()),
        ..Destination::default()
    };
    Some(restore(&steps(&folder, names), &destination).unwrap())
}

/// Checks that every allocated page of a data file has its own number and a correct checksum.
/// Returns their number.
fn check_pages(path: &Path, file: u16) -> u64 {
    let bytes = std::fs::read(path).unwrap();
    let page = |number: usize| &bytes[number * PAGE_BYTES..(number + 1) * PAGE_BYTES];
    assert_eq!(PageHeader::new(page(0)).page_type(), 15);
    if file == 1 {
        assert_eq!(PageHeader::new(page(9)).page_type(), 13);
    }
    let mut allocated = 0;
    for number in 0..bytes.len() / PAGE_BYTES {
        let pfs = if number < 8088 {
            1
        } else {
            number / 8088 * 8088
        };
        if page(pfs)[0x64 + number % 8088] & 0x40 == 0 {
            continue;
        }
        let found = PageHeader::new(page(number));
        assert_eq!((found.id().file, found.id().page), (file, number as u32));
        if found.has_checksum() {
            assert_eq!(found.checksum(), page_checksum(page(number)), "{number}");
        }
        allocated += 1;
    }
    allocated
}

#[test]
fn every_full_backup_gives_data_files_with_every_page_at_its_place() {
    let mut pages = BTreeMap::new();
    for sample in common::samples() {
        let is_half = sample.special().contains("stripe ");
        let is_damaged = sample.name == "sql2008r2_CorruptDB.bak";
        if !sample.special().starts_with("full;") || is_half || is_damaged {
            continue;
        }
        let to = tempfile::tempdir().unwrap();
        let restored = restored(&[&[&sample.name]], to.path()).unwrap();
        assert_eq!(restored.findings, [], "{}", sample.name);
        for file in &restored.files {
            let length = std::fs::metadata(&file.path).unwrap().len();
            assert_eq!(length, file.bytes, "{}", sample.name);
            if !file.is_log {
                let count = check_pages(&file.path, file.id);
                *pages.entry(sample.name.clone()).or_insert(0) += count;
            }
        }
        let left = std::fs::read_dir(to.path()).unwrap().count();
        assert_eq!(left, restored.files.len(), "nothing unfinished is left");
    }
    if !pages.is_empty() {
        assert_eq!(pages.len(), 18);
        assert_eq!(
            pages["sql2014c_AWDataWarehouse_copyonly_3datafiles.bak"],
            863
        );
    }
}

#[test]
fn the_read_only_file_is_the_one_that_the_server_wrote_but_for_its_header() {
    let to = tempfile::tempdir().unwrap();
    let name: &[&str] = &["sql2014c_AWDataWarehouse_copyonly_3datafiles.bak"];
    let Some(restored) = restored(&[name], to.path()) else {
        return;
    };
    let folder = common::folder().unwrap();
    let compare = |file: &Path, original: &str| {
        let ours = std::fs::read(file).unwrap();
        let theirs = std::fs::read(folder.join(original)).unwrap();
        let equal = ours.chunks(PAGE_BYTES).zip(theirs.chunks(PAGE_BYTES));
        (
            theirs.len() / PAGE_BYTES,
            equal.filter(|(a, b)| a == b).count(),
        )
    };
    let path = |id: u16| -> &PathBuf {
        &restored
            .files
            .iter()
            .find(|file| file.id == id)
            .unwrap()
            .path
    };
    let archive = restored
        .files
        .iter()
        .filter(|file| !file.is_log && file.id != 1);
    let counts: Vec<_> = archive
        .map(|file| compare(&file.path, "mdf_sql2014_AWDataWarehouse_archive.ndf"))
        .collect();
    assert!(counts.contains(&(384, 383)), "{counts:?}");
    let primary = compare(path(1), "mdf_sql2014_AWDataWarehouse.mdf");
    assert_eq!(primary, (384, 341), "it changed a little in between");
}

#[test]
fn differentials_go_over_their_full_backup_and_over_no_other() {
    let Some(folder) = common::folder() else {
        return;
    };
    let full = format!("{CUBE}FULL__SQL2008_Cube_Query_History_FULL_20170518_041737.bak");
    let last = format!("{CUBE}DIFF__SQL2008_Cube_Query_History_DIFF_20170518_041826.bak");
    let pairs: [(&str, &str); 5] = [
        (
            &full,
            &format!("{CUBE}DIFF__SQL2008_Cube_Query_History_DIFF_20170518_041819.bak"),
        ),
        (&full, &last),
        (
            "sql2008r2_lab_DoubleDiffing__difftest-full.bak",
            "sql2008r2_lab_DoubleDiffing__difftest-diff1.bak",
        ),
        (
            "sql2008r2_lab_DoubleDiffing__difftest-full.bak",
            "sql2008r2_lab_DoubleDiffing__difftest-diff2.bak",
        ),
        (
            "sql2016_BackupTestDb_full.bak",
            "sql2016_BackupTestDb_diff.bak",
        ),
    ];
    for (full, differential) in pairs {
        let to = tempfile::tempdir().unwrap();
        let restored = restored(&[&[full], &[differential]], to.path()).unwrap();
        for file in restored.files.iter().filter(|file| !file.is_log) {
            assert!(check_pages(&file.path, file.id) > 100, "{differential}");
        }
    }
    let to = tempfile::tempdir().unwrap();
    let destination = Destination {
        folder: Some(to.path().to_owned()),
        ..Destination::default()
    };
    let others: &[&[&str]] = &[&["sql2016_BackupTestDb_full.bak"], &[&last]];
    let refused = restore(&steps(&folder, others), &destination);
    assert!(
        matches!(refused, Err(Error::OtherBase { .. })),
        "{refused:?}"
    );
    assert_eq!(std::fs::read_dir(to.path()).unwrap().count(), 0);
}

/// One file with the set of `first`, and behind it that of `second` as the second set.
fn joined(first: &Path, second: &Path) -> Vec<u8> {
    let mut bytes = std::fs::read(first).unwrap();
    let mut second = std::fs::read(second).unwrap();
    let find = |bytes: &[u8], tag: &[u8]| {
        let mut blocks = (0..bytes.len()).step_by(512);
        blocks.find(|at| bytes[*at..].starts_with(tag)).unwrap()
    };
    let begin = find(&second, b"SSET");
    second[begin + 0x3E] = 2;
    let end = find(&second, b"ESET");
    second[end + 0x4E] = 2;
    bytes.extend_from_slice(&second[begin..]);
    bytes
}

#[test]
fn a_full_backup_and_its_differential_in_one_file_are_restored_in_one_run_and_in_steps() {
    let Some(folder) = common::folder() else {
        return;
    };
    let names = [
        "sql2008r2_lab_DoubleDiffing__difftest-full.bak",
        "sql2008r2_lab_DoubleDiffing__difftest-diff1.bak",
    ];
    let [full, differential] = names.map(|name| folder.join(name));
    let to = tempfile::tempdir().unwrap();
    let both = to.path().join("both.bak");
    std::fs::write(&both, joined(&full, &differential)).unwrap();
    let set = |position| Step {
        devices: vec![DeviceAddress::disk(&both)],
        position,
    };
    let data = |restored: &Restored| {
        let files = restored.files.iter().filter(|file| !file.is_log);
        let contents: Vec<Vec<u8>> = files
            .map(|file| std::fs::read(&file.path).unwrap())
            .collect();
        contents
    };
    let place = |name: &str| {
        let folder = to.path().join(name);
        std::fs::create_dir(&folder).unwrap();
        Destination {
            folder: Some(folder),
            ..Destination::default()
        }
    };
    let expected = restored(&[&[names[0]], &[names[1]]], &place("a").folder.unwrap()).unwrap();
    let at_once = restore(&[set(1), set(2)], &place("b")).unwrap();
    assert!(data(&at_once) == data(&expected));

    let first = restore(&[set(1)], &place("c")).unwrap();
    assert!(data(&first) != data(&expected));
    let files: BTreeMap<u16, PathBuf> = first
        .files
        .iter()
        .map(|file| (file.id, file.path.clone()))
        .collect();
    let again = Continuation::prepare(vec![set(1)], first.base.set, &files, false);
    assert!(matches!(again, Err(Error::Sequence { .. })), "{again:?}");
    let second = Continuation::prepare(vec![set(2)], first.base.set, &files, false).unwrap();
    assert!(second.apply().unwrap() > 0);
    assert!(data(&first) == data(&expected));
}

#[test]
fn both_halves_of_a_stripe_give_the_database_in_any_order_and_one_half_does_not() {
    const LAB: &str = "sql2008r2_lab_RestoreTimeStripe__Stripe";
    let halves = [
        format!("{LAB}1__RestoreTimeStripe.bak"),
        format!("{LAB}2__RestoreTimeStripe1.bak"),
    ];
    let (one, two): (&str, &str) = (&halves[0], &halves[1]);
    let Some(folder) = common::folder() else {
        return;
    };
    let mut contents = Vec::new();
    for names in [[one, two], [two, one]] {
        let to = tempfile::tempdir().unwrap();
        let restored = restored(&[&names], to.path()).unwrap();
        check_pages(&restored.files[0].path, 1);
        contents.push(std::fs::read(&restored.files[0].path).unwrap());
    }
    assert!(contents[0] == contents[1]);
    let to = tempfile::tempdir().unwrap();
    let destination = Destination {
        folder: Some(to.path().to_owned()),
        ..Destination::default()
    };
    let refused = restore(&steps(&folder, &[&[one]]), &destination);
    let Err(Error::FamiliesMissing { missing, count, .. }) = &refused else {
        panic!("{refused:?}");
    };
    assert_eq!((missing.as_slice(), *count), (&[2][..], 2));
    assert_eq!(std::fs::read_dir(to.path()).unwrap().count(), 0);
}

#[test]
fn a_damaged_backup_is_refused_unless_asked_for_and_a_file_is_never_overwritten_unasked() {
    let Some(folder) = common::folder() else {
        return;
    };
    let to = tempfile::tempdir().unwrap();
    let mut destination = Destination {
        folder: Some(to.path().to_owned()),
        ..Destination::default()
    };
    let steps = steps(&folder, &[&["sql2008r2_CorruptDB.bak"]]);
    let refused = restore(&steps, &destination);
    assert!(
        matches!(refused, Err(Error::Damaged { count: 1, .. })),
        "{refused:?}"
    );
    destination.continue_after_error = true;
    assert_eq!(restore(&steps, &destination).unwrap().findings.len(), 1);
    let again = restore(&steps, &destination);
    assert!(matches!(again, Err(Error::Exists(_))), "{again:?}");
    destination.replace = true;
    restore(&steps, &destination).unwrap();
}

#[test]
fn pages_in_each_others_places_are_found_by_a_restore_as_by_verification() {
    let Some(folder) = common::folder() else {
        return;
    };
    let name = "sql2012_pubs_a.bak";
    let mut bytes = std::fs::read(folder.join(name)).unwrap();
    let is_data = |at: &usize| {
        let page = &bytes[*at..*at + PAGE_BYTES];
        let header = PageHeader::new(page);
        let is_sealed = header.has_checksum() && header.checksum() == page_checksum(page);
        header.version() == 1 && header.page_type() == 1 && is_sealed
    };
    let last = bytes.len() - PAGE_BYTES;
    let pages: Vec<usize> = (0..last).step_by(512).filter(is_data).collect();
    let (one, other) = (pages[0], pages[pages.len() - 1]);
    let (front, back) = bytes.split_at_mut(other);
    front[one..one + PAGE_BYTES].swap_with_slice(&mut back[..PAGE_BYTES]);
    let to = tempfile::tempdir().unwrap();
    std::fs::write(to.path().join(name), &bytes).unwrap();
    let destination = Destination {
        folder: Some(to.path().to_owned()),
        ..Destination::default()
    };
    let refused = restore(&steps(to.path(), &[&[name]]), &destination).unwrap_err();
    let text = refused.to_string();
    assert!(
        text.contains("in 2 places") && text.contains("is allocated"),
        "{text}"
    );
    assert_eq!(std::fs::read_dir(to.path()).unwrap().count(), 1);
}
