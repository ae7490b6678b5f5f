//! Reports the state of a service to a service manager, as `sd_notify(3)` does: datagrams of
//! `NAME=value` lines to the socket named by `NOTIFY_SOCKET`.
//!
//! Nothing here can make a run fail: errors are ignored.

use std::ffi::OsStr;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

/// A service manager that listens for notifications.
#[derive(Debug)]
pub struct Notifier {
    socket: UnixDatagram,
    address: SocketAddr,
    watchdog: Option<Duration>,
}

impl Notifier {
    /// The service manager that started this process; `None` if none listens.
    pub fn from_environment() -> Option<Self> {
        let number = |name: &str| std::env::var(name).ok()?.parse::<u64>().ok();
        let name = std::env::var_os("NOTIFY_SOCKET")?;
        let is_ours = number("WATCHDOG_PID").is_none_or(|id| id == u64::from(std::process::id()));
        let watchdog = number("WATCHDOG_USEC").filter(|micros| is_ours && *micros > 0);
        Self::new(&name, watchdog.map(Duration::from_micros))
    }

    /// A service manager at a socket: a path, or `@` and an abstract name. With `watchdog`, it
    /// expects a sign of life at that interval.
    pub fn new(name: &OsStr, watchdog: Option<Duration>) -> Option<Self> {
        let address = match name.as_bytes() {
            [b'@', name @ ..] => SocketAddr::from_abstract_name(name),
            [b'/', ..] => SocketAddr::from_pathname(name),
            _ => return None,
        };
        let socket = UnixDatagram::unbound().ok()?;
        // A manager that does not read must not block a backup.
        socket.set_nonblocking(true).ok()?;
        Some(Self {
            socket,
            address: address.ok()?,
            watchdog,
        })
    }

    /// The interval at which the service manager expects [`Self::alive`], if any.
    pub fn watchdog(&self) -> Option<Duration> {
        self.watchdog
    }

    /// The service has started.
    pub fn ready(&self, status: &str) {
        self.send(&format!("READY=1\n{}", status_line(status)));
    }

    /// Sets the status text.
    pub fn status(&self, status: &str) {
        self.send(&status_line(status));
    }

    /// Sends a sign of life.
    pub fn alive(&self) {
        if self.watchdog.is_some() {
            self.send("WATCHDOG=1");
        }
    }

    /// The service is stopping.
    pub fn stopping(&self, status: &str) {
        self.send(&format!("STOPPING=1\n{}", status_line(status)));
    }

    fn send(&self, state: &str) {
        self.socket
            .send_to_addr(state.as_bytes(), &self.address)
            .ok();
    }
}

/// The text on one line: a second line would be read as another assignment.
fn status_line(status: &str) -> String {
    let line = status.chars().map(|character| {
        if character.is_control() {
            ' '
        } else {
            character
        }
    });
    format!("STATUS={}", line.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reported(listener: &UnixDatagram) -> String {
        let mut bytes = [0; 512];
        let length = listener.recv(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes[..length]).into_owned()
    }

    #[test]
    fn a_manager_hears_one_line_for_each_status() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let listener = UnixDatagram::bind(&path).unwrap();
        let notifier = Notifier::new(path.as_os_str(), None).unwrap();
        notifier.ready("backup");
        assert_eq!(reported(&listener), "READY=1\nSTATUS=backup");
        notifier.status("a\nREADY=1");
        assert_eq!(reported(&listener), "STATUS=a READY=1");
        notifier.alive();
        notifier.stopping("done");
        assert_eq!(
            reported(&listener),
            "STOPPING=1\nSTATUS=done",
            "no watchdog was asked for"
        );
        let watched = Notifier::new(path.as_os_str(), Some(Duration::from_secs(1))).unwrap();
        watched.alive();
        assert_eq!(reported(&listener), "WATCHDOG=1");
    }

    #[test]
    fn nobody_who_listens_is_no_failure() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("nobody");
        Notifier::new(path.as_os_str(), None).unwrap().ready("x");
        assert!(Notifier::new(OsStr::new("vsock:2:1"), None).is_none());
        let name = format!("@windlass-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name.as_bytes()[1..]).unwrap();
        let listener = UnixDatagram::bind_addr(&address).unwrap();
        Notifier::new(OsStr::new(&name), None).unwrap().ready("x");
        assert_eq!(reported(&listener), "READY=1\nSTATUS=x");
    }
}
