//! The pages and the picture of the real backups.

mod common;

use windlass_bak::{BackupType, Census, ObjectCensus, PartKind};

#[test]
fn every_byte_of_a_file_is_in_its_picture_and_every_page_in_an_object() {
    let mut named = 0;
    for sample in common::samples() {
        let census = Census::read(&sample.bytes[..]).unwrap();
        let totals = census.picture.totals();
        let all: u64 = totals.iter().map(|(_, bytes)| bytes).sum();
        assert_eq!(all, sample.bytes.len() as u64, "{}", sample.name);
        let parts: u64 = census.picture.parts().iter().map(|(_, bytes)| bytes).sum();
        assert_eq!(parts, all, "{}", sample.name);
        let has = |kind: PartKind| totals[kind as usize].1 > 0;
        assert!(has(PartKind::Headers), "{}", sample.name);
        for set in &census.listing.sets {
            let kind = set.configuration().unwrap().backup_type;
            let position = set.header.position;
            let objects = census.objects.get(&position);
            if kind != BackupType::Database {
                continue;
            }
            // A stripe may have no log, and not all of the system tables.
            if sample.special().contains("stripe ") {
                continue;
            }
            assert!(has(PartKind::Rows) && has(PartKind::Log), "{}", sample.name);
            let is_sure = !census.unsure_objects.contains(&position);
            assert!(is_sure, "{}", sample.name);
            let files = census.files.range((position, 0)..=(position, u16::MAX));
            let pages: u64 = files.flat_map(|(_, file)| file.units.values()).sum();
            let objects = objects.unwrap_or_else(|| panic!("no objects: {}", sample.name));
            let owned: u64 = objects.iter().map(ObjectCensus::pages).sum();
            assert_eq!(owned, pages, "{}", sample.name);
            let known = objects.iter().filter(|object| object.owner.object != 0);
            let known: u64 = known.map(ObjectCensus::pages).sum();
            assert!(
                known * 10 > pages * 9,
                "{}: {known} of {pages}",
                sample.name
            );
            named += 1;
        }
    }
    assert!(named == 0 || named > 15, "{named}");
}

#[test]
fn tables_have_as_many_pages_as_are_read_for_their_rows() {
    let Some(bytes) = common::sample("sql2005_Northwind_a.bak") else {
        return;
    };
    let census = Census::read(&bytes[..]).unwrap();
    let objects = &census.objects[&1];
    let of = |name: &str| {
        let mut objects = objects.iter();
        let object = objects.find(|object| object.owner.name == name).unwrap();
        let owner = &object.owner;
        assert_eq!((&*owner.schema, &*owner.kind), ("dbo", "U"), "{name}");
        (object.row_pages, object.index_pages, object.long_pages)
    };
    let (rows, indexes, long) = of("Orders");
    assert!(
        (19..25).contains(&rows) && indexes > 8 && long == 0,
        "{rows} {indexes}"
    );
    let (rows, _, long) = of("Categories");
    assert!((1..4).contains(&rows) && long > 8, "the pictures: {long}");
    assert!(objects.is_sorted_by_key(|object| std::cmp::Reverse(object.pages())));
}
