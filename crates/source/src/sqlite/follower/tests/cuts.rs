//! Cuts for log backups, where the files of the database were replaced or are gone.

use super::*;

/// Puts copies of its files, with `commits` more, in the place of a database, as `mv` or as `cp` does it.
fn put_back(path: &Path, commits: u32, is_moved: bool) {
    let copy = path.with_file_name("copy.db");
    let wal = crate::sqlite::wal_path;
    std::fs::copy(path, &copy).unwrap();
    std::fs::copy(wal(path), wal(&copy)).unwrap();
    let elsewhere = application(&copy);
    write(&elsewhere, commits);
    let [content, log] = [copy.clone(), wal(&copy)].map(|path| std::fs::read(path).unwrap());
    for name in [wal(path), crate::sqlite::beside(path, "-shm")] {
        std::fs::remove_file(name).unwrap();
    }
    if is_moved {
        std::fs::remove_file(path).unwrap();
    }
    std::fs::write(path, content).unwrap();
    std::fs::write(wal(path), log).unwrap();
}

#[test]
fn a_cut_of_files_that_were_replaced_has_the_newest_commit_or_names_a_gap() {
    for is_moved in [true, false] {
        for is_noticed in [true, false] {
            let case = format!("moved: {is_moved}, noticed: {is_noticed}");
            let (folder, path, connection, mut follower) = followed();
            write(&connection, 2);
            let spool = folder.path().join("spool");
            let first = follower.cut(0).unwrap();
            assert_eq!(first.lack, None, "{case}");
            // In this process it would keep the old index in use.
            drop(connection);
            put_back(&path, 4, is_moved);
            if is_noticed {
                follower.step(true).unwrap();
                assert_eq!(follower.status().following, Following::NotOpen, "{case}");
            }
            let cut = follower.cut(0).unwrap();
            assert_eq!(cut.lack, None, "{case}");
            let slices = spool::slices(&spool, cut.before).unwrap();
            let commits: u64 = slices.iter().map(|slice| slice.commits).sum();
            let is_named = slices.iter().any(|slice| slice.ended_by.is_some());
            assert!(is_named || commits == 6, "{case}: {commits} commits");
            // And it follows the files that are there.
            write(&application(&path), 3);
            let cut = follower.cut(0).unwrap();
            let slices = spool::slices(&spool, cut.before).unwrap();
            let expected = if is_named { 3 } else { 9 };
            assert_eq!(slices.last().unwrap().commits, expected, "{case}");
        }
    }
}

#[test]
fn a_cut_says_if_the_newest_commit_cannot_be_reached() {
    let (folder, path, connection, mut follower) = followed();
    write(&connection, 2);
    std::fs::rename(&path, folder.path().join("gone.db")).unwrap();
    let before = ends(folder.path()).0;
    let cut = follower.cut(u64::MAX / 2).unwrap();
    let lack = cut.lack.unwrap();
    assert!(!lack.is_full, "{lack:?}");
    assert_eq!(
        ends(folder.path()).0,
        before,
        "nothing is known of later times"
    );
}
