//! Master key, certificates and encrypted backups, in T-SQL and as plain commands.

use std::os::unix::fs::PermissionsExt as _;

use windlass_crypt::{Identity, Passphrase};

use crate::support::{Place, Run, rows};

const PASSWORD: &str = "Correct-Horse-Battery";

/// Runs a script on the instance in `folder`, where `app` is attached when the script says so.
fn on_instance(place: &Place, folder: &str, script: &str) -> Run {
    place.sql_with(&["--json", "--instance", folder], script)
}

fn set_up(place: &Place, folder: &str) {
    let run = on_instance(
        place,
        folder,
        &format!(
            "EXEC sp_attach_db 'app', '{}'\n\
             CREATE MASTER KEY ENCRYPTION BY PASSWORD = '{PASSWORD}'\n\
             CREATE CERTIFICATE BackupCert WITH SUBJECT = 'Backups', EXPIRY_DATE = '20990101'",
            place.text("app.db")
        ),
    );
    assert_eq!(run.code, Some(0), "{}", run.err);
}

const BACKUP: &str = "BACKUP DATABASE app TO DISK = 'd:\\e.bak' WITH COMPRESSION, FORMAT, \
     ENCRYPTION (ALGORITHM = AES_256, SERVER CERTIFICATE = BackupCert)";

/// Whether any file below the folder holds the text.
fn is_somewhere(folder: &std::path::Path, text: &str) -> bool {
    std::fs::read_dir(folder)
        .expect("a folder")
        .flatten()
        .any(|entry| {
            let path = entry.path();
            if path.is_dir() {
                return is_somewhere(&path, text);
            }
            // The script itself holds the password.
            let bytes = std::fs::read(&path).unwrap_or_default();
            path.extension().is_none_or(|extension| extension != "sql")
                && bytes
                    .windows(text.len())
                    .any(|window| window == text.as_bytes())
        })
}

