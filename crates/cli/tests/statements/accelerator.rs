//! The provider for `QAT_DEFLATE`, chosen by the server options and shown by the status view.

use serde_json::Value as Json;

use crate::support::{Place, Run, make_database};

const ENABLE: &str = "EXEC sp_configure 'show advanced options', 1\nRECONFIGURE\n\
     EXEC sp_configure 'hardware offload enabled', 1\nRECONFIGURE\n";

fn on_instance(place: &Place, script: &str) -> Run {
    let run = place.sql_with(&["--json", "--instance", "server"], script);
    assert_eq!(run.code, Some(0), "{}", run.err);
    run
}

fn status(place: &Place) -> Json {
    let run = on_instance(place, "SELECT * FROM sys.dm_server_accelerator_status");
    run.results().pop().expect("a result")[0].clone()
}

#[test]
fn the_status_follows_the_server_options() {
    let place = Place::new();
    let found = status(&place);
    assert_eq!(found["accelerator"], "QAT");
    assert_eq!(found["mode_desc"], "NONE");
    assert_eq!(
        found["mode_reason_desc"],
        "NONE_HARDWARE_OFFLOAD_NOT_ENABLED"
    );
    let software = found["software_desc"].as_str().unwrap();
    assert!(
        software.starts_with("ISA-L") || software == "libdeflate",
        "{software}"
    );
    on_instance(&place, ENABLE);
    assert_eq!(
        status(&place)["mode_reason_desc"],
        "NONE_ACCELERATOR_CONFIG_NOT_ENABLED"
    );
    on_instance(
        &place,
        "ALTER SERVER CONFIGURATION SET HARDWARE_OFFLOAD = ON (ACCELERATOR = QAT, MODE = SOFTWARE)",
    );
    let found = status(&place);
    assert_eq!(found["mode_desc"], "SOFTWARE");
    assert_eq!(
        found["mode_reason_desc"],
        "SOFTWARE_MODE_SOFTWARE_FORCE_OVERRIDE"
    );
}

#[test]
fn software_takes_over_where_there_is_no_device() {
    let place = Place::new();
    on_instance(&place, ENABLE);
    on_instance(
        &place,
        "ALTER SERVER CONFIGURATION SET HARDWARE_OFFLOAD = ON (ACCELERATOR = QAT)",
    );
    let found = status(&place);
    if found["accelerator_hardware_detected"] == 1 {
        assert_eq!(found["mode_desc"], "HARDWARE");
    } else {
        assert_eq!(found["mode_desc"], "SOFTWARE");
        assert!(found["problem_desc"].is_string());
    }
    on_instance(
        &place,
        &format!(
            "EXEC sp_attach_db 'app', '{}'\n\
             BACKUP DATABASE app TO DISK = 'd:\\q.bak' WITH COMPRESSION (ALGORITHM = QAT_DEFLATE)\n\
             RESTORE VERIFYONLY FROM DISK = 'd:\\q.bak'",
            place.text("app.db")
        ),
    );
}

#[test]
fn without_the_server_options_qat_deflate_is_refused_and_restored() {
    let place = Place::new();
    let app = place.text("app.db");
    on_instance(&place, &format!("EXEC sp_attach_db 'app', '{app}'"));
    let backup = "BACKUP DATABASE app TO DISK = 'd:\\q.bak' WITH FORMAT, COMPRESSION";
    let refused = |script: &str, hint: &str| {
        let run = place.sql_with(&["--instance", "server"], script);
        assert_ne!(run.code, Some(0), "{}", run.err);
        assert!(
            run.err.contains("Msg 17441") && run.err.contains(hint),
            "{}",
            run.err
        );
        assert!(!place.path("q.bak").exists());
    };
    let named = format!("{backup} (ALGORITHM = QAT_DEFLATE)");
    refused(&named, "hardware offload enabled");
    let probe =
        "BACKUP DATABASE app TO DISK = 'NUL' WITH NOWRITE, COMPRESSION (ALGORITHM = QAT_DEFLATE)";
    refused(probe, "hardware offload enabled");
    on_instance(
        &place,
        "EXEC sp_configure 'backup compression algorithm', 2\nRECONFIGURE",
    );
    refused(backup, "hardware offload enabled");
    let run = place.run(&[
        "backup",
        "app",
        "--instance",
        "server",
        "--to",
        "q.bak",
        "--compress",
        "qat_deflate",
        "--dry-run",
    ]);
    assert!(
        run.code != Some(0) && run.err.contains("17441"),
        "{}",
        run.err
    );
    on_instance(&place, ENABLE);
    refused(backup, "ALTER SERVER CONFIGURATION");
    // Without an instance there are no server options; what was made can be read everywhere.
    let run = place.run(&["backup", &app, "--to", "q.bak", "--compress", "qat_deflate"]);
    assert_eq!(run.code, Some(0), "{}", run.err);
    on_instance(&place, "RESTORE VERIFYONLY FROM DISK = 'd:\\q.bak'");
}

/// A stand-in for the vendor's library, built for this test.
fn stand_in(place: &Place) -> String {
    let source = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../accelerator/tests/stand-in/lib.rs"
    );
    let library = place.text("libqatzip-stand-in.so");
    let compiler = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let built = std::process::Command::new(compiler)
        .args([
            "--edition",
            "2024",
            "--crate-type",
            "cdylib",
            "-Anon_snake_case",
        ])
        .args(["-o", &library, source])
        .status();
    assert!(built.is_ok_and(|status| status.success()));
    library
}

#[test]
fn a_device_that_fails_in_mid_backup_does_not_fail_the_backup() {
    let place = Place::new();
    on_instance(&place, ENABLE);
    on_instance(
        &place,
        "ALTER SERVER CONFIGURATION SET HARDWARE_OFFLOAD = ON (ACCELERATOR = QAT)",
    );
    make_database(&place.path("large.db"), 4000);
    let library = stand_in(&place);
    let script = format!(
        "EXEC sp_attach_db 'large', '{}'\n\
         SELECT mode_desc, accelerator_library_version FROM sys.dm_server_accelerator_status\n\
         BACKUP DATABASE large TO DISK = 'd:\\q.bak' \
         WITH COMPRESSION (ALGORITHM = QAT_DEFLATE), THREADCOUNT = 1\n\
         RESTORE VERIFYONLY FROM DISK = 'd:\\q.bak'\n\
         SELECT mode_desc, mode_reason_desc, problem_desc FROM sys.dm_server_accelerator_status",
        place.text("large.db")
    );
    std::fs::write(place.path("script.sql"), script).expect("the script");
    let drive = format!("d={}", place.text(""));
    let run = place
        .command(&[
            "sql",
            "-i",
            "script.sql",
            "--drive",
            &drive,
            "--json",
            "--instance",
            "server",
        ])
        .env("WINDLASS_QATZIP", library)
        .env("WINDLASS_STAND_IN", "fail_after=1")
        .output()
        .expect("the program runs");
    let (out, err) = (
        String::from_utf8_lossy(&run.stdout),
        String::from_utf8_lossy(&run.stderr),
    );
    assert!(run.status.success(), "{err}");
    assert!(
        err.contains("the QAT device failed (qzCompress: -2); software"),
        "{err}"
    );
    assert!(out.contains("HARDWARE") && out.contains("1.3.2"), "{out}");
    assert!(
        out.contains("SOFTWARE_MODE_ACCELERATOR_SESSION_FAILED"),
        "{out}"
    );
}
