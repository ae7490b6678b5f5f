//! Memory stays within the plan's number, whatever the database's size.

use std::path::Path;

use crate::support::{Store, backup_arguments, command, make_database, shown};

/// Memory that the program itself, its libraries and its thread stacks may use in addition to the plan.
const ALLOWANCE_BYTES: u64 = 64 << 20;

/// Peak resident memory of a run, and its output.
fn peak_of(arguments: &[&str]) -> (u64, String) {
    let child = command(arguments)
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("the program starts");
    let status_file = format!("/proc/{}/status", child.id());
    let watcher = std::thread::spawn(move || {
        let mut peak = 0;
        while let Ok(status) = std::fs::read_to_string(&status_file) {
            let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
            let Some(line) = line else { break };
            let kilobytes: u64 = line.trim().trim_end_matches(" kB").parse().unwrap_or(0);
            peak = peak.max(kilobytes * 1024);
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        peak
    });
    let output = child.wait_with_output().expect("the program ends");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    (
        watcher.join().expect("the watcher"),
        String::from_utf8_lossy(&output.stdout).into_owned(),
    )
}

fn check(database: &Path, store: Store) {
    let folder = tempfile::tempdir().expect("a folder");
    let devices = vec![store.medium(folder.path(), "m.bak")];
    for algorithm in ["none", "ms_xpress", "zstd:low", "zstd:high"] {
        let name = shown(database);
        let extra = ["--compress", algorithm, "--json", "--format"];
        let (peak, output) = peak_of(&backup_arguments(&name, &devices, &extra));
        let report: serde_json::Value = serde_json::from_str(&output).expect("JSON");
        let planned = report["plan"]["memory_bytes"]["value"]
            .as_u64()
            .expect("the plan's number");
        println!(
            "{store:?}, {algorithm}: peak {} MB, planned {} MB",
            peak >> 20,
            planned >> 20
        );
        assert!(
            peak <= planned + ALLOWANCE_BYTES,
            "{store:?}, {algorithm}: peak {peak}, planned {planned}"
        );
    }
    store.remove(&devices[0]);
}

#[test]
fn memory_of_a_backup_stays_within_the_plan() {
    let folder = tempfile::tempdir().expect("a folder");
    let database = folder.path().join("app.db");
    make_database(&database, 96, "wal");
    check(&database, Store::Files);
    check(&database, Store::Objects);
}

#[test]
#[ignore = "makes a database of two gigabytes"]
fn slow_memory_of_a_two_gigabyte_backup_stays_within_the_plan() {
    let folder = tempfile::tempdir().expect("a folder");
    let database = folder.path().join("app.db");
    make_database(&database, 2048, "delete");
    check(&database, Store::Files);
    check(&database, Store::Objects);
}
