//! `kill -9` of a server while sessions write and a backup runs.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use windlass_instance::{Collected, Elsewhere as _, Instance, Value};
use windlass_local::client::LocalClient;

use crate::support::{Store, command, shown, succeed};

const WRITERS: usize = 6;

/// A server of an instance with a database, killed and started again.
struct Subject {
    folder: tempfile::TempDir,
    instance: String,
    /// The backups that were reported as made.
    made: Vec<String>,
    store: Store,
}

/// A running server.
struct Served(Child);

impl Drop for Served {
    fn drop(&mut self) {
        // It may be gone already.
        let _killed = self.0.kill();
        let _ended = self.0.wait();
    }
}

impl Subject {
    fn new(store: Store) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let subject = Self {
            instance: shown(&folder.path().join("instance")),
            folder,
            made: Vec::new(),
            store,
        };
        let (data, log) = (subject.path("shop.mdf"), subject.path("shop.ldf"));
        for script in [
            format!(
                "CREATE DATABASE shop ON (NAME = shop, FILENAME = '{data}') LOG ON (NAME = shop_log, FILENAME = '{log}')"
            ),
            "USE shop; CREATE TABLE t (writer int, number int, twin int, PRIMARY KEY (writer, number))".to_owned(),
        ] {
            succeed(&["sql", "--instance", &subject.instance, "-Q", &script]);
        }
        subject
    }

    fn path(&self, name: &str) -> String {
        shown(&self.folder.path().join(name))
    }

    fn medium(&self, name: &str) -> String {
        self.store.medium(self.folder.path(), name)
    }

    fn serve(&self) -> Served {
        let mut child = command(&["serve", "--instance", &self.instance, "--local-only"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the server starts");
        let out = BufReader::new(child.stdout.take().expect("its output"));
        let listens = out.lines().map_while(Result::ok);
        assert!(
            listens
                .into_iter()
                .any(|line| line.contains("windlass.sock"))
        );
        Served(child)
    }

    fn connect(&self) -> Option<LocalClient> {
        let own = Instance::open(None).expect("an instance of its own");
        let folder = Path::new(&self.instance);
        let connected = LocalClient::connect(folder, "acceptance", own.identity());
        connected.ok().flatten()
    }
}

/// Runs a batch; `None` if it failed or the server is gone.
fn run(client: &mut LocalClient, text: &str) -> Option<Collected> {
    let mut collected = Collected::default();
    let never = AtomicBool::new(false);
    let end = client.execute(text, 1, &never, &mut collected);
    let is_clean = matches!(end, windlass_instance::BatchEnd::Clean) && !collected.has_failed();
    if !is_clean {
        // It may be the end of the server that was to be seen.
        eprintln!("{text}: {:?}", collected.messages);
    }
    is_clean.then_some(collected)
}

/// Rows that a writer was told are committed.
type Acknowledged = BTreeSet<(usize, u32)>;

/// Writes until the server is gone; each transaction has two rows, or none.
fn write(subject: &Subject, writer: usize, from: u32) -> Vec<u32> {
    let mut told = Vec::new();
    let Some(mut client) = subject.connect() else {
        return told;
    };
    if run(&mut client, "USE shop; SET LOCK_TIMEOUT 30000").is_none() {
        return told;
    }
    for number in (from..).step_by(2) {
        let next = number + 1;
        let batch = format!(
            "BEGIN TRAN; INSERT t VALUES ({writer}, {number}, {next}); INSERT t VALUES ({writer}, {next}, {number}); COMMIT"
        );
        if run(&mut client, &batch).is_none() {
            return told;
        }
        told.extend([number, next]);
    }
    told
}

fn number(value: &Value) -> u32 {
    match value {
        Value::Integer(number) => u32::try_from(*number).expect("a small number"),
        other => panic!("{other:?} is no number"),
    }
}

/// The rows of a database, of which each has its twin.
fn rows(client: &mut LocalClient, database: &str) -> Acknowledged {
    let found = run(
        client,
        &format!("USE {database}; SELECT writer, number FROM t"),
    );
    let found = found.expect("an answer");
    let rows = found.results.iter().flat_map(|result| &result.rows);
    let rows: Acknowledged = rows
        .map(|row| (number(&row[0]) as usize, number(&row[1])))
        .collect();
    for (writer, one) in &rows {
        let twin = one ^ 1;
        assert!(
            rows.contains(&(*writer, twin)),
            "half a transaction: {writer}, {one}"
        );
    }
    rows
}

/// One life of the server: sessions write, a backup runs, and it is killed.
fn live(subject: &mut Subject, told: &mut Acknowledged, round: u32, delay: Duration) {
    let mut server = subject.serve();
    let media = subject.medium(&format!("{round}.bak"));
    let target = subject.store.in_sql(&media);
    let from = round * 1_000_000;
    let (written, is_made) = std::thread::scope(|scope| {
        let own = &*subject;
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| scope.spawn(move || (writer, write(own, writer, from))))
            .collect();
        let backup = scope.spawn(|| {
            let mut client = own.connect()?;
            let how = match round % 3 {
                0 => "COMPRESSION",
                1 => "DIFFERENTIAL, CHECKSUM",
                _ => "COMPRESSION, CHECKSUM",
            };
            std::thread::sleep(delay / 3);
            run(
                &mut client,
                &format!("BACKUP DATABASE shop TO {target} WITH {how}"),
            )
        });
        std::thread::sleep(delay);
        server.0.kill().expect("it runs");
        server.0.wait().expect("it ends");
        let written: Vec<_> = writers
            .into_iter()
            .map(|writer| writer.join().expect("no panic"))
            .collect();
        (written, backup.join().expect("no panic").is_some())
    });
    for (writer, numbers) in written {
        told.extend(numbers.into_iter().map(|number| (writer, number)));
    }
    if is_made {
        subject.made.push(media);
    }
}

fn kill_servers(rounds: u32, store: Store) {
    let mut subject = Subject::new(store);
    {
        let _server = subject.serve();
        let mut client = subject.connect().expect("it listens");
        let base = store.in_sql(&subject.medium("first.bak"));
        run(&mut client, &format!("BACKUP DATABASE shop TO {base}")).expect("a base");
    }
    let mut told = Acknowledged::new();
    for round in 0..rounds {
        let delay = Duration::from_millis(u64::from(80 + round * 37 % 500));
        live(&mut subject, &mut told, round, delay);
        let server = subject.serve();
        let mut client = subject.connect().expect("it listens");
        let found = rows(&mut client, "shop");
        let lost: Vec<_> = told.difference(&found).collect();
        assert!(
            lost.is_empty(),
            "round {round}: acknowledged and lost: {lost:?}"
        );
        // What nobody was told may be there, one transaction of each writer.
        assert!(found.len() <= told.len() + 2 * WRITERS, "round {round}");
        told = found;
        drop(client);
        drop(server);
    }
    assert!(!told.is_empty(), "the writers wrote");
    println!(
        "{rounds} kills: {} rows acknowledged, {} backups made",
        told.len(),
        subject.made.len()
    );
    for media in &subject.made {
        succeed(&["verify", media]);
    }
}

#[test]
fn a_killed_server_loses_nothing_that_a_session_was_told() {
    kill_servers(5, Store::Files);
}

#[test]
fn a_killed_server_that_backs_up_to_objects_loses_nothing_that_a_session_was_told() {
    kill_servers(3, Store::Objects);
}

#[test]
#[ignore = "minutes: cargo xtask acceptance"]
fn slow_two_hundred_killed_servers_lose_nothing_that_a_session_was_told() {
    kill_servers(100, Store::Files);
    kill_servers(100, Store::Objects);
}
