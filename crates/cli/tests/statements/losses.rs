//! Media with missing parts: no command calls them valid, and a run that continues after errors reports
//! what is lost.

use std::os::unix::fs::FileExt as _;

use windlass_media::craft::{Medium, Set};

use crate::support::{Place, make_database, on, succeed};

const EXTENT: usize = 65536;

/// A place with a database of several extents, and its content.
fn place() -> (Place, Vec<u8>) {
    let place = Place::new();
    make_database(&place.path("long.db"), 3000);
    let content = std::fs::read(place.path("long.db")).expect("the database");
    assert!(content.len() > 4 * EXTENT);
    (place, content)
}

fn write(place: &Place, name: &str, set: &Set) {
    std::fs::write(place.path(name), Medium::new().with(set).bytes()).expect("the medium");
}

/// The second extent, as in messages.
const SECOND: &str = "file 'long' (1), bytes 65536 to 131071 (8 KB pages 8 to 15)";

#[test]
fn a_set_that_lacks_a_chunk_is_neither_valid_nor_restored_though_all_counts_are_right() {
    let (place, content) = place();
    let mut set = Set::full("long", &content);
    write(&place, "whole.bak", &set);
    place.succeed(&["verify", "whole.bak"]);
    place.succeed(&["restore", "whole.bak", "--to", "whole.db"]);
    assert_eq!(std::fs::read(place.path("whole.db")).expect("it"), content);

    set.chunks.remove(1);
    write(&place, "hole.bak", &set);
    let verified = place.run(&["verify", "hole.bak"]);
    assert_eq!(verified.code, Some(1), "{}", verified.out);
    assert!(verified.err.contains("Msg 3189"), "{}", verified.err);
    assert!(verified.err.contains(SECOND), "{}", verified.err);
    let restored = place.run(&["restore", "hole.bak", "--to", "hole.db"]);
    assert_eq!(restored.code, Some(1), "{}", restored.out);
    assert!(restored.err.contains(SECOND), "{}", restored.err);
    assert!(!place.path("hole.db").exists());
    assert_eq!(
        place.numbers(
            "RESTORE VERIFYONLY FROM DISK = 'd:\\hole.bak'
             RESTORE VERIFYONLY FROM DISK = 'd:\\hole.bak' WITH STOP_ON_ERROR
             RESTORE DATABASE hole FROM DISK = 'd:\\hole.bak' WITH MOVE 'long' TO 'd:\\hole.db'"
        ),
        [3189, 3013, 3189, 3013, 3189, 3013]
    );
}

#[test]
fn whoever_carries_on_after_an_error_learns_every_stretch_that_is_lost_and_does_not_succeed() {
    let (place, content) = place();
    let mut set = Set::full("long", &content);
    // Two chunks are missing, as their number shows, and one is flipped.
    set.chunks.remove(3);
    set.chunks.remove(1);
    set.ending = |set| set.chunk_count += 2;
    write(&place, "lost.bak", &set);
    let mut medium = std::fs::read(place.path("lost.bak")).expect("the medium");
    let third = &content[2 * EXTENT..2 * EXTENT + 200];
    let at = medium.windows(200).position(|window| window == third);
    medium[at.expect("the third extent") + 100] ^= 1;
    std::fs::write(place.path("lost.bak"), medium).expect("the medium");

    let lost = |error: &str| {
        for reported in [
            "Msg 3189",
            "1 of the set's chunks are damaged",
            "2 of the set's chunks are missing",
            "Damaged: file 'long' (1), bytes 131072 to 196607",
            SECOND,
            "Missing: file 'long' (1), bytes 196608 to 262143",
        ] {
            assert!(error.contains(reported), "{reported}: {error}");
        }
    };
    let verified = place.run(&["verify", "lost.bak"]);
    assert_eq!(verified.code, Some(1));
    lost(&verified.err);

    let carry_on = [
        "restore",
        "lost.bak",
        "--to",
        "lost.db",
        "--continue-after-error",
    ];
    let restored = place.run(&carry_on);
    assert_eq!(restored.code, Some(1), "it has lost data");
    lost(&restored.err);
    assert!(!restored.err.contains("3013"), "{}", restored.err);
    let mut expected = content.clone();
    expected[EXTENT..4 * EXTENT].fill(0);
    assert!(std::fs::read(place.path("lost.db")).expect("what is left") == expected);

    let json = place.run(&[&carry_on[..], &["--replace", "--json"]].concat());
    let report: serde_json::Value = serde_json::from_str(&json.out).expect("JSON");
    assert_eq!(report["missing_chunks"], 2);
    assert_eq!(report["missing"]["named"][0]["offset"], 65536);
    assert_eq!(report["damaged"]["bytes"], 65536);

    assert_eq!(
        place.numbers(
            "RESTORE DATABASE lost FROM DISK = 'd:\\lost.bak'
                 WITH MOVE 'long' TO 'd:\\other-lost.db', CONTINUE_AFTER_ERROR
             RESTORE DATABASE stopped FROM DISK = 'd:\\lost.bak'
                 WITH MOVE 'long' TO 'd:\\stopped.db', STOP_ON_ERROR"
        ),
        [4035, 3184, 3014, 3189, 3189, 3013]
    );
    assert!(place.path("other-lost.db").exists() && !place.path("stopped.db").exists());
}

#[test]
fn an_old_set_that_is_damaged_in_a_sparse_copy_fails_no_append() {
    let (place, content) = place();
    write(&place, "old.bak", &Set::full("long", &content));
    let medium = std::fs::read(place.path("old.bak")).expect("the medium");
    let at = medium
        .windows(200)
        .position(|window| window == &content[..200]);
    // A file system's page of the payload is a hole now.
    let from = at.expect("the first extent").next_multiple_of(4096);
    let sparse = std::fs::File::create(place.path("old.bak")).expect("the medium");
    sparse.set_len(medium.len() as u64).expect("its length");
    sparse.write_all_at(&medium[..from], 0).expect("its start");
    let rest = from + 8192;
    sparse
        .write_all_at(&medium[rest..], rest as u64)
        .expect("its rest");
    drop(sparse);
    place.succeed(&["backup", "long.db", "--to", "old.bak"]);
    let verified = |set: &str| place.run(&["verify", "old.bak", "--set", set]).code;
    assert_eq!((verified("1"), verified("2")), (Some(1), Some(0)));
}

#[test]
fn a_differential_whose_base_the_history_does_not_know_warns() {
    let place = Place::new();
    succeed(
        &place,
        "CREATE DATABASE own ON (NAME = a, FILENAME = 'd:\\a.mdf') LOG ON (NAME = l, FILENAME = 'd:\\l.ldf')
         BACKUP DATABASE own TO DISK = 'd:\\1.bak'
         BACKUP DATABASE own TO DISK = 'd:\\2.bak'",
    );
    // As if another instance had made it.
    let catalog =
        rusqlite::Connection::open(place.path("instance/windlass.catalog")).expect("the catalog");
    let forget = "UPDATE own_backupset SET backup_set_uuid = \
                  '6E1B8D52-09C7-4A43-9F60-' || substr('000000000000' || rowid, -12)";
    catalog.execute_batch(forget).expect("another history");
    let run = on(
        &place,
        &["--json", "backup", "own", "--differential", "--to", "d.bak"],
    );
    assert!(run.numbers().contains(&50014), "{}", run.err);
}
