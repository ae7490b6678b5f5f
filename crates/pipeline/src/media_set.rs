//! Media sets: opens the families together, identifies and orders them.

use std::sync::{Arc, OnceLock};

use windlass_base::Guid;
use windlass_base::at_once::at_once;
use windlass_crypt::KeyFileEntry;
use windlass_device::{DeviceAddress, DeviceReader};
use windlass_media::{
    FamilyReader, FinalConfiguration, Listing, MediaError, MediaHeader, SetConfiguration,
    SetListing,
};

use crate::error::{Damage, Error, media_error, read_failed};
use crate::half_named;
use crate::key_files::{self, KeyFiles, UnusableKeyFile};
use crate::window::Window;

/// Bytes per read while searching for headers.
const HEADER_WINDOW_BYTES: usize = 64 << 10;

/// One media family, opened for reading.
#[derive(Debug)]
pub(crate) struct Family {
    pub(crate) device: Arc<str>,
    pub(crate) reader: Box<dyn DeviceReader>,
    pub(crate) header: MediaHeader,
    pub(crate) listing: Listing,
}

impl Family {
    /// Opens a device and lists its sets.
    pub(crate) fn open(address: &DeviceAddress) -> Result<Self, Error> {
        let reader = address.open_reader()?;
        if reader.is_empty() {
            return Err(Error::VolumeEmpty {
                device: address.name.clone(),
            });
        }
        let device: Arc<str> = address.name.as_str().into();
        let window = Window::new(&*reader, HEADER_WINDOW_BYTES);
        let (family, header) =
            FamilyReader::open(&window).map_err(|source| media_error(&device, source))?;
        let listing = family.list();
        drop(window);
        // Of a disk, a sector that cannot be read is damage. An object that a store does not give away can be whole.
        let failure = listing.trouble.as_ref().and_then(MediaError::read_failure);
        if let Some(failure) = failure.filter(|_| address.is_object()) {
            return Err(read_failed(&device, failure));
        }
        Ok(Self {
            device,
            reader,
            header,
            listing,
        })
    }

    pub(crate) fn number(&self) -> u16 {
        self.header.family_number
    }

    fn trouble(&self) -> Option<(&str, &MediaError)> {
        let trouble = self.listing.trouble.as_ref()?;
        Some((&*self.device, trouble))
    }

    pub(crate) fn set(&self, position: u16) -> Option<&SetListing> {
        self.listing.sets.get(usize::from(position).checked_sub(1)?)
    }

    /// The set at a position, if damage allows identifying it.
    pub(crate) fn guid(&self, position: u16) -> Option<Guid> {
        let guid = self.set(position)?.configuration.set_guid;
        (!guid.is_nil()).then_some(guid)
    }

    /// Whether the set at a position lacks only its end.
    pub(crate) fn has_all_data(&self, position: u16) -> bool {
        let Some(set) = self.set(position) else {
            return false;
        };
        self.read(|reader| Ok(reader.has_all_data(set)))
            .unwrap_or(false)
    }

    /// The configuration of a set with its files, which the listing omits.
    fn configuration(&self, set: &SetListing) -> Result<SetConfiguration, Error> {
        self.read(|reader| reader.configuration(set))
    }

