//! Logical backup devices, name tags, folders and free space.

use crate::support::{Place, rows};

#[test]
fn a_logical_device_stands_for_its_file() {
    let place = Place::new();
    let run = place.sql_with(
        &["--json"],
        "EXEC sp_addumpdevice 'disk', 'Nightly', 'd:\\n.bak'\n\
         BACKUP DATABASE app TO nightly\n\
         RESTORE VERIFYONLY FROM [NIGHTLY]\n\
         SELECT name, type, type_desc, physical_name FROM sys.backup_devices\n\
         DECLARE @d nvarchar(20) = 'nightly'\n\
         BACKUP DATABASE app TO @d WITH INIT\n\
         RESTORE DATABASE copy FROM Nightly WITH MOVE 'app' TO 'd:\\copy.db'\n\
         RESTORE HEADERONLY FROM nightly\n\
         SELECT logical_device_name AS l, device_type AS t FROM msdb.dbo.backupmediafamily",
    );
    assert_eq!(run.code, Some(0), "{}", run.err);
    assert_eq!(rows(&place.path("copy.db")), 400);
    let results = run.results();
    assert_eq!(results[0][0]["name"], "Nightly");
    assert_eq!(results[0][0]["type_desc"], "DISK");
    assert_eq!(results[0][0]["physical_name"], "d:\\n.bak");
    assert_eq!(results[1][0]["DeviceType"], 102);
    assert_eq!(results[2][0]["l"], "Nightly");
    assert_eq!(results[2][0]["t"], 102);
}

#[test]
fn devices_are_added_once_and_dropped_once() {
    let place = Place::new();
    let add = "EXEC sp_addumpdevice 'disk', 'n', 'd:\\n.bak'";
    for (script, numbers) in [
        (format!("{add}\n{add}"), &[15026][..]),
        ("EXEC sp_dropdevice 'n'".to_owned(), &[15012]),
        (
            "EXEC sp_addumpdevice 'paper', 'n', 'd:\\n.bak'".to_owned(),
            &[15044],
        ),
        (
            "EXEC sp_addumpdevice 'disk', 'n', 'q:\\n.bak'".to_owned(),
            &[50020],
        ),
        (
            format!("{add}\nEXEC sp_dropdevice 'n'\nBACKUP DATABASE app TO n"),
            &[3206, 3013],
        ),
    ] {
        assert_eq!(place.numbers(&script), numbers, "{script}");
    }
}

#[test]
fn dropping_a_device_deletes_its_file_only_when_that_is_a_backup() {
    let place = Place::new();
    let device = |path: &str| format!("EXEC sp_addumpdevice 'disk', 'n', '{path}'");
    let backup = "BACKUP DATABASE app TO n\nEXEC sp_dropdevice 'n', 'delfile'";
    let script = format!("{}\n{backup}", device("d:\\n.bak"));
    assert_eq!(place.numbers(&script), [4035, 3014]);
    assert!(!place.path("n.bak").exists());
    let script = format!(
        "{}\nEXEC sp_dropdevice 'n', 'delfile'",
        device("d:\\other.db")
    );
    assert_ne!(place.numbers(&script), [0_u64; 0]);
    assert!(place.path("other.db").exists());
}

#[test]
fn only_folders_that_tags_name_are_made() {
    let place = Place::new();
    // Below a mount point where nothing is mounted.
    for name in ["mount\\<DATABASE>.bak", "mount\\<DATABASE>\\x.bak"] {
        let backup = format!("BACKUP DATABASE app TO DISK = 'd:\\{name}'");
        assert_eq!(place.numbers(&backup), [3201, 3013], "{name}");
        assert!(!place.path("mount").exists());
    }
    std::fs::create_dir(place.path("mount")).expect("a folder");
    let backup = "BACKUP DATABASE app TO DISK = 'd:\\mount\\<DATABASE>\\x.bak'";
    assert_eq!(place.numbers(backup), [4035, 3014]);
    assert!(place.path("mount/app/x.bak").exists());
    let follow = place.text("nosuch/deep");
    let run = place.run(&["follow", "app.db", "--to", &follow]);
    assert_eq!(run.code, Some(1), "{}", run.out);
    assert!(run.err.contains("nosuch"), "{}", run.err);
    assert!(!place.path("nosuch").exists());
}

