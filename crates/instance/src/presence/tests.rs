//! Media that are moved, cut, replaced and put back.

use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;

use tempfile::TempDir;
use windlass_codec::Compression;
use windlass_pipeline::{BackupRequest, MediaSet, Overwrite, Unobserved};
use windlass_source::sqlite::{SnapshotOptions, SqliteSnapshot};

use super::*;

/// A folder with media, and a database to back up.
pub(crate) struct Place(TempDir);

impl Place {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("db"), vec![7; 100_000]).unwrap();
        Self(folder)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn devices(&self, names: &[&str]) -> Vec<DeviceAddress> {
        let names = names.iter();
        names
            .map(|name| DeviceAddress::disk(self.path(name)))
            .collect()
    }

    fn run(&self, request: &BackupRequest) {
        let options = SnapshotOptions::default();
        let snapshot = SqliteSnapshot::open(&self.path("db"), &options).unwrap();
        let mut request = request.clone();
        request.requester = crate::Instance::open(None)
            .unwrap()
            .identity()
            .to_requester();
        windlass_pipeline::backup(&request, Box::new(snapshot), &Unobserved).unwrap();
    }

    /// Makes a copy-only backup to new media.
    pub(crate) fn copy_only(&self, names: &[&str]) {
        let mut request = BackupRequest::new(self.devices(names), Compression::NONE);
        request.media.overwrite = Overwrite::Format;
        request.copy_only = true;
        self.run(&request);
    }

    /// Backs up to stripes, new or appended to, and returns what the history knows of it.
    pub(crate) fn back_up(&self, names: &[&str], is_new: bool) -> PastBackup {
        let mut request = BackupRequest::new(self.devices(names), Compression::NONE);
        if is_new {
            request.media.overwrite = Overwrite::Format;
        }
        self.run(&request);
        let paths: Vec<PathBuf> = names.iter().map(|name| self.path(name)).collect();
        let media = MediaSet::open(&self.devices(names)).unwrap();
        let set = media.sets().pop().unwrap().configuration;
        let devices = paths.iter().zip(1..).map(|(path, family)| PastMedium {
            family,
            mirror: 0,
            device: path.display().to_string(),
            end_bytes: DeviceAddress::disk(path).length(),
            mount_point: None,
        });
        PastBackup {
            id: 5,
            set_guid: Some(set.set_guid),
            database: "db".to_owned(),
            of: crate::provenance::of_set(&set),
            kind: "D".to_owned(),
            started: set.started,
            finished: set.finished,
            database_bytes: None,
            raw_bytes: 0,
            stored_bytes: 0,
            compression: String::new(),
            is_copy_only: false,
            is_damaged: false,
            first_lsn: None,
            last_lsn: None,
            checkpoint_lsn: None,
            base_guid: None,
            position: u32::from(set.position),
            devices: Vec::new(),
            media_set_guid: Some(media.header().media_set_guid),
            media: devices.collect(),
            recovery_fork: None,
            time_zone: 0,
            seconds: None,
            is_overwritten: false,
            missing_since: None,
            is_forgotten: false,
            is_by_path: false,
            expires: None,
        }
    }
}

fn look(backup: &PastBackup) -> Presence {
    Looker::default().look(backup)
}

#[track_caller]
fn assert_gone(backup: &PastBackup, why: &str) {
    let found = look(backup);
    let says = matches!(&found, Presence::Gone(reason) if reason.contains(why));
    assert!(says, "{found:?}");
}

#[track_caller]
fn assert_unknown(backup: &PastBackup, why: &str) {
    let found = look(backup);
    let says = matches!(&found, Presence::Unknown(reason) if reason.contains(why));
    assert!(says, "{found:?}");
}

#[test]
fn a_backup_is_there_with_what_was_appended_to_it() {
    let place = Place::new();
    let first = place.back_up(&["1", "2"], true);
    assert_eq!(look(&first), Presence::There);
    let second = place.back_up(&["1", "2"], false);
    assert_eq!(look(&first), Presence::There);
    assert_eq!(look(&second), Presence::There);
    // A length that was noted when more had been appended.
    let noted = PastBackup {
        media: second.media.clone(),
        ..first
    };
    assert_eq!(look(&noted), Presence::There);
}

