//! B-tree pages go to the media in their regular form and come back as they were, whatever is in them.

use std::path::Path;

use rusqlite::Connection;
use windlass_base::{PAGE_BYTES, PageNumber};
use windlass_codec::{Compression, Filter};
use windlass_device::DeviceAddress;
use windlass_engine::BackupMode;
use windlass_pipeline::{MediaSet, Unobserved, backup, verify};
use windlass_source::Recovery;
use windlass_source::engine::EngineSnapshot;

use crate::claims::{restored, with_differential};
use crate::crafted::Crafted;
use crate::engine;
use crate::support::{back_up, devices, read_request, request, restore_to, same};

/// Short rows, long ones that overflow, indexes in both orders, tables without rowids, deleted rows, rowids
/// of every length.
fn make(path: &Path, page_bytes: u32, encoding: &str) {
    let connection = Connection::open(path).unwrap();
    let text = format!(
        "PRAGMA page_size = {page_bytes}; PRAGMA encoding = '{encoding}';
         CREATE TABLE short(id INTEGER PRIMARY KEY, kind INTEGER, body TEXT);
         CREATE TABLE long(body BLOB);
         CREATE TABLE wide(id INTEGER PRIMARY KEY, body TEXT);
         CREATE TABLE keyed(key BLOB PRIMARY KEY, body TEXT) WITHOUT ROWID;
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
         INSERT INTO short SELECT i, i % 7, 'row ' || i FROM n;
         INSERT INTO long SELECT randomblob(id * 10) FROM short WHERE id < 300;
         INSERT INTO wide SELECT id * id * id * -77777, body FROM short WHERE id % 9 = 0;
         INSERT INTO keyed SELECT randomblob(9), body FROM short WHERE id < 3000;
         CREATE INDEX by_kind ON short(kind, body);
         CREATE INDEX by_body ON wide(body DESC);
         DELETE FROM short WHERE id % 13 = 0 OR id BETWEEN 400 AND 900;"
    );
    connection.execute_batch(&text).unwrap();
}

/// The filters of the chunks of a set.
fn filters(devices: &[DeviceAddress]) -> Vec<Filter> {
    let chunks = Crafted::of(devices, 1).chunks;
    let filters = chunks.iter().map(|chunk| chunk.header.filter);
    filters.map(|id| Filter::from_id(id).unwrap()).collect()
}

#[test]
fn pages_of_every_length_are_regular_on_media_and_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path();
    let compressions = [Compression::ZSTD_LOW, Compression::QAT_DEFLATE];
    for page_bytes in (9..=16).map(|power| 1_u32 << power) {
        let encoding = ["UTF-8", "UTF-16le"][page_bytes.ilog2() as usize % 2];
        let database = place.join(format!("{page_bytes}.db"));
        make(&database, page_bytes, encoding);
        for compression in compressions {
            let devices = devices(place, &[&format!("{page_bytes} {compression}.bak")]);
            back_up(&database, &request(&devices, compression));
            for filter in filters(&devices) {
                let pages = filter.pages.unwrap();
                assert_eq!(pages.page_bytes(), page_bytes, "{compression}");
            }
            let media = MediaSet::open(&devices).unwrap();
            verify(&media, 1, &read_request(), &Unobserved).unwrap();
            let target = place.join("restored.db");
            restore_to(&media, 1, &target, Recovery::Recovery).unwrap();
            assert!(same(&database, &target), "{page_bytes} {compression}");
        }
    }
}

#[test]
fn other_algorithms_and_files_that_are_no_database_keep_their_pages() {
    let folder = tempfile::tempdir().unwrap();
    let database = folder.path().join("app.db");
    make(&database, 4096, "UTF-8");
    for compression in [Compression::NONE, Compression::MS_XPRESS] {
        let devices = devices(folder.path(), &[&format!("{compression}.bak")]);
        back_up(&database, &request(&devices, compression));
        let filters = filters(&devices);
        assert!(filters.iter().all(|filter| *filter == Filter::NONE));
    }
}

#[test]
fn a_differential_has_regular_pages_too() {
    let folder = tempfile::tempdir().unwrap();
    let database = folder.path().join("app.db");
    make(&database, 4096, "UTF-8");
    let media = with_differential(folder.path(), &database, Compression::ZSTD_LOW, || {
        let connection = Connection::open(&database).unwrap();
        let changes = "UPDATE short SET body = 'other' WHERE id % 4000 = 1;
                       INSERT INTO short(body) SELECT body FROM short WHERE id < 100;";
        connection.execute_batch(changes).unwrap();
    });
    let filters = filters(&media[1..]);
    assert!(filters.iter().any(|filter| filter.pages.is_some()));
    assert!(same(&database, &restored(folder.path(), &media)));
}

#[test]
fn pages_of_the_page_engine_are_regular_on_media() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("app.db");
    make(&file, PAGE_BYTES as u32, "UTF-8");
    let content = std::fs::read(&file).unwrap();
    let place = folder.path().join("engine");
    std::fs::create_dir(&place).unwrap();
    let database = engine::create(&place);
    let mut writer = database.begin_write(&database.begin_read()).unwrap();
    let pages = content.chunks_exact(PAGE_BYTES);
    for (page, content) in PageNumber::all(pages.len() as u32).zip(pages) {
        writer.write_page(page, content).unwrap();
    }
    writer.commit().unwrap();
    let devices = devices(folder.path(), &["1.bak", "2.bak"]);
    let snapshot = EngineSnapshot::open(&database, BackupMode::Full).unwrap();
    let wanted = request(&devices, Compression::ZSTD_LOW);
    backup(&wanted, Box::new(snapshot), &Unobserved).unwrap();
    let media = MediaSet::open(&devices).unwrap();
    verify(&media, 1, &read_request(), &Unobserved).unwrap();
    assert!(
        filters(&devices)
            .iter()
            .any(|filter| filter.pages.is_some())
    );
}
