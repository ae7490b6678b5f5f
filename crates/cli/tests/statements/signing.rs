//! Signed backups: made, shown, verified, and required by restores.

use std::os::unix::fs::PermissionsExt as _;

use crate::sqlserver::sample;
use crate::support::{Place, Run, rows, sql, succeed};

/// Two keys, `ours` and `theirs`, and a backup signed with each, and one with none.
fn place() -> Place {
    let place = Place::new();
    for key in ["ours", "theirs"] {
        place.succeed(&["signing-key", key]);
        let media = format!("{key}.bak");
        place.succeed(&["backup", "app.db", "--to", &media, "--sign-with", key]);
    }
    place.succeed(&["backup", "app.db", "--to", "plain.bak"]);
    place
}

fn fails(place: &Place, arguments: &[&str], number: u32) -> Run {
    let run = place.run(arguments);
    assert_eq!(run.code, Some(1), "{}", run.err);
    assert!(run.err.contains(&format!("Msg {number},")), "{}", run.err);
    run
}

#[test]
fn a_signed_backup_is_shown_verified_and_restored_by_those_who_ask_for_its_signature() {
    let place = place();
    let mode = |name: &str| {
        let found = std::fs::metadata(place.path(name)).expect("a key");
        found.permissions().mode() & 0o777
    };
    assert_eq!(mode("ours"), 0o600);
    let before = std::fs::read(place.path("ours")).expect("a key");
    fails(&place, &["signing-key", "ours"], 50044);
    let nowhere = place.run(&["signing-key", "nosuch/key"]);
    assert_eq!(nowhere.code, Some(1), "{}", nowhere.err);
    let said = "the folder 'nosuch' does not exist";
    assert!(nowhere.err.contains(said), "{}", nowhere.err);
    assert_eq!(std::fs::read(place.path("ours")).expect("a key"), before);
    let header = place.succeed(&["--json", "header", "ours.bak"]).results();
    assert_eq!(header[0][0]["IsSigned"], true);
    let fingerprint = header[0][0]["SignerFingerprint"].to_string();
    let fingerprint = fingerprint.trim_matches('"');
    assert_eq!(fingerprint.len(), 64);
    let plain = place.succeed(&["--json", "header", "plain.bak"]).results();
    assert_eq!(plain[0][0]["IsSigned"], false);
    let run = place.succeed(&["verify", "ours.bak", "--signed-by", "ours.pub"]);
    assert!(run.err.contains("as required"), "{}", run.err);
    assert!(run.err.contains(fingerprint), "{}", run.err);
    // Nobody asked: what is there is right, and says no more than it can.
    let run = place.succeed(&["verify", "ours.bak"]);
    assert!(
        run.err.contains("cannot prove whose key this is"),
        "{}",
        run.err
    );
    let asked = ["--to", "copy.db", "--signed-by", "ours.pub"];
    for media in ["plain.bak", "theirs.bak"] {
        fails(&place, &["verify", media, "--signed-by", "ours.pub"], 50043);
        fails(&place, &[&["restore", media][..], &asked].concat(), 50043);
        assert!(!place.path("copy.db").exists());
    }
    place.succeed(&[&["restore", "ours.bak"][..], &asked].concat());
    assert_eq!(rows(&place.path("copy.db")), 400);
    let both = [&asked[..], &["--signed-by", "theirs.pub", "--replace"]].concat();
    place.succeed(&[&["restore", "theirs.bak"][..], &both].concat());
    // In T-SQL, and the other file in its place.
    let script = "BACKUP DATABASE app TO DISK = 'd:\\t.bak' WITH SIGN_WITH = 'd:\\ours'
         RESTORE VERIFYONLY FROM DISK = 'd:\\t.bak' WITH SIGNED_BY = 'd:\\theirs.pub', SIGNED_BY = 'd:\\ours.pub'
         RESTORE VERIFYONLY FROM DISK = 'd:\\t.bak' WITH SIGNED_BY = 'd:\\theirs.pub'
         RESTORE DATABASE x FROM DISK = 'd:\\t.bak' WITH MOVE 'app' TO 'd:\\x.db', SIGNED_BY = 'd:\\ours'";
    let numbers = place.numbers(script);
    assert!(numbers.contains(&50045), "{numbers:?}");
    assert!(
        numbers.ends_with(&[50043, 3013, 50044, 3013]),
        "{numbers:?}"
    );
}

