//! Where a set may be appended: all copies of all families must have the same sets.

use std::io::Write as _;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Mutex;

use windlass_base::Moment;
use windlass_codec::Compression;
use windlass_device::DeviceAddress;
use windlass_pipeline::{
    BackupRequest, Error, Holds, MediaRequest, MediaSet, Observer, Overwrite, SourceSize,
    Unobserved, backup, rehearse, verify,
};

use crate::support::{Folder, back_up, devices, prepared, read_request, request, snapshot};

/// A media set of two stripes with sets `one` and `two`; the stripes as they were after each.
struct Stripes {
    prepared: Folder,
    devices: Vec<DeviceAddress>,
    after_one: Vec<Vec<u8>>,
    after_two: Vec<Vec<u8>>,
}

fn contents(devices: &[DeviceAddress]) -> Vec<Vec<u8>> {
    let read = |device: &DeviceAddress| std::fs::read(device.file().unwrap()).unwrap();
    devices.iter().map(read).collect()
}

fn put(devices: &[DeviceAddress], contents: &[&[u8]]) {
    for (device, content) in devices.iter().zip(contents) {
        std::fs::write(device.file().unwrap(), content).unwrap();
    }
}

impl Stripes {
    fn new(mirrors: &[&str]) -> Self {
        let prepared = prepared(300);
        let devices = devices(prepared.folder.path(), &["1.bak", "2.bak"]);
        let mut stripes = Self {
            prepared,
            devices,
            after_one: Vec::new(),
            after_two: Vec::new(),
        };
        let mut first = stripes.request(mirrors);
        first.media.overwrite = Overwrite::Format;
        back_up(&stripes.prepared.database, &first);
        stripes.after_one = contents(&stripes.devices);
        back_up(&stripes.prepared.database, &stripes.request(mirrors));
        stripes.after_two = contents(&stripes.devices);
        stripes
    }

    fn folder(&self) -> &Path {
        self.prepared.folder.path()
    }

    fn request(&self, mirrors: &[&str]) -> BackupRequest {
        let mut request = request(&self.devices, Compression::NONE);
        if !mirrors.is_empty() {
            request.media.mirrors = vec![devices(self.folder(), mirrors)];
        }
        request
    }

    fn append(&self, request: &BackupRequest) -> Result<(), Error> {
        backup(request, snapshot(&self.prepared.database), &Unobserved).map(drop)
    }

    /// What an append says of these stripes, which it must then leave as they are.
    fn refusal(&self, stripes: &[&[u8]]) -> Error {
        put(&self.devices, stripes);
        let refused = self.append(&self.request(&[])).unwrap_err();
        assert!(
            contents(&self.devices) == stripes,
            "the stripes are untouched"
        );
        refused
    }

    /// An append to these stripes succeeds and leaves `sets` sets, all of them good.
    fn appended(&self, stripes: &[&[u8]], sets: u16) {
        put(&self.devices, stripes);
        self.append(&self.request(&[])).unwrap();
        all_good(&self.devices, sets);
    }
}

fn all_good(devices: &[DeviceAddress], sets: u16) {
    let media = MediaSet::open(devices).unwrap();
    assert_eq!(media.sets().len(), usize::from(sets));
    for position in 1..=sets {
        verify(&media, position, &read_request(), &Unobserved).unwrap();
    }
}

/// Where the end of the last set begins: what comes before is durable before any end is written.
fn last_end(family: &[u8]) -> usize {
    let at = family.windows(4).rposition(|window| window == b"ESET");
    at.unwrap()
}

#[test]
fn an_older_copy_of_a_stripe_is_not_appended_to_in_any_order() {
    let stripes = Stripes::new(&[]);
    let (old, new) = (&stripes.after_one, &stripes.after_two);
    for (held, behind) in [
        ([&*new[0], &*old[1]], "2.bak"),
        ([&*old[0], &*new[1]], "1.bak"),
    ] {
        let refused = stripes.refusal(&held);
        let Error::FamilyBehind {
            device,
            holds: Holds::Nothing,
            position: 2,
            ..
        } = &refused
        else {
            panic!("{refused:?}");
        };
        assert!(device.ends_with(behind), "{device}");
    }
    put(&stripes.devices, &[&new[0], &old[1]]);
    let mut reversed = stripes.request(&[]);
    reversed.media.devices.reverse();
    let refused = stripes.append(&reversed).unwrap_err();
    assert!(matches!(refused, Error::FamilyBehind { .. }), "{refused:?}");
    put(&stripes.devices, &[&new[0], &new[1]]);
    all_good(&stripes.devices, 2);
}

