//! Notifications to a service manager, received by a stand-in that only listens.

use std::os::unix::net::UnixDatagram;

use crate::support::{Place, make_database};

/// Runs the program and receives its notifications during the run: a socket's queue is short.
fn heard(place: &Place, listener: &UnixDatagram, arguments: &[&str]) -> Vec<String> {
    let mut child = place
        .command(arguments)
        .env("NOTIFY_SOCKET", place.path("notify"))
        .env("WATCHDOG_USEC", "1000000")
        .spawn()
        .expect("it starts");
    let mut bytes = [0; 4096];
    let mut heard = Vec::new();
    loop {
        let has_ended = child.try_wait().expect("it runs").is_some();
        while let Ok(length) = listener.recv(&mut bytes) {
            heard.push(String::from_utf8_lossy(&bytes[..length]).into_owned());
        }
        if has_ended {
            return heard;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

#[test]
fn a_service_manager_hears_of_the_beginning_the_progress_and_the_end() {
    let place = Place::new();
    make_database(&place.path("large.db"), 4000);
    let listener = UnixDatagram::bind(place.path("notify")).expect("a socket");
    listener.set_nonblocking(true).expect("it");
    let run = |arguments: &[&str]| heard(&place, &listener, arguments);
    let reported = run(&["backup", "large.db", "--to", "a.bak"]);
    assert_eq!(
        reported.first().map(String::as_str),
        Some("READY=1\nSTATUS=windlass backup")
    );
    assert!(
        reported
            .iter()
            .any(|line| line.starts_with("STATUS=BACKUP DATABASE large: ")),
        "{reported:?}"
    );
    assert!(
        reported.iter().any(|line| line == "WATCHDOG=1"),
        "{reported:?}"
    );
    assert_eq!(
        reported.last().map(String::as_str),
        Some("STOPPING=1\nSTATUS=windlass backup succeeded")
    );
    let reported = run(&["backup", "nosuch.db", "--to", "b.bak"]);
    assert_eq!(
        reported.last().map(String::as_str),
        Some("STOPPING=1\nSTATUS=windlass backup failed")
    );
    // A hook is no part of the service: it does not even know the socket.
    let hook = format!(
        "echo \"socket=$NOTIFY_SOCKET\" > {}",
        place.text("hook.txt")
    );
    run(&[
        "sqlbackup",
        "--attach",
        "large=large.db",
        "--on-success",
        &hook,
        "--sql",
        "BACKUP DATABASE large TO DISK = 'c.bak'",
    ]);
    let said = std::fs::read_to_string(place.path("hook.txt")).expect("the hook ran");
    assert_eq!(said, "socket=\n");
}

#[test]
fn without_a_service_manager_or_with_a_deaf_one_nothing_changes() {
    let place = Place::new();
    place.succeed(&["backup", "app.db", "--to", "a.bak"]);
    // No reader: the queue of the socket fills up, and the backup continues.
    let _deaf = UnixDatagram::bind(place.path("notify")).expect("a socket");
    for socket in [
        place.text("notify"),
        place.text("nobody"),
        "nonsense".to_owned(),
    ] {
        let mut command = place.command(&["backup", "app.db", "--to", "b.bak"]);
        let status = command
            .env("NOTIFY_SOCKET", socket)
            .status()
            .expect("it runs");
        assert!(status.success());
    }
}