#[test]
fn a_backup_encrypted_in_tsql_is_restored_where_the_certificate_is() {
    let place = Place::new();
    set_up(&place, "server");
    let run = on_instance(
        &place,
        "server",
        &format!(
            "{BACKUP}\n\
             RESTORE VERIFYONLY FROM DISK = 'd:\\e.bak'\n\
             RESTORE HEADERONLY FROM DISK = 'd:\\e.bak'\n\
             SELECT thumbprint, pvt_key_encryption_type_desc, subject, expiry_date FROM sys.certificates\n\
             SELECT s.key_algorithm, s.encryptor_thumbprint, s.encryptor_type, m.is_encrypted\n\
             FROM msdb.dbo.backupset s JOIN msdb.dbo.backupmediaset m ON m.media_set_id = s.media_set_id\n\
             RESTORE DATABASE again FROM DISK = 'd:\\e.bak' WITH MOVE 'app' TO 'd:\\again.db'"
        ),
    );
    assert_eq!(run.code, Some(0), "{}", run.err);
    assert_eq!(rows(&place.path("again.db")), 400);
    let results = run.results();
    let (header, certificate, history) = (&results[0][0], &results[1][0], &results[2][0]);
    assert_eq!(header["KeyAlgorithm"], "aes_256");
    assert_eq!(header["EncryptorType"], "CERTIFICATE");
    assert_eq!(header["EncryptorThumbprint"], certificate["thumbprint"]);
    assert_eq!(certificate["subject"], "CN=Backups");
    assert_eq!(certificate["expiry_date"], "2099-01-01T00:00:00.000");
    assert_eq!(
        certificate["pvt_key_encryption_type_desc"],
        "ENCRYPTED_BY_MASTER_KEY"
    );
    assert_eq!(history["key_algorithm"], "aes_256");
    assert_eq!(history["encryptor_thumbprint"], certificate["thumbprint"]);
    assert_eq!(history["is_encrypted"], true);
    // Nothing of the database, and no password, is anywhere but in the database itself.
    let backup = std::fs::read(place.path("e.bak")).unwrap();
    assert!(!backup.windows(9).any(|window| window == b"row 77 of"));
    assert!(!is_somewhere(place.path("").as_path(), PASSWORD));
    assert!(!run.err.contains(PASSWORD) && !run.out.contains(PASSWORD));
    let mode = std::fs::metadata(place.path("server/service.key"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn another_server_needs_the_certificate_first() {
    let place = Place::new();
    set_up(&place, "one");
    let run = on_instance(
        &place,
        "one",
        &format!(
            "{BACKUP}\n\
             BACKUP CERTIFICATE BackupCert TO FILE = 'd:\\c.cer' \
             WITH PRIVATE KEY (FILE = 'd:\\c.pvk', ENCRYPTION BY PASSWORD = '{PASSWORD}')\n\
             BACKUP CERTIFICATE BackupCert TO FILE = 'd:\\c.pfx' \
             WITH FORMAT = 'PFX', PRIVATE KEY (ENCRYPTION BY PASSWORD = '{PASSWORD}')"
        ),
    );
    assert_eq!(run.code, Some(0), "{}", run.err);
    // The certificate alone is for everybody.
    for file in ["c.pvk", "c.pfx"] {
        assert_eq!(mode(&place.path(file)), 0o600, "{file}");
    }
    let restore =
        "RESTORE DATABASE copy FROM DISK = 'd:\\e.bak' WITH MOVE 'app' TO 'd:\\copy.db', REPLACE";
    let missing = on_instance(&place, "two", restore);
    assert_eq!(missing.numbers(), [33111, 3013]);
    let mut messages = missing.messages().into_iter();
    let error = messages.find(|message| message["number"] == 33111);
    let error = error.expect("the error");
    assert_eq!(error["state"], 3);
    let text = error["text"].as_str().unwrap().to_owned();
    assert!(
        text.starts_with("Cannot find server certificate with thumbprint '0x"),
        "{text}"
    );
    assert!(text.contains("CREATE CERTIFICATE"), "{text}");
    let plain = place.run(&["restore", "e.bak", "--to", "copy.db"]);
    assert!(plain.err.contains("--key FILE"), "{}", plain.err);
    assert!(!place.path("copy.db").exists());
    // The certificate alone does not do; with its key it does.
    let public = on_instance(
        &place,
        "two",
        &format!("CREATE CERTIFICATE c FROM FILE = 'd:\\c.cer'\n{restore}"),
    );
    assert_eq!(public.numbers(), [33111, 3013]);
    let wrong = "CREATE CERTIFICATE c FROM FILE = 'd:\\c.cer' \
         WITH PRIVATE KEY (FILE = 'd:\\c.pvk', DECRYPTION BY PASSWORD = 'wrong')";
    let order = format!(
        "DROP CERTIFICATE c\n{wrong}\n\
         CREATE CERTIFICATE c FROM FILE = 'd:\\c.pfx' \
         WITH FORMAT = 'PFX', PRIVATE KEY (DECRYPTION BY PASSWORD = '{PASSWORD}')\n\
         CREATE MASTER KEY ENCRYPTION BY PASSWORD = 'another'\n\
         CREATE CERTIFICATE c FROM FILE = 'd:\\c.pfx' \
         WITH FORMAT = 'PFX', PRIVATE KEY (DECRYPTION BY PASSWORD = '{PASSWORD}')\n{restore}"
    );
    let run = on_instance(&place, "two", &order);
    let errors: Vec<u64> = run
        .numbers()
        .into_iter()
        .filter(|number| *number > 15_000)
        .collect();
    assert_eq!(errors, [15465, 15581], "{}", run.err);
    assert_eq!(rows(&place.path("copy.db")), 400);
}

#[test]
fn statements_about_keys_say_what_is_wrong() {
    let place = Place::new();
    set_up(&place, "server");
    for (script, number) in [
        ("CREATE MASTER KEY ENCRYPTION BY PASSWORD = 'x'", 15578),
        ("CREATE CERTIFICATE backupcert WITH SUBJECT = 'x'", 15232),
        ("DROP CERTIFICATE nobody", 15151),
        ("DROP MASTER KEY", 15580),
        ("CREATE CERTIFICATE c FROM FILE = 'd:\\app.db'", 15208),
        ("CREATE CERTIFICATE c FROM FILE = 'd:\\none.cer'", 15208),
        (
            "BACKUP CERTIFICATE BackupCert TO FILE = 'd:\\app.db'",
            15240,
        ),
    ] {
        let run = on_instance(&place, "server", script);
        assert_eq!(
            run.numbers().first(),
            Some(&number),
            "{script}: {}",
            run.err
        );
    }
    for (options, numbers) in [
        (
            "ENCRYPTION (ALGORITHM = TRIPLE_DES_3KEY, SERVER CERTIFICATE = BackupCert)",
            [50005, 3013],
        ),
        (
            "ENCRYPTION (ALGORITHM = AES_256, SERVER ASYMMETRIC KEY = k)",
            [50005, 3013],
        ),
        (
            "ENCRYPTION (ALGORITHM = AES_256, SERVER CERTIFICATE = nobody)",
            [15151, 3013],
        ),
    ] {
        let backup = format!("BACKUP DATABASE app TO DISK = 'd:\\f.bak' WITH {options}");
        assert_eq!(
            on_instance(&place, "server", &backup).numbers(),
            numbers,
            "{options}"
        );
    }
    let expired = on_instance(
        &place,
        "server",
        "CREATE CERTIFICATE old WITH SUBJECT = 'old', START_DATE = '20200101', EXPIRY_DATE = '20210101'\n\
         BACKUP DATABASE app TO DISK = 'd:\\f.bak' WITH ENCRYPTION (ALGORITHM = AES_128, SERVER CERTIFICATE = old)",
    );
    assert_eq!(expired.numbers(), [3096, 3013]);
    let appended = on_instance(
        &place,
        "server",
        "BACKUP DATABASE app TO DISK = 'd:\\g.bak'\n\
         BACKUP DATABASE app TO DISK = 'd:\\g.bak' WITH ENCRYPTION (ALGORITHM = AES_128, SERVER CERTIFICATE = BackupCert)\n\
         RESTORE VERIFYONLY FROM DISK = 'd:\\g.bak' WITH FILE = 2",
    );
    assert_eq!(appended.code, Some(0), "{}", appended.err);
}

#[test]
fn plain_commands_encrypt_for_certificates_and_passphrases() {
    let place = Place::new();
    let identity = Identity::create("offsite", 365).unwrap();
    let password = Passphrase::new(PASSWORD.to_owned());
    let write = |name: &str, text: &str| std::fs::write(place.path(name), text).unwrap();
    write("cert.pem", &identity.certificate().to_pem().unwrap());
    write(
        "key.pem",
        &identity.key().to_encrypted_pem(&password).unwrap(),
    );
    write("password", &format!("{PASSWORD}\n"));
    write("pass", "a passphrase nobody guesses\n");
    write("wrong", "another passphrase\n");
    place.succeed(&[
        "backup",
        "app.db",
        "--to",
        "e.bak",
        "--encrypt-to",
        "cert.pem",
        "--passphrase-file",
        "pass",
    ]);
    for keys in [
        &["--passphrase-file", "pass"][..],
        &["--key", "key.pem", "--key-password-file", "password"],
    ] {
        place.succeed(&[&["verify", "e.bak"][..], keys].concat());
        place.succeed(
            &[
                &["restore", "e.bak", "--to", "copy.db", "--replace"][..],
                keys,
            ]
            .concat(),
        );
        assert_eq!(rows(&place.path("copy.db")), 400);
    }
    std::fs::remove_file(place.path("copy.db")).unwrap();
    for (keys, number) in [
        (&[][..], 33111),
        (&["--passphrase-file", "wrong"], 50030),
        (&["--key", "key.pem"], 50030),
    ] {
        let run =
            place.run(&[&["--json", "restore", "e.bak", "--to", "copy.db"][..], keys].concat());
        assert_eq!(run.code, Some(1), "{keys:?}");
        assert_eq!(
            run.numbers().first(),
            Some(&number),
            "{keys:?}: {}",
            run.err
        );
        assert!(!place.path("copy.db").exists());
    }
    // Both ways in are named, and what can be done without either.
    let run = place.run(&["--json", "verify", "e.bak"]);
    assert_eq!(run.numbers()[..2], [33111, 50041], "{}", run.err);
    let run = place.succeed(&["--json", "verify", "e.bak", "--without-key"]);
    assert!(run.numbers().contains(&50042), "{}", run.err);
    assert!(!run.numbers().contains(&3262), "nothing is called valid");
    place.succeed(&[
        "backup",
        "app.db",
        "--to",
        "p.bak",
        "--passphrase-file",
        "pass",
    ]);
    let run = place.run(&["--json", "verify", "p.bak"]);
    assert_eq!(run.numbers(), [50041, 3013], "{}", run.err);
    assert!(run.err.contains("--passphrase-file") || run.out.contains("--passphrase-file"));
    // A plain set in the place of an encrypted one.
    place.succeed(&["backup", "app.db", "--to", "plain.bak"]);
    let run = place.run(&["--json", "verify", "plain.bak", "--passphrase-file", "pass"]);
    assert!(run.numbers().contains(&50030), "{}", run.err);
}

#[test]
fn a_passphrase_that_is_missing_is_asked_for_in_the_words_of_each_language() {
    let place = Place::new();
    std::fs::write(place.path("pass"), "correct horse\n").expect("a file");
    let own = ["--passphrase-file", "pass"];
    place.succeed(&[&["backup", "app.db", "--to", "p.bak"][..], &own].concat());
    let medium = place.text("p.bak");
    let script = format!("RESTORE VERIFYONLY FROM DISK = '{medium}'");
    let run = place.sql_with(&["--json"], &script);
    let messages = run.messages();
    let told = messages.iter().find(|message| message["number"] == 50041);
    let text = told.expect(&run.err)["text"].as_str().expect("a text");
    for words in [
        "windlass restore has --passphrase-file FILE",
        "PASSWORDFILE = [FILE]",
        "RESTORE in T-SQL has no option for it",
        "WITH WITHOUTKEY",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let plain = place.run(&["restore", "p.bak", "--to", "copy.db"]);
    assert!(
        plain
            .err
            .contains("Name the file that it is in: --passphrase-file FILE. To check"),
        "{}",
        plain.err
    );
    let misspelt = [
        "restore",
        "p.bak",
        "--to",
        "copy.db",
        "--passphrase-file",
        "pas",
    ];
    let run = place.run(&misspelt);
    assert!(run.err.contains("/pass'?"), "{}", run.err);
    // What it proposes to somebody who writes T-SQL is possible there.
    let run = place.sql(&format!("{script} WITH WITHOUTKEY"));
    assert_eq!(run.code, Some(0), "{}", run.err);
    let passphrase = place.text("pass");
    let run = place.sql(&format!(
        "EXEC sqlbackup '-SQL \"RESTORE VERIFYONLY FROM DISK = [{medium}] WITH PASSWORDFILE = [{passphrase}]\"'"
    ));
    assert!(run.out.contains("is valid"), "{}\n{}", run.out, run.err);
}

fn mode(path: &std::path::Path) -> u32 {
    let metadata = std::fs::metadata(path).expect("a file");
    metadata.permissions().mode() & 0o7777
}

/// Every file and folder below, and the folder itself.
fn all_below(folder: &std::path::Path, found: &mut Vec<std::path::PathBuf>) {
    found.push(folder.to_owned());
    if folder.is_dir() {
        for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
            all_below(&entry.path(), found);
        }
    }
}

#[test]
fn an_instance_s_folder_is_for_its_owner_alone_whatever_the_umask_is() {
    let place = Place::new();
    let script = format!(
        "EXEC sp_attach_db 'app', '{}'
CREATE MASTER KEY ENCRYPTION BY PASSWORD = '{PASSWORD}'
CREATE CERTIFICATE BackupCert WITH SUBJECT = 'Backups', EXPIRY_DATE = '20990101'
BACKUP DATABASE app TO DISK = '{}'
CREATE DATABASE Made
GO
USE Made
GO
CREATE TABLE t (x)",
        place.text("app.db"),
        place.text("a.bak")
    );
    let mut shell = std::process::Command::new("sh");
    shell
        .args(["-c", "umask 0; exec \"$0\" \"$@\""])
        .arg(env!("CARGO_BIN_EXE_windlass"))
        .args([
            "sql",
            "--instance",
            &place.text("deep/instance"),
            "-Q",
            &script,
        ]);
    let output = shell.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let mut found = Vec::new();
    all_below(&place.path("deep"), &mut found);
    let names = [
        "windlass.catalog",
        "service.key",
        "bases",
        "requests",
        "data",
    ];
    for name in names {
        assert!(found.iter().any(|path| path.ends_with(name)), "{name}");
    }
    for path in found {
        let others = mode(&path) & 0o077;
        assert_eq!(others, 0, "{}: {:o}", path.display(), mode(&path));
    }
}

#[test]
fn a_service_key_that_others_may_know_is_refused_with_what_to_do() {
    let place = Place::new();
    set_up(&place, "server");
    let run = on_instance(&place, "server", BACKUP);
    assert_eq!(run.code, Some(0), "{}", run.err);
    let key = place.path("server/service.key");
    let chmod = |bits| {
        std::fs::set_permissions(&key, std::fs::Permissions::from_mode(bits)).unwrap();
    };
    let restore = "RESTORE VERIFYONLY FROM DISK = 'd:\\e.bak'";
    for others in [0o644, 0o640, 0o606] {
        chmod(others);
        let run = on_instance(&place, "server", restore);
        assert!(run.numbers().contains(&50030), "{}", run.err);
        assert!(run.err.contains("chmod 600"), "{}", run.err);
        let doctor = place.succeed(&["doctor", "--instance", &place.text("server"), "--json"]);
        assert!(doctor.out.contains("others may use it"), "{}", doctor.out);
    }
    chmod(0o600);
    let run = on_instance(&place, "server", restore);
    assert_eq!(run.code, Some(0), "{}", run.err);
    let doctor = place.succeed(&["doctor", "--instance", &place.text("server"), "--json"]);
    assert!(!doctor.out.contains("others may use it"), "{}", doctor.out);
}

#[test]
fn rekey_says_who_can_read_and_its_file_goes_where_the_backup_goes() {
    let place = Place::new();
    for name in ["one", "two", "three"] {
        std::fs::write(place.path(name), format!("the passphrase {name}\n")).unwrap();
    }
    place.succeed(&[
        "backup",
        "app.db",
        "--to",
        "e.bak",
        "--passphrase-file",
        "one",
    ]);
    let media = place.path("e.bak");
    std::fs::set_permissions(&media, std::fs::Permissions::from_mode(0o640)).unwrap();
    let rekey = |new: &str, further: &[&str]| {
        let known = ["rekey", "e.bak", "--passphrase-file", "one"];
        place.run(&[&known[..], &["--new-passphrase-file", new], further].concat())
    };
    let run = rekey("two", &[]);
    assert_eq!(run.code, Some(0), "{}", run.err);
    assert_eq!(mode(&place.path("e.bak.keys")), 0o640);
    let run = rekey("three", &[]);
    assert!(
        run.err
            .contains("a passphrase (on the media) and a passphrase, a passphrase (in"),
        "{}",
        run.err
    );
    for name in ["one", "two", "three"] {
        place.succeed(&["verify", "e.bak", "--passphrase-file", name]);
    }
    // A copy without it could not be opened by the new ones.
    std::fs::create_dir(place.path("off")).unwrap();
    let copied = place.run(&[
        "sqlbackup",
        "-SQL",
        &format!(
            "BACKUP DATABASE app TO DISK = '{}' WITH COPYTO = '{}', PASSWORD = 'FILE:{}'",
            place.text("e.bak"),
            place.text("off"),
            place.text("one")
        ),
        "--attach",
        &format!("app={}", place.text("app.db")),
    ]);
    assert_eq!(copied.code, Some(0), "{} {}", copied.out, copied.err);
    place.succeed(&[
        "verify",
        "off/e.bak",
        "--set",
        "1",
        "--passphrase-file",
        "three",
    ]);
    // Whom only the copy lets in stays.
    let run = rekey("three", &["--replace"]);
    assert_eq!(run.code, Some(0), "{}", run.err);
    let again = format!(
        "BACKUP DATABASE app TO DISK = '{}' WITH COPYTO = '{}', PASSWORD = 'FILE:{}'",
        place.text("e.bak"),
        place.text("off"),
        place.text("one")
    );
    let attached = format!("app={}", place.text("app.db"));
    let copied = place.run(&["sqlbackup", "-SQL", &again, "--attach", &attached]);
    assert_eq!(copied.code, Some(1), "{}", copied.out);
    assert!(copied.out.contains("lets recipients in"), "{}", copied.out);
    place.succeed(&[
        "verify",
        "off/e.bak",
        "--set",
        "1",
        "--passphrase-file",
        "two",
    ]);
    let run = place.run(&["verify", "e.bak", "--passphrase-file", "two"]);
    assert_eq!(run.code, Some(1));
    // An unusable key file next to the media is reported, even where it is not needed.
    std::fs::write(place.path("e.bak.keys"), "WLKEYS1").unwrap();
    let run = place.succeed(&["verify", "e.bak", "--passphrase-file", "one"]);
    assert!(run.err.contains("e.bak.keys cannot be used"), "{}", run.err);
    let run = rekey("two", &[]);
    assert_eq!(run.code, Some(1));
    assert!(run.err.contains("--replace"), "{}", run.err);
}

#[test]
fn a_running_program_leaves_no_core_file() {
    let place = Place::new();
    let mut child = place
        .command(&["sql", "-Q", "WAITFOR DELAY '00:00:20'"])
        .spawn()
        .unwrap();
    let limits = format!("/proc/{}/limits", child.id());
    let is_off = |text: String| {
        let line = text.lines().find(|line| line.starts_with("Max core"));
        line.is_some_and(|line| line.split_whitespace().nth(4) == Some("0"))
    };
    let begun = std::time::Instant::now();
    let mut off = false;
    while !off && begun.elapsed() < std::time::Duration::from_secs(10) {
        off = std::fs::read_to_string(&limits).is_ok_and(&is_off);
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(off);
}
