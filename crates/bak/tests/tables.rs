//! The tables in the real backups: rows, sums and contents that were verified by hand.
#![expect(clippy::unwrap_used, reason = "a test may")]

mod common;

use std::collections::{BTreeMap, HashMap};

use windlass_bak::page::{EXTENT_BYTES, EXTENT_PAGES, Located, PAGE_BYTES, locate};
use windlass_bak::table::{Database, Pages, Table, Value};
use windlass_bak::{Configuration, Error, ExtentPlace, PageId, SetHeader, Visit, walk};

const LAB: &str = "sql2008r2_lab_RestoreTimeStripe__Stripe";

/// The pages of one set, or of several on top of each other.
#[derive(Default)]
struct Memory {
    extents: HashMap<(u16, u32), Vec<u8>>,
    data_files: Vec<u16>,
    position: u16,
    wanted: u16,
}

impl Visit for Memory {
    fn set(&mut self, header: &SetHeader, _place: windlass_bak::Place) {
        self.position = header.position;
    }

    fn configuration(&mut self, configuration: &Configuration, _is_final: bool) {
        self.data_files = configuration.data_files();
    }

    fn wants_data(&mut self) -> bool {
        self.position == self.wanted
    }

    fn extent(&mut self, _at: ExtentPlace, extent: &[u8]) -> Result<(), Error> {
        if let Located::Extent { first } = locate(extent, &self.data_files) {
            let key = (first.file, first.page / EXTENT_PAGES);
            self.extents.insert(key, extent.to_vec());
        }
        Ok(())
    }
}

impl Pages for Memory {
    fn page(&mut self, id: PageId, page: &mut [u8]) -> Result<bool, Error> {
        let Some(extent) = self.extents.get(&(id.file, id.page / EXTENT_PAGES)) else {
            return Ok(false);
        };
        let at = (id.page % EXTENT_PAGES) as usize * PAGE_BYTES;
        page.copy_from_slice(&extent[at..at + PAGE_BYTES]);
        Ok(true)
    }
}

fn memory(families: &[&[u8]], position: u16) -> Memory {
    let mut memory = Memory {
        wanted: position,
        ..Memory::default()
    };
    for family in families {
        walk(*family, &mut memory).unwrap();
    }
    assert!(
        memory
            .extents
            .values()
            .all(|extent| extent.len() == EXTENT_BYTES)
    );
    memory
}

/// A database in memory.
struct Opened {
    pages: Memory,
    database: Database,
}

impl Opened {
    fn new(names: &[&str], position: u16) -> Option<Self> {
        let bytes: Vec<Vec<u8>> = names
            .iter()
            .map(|name| common::sample(name))
            .collect::<Option<_>>()?;
        let families: Vec<&[u8]> = bytes.iter().map(Vec::as_slice).collect();
        let mut pages = memory(&families, position);
        let database = Database::open(&mut pages).unwrap();
        Some(Self { pages, database })
    }

    fn table(&self, name: &str) -> Table {
        let mut tables = self.database.tables.iter();
        let found = tables
            .find(|table| table.name == name || format!("{}.{}", table.schema, table.name) == name);
        found.unwrap_or_else(|| panic!("no table {name}")).clone()
    }

    /// The rows of a table; fails unless all of them are found.
    fn rows(&mut self, name: &str) -> Vec<Vec<Value>> {
        let table = self.table(name);
        let mut rows = Vec::new();
        let tally = self
            .database
            .read(&mut self.pages, &table, &mut |row| {
                rows.push(row.to_vec());
                Ok(())
            })
            .unwrap();
        let is_known = |text: &&String| **text != DAMAGED;
        let problems: Vec<&String> = tally.problems.texts.iter().filter(is_known).collect();
        assert_eq!(problems, [""; 0], "{name}");
        assert_eq!(tally.rows, table.counted_rows, "{name}");
        rows
    }

