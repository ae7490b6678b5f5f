//! The page of `windlass serve`, and its answers for programs.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value as Json;

use crate::serving::Served;
use crate::support::Place;

/// An answer: its status, its head in lower case, and its body.
struct Answer {
    status: u16,
    head: String,
    body: String,
}

fn connect(port: u16) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
    let patience = Some(Duration::from_secs(60));
    stream.set_read_timeout(patience).expect("a timeout");
    stream
}

/// Sends a request as it is.
fn ask(port: u16, request: &str) -> Answer {
    let mut stream = connect(port);
    stream.write_all(request.as_bytes()).expect("it takes it");
    let mut all = Vec::new();
    stream.read_to_end(&mut all).expect("an answer");
    let all = String::from_utf8(all).expect("text");
    let (head, body) = all.split_once("\r\n\r\n").expect("a head");
    Answer {
        status: head[9..12].parse().expect("a status"),
        head: head.to_lowercase(),
        body: body.to_owned(),
    }
}

fn get(port: u16, path: &str) -> Answer {
    let host = "Host: localhost\r\nConnection: close";
    ask(port, &format!("GET {path} HTTP/1.1\r\n{host}\r\n\r\n"))
}

fn json(port: u16, path: &str) -> Json {
    let answer = get(port, path);
    assert_eq!(answer.status, 200, "{path}: {}", answer.body);
    assert!(answer.head.contains("content-type: application/json"));
    serde_json::from_str(&answer.body).expect(&answer.body)
}

fn sql(place: &Place, text: &str) {
    let instance = place.text("instance");
    place.succeed(&["sql", "--instance", &instance, "-Q", text]);
}

/// An instance with a full backup of `shop`, and a database whose name is markup.
fn make(place: &Place) {
    for (name, file) in [("shop", "shop"), ("<img src=x onerror=alert(1)>", "odd")] {
        let (data, log) = (
            place.text(&format!("{file}.mdf")),
            place.text(&format!("{file}.ldf")),
        );
        sql(
            place,
            &format!(
                "CREATE DATABASE [{name}] ON (NAME = d, FILENAME = '{data}') LOG ON (NAME = l, FILENAME = '{log}')"
            ),
        );
    }
    let media = place.text("shop.bak");
    sql(
        place,
        &format!("BACKUP DATABASE shop TO DISK = '{media}' WITH RETAINDAYS = 3"),
    );
}

fn serve(place: &Place) -> Served {
    Served::start(place, &["--http", "127.0.0.1:0"])
}

#[test]
fn the_page_shows_the_databases_and_runs_nothing_of_others() {
    let place = Place::new();
    make(&place);
    let server = serve(&place);
    let page = get(server.page, "/");
    assert_eq!(page.status, 200, "{}", page.body);
    for part in [
        "shop",
        "never backed up",
        "shop.bak",
        "Page engine",
        "No backup, restore",
    ] {
        assert!(page.body.contains(part), "{part}\n{}", page.body);
    }
    assert!(page.body.contains("&lt;img src=x onerror=alert(1)&gt;"));
    assert!(!page.body.contains("<img"), "{}", page.body);
    for forbidden in [
        "http://", "https://", "url(", "@import", " style=", " onclick",
    ] {
        assert!(!page.body.contains(forbidden), "{forbidden}");
    }
    let (_, nonce) = page
        .head
        .split_once("script-src 'nonce-")
        .expect(&page.head);
    let nonce = nonce.split('\'').next().unwrap();
    assert_eq!(
        page.body
            .to_lowercase()
            .matches(&format!("nonce=\"{nonce}\""))
            .count(),
        2
    );
    assert!(
        !get(server.page, "/").head.contains(nonce),
        "each page has its own"
    );
    for part in [
        "default-src 'none'",
        "frame-ancestors 'none'",
        "x-content-type-options: nosniff",
        "referrer-policy: no-referrer",
        "cache-control: no-store",
    ] {
        assert!(page.head.contains(part), "{part}\n{}", page.head);
    }
}

#[test]
fn programs_get_the_same_as_json_and_metrics() {
    let place = Place::new();
    make(&place);
    let server = serve(&place);
    let databases = json(server.page, "/api/databases");
    assert_eq!(databases["rpo_minutes"], 1440);
    let of = |name: &str| {
        let all = databases["databases"].as_array().unwrap().iter();
        all.clone()
            .find(|one| one["database"] == name)
            .cloned()
            .unwrap()
    };
    assert_eq!(of("shop")["verdict"], "kept");
    assert!(of("shop")["last_full"].is_string());
    assert_eq!(
        of("<img src=x onerror=alert(1)>")["verdict"],
        "never backed up"
    );
    let history = json(server.page, "/api/history?last=5");
    assert_eq!(history.as_array().unwrap().len(), 1);
    assert_eq!(history[0]["database"], "shop");
    assert_eq!(history[0]["media"], "there");
    assert_eq!(get(server.page, "/api/history?last=0").status, 400);
    assert_eq!(json(server.page, "/api/requests"), Json::Array(Vec::new()));
    assert_eq!(json(server.page, "/api/sessions"), Json::Array(Vec::new()));
    assert_eq!(get(server.page, "/healthz").body, "ok\n");
    let metrics = get(server.page, "/metrics");
    assert!(
        metrics.head.contains("text/plain; version=0.0.4"),
        "{}",
        metrics.head
    );
    let samples = |text: &str| -> Vec<String> {
        let lines = text
            .lines()
            .filter(|line| !line.starts_with('#') && !line.is_empty());
        let sample = |line: &str| {
            let (name, value) = line.rsplit_once(' ').expect(line);
            value.parse::<f64>().expect(line);
            name.to_owned()
        };
        lines.map(sample).collect()
    };
    let instance = place.text("instance");
    let written = place.succeed(&["metrics", "--instance", &instance]).out;
    assert!(samples(&written).len() > 10);
    assert_eq!(samples(&metrics.body), samples(&written));
}

