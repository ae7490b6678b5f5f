//! Files next to those of others.

use std::os::unix::fs::symlink;

use super::*;

/// A folder with a victim's file, and the path of one of our own files.
fn folder() -> (tempfile::TempDir, PathBuf, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let victim = folder.path().join("victim");
    std::fs::write(&victim, "theirs").unwrap();
    let own = folder.path().join("x.db.windlass-own");
    (folder, victim, own)
}

fn fifo(path: &Path) {
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mkfifoat(rustix::fs::CWD, path, mode).unwrap();
}

#[test]
fn what_is_planted_at_the_name_of_a_new_file_goes_and_its_target_stays() {
    for plant in ["symbolic", "hard", "FIFO", "dangling"] {
        let (_folder, victim, own) = folder();
        match plant {
            "symbolic" => symlink(&victim, &own).unwrap(),
            "hard" => std::fs::hard_link(&victim, &own).unwrap(),
            "dangling" => symlink(own.with_extension("far"), &own).unwrap(),
            _ => fifo(&own),
        }
        create(&own).unwrap().write_all(b"ours").unwrap();
        assert_eq!(std::fs::read(&victim).unwrap(), b"theirs", "{plant}");
        assert_eq!(read(&own, 10).unwrap(), b"ours", "{plant}");
        let metadata = std::fs::symlink_metadata(&own).unwrap();
        assert_eq!((metadata.nlink(), metadata.mode() & 0o777), (1, 0o600));
    }
}

#[test]
fn what_is_planted_for_a_file_that_is_opened_again_is_refused() {
    for plant in ["symbolic", "hard", "FIFO", "directory"] {
        let (_folder, victim, own) = folder();
        match plant {
            "symbolic" => symlink(&victim, &own).unwrap(),
            "hard" => std::fs::hard_link(&victim, &own).unwrap(),
            "directory" => std::fs::create_dir(&own).unwrap(),
            _ => fifo(&own),
        }
        assert!(open(&own).is_err(), "{plant}");
        assert!(DirectFile::open(&own, Access::Own).is_err(), "{plant}");
    }
}

#[test]
fn what_sqlite_would_wait_for_is_refused_and_a_planted_link_too() {
    for part in PARTS_OF_DATABASE {
        let (folder, victim, _) = folder();
        let database = folder.path().join("x.db");
        let path = beside(&database, part);
        refuse_planted(&database).unwrap();
        fifo(&path);
        let error = refuse_special(&database).unwrap_err();
        assert!(error.to_string().contains("it is a FIFO"), "{error}");
        std::fs::remove_file(&path).unwrap();
        symlink(&victim, &path).unwrap();
        refuse_special(&database).unwrap();
        assert!(refuse_planted(&database).is_err(), "{part}");
        std::fs::remove_file(&path).unwrap();
        std::fs::hard_link(&victim, &path).unwrap();
        assert!(refuse_planted(&database).is_err(), "{part}");
    }
}

#[test]
fn a_claimed_file_is_nobody_elses_until_it_is_closed() {
    let (_folder, _victim, own) = folder();
    let first = claim(&own).unwrap();
    first.write_at(b"one", 0).unwrap();
    for refused in [
        claim(&own).err(),
        reclaim(&own).err(),
        remove_unheld(&own).err(),
    ] {
        assert_eq!(refused.unwrap().kind(), io::ErrorKind::WouldBlock);
    }
    assert_eq!(read(&own, 3).unwrap(), b"one");
    drop(first);
    assert_eq!(reclaim(&own).unwrap().len().unwrap(), 3);
    assert_eq!(claim(&own).unwrap().len().unwrap(), 0);
}

#[test]
fn a_replaced_content_is_whole_and_a_planted_temporary_name_harmless() {
    let (_folder, victim, own) = folder();
    symlink(&victim, beside(&own, ".new")).unwrap();
    replace(&own, b"one").unwrap();
    replace(&own, b"two").unwrap();
    assert_eq!(read(&own, 3).unwrap(), b"two");
    assert!(read(&own, 2).is_err());
    assert_eq!(std::fs::read(&victim).unwrap(), b"theirs");
    assert!(!is_there(&beside(&own, ".new")));
}

#[test]
fn only_the_file_that_is_held_gets_the_name_and_whoever_comes_second_is_told_who_holds_it() {
    let (folder, _victim, own) = folder();
    let target = folder.path().join("x.db");
    let first = claim(&own).unwrap();
    let refused = claim(&own).unwrap_err().to_string();
    assert!(refused.contains("this process is making it"), "{refused}");
    for theirs in [true, false] {
        std::fs::remove_file(&own).unwrap();
        if theirs {
            std::fs::write(&own, "theirs").unwrap();
        }
        let error = take_name(first.as_file(), &own, &target).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        remove_held(first.as_file(), &own).unwrap();
        assert_eq!(is_there(&own), theirs);
    }
    let second = claim(&own).unwrap();
    take_name(second.as_file(), &own, &target).unwrap();
    remove_held(first.as_file(), &target).unwrap();
    assert!(is_there(&target));
    remove_held(second.as_file(), &target).unwrap();
    assert!(!is_there(&target));
}

#[test]
fn a_file_that_is_replaced_while_it_is_opened_is_there() {
    let (_folder, _, own) = folder();
    replace(&own, b"state").unwrap();
    let is_over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                create(&beside(&own, ".new")).unwrap();
                std::fs::rename(beside(&own, ".new"), &own).unwrap();
            }
        });
        let opened = (0..20_000).try_for_each(|_| {
            open(&own)?;
            DirectFile::open(&own, Access::Own).map(drop)
        });
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
        opened.unwrap();
    });
}