#[test]
fn a_stripe_that_lost_data_of_the_last_set_is_not_appended_to() {
    let stripes = Stripes::new(&[]);
    let (old, new) = (&stripes.after_one, &stripes.after_two);
    let end = last_end(&new[1]);
    let hardly_begun = old[1].len() + 512;
    for length in [hardly_begun, usize::midpoint(old[1].len(), end), end - 1] {
        let refused = stripes.refusal(&[&new[0], &new[1][..length]]);
        let Error::FamilyBehind { holds, .. } = refused else {
            panic!("cut at {length}: {refused:?}");
        };
        assert!(length == hardly_begun || holds == Holds::Part);
    }
}

#[test]
fn a_stripe_whose_last_set_is_damaged_beyond_recognition_is_no_older_copy() {
    let stripes = Stripes::new(&[]);
    for torn in [0, 1] {
        let (old, mut held) = (&stripes.after_one, stripes.after_two.clone());
        let end = last_end(&held[torn]);
        // All but the filemarks.
        held[torn][old[torn].len()..end - 4096].fill(0xFF);
        let last = held[torn].len() - 4096;
        held[torn][end..last].fill(0xFF);
        put(&stripes.devices, &[&held[0], &held[1]]);
        stripes.append(&stripes.request(&[])).unwrap();
        let media = MediaSet::open(&stripes.devices).unwrap();
        for position in [1, 3] {
            verify(&media, position, &read_request(), &Unobserved).unwrap();
        }
        verify(&media, 2, &read_request(), &Unobserved).unwrap_err();
    }
}

#[test]
fn every_stripe_has_a_number_of_its_own_for_readers_of_tapes() {
    let stripes = Stripes::new(&[]);
    let id = |family: &Vec<u8>| {
        let family = family.as_slice();
        windlass_media::FamilyReader::open(&family)
            .unwrap()
            .1
            .media_family_id
    };
    let [first, second] = [&stripes.after_one[0], &stripes.after_one[1]].map(id);
    assert_eq!(second, first.wrapping_add(1));
}

#[test]
fn stripes_with_different_sets_at_one_place_are_not_appended_to() {
    let stripes = Stripes::new(&[]);
    put(
        &stripes.devices,
        &[&stripes.after_one[0], &stripes.after_one[1]],
    );
    stripes.append(&stripes.request(&[])).unwrap();
    let other = contents(&stripes.devices);
    let (new, old) = (&stripes.after_two, &stripes.after_one);
    for held in [[&*new[0], &*other[1]], [&*other[0], &*new[1]]] {
        let refused = stripes.refusal(&held);
        let is_another = matches!(
            refused,
            Error::FamilyBehind {
                holds: Holds::Another,
                position: 2,
                ..
            }
        );
        assert!(is_another, "{refused:?}");
    }
    // Of an append that was interrupted while another set was being written, data are no better.
    let unfinished = &other[1][..last_end(&other[1])];
    let refused = stripes.refusal(&[&new[0], unfinished]);
    let is_another = matches!(
        refused,
        Error::FamilyBehind {
            holds: Holds::Another,
            ..
        }
    );
    assert!(is_another, "{refused:?}");
    stripes.appended(&[&old[0], unfinished], 2);
}

#[test]
fn a_backup_interrupted_among_its_ends_is_cut_off_by_the_next() {
    let stripes = Stripes::new(&[]);
    let new = &stripes.after_two;
    for (whole, torn) in [(0, 1), (1, 0)] {
        let end = last_end(&new[torn]);
        for length in [end, end + 1, end + 300, end + 4095] {
            let mut held: Vec<Vec<u8>> = new.clone();
            held[torn].truncate(length);
            stripes.appended(&[&held[0], &held[1]], 2);
        }
        // Room that was reserved and never written.
        let mut held: Vec<Vec<u8>> = new.clone();
        held[torn][end..].fill(0);
        stripes.appended(&[&held[0], &held[1]], 2);
        assert_ne!(contents(&stripes.devices)[whole], new[whole]);
    }
    // A first set without its ends leaves nothing to keep.
    let old = &stripes.after_one;
    let [first, second] = [&old[0], &old[1]].map(|family| &family[..last_end(family)]);
    stripes.appended(&[first, second], 1);
    // Complete on both: only the filemark after it is rewritten.
    let end = last_end(&new[1]);
    stripes.appended(&[&new[0], &new[1][..end + 4096]], 3);
    stripes.appended(&[&new[0], &new[1][..end + 4097]], 3);
}