#[test]
fn other_names_other_sites_and_changes_are_refused() {
    let place = Place::new();
    let server = serve(&place);
    let status = |method: &str, path: &str, further: &str| {
        ask(
            server.page,
            &format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n{further}\r\n"),
        )
        .status
    };
    let own = "Host: 127.0.0.1:99\r\n";
    assert_eq!(status("GET", "/", own), 200);
    assert_eq!(status("HEAD", "/", "Host: [::1]\r\n"), 200);
    for path in ["/", "/events", "/metrics", "/healthz", "/api/history"] {
        assert_eq!(status("GET", path, "Host: evil.example\r\n"), 403, "{path}");
        for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"] {
            assert_eq!(status(method, path, own), 405, "{method} {path}");
        }
    }
    assert_eq!(
        status("GET", "/", "Host: localhost\r\nHost: evil.example\r\n"),
        403
    );
    assert_eq!(status("GET", "http://evil.example/", own), 403);
    let site = "Host: localhost\r\nSec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: no-cors\r\n";
    assert_eq!(status("GET", "/api/sessions", site), 403);
    assert_eq!(
        status("GET", "/", "Host: localhost\r\nContent-Length: 9\r\n"),
        413
    );
    assert_eq!(status("GET", "/../catalog.db", own), 404);
    let long = format!("Host: localhost\r\nX: {}\r\n", "x".repeat(20 << 10));
    assert_eq!(status("GET", "/", &long), 431);
    let many = format!("Host: localhost\r\n{}", "X: x\r\n".repeat(100));
    assert_eq!(status("GET", "/", &many), 431);
}

/// Asks with curl, over TLS, with the made authority; the status and the body.
fn ask_with_tls(place: &Place, port: u16, path: &str, login: &[&str]) -> (String, String) {
    let run = std::process::Command::new("curl")
        .args(["--silent", "--show-error", "--max-time", "30", "--cacert"])
        .arg(place.path("instance/server-ca.pem"))
        .args(["--write-out", "\n%{http_code}"])
        .args(login)
        .arg(format!("https://localhost:{port}{path}"))
        .output()
        .expect("curl runs");
    let text = String::from_utf8_lossy(&run.stdout).into_owned();
    let errors = String::from_utf8_lossy(&run.stderr);
    let (body, status) = text.rsplit_once('\n').unwrap_or(("", &text));
    assert!(!status.is_empty(), "{errors}");
    (status.to_owned(), body.to_owned())
}

#[test]
fn from_elsewhere_the_page_asks_for_a_login_over_tls() {
    let place = Place::new();
    make(&place);
    sql(
        &place,
        "CREATE LOGIN reader WITH PASSWORD = 'reads the history';
         ALTER SERVER ROLE history_reader ADD MEMBER reader;
         CREATE LOGIN nobody WITH PASSWORD = 'may do nothing'",
    );
    let server = Served::start(&place, &["--http", "0.0.0.0:0"]);
    let status = |path: &str, login: &[&str]| ask_with_tls(&place, server.page, path, login).0;
    assert_eq!(status("/", &[]), "401");
    assert_eq!(status("/healthz", &["-u", "reader:wrong"]), "401");
    assert_eq!(status("/metrics", &["-u", "nobody:may do nothing"]), "403");
    let reader = ["-u", "reader:reads the history"];
    for path in ["/", "/metrics", "/api/jobs", "/api/databases"] {
        assert_eq!(status(path, &reader), "200", "{path}");
    }
    // A password that was right is remembered only as long as it is right.
    sql(
        &place,
        "ALTER LOGIN reader WITH PASSWORD = 'something else'",
    );
    assert_eq!(status("/", &reader), "401");
    let changed = ["-u", "reader:something else"];
    assert_eq!(status("/", &changed), "200");
    sql(&place, "ALTER LOGIN reader DISABLE");
    assert_eq!(status("/", &changed), "401");
    // Without TLS there is nothing.
    let mut plain = connect(server.page);
    plain
        .write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .expect("it listens");
    let mut answer = Vec::new();
    // It may be cut off.
    let _ended = plain.read_to_end(&mut answer);
    assert!(!String::from_utf8_lossy(&answer).contains("HTTP/1.1"));
}

