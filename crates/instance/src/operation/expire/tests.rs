//! What happens between the reading and the deletion.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{FlockOperation, flock};
use windlass_codec::Compression;
use windlass_pipeline::{BackupRequest, Overwrite, Unobserved};
use windlass_source::sqlite::{SnapshotOptions, SqliteSnapshot};

use super::*;
use crate::outcome::Collected;
use crate::{Event, Instance};

/// Backs a file up to new media, with mirrors.
fn back_up(folder: &Path, database: &str, copies: &[&[&str]]) {
    let path = folder.join(database);
    if !path.exists() {
        let byte = database.as_bytes()[0];
        fs::write(&path, vec![byte; 6 << 20]).unwrap();
    }
    let devices = |names: &[&str]| -> Vec<DeviceAddress> {
        let path = |name: &&str| DeviceAddress::disk(folder.join("media").join(name));
        names.iter().map(path).collect()
    };
    // All are of one family: a database and copies of it.
    let options = SnapshotOptions {
        family_guid: Some(windlass_base::Guid::NIL),
        ..SnapshotOptions::default()
    };
    let snapshot = SqliteSnapshot::open(&path, &options).unwrap();
    let mut request = BackupRequest::new(devices(copies[0]), Compression::NONE);
    request.media.mirrors = copies[1..].iter().map(|copy| devices(copy)).collect();
    request.media.overwrite = Overwrite::Format;
    windlass_pipeline::backup(&request, Box::new(snapshot), &Unobserved).unwrap();
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("media")).unwrap();
    folder
}

fn expire(folder: &Path, sink: &mut dyn Sink) -> ExpireReport {
    let policy = Policy {
        last: 1,
        ..Policy::default()
    };
    expire_by(folder, &policy, sink)
}

fn expire_by(folder: &Path, policy: &Policy, sink: &mut dyn Sink) -> ExpireReport {
    let folders = [DeviceFolder::disk(folder.join("media"))];
    let options = ExpireOptions {
        folders: &folders,
        policy,
        database: None,
        removal: Removal::Delete,
        trust: Trust::default(),
        gone: &[],
    };
    let mut session = Session::new(Instance::open(None).unwrap());
    session.expire(&options, sink).unwrap()
}

fn left(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder.join("media")).unwrap();
    let name = |entry: std::io::Result<fs::DirEntry>| entry.unwrap().file_name();
    let mut names: Vec<String> = entries
        .map(|entry| name(entry).into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// Writes to the media of the database that was read first while the second one is read.
struct Meddler {
    media: PathBuf,
    first: Option<Arc<str>>,
    changed: Option<String>,
    numbers: Vec<u32>,
}

impl Meddler {
    fn at(folder: &Path) -> Self {
        Self {
            media: folder.join("media"),
            first: None,
            changed: None,
            numbers: Vec::new(),
        }
    }
}

impl Sink for Meddler {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Message(message) => self.numbers.push(message.number),
            Event::Progress(progress) => {
                let first = self
                    .first
                    .get_or_insert_with(|| Arc::clone(&progress.database));
                if *first == progress.database || self.changed.is_some() {
                    return;
                }
                // Its content stays what was read; whether it is, nobody knows.
                let path = self.media.join(format!("{first}2"));
                let mut file = fs::File::options().append(true).open(path).unwrap();
                file.write_all(b"more").unwrap();
                self.changed = Some(first.to_string());
            }
            _ => {}
        }
    }
}

#[test]
fn nothing_goes_for_what_was_changed_after_it_was_read_and_only_that_keeps_others() {
    let folder = folder();
    for medium in ["a1", "a2", "b1", "b2"] {
        back_up(folder.path(), &medium[..1], &[&[medium]]);
    }
    let mut meddler = Meddler::at(folder.path());
    let report = expire(folder.path(), &mut meddler);
    let changed = meddler.changed.expect("one was changed");
    let failed = report.media.iter().filter_map(|media| {
        let error = media.deleted.as_ref()?.as_ref().err()?;
        Some((
            media.media.files[0].device.file()?.to_owned(),
            error.to_string(),
        ))
    });
    let failed: Vec<_> = failed.collect();
    let older = folder.path().join("media").join(format!("{changed}1"));
    assert_eq!(failed.len(), 1, "{failed:?}");
    assert_eq!(failed[0].0, older);
    assert!(failed[0].1.contains("was changed or removed"), "{failed:?}");
    // The other database's older backup went: what stays for it is what was read.
    let mut expected = vec![format!("{changed}1"), "a2".to_owned(), "b2".to_owned()];
    expected.sort();
    assert_eq!(left(folder.path()), expected);
}

