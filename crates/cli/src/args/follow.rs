//! `windlass follow`

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use windlass_base::size::parse_bytes;
use windlass_instance::operation::WhenFull;

use super::time::number_and_unit;

const NOTES: &str = "\
The database must be in WAL mode; it is never changed and never checkpointed, and its writers do not wait. Changes
are durable in the folder after --every at the latest. A restore takes a full backup (and a differential), and what
was spooled since:

  windlass follow app.db --to /srv/spool &
  windlass backup app.db --to app.bak
  windlass restore app.bak --follow /srv/spool --at '2026-11-24 10:15' --to copy.db

Where it cannot be proven that every commit was captured (the follower did not run, or the log was truncated in the
moment in which the follower let go of it), the spool has a gap, which --show shows; no restore crosses it, and a
backup made after it begins again. Ctrl-C and SIGTERM end the follower cleanly.";

/// `windlass follow`
#[derive(Debug, Args)]
#[command(after_help = NOTES)]
pub(crate) struct FollowArguments {
    /// SQLite file in WAL mode
    #[arg(required_unless_present = "show")]
    pub(crate) database: Option<PathBuf>,
    /// Folder of the spool; created if missing. One for each database
    #[arg(long, value_name = "DIR", required_unless_present = "show")]
    pub(crate) to: Option<PathBuf>,
    /// How often changes become durable, as a moment that can be restored: 1s, 200ms, 1m
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse_interval)]
    pub(crate) every: Duration,
    /// Keep every commit as a moment that can be restored, not only the last one of each interval
    #[arg(long)]
    pub(crate) each_commit: bool,
    /// Bytes of the spool at which the follower stops, until older segments are removed (by log backups, or by hand)
    #[arg(long, value_name = "BYTES", value_parser = parse_room)]
    pub(crate) spool_max: Option<u64>,
    /// What to do when the spool has no room, because of --spool-max or the disk: gap lets the database go on as without
    /// a follower, and leaves a gap; hold keeps its log, which grows until there is room
    #[arg(long, value_name = "WHAT", default_value = "gap", value_parser = parse_when_full)]
    pub(crate) when_full: WhenFull,
    /// Show what the spool in a folder contains: ranges that can be restored, and gaps
    #[arg(long, value_name = "DIR", conflicts_with_all = ["database", "to", "each_commit", "spool_max", "when_full"])]
    pub(crate) show: Option<PathBuf>,
}

pub(crate) fn parse_when_full(text: &str) -> Result<WhenFull, String> {
    match text {
        "gap" => Ok(WhenFull::Gap),
        "hold" => Ok(WhenFull::Hold),
        _ => Err("gap or hold".to_owned()),
    }
}

/// The shortest interval; the log is looked at no more often.
const EVERY_MIN: Duration = Duration::from_millis(5);
const EVERY_MAX: Duration = Duration::from_secs(3600);
/// A spool below this has no room for a moment.
const ROOM_MIN: u64 = 1 << 20;

pub(crate) fn parse_interval(text: &str) -> Result<Duration, String> {
    let every = number_and_unit(text).and_then(|(number, unit)| {
        let milliseconds = match unit {
            "ms" => 1,
            "s" | "" => 1000,
            "m" => 60_000,
            _ => 0,
        };
        number.checked_mul(milliseconds)
    });
    every
        .map(Duration::from_millis)
        .filter(|every| (EVERY_MIN..=EVERY_MAX).contains(every))
        .ok_or_else(|| "a time such as 1s, 200ms or 1m, from 5ms to 60m".to_owned())
}

pub(crate) fn parse_room(text: &str) -> Result<u64, String> {
    parse_bytes(text)
        .filter(|bytes| *bytes >= ROOM_MIN)
        .ok_or_else(|| "a size of at least 1M, such as 500M or 10G".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_have_units() {
        assert_eq!(parse_interval("1s"), Ok(Duration::from_secs(1)));
        assert_eq!(parse_interval("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(parse_interval("2m"), Ok(Duration::from_secs(120)));
        for wrong in ["", "s", "1h", "0s", "4ms", "61m", "99999999999999999999s"] {
            assert!(parse_interval(wrong).is_err(), "{wrong}");
        }
        assert!(parse_room("64K").is_err());
    }
}
