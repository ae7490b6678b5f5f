//! The media of a backup, and the places they may not use.

use std::path::PathBuf;

use windlass_base::message::table;
use windlass_base::{Guid, Moment};
use windlass_catalog::DatabaseRecord;
use windlass_device::DeviceAddress;
use windlass_pipeline::{MediaRequest, MediaSet, Overwrite};

use super::{BackupOptions, Settled};
use crate::layout::UTC_FORM;
use crate::names::absolute;
use crate::operation::resolve;
use crate::operation::store::Use;
use crate::tag::Tags;
use crate::{Failure, Session, Sink, overwriting};

/// Maximum number of mirrors, not counting the first copy.
const MIRRORS_MAX: usize = 3;

/// What is backed up.
pub(super) struct Subject<'a> {
    pub(super) database: &'a str,
    /// The value of the tag for the type of the backup.
    pub(super) kind: &'static str,
    /// Its record, if it is a database of the instance.
    pub(super) own: Option<&'a DatabaseRecord>,
}

/// Resolves names and tags, and refuses devices that would overwrite each other or a database.
pub(super) fn choose(
    session: &mut Session,
    options: &BackupOptions,
    settled: &Settled,
    subject: &Subject<'_>,
) -> Result<MediaRequest, Failure> {
    let tags = Tags {
        database: Some(subject.database.to_owned()),
        kind: Some(subject.kind),
        moment: Some(Moment::now().0),
        utc: Some(jiff::Timestamp::now().strftime(UTC_FORM).to_string()),
        guid: Some(Guid::random()),
        ..session.instance.tags()
    };
    let store = &options.store;
    let store = store.of_devices(session, &options.devices, Use::Backup)?;
    if store.settings.write_only && options.overwrite != Overwrite::Append {
        let why =
            "'write_only' excludes FORMAT and INIT: what they overwrite could not be looked at";
        return Err(table::store_options_invalid("BACKUP_OPTIONS", why).into());
    }
    let devices = resolve(session, &options.devices, &tags, &store)?;
    if options.mirrors.len() > MIRRORS_MAX {
        return Err(table::too_many_mirrors(MIRRORS_MAX).into());
    }
    let mut mirrors = Vec::new();
    for mirror in &options.mirrors {
        let mirror = resolve(session, mirror, &tags, &store)?;
        if mirror.len() != devices.len() {
            return Err(table::mirror_counts_differ().into());
        }
        mirrors.push(mirror);
    }
    let all: Vec<&DeviceAddress> = devices.iter().chain(mirrors.iter().flatten()).collect();
    // With a stripe or mirror that discards data, a part of the backup would never exist.
    if all.windows(2).any(|pair| {
        pair[0].discards() != pair[1].discards() || pair[0].is_object() != pair[1].is_object()
    }) {
        return Err(table::device_classes_differ().into());
    }
    refuse_repeated(&all)?;
    refuse_written(&all, &options.written_before)?;
    refuse_databases(session, &all, subject.own)?;
    Ok(MediaRequest {
        devices,
        mirrors,
        overwrite: options.overwrite,
        // FORMAT implies SKIP.
        skip_checks: options.skips_checks || options.overwrite == Overwrite::Format,
        media_name: options.media_name.clone(),
        media_description: options.media_description.clone(),
        block_bytes: settled.block_bytes,
        guards: Vec::new(),
    })
}

/// The absolute paths of the files of all copies.
pub(super) fn files(media: &MediaRequest) -> Vec<PathBuf> {
    let all = media.devices.iter().chain(media.mirrors.iter().flatten());
    let files = all.filter_map(DeviceAddress::file);
    files
        .map(|file| absolute(file).unwrap_or_else(|_| file.to_owned()))
        .collect()
}

/// Warns if the backup is appended to media that are damaged somewhere before its place.
pub(super) fn warn_of_damage(media: &MediaRequest, sink: &mut dyn Sink) {
    if media.overwrite != Overwrite::Append {
        return;
    }
    let copies = std::iter::once(&media.devices).chain(&media.mirrors);
    for device in copies.flatten().filter(|device| device.file().is_some()) {
        // What cannot be opened is refused when it is written to.
        let Ok(found) = MediaSet::open_any(std::slice::from_ref(device)) else {
            continue;
        };
        let trouble = found
            .trouble()
            .filter(|(_, trouble)| !trouble.is_truncation());
        if let Some((device, trouble)) = trouble {
            sink.message(table::appended_to_damage(device, trouble));
        }
    }
}

/// Refuses two devices that are the same file: they would overwrite each other.
fn refuse_repeated(devices: &[&DeviceAddress]) -> Result<(), Failure> {
    let mut seen: Vec<(PathBuf, &str)> = Vec::new();
    for (index, device) in devices.iter().enumerate() {
        let mut earlier = devices[..index].iter().filter(|_| device.is_object());
        if let Some(first) = earlier.find(|earlier| earlier.is_same(device)) {
            return Err(table::family_given_twice(&device.name, index + 1, &first.name).into());
        }
        let Some(file) = device.file() else { continue };
        let path = absolute(file).unwrap_or_else(|_| file.to_owned());
        if let Some((_, first)) = seen.iter().find(|(known, _)| *known == path) {
            return Err(table::family_given_twice(&device.name, index + 1, first).into());
        }
        seen.push((path, &device.name));
    }
    Ok(())
}

/// Refuses files to which the same command has written the backup of another database.
fn refuse_written(devices: &[&DeviceAddress], written: &[PathBuf]) -> Result<(), Failure> {
    for device in devices {
        let Some(file) = device.file() else { continue };
        let path = absolute(file).unwrap_or_else(|_| file.to_owned());
        if written.contains(&path) {
            let reason = "this command has written the backup of another database to it; back them up with a command each";
            return Err(table::cannot_open_device(&device.name, reason).into());
        }
    }
    Ok(())
}

/// Refuses devices that are database files, especially the backup's own source.
fn refuse_databases(
    session: &Session,
    devices: &[&DeviceAddress],
    own: Option<&DatabaseRecord>,
) -> Result<(), Failure> {
    for device in devices {
        if let Some(file) = device.file() {
            overwriting::refuse(session, file, &device.name, own)?;
        }
    }
    Ok(())
}