    fn column(&mut self, table: &str, column: &str) -> Vec<Value> {
        let columns = self.table(table).columns;
        let index = columns.iter().position(|found| found.name == column);
        let index = index.unwrap_or_else(|| panic!("no column {column}"));
        let rows = self.rows(table);
        rows.into_iter().map(|row| row[index].clone()).collect()
    }

    /// The exact sum of a column, in its last digits.
    fn sum(&mut self, table: &str, column: &str) -> i128 {
        let values = self.column(table, column);
        values
            .iter()
            .map(|value| match value {
                Value::Integer(value) => i128::from(*value),
                Value::Decimal(digits, _) => *digits,
                Value::Null => 0,
                other => panic!("{other:?}"),
            })
            .sum()
    }
}

/// The non-empty tables of a file and the total number, from the reference.
const EXPECTED: [(&str, usize, u64, &str); 17] = [
    (
        "sql2005_Northwind_a.bak",
        16,
        3308,
        "Categories 8, Customers 91, EmployeeTerritories 49, Employees 9, Order Details 2155, Orders 830, Products 77, Region 4, Shippers 3, Suppliers 29, Territories 53",
    ),
    (
        "sql2008_Northwind_sp2.bak",
        9,
        3203,
        "Category 8, Customer 91, Employee 9, Order 830, OrderDetail 2155, Product 77, Shipper 3, Supplier 29, sysdiagrams 1",
    ),
    (
        "sql2008r2_CorruptDB.bak",
        14,
        3308,
        "Categories 8, Customers 91, EmployeeTerritories 49, Employees 9, Order Details 2155, Orders 830, Products 77, Region 4, Shippers 3, Suppliers 29, Territories 53",
    ),
    ("sql2008r2_Employee_2sets_4k.bak", 2, 4, "Designation 4"),
    (
        "sql2008r2_Northwind.bak",
        15,
        3321,
        "Categories 8, Customers 97, EmployeeTerritories 49, Employees 9, Order Details 2155, Orders 830, Products 77, Region 4, Shippers 6, Suppliers 29, Territories 53, titulos_de_contacto 4",
    ),
    (
        "sql2008r2_lab_Cube_Query_History__FULL__SQL2008_Cube_Query_History_FULL_20170518_041737.bak",
        0,
        0,
        "",
    ),
    ("sql2008r2_lab_DoubleDiffing__difftest-full.bak", 0, 0, ""),
    ("sql2008r2_lab_StopAt__StopAt.bak", 1, 0, ""),
    (
        "sql2008r2_lab_backuppassword__passwd.bak",
        1,
        60,
        "steps 60",
    ),
    (
        "sql2012_pubs_a.bak",
        15,
        403,
        "EstadosMexicanos 32, Usuarios 1, authors 26, bookstock 108, discounts 3, employee 43, jobs 14, pub_info 8, publishers 8, roysched 86, sales 23, stores 6, titleauthor 26, titles 19",
    ),
    (
        "sql2014_NORTHWIND_DB.bak",
        14,
        5,
        "Categories 2, Suppliers 2, sysdiagrams 1",
    ),
    (
        "sql2014c_AWDataWarehouse_copyonly_3datafiles.bak",
        5,
        81679,
        "DimCustomer 18484, DimDate 2191, DimProduct 606, FactInternetSales 32265, FactInternetSalesArchive 28133",
    ),
    (
        "sql2014c_HumanResources_copyonly.bak",
        1,
        290,
        "Employee 290",
    ),
    ("sql2016_BackupTestDb_full.bak", 0, 0, ""),
    (
        "sql2016c_TutorialDB_a.bak",
        2,
        454,
        "rental_data 453, rental_rx_models 1",
    ),
    (
        "sql2017c_aspnetboilerplate.bak",
        39,
        1194,
        "AbpAuditLogs 995, AbpEditions 1, AbpLanguages 1, AbpPermissions 33, AbpRoles 3, AbpSettings 4, AbpTenants 1, AbpUserAccounts 1, AbpUserLoginAttempts 4, AbpUserRoles 3, AbpUsers 61, Demo 4, Demo_File 7, TreeView 57, __EFMigrationsHistory 19",
    ),
    ("sql2022c_CompanyORM.bak", 8, 1, "__EFMigrationsHistory 1"),
];