    /// Reads from the family in small pieces.
    pub(crate) fn read<T>(
        &self,
        work: impl FnOnce(&FamilyReader<'_>) -> Result<T, MediaError>,
    ) -> Result<T, Error> {
        let window = Window::new(&*self.reader, HEADER_WINDOW_BYTES);
        FamilyReader::open(&window)
            .and_then(|(reader, _)| work(&reader))
            .map_err(|source| media_error(&self.device, source))
    }
}

/// The media header on a device, and the start of its first set, if any. Reads nothing else, so
/// damage further on does not matter.
///
/// # Errors
/// If the device cannot be read or does not start with a media header.
pub fn read_label(
    address: &DeviceAddress,
) -> Result<(MediaHeader, Option<SetConfiguration>), Error> {
    let reader = address.open_reader()?;
    if reader.is_empty() {
        return Err(Error::VolumeEmpty {
            device: address.name.clone(),
        });
    }
    let window = Window::new(&*reader, HEADER_WINDOW_BYTES);
    let (family, header) =
        FamilyReader::open(&window).map_err(|source| media_error(&address.name, source))?;
    Ok((header, family.first_set()))
}

/// The named families of a media set, ordered by number.
#[derive(Debug)]
pub struct MediaSet {
    pub(crate) families: Vec<Family>,
    /// Keys that were rewrapped later.
    key_files: OnceLock<KeyFiles>,
    addresses: Vec<DeviceAddress>,
}

/// A backup set on a media set.
#[derive(Debug, Clone)]
pub struct SetEntry {
    /// From its headers; the final configuration if it is complete. The list of files is read per
    /// set, by [`MediaSet::set`].
    pub configuration: SetConfiguration,
    /// Whether it is complete on every opened family.
    pub is_complete: bool,
}

/// The devices on which a set is finished and unfinished: the first of each.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "its end is on '{finished}' and not on '{unfinished}': that stripe is an older copy, or has lost a part"
)]
pub struct PartlyFinished {
    pub finished: String,
    pub unfinished: String,
}

/// A set that is complete on every family, and the same on all of them.
#[derive(Debug)]
pub(crate) struct CompleteSet {
    /// Its listing on each family.
    pub(crate) listings: Vec<SetListing>,
    configuration: SetConfiguration,
    /// The stored form of the configuration, from which `configuration` was parsed.
    pub(crate) stored: FinalConfiguration,
}

impl CompleteSet {
    /// The final configuration, with its files.
    pub(crate) fn configuration(&self) -> &SetConfiguration {
        &self.configuration
    }
}

impl MediaSet {
    /// Whether all families are files that allow direct I/O.
    pub(crate) fn is_direct(&self) -> bool {
        let file = |family: &Family| family.reader.file().is_some_and(|file| file.is_direct());
        self.families.iter().all(file)
    }

    /// Whether a family is an object of a store.
    pub(crate) fn is_in_objects(&self) -> bool {
        self.addresses.iter().any(DeviceAddress::is_object)
    }

    /// Pieces of an object that are read ahead, if that is said.
    pub(crate) fn concurrency(&self) -> Option<usize> {
        self.addresses.iter().find_map(DeviceAddress::concurrency)
    }

    /// Opens all families of a media set, named in any order.
    ///
    /// # Errors
    /// If one is missing, named twice, or belongs to another set.
    pub fn open(devices: &[DeviceAddress]) -> Result<Self, Error> {
        let set = Self::open_any(devices)?;
        let first = set.families.first().ok_or(Error::FamiliesMissing {
            expected: 1,
            provided: 0,
            named: Vec::new(),
        })?;
        let (expected, provided) = (usize::from(first.header.family_count), set.families.len());
        if provided < expected {
            let families = set.families.iter();
            let missing = Error::FamiliesMissing {
                expected,
                provided,
                named: families
                    .map(|family| (family.device.to_string(), family.number()))
                    .collect(),
            };
            return Err(half_named::explained(devices, missing));
        }
        Ok(set)
    }

    /// Opens some families of a media set: enough to read headers.
    ///
    /// # Errors
    /// As [`MediaSet::open`], except that families may be missing.
    pub fn open_any(devices: &[DeviceAddress]) -> Result<Self, Error> {
        Self::open_each(devices).map_err(|error| half_named::explained(devices, error))
    }

    fn open_each(devices: &[DeviceAddress]) -> Result<Self, Error> {
        let mut families: Vec<Family> = Vec::with_capacity(devices.len());
        let is_remote = devices.iter().any(DeviceAddress::is_object);
        for family in at_once(devices, is_remote, Family::open) {
            let family = family?;
            if let Some(first) = families.first() {
                same_media_set(first, &family)?;
            }
            if let Some(twin) = families
                .iter()
                .find(|twin| twin.number() == family.number())
            {
                let (device, other) = (family.device.to_string(), twin.device.to_string());
                return Err(Error::FamilyTwice {
                    device,
                    other,
                    family: family.number(),
                });
            }
            families.push(family);
        }
        families.sort_by_key(Family::number);
        Ok(Self {
            families,
            key_files: OnceLock::new(),
            addresses: devices.to_vec(),
        })
    }

