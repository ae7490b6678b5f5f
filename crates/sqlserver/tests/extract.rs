//! Tables from real backups and data files, as SQLite and as CSV.
#![expect(clippy::unwrap_used, reason = "a test may")]

#[path = "../../bak/tests/common/mod.rs"]
mod common;

use std::path::{Path, PathBuf};

use rusqlite::Connection;
use windlass_sqlserver::{Error, Extracted, Format, Source, extract};

const LAB: &str = "sql2008r2_lab_RestoreTimeStripe__Stripe";

/// The paths of samples; prints a message and returns `None` if the folder is absent.
fn paths(names: &[&str]) -> Option<Vec<PathBuf>> {
    let folder = common::folder()?;
    Some(names.iter().map(|name| folder.join(name)).collect())
}

fn extracted(names: &[&str], to: &Path) -> Option<Extracted> {
    let mut source = Source::open(&paths(names)?, 1).unwrap();
    assert_eq!(source.findings, []);
    Some(extract(&mut source, to, Format::Sqlite, &[]).unwrap())
}

fn number(database: &Connection, query: &str) -> f64 {
    database.query_row(query, [], |row| row.get(0)).unwrap()
}

#[test]
fn northwind_becomes_a_sqlite_file_with_its_types_keys_and_sums() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("x.db");
    let Some(extracted) = extracted(&["sql2005_Northwind_a.bak"], &to) else {
        return;
    };
    assert_eq!(extracted.tables.len(), 16);
    for table in &extracted.tables {
        assert!(table.is_whole(), "{table:?}");
    }
    let database = Connection::open(&to).unwrap();
    let freight = number(&database, "SELECT sum(Freight) FROM Orders");
    assert!((freight - 64_942.69).abs() < 1e-6, "{freight}");
    let sum = "SELECT sum(UnitPrice * Quantity) FROM \"Order Details\"";
    assert!((number(&database, sum) - 1_354_458.59).abs() < 1e-4);
    let dear = "SELECT count(*) FROM Products WHERE UnitPrice > 100";
    assert!(
        (number(&database, dear) - 2.0).abs() < 0.1,
        "prices compare as numbers"
    );
    let text: String = database
        .query_row(
            "SELECT ShipName || '|' || OrderDate FROM Orders WHERE OrderID = 10249",
            [],
            |row| row.get(0),
        )
        .unwrap();
    assert_eq!(text, "Toms Spezialitäten|1996-07-05 00:00:00.000");
    let keys = "SELECT count(*) FROM pragma_table_info('Order Details') WHERE pk > 0";
    assert!((number(&database, keys) - 2.0).abs() < 0.1);
    let declared: String = database
        .query_row(
            "SELECT sql_type FROM windlass_columns WHERE table_name = 'Orders' AND column_name = 'Freight'",
            [],
            |row| row.get(0),
        )
        .unwrap();
    assert_eq!(declared, "money");
    let check: String = database
        .query_row("PRAGMA integrity_check", [], |row| row.get(0))
        .unwrap();
    assert_eq!(check, "ok");
}

#[test]
fn every_full_backup_gives_all_rows_that_the_server_counts() {
    let mut tables = 0;
    let mut rows = 0;
    for sample in common::samples() {
        if !sample.special().starts_with("full;") || sample.special().contains("stripe ") {
            continue;
        }
        let folder = tempfile::tempdir().unwrap();
        let mut source = Source::open(std::slice::from_ref(&sample.path), 1).unwrap();
        let to = folder.path().join("x.db");
        let extracted = extract(&mut source, &to, Format::Sqlite, &[]).unwrap();
        for table in extracted.tables {
            let is_damaged = sample.name == "sql2008r2_CorruptDB.bak" && table.name == "Orders";
            assert_eq!(table.is_whole(), !is_damaged, "{}: {table:?}", sample.name);
            tables += 1;
            rows += table.tally.rows;
        }
    }
    if tables > 0 {
        // With the second set and the stripes, which other tests read, 175 tables and 202 717 rows.
        assert_eq!((tables, rows), (172, 202_701));
    }
}

#[test]
fn differentials_stripes_and_data_files_are_sources_too() {
    let folder = tempfile::tempdir().unwrap();
    let halves = [
        format!("{LAB}2__RestoreTimeStripe1.bak"),
        format!("{LAB}1__RestoreTimeStripe.bak"),
    ];
    let Some(stripes) = extracted(&[&halves[0], &halves[1]], &folder.path().join("a.db")) else {
        return;
    };
    assert_eq!(stripes.tables.len(), 1);
    let pair = [
        "sql2016_BackupTestDb_diff.bak",
        "sql2016_BackupTestDb_full.bak",
    ];
    assert_eq!(
        extracted(&pair, &folder.path().join("b.db"))
            .unwrap()
            .tables
            .len(),
        0
    );
    let files = [
        "mdf_sql2014_AWDataWarehouse.mdf",
        "mdf_sql2014_AWDataWarehouse_archive.ndf",
    ];
    let data = extracted(&files, &folder.path().join("c.db")).unwrap();
    let whole: Vec<(&str, u64)> = data
        .tables
        .iter()
        .filter(|table| table.is_whole())
        .map(|table| (&*table.name, table.tally.rows))
        .collect();
    assert_eq!(whole, [("FactInternetSalesArchive", 28_133)]);
    let others = [
        "sql2016_BackupTestDb_full.bak",
        "sql2008r2_lab_DoubleDiffing__difftest-diff1.bak",
    ];
    let refused = Source::open(&paths(&others).unwrap(), 1);
    assert!(
        matches!(refused, Err(Error::OtherBase { .. })),
        "{refused:?}"
    );
    let log = ["sql2016_BackupTestDb_log.bak"];
    let refused = Source::open(&paths(&log).unwrap(), 1);
    assert!(
        matches!(refused, Err(Error::Sequence { .. })),
        "{refused:?}"
    );
}

#[test]
fn one_table_becomes_csv_and_nothing_that_exists_is_touched() {
    let Some(files) = paths(&["sql2012_pubs_a.bak"]) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("pubs");
    let mut source = Source::open(&files, 1).unwrap();
    let wanted = ["dbo.stores".to_owned()];
    extract(&mut source, &to, Format::Csv, &wanted).unwrap();
    let text = std::fs::read_to_string(to.join("dbo.stores.csv")).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 7);
    assert_eq!(
        lines[0],
        "\"stor_id\",\"stor_name\",\"stor_address\",\"city\",\"state\",\"zip\""
    );
    assert!(
        lines[1].starts_with("\"6380\",\"Eric the Read Books\""),
        "{}",
        lines[1]
    );
    let again = extract(&mut source, &to, Format::Csv, &wanted);
    assert!(matches!(again, Err(Error::Exists(_))), "{again:?}");
    let none = extract(
        &mut source,
        &folder.path().join("y"),
        Format::Csv,
        &["nothing".to_owned()],
    );
    assert!(matches!(none, Err(Error::NoSuchTable(_))), "{none:?}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    // SQLite would apply what is left beside the name to the new file.
    for left in ["x.db-wal", "x.db-journal", "x.db.extracting-journal"] {
        let left = folder.path().join(left);
        std::fs::write(&left, "of another database").unwrap();
        let beside = extract(
            &mut source,
            &folder.path().join("x.db"),
            Format::Sqlite,
            &[],
        );
        let error = beside.unwrap_err().to_string();
        assert!(error.contains("SQLite would apply it"), "{error}");
        std::fs::remove_file(left).unwrap();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