fn counts(opened: &mut Opened) -> (usize, u64, String) {
    let names: Vec<String> = opened
        .database
        .tables
        .iter()
        .map(|table| table.name.clone())
        .collect();
    let mut rows = BTreeMap::new();
    for name in &names {
        let count = opened.rows(name).len();
        if count > 0 {
            rows.insert(name.clone(), count as u64);
        }
    }
    let texts: Vec<String> = rows.iter().map(|(name, n)| format!("{name} {n}")).collect();
    (names.len(), rows.values().sum(), texts.join(", "))
}

/// The one bad page of all samples; the changed bit is in none of its rows.
const DAMAGED: &str = "page 1:283 is damaged: its checksum is 0x6f1e5e31, computed 0x6f1ede31";

#[test]
fn a_damaged_page_is_named_with_the_table_that_it_belongs_to() {
    let Some(mut opened) = Opened::new(&["sql2008r2_CorruptDB.bak"], 1) else {
        return;
    };
    for table in opened.database.tables.clone() {
        let mut put = |_: &[Value]| Ok(());
        let tally = opened
            .database
            .read(&mut opened.pages, &table, &mut put)
            .unwrap();
        let expected: &[&str] = match table.name.as_str() {
            "Orders" => &[DAMAGED],
            _ => &[],
        };
        assert_eq!(tally.problems.texts, expected, "{}", table.name);
    }
}

#[test]
fn every_table_has_the_rows_that_the_server_counts() {
    for (name, tables, rows, texts) in EXPECTED {
        let Some(mut opened) = Opened::new(&[name], 1) else {
            return;
        };
        let found = counts(&mut opened);
        assert_eq!(found, (tables, rows, texts.to_owned()), "{name}");
    }
}

#[test]
fn schemas_second_sets_stripes_and_upgraded_databases_are_read_too() {
    let Some(mut opened) = Opened::new(&["sql2016c_TSQL2012.bak"], 1) else {
        return;
    };
    let found: Vec<(String, u64)> = opened
        .database
        .tables
        .clone()
        .iter()
        .map(|table| {
            let name = format!("{}.{}", table.schema, table.name);
            (name, table.counted_rows)
        })
        .collect();
    assert_eq!(found.len(), 26);
    assert_eq!(found.iter().map(|(_, rows)| rows).sum::<u64>(), 105_327);
    for (name, rows) in [
        ("HR.Employees", 9),
        ("Sales.Orders", 830),
        ("dbo.Nums", 100_000),
        ("IntermediateStep.IntersectionEmployeesCustomers", 3),
    ] {
        assert!(
            found.contains(&(name.to_owned(), rows)),
            "{name}: {found:?}"
        );
    }
    let mut read = 0;
    for table in opened.database.tables.clone() {
        let tally = opened
            .database
            .read(&mut opened.pages, &table, &mut |_| Ok(()))
            .unwrap();
        assert_eq!(tally.rows, table.counted_rows, "{}", table.name);
        assert_eq!(tally.problems.count, 0, "{:?}", tally.problems);
        read += tally.rows;
    }
    assert_eq!(read, 105_327);
    let mut numbers = opened.column("Nums", "n");
    numbers.sort_by_key(|value| match value {
        Value::Integer(value) => *value,
        other => panic!("{other:?}"),
    });
    assert!(
        numbers
            .iter()
            .zip(1..)
            .all(|(value, n)| *value == Value::Integer(n))
    );

    let second = Opened::new(&["sql2008r2_Employee_2sets_4k.bak"], 2);
    let found = counts(&mut second.unwrap());
    assert_eq!(found, (2, 16, "Designation 4, Emptable 12".to_owned()));
    let halves = [
        format!("{LAB}2__RestoreTimeStripe1.bak"),
        format!("{LAB}1__RestoreTimeStripe.bak"),
    ];
    let stripes = Opened::new(&[&halves[0], &halves[1]], 1);
    assert_eq!(counts(&mut stripes.unwrap()).0, 1);
    let upgraded = Opened::new(&["sql2019_Northwind.bak"], 1);
    let found = counts(&mut upgraded.unwrap());
    assert_eq!(
        found,
        (4, 144, "Categories 9, Products 77, Users 58".to_owned())
    );
}

