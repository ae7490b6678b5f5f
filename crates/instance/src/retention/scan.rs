//! The media in some folders, from their headers alone.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use windlass_base::{Guid, Lsn, Moment};
use windlass_catalog::PastBackup;
use windlass_device::DeviceAddress;
use windlass_media::SetType;
use windlass_pipeline::MediaSet;

/// A backup set on a medium.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundSet {
    /// Its identity.
    pub set_guid: Guid,
    /// The name of its database.
    pub database: String,
    /// The family of its database: a database and everything restored from its backups.
    pub family_guid: Guid,
    /// What it is.
    pub kind: SetType,
    /// The full backup that a differential counts from.
    pub base: Option<Guid>,
    /// When it was finished, or begun if it was not.
    pub finished: Option<Moment>,
    /// Where it stands in the history of its database: orders what was finished in one second.
    pub lsn: Lsn,
    /// Until when it must not be overwritten.
    pub expires: Option<Moment>,
    /// Whether its end is on every family.
    pub is_complete: bool,
}

/// A file of a medium.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundFile {
    /// Where it is.
    pub path: PathBuf,
    /// The number of its family.
    pub family: u16,
    /// Its length in octets.
    pub bytes: u64,
}

/// A media set, with all its files that were found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundMedia {
    /// Its identity.
    pub media_set_guid: Guid,
    /// How many families it has.
    pub family_count: u16,
    /// Its files, mirrors and copies too.
    pub files: Vec<FoundFile>,
    /// Its backup sets, in order.
    pub sets: Vec<FoundSet>,
    /// What is wrong with it.
    pub trouble: Option<String>,
    /// It lies outside of the folders: it is looked at for what it needs, and stays.
    pub is_outside: bool,
}

impl FoundMedia {
    /// Whether every family is there.
    pub(crate) fn is_whole(&self) -> bool {
        (1..=self.family_count).all(|number| self.files.iter().any(|file| file.family == number))
    }
}

/// A file that is no medium of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundOther {
    /// Where it is.
    pub path: PathBuf,
    /// Why it is none.
    pub reason: String,
}

/// What is in some folders.
#[derive(Debug, Clone, Default)]
pub struct Scan {
    /// The media, ordered by identity.
    pub media: Vec<FoundMedia>,
    /// The other files.
    pub others: Vec<FoundOther>,
}

/// Reads the headers of every file in folders, not of those in folders below. Links are not followed.
///
/// # Errors
/// When a folder cannot be listed: half a list could make a needed backup look needless.
pub fn scan(folders: &[PathBuf]) -> io::Result<Scan> {
    let mut media: BTreeMap<Guid, FoundMedia> = BTreeMap::new();
    let mut others = Vec::new();
    for folder in folders {
        let mut paths = Vec::new();
        for entry in std::fs::read_dir(folder)? {
            let entry = entry?;
            if entry.file_type()?.is_file() {
                paths.push(entry.path());
            }
        }
        paths.sort();
        for path in paths {
            match read(&path) {
                Ok(found) => add(&mut media, found),
                Err(reason) => others.push(FoundOther { path, reason }),
            }
        }
    }
    Ok(Scan {
        media: media.into_values().collect(),
        others,
    })
}

fn add(media: &mut BTreeMap<Guid, FoundMedia>, found: FoundMedia) {
    let key = found.media_set_guid;
    let Some(known) = media.get_mut(&key) else {
        media.insert(key, found);
        return;
    };
    let differs = known
        .sets
        .iter()
        .zip(&found.sets)
        .any(|(known, found)| known.set_guid != found.set_guid);
    if differs || known.sets.len() != found.sets.len() {
        known
            .trouble
            .get_or_insert_with(|| "its stripes or copies hold different backup sets".to_owned());
    }
    for (known, found) in known.sets.iter_mut().zip(&found.sets) {
        known.is_complete &= found.is_complete;
    }
    if found.sets.len() > known.sets.len() {
        known.sets.extend(found.sets[known.sets.len()..].to_vec());
    }
    known.trouble = known.trouble.take().or(found.trouble);
    known.files.extend(found.files);
}

/// Reads the headers of one file.
fn read(path: &Path) -> Result<FoundMedia, String> {
    let bytes = std::fs::metadata(path).map_err(|error| error.to_string())?;
    let address = DeviceAddress::disk(path);
    let set = MediaSet::open_any(&[address]).map_err(|error| error.to_string())?;
    let header = set.header();
    let sets = set.sets().into_iter().map(|entry| {
        let configuration = entry.configuration;
        FoundSet {
            set_guid: configuration.set_guid,
            database: configuration.database,
            family_guid: configuration.family_guid,
            kind: configuration.set_type,
            base: (configuration.set_type == SetType::Differential)
                .then_some(configuration.differential_base_guid),
            finished: configuration.finished.or(configuration.started),
            lsn: configuration.last_lsn,
            expires: configuration.expires,
            is_complete: entry.is_complete,
        }
    });
    Ok(FoundMedia {
        media_set_guid: header.media_set_guid,
        family_count: header.family_count,
        files: vec![FoundFile {
            path: path.to_owned(),
            family: header.family_number,
            bytes: bytes.len(),
        }],
        sets: sets.collect(),
        trouble: set.trouble().map(|(_, trouble)| trouble.to_string()),
        is_outside: false,
    })
}

/// Adds the differentials outside of the folders that need a full backup inside: those that the
/// history knows and whose files still exist.
pub fn add_dependents(scan: &mut Scan, past: &[PastBackup]) {
    let inside: Vec<Guid> = scan
        .media
        .iter()
        .flat_map(|media| media.sets.iter().map(|set| set.set_guid))
        .collect();
    for backup in past {
        let needs = backup.base_guid.is_some_and(|base| inside.contains(&base));
        let known = backup.set_guid.is_none_or(|guid| inside.contains(&guid));
        if !needs || known {
            continue;
        }
        let found = backup.devices.iter().map(|path| read(Path::new(path)));
        let mut media = BTreeMap::new();
        for found in found.flatten() {
            let is_there = found
                .sets
                .iter()
                .any(|set| Some(set.set_guid) == backup.set_guid);
            if is_there {
                add(&mut media, found);
            }
        }
        scan.media
            .extend(media.into_values().map(|media| FoundMedia {
                is_outside: true,
                ..media
            }));
    }
}
