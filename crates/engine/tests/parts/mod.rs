//! Shared by the tests of page and file restores: a database with two files, and its backups.
#![expect(clippy::unwrap_used, reason = "a test ends at the first failure")]

use std::path::Path;
use std::sync::Arc;

use windlass_base::{FileId, FilePage, Guid, PAGE_BYTES, PageNumber};
use windlass_engine::storage::RealFileSystem;
use windlass_engine::{
    BackupDescription, BackupMode, BackupRange, CreateDatabase, Database, DifferentialBase,
    EngineError, FileSpec, Instance, InstanceOptions, OpenDatabase, Restore,
};

/// A backup as stored on its media.
pub(crate) struct Set {
    pub(crate) guid: Guid,
    description: Vec<u8>,
    pub(crate) ranges: Vec<(BackupRange, Vec<u8>)>,
    pub(crate) log: Vec<u8>,
}

impl Set {
    pub(crate) fn describe(&self) -> BackupDescription {
        BackupDescription::decode(&self.description).unwrap()
    }
}

pub(crate) fn instance() -> Arc<Instance> {
    let options = InstanceOptions {
        pool_pages: 512,
        ..InstanceOptions::default()
    };
    Instance::new(options, Arc::new(RealFileSystem)).unwrap()
}

pub(crate) fn create(instance: &Arc<Instance>, folder: &Path) -> Arc<Database> {
    let mut request = CreateDatabase::new("a", folder.join("a.mdf"), folder.join("a.ldf"));
    let second = FileSpec::data("b", folder.join("b.ndf"));
    request.data_files.push(second);
    instance.create_database(&request).unwrap()
}

pub(crate) fn at(number: u32) -> PageNumber {
    PageNumber::from_sqlite(number).unwrap()
}

/// Page 1 says that every page carries its checksum.
pub(crate) fn content(page: u32, fill: u8) -> Vec<u8> {
    let mut content = vec![fill ^ page as u8; PAGE_BYTES];
    if page == 1 {
        content[..16].copy_from_slice(b"SQLite format 3\0");
        content[20] = 8;
    }
    windlass_base::page::checksum::stamp(&mut content);
    content
}

pub(crate) fn write(database: &Arc<Database>, pages: impl Iterator<Item = u32>, fill: u8) {
    let mut writer = database.begin_write(&database.begin_read()).unwrap();
    for page in pages {
        writer.write_page(at(page), &content(page, fill)).unwrap();
    }
    writer.commit().unwrap();
}

/// Cuts off all pages behind the first `pages`.
pub(crate) fn truncate(database: &Arc<Database>, pages: u32) {
    let mut writer = database.begin_write(&database.begin_read()).unwrap();
    writer.truncate(pages).unwrap();
    writer.commit().unwrap();
}

/// Numbers below a bound, the same in every run.
pub(crate) fn numbers() -> impl FnMut(u32) -> u32 {
    let mut state = 0x2545_F491_4F6C_DD1D_u64;
    move |below| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % u64::from(below)) as u32
    }
}

/// The content of a page, without the mark that the engine has put into the first.
pub(crate) fn read(database: &Arc<Database>, page: u32) -> Result<Vec<u8>, EngineError> {
    let mut content = vec![0; PAGE_BYTES];
    database.begin_read().read_page(at(page), &mut content)?;
    if page == 1 {
        let fill = content[21];
        content[72..92].fill(fill);
        windlass_base::page::checksum::stamp(&mut content);
    }
    Ok(content)
}

/// Backs up and calls `between` before each range.
pub(crate) fn back_up(
    database: &Arc<Database>,
    kind: BackupMode,
    mut between: impl FnMut(usize),
) -> Set {
    let mut backup = database.begin_backup(kind).unwrap();
    let mut ranges = Vec::new();
    for (index, range) in backup.ranges(1 << 18).into_iter().enumerate() {
        between(index);
        let mut bytes = vec![0; range.bytes];
        backup.read_range(&range, &mut bytes).unwrap();
        ranges.push((range, bytes));
    }
    let description = backup.finish_data().unwrap().encode().unwrap();
    let mut log = Vec::new();
    let kept = backup.read_log(|bytes| {
        log.extend_from_slice(bytes);
        Ok(())
    });
    kept.unwrap();
    let guid = Guid::random();
    backup.complete(guid).unwrap();
    Set {
        guid,
        description,
        ranges,
        log,
    }
}

/// Restores the complete set as the database `a` in another folder.
pub(crate) fn restore(set: &Set, folder: &Path) -> Arc<Database> {
    let description = set.describe();
    let places = [folder.join("a.mdf"), folder.join("b.ndf")];
    let mut restore = Restore::begin(Arc::new(RealFileSystem), &description, &places).unwrap();
    for (range, bytes) in &set.ranges {
        restore.write_range(range, bytes).unwrap();
    }
    restore.apply_log(&set.log).unwrap();
    let log = FileSpec {
        path: folder.join("a.ldf"),
        ..description.log_file().clone()
    };
    let base = Some(DifferentialBase {
        set: set.guid,
        first_lsn: description.first_lsn(),
    });
    restore.finish("a", &log, base).unwrap();
    instance()
        .open_database(&OpenDatabase::new("a", log.path))
        .unwrap()
}

/// The place of a page: two files alternate with extents of 8 pages. The first one has a stamp behind
/// its first extent, the other before it.
pub(crate) fn place(page: u32) -> FilePage {
    let (extent, within) = ((page - 1) / 8, (page - 1) % 8);
    let is_first = extent % 2 == 0;
    let stamp = u32::from(extent > 0);
    FilePage {
        file_id: FileId(if is_first { 1 } else { 3 }),
        page: u64::from((extent / 2 + stamp) * 8 + within),
    }
}
