//! Restores to a file that register nothing leave a registered database of the file's name alone.

use crate::log_backups::{back_up_log, chain, insert, last};
use crate::support::{Place, ask, registered, rows, succeed, well};

const INSTANCE: [&str; 2] = ["--instance", "instance"];

/// Where the instance has its databases.
fn known(place: &Place) -> Vec<serde_json::Value> {
    let files = "SELECT d.name, d.state_desc AS state, f.physical_name AS path FROM sys.databases d \
         JOIN sys.master_files f ON f.database_id = d.database_id WHERE d.database_id > 4 ORDER BY 1, 3";
    ask(place, "instance", files)
}

#[test]
fn a_restore_beside_a_registered_database_of_the_file_s_name_leaves_it_alone() {
    let place = registered();
    std::fs::create_dir_all(place.path("x")).expect("a folder");
    chain(&place, 1);
    succeed(&place, "BACKUP DATABASE app TO DISK = 'D:\\app.bak'");
    let before = known(&place);
    let run = |arguments: &[&str]| place.run(&[arguments, &INSTANCE].concat());
    for (medium, to) in [
        ("app.bak", "x/app.db"),
        ("full.bak", "x/Shop.db"),
        ("app.bak", "x/model.db"),
    ] {
        let said = run(&["restore", medium, "--to", to, "--tsql"]);
        assert_eq!(said.code, Some(0), "{to}: {}", said.err);
        assert!(!said.out.contains("[app] "), "{}", said.out);
        assert_eq!(known(&place), before, "{to}");
        let again = run(&["restore", medium, "--to", to, "--replace"]);
        assert_eq!(again.code, Some(0), "{to}: {}", again.err);
        assert_eq!(known(&place), before, "{to}");
    }
    // Both go on as they were, and their backups are of them.
    insert(&place, 2);
    back_up_log(&place, "2.trn");
    let other = [
        "restore",
        "full.bak",
        "1.trn",
        "2.trn",
        "--to",
        "x/y/Shop.db",
    ];
    std::fs::create_dir_all(place.path("x/y")).expect("a folder");
    let said = run(&other);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert_eq!(last(&place, "Shop"), 2);
    assert_eq!(known(&place), before);
    assert_eq!(rows(&place.path("x/app.db")), rows(&place.path("app.db")));

    // Where the file is that of the database, it is the database that is restored.
    let here = place.text("app.db");
    let refused = run(&["restore", "app.bak", "--to", &here]);
    assert_eq!(refused.code, Some(1), "{}", refused.out);
    let replaced = run(&["restore", "app.bak", "--to", &here, "--replace"]);
    assert_eq!(replaced.code, Some(0), "{}", replaced.err);
    assert_eq!(known(&place), before);
}

#[test]
fn a_shipped_copy_of_the_database_s_name_leaves_the_database_alone() {
    let place = Place::new();
    std::fs::create_dir_all(place.path("media")).expect("a folder");
    std::fs::create_dir_all(place.path("standby")).expect("a folder");
    chain(&place, 2);
    for name in ["full.bak", "1.trn", "2.trn"] {
        let to = place.path(&format!("media/{name}"));
        std::fs::rename(place.path(name), to).expect("moved");
    }
    let before = known(&place);
    let ship = ["ship", "media", "--of", "Shop", "--to", "standby/Shop.db"];
    for how in ["--once", "--promote"] {
        well(&place, &[&ship[..], &[how]].concat());
        assert_eq!(known(&place), before, "{how}");
        assert_eq!(last(&place, "Shop"), 2);
    }
    insert(&place, 3);
    assert_eq!(last(&place, "Shop"), 3);
}
