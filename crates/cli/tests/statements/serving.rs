//! `windlass serve`, and the commands that go through it.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::support::{Place, Run};

/// A running server; killed when dropped.
pub(crate) struct Served {
    child: Child,
    pub(crate) port: u16,
    /// The port of the page; 0 without `--http`.
    pub(crate) page: u16,
}

impl Served {
    pub(crate) fn start(place: &Place, further: &[&str]) -> Self {
        let instance = place.text("instance");
        let mut arguments = vec!["serve", "--instance", &instance];
        if !further.contains(&"--local-only") {
            arguments.extend(["--tds", "127.0.0.1:0"]);
            // Servers of other tests run at the same time.
            if !further.contains(&"--http") {
                arguments.push("--no-http");
            }
        }
        arguments.extend(further);
        let mut child = place
            .command(&arguments)
            .stdout(Stdio::piped())
            .spawn()
            .expect("the server starts");
        let (mut port, mut page) = (0, 0);
        let out = BufReader::new(child.stdout.take().expect("its output"));
        for line in out.lines() {
            let line = line.expect("a line");
            if let Some(address) = line.strip_suffix(" (TDS)") {
                let digits = address.rsplit(':').next().expect("a port");
                port = digits.parse().expect("a port");
            }
            if let Some(address) = line.strip_suffix("/ (page)") {
                let digits = address.rsplit(':').next().expect("a port");
                page = digits.parse().expect("a port");
            }
            if line.contains("windlass.sock") {
                break;
            }
        }
        Self { child, port, page }
    }

    fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).expect("it is there");
    }

    /// Its number among the processes.
    pub(crate) fn process(&self) -> u32 {
        self.child.id()
    }

    /// Ends the server as a service manager does.
    pub(crate) fn stop(mut self) -> Option<i32> {
        self.signal(rustix::process::Signal::TERM);
        self.child.wait().expect("it ends").code()
    }

    fn kill(mut self) {
        self.child.kill().expect("it is there");
        self.child.wait().expect("it ends");
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // It may have ended.
        let _ended = self.child.kill();
        let _ended = self.child.wait();
    }
}

fn query(place: &Place, text: &str) -> Run {
    let instance = place.text("instance");
    place.run(&["sql", "--instance", &instance, "-h", "-1", "-W", "-Q", text])
}

#[track_caller]
fn answer(place: &Place, text: &str) -> String {
    let run = query(place, text);
    assert_eq!(run.code, Some(0), "{text}\n{}\n{}", run.out, run.err);
    run.out.trim().to_owned()
}

fn make(place: &Place) {
    let (data, log) = (place.text("shop.mdf"), place.text("shop.ldf"));
    let made = query(
        place,
        &format!(
            "CREATE DATABASE shop ON (NAME = shop, FILENAME = '{data}') LOG ON (NAME = shop_log, FILENAME = '{log}')"
        ),
    );
    assert_eq!(made.code, Some(0), "{}", made.err);
    answer(
        place,
        "USE shop; CREATE TABLE orders (id int PRIMARY KEY, note nvarchar(20))",
    );
}

#[test]
fn commands_go_through_the_server_that_owns_the_databases() {
    let place = Place::new();
    make(&place);
    let server = Served::start(&place, &["--local-only"]);
    answer(&place, "USE shop; INSERT orders VALUES (1, N'grün')");
    // The server keeps the database open: another process could not.
    assert_eq!(answer(&place, "USE shop; SELECT note FROM orders"), "grün");
    let sessions = "SELECT COUNT(*) FROM sys.dm_exec_sessions WHERE program_name = 'windlass sql'";
    assert_eq!(answer(&place, sessions), "1");
    let number: u32 = answer(&place, "SELECT @@SPID").parse().unwrap();
    assert!((51..100).contains(&number), "{number}");
    let media = place.text("shop.bak");
    let made = query(
        &place,
        &format!("BACKUP DATABASE shop TO DISK = '{media}' WITH STATS = 50, CHECKSUM"),
    );
    assert_eq!(made.code, Some(0), "{}", made.err);
    let told = made.out + &made.err;
    assert!(told.contains("100 percent processed."), "{told}");
    assert!(
        told.contains("BACKUP DATABASE successfully processed"),
        "{told}"
    );
    let refused = query(&place, "SELECT * FROM nosuch");
    assert_eq!(refused.code, Some(1));
    assert!(refused.err.contains("Msg 208"), "{}", refused.err);
    assert_eq!(server.stop(), Some(0));
    assert!(!place.path("instance/windlass.sock").exists());
    assert_eq!(answer(&place, "USE shop; SELECT COUNT(*) FROM orders"), "1");
}

