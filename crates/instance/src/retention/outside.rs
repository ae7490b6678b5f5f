//! Backups outside of the folders that may need one inside: those that the history knows.
//!
//! A file that is not where the history has it may be on a share that is not mounted now. What it needs stays, until it is
//! known to be gone:
//! - the file system that it was on is mounted, and its folder can be read;
//! - that folder has another file that the history knows there, from the same file system: an empty mount point has none.
//!
//! Of an object, its store must say that it is missing, and have another one that the history knows in its bucket
//! ([`Buckets`]). Or the user says so (`--gone`).

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use windlass_base::Guid;
use windlass_catalog::{PastBackup, PastMedium};
use windlass_device::{DeviceAddress, DeviceFolder};
use windlass_io::directory;
use windlass_media::MediaError;
use windlass_pipeline::Error as PipelineError;

use super::buckets::Buckets;
use super::scan::{add, found_media};
use super::{FoundFile, FoundMedia, FoundSet, Scan};
use crate::chain::{ChainSet, Within};
use crate::headers::Headers;
use crate::names::absolute;
use crate::operation::Reach;
use crate::presence;

/// Adds differentials of full backups inside and log backups of databases inside, which are outside: those whose files
/// exist, and those of which nobody can tell ([`FoundMedia::unseen`]). In the folders `gone`, what is not found is gone.
pub fn add_dependents(scan: &mut Scan, past: &[PastBackup], reach: &Reach, gone: &[DeviceFolder]) {
    let sets = || scan.media.iter().flat_map(|media| &media.sets);
    let inside: BTreeSet<Guid> = sets().map(|set| set.chain.set_guid).collect();
    let families: BTreeSet<Guid> = sets().map(|set| set.chain.family_guid).collect();
    let mut known = inside.clone();
    let mut places = Places::of(past, reach, gone);
    let mut unseen: BTreeMap<Guid, FoundMedia> = BTreeMap::new();
    for backup in past {
        let is_of_log = backup.kind == "L" && families.contains(&backup.of.family_guid);
        let needs = is_of_log || backup.base_guid.is_some_and(|base| inside.contains(&base));
        let is_known = backup.set_guid.is_none_or(|guid| known.contains(&guid));
        if !needs || is_known {
            continue;
        }
        match places.look(backup) {
            Found::There(media) => {
                for mut found in media {
                    found.settle();
                    found.is_outside = true;
                    known.extend(found.sets.iter().map(|set| set.chain.set_guid));
                    scan.media.push(found);
                }
            }
            Found::Unseen(why) => add_unseen(&mut unseen, backup, reach, why),
            Found::Gone => {}
        }
    }
    for mut media in unseen.into_values() {
        // A copy of it may have been found later.
        media
            .sets
            .retain(|set| !known.contains(&set.chain.set_guid));
        if !media.sets.is_empty() {
            scan.media.push(media);
        }
    }
}

/// Whether a folder that the user says is gone has a file of the history that is missing: if not, there is nothing to say.
pub fn lacks_known(folder: &DeviceFolder, past: &[PastBackup], reach: &Reach) -> bool {
    let mut media = past.iter().flat_map(|backup| &backup.media);
    media.any(|medium| {
        let device = reach.device(&medium.device);
        is_in(folder, &device) && !device.file().is_some_and(Path::exists)
    })
}

/// Whether a file or object is in a folder, or in one below it.
fn is_in(folder: &DeviceFolder, device: &DeviceAddress) -> bool {
    let Some(path) = folder.path() else {
        let url = folder.to_string();
        let below = device.url().map(ToString::to_string);
        let below = below
            .as_deref()
            .and_then(|own| own.strip_prefix(url.trim_end_matches('/')));
        return below.is_some_and(|rest| rest.starts_with('/'));
    };
    let own = [absolute(path).ok(), path.canonicalize().ok()];
    let is_below = |path: &Path| own.iter().flatten().any(|folder| path.starts_with(folder));
    device.file().is_some_and(is_below)
}