/// Brings a medium into the folder while others are read back.
struct Late {
    from: PathBuf,
    to: PathBuf,
}

impl Sink for Late {
    fn event(&mut self, event: Event<'_>) {
        if matches!(event, Event::Progress(_)) && self.from.exists() {
            fs::rename(&self.from, &self.to).unwrap();
        }
    }
}

#[test]
fn what_is_made_while_others_are_read_back_is_looked_at_before_anything_goes() {
    let folder = folder();
    for medium in ["a1", "a2", "a3"] {
        back_up(folder.path(), "a", &[&[medium]]);
    }
    let media = folder.path().join("media");
    let mut late = Late {
        from: folder.path().join("late"),
        to: media.join("a3"),
    };
    fs::rename(&late.to, &late.from).unwrap();
    expire(folder.path(), &mut late);
    // The last one stays, not the one that was the last at first.
    assert_eq!(left(folder.path()), ["a3"]);
}

#[test]
fn a_file_that_may_be_a_newer_backup_and_comes_while_others_are_read_back_keeps_all() {
    let folder = folder();
    for medium in ["a1", "a2"] {
        back_up(folder.path(), "a", &[&[medium]]);
    }
    let mut late = Late {
        from: folder.path().join("late"),
        to: folder.path().join("media").join("a3.bak"),
    };
    fs::write(&late.from, "TAPE, and nothing that can be read").unwrap();
    let report = expire(folder.path(), &mut late);
    assert!(report.is_damaged);
    assert_eq!(left(folder.path()), ["a1", "a2", "a3.bak"]);
}

/// Where the content of the database is on a medium: which stripe gets how much of it differs.
fn content_of(bytes: &[u8]) -> Vec<usize> {
    let is_content = |at: &usize| bytes[*at..at + 64].iter().all(|byte| *byte == b'x');
    let places = (0..bytes.len() - 64).step_by(64);
    places.filter(is_content).collect()
}

fn flip(folder: &Path, name: &str, share: f64) {
    let path = folder.join("media").join(name);
    let mut bytes = fs::read(&path).unwrap();
    let content = content_of(&bytes);
    let at = (content.len() as f64 * share) as usize;
    bytes[content[at]] ^= 8;
    fs::write(&path, bytes).unwrap();
}

/// Backs up until each stripe has some of the content.
fn back_up_spread(folder: &Path, copies: &[&[&str]]) {
    loop {
        back_up(folder, "x", copies);
        let has_content = |name: &&str| {
            let medium = fs::read(folder.join("media").join(name)).unwrap();
            !content_of(&medium).is_empty()
        };
        if copies[0].iter().all(has_content) {
            return;
        }
    }
}

#[test]
fn a_set_counts_if_each_family_has_one_intact_copy_and_every_damaged_copy_is_named() {
    for (damaged, counts) in [
        (&["a2"][..], true),
        (&["b2"], true),
        (&["c2"], true),
        (&["a2", "b2"], true),
        (&["c2", "d2"], true),
        (&["a2", "d2"], true),
        (&["b2", "c2"], true),
        (&["a2", "c2"], false),
        (&["b2", "d2"], false),
        (&["a2", "b2", "c2"], false),
        (&["a2", "b2", "c2", "d2"], false),
    ] {
        for share in [0.3, 0.7] {
            let folder = folder();
            back_up(folder.path(), "x", &[&["a1", "b1"], &["c1", "d1"]]);
            back_up_spread(folder.path(), &[&["a2", "b2"], &["c2", "d2"]]);
            for name in damaged {
                flip(folder.path(), name, share);
            }
            let mut heard = Heard::default();
            let report = expire(folder.path(), &mut heard);
            assert!(report.is_damaged, "{damaged:?} at {share}");
            let older = left(folder.path()).contains(&"a1".to_owned());
            assert_eq!(older, !counts, "{damaged:?} at {share}: {:?}", heard.texts);
            let number = if counts { 50049 } else { 50047 };
            let told = heard.texts.iter().filter(|(found, _)| *found == number);
            let told: Vec<&String> = told.map(|(_, text)| text).collect();
            if counts {
                assert_eq!(
                    told.len(),
                    damaged.len(),
                    "{damaged:?} at {share}: {:?}",
                    heard.texts
                );
                for name in damaged {
                    let named = format!("/{name}'");
                    assert!(told.iter().any(|text| text.contains(&named)), "{told:?}");
                }
            } else {
                // As far as they were read: what cannot be restored is not searched for more damage.
                assert!(
                    (2..=damaged.len()).contains(&told.len()),
                    "{:?}",
                    heard.texts
                );
            }
        }
    }
}

