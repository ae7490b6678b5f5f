//! Converts a backup set on media to rows for `msdb`.

use std::path::Path;
use std::time::Duration;

use windlass_base::page::pages_of;
use windlass_base::{Guid, Moment};
use windlass_catalog::{
    BackupFileRecord, BackupRecord, BackupSetRecord, Depth, FailureRecord, FamilyRecord,
    MediaSetRecord, VerificationRecord,
};
use windlass_device::{DeviceAddress, DeviceKind};
use windlass_media::{DatabaseFile, MediaHeader, SetConfiguration, SetType};
use windlass_pipeline::MediaRequest;

use super::media::OpenedSet;
use super::media_rows::{algorithm_name, device_type, encryption_of, flags, level_name};
use crate::names::absolute;
use crate::{Failure, Session, presence};

/// The rows of a backup that was made to `media`.
pub(super) fn backup_record(
    header: &MediaHeader,
    set: &SetConfiguration,
    media: &MediaRequest,
    elapsed: Duration,
) -> BackupRecord {
    let copies = std::iter::once(&media.devices).chain(&media.mirrors);
    let families = copies
        .zip(0..)
        .flat_map(|(devices, mirror)| families(header, devices, mirror))
        .map(|family| FamilyRecord {
            end_bytes: presence::length(&family.physical_device_name),
            mount_point: presence::mount_point(Path::new(&family.physical_device_name)),
            ..family
        });
    let mut record = record(header, set, families.collect());
    record.set.duration_ms = Some(u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX));
    record.set.is_discarded = media.is_discarded();
    record
}

/// Remembers that the backup of a database failed, if the instance knows the database.
pub(super) fn record_failure(
    session: &mut Session,
    database: &str,
    operation: &str,
    failure: &Failure,
) {
    let is_known = matches!(session.instance.database(database), Ok(Some(_)));
    let mut errors = failure.messages.iter().filter(|message| message.is_error());
    let (true, Some(error)) = (is_known, errors.next()) else {
        return;
    };
    let record = FailureRecord {
        database: database.to_owned(),
        operation: operation.to_owned(),
        failed: Moment::now().0,
        error_number: error.number,
        message: error.text.clone(),
    };
    // The user must see the error itself.
    if let Err(error) = session.instance.catalog_mut().record_failure(&record) {
        tracing::warn!("the failure was not recorded: {error}");
    }
}

/// Remembers that a set was read back, and what came of it. A cancelled reading shows nothing.
pub(super) fn record_verification(
    session: &mut Session,
    opened: &OpenedSet,
    depth: Depth,
    failure: Option<&Failure>,
) {
    let error = failure.map_or(Some(0), |failure| {
        let mut errors = failure.messages.iter().filter(|message| message.is_error());
        errors.next().map(|error| error.number)
    });
    let Some(error) = error.filter(|_| failure.is_none() || !session.is_cancelled()) else {
        return;
    };
    let record = VerificationRecord {
        set: opened.set.set_guid,
        database: &opened.set.database,
        at: Moment::now().0,
        depth,
        error_number: error,
        media: &opened.state,
    };
    let catalog = session.instance.catalog_mut();
    if let Err(error) = catalog.record_verification(&record) {
        tracing::warn!("the verification was not recorded: {error}");
    }
}

/// A full backup as the user knows it: its identity, and from the history when it was made and where it is.
pub(super) fn name_of_full(session: &Session, set: Guid) -> String {
    let past = session.instance.catalog().past_backups(None);
    let past = past.unwrap_or_default().into_iter().rev();
    let mut past = past.filter(|backup| backup.set_guid == Some(set));
    let Some(found) = past.next() else {
        return format!("the full backup {set}, which the history does not know");
    };
    let finished = found.finished.map(|at| format!(" of {at}"));
    format!(
        "the full backup{} ({set}): FILE = {} on {}",
        finished.unwrap_or_default(),
        found.position,
        found.devices.join(", ")
    )
}

/// The rows of a backup that was found on `devices`.
pub(super) fn found_record(
    header: &MediaHeader,
    set: &SetConfiguration,
    devices: &[DeviceAddress],
) -> BackupRecord {
    record(header, set, families(header, devices, 0))
}

/// What the history calls devices.
pub(super) fn device_names(devices: &[DeviceAddress]) -> Vec<String> {
    devices.iter().map(physical_name).collect()
}