#[test]
fn what_disagrees_can_be_overwritten() {
    let stripes = Stripes::new(&[]);
    for overwrite in [Overwrite::Initialize, Overwrite::Format] {
        put(
            &stripes.devices,
            &[&stripes.after_two[0], &stripes.after_one[1]],
        );
        let mut request = stripes.request(&[]);
        request.media.overwrite = overwrite;
        stripes.append(&request).unwrap();
        all_good(&stripes.devices, 1);
    }
}

#[test]
fn mirrors_are_told_by_what_they_hold_and_not_by_their_order() {
    let stripes = Stripes::new(&["m1.bak", "m2.bak"]);
    stripes
        .append(&stripes.request(&["m2.bak", "m1.bak"]))
        .unwrap();
    let mirrors = devices(stripes.folder(), &["m1.bak", "m2.bak"]);
    assert!(contents(&stripes.devices) == contents(&mirrors));
    all_good(&mirrors, 3);
}

#[test]
fn an_older_mirror_of_one_stripe_is_not_appended_to() {
    let stripes = Stripes::new(&["m1.bak", "m2.bak"]);
    let mirrors = devices(stripes.folder(), &["m1.bak", "m2.bak"]);
    put(&mirrors[1..], &[&stripes.after_one[1]]);
    let refused = stripes
        .append(&stripes.request(&["m1.bak", "m2.bak"]))
        .unwrap_err();
    assert!(matches!(refused, Error::FamilyBehind { .. }), "{refused:?}");
    assert!(contents(&stripes.devices) == stripes.after_two);
}

#[test]
fn a_mirror_without_the_last_end_or_filemark_is_brought_level() {
    let stripes = Stripes::new(&["m1.bak", "m2.bak"]);
    let mirrors = devices(stripes.folder(), &["m1.bak", "m2.bak"]);
    let whole = &stripes.after_two[1];
    let end = last_end(whole);
    for (length, sets) in [(whole.len() - 100, 3), (end + 100, 2)] {
        for cut in [&mirrors[1], &stripes.devices[1]] {
            put(&stripes.devices, &[&stripes.after_two[0], whole]);
            put(&mirrors, &[&stripes.after_two[0], whole]);
            std::fs::write(cut.file().unwrap(), &whole[..length]).unwrap();
            stripes
                .append(&stripes.request(&["m1.bak", "m2.bak"]))
                .unwrap();
            assert!(contents(&stripes.devices) == contents(&mirrors));
            all_good(&mirrors, sets);
        }
    }
}