/// Keeps the messages.
#[derive(Default)]
struct Heard {
    texts: Vec<(u32, String)>,
}

impl Sink for Heard {
    fn event(&mut self, event: Event<'_>) {
        if let Event::Message(message) = event {
            self.texts.push((message.number, message.text));
        }
    }
}

/// Locks a medium, as a backup does that appends to it, when the reading begins.
struct Locker {
    path: PathBuf,
    lock: Option<fs::File>,
    heard: Heard,
}

impl Sink for Locker {
    fn event(&mut self, event: Event<'_>) {
        let begins =
            matches!(&event, Event::Message(message) if message.text.contains("is read back"));
        if begins && self.lock.is_none() {
            let file = fs::File::options().append(true).open(&self.path).unwrap();
            flock(&file, FlockOperation::NonBlockingLockExclusive).unwrap();
            self.lock = Some(file);
        }
        self.heard.event(event);
    }
}

#[test]
fn a_base_that_is_locked_after_the_scan_is_not_damaged() {
    let folder = folder();
    let at = folder.path().display();
    let backup = |name: &str, options: &str| {
        format!(
            "USE Shop\nGO\nINSERT INTO t VALUES (1)\nGO\nUSE master\nGO\n\
             BACKUP DATABASE Shop TO DISK = '{at}/media/{name}' WITH INIT{options}\nGO\n"
        )
    };
    let script = [
        format!("CREATE DATABASE Shop ON (NAME = Shop, FILENAME = '{at}/shop.mdf') "),
        format!("LOG ON (NAME = Shop_log, FILENAME = '{at}/shop.ldf')\nGO\n"),
        "USE Shop\nGO\nCREATE TABLE t(n INTEGER)\nGO\n".to_owned(),
        backup("full0", ""),
        backup("full1", ""),
        backup("diff1", ", DIFFERENTIAL"),
        backup("full2", ""),
    ];
    let mut said = Collected::default();
    let instance = Instance::open(Some(&folder.path().join("instance"))).unwrap();
    let mut session = Session::new(instance);
    let script = script.concat();
    for batch in script.split("GO\n").filter(|batch| !batch.is_empty()) {
        let _end = session.execute_batch(batch, 1, &mut said);
    }
    assert!(!said.has_failed(), "{:?}", said.messages);
    assert!(session.instance().close_engine_databases().is_empty());
    drop(session);

    let mut sink = Locker {
        path: folder.path().join("media/full1"),
        lock: None,
        heard: Heard::default(),
    };
    let policy = Policy {
        last: 3,
        ..Policy::default()
    };
    let report = expire_by(folder.path(), &policy, &mut sink);
    assert!(sink.lock.is_some(), "{:?}", sink.heard.texts);
    assert!(report.is_damaged);
    let count = |number| {
        let texts = sink.heard.texts.iter();
        texts.filter(|(found, _)| *found == number).count()
    };
    assert_eq!(
        (count(50366), count(50047)),
        (1, 0),
        "{:?}",
        sink.heard.texts
    );
    assert_eq!(left(folder.path()), ["diff1", "full0", "full1", "full2"]);
    // When the other backup has ended:
    sink.lock = None;
    let report = expire_by(folder.path(), &policy, &mut Heard::default());
    assert!(!report.is_damaged);
    assert_eq!(left(folder.path()), ["diff1", "full1", "full2"]);
}