/// They would be files of odd names.
#[test]
fn names_of_windows_begin_with_drives_or_are_refused() {
    let place = Place::new();
    let before = place.files("");
    let refused = |arguments: &[&str], code: i32, says: &str| {
        let run = place.run(arguments);
        assert_eq!(run.code, Some(code), "{arguments:?}: {}", run.err);
        assert!(run.err.contains(says), "{arguments:?}: {}", run.err);
        assert_eq!(place.files(""), before, "{arguments:?}");
    };
    for name in ["E:\\x.bak", "E:x.bak", "\\\\server\\share\\x.bak"] {
        refused(&["backup", "app.db", "--to", name], 1, "50020");
        refused(&["verify", name], 1, "50020");
        refused(
            &["backup", "app.db", "--to", "a.bak", "--mirror", name],
            1,
            "50020",
        );
        refused(&["backup", name, "--to", "x.bak"], 2, "a name of Windows");
        refused(&["expire", name, "--last", "1"], 1, "50020");
        refused(&["restore", "a.bak", "--to", name], 1, "50020");
        refused(&["follow", "app.db", "--to", name], 2, "a name of Windows");
    }
    refused(&["backup", "app.db", "--to", "-"], 2, "'./-'");
    refused(
        &["restore", "a.bak", "--to", "r.db", "--move", "app=x.db"],
        2,
        "--to",
    );
    // A drive of the instance.
    let instance = ["--instance", "instance"];
    let map = format!("EXEC sp_windlass_drive 'e', '{}'", place.text("temp"));
    place.succeed(&[&["sql", "-Q", &map][..], &instance].concat());
    let backup = ["backup", "app.db", "--to", "E:\\x.bak"];
    place.succeed(&[&backup[..], &instance].concat());
    assert_eq!(place.files("temp"), ["x.bak"]);
    // A file that has such a name is meant by it.
    std::fs::copy(place.path("temp/x.bak"), place.path("F:x.bak")).expect("a copy");
    place.succeed(&["verify", "F:x.bak"]);
}

#[test]
fn name_tags_in_paths_become_names_and_their_folders_are_made() {
    use std::os::unix::fs::PermissionsExt as _;
    let place = Place::new();
    for folder in ["x", "m"] {
        std::fs::create_dir(place.path(folder)).expect("a folder");
    }
    let run = place.sql_with(
        &["--json"],
        "BACKUP DATABASE app TO DISK = 'd:\\<DATABASE>\\<TYPE>\\<DATETIME yyyy>.bak'\n\
         BACKUP DATABASE app TO DISK = 'd:\\x\\<AUTO>.bak', DISK = 'd:\\x\\<AUTO>.bak'\n\
         BACKUP DATABASE app TO DISK = 'd:\\app\\FULL\\<DATABASE>.bak'\n\
            MIRROR TO DISK = 'd:\\m\\<DATABASE>.bak' WITH FORMAT\n\
         RESTORE DATABASE copy FROM DISK = 'd:\\app\\FULL\\app.bak'\n\
            WITH MOVE 'app' TO 'd:\\<DATABASE>.db'\n\
         EXEC sp_addumpdevice 'disk', 'tagged', 'd:\\<DATABASE>-logical.bak'\n\
         BACKUP DATABASE app TO tagged",
    );
    assert_eq!(run.code, Some(0), "{}", run.err);
    let folder = place.path("app/FULL");
    let mode = std::fs::metadata(&folder).expect("a folder").permissions();
    assert_eq!(mode.mode() & 0o777, 0o700);
    let mut files = Vec::new();
    for entry in std::fs::read_dir(&folder).expect("a folder") {
        let entry = entry.expect("an entry");
        let mode = entry.metadata().expect("a file").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        files.push(entry.file_name().into_string().expect("a name"));
    }
    files.sort();
    assert_eq!(files.len(), 2, "{files:?}");
    assert!(files[0].starts_with("20"), "{files:?}");
    assert!(place.path("m/app.bak").exists());
    assert!(place.path("app-logical.bak").exists());
    assert_eq!(rows(&place.path("copy.db")), 400);
    let stripes: Vec<String> = std::fs::read_dir(place.path("x"))
        .expect("a folder")
        .map(|entry| {
            entry
                .expect("an entry")
                .file_name()
                .into_string()
                .expect("a name")
        })
        .collect();
    assert_eq!(stripes.len(), 2, "{stripes:?}");
    assert!(stripes.iter().all(|name| name.starts_with("FULL_")));
    assert!(stripes.iter().any(|name| name.ends_with("_2.bak")));
}

#[test]
fn wrong_tags_are_refused_with_the_list_of_right_ones() {
    let place = Place::new();
    for path in ["d:\\<WEEK>.bak", "d:\\<DATETIME qq>.bak"] {
        let script = format!("BACKUP DATABASE app TO DISK = '{path}'");
        assert_eq!(place.numbers(&script), [50020, 3013], "{path}");
    }
    for reading in ["<DATABASE>", "<TYPE>", "<AUTO>"] {
        let script = format!("RESTORE HEADERONLY FROM DISK = 'd:\\{reading}.bak'");
        assert_eq!(place.numbers(&script), [50020, 3013], "{reading}");
    }
}

#[test]
fn a_folder_that_is_written_out_must_exist() {
    let place = Place::new();
    let script = "BACKUP DATABASE app TO DISK = 'd:\\typo\\app.bak'";
    assert_eq!(place.numbers(script), [3201, 3013]);
    assert!(!place.path("typo").exists());
}

#[test]
fn a_missing_folder_is_named_by_its_path_also_of_a_logical_device() {
    let place = Place::new();
    let batch = "EXEC sp_addumpdevice 'disk', 'nightly', 'nothing/here/x.bak'; RESTORE HEADERONLY FROM nightly";
    let refused = place.run(&["sql", "--instance", "i", "-Q", batch]);
    assert_eq!(refused.code, Some(1), "{}", refused.out);
    let folder = "The folder 'nothing/here' does not exist. Mount it, or create it.";
    assert!(refused.err.contains(folder), "{}", refused.err);
}