/// What became of a backup.
pub(super) enum Found {
    There(Vec<FoundMedia>),
    /// Nobody can tell; the text says why.
    Unseen(String),
    Gone,
}

/// What reading a file that is not the expected medium says.
enum Trouble {
    Missing,
    /// Something else is there.
    Replaced,
    Unreadable(String),
}

impl Trouble {
    fn of(error: &PipelineError) -> Self {
        match error {
            PipelineError::Device(error) => match error.source.kind() {
                ErrorKind::NotFound | ErrorKind::NotADirectory => Self::Missing,
                _ => Self::Unreadable(error.to_string()),
            },
            PipelineError::Media {
                device,
                source: MediaError::Read(error),
            } => Self::Unreadable(format!("'{device}': {error}")),
            _ => Self::Replaced,
        }
    }
}

/// The places of the history, and what was found of them.
pub(super) struct Places<'a> {
    /// The media in each folder.
    known: HashMap<PathBuf, Vec<&'a PastMedium>>,
    /// Why a missing file of a folder and a file system is not known to be gone.
    missing: HashMap<(PathBuf, Option<PathBuf>), Option<String>>,
    /// Why the objects of a folder cannot be looked at: a store that does not answer is not asked for each of them.
    silent: HashMap<PathBuf, String>,
    buckets: Buckets<'a>,
    reach: &'a Reach,
    gone: &'a [DeviceFolder],
}

impl<'a> Places<'a> {
    pub(super) fn of(past: &'a [PastBackup], reach: &'a Reach, gone: &'a [DeviceFolder]) -> Self {
        let mut known: HashMap<PathBuf, Vec<&PastMedium>> = HashMap::new();
        // The newest first: these are the likeliest to exist.
        for medium in past.iter().rev().flat_map(|backup| &backup.media) {
            let folder = directory::parent(Path::new(&medium.device));
            known.entry(folder).or_default().push(medium);
        }
        Self {
            known,
            missing: HashMap::new(),
            silent: HashMap::new(),
            buckets: Buckets::of(past),
            reach,
            gone,
        }
    }

    /// Looks for a copy of each stripe of a backup.
    pub(super) fn look(&mut self, backup: &PastBackup) -> Found {
        let mut found = BTreeMap::new();
        let mut there = BTreeSet::new();
        let mut unseen: BTreeMap<u32, String> = BTreeMap::new();
        for medium in &backup.media {
            if there.contains(&medium.family) {
                continue;
            }
            match self.medium(medium, backup) {
                Ok(media) => {
                    there.insert(medium.family);
                    add(&mut found, media);
                }
                Err(Some(why)) => {
                    unseen.entry(medium.family).or_insert(why);
                }
                Err(None) => {}
            }
        }
        let families = backup.media.iter().map(|medium| medium.family);
        let lacking: BTreeSet<u32> = families.filter(|family| !there.contains(family)).collect();
        // Without a stripe that is known to be gone, it needs nothing any more.
        let why: Option<Vec<&String>> = lacking.iter().map(|family| unseen.get(family)).collect();
        match why.and_then(|why| why.first().copied()) {
            Some(why) => Found::Unseen(why.clone()),
            None if found.is_empty() => Found::Gone,
            None => Found::There(found.into_values().collect()),
        }
    }