fn physical_name(device: &DeviceAddress) -> String {
    match device.kind {
        // Whoever looks for the file later may be in another folder.
        DeviceKind::Disk => absolute(&device.path)
            .unwrap_or_else(|_| device.path.clone())
            .display()
            .to_string(),
        DeviceKind::Nul => device.name.clone(),
    }
}

fn families(header: &MediaHeader, devices: &[DeviceAddress], mirror: u32) -> Vec<FamilyRecord> {
    let family = |(device, number): (&DeviceAddress, u32)| FamilyRecord {
        sequence_number: number,
        family_id: None,
        physical_device_name: physical_name(device),
        logical_device_name: device.logical.clone(),
        device_type: device_type(device),
        block_bytes: header.block_bytes,
        mirror,
        end_bytes: None,
        mount_point: None,
    };
    devices.iter().zip(1..).map(family).collect()
}

fn record(
    header: &MediaHeader,
    set: &SetConfiguration,
    families: Vec<FamilyRecord>,
) -> BackupRecord {
    BackupRecord {
        media: MediaSetRecord {
            media_set_guid: header.media_set_guid,
            family_count: u32::from(header.family_count),
            name: some(&header.media_name),
            description: some(&header.media_description),
            software_name: windlass_media::SOFTWARE_NAME.to_owned(),
            mirror_count: u32::from(header.mirror_count),
            is_compressed: algorithm_name(set).is_some(),
            is_encrypted: set.is_encrypted(),
        },
        families,
        set: set_record(header, set),
        files: set.files.iter().map(file_record).collect(),
    }
}

fn some(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

fn some_guid(guid: Guid) -> Option<Guid> {
    (!guid.is_nil()).then_some(guid)
}

fn set_record(header: &MediaHeader, set: &SetConfiguration) -> BackupSetRecord {
    let now = Moment::now().0;
    let started = set.started.unwrap_or(now);
    let is_differential = set.set_type == SetType::Differential;
    let base = (set.differential_base_lsn, set.differential_base_guid);
    BackupSetRecord {
        set_guid: set.set_guid,
        position: u32::from(set.position),
        family_count: u32::from(header.family_count),
        expires: set.expires,
        name: some(&set.name),
        description: some(&set.description),
        user_name: set.user.clone(),
        software_version: (
            u32::from(set.software_major),
            u32::from(set.software_minor),
            u32::from(set.software_build),
        ),
        time_zone: i32::from(set.time_zone),
        first_lsn: set.first_lsn,
        last_lsn: set.last_lsn,
        checkpoint_lsn: set.checkpoint_lsn,
        database_backup_lsn: set.database_backup_lsn,
        database_created: set.database_created,
        started,
        finished: set.finished.unwrap_or(started),
        kind: match set.set_type {
            SetType::Full => 'D',
            SetType::Differential => 'I',
            SetType::Log => 'L',
        },
        database_version: i32::try_from(set.database_version).unwrap_or(i32::MAX),
        backup_bytes: set.backup_bytes,
        compressed_bytes: set.stored_bytes,
        database_name: set.database.clone(),
        server_name: set.server.clone(),
        machine_name: set.machine.clone(),
        flags: flags(set),
        collation: Some("BINARY".to_owned()),
        is_read_only: set.is_read_only,
        has_checksums: set.has_checksums,
        is_damaged: set.is_damaged,
        is_copy_only: set.is_copy_only,
        recovery_fork: some_guid(set.recovery_fork_guid),
        database_guid: some_guid(set.database_guid),
        family_guid: set.family_guid,
        base: is_differential.then_some(base),
        compression_algorithm: algorithm_name(set).map(str::to_owned),
        compression_level: level_name(set).map(str::to_owned),
        encryption: encryption_of(set),
        duration_ms: None,
        is_discarded: false,
    }
}

fn file_record(file: &DatabaseFile) -> BackupFileRecord {
    BackupFileRecord {
        file_number: u32::from(file.file_id),
        logical_name: file.logical_name.clone(),
        physical_name: file.physical_name.clone(),
        file_guid: some_guid(file.file_guid),
        page_bytes: file.page_bytes,
        page_count: pages_of(file.backup_bytes),
        source_block_bytes: 4096,
        file_bytes: file.size_bytes,
        backup_bytes: file.backup_bytes,
    }
}
