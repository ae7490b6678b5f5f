//! The first steps of everything that reads media: resolve devices, check the media, find the set.

use std::sync::Arc;

use windlass_base::message::table;
use windlass_base::range;
use windlass_crypt::{KeyBlock, KeyRing, RecipientKind, Signer};
use windlass_device::DeviceAddress;
use windlass_media::{MediaHeader, SetConfiguration, SetType};
use windlass_pipeline::{MediaSet, ReadKeys};
use windlass_source::{Protection, Sealing};

use super::store::Use;
use super::{DeviceName, StoreOptions, device, history, number, signing};
use crate::tag::Tags;
use crate::{Failure, Session, Sink, presence};

/// The media to read, the set on them, and what they must match.
#[derive(Debug, Clone, Default)]
pub struct MediaOptions {
    /// All stripes, in any order.
    pub devices: Vec<DeviceName>,
    /// Position of the set; when absent the first one, or all for operations that read several.
    pub position: Option<i64>,
    /// The required name of the media set.
    pub media_name: Option<String>,
    /// The required block size.
    pub block_bytes: Option<i64>,
    /// Whether a set without checksums is refused.
    pub needs_checksums: bool,
    /// How the stores of URLs are reached.
    pub store: StoreOptions,
}

impl Session {
    /// The devices of the media.
    ///
    /// # Errors
    /// The reason, in messages.
    pub fn media_addresses(&mut self, media: &MediaOptions) -> Result<Vec<DeviceAddress>, Failure> {
        media.addresses(self, None)
    }
}

impl MediaOptions {
    /// Resolves the devices. Tags for the time and type of a backup have no value here.
    pub(super) fn addresses(
        &self,
        session: &mut Session,
        database: Option<&str>,
    ) -> Result<Vec<DeviceAddress>, Failure> {
        let tags = self.tags(session, database)?;
        let store = self
            .store
            .of_devices(session, &self.devices, Use::Restore)?;
        device::resolve(session, &self.devices, &tags, &store)
    }

    /// The same where they may be those of several media sets, or folders of media.
    pub(super) fn addresses_of_several(
        &self,
        session: &mut Session,
        database: Option<&str>,
    ) -> Result<Vec<DeviceAddress>, Failure> {
        let tags = self.tags(session, database)?;
        let mut store = self
            .store
            .of_devices(session, &self.devices, Use::Restore)?;
        store.takes_folders = true;
        device::resolve_several(session, &self.devices, &tags, &store)
    }

    fn tags(&self, session: &Session, database: Option<&str>) -> Result<Tags, Failure> {
        match self.devices.is_empty() {
            true => Err(table::device_needed().into()),
            false => Ok(Tags {
                database: database.map(str::to_owned),
                ..session.instance.tags()
            }),
        }
    }

    /// The position, if one was given.
    pub(super) fn position(&self) -> Result<Option<u16>, Failure> {
        let position = number::within(range::POSITION, self.position)?;
        Ok(position.and_then(|position| u16::try_from(position).ok()))
    }

    /// The block size, if one was given.
    pub(super) fn block_bytes(&self) -> Result<Option<u32>, Failure> {
        number::block_bytes(self.block_bytes)
    }

    /// Opens some families of a media set: enough to read headers.
    pub(super) fn open_any(&self, devices: &[DeviceAddress]) -> Result<MediaSet, Failure> {
        let media = MediaSet::open_any(devices)?;
        self.check(media.header(), devices)?;
        Ok(media)
    }

    /// Reads the label of a device: the media header and the first set, nothing else.
    pub(super) fn label(
        &self,
        device: &DeviceAddress,
    ) -> Result<(MediaHeader, Option<SetConfiguration>), Failure> {
        let (header, first) = windlass_pipeline::read_label(device)?;
        self.check(&header, std::slice::from_ref(device))?;
        Ok((header, first))
    }

    fn check(&self, header: &MediaHeader, devices: &[DeviceAddress]) -> Result<(), Failure> {
        let device = devices.first().map_or("", |device| device.name.as_str());
        if let Some(given) = &self.media_name
            && *given != header.media_name
        {
            return Err(table::media_name_differs(given, &header.media_name, device).into());
        }
        match self.block_bytes()? {
            Some(given) if given != header.block_bytes => {
                Err(table::block_size_incompatible(device, header.block_bytes, given).into())
            }
            _ => Ok(()),
        }
    }
}

/// A set that was found on its media.
pub(super) struct OpenedSet {
    pub(super) devices: Vec<DeviceAddress>,
    pub(super) media: MediaSet,
    pub(super) position: u16,
    pub(super) set: SetConfiguration,
    /// The state of the media before anything was read; see [`presence::state`].
    pub(super) state: String,
}

impl OpenedSet {
    /// Reads the headers of the media, up to the requested set. What is found damaged in them is recorded.
    pub(super) fn open(
        session: &mut Session,
        devices: Vec<DeviceAddress>,
        options: &MediaOptions,
    ) -> Result<Self, Failure> {
        let state = presence::state(&devices);
        let opened = Self::read(devices, options, state.clone());
        if let (Err(failure), Ok(position)) = (&opened, options.position()) {
            let position = position.unwrap_or(1);
            history::record_unopened(session, position..=position, &state, failure);
        }
        opened
    }

    fn read(
        devices: Vec<DeviceAddress>,
        options: &MediaOptions,
        state: String,
    ) -> Result<Self, Failure> {
        let position = options.position()?.unwrap_or(1);
        let media = MediaSet::open(&devices)?;
        options.check(media.header(), &devices)?;
        let entry = media.set(position)?;
        let set = entry.configuration;
        if options.needs_checksums && !set.has_checksums {
            return Err(table::set_has_no_checksums().into());
        }
        Ok(Self {
            devices,
            media,
            position,
            set,
            state,
        })
    }

