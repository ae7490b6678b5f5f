//! What all statements that read media do first: devices, options, the media set.

use std::sync::Arc;

use windlass_base::message::table;
use windlass_crypt::{KeyBlock, KeyRing, RecipientKind, Signer};
use windlass_device::DeviceAddress;
use windlass_media::{MediaHeader, SetConfiguration};
use windlass_pipeline::{MediaSet, ReadKeys};
use windlass_source::{Protection, Sealing};
use windlass_tsql::ast::{RestoreAction, RestoreSource, RestoreStatement};
use windlass_tsql::option::StatementKind;

use super::{device_list, signing};
use crate::option::{self, RestoreChoices};
use crate::tag::Tags;
use crate::{Failure, Session, Sink};

/// The devices of a statement.
pub(super) fn devices(
    session: &mut Session,
    statement: &RestoreStatement,
) -> Result<Vec<DeviceAddress>, Failure> {
    match &statement.source {
        RestoreSource::Devices(devices) => {
            let tags = tags(session, statement)?;
            device_list::resolve(session, devices, &tags)
        }
        RestoreSource::None => Err(table::device_needed().into()),
        RestoreSource::DatabaseSnapshot(_) => Err(table::from_snapshot_not_supported().into()),
    }
}

/// The values of name tags in a statement that reads: there are none for times and types, which
/// belong to backups.
pub(super) fn tags(session: &mut Session, statement: &RestoreStatement) -> Result<Tags, Failure> {
    let database = match &statement.action {
        RestoreAction::Database { name, .. } | RestoreAction::Log { name, .. } => {
            Some(option::name(&name.node, session)?)
        }
        _ => None,
    };
    Ok(Tags {
        database,
        ..session.instance.tags()
    })
}

/// The name of a statement's first device, for messages.
pub(super) fn first_device(
    statement: &RestoreStatement,
    session: &mut Session,
) -> Result<String, Failure> {
    let devices = devices(session, statement)?;
    Ok(devices
        .first()
        .map(|device| device.name.clone())
        .unwrap_or_default())
}

/// Opens some families of a media set: enough to read headers.
pub(super) fn open_any(
    session: &mut Session,
    statement: &RestoreStatement,
    kind: StatementKind,
) -> Result<(MediaSet, RestoreChoices), Failure> {
    let choices = option::choose_restore(&statement.options, kind, session)?;
    let devices = devices(session, statement)?;
    let media = MediaSet::open_any(&devices)?;
    check_media(media.header(), &choices, &devices)?;
    Ok((media, choices))
}

/// The label of a statement's device: the media header, and the first set. The rest is not looked at.
pub(super) fn label(
    session: &mut Session,
    statement: &RestoreStatement,
) -> Result<(MediaHeader, Option<SetConfiguration>), Failure> {
    let kind = StatementKind::LabelOnly;
    let choices = option::choose_restore(&statement.options, kind, session)?;
    let devices = devices(session, statement)?;
    let device = devices.first().ok_or_else(table::device_needed)?;
    let (header, first) = windlass_pipeline::read_label(device)?;
    check_media(&header, &choices, &devices)?;
    Ok((header, first))
}

/// Opens all families of a media set.
pub(super) fn open(
    devices: &[DeviceAddress],
    choices: &RestoreChoices,
) -> Result<MediaSet, Failure> {
    let media = MediaSet::open(devices)?;
    check_media(media.header(), choices, devices)?;
    Ok(media)
}

/// The statement's MEDIANAME and BLOCKSIZE must be the media's.
fn check_media(
    header: &MediaHeader,
    choices: &RestoreChoices,
    devices: &[DeviceAddress],
) -> Result<(), Failure> {
    let device = devices.first().map_or("", |device| device.name.as_str());
    if let Some(given) = &choices.media_name
        && *given != header.media_name
    {
        return Err(table::media_name_differs(given, &header.media_name, device).into());
    }
    match choices.block_bytes {
        Some(given) if given != header.block_bytes => {
            Err(table::block_size_incompatible(device, header.block_bytes, given).into())
        }
        _ => Ok(()),
    }
}

/// The set that a statement names, found on its media.
pub(super) struct OpenSet {
    pub(super) devices: Vec<DeviceAddress>,
    pub(super) media: MediaSet,
    pub(super) position: u16,
    pub(super) set: SetConfiguration,
}

/// Reads the headers of the media, up to that set.
pub(super) fn open_set(
    session: &mut Session,
    statement: &RestoreStatement,
    choices: &RestoreChoices,
) -> Result<OpenSet, Failure> {
    let devices = devices(session, statement)?;
    let media = open(&devices, choices)?;
    let position = choices.position.unwrap_or(1);
    let entry = media.set(position)?;
    let set = entry.configuration;
    if choices.needs_checksums && !set.has_checksums {
        return Err(table::set_has_no_checksums().into());
    }
    Ok(OpenSet {
        devices,
        media,
        position,
        set,
    })
}

/// Without FILE a statement takes the first set, as SQL Server's does: whoever appends their nights
/// must hear of it.
pub(super) fn tell_later_sets(media: &MediaSet, choices: &RestoreChoices, sink: &mut dyn Sink) {
    let later = media.sets().len().saturating_sub(1);
    if choices.position.is_none() && later > 0 {
        sink.message(table::oldest_set_taken(later));
    }
}

/// The same for a restore, which settings may hold to encrypted sets, and to signed ones.
pub(super) fn restore_keys(
    session: &mut Session,
    set: &SetConfiguration,
    given: &KeyRing,
    choices: &RestoreChoices,
) -> Result<ReadKeys, Failure> {
    let must_be_encrypted = session.instance.restores_must_be_encrypted()?;
    let signed_by = signing::restore_signers(session, &choices.signed_by)?;
    let mut keys = keys(session, set, given)?;
    keys.requires_encryption |= must_be_encrypted;
    keys.signed_by = signed_by;
    Ok(keys)
}

/// How a set is protected against forgers: what somebody needs who makes one like it. It was signed as `keys`
/// ask for.
pub(super) fn protection(set: &SetConfiguration, keys: &ReadKeys) -> Protection {
    Protection {
        encryption: sealing(set),
        signed_by: keys.signed_by.iter().map(Signer::fingerprint).collect(),
    }
}

fn sealing(set: &SetConfiguration) -> Sealing {
    if !set.is_encrypted() {
        return Sealing::None;
    }
    let recipients = KeyBlock::from_stored(&set.key_block).map(|block| block.recipients());
    let is_passphrase = |kind: &RecipientKind| matches!(kind, RecipientKind::Passphrase);
    match recipients {
        Ok(all) if all.iter().all(is_passphrase) => Sealing::Passphrase,
        _ => Sealing::Certificate,
    }
}

/// The keys that a set is read with: those of the instance and those that were given. None are opened
/// for a set that is not encrypted.
pub(super) fn keys(
    session: &mut Session,
    set: &SetConfiguration,
    given: &KeyRing,
) -> Result<ReadKeys, Failure> {
    let is_given = !given.keys.is_empty() || !given.passphrases.is_empty();
    let mut ring = match set.is_encrypted() {
        true => session.instance.key_ring()?,
        false => KeyRing::default(),
    };
    ring.keys.extend_from_slice(&given.keys);
    ring.passphrases.extend_from_slice(&given.passphrases);
    Ok(ReadKeys {
        ring: Arc::new(ring),
        requires_encryption: is_given,
        ..ReadKeys::default()
    })
}
