//! Clients that do not behave: the server stays small, and others are served.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::serving::Served;
use crate::support::{Place, registered};

/// More memory than this would be a leak, not a server.
const MEMORY_KB: u64 = 400 << 10;

fn connect(server: &Served) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", server.port)).expect("it listens");
    let patience = Some(Duration::from_secs(60));
    stream.set_read_timeout(patience).expect("a timeout");
    stream
}

/// A packet of TDS, with any length in its head.
fn packet(kind: u8, length: u16, payload: &[u8]) -> Vec<u8> {
    let [high, low] = length.to_be_bytes();
    let mut bytes = vec![kind, 1, high, low, 0, 0, 1, 0];
    bytes.extend(payload);
    bytes
}

/// The most memory that the server has had, in KB.
fn memory(server: &Served) -> u64 {
    let status = format!("/proc/{}/status", server.process());
    let status = std::fs::read_to_string(status).expect("it runs");
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let number = line.and_then(|line| line.split_whitespace().nth(1));
    number
        .and_then(|number| number.parse().ok())
        .expect("a number")
}

#[track_caller]
fn is_served(place: &Place) {
    let instance = place.text("instance");
    let run = place.run(&[
        "sql",
        "--instance",
        &instance,
        "-h",
        "-1",
        "-Q",
        "SELECT 6 * 7",
    ]);
    assert_eq!(run.code, Some(0), "{}", run.err);
    assert!(run.out.contains("42"), "{}", run.out);
}

#[test]
fn clients_that_say_nothing_or_a_byte_a_second_are_bounded_in_number_and_time() {
    let place = Place::new();
    let server = Served::start(&place, &["--plain"]);
    let mut silent: Vec<_> = (0..200).map(|_| connect(&server)).collect();
    is_served(&place);
    // Those who are too many are closed at once, not kept.
    let begun = Instant::now();
    let is_closed = |stream: &mut TcpStream| {
        let soon = Some(Duration::from_millis(1));
        stream.set_read_timeout(soon).expect("a timeout");
        matches!(stream.read(&mut [0]), Ok(0))
    };
    while silent
        .iter_mut()
        .filter_map(|one| is_closed(one).then_some(()))
        .count()
        < 136
    {
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "too many are kept"
        );
    }
    // A prelogin that comes byte by byte does not last for longer than a login may take.
    drop(silent);
    std::thread::sleep(Duration::from_millis(200));
    let mut slow = connect(&server);
    let begun = Instant::now();
    for byte in packet(0x12, 64, &[0; 56]) {
        if slow.write_all(&[byte]).is_err() || is_closed(&mut slow) {
            break;
        }
        std::thread::sleep(Duration::from_secs(1));
    }
    assert!(
        begun.elapsed() < Duration::from_secs(40),
        "it may go on for ever"
    );
    is_served(&place);
    assert!(memory(&server) < MEMORY_KB, "{} KB", memory(&server));
}

#[test]
fn lengths_of_any_size_before_the_login_end_the_connection() {
    let place = Place::new();
    let server = Served::start(&place, &["--plain"]);
    let mut bytes = vec![0xff; 200];
    for (index, byte) in bytes.iter_mut().enumerate().take(120) {
        *byte = (index * 7) as u8;
    }
    let mut cases = vec![
        packet(0x12, 0, &[]),
        packet(0x12, 7, &[]),
        packet(0x12, u16::MAX, &[0; 100]),
        packet(0x10, u16::MAX, &[0xff; 4000]),
        packet(0x01, 9, &[0]),
        packet(0x03, 40, &[0xff; 32]),
        packet(0xee, 12, &[1, 2, 3, 4]),
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n".to_vec(),
        vec![0; 70_000],
    ];
    // A login whose own length, offsets and lengths are not those of its packet.
    for giant in [u32::MAX, 1 << 31, 94, 0] {
        let mut login = bytes.clone();
        login[..4].copy_from_slice(&giant.to_le_bytes());
        let prelogin = packet(0x12, 14, &[0xff, 0, 0, 0, 0, 0]);
        let length = u16::try_from(login.len() + 8).expect("a short one");
        cases.push([prelogin, packet(0x10, length, &login)].concat());
    }
    for (number, case) in cases.iter().enumerate() {
        let mut stream = connect(&server);
        // It may be closed before all was sent.
        let _sent = stream.write_all(case);
        let _half = stream.shutdown(std::net::Shutdown::Write);
        let mut answer = Vec::new();
        let _read = stream.take(1 << 20).read_to_end(&mut answer);
        assert!(
            answer.len() < 64 << 10,
            "case {number}: {} bytes",
            answer.len()
        );
    }
    is_served(&place);
    assert!(memory(&server) < MEMORY_KB, "{} KB", memory(&server));
}