    /// Warns that without a position the first set is used, as on SQL Server: users who append a backup
    /// each night must know.
    pub(super) fn warn_of_later_sets(&self, options: &MediaOptions, sink: &mut dyn Sink) {
        let later = self.media.sets().len().saturating_sub(1);
        if options.position.is_none() && later > 0 {
            sink.message(table::oldest_set_taken(later));
        }
    }

    /// How the set is protected against forgery: what is needed to make one like it. It has the
    /// signature that `keys` require.
    pub(super) fn protection(&self, keys: &ReadKeys) -> Protection {
        Protection {
            encryption: sealing_of(&self.set),
            signed_by: keys.signed_by.iter().map(Signer::fingerprint).collect(),
        }
    }

    /// The keys to read the set with: those of the instance and those given. The instance's keys are not
    /// opened for a set that is not encrypted.
    pub(super) fn keys(&self, session: &mut Session, given: &KeyRing) -> Result<ReadKeys, Failure> {
        let mut ring = match self.set.is_encrypted() {
            true => session.instance.key_ring()?,
            false => KeyRing::default(),
        };
        ring.keys.extend_from_slice(&given.keys);
        ring.passphrases.extend_from_slice(&given.passphrases);
        Ok(ReadKeys {
            ring: Arc::new(ring),
            requires_encryption: is_given(given),
            ..ReadKeys::default()
        })
    }

    /// The same for a restore: settings may require encrypted sets, and signed ones. A differential that may be less
    /// protected than its base needs no key although one was given for that.
    pub(super) fn restore_keys(
        &self,
        session: &mut Session,
        given: &KeyRing,
        signed_by: &[String],
        allows_unencrypted: bool,
    ) -> Result<ReadKeys, Failure> {
        let follows = self.set.set_type == SetType::Differential && allows_unencrypted;
        let none = KeyRing::default();
        let meant = if follows { &none } else { given };
        let required = Required::of_restore(session, meant, signed_by)?;
        let mut keys = self.keys(session, given)?;
        keys.signed_by = required.signed_by;
        keys.requires_encryption = required.encryption;
        Ok(keys)
    }
}

/// For whom the key of a set is wrapped, according to its header.
pub(super) fn sealing_of(set: &SetConfiguration) -> Sealing {
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

/// What a set must have against forgery, whoever wrote it.
pub(super) struct Required {
    /// One of these must have signed it; empty: no signature needed.
    signed_by: Vec<Signer>,
    encryption: bool,
}

impl Required {
    /// What the options of a verification ask for.
    pub(super) fn of_verification(
        session: &Session,
        given: &KeyRing,
        signed_by: &[String],
    ) -> Result<Self, Failure> {
        Ok(Self {
            signed_by: signing::signers(session, signed_by)?,
            encryption: is_given(given),
        })
    }

    /// What the options of a restore and the settings ask for.
    pub(super) fn of_restore(
        session: &Session,
        given: &KeyRing,
        signed_by: &[String],
    ) -> Result<Self, Failure> {
        Ok(Self {
            signed_by: signing::restore_signers(session, signed_by)?,
            encryption: is_given(given) || session.instance.restores_must_be_encrypted()?,
        })
    }

    /// Refuses `source`, which Windlass neither signed nor encrypted, if anything is required of it.
    pub(super) fn refuse_unprotected(&self, source: &str) -> Result<(), Failure> {
        if !self.signed_by.is_empty() {
            let wanted: Vec<String> = self.signed_by.iter().map(Signer::fingerprint).collect();
            let wanted = wanted.join(", ");
            return Err(table::not_signed(format!(
                "'{source}' was not written by Windlass and has no signature; required is one by {wanted}"
            ))
            .into());
        }
        match self.encryption {
            false => Ok(()),
            true => Err(table::encryption_failed(format!(
                "'{source}' was not written by Windlass and is not encrypted with a key of Windlass, which an option \
                 or a setting requires"
            ))
            .into()),
        }
    }
}

/// Who gives a key wants nothing that can be made without it.
fn is_given(keys: &KeyRing) -> bool {
    !keys.keys.is_empty() || !keys.passphrases.is_empty()
}

/// The path to which MOVE sends a file, as written.
pub(super) fn moved_to<'a>(moves: &'a [(String, String)], logical: &str) -> Option<&'a str> {
    let mut moves = moves.iter();
    let found = moves.find(|(known, _)| known.eq_ignore_ascii_case(logical));
    found.map(|(_, path)| path.as_str())
}

/// Checks that every MOVE names a file of the set.
pub(super) fn check_moves(
    moves: &[(String, String)],
    set: &SetConfiguration,
    target: &str,
) -> Result<(), Failure> {
    let is_there = |logical: &str| {
        let mut files = set.files.iter();
        files.any(|file| file.logical_name.eq_ignore_ascii_case(logical))
    };
    match moves.iter().find(|(logical, _)| !is_there(logical)) {
        Some((logical, _)) => Err(table::logical_file_unknown(logical, target)
            .with_state(2)
            .into()),
        None => Ok(()),
    }
}

/// Checks that no file is moved twice.
pub(super) fn check_moved_once(moves: &[(String, String)]) -> Result<(), Failure> {
    for (index, (logical, _)) in moves.iter().enumerate() {
        if moved_to(&moves[..index], logical).is_some() {
            return Err(table::move_given_twice(logical).into());
        }
    }
    Ok(())
}
