//! What the tests of whole runs share.

use std::path::{Path, PathBuf};

use rusqlite::Connection;
use windlass_codec::Compression;
use windlass_device::DeviceAddress;
use windlass_pipeline::{
    BackupReport, BackupRequest, Error, MediaSet, OnDamage, ReadKeys, ReadRequest, Selection,
    Tuning, Unobserved, backup, restore,
};
use windlass_source::sqlite::{
    self, Existing, RestoreRequest, SnapshotOptions, SqliteSnapshot, SqliteTarget,
};
use windlass_source::{Recovery, RestoreTarget as _, Snapshot};

pub(crate) fn read_request() -> ReadRequest {
    ReadRequest {
        keys: ReadKeys::default(),
        on_damage: OnDamage::Stop,
        tuning: Tuning::default(),
    }
}

pub(crate) fn make_database(path: &Path, rows: u32) {
    let connection = Connection::open(path).unwrap();
    connection
        .execute_batch(
            "PRAGMA page_size = 8192; CREATE TABLE t(id INTEGER PRIMARY KEY, body TEXT);",
        )
        .unwrap();
    let sql = format!(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {rows})
         INSERT INTO t SELECT i, hex(randomblob(100)) || ' the same words again and again ' || hex(zeroblob(200)) FROM n"
    );
    connection.execute_batch(&sql).unwrap();
}

pub(crate) fn devices(folder: &Path, names: &[&str]) -> Vec<DeviceAddress> {
    names
        .iter()
        .map(|name| DeviceAddress::disk(folder.join(name)))
        .collect()
}

pub(crate) fn request(devices: &[DeviceAddress], compression: Compression) -> BackupRequest {
    BackupRequest {
        name: Some("a set".to_owned()),
        ..BackupRequest::new(devices.to_vec(), compression)
    }
}

pub(crate) fn snapshot(database: &Path) -> Box<dyn Snapshot> {
    Box::new(SqliteSnapshot::open(database, &SnapshotOptions::default()).unwrap())
}

pub(crate) fn back_up(database: &Path, request: &BackupRequest) -> BackupReport {
    backup(request, snapshot(database), &Unobserved).unwrap()
}

pub(crate) fn restore_to(
    media: &MediaSet,
    position: u16,
    target: &Path,
    recovery: Recovery,
) -> Result<(), Error> {
    let target = SqliteTarget::begin(&restore_request(media, position, target)?)?;
    restore(media, position, &read_request(), &target, &Unobserved)?;
    Box::new(target).finish(recovery)?;
    Ok(())
}

pub(crate) fn restore_request(
    media: &MediaSet,
    position: u16,
    target: &Path,
) -> Result<RestoreRequest, Error> {
    let set = media.set(position)?.configuration;
    let base = (!set.differential_base_guid.is_nil()).then_some(sqlite::RequiredBase {
        set_guid: set.differential_base_guid,
        checkpoint_lsn: set.differential_base_lsn,
    });
    Ok(RestoreRequest {
        target: target.to_owned(),
        size_bytes: set.files[0].size_bytes,
        existing: Existing::Replace,
        set_guid: set.set_guid,
        checkpoint_lsn: set.checkpoint_lsn,
        database_name: set.database.clone(),
        family_guid: set.family_guid,
        base,
        as_is: true,
        ..RestoreRequest::default()
    })
}

pub(crate) fn same(first: &Path, second: &Path) -> bool {
    std::fs::read(first).unwrap() == std::fs::read(second).unwrap()
}

pub(crate) struct Folder {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) database: PathBuf,
}

pub(crate) fn prepared(rows: u32) -> Folder {
    let folder = tempfile::tempdir().unwrap();
    let database = folder.path().join("app.db");
    make_database(&database, rows);
    Folder { folder, database }
}

/// Wants everything and keeps nothing.
pub(crate) struct Everything(pub(crate) u64);

impl Selection for Everything {
    fn wants(&self, _file_id: u16, _offset: u64, _bytes: u64) -> bool {
        true
    }

    fn take(
        &mut self,
        _file_id: u16,
        _offset: u64,
        bytes: &[u8],
    ) -> Result<(), windlass_source::Error> {
        self.0 += bytes.len() as u64;
        Ok(())
    }
}