#[test]
fn media_of_another_shape_name_or_age_are_refused_by_the_run_and_by_its_rehearsal() {
    let plain = Stripes::new(&[]);
    let source = SourceSize {
        bytes: 1 << 20,
        ranges: 1,
    };
    let refused = |change: &dyn Fn(&mut MediaRequest)| {
        let mut request = plain.request(&[]);
        change(&mut request.media);
        let before = contents(&plain.devices);
        let rehearsed = rehearse(&request, source).map(drop).unwrap_err();
        let refused = plain.append(&request).unwrap_err();
        assert_eq!(rehearsed.to_string(), refused.to_string());
        assert!(contents(&plain.devices) == before, "{refused}");
        refused
    };
    let folder = plain.folder();
    let shape = refused(&|media| media.mirrors = vec![devices(folder, &["m1.bak"])]);
    assert!(matches!(shape, Error::MirrorShape { .. }), "{shape:?}");
    let mirrors = refused(&|media| media.mirrors = vec![devices(folder, &["m1.bak", "m2.bak"])]);
    assert!(
        matches!(
            mirrors,
            Error::MirrorCount { .. } | Error::MirrorNeedsFormat
        ),
        "{mirrors:?}"
    );
    let blocks = refused(&|media| media.block_bytes = Some(512));
    assert!(
        matches!(blocks, Error::BlockSizeDiffers { .. }),
        "{blocks:?}"
    );
    let named = |skips: bool| {
        move |media: &mut MediaRequest| {
            media.media_name = Some("another".to_owned());
            media.skip_checks = skips;
        }
    };
    let name = refused(&named(false));
    assert!(matches!(name, Error::MediaNameDiffers { .. }), "{name:?}");
    let fewer = refused(&|media| media.devices.truncate(1));
    assert!(matches!(fewer, Error::FamiliesMissing { .. }), "{fewer:?}");
    let more = refused(&|media| media.devices.extend(devices(folder, &["3.bak"])));
    let is_count = matches!(&more, Error::FamilyCountDiffers { device, found: 2, expected: 3 }
        if device.ends_with("1.bak"));
    assert!(is_count, "{more:?}");
    let more = refused(&|media| {
        let third = devices(folder, &["3.bak"]);
        media.devices.splice(0..0, third);
    });
    assert!(matches!(more, Error::FamilyCountDiffers { .. }), "{more:?}");
    // Without checks the name is not compared.
    let mut request = plain.request(&[]);
    named(true)(&mut request.media);
    let rehearsed = rehearse(&request, source).unwrap();
    assert_eq!((rehearsed.position, rehearsed.is_new), (3, false));
    plain.append(&request).unwrap();
    // A set that has not expired is not overwritten by INIT, unless checks are skipped.
    let init = |media: &mut MediaRequest| media.overwrite = Overwrite::Initialize;
    let (now, _) = Moment::now();
    let mut keeping = plain.request(&[]);
    keeping.expires = Some(now);
    plain.append(&keeping).unwrap();
    let mut expired = plain.request(&[]);
    init(&mut expired.media);
    plain.append(&expired).unwrap();
    all_good(&plain.devices, 1);
    keeping.expires = Some(now.plus_days(1));
    plain.append(&keeping).unwrap();
    let kept = refused(&init);
    assert!(matches!(kept, Error::NotExpired { .. }), "{kept:?}");
    let mut request = plain.request(&[]);
    init(&mut request.media);
    request.media.skip_checks = true;
    assert!(rehearse(&request, source).unwrap().is_new);
    plain.append(&request).unwrap();
    all_good(&plain.devices, 1);
}

#[test]
fn an_append_that_cannot_write_one_stripe_cuts_nothing_off_the_others() {
    let stripes = Stripes::new(&[]);
    let new = &stripes.after_two;
    for whole in [0, 1] {
        let mut held = new.clone();
        let torn = &mut held[1 - whole];
        torn.truncate(last_end(torn));
        put(&stripes.devices, &[&held[0], &held[1]]);
        // Whoever reads the stripe that has the end keeps writers off it.
        let reader = stripes.devices[whole].open_reader().unwrap();
        stripes.append(&stripes.request(&[])).unwrap_err();
        assert!(contents(&stripes.devices) == held, "whole: {whole}");
        drop(reader);
        stripes.appended(&[&held[0], &held[1]], 2);
    }
}

/// Does something to a medium as soon as a part of the backup is written.
struct Meddler<'a> {
    meddle: Mutex<Option<&'a (dyn Fn() + Sync)>>,
}

impl Observer for Meddler<'_> {
    fn progress(&self, done: u64, _: u64, _: u64) {
        if done > 0
            && let Some(meddle) = self.meddle.lock().unwrap().take()
        {
            meddle();
        }
    }
}

#[test]
fn a_medium_that_was_lost_or_changed_while_it_was_written_holds_no_backup() {
    // What is changed in place before it is written is not lost.
    for (overwrite, ways) in [(Overwrite::Append, 5), (Overwrite::Format, 3)] {
        for way in 0..ways {
            let Folder { folder, database } = prepared(9000);
            let devices = devices(folder.path(), &["1.bak", "2.bak"]);
            let mut append = request(&devices, Compression::NONE);
            append.media.overwrite = overwrite;
            back_up(&database, &append);
            let named = match overwrite {
                Overwrite::Append => folder.path().join("2.bak"),
                _ => folder.path().join("2.bak.windlass-new"),
            };
            let other = folder.path().join("other");
            std::fs::copy(folder.path().join("1.bak"), &other).unwrap();
            let meddle = || match way {
                0 => std::fs::remove_file(&named).unwrap(),
                1 => std::fs::rename(&named, folder.path().join("away")).unwrap(),
                2 => std::fs::rename(&other, &named).unwrap(),
                3 => std::fs::File::options()
                    .write(true)
                    .open(&named)
                    .unwrap()
                    .set_len(0)
                    .unwrap(),
                _ => drop(std::fs::copy(&other, &named).unwrap()),
            };
            let meddler = Meddler {
                meddle: Mutex::new(Some(&meddle)),
            };
            let failed = backup(&append, snapshot(&database), &meddler);
            let case = format!("{overwrite:?} {way}");
            let error = failed.expect_err(&case).to_string();
            assert!(error.contains("2.bak"), "{case}: {error}");
        }
    }
}

