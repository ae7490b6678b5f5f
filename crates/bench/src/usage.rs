//! The load of the machine during a measurement, by part.
//!
//! From `/proc/stat` and `/proc/diskstats` (Linux); not available on other systems.

use std::path::Path;
use std::time::Instant;

use rustix::fs::{major, minor, stat};

/// Counters of the machine at one moment.
#[derive(Debug)]
pub struct Usage {
    at: Instant,
    processors: Option<Ticks>,
    disk: Option<Disk>,
}

/// The load of the machine between two moments.
#[derive(Debug, Clone, Copy)]
pub struct Shares {
    /// Share of busy time of all cores: 0 to 1. Waiting for a disk does not count.
    pub processors: f64,
    /// Share of time in which the disk had at least one request: 0 to 1.
    pub disk: f64,
    /// Mean milliseconds per flush of the disk's own cache: every commit requests one.
    pub flush_milliseconds: f64,
}

#[derive(Debug, Clone, Copy)]
struct Ticks {
    busy: u64,
    all: u64,
}

#[derive(Debug, Clone, Copy)]
struct Disk {
    busy_milliseconds: u64,
    flushes: u64,
    flush_milliseconds: u64,
}

impl Usage {
    /// The counters now; the disk is that of `folder`.
    pub fn now(folder: &Path) -> Self {
        Self {
            at: Instant::now(),
            processors: processors(),
            disk: disk(folder),
        }
    }

    /// The load from `self` to `later`; NaN if the system does not report it.
    pub fn until(&self, later: &Self) -> Shares {
        let milliseconds = later.at.duration_since(self.at).as_secs_f64() * 1000.0;
        let processors = self.processors.zip(later.processors);
        let disk = self.disk.zip(later.disk);
        Shares {
            processors: processors.map_or(f64::NAN, |(from, to)| {
                ratio(to.busy - from.busy, (to.all - from.all) as f64)
            }),
            disk: disk.map_or(f64::NAN, |(from, to)| {
                ratio(to.busy_milliseconds - from.busy_milliseconds, milliseconds)
            }),
            flush_milliseconds: disk.map_or(f64::NAN, |(from, to)| {
                let flushes = to.flushes - from.flushes;
                ratio(
                    to.flush_milliseconds - from.flush_milliseconds,
                    flushes as f64,
                )
            }),
        }
    }
}

fn ratio(part: u64, whole: f64) -> f64 {
    part as f64 / whole
}

/// The first line of `/proc/stat`: user, nice, system, idle, iowait, irq, softirq, steal.
fn processors() -> Option<Ticks> {
    let text = std::fs::read_to_string("/proc/stat").ok()?;
    let fields = text.lines().next()?.split_whitespace().skip(1).take(8);
    let ticks: Vec<u64> = fields.filter_map(|field| field.parse().ok()).collect();
    let all = ticks.iter().sum();
    let idle = ticks.get(3)? + ticks.get(4)?;
    Some(Ticks {
        busy: all - idle,
        all,
    })
}

/// The line of the folder's disk: major and minor number, name, then the fields of the kernel's `iostats.rst`;
/// the 10th is the time with requests, the 16th and 17th are flushes and their time.
fn disk(folder: &Path) -> Option<Disk> {
    let device = stat(folder).ok()?.st_dev;
    let (major, minor) = (major(device).to_string(), minor(device).to_string());
    let text = std::fs::read_to_string("/proc/diskstats").ok()?;
    let fields = text.lines().find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        (fields.get(..2)? == [major.as_str(), minor.as_str()]).then_some(fields)
    })?;
    let field = |number: usize| fields.get(number + 2)?.parse().ok();
    Some(Disk {
        busy_milliseconds: field(10)?,
        flushes: field(16)?,
        flush_milliseconds: field(17)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_of_what_lies_between() {
        let begun = Instant::now();
        let at = |seconds, busy, all, busy_milliseconds, flushes, flush_milliseconds| Usage {
            at: begun + std::time::Duration::from_secs(seconds),
            processors: Some(Ticks { busy, all }),
            disk: Some(Disk {
                busy_milliseconds,
                flushes,
                flush_milliseconds,
            }),
        };
        let shares = at(0, 100, 1000, 500, 10, 5).until(&at(2, 250, 1200, 1500, 30, 15));
        assert_eq!(
            (shares.processors, shares.disk, shares.flush_milliseconds),
            (0.75, 0.5, 0.5)
        );
    }
}
