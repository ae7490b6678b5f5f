//! `kill -9` while databases of the page engine are written to, backed up and restored.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::support::{Store, command, make_database, shown, succeed};

/// Copies a table onto itself under another number: what is there is whole rounds or none.
const CHANGE: &str = "INSERT INTO round SELECT (SELECT max(number) + 1 FROM round), x FROM item";

/// The database under test, registered in an instance.
struct Subject {
    folder: tempfile::TempDir,
    instance: String,
    store: Store,
}

impl Subject {
    fn new(store: Store) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let plain = folder.path().join("plain.db");
        make_database(&plain, 4, "delete");
        let subject = Self {
            instance: shown(&folder.path().join("instance")),
            store,
            folder,
        };
        let data = subject.path("e.db");
        succeed(&[
            "import",
            &shown(&plain),
            "--into",
            "e",
            "--data",
            &data,
            "--instance",
            &subject.instance,
        ]);
        subject.sql(
            "USE e
GO
CREATE TABLE item(x); CREATE TABLE round(number INTEGER, x); INSERT INTO round VALUES (0, 0);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100) INSERT INTO item SELECT i FROM n",
        );
        subject
    }

    fn path(&self, name: &str) -> String {
        shown(&self.folder.path().join(name))
    }

    /// A medium as T-SQL names it.
    fn medium(&self, name: &str) -> String {
        self.store
            .in_sql(&self.store.medium(self.folder.path(), name))
    }

    fn arguments<'a>(&'a self, script: &'a str) -> Vec<&'a str> {
        vec!["sql", "--json", "--instance", &self.instance, "-Q", script]
    }

    fn sql(&self, script: &str) -> String {
        // -Q is one batch; GO is for files.
        let file = self.folder.path().join("script.sql");
        std::fs::write(&file, script).expect("the script");
        let file = shown(&file);
        succeed(&["sql", "--json", "--instance", &self.instance, "-i", &file])
    }

    /// Every round of a database is whole, and SQLite finds nothing wrong.
    fn check(&self, database: &str) {
        let said = self.sql(&format!(
            "USE {database}
GO
PRAGMA integrity_check
SELECT count(*) AS torn FROM (SELECT number FROM round WHERE number > 0 GROUP BY number HAVING count(*) <> 100) AS part"
        ));
        assert!(said.contains("\"ok\""), "{said}");
        assert!(
            said.contains("\"torn\":0") || said.contains("\"torn\": 0"),
            "{said}"
        );
    }
}

fn kill_after(arguments: &[&str], delay: Duration) {
    let mut child = command(arguments)
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .expect("the program starts");
    std::thread::sleep(delay);
    drop(child.kill());
    child.wait().expect("the program ends");
}

/// Delays from zero to a little longer than a run that is not killed.
fn delays(whole: Duration, rounds: u32) -> impl Iterator<Item = Duration> {
    (0..rounds).map(move |round| whole.mul_f64(f64::from(round) / f64::from(rounds) * 1.1))
}

fn duration_of(run: impl FnOnce()) -> Duration {
    let begun = Instant::now();
    run();
    begun.elapsed()
}

fn kill_backups(rounds: u32, store: Store) {
    let subject = Subject::new(store);
    let base = subject.medium("base.bak");
    subject.sql(&format!(
        "USE e; {CHANGE}; BACKUP DATABASE e TO {base} WITH COMPRESSION"
    ));
    // Appended to one file, or an object each.
    let backup = |round: &str| {
        let (full, differential) = match store {
            Store::Files => (base.clone(), base.clone()),
            Store::Objects => (
                subject.medium(&format!("{round}.bak")),
                subject.medium(&format!("{round}.dif")),
            ),
        };
        format!(
            "USE e; {CHANGE}; BACKUP DATABASE e TO {full} WITH COMPRESSION; {CHANGE}; \
             BACKUP DATABASE e TO {differential} WITH DIFFERENTIAL; {CHANGE}"
        )
    };
    let whole = duration_of(|| drop(succeed(&subject.arguments(&backup("first")))));
    for (round, delay) in delays(whole, rounds).enumerate() {
        let backup = backup(&round.to_string());
        kill_after(&subject.arguments(&backup), delay);
        subject.check("e");
    }
    succeed(&subject.arguments(&backup("last")));
    let moves = format!(
        "MOVE 'e' TO '{}', MOVE 'e_log' TO '{}'",
        subject.path("copy.db"),
        subject.path("copy.db-log")
    );
    subject.sql(&format!(
        "RESTORE DATABASE c FROM {base} WITH FILE = 1, {moves}"
    ));
    subject.check("c");
    if store == Store::Objects {
        let [full, differential] = ["last.bak", "last.dif"].map(|name| subject.medium(name));
        subject.sql(&format!(
            "RESTORE DATABASE c FROM {full} WITH REPLACE, NORECOVERY, {moves}; RESTORE DATABASE c FROM {differential}"
        ));
        subject.check("c");
    }
}