#[test]
fn a_medium_that_was_cut_while_it_was_written_and_then_written_further_holds_no_backup() {
    let Folder { folder, database } = prepared(60_000);
    let devices = devices(folder.path(), &["1.bak"]);
    let append = request(&devices, Compression::NONE);
    back_up(&database, &append);
    let medium = folder.path().join("1.bak");
    let first_set = std::fs::read(&medium).unwrap();
    for kept in [
        first_set.len() as u64,
        first_set.len() as u64 + 20_000,
        12_288,
    ] {
        std::fs::write(&medium, &first_set).unwrap();
        let cut = || {
            let file = std::fs::File::options().write(true).open(&medium);
            file.and_then(|file| file.set_len(kept)).unwrap();
        };
        let cutter = Cutter {
            cut: Mutex::new(Some(&cut)),
        };
        let failed = backup(&append, snapshot(&database), &cutter);
        let error = failed.expect_err("a part of it is lost").to_string();
        assert!(error.contains("1.bak"), "{kept}: {error}");
    }
}

#[test]
fn a_medium_over_which_another_was_copied_while_it_was_written_holds_no_backup() {
    let Folder { folder, database } = prepared(60_000);
    let devices = devices(folder.path(), &["1.bak"]);
    let append = request(&devices, Compression::NONE);
    let medium = folder.path().join("1.bak");
    back_up(&database, &append);
    let first_set = std::fs::read(&medium).unwrap();
    back_up(&database, &append);
    let other = std::fs::read(&medium).unwrap();
    std::fs::write(&medium, &first_set).unwrap();
    let overwrite = || std::fs::write(&medium, &other).unwrap();
    let meddler = Cutter {
        cut: Mutex::new(Some(&overwrite)),
    };
    let failed = backup(&append, snapshot(&database), &meddler);
    let error = failed.expect_err("its start is another set's").to_string();
    assert!(error.contains("1.bak"), "{error}");
}

#[test]
fn zeros_that_a_file_system_does_not_store_are_not_lost() {
    let Folder { folder, database } = prepared(9000);
    let devices = devices(folder.path(), &["1.bak"]);
    let append = request(&devices, Compression::NONE);
    back_up(&database, &append);
    let zeros = vec![0; 4 << 20];
    let mut file = std::fs::File::options()
        .append(true)
        .open(&database)
        .unwrap();
    file.write_all(&zeros).unwrap();
    let punch = |path: &Path| {
        // What such a file system does by itself.
        let bytes = std::fs::read(path).unwrap();
        let file = std::fs::File::create(path).unwrap();
        for (at, page) in (0..).step_by(4096).zip(bytes.chunks(4096)) {
            if page.iter().any(|byte| *byte != 0) {
                file.write_all_at(page, at).unwrap();
            }
        }
        file.set_len(bytes.len() as u64).unwrap();
    };
    back_up(&database, &append);
    punch(&folder.path().join("1.bak"));
    back_up(&database, &append);
}

#[test]
fn a_backup_is_there_even_if_the_next_one_begins_at_once() {
    let Folder { folder, database } = prepared(60_000);
    let devices = devices(folder.path(), &["1.bak"]);
    let append = request(&devices, Compression::NONE);
    let medium = folder.path().join("1.bak");
    back_up(&database, &append);
    // As the next one holds it: nobody who reads with a lock gets in.
    let held = std::fs::File::open(&medium).unwrap();
    held.try_lock().unwrap();
    assert!(MediaSet::open(&devices).is_err());
    let beside: Vec<_> = devices
        .iter()
        .map(|one| one.clone().beside_writers())
        .collect();
    assert_eq!(MediaSet::open(&beside).unwrap().sets().len(), 1);
}

/// Cuts a medium when half of the backup is written.
struct Cutter<'a> {
    cut: Mutex<Option<&'a (dyn Fn() + Sync)>>,
}

impl Observer for Cutter<'_> {
    fn progress(&self, done: u64, total: u64, _: u64) {
        if done > total / 2
            && let Some(cut) = self.cut.lock().unwrap().take()
        {
            cut();
        }
    }
}
