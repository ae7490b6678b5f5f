//! Other processes: this test binary again, in one of the roles below.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, TransactionBehavior};

const ROLE: &str = "WINDLASS_TEST_ROLE";
const DATABASE: &str = "WINDLASS_TEST_DATABASE";

/// A process in a role; killed when dropped.
pub(crate) struct Process {
    child: Child,
    answers: BufReader<ChildStdout>,
}

impl Process {
    /// Starts `role` on a database and waits until it reports that it is ready.
    pub(crate) fn start(role: &str, database: &Path) -> Self {
        let mut process = Self::of(command(role, database));
        assert_eq!(process.answer(), "ready", "{role}");
        process
    }

    pub(crate) fn of(mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let answers = BufReader::new(child.stdout.take().unwrap());
        Self { child, answers }
    }

    /// Its next line of output; empty when it has exited.
    pub(crate) fn answer(&mut self) -> String {
        let mut line = String::new();
        // The test harness writes to the same stream.
        while self.answers.read_line(&mut line).unwrap() > 0 {
            if let Some((_, answer)) = line.trim().split_once("answer: ") {
                return answer.to_owned();
            }
            line.clear();
        }
        String::new()
    }

    /// Sends a signal to it.
    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let process = rustix::process::Pid::from_raw(self.child.id() as i32).unwrap();
        rustix::process::kill_process(process, signal).unwrap();
    }

    /// Waits for its end.
    pub(crate) fn wait(&mut self) {
        assert!(self.child.wait().unwrap().success());
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ended_already = self.child.kill();
        let _status = self.child.wait();
    }
}

/// The command that runs `role`.
pub(crate) fn command(role: &str, database: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([
        "process::play_a_role",
        "--exact",
        "--nocapture",
        "--test-threads=1",
    ]);
    command.env(ROLE, role).env(DATABASE, database);
    command
}

pub(crate) fn say(text: &str) {
    println!("answer: {text}");
}

/// Not a test: what the processes run.
#[test]
fn play_a_role() {
    let (Some(role), Some(database)) = (std::env::var_os(ROLE), std::env::var_os(DATABASE)) else {
        return;
    };
    let database = Path::new(&database);
    match role.to_str().unwrap() {
        "writer" => crate::writers::write_for_ever(database),
        "model writer" => crate::following::write_model(database),
        "follower" => crate::following::follow(database),
        "follower, full disk" => crate::following::follow_on_full_disk(database),
        "checkpointer" => checkpoint_for_ever(database),
        "exclusive for 300 ms" => lock_exclusively(database, Duration::from_millis(300)),
        "exclusive" => lock_exclusively(database, Duration::from_secs(60)),
        "one write" => say(write_once(database, Duration::ZERO)),
        "patient write" => {
            say("ready");
            say(write_once(database, Duration::from_secs(20)));
        }
        "waits a second" => wait_for_the_lock(database),
        "idle" => stay_connected(database),
        "crash" => crash_while_writing(database),
        "read-only medium" => crate::media::on_read_only_medium(database),
        "full disk" => crate::media::on_full_disk(database),
        "full disk, WAL" => crate::watched::on_full_disk(database),
        "no room for a copy" => crate::temporary_copy::no_room(database),
        "mounted files" => crate::aliased::mounted_files(database),
        "torn" => crate::watched::torn_under_read_only_mount(database),
        "joined" => crate::watched::joined_under_read_only_mount(database),
        "connected" => crate::watched::connected_under_read_only_mount(database),
        "generation" => crate::watched::write_generation(database, "write"),
        "generation checkpoint" => crate::watched::write_generation(database, "checkpoint"),
        "read by another user" => crate::watched::read_by_another_user(database, false),
        "read by another user, slowly" => crate::watched::read_by_another_user(database, true),
        "exclusive with gaps" => lock_with_gaps(database),
        other => panic!("unknown role {other}"),
    }
}

fn checkpoint_for_ever(database: &Path) {
    let connection = Connection::open(database).unwrap();
    connection.busy_timeout(Duration::from_millis(20)).unwrap();
    say("ready");
    for mode in ["PASSIVE", "FULL", "RESTART", "TRUNCATE"].iter().cycle() {
        // Being refused is the usual answer while a backup runs.
        let _answer =
            connection.query_row(&format!("PRAGMA wal_checkpoint({mode})"), [], |_| Ok(()));
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn lock_exclusively(database: &Path, time: Duration) {
    let connection = Connection::open(database).unwrap();
    connection.execute_batch("BEGIN EXCLUSIVE").unwrap();
    say("ready");
    std::thread::sleep(time);
}

/// Holds the lock for most of the time.
fn lock_with_gaps(database: &Path) {
    let connection = Connection::open(database).unwrap();
    connection.busy_timeout(Duration::from_secs(20)).unwrap();
    say("ready");
    loop {
        connection.execute_batch("BEGIN EXCLUSIVE").unwrap();
        std::thread::sleep(Duration::from_millis(150));
        connection.execute_batch("COMMIT").unwrap();
        std::thread::sleep(Duration::from_millis(30));
    }
}

fn write_once(database: &Path, patience: Duration) -> &'static str {
    let mut connection = Connection::open(database).unwrap();
    connection.busy_timeout(patience).unwrap();
    let write = || {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        transaction.execute("INSERT INTO note VALUES ('from another process')", [])?;
        transaction.commit()
    };
    let mut write = write;
    match write() {
        Ok(()) => "written",
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => "busy",
        Err(error) => panic!("{error}"),
    }
}

/// A connection that has the file open and waits in vain.
fn wait_for_the_lock(database: &Path) {
    let connection = Connection::open(database).unwrap();
    connection.busy_timeout(Duration::from_secs(1)).unwrap();
    say("ready");
    let waited = connection.execute_batch("BEGIN IMMEDIATE");
    say(match waited {
        Ok(()) => "locked",
        Err(_) => "busy",
    });
}

/// A connection that has read once and holds no lock.
fn stay_connected(database: &Path) {
    let connection = Connection::open(database).unwrap();
    connection
        .query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))
        .unwrap();
    say("ready");
    std::thread::sleep(Duration::from_secs(60));
}

/// Spills half a transaction into the database and dies.
fn crash_while_writing(database: &Path) {
    let connection = Connection::open(database).unwrap();
    connection
        .execute_batch("PRAGMA cache_size = 5; BEGIN; UPDATE note SET body = randomblob(3000);")
        .unwrap();
    say("ready");
    std::process::abort();
}