/// The first 8 bytes of the SHA-256 of a value.
fn hash(value: &Value) -> (usize, String) {
    let bytes = match value {
        Value::Binary(bytes) => bytes.clone(),
        Value::Text(text) => text.clone().into_bytes(),
        other => panic!("{other:?}"),
    };
    let hash = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, &bytes);
    let hex = hash.as_ref()[..8].iter().map(|byte| format!("{byte:02x}"));
    (bytes.len(), hex.collect())
}

#[test]
fn sums_pictures_and_long_texts_are_those_that_were_proved() {
    for name in ["sql2005_Northwind_a.bak", "sql2008r2_Northwind.bak"] {
        let Some(mut opened) = Opened::new(&[name], 1) else {
            return;
        };
        assert_eq!(opened.sum("Orders", "Freight"), 649_426_900, "{name}");
        assert_eq!(opened.sum("Order Details", "Quantity"), 51_317, "{name}");
        let prices = opened.column("Order Details", "UnitPrice");
        let quantities = opened.column("Order Details", "Quantity");
        let total: i128 = prices
            .iter()
            .zip(&quantities)
            .map(|pair| match pair {
                (Value::Decimal(price, 4), Value::Integer(n)) => price * i128::from(*n),
                other => panic!("{other:?}"),
            })
            .sum();
        assert_eq!(total, 13_544_585_900, "{name}");
        let pictures = opened.column("Categories", "Picture");
        assert_eq!(hash(&pictures[0]), (10_746, "94ce40d8f8d1294f".to_owned()));
        assert_eq!(hash(&pictures[1]).1, "339612c0496a41b8");
        let photos = opened.column("Employees", "Photo");
        assert_eq!(hash(&photos[0]), (21_626, "7700820f75719b5f".to_owned()));
        let notes = opened.column("Employees", "Notes");
        assert_eq!(hash(&notes[0]).1, "0e60d1551f923cc4");
        assert_eq!(opened.table("Orders").primary_key, ["OrderID"]);
        assert_eq!(
            opened.table("Order Details").primary_key,
            ["OrderID", "ProductID"]
        );
        let on_heap = opened.table("EmployeeTerritories");
        assert_eq!(on_heap.primary_key, ["EmployeeID", "TerritoryID"]);
        assert!(on_heap.is_heap);
    }
    let mut pubs = Opened::new(&["sql2012_pubs_a.bak"], 1).unwrap();
    let publishers = pubs.column("pub_info", "pub_id");
    let at = publishers
        .iter()
        .position(|id| *id == Value::Text("0736".to_owned()));
    let logos = pubs.column("pub_info", "logo");
    assert_eq!(
        hash(&logos[at.unwrap()]),
        (643, "cc4bad0ae22b66dc".to_owned())
    );
    let longest = pubs
        .column("pub_info", "pr_info")
        .iter()
        .map(|text| text.to_string().chars().count())
        .max();
    assert_eq!(longest, Some(65_071));
    assert_eq!(pubs.sum("sales", "qty"), 442);
    let types: Vec<String> = pubs
        .table("authors")
        .columns
        .iter()
        .map(windlass_bak::table::Column::declaration)
        .collect();
    assert_eq!(types[..4], ["id", "varchar(40)", "varchar(20)", "char(12)"]);
}