#[test]
fn the_output_is_that_of_a_command_of_its_own() {
    let place = Place::new();
    make(&place);
    let script = "PRINT 'a'; SELECT 1 AS one, CAST(1.5 AS numeric(5, 2)) AS n, NULL AS z, GETDATE() - GETDATE() AS d
        UNION ALL SELECT 2, 2, NULL, NULL; SELECT name FROM sys.databases ORDER BY name; RAISERROR ('x', 11, 2)
        USE shop; INSERT orders VALUES (7, N'ä'); SELECT * FROM orders; DELETE orders";
    let instance = place.text("instance");
    let both = |arguments: &[&str]| {
        let mut all = vec!["sql", "--instance", &instance, "-Q", script];
        all.extend(arguments);
        place.run(&all)
    };
    for arguments in [&[][..], &["--json"], &["--vertical"]] {
        let alone = both(arguments);
        let server = Served::start(&place, &["--local-only"]);
        let served = both(arguments);
        assert_eq!(server.stop(), Some(0));
        assert_eq!(served.out, alone.out);
        assert_eq!(served.err, alone.err);
        assert_eq!(served.code, alone.code);
    }
}

#[test]
fn a_database_in_use_by_a_session_is_not_dropped_and_kill_ends_the_session() {
    let place = Place::new();
    make(&place);
    let _server = Served::start(&place, &["--local-only"]);
    let instance = place.text("instance");
    let mut waiting = place
        .command(&[
            "sql",
            "--instance",
            &instance,
            "-Q",
            "USE shop; BEGIN TRAN; INSERT orders VALUES (9, 'x'); WAITFOR DELAY '00:10:00'",
        ])
        .stderr(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let find = "SELECT MAX(session_id) FROM sys.dm_exec_sessions WHERE database_name = 'shop' AND status = 'running'";
    let begun = Instant::now();
    let number = loop {
        let number = answer(&place, find);
        if number != "NULL" {
            break number;
        }
        assert!(begun.elapsed() < Duration::from_secs(30));
    };
    let refused = query(&place, "DROP DATABASE shop");
    assert!(refused.err.contains("Msg 3702"), "{}", refused.err);
    assert!(query(&place, "KILL 32000").err.contains("Msg 6106"));
    assert!(query(&place, &format!("KILL {number}")).err.is_empty());
    assert_eq!(waiting.wait().unwrap().code(), Some(1));
    let begun = Instant::now();
    while answer(&place, find) != "NULL" {
        assert!(begun.elapsed() < Duration::from_secs(30));
    }
    assert_eq!(answer(&place, "USE shop; SELECT COUNT(*) FROM orders"), "0");
    assert_eq!(query(&place, "DROP DATABASE shop").code, Some(0));
}

#[test]
fn the_session_of_a_command_has_ended_when_the_command_has() {
    let place = Place::new();
    let _server = Served::start(&place, &["--local-only"]);
    let (data, log) = (place.text("c.mdf"), place.text("c.ldf"));
    for _ in 0..10 {
        answer(
            &place,
            &format!(
                "CREATE DATABASE c ON (NAME = c, FILENAME = '{data}') LOG ON (NAME = l, FILENAME = '{log}')"
            ),
        );
        answer(&place, "USE c; CREATE TABLE t (x int); INSERT t VALUES (1)");
        answer(&place, "DROP DATABASE c");
    }
}

#[test]
fn a_second_server_is_refused_and_a_killed_one_is_succeeded() {
    let place = Place::new();
    make(&place);
    let server = Served::start(&place, &["--local-only"]);
    let instance = place.text("instance");
    let second = place.run(&["serve", "--instance", &instance, "--local-only"]);
    assert_eq!(second.code, Some(1));
    // It says that alone: it has tried to open no database.
    assert!(
        second
            .err
            .starts_with("error: a server of this instance is running already"),
        "{}",
        second.err
    );
    answer(&place, "USE shop; INSERT orders VALUES (1, 'kept')");
    server.kill();
    let server = Served::start(&place, &["--local-only"]);
    assert_eq!(answer(&place, "USE shop; SELECT note FROM orders"), "kept");
    assert_eq!(server.stop(), Some(0));
}

#[test]
fn an_interrupt_cancels_what_runs_in_the_server() {
    let place = Place::new();
    let _server = Served::start(&place, &["--local-only"]);
    let instance = place.text("instance");
    let child = place
        .command(&[
            "sql",
            "--instance",
            &instance,
            "-Q",
            "PRINT 'begun'; WAITFOR DELAY '00:10:00'",
        ])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let running = "SELECT COUNT(*) FROM sys.dm_exec_requests WHERE session_id <> @@SPID";
    let begun = Instant::now();
    while answer(&place, running) != "1" {
        assert!(begun.elapsed() < Duration::from_secs(30));
    }
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let ended = Run::of(&child.wait_with_output().unwrap());
    assert_ne!(ended.code, Some(0), "{}", ended.err);
    assert_eq!(answer(&place, running), "0");
}

#[test]
fn writers_wait_for_one_another_and_a_wait_can_be_cancelled() {
    let place = Place::new();
    make(&place);
    let server = Served::start(&place, &["--local-only"]);
    let instance = place.text("instance");
    let begin = |text: &str, running: u32| {
        let mut command = place.command(&["sql", "--instance", &instance, "-Q", text]);
        let child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let others = "SELECT COUNT(*) FROM sys.dm_exec_requests WHERE session_id <> @@SPID";
        let begun = Instant::now();
        while answer(&place, others) != running.to_string() {
            assert!(begun.elapsed() < Duration::from_secs(30), "{text}");
        }
        child.unwrap()
    };
    let insert =
        |id: u32| format!("USE shop; SET LOCK_TIMEOUT 60000; INSERT orders VALUES ({id}, 'x')");
    let holds =
        "USE shop; BEGIN TRAN; INSERT orders VALUES (1, 'x'); WAITFOR DELAY '00:00:04'; COMMIT";
    let first = begin(holds, 1);
    let second = begin(&insert(2), 2);
    let cancelled = begin(&insert(3), 3);
    let impatient = query(
        &place,
        "USE shop; SET LOCK_TIMEOUT 50; INSERT orders VALUES (4, 'x')",
    );
    assert_eq!(impatient.code, Some(1));
    assert!(impatient.err.contains("Msg 1222"), "{}", impatient.err);
    let pid = rustix::process::Pid::from_child(&cancelled);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let ended = Run::of(&cancelled.wait_with_output().unwrap());
    assert_ne!(ended.code, Some(0));
    assert!(!ended.err.contains("Msg 1222"), "{}", ended.err);
    assert_eq!(
        answer(&place, "USE shop; SELECT COUNT(*) FROM orders"),
        "0",
        "the first still waits"
    );
    for child in [first, second] {
        let ended = Run::of(&child.wait_with_output().unwrap());
        assert_eq!(ended.code, Some(0), "{}", ended.err);
    }
    assert_eq!(answer(&place, "USE shop; SELECT SUM(id) FROM orders"), "3");
    assert_eq!(server.stop(), Some(0));
}

#[test]
fn plain_commands_back_up_and_restore_what_the_server_has_open() {
    let place = Place::new();
    make(&place);
    answer(&place, "USE shop; INSERT orders VALUES (1, 'kept')");
    let instance = place.text("instance");
    let with = |arguments: &[&str]| {
        let mut all = arguments.to_vec();
        all.extend(["--instance", &instance]);
        place.run(&all)
    };
    let alone = with(&["backup", "shop", "--to", &place.text("alone.bak")]);
    assert_eq!(alone.code, Some(0), "{}", alone.err);
    let server = Served::start(&place, &["--local-only"]);
    let media = place.text("served.bak");
    let served = with(&["backup", "shop", "--to", &media]);
    assert_eq!(served.code, Some(0), "{}", served.err);
    let shape = |run: &Run, name: &str| {
        let both = run.out.clone() + &run.err;
        let digits = |c: char| if c.is_ascii_digit() { '0' } else { c };
        both.replace(name, "")
            .chars()
            .map(digits)
            .collect::<String>()
    };
    assert_eq!(
        shape(&served, "served").lines().count(),
        shape(&alone, "alone").lines().count(),
        "{}\n{}",
        served.out,
        alone.out
    );
    answer(&place, "USE shop; DELETE orders");
    let restored = with(&["restore", &media, "--database", "shop", "--replace"]);
    assert_eq!(restored.code, Some(0), "{}", restored.err);
    assert_eq!(answer(&place, "USE shop; SELECT note FROM orders"), "kept");
    let secret = place.path("secret");
    std::fs::write(&secret, "a passphrase that is long\n").unwrap();
    let secret = secret.display().to_string();
    let refused = with(&[
        "backup",
        "shop",
        "--to",
        &media,
        "--passphrase-file",
        &secret,
    ]);
    assert_eq!(refused.code, Some(1));
    assert!(
        refused.err.contains("do not go through it"),
        "{}",
        refused.err
    );
    assert_eq!(server.stop(), Some(0));
}

#[test]
fn a_command_of_sql_backup_goes_through_the_server() {
    let place = Place::new();
    make(&place);
    answer(&place, "USE shop; INSERT orders VALUES (1, 'kept')");
    let instance = place.text("instance");
    let with = |command: &str, further: &[&str]| {
        let all = ["sqlbackup", "-SQL", command, "--instance", &instance];
        place.run(&[&all[..], further].concat())
    };
    let backup = |name: &str| {
        let command = format!("BACKUP DATABASE shop TO DISK = [{name}.bak] WITH VERIFY, CHECKSUM");
        let hook = "cat > hooked; echo \"code $WINDLASS_EXIT_CODE\" >> hooked";
        let run = with(&command, &["--on-success", hook]);
        assert_eq!(run.code, Some(0), "{}\n{}", run.out, run.err);
        let hooked = std::fs::read_to_string(place.path("hooked")).expect("the hook has run");
        assert!(place.path(&format!("{name}.bak")).exists());
        (run, hooked)
    };
    let refused = || {
        let hook = "cat > failed; echo \"code $WINDLASS_SQL_ERROR_CODE\" >> failed";
        let command = "BACKUP DATABASE nosuch TO DISK = [x.bak]";
        let run = with(command, &["--on-failure", hook, "--json"]);
        assert_eq!(run.code, Some(1), "{}", run.out);
        let hooked = std::fs::read_to_string(place.path("failed")).expect("the hook has run");
        (run.out, run.err, hooked)
    };
    let (alone, alone_hooked) = backup("alone");
    let alone_refused = refused();
    let server = Served::start(&place, &["--local-only"]);
    let (served, hooked) = backup("served");
    let lines = |run: &Run| (run.out.lines().count(), run.err.clone());
    assert_eq!(
        lines(&served),
        lines(&alone),
        "{}\n{}",
        served.out,
        alone.out
    );
    assert_eq!(hooked.lines().count(), alone_hooked.lines().count());
    assert!(hooked.contains("is valid"), "{hooked}");
    assert!(hooked.ends_with("code 0\n"), "{hooked}");
    assert_eq!(refused(), alone_refused);

    let copied = "BACKUP DATABASE shop TO DISK = [c.bak] WITH COPYTO = [deep/er]";
    let run = with(copied, &["--make-folders"]);
    assert_eq!(run.code, Some(0), "{}\n{}", run.out, run.err);
    assert!(place.path("deep/er/c.bak").exists());
    let single = "BACKUP DATABASE shop TO DISK = [s.bak] WITH SINGLERESULTSET";
    let run = with(single, &["--on-success", "cat > single"]);
    assert_eq!(run.code, Some(0), "{}\n{}", run.out, run.err);
    let hooked = std::fs::read_to_string(place.path("single")).expect("the hook has run");
    assert!(!hooked.contains("exit code"), "{hooked}");
    // What the command would write to its own drive, the server would not.
    let drive = format!("d={}", place.text(""));
    let on_drive = r"BACKUP DATABASE shop TO DISK = [d:\x.bak]";
    let run = with(on_drive, &["--drive", &drive]);
    assert_eq!(run.code, Some(1), "{}", run.out);
    assert!(run.err.contains("The drive D: is"), "{}", run.err);
    assert!(!place.path("x.bak").exists());
    // Scripts too. A drive that they do not name is no mistake.
    let script = |text: &str| {
        let own = [
            "sql",
            "-Q",
            text,
            "--instance",
            &instance,
            "--drive",
            &drive,
        ];
        place.run(&own)
    };
    let run = script(r"BACKUP DATABASE shop TO DISK = 'd:\x.bak'");
    assert_eq!(run.code, Some(1), "{}", run.out);
    assert!(run.err.contains("Msg 50328"), "{}", run.err);
    assert!(!place.path("x.bak").exists());
    assert_eq!(script("SELECT 1").code, Some(0));
    let folder = place.text("").trim_end_matches('/').to_owned();
    answer(&place, &format!("EXEC sp_windlass_drive 'd', '{folder}'"));
    let run = script(r"BACKUP DATABASE shop TO DISK = 'd:\x.bak'");
    assert_eq!(run.code, Some(0), "{}", run.err);
    assert!(place.path("x.bak").exists());
    assert_eq!(server.stop(), Some(0));
}

#[test]
fn the_server_exports_what_it_has_open() {
    let place = Place::new();
    make(&place);
    answer(&place, "USE shop; INSERT orders VALUES (1, 'it''s')");
    let instance = place.text("instance");
    let export = |database: &str, to: &str, further: &[&str]| {
        let all = ["export", database, "--to", to, "--instance", &instance];
        place.run(&[&all[..], further].concat())
    };
    let same = |served: &Run, alone: &Run| {
        let both = |run: &Run| format!("{:?}\n{}\n{}", run.code, run.out, run.err);
        assert_eq!(both(served).replace("served", "alone"), both(alone));
    };
    let alone = export("shop", "it's alone.db", &[]);
    assert_eq!(alone.code, Some(0), "{}", alone.err);
    let alone_json = export("SHOP", "alone.json.db", &["--json"]);
    let alone_refused = [
        export("nosuch", "x.db", &[]),
        export("shop", "alone.json.db", &[]),
        export("shop", "nosuch/x.db", &[]),
    ];
    let server = Served::start(&place, &["--local-only"]);
    same(&export("shop", "it's served.db", &[]), &alone);
    same(&export("SHOP", "served.json.db", &["--json"]), &alone_json);
    let refused = [
        export("nosuch", "x.db", &[]),
        export("shop", "alone.json.db", &[]),
        export("shop", "nosuch/x.db", &[]),
    ];
    for (served, alone) in refused.iter().zip(&alone_refused) {
        assert_eq!(served.code, Some(1), "{}", served.out);
        same(served, alone);
    }
    let copy = rusqlite::Connection::open(place.path("it's served.db")).expect("a database");
    let note: String = copy
        .query_row("SELECT note FROM orders", [], |row| row.get(0))
        .expect("its row");
    assert_eq!(note, "it's");
    assert_eq!(server.stop(), Some(0));
    answer(
        &place,
        &format!("EXEC sp_windlass_export 'shop', '{}'", place.text("own.db")),
    );
    assert!(place.path("own.db").exists());
}

#[test]
fn drives_that_are_mapped_while_the_server_runs_are_those_of_the_next_session() {
    let place = Place::new();
    make(&place);
    let server = Served::start(&place, &["--local-only"]);
    std::fs::create_dir(place.path("backups")).unwrap();
    let folder = place.text("backups");
    answer(&place, &format!("EXEC sp_windlass_drive 'e', '{folder}'"));
    answer(&place, r"BACKUP DATABASE shop TO DISK = 'e:\shop.bak'");
    assert!(place.path("backups/shop.bak").exists());
    answer(&place, "EXEC sp_windlass_drive 'e', ''");
    let refused = query(&place, r"BACKUP DATABASE shop TO DISK = 'e:\shop.bak'");
    assert_eq!(refused.code, Some(1), "{}", refused.out);
    assert_eq!(server.stop(), Some(0));
}

#[test]
fn settings_are_read_again_when_the_server_is_asked_to() {
    let place = Place::new();
    make(&place);
    let (backups, allowed) = (place.text("backups"), place.text("allowed"));
    for folder in [&backups, &allowed] {
        std::fs::create_dir(folder).unwrap();
    }
    let config = place.text("windlass.toml");
    std::fs::write(&config, "").unwrap();
    let server = Served::start(&place, &["--local-only", "--config", &config]);
    let media = place.text("backups/shop.bak");
    answer(&place, &format!("BACKUP DATABASE shop TO DISK = '{media}'"));
    let restore = |name: &str| {
        let moved = format!(
            "MOVE 'shop' TO '{0}/{name}.mdf', MOVE 'shop_log' TO '{0}/{name}.ldf'",
            place.text("backups")
        );
        query(
            &place,
            &format!("RESTORE DATABASE {name} FROM DISK = '{media}' WITH {moved}"),
        )
    };
    assert_eq!(restore("one").code, Some(0));

    std::fs::write(
        &config,
        format!("restore_folders = [\"{allowed}\"]\n[drives]\ne = \"{backups}\""),
    )
    .unwrap();
    server.signal(rustix::process::Signal::HUP);
    let is_mapped = || answer(&place, "EXEC sp_windlass_drive").contains(&backups);
    let begun = Instant::now();
    while !is_mapped() {
        assert!(
            begun.elapsed() < Duration::from_secs(20),
            "never read again"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
    let refused = restore("two");
    assert_eq!(refused.code, Some(1), "{}", refused.out);
    assert!(refused.err.contains("Msg 50020"), "{}", refused.err);

    // What cannot be read changes nothing.
    std::fs::write(&config, "restore_folders = [").unwrap();
    server.signal(rustix::process::Signal::HUP);
    assert_eq!(restore("three").code, Some(1));
    assert!(is_mapped());
    assert_eq!(server.stop(), Some(0));
}

#[test]
fn the_end_waits_for_what_runs_as_long_as_it_is_told_to() {
    let place = Place::new();
    make(&place);
    let server = Served::start(&place, &["--local-only", "--patience", "forever"]);
    let instance = place.text("instance");
    let run = |text: &str| {
        let mut command = place.command(&["sql", "--instance", &instance, "-Q", text]);
        let child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let is_there = "SELECT COUNT(*) FROM sys.dm_exec_requests";
        let begun = Instant::now();
        while answer(&place, is_there) != "2" {
            assert!(begun.elapsed() < Duration::from_secs(20), "it never ran");
            std::thread::sleep(Duration::from_millis(20));
        }
        child.unwrap()
    };
    let waiting = run("WAITFOR DELAY '00:00:02'; PRINT 'ended by itself'");
    assert_eq!(server.stop(), Some(0));
    let ended = Run::of(&waiting.wait_with_output().unwrap());
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    assert!((ended.out + &ended.err).contains("ended by itself"));

    let server = Served::start(&place, &["--local-only", "--patience", "forever"]);
    let waiting = run("WAITFOR DELAY '01:00:00'");
    server.signal(rustix::process::Signal::TERM);
    std::thread::sleep(Duration::from_millis(200));
    let begun = Instant::now();
    assert_eq!(server.stop(), Some(0), "a second signal");
    assert!(begun.elapsed() < Duration::from_secs(30));
    assert_ne!(Run::of(&waiting.wait_with_output().unwrap()).code, Some(0));
}

#[test]
fn a_service_manager_is_told_when_the_server_listens_and_that_it_lives() {
    let place = Place::new();
    make(&place);
    let path = place.path("notify");
    let manager = std::os::unix::net::UnixDatagram::bind(&path).unwrap();
    manager
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    let instance = place.text("instance");
    let mut child = place
        .command(&["serve", "--instance", &instance, "--local-only"])
        .env("NOTIFY_SOCKET", &path)
        .env("WATCHDOG_USEC", "1000000")
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let heard = || {
        let mut bytes = [0; 512];
        let length = manager.recv(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes[..length]).into_owned()
    };
    let first = heard();
    assert!(first.starts_with("READY=1\n"), "{first}");
    assert!(place.path("instance/windlass.sock").exists(), "it listens");
    assert_eq!(heard(), "WATCHDOG=1");
    assert_eq!(heard(), "WATCHDOG=1", "and again");
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let ended = std::iter::from_fn(|| Some(heard())).find(|text| text != "WATCHDOG=1");
    assert!(ended.unwrap().starts_with("STOPPING=1\n"));
}

#[test]
fn relative_names_begin_in_the_folder_of_the_command() {
    let place = Place::new();
    make(&place);
    let server = Served::start(&place, &["--local-only"]);
    std::fs::create_dir(place.path("nightly")).unwrap();
    let instance = place.text("instance");
    let text = "BACKUP DATABASE shop TO DISK = 'shop.bak'";
    let mut command = place.command(&["sql", "--instance", &instance, "-Q", text]);
    command.current_dir(place.path("nightly"));
    let made = Run::of(&command.output().unwrap());
    assert_eq!(made.code, Some(0), "{}", made.err);
    assert!(place.path("nightly/shop.bak").exists());
    assert_eq!(server.stop(), Some(0));
}

#[test]
fn a_client_that_does_not_encrypt_is_refused_unless_the_server_was_told_otherwise() {
    const PRELOGIN: [u8; 26] = [
        0x12, 1, 0, 26, 0, 0, 0, 0, 0, 0, 11, 0, 6, 1, 0, 17, 0, 1, 0xFF, 16, 0, 0, 0, 0, 0, 2,
    ];
    let place = Place::new();
    for (further, expected, is_closed) in [(&[][..], 3, true), (&["--plain"], 2, false)] {
        let server = Served::start(&place, further);
        let mut client = std::net::TcpStream::connect(("127.0.0.1", server.port)).unwrap();
        client
            .set_read_timeout(Some(Duration::from_millis(500)))
            .unwrap();
        client.write_all(&PRELOGIN).unwrap();
        let mut answer = [0; 512];
        let length = client.read(&mut answer).unwrap();
        let at = 8 + usize::from(u16::from_be_bytes([answer[14], answer[15]]));
        assert_eq!(answer[at], expected, "{:?}", &answer[..length]);
        assert_eq!(matches!(client.read(&mut answer), Ok(0)), is_closed);
        assert_eq!(server.stop(), Some(0), "with a client that says nothing");
    }
}

/// What the command line refuses, it refuses through a server, too.
#[test]
fn a_differential_without_its_base_is_refused_through_the_server() {
    let place = Place::new();
    make(&place);
    let instance = place.text("instance");
    let server = Served::start(&place, &["--local-only"]);
    let backup = |further: &[&str]| {
        let words = ["backup", "shop", "--instance", &instance];
        place.run(&[&words[..], further].concat())
    };
    assert_eq!(backup(&["--to", "full.bak"]).code, Some(0));
    let named = backup(&["--to", "d.bak", "--differential", "--base", "full.bak"]);
    assert_eq!(named.code, Some(1), "{}", named.err);
    assert!(
        named.err.contains("--base does not go through"),
        "{}",
        named.err
    );
    assert_eq!(backup(&["--to", "d.bak", "--differential"]).code, Some(0));
    std::fs::remove_file(place.path("full.bak")).expect("it goes");
    let refused = backup(&["--to", "d2.bak", "--differential"]);
    assert_eq!(refused.code, Some(1), "{}", refused.err);
    assert!(refused.err.contains("50012"), "{}", refused.err);
    assert!(!place.path("d2.bak").exists());
    let forced = backup(&["--to", "d2.bak", "--differential", "--base-missing-ok"]);
    assert_eq!(forced.code, Some(0), "{}", forced.err);
    assert_eq!(server.stop(), Some(0));
}