    /// A medium with the backup; otherwise why it may still exist, or nothing if it is gone.
    fn medium(
        &mut self,
        medium: &PastMedium,
        backup: &PastBackup,
    ) -> Result<FoundMedia, Option<String>> {
        let device = self.reach.device(&medium.device);
        let folder = directory::parent(Path::new(&medium.device));
        let trouble = match self.silent.get(&folder) {
            Some(why) => Trouble::Unreadable(why.clone()),
            None => match Headers::read(&device) {
                Ok(headers) => {
                    let media = found_media(&device, &headers);
                    if has_set(&media, backup.set_guid) {
                        return Ok(media);
                    }
                    Trouble::Replaced
                }
                Err(error) => Trouble::of(&error),
            },
        };
        if backup.is_overwritten || self.gone.iter().any(|folder| is_in(folder, &device)) {
            return Err(None);
        }
        Err(match trouble {
            Trouble::Unreadable(why) => {
                if device.is_object() {
                    self.silent.entry(folder).or_insert_with(|| why.clone());
                }
                Some(why)
            }
            Trouble::Missing if device.is_object() => self.buckets.unseen(&device, self.reach),
            // Its store was reached, and has something else there.
            Trouble::Replaced if device.is_object() => None,
            Trouble::Replaced => not_mounted(medium.mount_point.as_deref()),
            Trouble::Missing => {
                let place = (folder, medium.mount_point.clone());
                match self.missing.get(&place) {
                    Some(why) => why.clone(),
                    None => {
                        let why = self.unseen(&place.0, place.1.as_deref());
                        self.missing.insert(place, why.clone());
                        why
                    }
                }
            }
        })
    }

    /// Why a file that is missing in a folder may still exist; `None` if it is gone.
    fn unseen(&self, folder: &Path, mounted: Option<&Path>) -> Option<String> {
        if let Some(why) = not_mounted(mounted) {
            return Some(why);
        }
        let name = folder.display();
        match fs::metadata(folder) {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Some(format!("the folder '{name}' does not exist"));
            }
            Err(error) => return Some(format!("the folder '{name}' cannot be read: {error}")),
        }
        let own = self.known.get(folder).into_iter().flatten();
        let mut own = own.filter(|medium| medium.mount_point.as_deref() == mounted);
        let is_there =
            |medium: &&PastMedium| fs::metadata(&medium.device).is_ok_and(|found| found.is_file());
        match own.any(is_there) {
            true => None,
            false => Some(format!(
                "'{name}' has none of the files that the history knows there, as if something were not mounted"
            )),
        }
    }
}

fn has_set(media: &FoundMedia, set_guid: Option<Guid>) -> bool {
    let mut sets = media.files.iter().flat_map(|file| &file.sets);
    sets.any(|set| Some(set.chain.set_guid) == set_guid)
}

fn not_mounted(mounted: Option<&Path>) -> Option<String> {
    let mounted = mounted.filter(|mounted| !presence::is_mounted(mounted))?;
    Some(format!("nothing is mounted at '{}'", mounted.display()))
}