#[test]
fn sums_over_several_data_files_and_every_newer_version_are_those_that_were_proved() {
    let warehouse = "sql2014c_AWDataWarehouse_copyonly_3datafiles.bak";
    let Some(mut opened) = Opened::new(&[warehouse], 1) else {
        return;
    };
    // The value is stored as money: four digits after the point.
    assert_eq!(
        opened.sum("FactInternetSales", "SalesAmount"),
        97_710_797_500
    );
    assert_eq!(
        opened.sum("FactInternetSalesArchive", "SalesAmount"),
        195_877_774_807
    );
    assert_eq!(opened.sum("DimCustomer", "CustomerKey"), 374_143_886);
    let mut tutorial = Opened::new(&["sql2016c_TutorialDB_a.bak"], 1).unwrap();
    let model = tutorial.column("rental_rx_models", "model");
    assert_eq!(hash(&model[0]), (17_485, "25f91eabe90318ea".to_owned()));
    assert_eq!(tutorial.sum("rental_data", "RentalCount"), 71_772);
    let mut sql2012 = Opened::new(&["sql2016c_TSQL2012.bak"], 1).unwrap();
    assert_eq!(sql2012.sum("Sales.Orders", "freight"), 649_426_900);
}

#[test]
fn half_a_stripe_gives_the_tables_that_survive_and_says_so_of_the_others() {
    let Some(mut opened) = Opened::new(&["sql2025_Chinook_stripe1of2_only.bak"], 1) else {
        return;
    };
    let mut whole = Vec::new();
    for table in opened.database.tables.clone() {
        let tally = opened
            .database
            .read(&mut opened.pages, &table, &mut |_| Ok(()))
            .unwrap();
        if table.counted_rows == 0 {
            continue;
        }
        if tally.rows == table.counted_rows && tally.problems.count == 0 {
            whole.push((table.name.clone(), tally.rows));
        } else {
            assert!(tally.problems.count > 0, "{}: {tally:?}", table.name);
        }
    }
    whole.sort();
    assert_eq!(
        whole,
        [("Artist".to_owned(), 275), ("Genre".to_owned(), 25)]
    );
}

#[test]
fn a_missing_page_of_an_index_costs_its_own_rows_and_not_those_behind_it() {
    let Some(bytes) = common::sample("sql2005_Northwind_a.bak") else {
        return;
    };
    let mut pages = memory(&[&bytes], 1);
    let database = Database::open(&mut pages).unwrap();
    let orders = database.tables.iter().find(|table| table.name == "Orders");
    let orders = orders.unwrap();
    let keys: Vec<(u16, u32)> = pages.extents.keys().copied().collect();
    let mut missed = 0;
    for (key, index) in keys
        .iter()
        .flat_map(|key| (0..8).map(move |index| (key, index)))
    {
        let page = index * PAGE_BYTES..(index + 1) * PAGE_BYTES;
        let extent = pages.extents.get_mut(key).unwrap();
        let kept = extent[page.clone()].to_vec();
        // Only pages with rows.
        if kept[1] != 1 {
            continue;
        }
        extent[page.clone()].fill(0);
        let tally = database.read(&mut pages, orders, &mut |_| Ok(())).unwrap();
        if tally.rows < 830 {
            assert!(tally.rows > 760 && tally.problems.count > 0, "{tally:?}");
            missed += 830 - tally.rows;
        }
        pages.extents.get_mut(key).unwrap()[page].copy_from_slice(&kept);
    }
    assert_eq!(missed, 830, "each row is on one page");
}

/// Puts bytes over others in a page, with the right checksum.
fn put(memory: &mut Memory, (extent, page): ((u16, u32), usize), at: usize, bytes: &[u8]) {
    let page = &mut memory.extents.get_mut(&extent).unwrap()[page * PAGE_BYTES..][..PAGE_BYTES];
    page[at..at + bytes.len()].copy_from_slice(bytes);
    let sum = windlass_bak::page_checksum(page);
    page[0x3C..0x40].copy_from_slice(&sum.to_le_bytes());
}

