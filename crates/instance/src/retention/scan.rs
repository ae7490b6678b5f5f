//! Finds the media in some folders, from their headers alone.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use windlass_base::{Guid, Moment};
use windlass_device::{DeviceAddress, DeviceFolder};

use super::not_media::{EXTENSIONS, NotMedia, extension, has_usual_extension};
use super::{FoundFile, FoundMedia, FoundSet};
use crate::chain::{ChainSet, settle_dates};
use crate::generation;
use crate::headers::{HeaderCache, Headers};
use crate::names::is_own_side_file;
use crate::provenance;

/// The place of a set: index of its medium, and index on it.
pub type Place = (usize, usize);

/// All sets on some media, with their places.
pub(crate) fn chain_sets(media: &[FoundMedia]) -> (Vec<Place>, Vec<ChainSet>) {
    let places = media.iter().enumerate().flat_map(|(number, medium)| {
        let obstacle = medium.obstacle();
        medium.sets.iter().enumerate().map(move |(place, set)| {
            let mut chain = set.chain.clone();
            if let Some(obstacle) = &obstacle {
                chain.obstacle = Some(obstacle.clone());
            }
            ((number, place), chain)
        })
    });
    places.unzip()
}

/// The same for those who look for the newest state: see [`settle_dates`].
pub fn settled_sets(media: &[FoundMedia]) -> (Vec<Place>, Vec<ChainSet>) {
    let (places, mut sets) = chain_sets(media);
    settle_dates(&mut sets);
    (places, sets)
}

/// A file that is not Windlass media.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundOther {
    pub device: DeviceAddress,
    /// Why it is not.
    pub reason: String,
    /// It could not be read, so that nobody knows.
    pub is_unknown: bool,
    /// It may be a medium that is damaged: it has the name of one, or begins like one.
    pub may_be_medium: bool,
    /// Backup sets were on it, or may be, and nobody can see them.
    pub may_hide_sets: bool,
}

/// The content of some folders.
#[derive(Debug, Clone, Default)]
pub struct Scan {
    /// The media, in the order of the names of their first files.
    pub media: Vec<FoundMedia>,
    /// The other files.
    pub others: Vec<FoundOther>,
}

/// Reads the headers of every file in the folders, but not in their subfolders, and of every object below URLs. Does
/// not follow links.
/// Files that a backup is still writing, or left when it was killed, are no media, even if they are complete:
/// the next backup to that name may remove them.
///
/// # Errors
/// If a folder cannot be listed: with half a list a backup could look unneeded.
pub fn scan(folders: &[DeviceFolder]) -> io::Result<Scan> {
    scan_only(folders, |_| true, &mut HeaderCache::default())
}

/// The same for some of the files, with headers that may have been read before.
///
/// # Errors
/// If a folder cannot be listed.
pub(crate) fn scan_only(
    folders: &[DeviceFolder],
    is_wanted: impl Fn(&DeviceAddress) -> bool,
    headers: &mut HeaderCache,
) -> io::Result<Scan> {
    let mut media: BTreeMap<Guid, FoundMedia> = BTreeMap::new();
    let mut damaged = Vec::new();
    let mut others = Vec::new();
    let mut listed = BTreeSet::new();
    for folder in folders {
        // A folder that is named twice, or through a link, has its files once.
        if let Some(identity) = folder.identity()
            && !listed.insert(identity)
        {
            continue;
        }
        let named = |error: io::Error| io::Error::new(error.kind(), format!("'{folder}': {error}"));
        let devices = folder.devices().map_err(named)?.into_iter();
        let (unfinished, devices): (Vec<_>, Vec<_>) = devices
            .filter(&is_wanted)
            .partition(|device| device.file().is_some_and(is_own_side_file));
        let links = folder.links().map_err(named)?.into_iter();
        let links = links.map(DeviceAddress::disk).filter(&is_wanted);
        others.extend(
            links
                .filter(has_usual_extension)
                .map(|link| (link, NotMedia::link())),
        );
        let unfinished = unfinished.into_iter();
        others.extend(unfinished.map(|device| (device, NotMedia::unfinished())));
        let found = headers.read_all(&devices);
        for (device, found) in devices.into_iter().zip(found) {
            let found = found.map(|headers| found_media(&device, &headers));
            match found.map_err(|error| NotMedia::of(&error)) {
                Ok(found) if found.files.iter().all(|file| file.sets.is_empty()) => {
                    others.push((device, NotMedia::without_sets()));
                }
                Ok(found) if found.torn().is_some() => damaged.push(found),
                Ok(found) => add(&mut media, found),
                Err(not_media) => others.push((device, not_media)),
            }
        }
    }
    others.sort_by(|one, other| one.0.name.cmp(&other.0.name));
    // After all others: an intact copy of the same family says more.
    for found in damaged {
        match media.get_mut(&found.media_set_guid) {
            Some(known) => known.files.extend(found.files),
            None => add(&mut media, found),
        }
    }
    let mut media: Vec<FoundMedia> = media.into_values().flat_map(generations).collect();
    media.iter_mut().for_each(FoundMedia::settle);
    let own = media.iter().flat_map(|media| &media.files);
    let own = own.filter_map(|file| extension(&file.device));
    let usual = EXTENSIONS.map(str::to_owned).into_iter();
    let extensions: BTreeSet<String> = own.chain(usual).collect();
    let others = others
        .into_iter()
        .map(|(device, not_media): (_, NotMedia)| FoundOther {
            may_be_medium: not_media.may_be_medium(&device, &extensions),
            may_hide_sets: not_media.may_hide_sets(&device, &extensions),
            device,
            is_unknown: not_media.is_unknown(),
            reason: not_media.reason,
        });
    let others = others.collect();
    media.sort_by(|one, other| first_name(one).cmp(first_name(other)));
    Ok(Scan { media, others })
}