#[test]
fn the_signature_of_an_encrypted_set_is_checked_without_its_key() {
    let place = place();
    std::fs::write(place.path("words"), "correct horse battery staple").expect("a passphrase");
    let backup = ["backup", "app.db", "--to", "e.bak", "--sign-with", "ours"];
    place.succeed(&[&backup[..], &["--passphrase-file", "words"]].concat());
    let verify = ["verify", "e.bak", "--without-key", "--signed-by"];
    let run = place.succeed(&[&verify[..], &["ours.pub"]].concat());
    assert!(run.err.contains("as required"), "{}", run.err);
    fails(&place, &[&verify[..], &["theirs.pub"]].concat(), 50043);
    let restore = [
        "restore",
        "e.bak",
        "--to",
        "e.db",
        "--signed-by",
        "ours.pub",
    ];
    place.succeed(&[&restore[..], &["--passphrase-file", "words"]].concat());
    assert_eq!(rows(&place.path("e.db")), 400);
}

#[test]
fn each_set_of_a_restore_has_to_be_signed() {
    let place = place();
    let differential = ["backup", "app.db", "--to", "ours.bak", "--differential"];
    fails(&place, &differential, 50182);
    place.succeed(&[&differential[..], &["--base-missing-ok"]].concat());
    let restore = ["restore", "ours.bak", "--to", "copy.db"];
    let asked = [&restore[..], &["--signed-by", "ours.pub"]].concat();
    fails(&place, &asked, 50043);
    assert!(!place.path("copy.db").exists());
    std::fs::write(place.path("c.toml"), "restores_signed_by = ['ours.pub']").expect("settings");
    let configured = [&["--config", "c.toml"], &restore[..], &["--set"]].concat();
    fails(&place, &[&configured[..], &["2"]].concat(), 50043);
    place.succeed(&[&configured[..], &["1"]].concat());
    // Statement by statement: the restored database remembers the required signer.
    let state = ["--set", "1", "--no-recovery", "--replace"];
    place.succeed(&[&asked[..], &state].concat());
    fails(&place, &[&restore[..], &["--set", "2"]].concat(), 50029);
    let knowingly = ["--set", "2", "--allow-unencrypted"];
    place.succeed(&[&restore[..], &knowingly].concat());
    // The key that a statement requires must be one of those that the setting trusts.
    let other = ["1", "--replace", "--signed-by", "theirs.pub"];
    fails(&place, &[&configured[..], &other].concat(), 50043);
    place.succeed(&[&restore[..], &["--replace"]].concat());
}

#[test]
fn a_signing_key_that_others_may_read_is_refused() {
    let place = place();
    let open = std::fs::Permissions::from_mode(0o640);
    std::fs::set_permissions(place.path("ours"), open).expect("a key");
    let backup = ["backup", "app.db", "--to", "b.bak", "--sign-with"];
    fails(&place, &[&backup[..], &["ours"]].concat(), 50044);
    assert!(!place.path("b.bak").exists());
    // A public key signs nothing.
    let public = std::fs::Permissions::from_mode(0o600);
    std::fs::set_permissions(place.path("theirs.pub"), public).expect("a key");
    fails(&place, &[&backup[..], &["theirs.pub"]].concat(), 50044);
}