#[test]
fn a_backup_is_there_whatever_happened_to_those_before_it() {
    let place = Place::new();
    let first = place.back_up(&["1"], true);
    let second = place.back_up(&["1"], false);
    let medium = File::options().write(true).open(place.path("1")).unwrap();
    let end = usize::try_from(first.media[0].end_bytes.unwrap()).unwrap();
    medium.write_all_at(&vec![0; end - 8192], 8192).unwrap();
    assert_eq!(look(&second), Presence::There);
    assert_gone(&first, "does not end this backup as it did");
}

#[test]
fn a_medium_that_is_deleted_or_cut_or_overwritten_is_gone() {
    let place = Place::new();
    let backup = place.back_up(&["1", "2"], true);
    let (path, aside) = (place.path("2"), place.path("aside"));
    let bytes = fs::metadata(&path).unwrap().len();
    fs::copy(&path, &aside).unwrap();

    let medium = File::options().write(true).open(&path).unwrap();
    medium.set_len(bytes - 1).unwrap();
    let why = format!(
        "is truncated: it has {} of at least {bytes} bytes",
        bytes - 1
    );
    assert_gone(&backup, &why);
    fs::copy(&aside, &path).unwrap();
    assert_eq!(look(&backup), Presence::There);

    medium.write_all_at(&[0; 4096], 0).unwrap();
    assert_gone(&backup, "no longer begins with its header");
    fs::copy(&aside, &path).unwrap();

    medium.write_all_at(&[0; 8192], bytes - 8192).unwrap();
    assert_gone(&backup, "does not end this backup as it did");

    fs::remove_file(&path).unwrap();
    assert_gone(&backup, "2' is gone");
    fs::create_dir(&path).unwrap();
    assert_gone(&backup, "is not a regular file");
}

#[test]
fn media_of_another_set_or_stripe_are_not_those_of_the_backup() {
    let place = Place::new();
    let striped = place.back_up(&["1", "2"], true);
    let mut swapped = striped.clone();
    swapped.media[0].device = striped.media[1].device.clone();
    swapped.media[0].end_bytes = None;
    assert_gone(&swapped, "belongs to another media set or stripe");

    let backup = place.back_up(&["3"], true);
    // The media set may not be known.
    let unnamed = PastBackup {
        media_set_guid: None,
        ..backup.clone()
    };
    assert_eq!(look(&unnamed), Presence::There);
    place.back_up(&["3"], true);
    assert_gone(&backup, "belongs to another media set or stripe");
    assert_gone(&unnamed, "does not hold this backup any more");
}

#[test]
fn an_older_copy_that_was_put_back_and_appended_to_lacks_what_came_after_it() {
    let place = Place::new();
    let first = place.back_up(&["1"], true);
    fs::copy(place.path("1"), place.path("aside")).unwrap();
    let lost = place.back_up(&["1"], false);
    fs::copy(place.path("aside"), place.path("1")).unwrap();
    let other = place.back_up(&["1"], false);
    assert_gone(&lost, "does not hold this backup any more, but others");
    assert_eq!(look(&first), Presence::There);
    assert_eq!(look(&other), Presence::There);
    // What the history does not know cannot be compared.
    let unnamed = PastBackup {
        set_guid: None,
        ..lost
    };
    assert_eq!(look(&unnamed), Presence::There);
}

#[test]
fn what_cannot_be_examined_is_unknown_and_not_gone() {
    let place = Place::new();
    let backup = place.back_up(&["1"], true);
    let at = |device: &str, mount_point: Option<&str>| {
        let mut backup = backup.clone();
        backup.media[0].device = device.to_owned();
        backup.media[0].mount_point = mount_point.map(PathBuf::from);
        backup
    };
    assert_unknown(&at("1", None), "is not an absolute path");
    let elsewhere = place.path("away/1").display().to_string();
    assert_unknown(&at(&elsewhere, None), "its folder does not exist");
    let folder = place.0.path().to_str().unwrap();
    assert_unknown(&at(&elsewhere, Some(folder)), "nothing is mounted at");
    // Where its file system is mounted, a folder that does not exist was deleted.
    assert_gone(&at(&elsewhere, Some("/")), "is gone");
    let nothing = PastBackup {
        media: Vec::new(),
        ..backup.clone()
    };
    assert_unknown(&nothing, "names no media");
    // Beside a file there is nothing.
    let within = place.path("1/x").display().to_string();
    assert_gone(&at(&within, None), "is gone");
}