/// Adds what the history knows of a backup that nobody can see. It counts for nothing, but what it needs stays.
pub(super) fn add_unseen(
    unseen: &mut BTreeMap<Guid, FoundMedia>,
    backup: &PastBackup,
    reach: &Reach,
    why: String,
) {
    let (Some(guid), Some(chain)) = (
        backup.media_set_guid.or(backup.set_guid),
        ChainSet::of_past(backup),
    ) else {
        return;
    };
    let file = |medium: &PastMedium| {
        Some(FoundFile {
            trouble: None,
            device: reach.device(&medium.device),
            family: u16::try_from(medium.family).ok()?,
            bytes: 0,
            defect: None,
            may_hide: false,
            sets: Vec::new(),
        })
    };
    let files: Vec<FoundFile> = backup.media.iter().filter_map(file).collect();
    let set = FoundSet {
        // Nobody can read which of the states within it are of its history.
        chain: ChainSet {
            within: Within::Unreadable,
            ..chain
        },
        of: backup.of.clone(),
        started: backup.started,
        finished: backup.finished,
        expires: None,
        stored_bytes: backup.stored_bytes,
    };
    let media = unseen.entry(guid).or_insert_with(|| FoundMedia {
        media_set_guid: guid,
        family_count: files.iter().map(|file| file.family).max().unwrap_or(1),
        files,
        sets: Vec::new(),
        trouble: Some(why.clone()),
        may_pass: false,
        has_contradictions: false,
        lacks_known: false,
        is_outside: true,
        unseen: Some(why),
    });
    media.sets.push(set);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::presence::tests::Place;
    use crate::retention::scan;

    #[test]
    fn what_counts_from_a_backup_in_the_folder_is_found_outside_of_it() {
        let place = Place::new();
        for folder in ["inside", "outside"] {
            std::fs::create_dir(place.path(folder)).unwrap();
        }
        let at = |name: &str| place.path(name).display().to_string();
        let upon = |base: Option<Guid>, name: &str| PastBackup {
            base_guid: base,
            devices: vec![at(name)],
            ..place.back_up(&[name], true)
        };
        let full = place.back_up(&["inside/1", "inside/2"], true);
        let past = [
            upon(full.set_guid, "outside/1"),
            upon(Some(Guid::random()), "outside/2"),
            upon(None, "outside/3"),
            upon(full.set_guid, "inside/3"),
        ];
        let scanned = || {
            let found = scan(&[DeviceFolder::disk(place.path("inside"))]).unwrap();
            assert_eq!(found.media.len(), 2);
            found
        };
        let mut found = scanned();
        add_dependents(&mut found, &past, &Reach::default(), &[]);
        let outside = found.media.iter().filter(|media| media.is_outside);
        let outside: Vec<_> = outside.map(|media| media.sets[0].chain.set_guid).collect();
        assert_eq!(Some(outside), past[0].set_guid.map(|set| vec![set]));
        assert_eq!(found.media.len(), 3);

        let striped = found.media.iter().find(|media| media.family_count == 2);
        let devices = striped.unwrap().copies(0).remove(0);
        let names: Vec<String> = devices.into_iter().map(|device| device.name).collect();
        assert_eq!(names, [at("inside/1"), at("inside/2")]);

        // The file holds another backup now.
        place.back_up(&["outside/1"], true);
        let mut found = scanned();
        add_dependents(&mut found, &past, &Reach::default(), &[]);
        assert_eq!(found.media.len(), 2);
    }

    #[test]
    fn a_file_is_gone_if_its_folder_shows_others_or_the_user_says_so() {
        let place = Place::new();
        for folder in ["inside", "outside"] {
            fs::create_dir(place.path(folder)).unwrap();
        }
        let full = place.back_up(&["inside/1"], true);
        let upon = |name: &str| PastBackup {
            kind: "I".to_owned(),
            base_guid: full.set_guid,
            ..place.back_up(&[name], true)
        };
        let mut past = [upon("outside/1"), upon("outside/2")];
        let unseen = |past: &[PastBackup], gone: &[&str]| {
            let mut found = scan(&[DeviceFolder::disk(place.path("inside"))]).unwrap();
            let gone = gone.iter().map(|name| place.path(name));
            let gone: Vec<DeviceFolder> = gone.map(DeviceFolder::disk).collect();
            add_dependents(&mut found, past, &Reach::default(), &gone);
            let unseen = found.media.iter().filter(|media| media.unseen.is_some());
            unseen.map(|media| media.sets.len()).sum::<usize>()
        };
        let says_something = |past: &[PastBackup], name: &str| {
            let folder = DeviceFolder::disk(place.path(name));
            lacks_known(&folder, past, &Reach::default())
        };
        assert_eq!(unseen(&past, &[]), 0);
        assert!(!says_something(&past, "outside"));
        fs::remove_file(place.path("outside/1")).unwrap();
        assert_eq!(unseen(&past, &[]), 0);
        past[0].media[0].mount_point = Some(PathBuf::from("/nothing/is/mounted"));
        assert_eq!(unseen(&past, &[]), 1);
        past[0].media[0].mount_point = None;
        for is_there in [true, false] {
            match is_there {
                true => fs::remove_file(place.path("outside/2")).unwrap(),
                false => fs::remove_dir(place.path("outside")).unwrap(),
            }
            assert_eq!(unseen(&past, &[]), 2, "{is_there}");
            assert_eq!(unseen(&past, &["outside"]), 0, "{is_there}");
            assert_eq!(unseen(&past, &["out"]), 2, "{is_there}");
            assert!(says_something(&past, "outside"));
            assert!(!says_something(&past, "out"));
        }
    }
}
