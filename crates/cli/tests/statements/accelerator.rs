//! Who compresses `QAT_DEFLATE`, as the server options allow it and the status view tells it.

use serde_json::Value as Json;

use crate::support::{Place, Run};

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
    assert!(["ISA-L", "libdeflate"].contains(&found["software_desc"].as_str().unwrap()));
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