#[test]
fn one_copy_of_each_stripe_is_enough_and_a_missing_stripe_outweighs_an_unknown_one() {
    let place = Place::new();
    let backup = place.back_up(&["1", "2"], true);
    let [first, second] = <[PastMedium; 2]>::try_from(backup.media.clone()).unwrap();
    let at = |medium: &PastMedium, device: &str| PastMedium {
        device: device.to_owned(),
        ..medium.clone()
    };
    let lost = place.path("lost").display().to_string();
    let (gone, hidden) = (at(&second, &lost), at(&second, "hidden"));
    let of = |media: &[&PastMedium]| PastBackup {
        media: media.iter().copied().cloned().collect(),
        ..backup.clone()
    };
    for copies in [
        [&gone, &hidden, &second],
        [&second, &gone, &hidden],
        [&hidden, &second, &gone],
    ] {
        let [one, two, three] = copies;
        assert_eq!(look(&of(&[&first, one, two, three])), Presence::There);
    }
    assert_unknown(&of(&[&first, &gone, &hidden]), "'hidden'");
    assert_unknown(&of(&[&first, &hidden, &gone]), "'hidden'");
    assert_gone(&of(&[&first, &gone, &gone]), "is gone");
    let unknown = at(&first, "unknown");
    assert_gone(&of(&[&unknown, &gone]), "is gone");
    assert_unknown(&of(&[&unknown, &second]), "'unknown'");
    assert_unknown(&of(&[&unknown, &hidden]), "'unknown'");
}

#[test]
fn only_what_the_catalog_does_not_know_yet_is_noted() {
    let place = Place::new();
    let known = place.back_up(&["1"], true);
    let missing = PastBackup {
        missing_since: known.finished,
        ..known.clone()
    };
    let noted = |backup: &PastBackup| {
        let mut looker = Looker::default();
        looker.look(backup);
        looker.changes.into_iter().collect::<Vec<_>>()
    };
    assert_eq!(noted(&known), []);
    assert_eq!(noted(&missing), [(5, None)]);
    fs::remove_file(place.path("1")).unwrap();
    assert_eq!(noted(&missing), []);
    let reason = format!("'{}' is gone", known.media[0].device);
    assert_eq!(noted(&known), [(5, Some(reason))]);
}

#[test]
fn the_state_of_media_changes_with_any_of_them() {
    let place = Place::new();
    let devices = |names: &[&str]| -> Vec<DeviceAddress> {
        let names = names.iter();
        names
            .map(|name| DeviceAddress::disk(place.path(name)))
            .collect()
    };
    fs::write(place.path("1"), "one").unwrap();
    fs::write(place.path("2"), "two").unwrap();
    let before = state(&devices(&["1", "2"]));
    assert_eq!(before.lines().count(), 2);
    assert_eq!(before, state(&devices(&["2", "1"])));
    assert_ne!(before, state(&devices(&["1"])));
    fs::write(place.path("2"), "three").unwrap();
    assert_ne!(before, state(&devices(&["1", "2"])));
    fs::remove_file(place.path("2")).unwrap();
    assert_eq!(state(&devices(&["1", "2"])), "");
}

#[test]
fn files_have_a_length_and_folders_a_mount_point() {
    let place = Place::new();
    let at = |name: &str| place.path(name).display().to_string();
    let length = |name: &str| DeviceAddress::disk(at(name)).length();
    assert_eq!(length("db"), Some(100_000));
    assert_eq!(length("nothing"), None);
    assert_eq!(length(""), None);
    let mounted = |path: &str| mount_point(Path::new(path));
    assert_eq!(mounted("/proc/nothing"), Some(PathBuf::from("/proc")));
    assert_eq!(mounted("/nothing"), Some(PathBuf::from("/")));
    assert_eq!(mounted(&at("nothing/file")), None);
}