fn kill_restores(rounds: u32, store: Store) {
    let subject = Subject::new(store);
    let medium = subject.medium("e.bak");
    succeed(&subject.arguments(&format!(
        "USE e; {CHANGE}; BACKUP DATABASE e TO {medium}; {CHANGE}"
    )));
    let restore = format!(
        "RESTORE DATABASE c FROM {medium} WITH REPLACE, MOVE 'e' TO '{}', MOVE 'e_log' TO '{}'",
        subject.path("c.db"),
        subject.path("c.db-log")
    );
    let whole = duration_of(|| drop(succeed(&subject.arguments(&restore))));
    subject.check("c");
    for delay in delays(whole, rounds) {
        kill_after(&subject.arguments(&restore), delay);
        // Old or new, or nothing that opens: never half.
        if Path::new(&subject.path("c.db-log")).exists() {
            subject.check("c");
        }
    }
    succeed(&subject.arguments(&restore));
    subject.check("c");
    let left: Vec<_> = std::fs::read_dir(subject.folder.path())
        .expect("the folder")
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| name.contains("windlass"))
        .collect();
    assert!(left.is_empty(), "what crashes left is cleaned up: {left:?}");
}

/// Pages of both files of a database, damaged and restored with kills in between.
fn kill_page_restores(rounds: u32, store: Store) {
    const PAGE: usize = 8192;
    let subject = Subject::new(store);
    let files = [subject.path("k1.mdf"), subject.path("k2.ndf")];
    subject.sql(&format!(
        "CREATE DATABASE k ON (NAME = k1, FILENAME = '{}', SIZE = 4MB), (NAME = k2, FILENAME = '{}', SIZE = 4MB)
LOG ON (NAME = k_log, FILENAME = '{}', SIZE = 16MB)
GO
USE k
GO
CREATE TABLE t(x);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 6000) INSERT INTO t SELECT hex(randomblob(400)) FROM n
GO
BACKUP DATABASE k TO {}",
        files[0],
        files[1],
        subject.path("k.ldf"),
        subject.medium("k.bak")
    ));
    // The second extent of the first file and the first of the other have their stamps, which every checkpoint
    // renews.
    let stamps = [8 * PAGE..16 * PAGE, 0..8 * PAGE];
    let read = || {
        let mut found = files
            .each_ref()
            .map(|file| std::fs::read(file).expect("a data file"));
        for (file, stamp) in found.iter_mut().zip(&stamps) {
            file[stamp.clone()].fill(0);
        }
        found
    };
    let whole = read();
    let pages: Vec<usize> = (16..280).collect();
    let mut damaged = whole.clone();
    for &page in &pages {
        for file in &mut damaged {
            file[page * PAGE + 100] ^= 4;
        }
    }
    let list: Vec<_> = pages
        .iter()
        .map(|page| format!("1:{page},3:{page}"))
        .collect();
    let restore = format!(
        "RESTORE DATABASE k PAGE = '{}' FROM {}",
        list.join(","),
        subject.medium("k.bak")
    );
    let harm = || {
        for ((file, content), stamp) in files.iter().zip(&damaged).zip(&stamps) {
            let mut harmed = content.clone();
            let now = std::fs::read(file).expect("a data file");
            harmed[stamp.clone()].copy_from_slice(&now[stamp.clone()]);
            std::fs::write(file, harmed).expect("a data file");
        }
    };
    harm();
    let time = duration_of(|| drop(succeed(&subject.arguments(&restore))));
    assert!(read() == whole);
    for delay in delays(time, rounds) {
        harm();
        kill_after(&subject.arguments(&restore), delay);
        for (index, found) in read().iter().enumerate() {
            let page_of = |content: &[u8], page: usize| content[page * PAGE..][..PAGE].to_vec();
            for page in 0..whole[index].len() / PAGE {
                let found = page_of(found, page);
                let is_old = found == page_of(&damaged[index], page);
                assert!(
                    is_old || found == page_of(&whole[index], page),
                    "page {page}"
                );
            }
        }
        succeed(&subject.arguments(&restore));
        assert!(read() == whole, "again, and everything is as it was");
    }
}

#[test]
fn killed_page_restores_leave_each_page_old_or_new() {
    kill_page_restores(6, Store::Files);
}

#[test]
fn killed_page_restores_from_objects_leave_each_page_old_or_new() {
    kill_page_restores(3, Store::Objects);
}

#[test]
#[ignore = "two hundred killed restores of pages"]
fn slow_two_hundred_killed_page_restores() {
    kill_page_restores(100, Store::Files);
    kill_page_restores(100, Store::Objects);
}

#[test]
fn killed_engine_backups_leave_the_database_and_earlier_sets() {
    kill_backups(6, Store::Files);
}

#[test]
fn killed_engine_restores_leave_old_new_or_nothing() {
    kill_restores(6, Store::Files);
}

#[test]
fn killed_engine_backups_to_objects_leave_the_database_and_earlier_sets() {
    kill_backups(4, Store::Objects);
}

#[test]
fn killed_engine_restores_from_objects_leave_old_new_or_nothing() {
    kill_restores(4, Store::Objects);
}

#[test]
#[ignore = "two hundred killed backups of an engine database"]
fn slow_two_hundred_killed_engine_backups() {
    kill_backups(100, Store::Files);
    kill_backups(100, Store::Objects);
}

#[test]
#[ignore = "two hundred killed restores of an engine database"]
fn slow_two_hundred_killed_engine_restores() {
    kill_restores(100, Store::Files);
    kill_restores(100, Store::Objects);
}
