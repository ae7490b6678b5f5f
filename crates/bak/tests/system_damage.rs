//! Damage of the pages from which the tables are known: it is reported, or it changes nothing.

mod common;

use std::collections::{BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use windlass_bak::page::{Located, PAGE_BYTES, PageHeader, locate};
use windlass_bak::table::{Database, Pages, Value};
use windlass_bak::{Configuration, Error, ExtentPlace, PageId, Visit, page_checksum, walk};

/// Object numbers of system tables.
const SYSSCHOBJS: u32 = 34;
const SYSSINGLEOBJREFS: u32 = 74;
const LAST_SYSTEM_OBJECT: u32 = 99;

/// Every so many of the pages of user tables is damaged: other tests damage all of them.
const USER_PAGES_STEP: usize = 5;

/// The pages of a set, and which of them were read.
#[derive(Default)]
struct Memory {
    pages: HashMap<PageId, Vec<u8>>,
    read: BTreeSet<PageId>,
    data_files: Vec<u16>,
}

impl Visit for Memory {
    fn configuration(&mut self, configuration: &Configuration, _is_final: bool) {
        self.data_files = configuration.data_files();
    }

    fn extent(&mut self, _at: ExtentPlace, extent: &[u8]) -> Result<(), Error> {
        if let Located::Extent { first } = locate(extent, &self.data_files) {
            for (index, page) in (0_u32..).zip(extent.chunks(PAGE_BYTES)) {
                let id = PageId {
                    page: first.page + index,
                    ..first
                };
                self.pages.insert(id, page.to_vec());
            }
        }
        Ok(())
    }
}

impl Pages for Memory {
    fn page(&mut self, id: PageId, page: &mut [u8]) -> Result<bool, Error> {
        self.read.insert(id);
        let found = self.pages.get(&id);
        if let Some(found) = found {
            page.copy_from_slice(found);
        }
        Ok(found.is_some())
    }
}

impl Memory {
    /// The pages with the rows of a system table.
    fn of_object(&self, object: u32) -> Vec<PageId> {
        let is_of = |id: PageId, page: &[u8]| {
            let header = PageHeader::new(page);
            header.id() == id && header.page_type() == 1 && header.old_identity() == (1, object)
        };
        let pages = self.pages.iter().filter(|(id, page)| is_of(**id, page));
        let mut found: Vec<PageId> = pages.map(|(id, _)| *id).collect();
        found.sort_unstable();
        found
    }

    /// Every page that was read and is of a system table or a map, and some of the others.
    fn to_damage(&self) -> Vec<PageId> {
        let is_there = |id: &PageId| self.pages.contains_key(id);
        let read: Vec<PageId> = self.read.iter().copied().filter(is_there).collect();
        let is_system = |id: &PageId| {
            let (index, object) = PageHeader::new(&self.pages[id]).old_identity();
            // The allocation units of user tables have higher numbers in place of the index.
            index < 256 && object <= LAST_SYSTEM_OBJECT
        };
        let (system, others): (Vec<PageId>, Vec<PageId>) = read.into_iter().partition(is_system);
        let some = others.into_iter().step_by(USER_PAGES_STEP);
        system.into_iter().chain(some).collect()
    }
}

/// The pages of a backup with one set; `None` if the real backups are absent.
fn memory(name: &str) -> Option<Memory> {
    let bytes = common::sample(name)?;
    let mut memory = Memory::default();
    walk(bytes.as_slice(), &mut memory).expect("a backup");
    Some(memory)
}

/// What is read of a database.
#[derive(Debug)]
struct Content {
    /// The tables, with a sum of their rows.
    tables: Vec<String>,
    rows: u64,
    /// Whether anything makes an extraction end with 1.
    is_reported: bool,
}

fn row_hash(row: &[Value]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for value in row {
        match value {
            Value::Text(text) => text.hash(&mut hasher),
            Value::Binary(bytes) => bytes.hash(&mut hasher),
            other => format!("{other:?}").hash(&mut hasher),
        }
    }
    hasher.finish()
}

fn content(pages: &mut Memory) -> Result<Content, Error> {
    let database = Database::open(pages)?;
    let mut content = Content {
        tables: Vec::new(),
        rows: 0,
        is_reported: database.problems.count > 0,
    };
    for table in &database.tables {
        let mut sum = 0_u64;
        let tally = database.read(pages, table, &mut |row| {
            sum = sum.wrapping_add(row_hash(row));
            Ok(())
        })?;
        content.rows += tally.rows;
        content.is_reported |= tally.problems.count > 0
            || tally.undecoded.count > 0
            || tally.rows != table.counted_rows
            || table.unnamed_columns > 0
            || table.refusal.is_some();
        content.tables.push(format!(
            "{}.{} {:?} {:?} {:?} {:?} {:?} {} {sum}",
            table.schema,
            table.name,
            table.columns,
            table.computed,
            table.primary_key,
            table.unique_keys,
            table.foreign_keys,
            tally.rows,
        ));
    }
    Ok(content)
}

#[derive(Debug, Clone, Copy)]
enum Damage {
    Zeros,
    /// A bit of a page with a checksum.
    Bit,
    /// The header names another page. As of the others, the checksum is made to fit.
    OtherId,
    NoSlots,
    NoNext,
}

const DAMAGES: [Damage; 5] = [
    Damage::Zeros,
    Damage::Bit,
    Damage::OtherId,
    Damage::NoSlots,
    Damage::NoNext,
];

impl Damage {
    fn of(self, whole: &[u8]) -> Vec<u8> {
        let has_checksum = PageHeader::new(whole).has_checksum();
        let mut page = whole.to_vec();
        match self {
            Self::Zeros => page.fill(0),
            Self::Bit if has_checksum => page[4000] ^= 4,
            Self::Bit => {}
            Self::OtherId => page[0x20] ^= 8,
            Self::NoSlots => page[0x16..0x18].fill(0),
            Self::NoNext => page[0x10..0x16].fill(0),
        }
        if has_checksum && !matches!(self, Self::Zeros | Self::Bit) {
            let sum = page_checksum(&page);
            page[0x3C..0x40].copy_from_slice(&sum.to_le_bytes());
        }
        page
    }
}

/// Damages one page after the other: what is read then is the same, or is said to be damaged.
fn sweep(name: &str) {
    let Some(mut pages) = memory(name) else {
        return;
    };
    let whole = content(&mut pages).expect("an undamaged backup");
    assert!(!whole.is_reported, "{name}");
    let (mut reported, mut refused) = (0, 0);
    let mut silent = Vec::new();
    for id in pages.to_damage() {
        for damage in DAMAGES {
            let kept = pages.pages[&id].clone();
            let damaged = damage.of(&kept);
            if damaged == kept {
                continue;
            }
            pages.pages.insert(id, damaged);
            match content(&mut pages) {
                Err(_) => refused += 1,
                Ok(found) if found.is_reported => reported += 1,
                Ok(found) if found.tables == whole.tables => {}
                Ok(_) => silent.push((id, damage)),
            }
            pages.pages.insert(id, kept);
        }
    }
    assert!(silent.is_empty(), "{name}: {silent:?}");
    // Few pages are those without which nothing can be read.
    assert!(
        refused > 0 && reported > 2 * refused,
        "{name}: {reported} {refused}"
    );
}

#[test]
fn one_damaged_page_of_a_database_with_checksums_is_never_silent() {
    sweep("sql2008r2_Northwind.bak");
}

#[test]
fn one_damaged_page_of_a_database_with_torn_bits_is_never_silent() {
    sweep("sql2005_Northwind_a.bak");
}

#[test]
fn tables_whose_names_are_lost_keep_their_rows_and_without_any_name_it_is_an_error() {
    let Some(mut pages) = memory("sql2008r2_Northwind.bak") else {
        return;
    };
    let whole = content(&mut pages).expect("an undamaged backup");
    let names = pages.of_object(SYSSCHOBJS);
    assert!(names.len() > 1, "{names:?}");
    let zeros = vec![0; PAGE_BYTES];
    for id in &names {
        let kept = pages.pages.insert(*id, zeros.clone());
        let found = content(&mut pages).expect("the other pages of the table");
        assert!(found.is_reported && found.rows >= whole.rows, "{id}");
        let problems = Database::open(&mut pages).expect("the same").problems.texts;
        let said = problems.join("\n");
        assert!(said.contains(&format!("page {id} is damaged")), "{said}");
        assert!(said.contains("sysschobjs: "), "{said}");
        pages.pages.insert(*id, kept.expect("it was there"));
    }
    for id in names {
        pages.pages.insert(id, zeros.clone());
    }
    let error = Database::open(&mut pages).expect_err("no object has a name");
    let said = error.to_string();
    assert!(
        said.contains("the list of objects (sysschobjs) cannot be read (page 1:"),
        "{said}"
    );
}

#[test]
fn what_a_missing_system_table_takes_with_it_is_said() {
    let Some(mut pages) = memory("sql2008r2_Northwind.bak") else {
        return;
    };
    for id in pages.of_object(SYSSINGLEOBJREFS) {
        pages.pages.insert(id, vec![0; PAGE_BYTES]);
    }
    let database = Database::open(&mut pages).expect("the tables");
    let said = database.problems.texts.join("\n");
    assert!(
        said.contains("syssingleobjrefs: 0 rows were read"),
        "{said}"
    );
    let rows: u64 = database.tables.iter().map(|table| table.counted_rows).sum();
    assert_eq!(rows, 3321);
}
