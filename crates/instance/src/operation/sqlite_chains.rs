//! Chains of log backups of a SQLite file: where they begin, what they leave out, and what no backup has.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rusqlite::Connection;
use rusqlite::config::DbConfig;
use windlass_source::sqlite::{FollowOptions, Follower};

use crate::outcome::Collected;
use crate::{Instance, Session};

struct World {
    folder: tempfile::TempDir,
}

impl World {
    /// A database in WAL mode whose log is kept.
    fn new() -> Self {
        let world = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        let application = world.application();
        let wal = "PRAGMA journal_mode = WAL; CREATE TABLE step(n INTEGER);";
        application.execute_batch(wal).unwrap();
        step(&application, 0);
        drop(application);
        world.succeed("EXEC sp_attach_db 'app', '{at}/app.db'");
        world.succeed("ALTER DATABASE app SET RECOVERY FULL");
        world
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// It leaves its log behind when it is closed.
    fn application(&self) -> Connection {
        let application = Connection::open(self.at("app.db")).unwrap();
        let leaves_log = DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE;
        application.set_db_config(leaves_log, true).unwrap();
        let manual = "PRAGMA wal_autocheckpoint = 0";
        application.execute_batch(manual).unwrap();
        application
    }

    fn run(&self, text: &str) -> Collected {
        let mut said = Collected::default();
        let instance = Instance::open(Some(&self.at("instance"))).unwrap();
        let mut session = Session::new(instance);
        let text = text.replace("{at}", &self.folder.path().display().to_string());
        let _end = session.execute_batch(&text, 1, &mut said);
        said
    }

    #[track_caller]
    fn succeed(&self, text: &str) {
        let said = self.run(text);
        assert!(!said.has_failed(), "{text}: {:?}", said.messages);
    }

    #[track_caller]
    fn refuse(&self, text: &str, numbers: &[u32]) {
        let said = self.run(text);
        let errors = said.messages.iter().filter(|message| message.is_error());
        let found: Vec<u32> = errors.map(|message| message.number).collect();
        assert_eq!(found, numbers, "{text}: {:?}", said.messages);
    }

    fn back_up(&self, name: &str, options: &str) {
        self.succeed(&format!(
            "BACKUP DATABASE app TO DISK = '{{at}}/{name}' {options}"
        ));
    }

    /// The steps in the database that a full backup and a log backup give.
    fn restored(&self, full: &str, log: &str) -> Vec<i64> {
        let copy = self.at("copy.db").display().to_string();
        self.succeed(&format!(
            "RESTORE DATABASE Copy FROM DISK = '{{at}}/{full}' WITH NORECOVERY, REPLACE, MOVE 'app' TO '{copy}'"
        ));
        self.succeed(&format!("RESTORE LOG Copy FROM DISK = '{{at}}/{log}'"));
        let copy = Connection::open(copy).unwrap();
        let mut query = copy.prepare("SELECT n FROM step ORDER BY n").unwrap();
        let rows = query.query_map([], |row| row.get(0)).unwrap();
        rows.map(Result::unwrap).collect()
    }
}

fn step(application: &Connection, number: u32) {
    let insert = format!("INSERT INTO step VALUES ({number})");
    application.execute_batch(&insert).unwrap();
}

/// Commits that are in no log that can be found again.
fn lose(application: &Connection, number: u32) {
    for _ in 0..2 {
        step(application, number);
        let checkpoint = "PRAGMA wal_checkpoint(TRUNCATE)";
        let busy: i64 = application
            .query_row(checkpoint, [], |row| row.get(0))
            .unwrap();
        assert_eq!(busy, 0);
    }
}

const LOG: &str = "BACKUP LOG app TO DISK = '{at}/log.trn' WITH INIT";
const OVER: &str = "RESTORE DATABASE app FROM DISK = '{at}/full.bak'";

#[test]
fn a_full_backup_behind_a_gap_begins_the_chain_again_at_once() {
    let world = World::new();
    let application = world.application();
    world.back_up("full.bak", "");
    lose(&application, 1);
    world.back_up("full2.bak", "");
    step(&application, 2);
    world.succeed(LOG);
    assert_eq!(world.restored("full2.bak", "log.trn"), [0, 1, 1, 2]);
}

#[test]
fn a_copy_does_not_begin_the_chain_again() {
    let world = World::new();
    let application = world.application();
    world.back_up("copy.bak", "WITH COPY_ONLY");
    world.refuse(LOG, &[4214, 3013]);
    world.back_up("full.bak", "");
    lose(&application, 1);
    world.back_up("copy2.bak", "WITH COPY_ONLY");
    step(&application, 2);
    world.refuse(LOG, &[4214, 50252, 3013]);
    world.back_up("diff.bak", "WITH DIFFERENTIAL");
    world.succeed(LOG);
}

#[test]
fn a_range_between_two_gaps_into_which_no_backup_leads_is_left_out() {
    let world = World::new();
    let application = world.application();
    world.back_up("full.bak", "");
    lose(&application, 1);
    world.refuse(LOG, &[4214, 50252, 3013]);
    step(&application, 2);
    world.refuse(LOG, &[4214, 50252, 3013]);
    lose(&application, 3);
    world.back_up("full2.bak", "");
    step(&application, 4);
    world.succeed(LOG);
    let expected = [0, 1, 1, 2, 3, 3, 4];
    assert_eq!(world.restored("full2.bak", "log.trn"), expected);
}

#[test]
fn a_restore_over_commits_that_no_backup_has_is_refused() {
    let world = World::new();
    world.back_up("full.bak", "");
    world.succeed(OVER);
    for saves in [LOG, "BACKUP DATABASE app TO DISK = '{at}/other.bak'"] {
        // So that there is a log to go on from.
        step(&world.application(), 0);
        world.back_up("full.bak", "WITH INIT");
        step(&world.application(), 1);
        world.refuse(OVER, &[3159, 3013]);
        world.succeed(saves);
        world.succeed(OVER);
    }
    world.back_up("full.bak", "WITH INIT");
    step(&world.application(), 1);
    world.refuse(OVER, &[3159, 3013]);
    world.succeed(&format!("{OVER} WITH REPLACE"));
    // What may be missing, nobody knows.
    world.back_up("full.bak", "WITH INIT");
    lose(&world.application(), 1);
    world.refuse(OVER, &[3159, 3013]);
}

#[test]
fn a_restore_over_commits_that_only_the_follower_has_is_refused() {
    let world = World::new();
    world.back_up("full.bak", "");
    let follow = world.at("instance/follow");
    let folder = std::fs::read_dir(follow).unwrap().next().unwrap().unwrap();
    let options = FollowOptions {
        every: Duration::from_millis(50),
        ..FollowOptions::within(folder.path())
    };
    let mut follower = Follower::begin(&world.at("app.db"), &options).unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let running = scope.spawn(|| follower.run(&stop, &mut |_| {}).unwrap());
        step(&world.application(), 1);
        let said = [OVER, LOG, OVER].map(|text| world.run(text));
        stop.store(true, Ordering::Relaxed);
        running.join().unwrap();
        let failed = said.each_ref().map(Collected::has_failed);
        assert_eq!(failed, [true, false, false], "{said:?}");
        assert!(
            said[0]
                .messages
                .iter()
                .any(|message| message.number == 3159)
        );
    });
}
