//! Tables from real backups and data files, as SQLite and as CSV.
#![expect(clippy::unwrap_used, reason = "a test may")]

#[path = "../../bak/tests/common/mod.rs"]
mod common;

use std::path::Path;

use rusqlite::Connection;
use windlass_device::DeviceAddress;
use windlass_sqlserver::{Error, Extracted, Format, Source, extract};

const LAB: &str = "sql2008r2_lab_RestoreTimeStripe__Stripe";

/// The files of samples; prints a message and returns `None` if the folder is absent.
fn samples(names: &[&str]) -> Option<Vec<DeviceAddress>> {
    let folder = common::folder()?;
    let file = |name: &&str| DeviceAddress::disk(folder.join(name));
    Some(names.iter().map(file).collect())
}

fn extracted(names: &[&str], to: &Path) -> Option<Extracted> {
    let mut source = Source::open(&samples(names)?, 1).unwrap();
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

/// The foreign keys of a table: name of the table, its columns, the table and the columns that they reference.
fn foreign_keys(database: &Connection, table: &str) -> Vec<String> {
    let query = "SELECT group_concat(\"from\", ',') || ' -> ' || \"table\" || '.' || group_concat(\"to\", ',')
                 FROM pragma_foreign_key_list(?) GROUP BY id ORDER BY 1";
    let mut statement = database.prepare(query).unwrap();
    let keys = statement.query_map([table], |row| row.get(0)).unwrap();
    keys.map(Result::unwrap).collect()
}

#[test]
fn foreign_keys_are_those_of_the_database() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("x.db");
    let Some(whole) = extracted(&["sql2005_Northwind_a.bak"], &to) else {
        return;
    };
    assert!(
        whole
            .tables
            .iter()
            .all(|table| table.foreign_keys_left_out.is_empty())
    );
    let database = Connection::open(&to).unwrap();
    let orders = [
        "CustomerID -> Customers.CustomerID",
        "EmployeeID -> Employees.EmployeeID",
        "ShipVia -> Shippers.ShipperID",
    ];
    assert_eq!(foreign_keys(&database, "Orders"), orders);
    let own = ["ReportsTo -> Employees.EmployeeID"];
    assert_eq!(foreign_keys(&database, "Employees"), own);
    drop(database);

    let to = folder.path().join("y.db");
    let mut source = Source::open(&samples(&["sql2005_Northwind_a.bak"]).unwrap(), 1).unwrap();
    let wanted = ["Orders".to_owned(), "Shippers".to_owned()];
    let part = extract(&mut source, &to, Format::Sqlite, &wanted).unwrap();
    let left: Vec<usize> = part
        .tables
        .iter()
        .map(|table| table.foreign_keys_left_out.len())
        .collect();
    assert_eq!(left, [2, 0]);
    assert!(part.tables[0].is_whole());
    let database = Connection::open(&to).unwrap();
    assert_eq!(
        foreign_keys(&database, "Orders"),
        ["ShipVia -> Shippers.ShipperID"]
    );
    database
        .execute_batch("PRAGMA foreign_keys = ON; DELETE FROM Orders; DELETE FROM Shippers;")
        .unwrap();
}

#[test]
fn every_full_backup_gives_all_rows_that_the_server_counts() {
    let mut tables = 0;
    let mut rows = 0;
    let mut foreign_keys = 0;
    for sample in common::samples() {
        if !sample.special().starts_with("full;") || sample.special().contains("stripe ") {
            continue;
        }
        let folder = tempfile::tempdir().unwrap();
        let mut source = Source::open(&[DeviceAddress::disk(&sample.path)], 1).unwrap();
        let to = folder.path().join("x.db");
        let extracted = extract(&mut source, &to, Format::Sqlite, &[]).unwrap();
        for table in extracted.tables {
            let is_damaged = sample.name == "sql2008r2_CorruptDB.bak" && table.name == "Orders";
            assert_eq!(table.is_whole(), !is_damaged, "{}: {table:?}", sample.name);
            tables += 1;
            rows += table.tally.rows;
            assert_eq!(table.foreign_keys_left_out, [""; 0], "{}", table.name);
        }
        let database = Connection::open(&to).unwrap();
        let violated = number(&database, "SELECT count(*) FROM pragma_foreign_key_check");
        assert_eq!(violated as u64, 0, "{}", sample.name);
        let query = "SELECT count(*) FROM pragma_foreign_key_list(tables.name), sqlite_schema tables WHERE seq = 0";
        foreign_keys += number(&database, query) as u64;
    }
    if tables > 0 {
        // With the second set and the stripes, which other tests read, 175 tables and 202 717 rows.
        assert_eq!((tables, rows), (172, 202_701));
        assert_eq!(foreign_keys, 120);
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
    let refused = Source::open(&samples(&others).unwrap(), 1);
    assert!(
        matches!(refused, Err(Error::OtherBase { .. })),
        "{refused:?}"
    );
    let log = ["sql2016_BackupTestDb_log.bak"];
    let refused = Source::open(&samples(&log).unwrap(), 1);
    assert!(
        matches!(refused, Err(Error::Sequence { .. })),
        "{refused:?}"
    );
}

#[test]
fn one_table_becomes_csv_and_nothing_that_exists_is_touched() {
    let Some(files) = samples(&["sql2012_pubs_a.bak"]) else {
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

/// A folder beside the name, as a killed extraction leaves it, or as one that is running has it.
#[test]
fn what_a_killed_extraction_left_is_replaced_and_what_another_writes_is_not_touched() {
    let Some(files) = samples(&["sql2012_pubs_a.bak"]) else {
        return;
    };
    let wanted = ["dbo.stores".to_owned()];
    for (format, extension) in [(Format::Csv, "csv"), (Format::Parquet, "parquet")] {
        let folder = tempfile::tempdir().unwrap();
        let (to, beside) = (
            folder.path().join("pubs"),
            folder.path().join("pubs.extracting"),
        );
        let mut source = Source::open(&files, 1).unwrap();
        let mut run = || extract(&mut source, &to, format, &wanted);
        std::fs::create_dir(&beside).unwrap();
        std::fs::write(beside.join(format!("dbo.old.{extension}")), "half").unwrap();

        let other = std::fs::File::open(&beside).unwrap();
        other.lock().unwrap();
        let error = run().unwrap_err().to_string();
        assert!(error.contains("another extraction writes it"), "{error}");
        drop(other);
        let foreign = beside.join("notes.txt");
        std::fs::write(&foreign, "mine").unwrap();
        let error = run().unwrap_err().to_string();
        assert!(
            error.contains("'notes.txt', which no extraction writes"),
            "{error}"
        );
        assert_eq!(std::fs::read_dir(&beside).unwrap().count(), 2);
        std::fs::remove_file(foreign).unwrap();

        run().unwrap();
        let names = std::fs::read_dir(&to)
            .unwrap()
            .map(|entry| entry.unwrap().file_name());
        assert_eq!(
            names.collect::<Vec<_>>(),
            [format!("dbo.stores.{extension}").as_str()]
        );
        assert!(!beside.exists());
    }
}