fn first_name(media: &FoundMedia) -> &str {
    media.files.first().map_or("", |file| &file.device.name)
}

/// The generations of a medium: an older one is no copy of it.
fn generations(mut found: FoundMedia) -> Vec<FoundMedia> {
    let files = std::mem::take(&mut found.files);
    let shown = |file: &FoundFile| {
        let sets = file.sets.iter().map(|set| set.chain.set_guid);
        (file.family, sets.collect())
    };
    let split = generation::split(found.media_set_guid, found.family_count, files, shown);
    let each = split.into_iter().map(|mut generation| {
        let sets = generation.files.iter_mut().flat_map(|file| &mut file.sets);
        for chain in sets.map(|set| &mut set.chain) {
            let position = chain.place.map(|(_, position)| position);
            chain.place = generation.order.zip(position);
        }
        FoundMedia {
            files: generation.files,
            ..found.clone()
        }
    });
    each.collect()
}

pub(super) fn add(media: &mut BTreeMap<Guid, FoundMedia>, found: FoundMedia) {
    let key = found.media_set_guid;
    let Some(known) = media.get_mut(&key) else {
        media.insert(key, found);
        return;
    };
    known.files.extend(found.files);
}

pub(super) fn found_media(device: &DeviceAddress, headers: &Headers) -> FoundMedia {
    let sets = headers.sets.iter().map(|entry| {
        let configuration = &entry.configuration;
        FoundSet {
            chain: ChainSet::of(configuration, entry.is_complete)
                .on(headers.media_set_guid, configuration.position),
            of: provenance::of_set(configuration),
            started: configuration.started,
            finished: configuration.finished.or(configuration.started),
            expires: configuration.expires.map(|at| {
                let made = configuration.started.unwrap_or(at);
                let utc = at.utc_seconds_from(made, configuration.time_zone);
                Moment::of_utc_seconds(utc).unwrap_or(at)
            }),
            stored_bytes: configuration.stored_bytes,
        }
    });
    let trouble = headers.trouble.as_ref();
    // The remains of a killed backup hide no other set.
    let damage = trouble.filter(|trouble| !trouble.is_truncation);
    FoundMedia {
        media_set_guid: headers.media_set_guid,
        family_count: headers.family_count,
        files: vec![FoundFile {
            device: device.clone(),
            family: headers.family,
            bytes: headers.bytes,
            defect: damage.map(|damage| damage.text.clone()),
            trouble: trouble.map(|trouble| trouble.text.clone()),
            may_hide: headers.trouble_behind.is_some(),
            sets: sets.collect(),
        }],
        sets: Vec::new(),
        trouble: None,
        may_pass: false,
        has_contradictions: false,
        lacks_known: false,
        is_outside: false,
        unseen: None,
    }
}
