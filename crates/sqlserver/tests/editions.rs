//! Tables from real backups against the public SQLite editions of the same databases.
#![expect(
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "a test may; one that tests nothing must say so"
)]

#[path = "../../bak/tests/common/mod.rs"]
mod common;

use std::path::{Path, PathBuf};

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags};
use windlass_device::DeviceAddress;
use windlass_sqlserver::{Extracted, Format, Source, extract};

/// What is the same in both editions of Northwind, and the number of cells. The SQLite edition moved all dates by
/// 20 years, and has other regions, pictures, quotation marks and postal codes.
const NORTHWIND: [(&str, usize); 8] = [
    ("SELECT * FROM Products ORDER BY ProductID", 770),
    (
        "SELECT OrderID, ProductID, UnitPrice, Quantity, round(Discount, 4)
         FROM \"Order Details\" ORDER BY OrderID, ProductID",
        10_775,
    ),
    ("SELECT * FROM Shippers ORDER BY ShipperID", 9),
    ("SELECT * FROM Territories ORDER BY TerritoryID", 159),
    (
        "SELECT * FROM EmployeeTerritories ORDER BY EmployeeID, TerritoryID",
        98,
    ),
    (
        "SELECT OrderID, CustomerID, EmployeeID, ShipVia, Freight FROM Orders ORDER BY OrderID",
        4150,
    ),
    (
        "SELECT CategoryID, CategoryName FROM Categories ORDER BY CategoryID",
        16,
    ),
    (
        "SELECT EmployeeID, LastName, FirstName, ReportsTo FROM Employees ORDER BY EmployeeID",
        36,
    ),
];

/// What half of the stripes of Chinook has completely, but for the names of the columns.
const CHINOOK: [(&str, usize); 2] = [
    ("SELECT * FROM Artist ORDER BY 1", 550),
    ("SELECT * FROM Genre ORDER BY 1", 50),
];

/// An edition; prints a message and returns `None` if it is absent.
fn edition(name: &str) -> Option<Connection> {
    let path: PathBuf = common::folder()?.join("../sqlite").join(name);
    if !path.exists() {
        eprintln!("NOT TESTED: there is no {}", path.display());
        return None;
    }
    let uri = format!("file:{}?immutable=1", path.display());
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
    Some(Connection::open_with_flags(uri, flags).unwrap())
}

fn extracted(name: &str, to: &Path) -> Option<(Extracted, Connection)> {
    let file = common::folder()?.join(name);
    let mut source = Source::open(&[DeviceAddress::disk(file)], 1).unwrap();
    let extracted = extract(&mut source, to, Format::Sqlite, &[]).unwrap();
    Some((extracted, Connection::open(to).unwrap()))
}

/// The rows of a query. Types differ between the editions: numbers are compared as such, texts without
/// blanks at the end.
fn rows(database: &Connection, query: &str) -> Vec<Vec<String>> {
    let mut statement = database.prepare(query).unwrap();
    let count = statement.column_count();
    let cell = |value: ValueRef<'_>| match value {
        ValueRef::Null => "NULL".to_owned(),
        ValueRef::Integer(number) => number.to_string(),
        ValueRef::Real(number) => number.to_string(),
        ValueRef::Text(text) => String::from_utf8_lossy(text).trim_end().to_owned(),
        ValueRef::Blob(bytes) => format!("{bytes:02X?}"),
    };
    let rows = statement.query_map([], |row| {
        (0..count)
            .map(|index| Ok(cell(row.get_ref(index)?)))
            .collect()
    });
    rows.unwrap().collect::<Result<_, _>>().unwrap()
}

fn assert_same(ours: &Connection, theirs: &Connection, queries: &[(&str, usize)]) {
    for (query, cells) in queries {
        let (ours, theirs) = (rows(ours, query), rows(theirs, query));
        let differs = ours.iter().zip(&theirs).find(|(a, b)| a != b);
        assert_eq!(differs, None, "{query}");
        assert_eq!(ours.len(), theirs.len(), "{query}");
        assert_eq!(ours.iter().map(Vec::len).sum::<usize>(), *cells, "{query}");
    }
}

#[test]
fn northwind_has_the_keys_and_amounts_of_its_sqlite_edition() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["sql2005_Northwind_a.bak", "sql2008r2_CorruptDB.bak"] {
        let to = folder.path().join(format!("{name}.db"));
        let Some((_, ours)) = extracted(name, &to) else {
            return;
        };
        let Some(theirs) = edition("northwind.db") else {
            return;
        };
        assert_same(&ours, &theirs, &NORTHWIND);
        for column in ["OrderDate", "RequiredDate", "ShippedDate"] {
            let moved = format!("SELECT date({column}, '+20 years') FROM Orders ORDER BY OrderID");
            let plain = format!("SELECT date({column}) FROM Orders ORDER BY OrderID");
            assert_eq!(rows(&ours, &moved), rows(&theirs, &plain), "{column}");
        }
    }
}

#[test]
fn chinook_has_the_rows_of_its_sqlite_edition() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("x.db");
    let Some((extracted, ours)) = extracted("sql2025_Chinook_stripe1of2_only.bak", &to) else {
        return;
    };
    let Some(theirs) = edition("chinook.sqlite") else {
        return;
    };
    assert_same(&ours, &theirs, &CHINOOK);
    // The number of rows of the others is known, too.
    let mut compared = 0;
    for table in extracted
        .tables
        .iter()
        .filter(|table| table.name != "sysdiagrams")
    {
        let count = format!("SELECT count(*) FROM \"{}\"", table.name);
        let counted = table.counted_rows.to_string();
        assert_eq!(rows(&theirs, &count), [[counted]], "{}", table.name);
        compared += 1;
    }
    assert_eq!(compared, 11);
}
