//! Judges the followers of SQLite files whose log is kept.

use windlass_instance::followers::FollowerShown;

use super::verdict::{Reason, State};

/// What is wrong with what a follower does; nothing if all is captured.
pub(super) fn reasons(shown: &FollowerShown) -> Vec<Reason> {
    let told = &shown.told;
    if !shown.is_followed {
        let text = "its log is kept, and nobody follows it (windlass serve): commits may be missing in the next log backup";
        return vec![Reason::new(State::Warning, "log-not-followed", text)];
    }
    let mut reasons = Vec::new();
    let text = |name: &str| told[name].as_str().unwrap_or("").to_owned();
    if told["is_full"] == true {
        let held = match told["when_full"] == "hold" {
            true => "its own log is held and grows",
            false => "commits are not captured",
        };
        let text =
            format!("the spool of its log has no room, and {held}: make a log backup, or room");
        let reason = Reason::new(State::Critical, "log-spool-full", text);
        let bytes = told["spool_bytes"].as_i64();
        reasons.push(reason.numbered(bytes.unwrap_or(0)));
    } else if told["is_capturing"] == false {
        let text = format!(
            "commits are not captured ({}): {}",
            text("held"),
            text("error")
        );
        reasons.push(Reason::new(State::Critical, "log-not-captured", text));
    }
    if told["is_gap_open"] == true {
        let text = format!(
            "commits may be missing before {} ({}), and no backup was made since: log backups wait for one",
            text("last_gap_time"),
            text("last_gap")
        );
        reasons.push(Reason::new(State::Critical, "log-gap-open", text));
    }
    reasons
}