#[test]
fn the_page_shows_the_jobs() {
    let place = Place::new();
    make(&place);
    sql(
        &place,
        "EXEC msdb.dbo.sp_add_job @job_name = 'nightly <b>';
         EXEC msdb.dbo.sp_add_jobstep @job_name = 'nightly <b>', @step_name = 'say', @command = 'PRINT 1';
         EXEC msdb.dbo.sp_add_jobschedule @job_name = 'nightly <b>', @name = 'at two', @freq_type = 4,
              @freq_interval = 1, @active_start_time = 20000;
         EXEC msdb.dbo.sp_add_jobserver @job_name = 'nightly <b>'",
    );
    let server = serve(&place);
    let jobs = json(server.page, "/api/jobs");
    assert_eq!(jobs[0]["job"], "nightly <b>");
    let next = jobs[0]["next_run"].as_str().expect("it is scheduled");
    assert!(next.ends_with("T02:00:00"), "{next}");
    let page = get(server.page, "/").body;
    assert!(page.contains("nightly &lt;b&gt;"));
    sql(
        &place,
        "EXEC msdb.dbo.sp_start_job @job_name = 'nightly <b>'",
    );
    let ended = (0..100).find_map(|_| {
        std::thread::sleep(std::time::Duration::from_millis(100));
        let jobs = json(server.page, "/api/jobs");
        jobs[0]["outcome"].as_str().map(str::to_owned)
    });
    assert_eq!(ended.as_deref(), Some("succeeded"));
}

/// The lines of `/events` from now on.
fn listen(port: u16) -> (u16, BufReader<TcpStream>) {
    let mut stream = connect(port);
    stream
        .write_all(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .expect("it takes it");
    let mut lines = BufReader::new(stream);
    let mut first = String::new();
    lines.read_line(&mut first).expect("a status");
    (first[9..12].parse().expect("a status"), lines)
}

/// The next event.
fn next(lines: &mut BufReader<TcpStream>) -> Json {
    for _ in 0..20 {
        let mut line = String::new();
        assert_ne!(
            lines.read_line(&mut line).expect("an event"),
            0,
            "the events go on"
        );
        if let Some(data) = line.strip_prefix("data: ") {
            return serde_json::from_str(data).expect(data);
        }
    }
    panic!("only comments come");
}

#[test]
fn events_show_a_backup_from_its_begin_to_its_end() {
    let place = Place::new();
    let file = place.text("app.db");
    let app = rusqlite::Connection::open(&file).unwrap();
    app.execute_batch("CREATE TABLE much AS SELECT randomblob(4 << 20) AS bytes")
        .unwrap();
    drop(app);
    let instance = place.text("instance");
    sql(
        &place,
        &format!("CREATE DATABASE app ON (FILENAME = '{file}') FOR ATTACH"),
    );
    let server = serve(&place);
    let (status, mut events) = listen(server.page);
    assert_eq!(status, 200);
    assert_eq!(next(&mut events), Json::Array(Vec::new()));
    let backup = format!(
        "BACKUP DATABASE app TO DISK = '{}' WITH MAXRATE = 1",
        place.text("slow.bak")
    );
    let mut child = place
        .command(&["sql", "--instance", &instance, "-Q", &backup])
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let is_half_done = |event: &Json| {
        let percent = event[0]["percent_complete"].as_f64();
        event[0]["command"] == "BACKUP DATABASE"
            && percent.is_some_and(|done| done > 0.0 && done < 100.0)
    };
    let mut event = next(&mut events);
    while !is_half_done(&event) {
        assert!(
            child.try_wait().unwrap().is_none(),
            "the backup ended unseen"
        );
        event = next(&mut events);
    }
    assert_eq!(event[0]["database_name"], "app");
    assert!(
        event[0]["shown"].as_str().unwrap().contains(" MB/s"),
        "{event}"
    );
    assert!(event[0]["stages"]["write"]["busy_time"].is_number());
    let page = get(server.page, "/").body;
    assert!(
        page.contains("<progress") && page.contains("data-stage=\"transform\""),
        "{page}"
    );
    let key = format!(
        "data-request=\"{}-{}\"",
        event[0]["session_id"], event[0]["request_id"]
    );
    assert!(page.contains(&key), "{key}\n{page}");
    assert_eq!(child.wait().unwrap().code(), Some(0));
    while next(&mut events) != Json::Array(Vec::new()) {}
    assert!(!get(server.page, "/").body.contains("<progress"));
}

#[test]
fn the_number_of_listeners_is_bounded_and_the_server_ends_in_spite_of_them() {
    let place = Place::new();
    let server = serve(&place);
    let listeners: Vec<_> = (0..16).map(|_| listen(server.page)).collect();
    assert!(listeners.iter().all(|(status, _)| *status == 200));
    assert_eq!(listen(server.page).0, 503);
    assert_eq!(get(server.page, "/healthz").status, 200);
    assert_eq!(server.stop(), Some(0));
}