    /// The length of the device of the first family.
    pub fn device_bytes(&self) -> u64 {
        self.families[0].reader.len()
    }

    /// The header of the first family.
    pub fn header(&self) -> &MediaHeader {
        &self.families[0].header
    }

    /// The backup sets. At most the last is incomplete.
    pub fn sets(&self) -> Vec<SetEntry> {
        (1..=self.set_count() as u16)
            .filter_map(|position| self.entry(position))
            .collect()
    }

    /// Where a set is finished and where it is not, if that differs: of some family, an older copy was named, or a
    /// part of it is lost.
    pub fn partly_finished(&self, position: u16) -> Option<PartlyFinished> {
        let is_finished = |family: &&Family| {
            let set = family.set(position);
            set.is_some_and(|set| set.end.is_some())
        };
        let device = |family: &Family| family.device.to_string();
        let finished = self.families.iter().find(is_finished).map(device)?;
        let missing = self.families.iter().find(|family| !is_finished(family));
        let unfinished = missing.map(device)?;
        Some(PartlyFinished {
            finished,
            unfinished,
        })
    }

    fn set_count(&self) -> usize {
        let counts = self.families.iter().map(|family| family.listing.sets.len());
        counts.max().unwrap_or(0)
    }

    /// The set at a position.
    ///
    /// # Errors
    /// If it does not exist, or the families have different sets there.
    pub fn set(&self, position: u16) -> Result<SetEntry, Error> {
        let mut entry = self
            .entry(position)
            .ok_or_else(|| self.not_found(position))?;
        for family in &self.families {
            let found = family.set(position).map(|set| set.configuration.set_guid);
            if found.is_some_and(|guid| guid != entry.configuration.set_guid) {
                let other = Error::OtherBackupSet {
                    device: family.device.to_string(),
                    family: family.number(),
                };
                return Err(half_named::explained(&self.addresses, other));
            }
        }
        if let Some((family, set)) = self.best(position) {
            entry.configuration.files = match family.configuration(set) {
                Ok(configuration) => configuration.files,
                // A set without an end and without a valid start is unknown.
                Err(_) if set.end.is_none() => Vec::new(),
                Err(error) => return Err(error),
            };
        }
        Ok(entry)
    }

    /// A family that describes a set: preferably one that has its end.
    fn best(&self, position: u16) -> Option<(&Family, &SetListing)> {
        self.families
            .iter()
            .filter_map(|family| Some((family, family.set(position)?)))
            .min_by_key(|(_, set)| set.end.is_none())
    }

    fn entry(&self, position: u16) -> Option<SetEntry> {
        let is_complete = self
            .families
            .iter()
            .all(|family| family.set(position).is_some_and(|set| set.end.is_some()));
        let mut configuration = self.best(position)?.1.configuration.clone();
        // Show the recipients that currently apply.
        if let Some(entry) = self.rewrapped(&configuration) {
            configuration.key_block = entry.block().to_stored();
        }
        Some(SetEntry {
            configuration,
            is_complete,
        })
    }

    /// The key block of an encrypted set, if it was rewrapped.
    pub(crate) fn rewrapped(&self, set: &SetConfiguration) -> Option<&KeyFileEntry> {
        if !set.is_encrypted() {
            return None;
        }
        self.key_files().entries(set.set_guid.to_stored()).next()
    }

    /// The key files next to the media that exist but cannot be used.
    pub fn unusable_key_files(&self) -> &[UnusableKeyFile] {
        &self.key_files().unusable
    }

    /// The key files next to the media, read when first asked for.
    pub(crate) fn key_files(&self) -> &KeyFiles {
        self.key_files
            .get_or_init(|| key_files::read(&self.addresses))
    }