#[test]
fn pages_and_databases_of_the_engine_come_only_from_sets_that_are_signed_as_asked() {
    let place = place();
    let signed = "SIGNED_BY = 'd:\\ours.pub'";
    let made = "CREATE DATABASE e ON (NAME = 'e', FILENAME = 'd:\\e.mdf')
             LOG ON (NAME = 'e_log', FILENAME = 'd:\\e.ldf')
         GO
         USE e
         GO
         CREATE TABLE t(a)";
    succeed(&place, made);
    let copy = "RESTORE DATABASE copy FROM DISK = 'd:\\e.bak' WITH REPLACE, FILE";
    let moved = "MOVE 'e' TO 'd:\\c.mdf', MOVE 'e_log' TO 'd:\\c.ldf'";
    let script = format!(
        "BACKUP DATABASE e TO DISK = 'd:\\e.bak' WITH SIGN_WITH = 'd:\\ours'
         RESTORE DATABASE e PAGE = '1:0' FROM DISK = 'd:\\e.bak' WITH {signed}
         {copy} = 1, {moved}, {signed}, NORECOVERY
         BACKUP DATABASE e TO DISK = 'd:\\e.bak'
         BACKUP DATABASE e TO DISK = 'd:\\e.bak' WITH DIFFERENTIAL"
    );
    succeed(&place, &script);
    for refused in [
        format!("RESTORE DATABASE e PAGE = '1:0' FROM DISK = 'd:\\e.bak' WITH FILE = 2, {signed}"),
        format!("{copy} = 2, {moved}, {signed}"),
    ] {
        assert_eq!(sql(&place, &refused).numbers(), [50043, 3013], "{refused}");
    }
}

/// Whoever can write to the folder of backups replaces `nightly.bak` by a SQL Server backup with a file of their choice.
#[test]
fn a_sql_server_backup_satisfies_no_one_who_requires_a_signature_or_encryption() {
    let Some(file) = sample("sql2012_pubs_a.bak") else {
        return;
    };
    let place = Place::new();
    place.succeed(&["signing-key", "ours"]);
    std::fs::write(place.path("words"), "correct horse battery staple").expect("a passphrase");
    let (sign, words) = (["--signed-by", "ours.pub"], ["--passphrase-file", "words"]);
    for (asked, number) in [(sign, 50043), (words, 50030)] {
        fails(&place, &[&["verify", &file][..], &asked].concat(), number);
        std::fs::create_dir_all(place.path("out")).expect("a folder");
        let restore = ["restore", &file, "--to", "out"];
        fails(&place, &[&restore[..], &asked].concat(), number);
    }
    let from = format!("FROM DISK = '{file}' WITH");
    let moves = format!(
        "MOVE 'pubs' TO '{}', MOVE 'pubs_log' TO '{}'",
        place.text("out/q.mdf"),
        place.text("out/q.ldf")
    );
    let key = place.text("ours.pub");
    let verify = format!("RESTORE VERIFYONLY {from} SIGNED_BY = '{key}'");
    assert_eq!(sql(&place, &verify).numbers(), [50043, 3013]);
    let restore = format!("RESTORE DATABASE q {from} SIGNED_BY = '{key}', {moves}");
    assert_eq!(sql(&place, &restore).numbers(), [50043, 3013]);
    let option = "EXEC sp_configure 'restores must be encrypted', 1; RECONFIGURE;";
    let numbers = sql(
        &place,
        &format!("{option} RESTORE DATABASE q {from} {moves}"),
    )
    .numbers();
    assert!(numbers.ends_with(&[50030, 3013]), "{numbers:?}");
    for (setting, number) in [
        ("restores_signed_by = ['ours.pub']", 50043),
        ("restores_must_be_encrypted = true", 50030),
        ("restore_folders = ['temp']", 50020),
    ] {
        std::fs::write(place.path("c.toml"), setting).expect("settings");
        let configured = ["--config", "c.toml"];
        let restore = [&configured[..], &["restore", &file, "--to", "out"]].concat();
        fails(&place, &restore, number);
        for format in ["sqlite", "csv", "files"] {
            let extract = ["extract", &file, "--to", "taken", "--format", format];
            fails(&place, &[&configured[..], &extract].concat(), number);
            assert!(!place.path("taken").exists(), "{setting}: {format}");
        }
    }
    let written = std::fs::read_dir(place.path("out"))
        .expect("a folder")
        .count();
    assert_eq!(written, 0);
    place.succeed(&["extract", &file, "--to", "taken"]);
}
