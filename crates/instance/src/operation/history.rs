//! Converts a backup set on media to rows for `msdb`.

use std::ops::RangeInclusive;
use std::path::Path;
use std::time::Duration;

use windlass_base::at_once::at_once;
use windlass_base::{Guid, Message, Moment};
use windlass_catalog::{
    BackupRecord, DatabaseRecord, Depth, FailureRecord, FamilyRecord, MediaSetRecord, StoredValue,
    VerificationRecord,
};
use windlass_device::DeviceAddress;
use windlass_media::{MediaHeader, SetConfiguration};
use windlass_pipeline::MediaRequest;

use super::media::OpenedSet;
use super::media_rows::{self, algorithm_name, device_type};
use crate::damage::place;
use crate::names::absolute;
use crate::{Failure, Session, presence, verified};

/// The rows of a backup that was written to `media`.
pub(super) fn backup_record(
    header: &MediaHeader,
    set: &SetConfiguration,
    media: &MediaRequest,
    elapsed: Duration,
) -> BackupRecord {
    let copies = std::iter::once(&media.devices).chain(&media.mirrors);
    let families = copies.zip(0..).flat_map(|(devices, mirror)| {
        let families = families(header, devices, mirror).into_iter();
        let is_remote = devices.iter().any(DeviceAddress::is_object);
        let lengths = at_once(devices, is_remote, DeviceAddress::length);
        let devices = devices.iter().zip(lengths);
        families
            .zip(devices)
            .map(|(family, (device, length))| FamilyRecord {
                end_bytes: length,
                mount_point: device.file().and_then(presence::mount_point),
                ..family
            })
    });
    let mut record = record(header, set, families.collect());
    let milliseconds = i64::try_from(elapsed.as_millis()).unwrap_or(i64::MAX);
    let is_discarded = StoredValue::from(media.is_discarded());
    record.set.extend([
        ("duration_ms", StoredValue::from(milliseconds)),
        ("is_discarded", is_discarded),
    ]);
    record
}

/// Whether a database is not registered, but named by its path.
pub(super) fn is_by_path(record: &DatabaseRecord) -> bool {
    record.database_id < 0
}

/// Records that the backup of a database failed, if the instance knows the database.
pub(super) fn record_failure(
    session: &mut Session,
    database: &str,
    operation: &str,
    failure: &Failure,
) {
    let known = session.instance.database(database).ok().flatten();
    let error = failure.messages.iter().position(Message::is_error);
    let (Some(known), Some(at)) = (known, error) else {
        return;
    };
    // The reason of an abort is told before it, as a warning.
    let error = &failure.messages[at];
    let told: Vec<&str> = failure.messages[..=at]
        .iter()
        .map(|message| message.text.as_str())
        .collect();
    if is_by_path(&known) && is_unheard_of(session, &known) {
        return;
    }
    let record = FailureRecord {
        database: database.to_owned(),
        operation: operation.to_owned(),
        failed: Moment::now().0,
        error_number: error.number,
        message: told.join(" "),
        is_by_path: is_by_path(&known),
        path: Some(place(&known)),
    };
    // Must not hide the error itself.
    if let Err(error) = session.instance.catalog_mut().record_failure(&record) {
        tracing::warn!("the failure was not recorded: {error}");
    }
}

/// Whether a file that was named is not there and never was: its name is a mistyped one, of which nobody is to be
/// warned from then on.
fn is_unheard_of(session: &Session, named: &DatabaseRecord) -> bool {
    let is_missing = named.path.try_exists().is_ok_and(|is_there| !is_there);
    if !is_missing {
        return false;
    }
    let past = session.instance.catalog().past_backups(None);
    // Another file of the name says nothing of this one.
    let path = place(named);
    past.is_ok_and(|past| past.iter().all(|backup| backup.of.path != path))
}