    /// A set that is complete on each family. All families end it with the same configuration, which is
    /// bound to their media headers and to their starts of the set.
    ///
    /// # Errors
    /// If it is missing, incomplete or a different set on any family.
    pub(crate) fn complete(&self, position: u16) -> Result<CompleteSet, Error> {
        self.set(position)?;
        let mut listings = Vec::with_capacity(self.families.len());
        for family in &self.families {
            match family.set(position) {
                Some(set) if set.end.is_some() => listings.push(set.clone()),
                _ => return Err(self.incomplete(family, position)),
            }
        }
        let mut first = None;
        for (family, set) in self.families.iter().zip(&listings) {
            let own = family.read(|reader| reader.final_configuration(set))?;
            let found = family.read(|reader| reader.binding(&family.header, set))?;
            let number = family.number();
            let (configuration, stored) = &*first.get_or_insert_with(|| own.clone());
            let damage = if *stored != own.1 {
                Damage::ConfigurationDiffers { family: number }
            } else if found != configuration.binding {
                Damage::Unbound { family: number }
            } else {
                continue;
            };
            let device = family.device.to_string();
            return Err(Error::SetDamaged { device, damage });
        }
        // A media set has families; without any there is no set.
        let (configuration, stored) = first.ok_or_else(|| self.not_found(position))?;
        Ok(CompleteSet {
            listings,
            configuration,
            stored,
        })
    }

    /// Whether a restore of a set can begin; its content is not read.
    ///
    /// # Errors
    /// What the restore would say.
    pub fn check_complete(&self, position: u16) -> Result<(), Error> {
        self.complete(position).map(drop)
    }

    /// Why a set is incomplete on a family: damage found there, or a failure of the device, explains more than its absence.
    fn incomplete(&self, family: &Family, position: u16) -> Error {
        let device = family.device.to_string();
        let trouble = family.listing.trouble.as_ref();
        if let Some(failure) = trouble.and_then(MediaError::read_failure) {
            return read_failed(&device, failure);
        }
        if let Some(MediaError::Damaged {
            offset,
            what,
            expected,
            found,
        }) = trouble
        {
            return Error::Media {
                device,
                source: MediaError::Damaged {
                    offset: *offset,
                    what,
                    expected: *expected,
                    found: *found,
                },
            };
        }
        match self.partly_finished(position) {
            Some(partly) => Error::PartlyFinished { position, partly },
            None => Error::SetIncomplete { device, position },
        }
    }

    fn not_found(&self, position: u16) -> Error {
        Error::SetNotFound {
            device: self.families[0].device.to_string(),
            position,
            count: self.set_count(),
        }
    }

    /// Bytes of the first family up to the end of its last complete set, which an append leaves as they are.
    pub fn kept_bytes(&self) -> u64 {
        let listing = &self.families[0].listing;
        listing.append_position(listing.complete_sets()).offset
    }

    /// Number of sets, counted from the first, that are complete on every family.
    pub(crate) fn complete_sets(&self) -> u16 {
        let counts = self
            .families
            .iter()
            .map(|family| family.listing.complete_sets());
        counts.min().unwrap_or(0)
    }

    /// The names of the devices, for a message about all of them.
    pub(crate) fn devices(&self) -> String {
        let names: Vec<&str> = self.families.iter().map(|family| &*family.device).collect();
        names.join(", ")
    }

    /// The first problem of a family outside of the content of its sets: an interrupted append, or damage.
    pub fn trouble(&self) -> Option<(&str, &MediaError)> {
        self.families.iter().find_map(Family::trouble)
    }

    /// The same, of a family that is cut off within the filemark behind its last set.
    pub fn cut_filemark(&self) -> Option<(&str, &MediaError)> {
        let mut cut = self
            .families
            .iter()
            .filter(|family| family.listing.lacks_filemark());
        cut.find_map(Family::trouble)
    }

    /// The same, of the families in which a set may follow the last one that was found.
    pub fn trouble_behind(&self) -> Option<(&str, &MediaError)> {
        let mut open = self.families.iter();
        open.find_map(|family| family.trouble().filter(|_| !family.listing.is_closed()))
    }
}

fn same_media_set(first: &Family, other: &Family) -> Result<(), Error> {
    if first.header.media_set_guid == other.header.media_set_guid {
        return Ok(());
    }
    Err(Error::OtherMediaSet {
        device: other.device.to_string(),
    })
}
