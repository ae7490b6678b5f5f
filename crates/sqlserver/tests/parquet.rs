//! Parquet files of the tables in real backups, read by another program: `pyarrow`.
#![expect(clippy::unwrap_used, reason = "a test may")]

#[path = "../../bak/tests/common/mod.rs"]
mod common;

use std::path::PathBuf;
use std::process::Command;

use windlass_device::DeviceAddress;
use windlass_sqlserver::{Format, Source, extract};

/// The exit code of the script without `pyarrow`.
const NO_READER: i32 = 77;

/// Compares the files of two folders and a SQLite file; returns the rows and the types, or `None`, loudly, without a reader.
#[expect(clippy::print_stderr, reason = "a test that tests nothing must say so")]
fn compared(outputs: &[PathBuf; 3]) -> Option<(u64, String)> {
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/parquet.py");
    let installed =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../target/clients/python/bin/python3");
    let python = if installed.exists() {
        installed
    } else {
        PathBuf::from("python3")
    };
    let run = Command::new(python).arg(script).args(outputs).output();
    let run = match run {
        Ok(run) if run.status.code() != Some(NO_READER) => run,
        _ => {
            assert!(
                std::env::var_os("CI").is_none(),
                "there is no pyarrow: run `cargo xtask tools`"
            );
            eprintln!(
                "NOT TESTED: there is no python3 with pyarrow to read Parquet files (cargo xtask tools installs it)"
            );
            return None;
        }
    };
    let said = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "{said}");
    let out = String::from_utf8_lossy(&run.stdout);
    let (rows, types) = out.split_once(' ').unwrap();
    Some((rows.parse().unwrap(), types.to_owned()))
}

#[test]
fn another_program_reads_the_same_values_as_are_in_the_csv_and_sqlite_files() {
    let mut all = 0;
    for sample in common::samples() {
        if !sample.special().starts_with("full;") || sample.special().contains("stripe ") {
            continue;
        }
        let folder = tempfile::tempdir().unwrap();
        let outputs = ["p", "c", "s"].map(|name| folder.path().join(name));
        let formats = [Format::Parquet, Format::Csv, Format::Sqlite];
        for (to, format) in outputs.iter().zip(formats) {
            let mut source = Source::open(&[DeviceAddress::disk(&sample.path)], 1).unwrap();
            extract(&mut source, to, format, &[]).unwrap();
        }
        let Some((rows, types)) = compared(&outputs) else {
            return;
        };
        all += rows;
        if sample.name == "sql2005_Northwind_a.bak" {
            for word in [
                "decimal128",
                "timestamp",
                "int32",
                "binary",
                "string",
                "float",
            ] {
                assert!(types.contains(word), "{types}");
            }
        }
    }
    if all > 0 {
        // As in `extract.rs`.
        assert_eq!(all, 202_701);
    }
}
