//! `windlass follow`: spools the commits of a SQLite database.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::json;
use windlass_base::time_text;
use windlass_instance::operation::{FollowOptions, FollowStatus, Listed, spooled};

use super::{Outcome, misused, reported, session};
use crate::args::{Common, FollowArguments};
use crate::output::{Console, Layout, error_line, message_line, result_json, result_line};

/// Status lines are no closer than this, unless something went wrong.
const BETWEEN_LINES: Duration = Duration::from_secs(1);

/// Runs the command.
pub(crate) fn run(arguments: &FollowArguments, common: &Common) -> Outcome {
    let mut console = Console::new(common.json, Layout::Table);
    if let Some(folder) = &arguments.show {
        return show(folder, common.json, &mut console);
    }
    let (Some(database), Some(folder)) = (&arguments.database, &arguments.to) else {
        return misused("follow needs a database and --to DIR");
    };
    let Some(mut session) = session(common, &mut console) else {
        return Outcome::Failed;
    };
    let options = FollowOptions {
        folder: folder.clone(),
        every: arguments.every,
        each_commit: arguments.each_commit,
        spool_bytes_max: arguments.spool_max,
        when_full: arguments.when_full,
    };
    let mut lines = Lines {
        is_json: common.json,
        last: None,
        printed: None,
    };
    let followed = session.follow(database, &options, &mut |status| lines.status(status));
    let Some(status) = reported(followed, &mut console) else {
        return Outcome::Failed;
    };
    lines.print(&status);
    Outcome::Succeeded
}

/// Prints the status when it has changed.
struct Lines {
    is_json: bool,
    last: Option<Instant>,
    printed: Option<FollowStatus>,
}

impl Lines {
    fn status(&mut self, status: &FollowStatus) {
        let is_trouble = self.printed.as_ref().is_some_and(|printed| {
            printed.gaps != status.gaps || printed.last_error != status.last_error
        });
        let is_soon = self.last.is_some_and(|last| last.elapsed() < BETWEEN_LINES);
        if is_trouble || !is_soon && self.printed.as_ref() != Some(status) {
            self.print(status);
        }
    }

    fn print(&mut self, status: &FollowStatus) {
        self.last = Some(Instant::now());
        match self.is_json {
            true => result_json(&json(status).to_string()),
            false => result_line(&line(status)),
        }
        let is_new = |gaps| self.printed.as_ref().map_or(0, |printed| printed.gaps) < gaps;
        if let Some(reason) = status.last_gap.as_ref().filter(|_| is_new(status.gaps)) {
            message_line(&format!(
                "warning: commits may be missing before this: {reason}. Make a backup, from which later moments can \
                 be restored"
            ));
        }
        if let Some(error) = &status.last_error {
            error_line(&format!("{error}; nothing is captured until that is over"));
        }
        self.printed = Some(status.clone());
    }
}

fn line(status: &FollowStatus) -> String {
    const MB: f64 = 1_048_576.0;
    format!(
        "{}: commit {}, held: {}, lag {:.1} MB / {:.1} s, log {:.1} MB, spool {:.1} MB, let go {}, proven {}, gaps {}",
        time_text(status.time_us),
        status.commit_number,
        status.following,
        status.lag_bytes as f64 / MB,
        Duration::from_micros(status.lag_us).as_secs_f64(),
        status.log_bytes as f64 / MB,
        status.spool_bytes as f64 / MB,
        status.let_goes,
        status.proofs,
        status.gaps,
    )
}

fn json(status: &FollowStatus) -> serde_json::Value {
    json!({
        "time": time_json(status.time_us),
        "commit": status.commit_number,
        "held": status.following.to_string(),
        "moments": status.moments,
        "frames": status.frames,
        "lag_bytes": status.lag_bytes,
        "lag_seconds": Duration::from_micros(status.lag_us).as_secs_f64(),
        "log_bytes": status.log_bytes,
        "spool_bytes": status.spool_bytes,
        "let_goes": status.let_goes,
        "proofs": status.proofs,
        "gaps": status.gaps,
        "last_gap": status.last_gap,
        "error": status.last_error,
    })
}

/// A moment for programs: as elsewhere in JSON, with microseconds and the offset, by which commits are told apart.
fn time_json(us: u64) -> String {
    time_text(us).replacen(' ', "T", 1)
}

/// Prints the ranges and gaps of a spool.
fn show(folder: &Path, is_json: bool, console: &mut Console) -> Outcome {
    let Some(spooled) = reported(spooled(folder), console) else {
        return Outcome::Failed;
    };
    for listed in &spooled.listed {
        match is_json {
            true => result_json(&listed_json(listed).to_string()),
            false => result_line(&listed_line(listed)),
        }
    }
    if spooled.rest_bytes > 0 {
        message_line(&format!(
            "{} bytes behind the end are no records: what a follower is writing, or a crash has left",
            spooled.rest_bytes
        ));
    }
    Outcome::Succeeded
}

fn listed_line(listed: &Listed) -> String {
    match listed {
        Listed::Range {
            from_us,
            to_us,
            first_commit,
            last_commit,
            moments,
        } => format!(
            "{} to {}: {}, {moments} moments",
            time_text(*from_us),
            time_text(*to_us),
            match first_commit > last_commit {
                true => "no commits".to_owned(),
                false => format!("commits {first_commit} to {last_commit}"),
            }
        ),
        Listed::Gap {
            from_us,
            to_us,
            reason,
        } => format!(
            "{} to {}: GAP, commits may be missing: {reason}",
            time_text(*from_us),
            time_text(*to_us)
        ),
    }
}

fn listed_json(listed: &Listed) -> serde_json::Value {
    match listed {
        Listed::Range {
            from_us,
            to_us,
            first_commit,
            last_commit,
            moments,
        } => json!({
            "kind": "range",
            "from": time_json(*from_us),
            "to": time_json(*to_us),
            "first_commit": first_commit,
            "last_commit": last_commit,
            "moments": moments,
        }),
        Listed::Gap {
            from_us,
            to_us,
            reason,
        } => json!({
            "kind": "gap",
            "from": time_json(*from_us),
            "to": time_json(*to_us),
            "reason": reason,
        }),
    }
}