/// The places of some bytes in the pages.
fn find(memory: &Memory, bytes: &[u8]) -> Vec<((u16, u32), usize, usize)> {
    let mut found = Vec::new();
    for (extent, content) in &memory.extents {
        for (page, content) in content.chunks(PAGE_BYTES).enumerate() {
            let places = content.windows(bytes.len()).enumerate();
            let places = places.filter(|(_, window)| *window == bytes);
            found.extend(places.map(|(at, _)| (*extent, page, at)));
        }
    }
    found.sort_unstable();
    found
}

/// No sample has `xml` columns, so a column of text becomes one: `sysrscols` says so, and a value is put in it.
#[test]
fn xml_is_text_and_what_is_no_xml_keeps_its_bytes_and_is_counted() {
    let Some(mut opened) = Opened::new(&["sql2008r2_Northwind.bak"], 1) else {
        return;
    };
    let name: Vec<u8> = "Alfreds Futterkiste"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    let mut document = b"\xDF\xFF\x01\xB0\x04\xF0\x01a\0\xEF\0\0\x01\xF8\x01\x11\x0A".to_vec();
    document.extend("0123456789".encode_utf16().flat_map(u16::to_le_bytes));
    document.push(0xF7);
    assert_eq!(document.len(), name.len());
    for (extent, page, at) in find(&opened.pages, &name) {
        put(&mut opened.pages, (extent, page), at, &document);
    }
    // The second column of a table, nvarchar(40): the type is behind its two numbers and a count.
    let is_candidate = |content: &[u8]| content[12..16] == [2, 0, 0, 0];
    let candidates = find(&opened.pages, &[0xE7, 80, 0, 0]);
    let candidates = candidates.into_iter().filter(|(extent, page, at)| {
        let content = &opened.pages.extents[extent][page * PAGE_BYTES..][..PAGE_BYTES];
        at.checked_sub(28)
            .is_some_and(|begin| is_candidate(&content[begin..]))
    });
    let candidates: Vec<_> = candidates.collect();
    assert!(!candidates.is_empty());
    for (extent, page, at) in candidates {
        put(&mut opened.pages, (extent, page), at, &[0xF1, 0, 0, 0]);
    }
    let mut opened = Opened {
        database: Database::open(&mut opened.pages).unwrap(),
        pages: opened.pages,
    };
    let table = opened.table("Customers");
    let mut values = Vec::new();
    let tally = opened
        .database
        .read(&mut opened.pages, &table, &mut |row| {
            values.push(row[1].clone());
            Ok(())
        })
        .unwrap();
    values.retain(|value| !matches!(value, Value::Binary(_)));
    let text = Value::Text("<a>0123456789</a>".to_owned());
    assert_eq!(values, [text]);
    assert_eq!(
        (tally.rows, tally.undecoded.count, tally.problems.count),
        (97, 96, 0)
    );
    assert!(
        tally.undecoded.texts[0].contains("no binary XML"),
        "{:?}",
        tally.undecoded.texts
    );
}

#[test]
fn damaged_pages_never_panic() {
    let mut state = 0x1234_5678_9ABC_DEF1_u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    for name in [
        "sql2012_pubs_a.bak",
        "sql2005_Northwind_a.bak",
        "sql2022c_CompanyORM.bak",
    ] {
        let Some(bytes) = common::sample(name) else {
            return;
        };
        for _ in 0..12 {
            let mut pages = memory(&[&bytes], 1);
            let mut keys: Vec<(u16, u32)> = pages.extents.keys().copied().collect();
            keys.sort_unstable();
            for _ in 0..400 {
                let key = keys[random() as usize % keys.len()];
                let extent = pages.extents.get_mut(&key).unwrap();
                let at = random() as usize % extent.len();
                extent[at] ^= 1 << (random() % 8);
            }
            let Ok(database) = Database::open(&mut pages) else {
                continue;
            };
            for table in &database.tables {
                database.read(&mut pages, table, &mut |_| Ok(())).unwrap();
            }
        }
    }
}
