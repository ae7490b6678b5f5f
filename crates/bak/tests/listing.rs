//! The headers of the real backups.
#![expect(clippy::unwrap_used, reason = "a test may")]

mod common;

use std::fmt::Write as _;

use windlass_bak::columns::{self, Cell, Row};
use windlass_bak::{BackupType, Listing};

/// Columns with the names of people and their machines: only their length is kept.
const PERSONAL: [&str; 4] = ["UserName", "ServerName", "MachineName", "PhysicalName"];

fn show(out: &mut String, title: &str, row: &Row) {
    writeln!(out, "  {title}").unwrap();
    for (name, cell) in row.iter().filter(|(_, cell)| *cell != Cell::Null) {
        if PERSONAL.contains(name) {
            let letters = cell.to_string().chars().count();
            writeln!(out, "    {name}: ({letters} letters)").unwrap();
        } else {
            writeln!(out, "    {name}: {cell}").unwrap();
        }
    }
}

#[test]
fn every_backup_has_the_header_and_the_files_that_were_reviewed() {
    let samples = common::samples();
    if samples.is_empty() {
        return;
    }
    let mut shown = String::new();
    for sample in samples {
        let listing = Listing::read(&sample.bytes[..]).unwrap();
        assert_eq!(listing.findings, [], "{}", sample.name);
        assert_eq!(listing.walked.file_bytes, sample.bytes.len() as u64);
        writeln!(shown, "{}", sample.name).unwrap();
        let media = listing.media.as_ref().unwrap();
        show(
            &mut shown,
            "LABELONLY",
            &columns::label(media, listing.is_compressed()),
        );
        for set in &listing.sets {
            let row = columns::header(set, listing.algorithm());
            assert_eq!(row.len(), 59, "SQL Server's columns");
            show(&mut shown, "HEADERONLY", &row);
            for row in columns::file_list(set) {
                assert_eq!(row.len(), 22);
                show(&mut shown, "FILELISTONLY", &row);
            }
        }
    }
    common::assert_golden("listing.txt", &shown);
}

#[test]
fn every_backup_agrees_with_its_manifest() {
    for sample in common::samples() {
        let listing = Listing::read(&sample.bytes[..]).unwrap();
        let name = &sample.name;
        let special = sample.special();
        let columns = &sample.columns;
        assert_eq!(columns[1], sample.bytes.len().to_string(), "{name}");
        assert_eq!(columns[5], listing.sets.len().to_string(), "{name}: sets");
        assert_eq!(columns[3] == "yes", listing.is_compressed(), "{name}");
        let media = listing.media.as_ref().unwrap();
        assert!(
            special.contains(&format!("block {};", media.block_bytes)),
            "{name}"
        );
        assert_eq!(special.contains("media password"), media.has_password);
        let stripe = format!("stripe {} of {}", media.family_number, media.family_count);
        assert_eq!(media.family_count > 1, special.contains(&stripe), "{name}");
        for set in &listing.sets {
            let found = set.configuration().unwrap();
            let (major, minor, build) = found.version;
            assert!(
                columns[2].ends_with(&format!("({major}.{minor}.{build})")),
                "{name}: {:?}",
                found.version
            );
            assert_eq!(columns[4] == "yes", found.has_checksums(), "{name}");
            assert_eq!(columns[6], found.database, "{name}");
            assert_eq!(special.contains("COPY_ONLY"), found.is_copy_only());
            let kind = match found.backup_type {
                BackupType::Database => "full;",
                BackupType::Differential => "differential;",
                BackupType::Log => "log;",
                other => panic!("{name}: {other:?}"),
            };
            assert!(special.starts_with(kind), "{name}");
            let transfer = format!("transfer {} KB", found.transfer_bytes / 1024);
            assert!(special.contains(&transfer), "{name}");
            let data = found.data_files().len();
            let several = format!("{data} data files");
            assert_eq!(data > 1, special.contains(&several), "{name}");
            assert!(set.is_complete, "{name}");
        }
    }
}