#[test]
fn a_thousand_clients_that_come_and_go_leave_nothing() {
    let place = Place::new();
    let server = Served::start(&place, &["--plain"]);
    is_served(&place);
    let threads = || {
        let tasks = format!("/proc/{}/task", server.process());
        std::fs::read_dir(tasks).expect("it runs").count()
    };
    let before = threads();
    for number in 0..1000_u32 {
        let mut stream = connect(&server);
        if number % 2 == 0 {
            let _sent = stream.write_all(&packet(0x12, 14, &[0xff, 0, 0, 0, 0, 0]));
        }
    }
    is_served(&place);
    let begun = Instant::now();
    while threads() > before + 4 {
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "{} threads",
            threads()
        );
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(memory(&server) < MEMORY_KB, "{} KB", memory(&server));
}

#[test]
fn two_hundred_idle_and_fifty_active_sessions_share_a_server() {
    use windlass_instance::{BatchEnd, Collected, Elsewhere as _, Instance};
    use windlass_local::client::LocalClient;

    let place = Place::new();
    let server = Served::start(&place, &["--local-only"]);
    let folder = place.path("instance");
    let own = Instance::open(None).expect("an instance");
    let identity = own.identity().clone();
    let session = || {
        let connected = LocalClient::connect(&folder, "test", &identity);
        connected.expect("it answers").expect("it listens")
    };
    let never = std::sync::atomic::AtomicBool::new(false);
    let run = |client: &mut LocalClient, text: &str| {
        let mut collected = Collected::default();
        let end = client.execute(text, 1, &never, &mut collected);
        assert_eq!(end, BatchEnd::Clean, "{text}: {:?}", collected.messages);
        collected
    };
    let (data, log) = (place.text("s.mdf"), place.text("s.ldf"));
    let mut first = session();
    run(
        &mut first,
        &format!(
            "CREATE DATABASE s ON (NAME = s, FILENAME = '{data}') LOG ON (NAME = l, FILENAME = '{log}')"
        ),
    );
    run(
        &mut first,
        "USE s; CREATE TABLE t (x int PRIMARY KEY, y int)",
    );
    let mut idle: Vec<_> = (0..200).map(|_| session()).collect();
    for client in &mut idle {
        run(client, "USE s; SELECT COUNT(*) FROM t");
    }
    let run = &run;
    let session = &session;
    std::thread::scope(|scope| {
        for number in 0..50 {
            scope.spawn(move || {
                let mut client = session();
                run(&mut client, "USE s; SET LOCK_TIMEOUT -1");
                for round in 0..10 {
                    let key = number * 100 + round;
                    run(&mut client, &format!("INSERT t VALUES ({key}, {round})"));
                    run(&mut client, "SELECT COUNT(*) FROM t WHERE y < 5");
                }
            });
        }
    });
    let counted = run(&mut first, "SELECT COUNT(*) AS n FROM t");
    assert_eq!(counted.results[0].rows[0][0].to_string(), "500");
    for client in &mut idle {
        run(client, "SELECT COUNT(*) FROM t");
    }
    assert!(memory(&server) < 2 * MEMORY_KB, "{} KB", memory(&server));
}

#[test]
fn the_server_ends_although_the_name_of_its_socket_is_gone() {
    let place = registered();
    let server = Served::start(&place, &["--local-only"]);
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", server.process()));
    let limits = limits.expect("its limits");
    let open_files = limits
        .lines()
        .find(|line| line.starts_with("Max open files"));
    let words: Vec<&str> = open_files.expect("a limit").split_whitespace().collect();
    assert_eq!(words[3], words[4], "it opens what it may");
    std::fs::remove_file(place.path("instance/windlass.sock")).expect("removed");
    assert_eq!(server.stop(), Some(0));
}