/// Records that a set was read back, and the result, if it is a verdict on the set: a missing key or a cancelled
/// run proves nothing.
pub(super) fn record_verification(
    session: &mut Session,
    opened: &OpenedSet,
    depth: Depth,
    failure: Option<&Failure>,
) {
    let error = match failure {
        None => Some(0),
        Some(_) if session.is_cancelled() => None,
        Some(failure) => verified::damage_in(failure),
    };
    let Some(error) = error else {
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
    write(session, &record);
}

/// Records that the headers of media are damaged: for the sets which the history knows at these positions on the
/// files.
pub(super) fn record_unopened(
    session: &mut Session,
    positions: RangeInclusive<u16>,
    state: &str,
    failure: &Failure,
) {
    if let Some(error_number) = verified::damage_in(failure) {
        record_damaged(session, positions, state, error_number);
    }
}

/// Records damage of the sets which the history knows at some positions on some files.
pub(super) fn record_damaged(
    session: &mut Session,
    positions: RangeInclusive<u16>,
    state: &str,
    error_number: u32,
) {
    if session.is_rehearsal() {
        return;
    }
    let positions = u32::from(*positions.start())..=u32::from(*positions.end());
    let paths = presence::paths_of(state);
    let past = match session.instance.catalog().past_backups(None) {
        Ok(past) => past,
        Err(error) => return tracing::warn!("the history cannot be read: {error}"),
    };
    let is_here = |device: &str| {
        let path = Path::new(device);
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        paths.contains(&path)
    };
    let found = past.into_iter().filter(|backup| {
        let mut media = backup.media.iter();
        positions.contains(&backup.position)
            && !backup.is_overwritten
            && media.any(|medium| is_here(&medium.device))
    });
    let found: Vec<(Guid, String)> = found
        .filter_map(|backup| Some((backup.set_guid?, backup.database)))
        .collect();
    for (set, database) in found {
        let record = VerificationRecord {
            set,
            database: &database,
            at: Moment::now().0,
            depth: Depth::Checksums,
            error_number,
            media: state,
        };
        write(session, &record);
    }
}

fn write(session: &mut Session, record: &VerificationRecord<'_>) {
    let catalog = session.instance.catalog_mut();
    if let Err(error) = catalog.record_verification(record) {
        tracing::warn!("the verification was not recorded: {error}");
    }
}

/// A full backup by date, identity and place, where the history knows these.
pub(super) fn name_of_full(session: &Session, set: Guid) -> String {
    place_of_full(session, set).unwrap_or_else(|| format!("the full backup {set}"))
}

/// The same; `None` if the history does not know the set.
pub(super) fn place_of_full(session: &Session, set: Guid) -> Option<String> {
    let past = session.instance.catalog().past_backups(None).ok()?;
    let mut past = past.into_iter().rev();
    let found = past.find(|backup| backup.set_guid == Some(set))?;
    let finished = found.finished.map(|at| format!(" of {at}"));
    Some(format!(
        "the full backup{} ({set}): FILE = {} on {}",
        finished.unwrap_or_default(),
        found.position,
        found.devices.join(", ")
    ))
}

/// The rows of a backup that was found on `devices`.
pub(super) fn found_record(
    header: &MediaHeader,
    set: &SetConfiguration,
    devices: &[DeviceAddress],
) -> BackupRecord {
    record(header, set, families(header, devices, 0))
}

/// The names of devices in the history.
pub(super) fn device_names(devices: &[DeviceAddress]) -> Vec<String> {
    devices.iter().map(physical_name).collect()
}

pub(in crate::operation) fn physical_name(device: &DeviceAddress) -> String {
    if let Some(url) = device.url() {
        return url.to_string();
    }
    let Some(file) = device.file() else {
        return device.name.clone();
    };
    // Absolute, because a later command may run in another folder.
    let path = absolute(file).unwrap_or_else(|_| file.to_owned());
    path.display().to_string()
}

fn families(header: &MediaHeader, devices: &[DeviceAddress], mirror: u32) -> Vec<FamilyRecord> {
    let family = |(device, number): (&DeviceAddress, u32)| FamilyRecord {
        sequence_number: number,
        family_id: Some(media_rows::family_guid(header, number)),
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
        set_guid: set.set_guid,
        set: media_rows::set_row(set),
        files: media_rows::file_rows(set),
    }
}

fn some(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use windlass_codec::Compression;
    use windlass_pipeline::BackupRequest;

    use super::*;

    #[test]
    fn every_stripe_of_every_copy_is_recorded_with_its_place_and_length() {
        let folder = tempfile::tempdir().unwrap();
        let paths: Vec<PathBuf> = ["1", "2", "3", "4"]
            .iter()
            .zip(1..)
            .map(|(name, bytes)| {
                let path = folder.path().join(name);
                std::fs::write(&path, vec![0; bytes]).unwrap();
                path
            })
            .collect();
        let devices: Vec<_> = paths.iter().map(DeviceAddress::disk).collect();
        let (first, mirror) = devices.split_at(2);
        let mut request = BackupRequest::new(first.to_vec(), Compression::NONE);
        request.media.mirrors = vec![mirror.to_vec()];
        let header = MediaHeader {
            media_name: "nightly".to_owned(),
            ..MediaHeader::default()
        };
        let set = SetConfiguration::default();
        let elapsed = Duration::from_millis(7);
        let record = backup_record(&header, &set, &request.media, elapsed);
        let families: Vec<_> = record
            .families
            .iter()
            .map(|family| {
                let name = PathBuf::from(&family.physical_device_name);
                (
                    family.mirror,
                    family.sequence_number,
                    name,
                    family.end_bytes,
                )
            })
            .collect();
        let expected: Vec<_> = [(0, 1), (0, 2), (1, 1), (1, 2)]
            .into_iter()
            .zip(&paths)
            .zip(1..)
            .map(|(((mirror, number), path), bytes)| (mirror, number, path.clone(), Some(bytes)))
            .collect();
        assert_eq!(families, expected);
        let mounted = presence::mount_point(&paths[0]);
        assert!(
            record
                .families
                .iter()
                .all(|family| family.mount_point == mounted)
        );
        assert_eq!(record.media.name.as_deref(), Some("nightly"));
        assert_eq!(record.media.description, None);
        let names: Vec<String> = paths
            .iter()
            .map(|path| path.display().to_string())
            .collect();
        assert_eq!(device_names(&devices), names);
        let value = |name| record.set.iter().find(|(column, _)| *column == name);
        let expected = ("is_discarded", StoredValue::from(false));
        assert_eq!(value("is_discarded"), Some(&expected));
    }
}
