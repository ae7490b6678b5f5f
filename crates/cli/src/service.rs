//! Notifications to a service manager: start, progress, watchdog, end.
//!
//! A process has at most one service manager, so it is global. Without one, nothing happens.

use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use windlass_base::size::{Bytes, megabytes_per_second};
use windlass_base::visible;
use windlass_instance::Progress;
use windlass_io::notify::Notifier;

/// Minimum time between two notifications.
const INTERVAL: Duration = Duration::from_secs(1);

struct Service {
    notifier: Notifier,
    /// When the last status and the last watchdog notification were sent.
    reported: Mutex<[Option<Instant>; 2]>,
}

fn service() -> Option<&'static Service> {
    static SERVICE: OnceLock<Option<Service>> = OnceLock::new();
    let service = SERVICE.get_or_init(|| {
        let notifier = Notifier::from_environment()?;
        Some(Service {
            notifier,
            reported: Mutex::new([None; 2]),
        })
    });
    service.as_ref()
}

impl Service {
    /// Whether a kind of notification was not sent within `interval`; records it as sent now.
    fn is_due(&self, kind: usize, interval: Duration) -> bool {
        let mut reported = self.reported.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = reported[kind].is_none_or(|reported| reported.elapsed() >= interval);
        if is_due {
            reported[kind] = Some(Instant::now());
        }
        is_due
    }
}

/// Notifies that the program is running.
pub(crate) fn begin(command: &str) {
    if let Some(service) = service() {
        service.notifier.ready(&format!("windlass {command}"));
    }
}

/// Reports the progress of a long operation.
pub(crate) fn progress(progress: &Progress) {
    let Some(service) = service() else { return };
    if service.is_due(0, INTERVAL) {
        service.notifier.status(&status(progress));
    }
    alive();
}

/// Notifies the watchdog.
pub(crate) fn alive() {
    let Some(service) = service() else { return };
    if let Some(watchdog) = service.notifier.watchdog()
        && service.is_due(1, INTERVAL.min(watchdog / 4))
    {
        service.notifier.alive();
    }
}

/// Notifies the watchdog for as long as the process lives; each time `look` has to return first. A server has no
/// transfers of its own to tell of.
pub(crate) fn keep_alive(look: impl Fn() + Send + 'static) {
    let Some(interval) = service().and_then(|service| service.notifier.watchdog()) else {
        return;
    };
    let started = std::thread::Builder::new()
        .name("watchdog".to_owned())
        .spawn(move || {
            loop {
                look();
                alive();
                std::thread::sleep(INTERVAL.min(interval / 4));
            }
        });
    if let Err(error) = started {
        tracing::warn!(%error, "the watchdog is not notified: no thread could be started");
    }
}

/// Notifies that the program ends.
pub(crate) fn end(command: &str, how: &str) {
    if let Some(service) = service() {
        service
            .notifier
            .stopping(&format!("windlass {command} {how}"));
    }
}

fn status(progress: &Progress) -> String {
    let percent = progress.done_bytes.saturating_mul(100);
    let percent = percent.checked_div(progress.total_bytes).unwrap_or(100);
    let subject = if progress.database.is_empty() {
        String::new()
    } else {
        format!(" {}", visible(&progress.database))
    };
    format!(
        "{}{subject}: {percent} % of {}, {:.0} MB/s",
        progress.operation,
        Bytes(progress.total_bytes),
        megabytes_per_second(progress.done_bytes, progress.elapsed)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_says_what_and_how_far() {
        let progress = Progress {
            operation: "BACKUP DATABASE",
            database: "app".into(),
            done_bytes: 50 << 20,
            total_bytes: 200 << 20,
            stored_bytes: 0,
            elapsed: Duration::from_secs(1),
        };
        let text = status(&progress);
        assert!(text.starts_with("BACKUP DATABASE app: 25 % of "), "{text}");
    }
}
