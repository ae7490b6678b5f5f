//! Backups while another process keeps writing: every restored copy is one committed state.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rusqlite::Connection;

use crate::support::{
    ALGORITHMS, Store, backup_arguments, integrity, restore_arguments, shown, succeed,
};

const WRITER: &str = "WINDLASS_TEST_WRITER";

/// Not a test: the body of the writing process, which the tests start as a copy of this program.
///
/// Moves money between accounts, so that the sum stays, and counts its commits in `log`.
#[test]
fn writer_process() {
    let Some(path) = std::env::var_os(WRITER).map(PathBuf::from) else {
        return;
    };
    let mut connection = Connection::open(path).expect("the database");
    connection
        .busy_timeout(std::time::Duration::from_secs(30))
        .expect("a timeout");
    let mut state = 1_u64;
    loop {
        let transaction = connection.transaction().expect("a transaction");
        for _ in 0..20 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let (from, to, amount) = (state >> 33 & 1023, state >> 43 & 1023, state >> 53 & 63);
            let change = "UPDATE account SET balance = balance + ?2, note = hex(randomblob(40)) WHERE id = ?1";
            transaction
                .execute(change, (from as i64, -(amount as i64)))
                .expect("a change");
            transaction
                .execute(change, (to as i64, amount as i64))
                .expect("a change");
        }
        transaction
            .execute("INSERT INTO log DEFAULT VALUES", [])
            .expect("a row");
        transaction.commit().expect("a commit");
    }
}

struct Writer(Child);

impl Writer {
    fn start(database: &Path) -> Self {
        let program = std::env::current_exe().expect("this program");
        let mut command = Command::new(program);
        command
            .args(["writers::writer_process", "--exact", "--nocapture"])
            .env(WRITER, database);
        Self(
            command
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .expect("a writer"),
        )
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

fn make_accounts(path: &Path) {
    let connection = Connection::open(path).expect("a database");
    connection
        .pragma_update(None, "journal_mode", "wal")
        .expect("WAL");
    connection
        .execute_batch(
            "CREATE TABLE account(id INTEGER PRIMARY KEY, balance INTEGER, note TEXT);
             CREATE TABLE log(id INTEGER PRIMARY KEY AUTOINCREMENT);
             WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 1023)
             INSERT INTO account SELECT i, 1000, hex(randomblob(700)) FROM n;",
        )
        .expect("accounts");
}

/// Checks a restored copy and returns how many commits it holds.
fn check(restored: &Path) -> i64 {
    assert_eq!(integrity(restored), "ok");
    let connection = Connection::open(restored).expect("the copy");
    let number = |sql: &str| {
        connection
            .query_row(sql, [], |row| row.get::<_, i64>(0))
            .expect("a number")
    };
    assert_eq!(
        number("SELECT sum(balance) FROM account"),
        1_024_000,
        "no transfer is half there"
    );
    let commits = number("SELECT count(*) FROM log");
    assert_eq!(
        commits,
        number("SELECT coalesce(max(id), 0) FROM log"),
        "no commit is missing"
    );
    commits
}

fn back_up_under_load(rounds: usize, store: Store) {
    let folder = tempfile::tempdir().expect("a folder");
    let database = folder.path().join("bank.db");
    make_accounts(&database);
    let writer = Writer::start(&database);
    let mut commits_before = 0;
    for round in 0..rounds {
        let families = if round % 2 == 0 { 1 } else { 4 };
        let here = folder.path().join(round.to_string());
        std::fs::create_dir(&here).expect("a folder");
        let devices = store.media(&here, families);
        succeed(&backup_arguments(
            &shown(&database),
            &devices,
            &["--compress", ALGORITHMS[round % ALGORITHMS.len()]],
        ));
        let restored = here.join("copy.db");
        succeed(&restore_arguments(&devices, &shown(&restored), &[]));
        let commits = check(&restored);
        assert!(
            commits >= commits_before,
            "round {round}: later backups hold later states"
        );
        commits_before = commits;
        for device in &devices {
            store.remove(device);
        }
        std::fs::remove_dir_all(&here).expect("the folder");
    }
    assert!(commits_before > 0, "the writer was writing");
    drop(writer);
    assert_eq!(
        integrity(&database),
        "ok",
        "the database itself is unharmed"
    );
}

#[test]
fn copies_made_under_load_are_committed_states() {
    back_up_under_load(8, Store::Files);
}

#[test]
fn copies_made_under_load_in_object_storage_are_committed_states() {
    back_up_under_load(4, Store::Objects);
}

#[test]
#[ignore = "two hundred backups and restores"]
fn slow_two_hundred_copies_made_under_load_are_committed_states() {
    back_up_under_load(100, Store::Files);
    back_up_under_load(100, Store::Objects);
}
