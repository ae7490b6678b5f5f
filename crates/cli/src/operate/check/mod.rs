//! `windlass check`: checks whether every database can be restored to a recent enough state, as a
//! Nagios plugin.
//!
//! One line on standard output: the state, each reason with its number, and performance data; or
//! one JSON object. The exit code is the state: 0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN. The worst
//! state wins, in the order CRITICAL, WARNING, UNKNOWN, OK.
//!
//! | file | what |
//! |---|---|
//! | `instance` | compares an instance's history with its media |
//! | `media` | checks the backups in folders |
//! | `verdict` | states, reasons, the line and the JSON |

mod followed;
mod instance;
mod media;
mod verdict;

use clap::Args;
use serde_json::Value as Json;
use windlass_base::{Message, Moment};
use windlass_catalog::provenance::is_named;

use super::history::parse_rpo;
use crate::args::Common;
use crate::command::Outcome;
use crate::output::{result_json, result_line, speaks_json};
use verdict::{Reason, Subject, Verdict};

const NOTES: &str = "\
CRITICAL: a database has no restorable backup; its newest restorable backup started more than --rpo
ago; or its newest backup is damaged.
WARNING: newer backups are lost (a stripe, a base or the media are missing or damaged); the last run
failed; no backup was verified within --verified-within; copies are waiting or failing.
UNKNOWN: media could not be examined, the instance could not be read, or there is nothing to check.

Media are not read in full: the check is that they exist, have their recorded length and begin with
their header. Only windlass verify shows that they are intact; --verified-within checks that it ran.";

/// `windlass check`
#[derive(Debug, Args)]
#[command(after_help = NOTES)]
pub(crate) struct CheckArguments {
    /// Check the backups in this folder, or below this URL, instead of an instance
    #[arg(long, value_name = "DIR|URL")]
    media: Vec<String>,
    /// Check only these databases
    #[arg(long, value_name = "NAME", num_args = 1..)]
    database: Vec<String>,
    /// Recovery point objective: minutes, or 24h, or 7d
    #[arg(long, value_name = "TIME", default_value = "24h", value_parser = parse_rpo)]
    rpo: i64,
    /// Longest time since a backup was verified or restored: minutes, or 24h, or 7d
    #[arg(long, value_name = "TIME", value_parser = parse_rpo, conflicts_with = "media")]
    verified_within: Option<i64>,
}

/// The requested limits, in seconds.
#[derive(Debug, Clone, Copy)]
struct Limits {
    rpo: i64,
    verified_within: Option<i64>,
    now: Moment,
    /// `now` in seconds since 1970 UTC, unaffected by the end of daylight saving time.
    now_utc: i64,
}

pub(super) fn run(arguments: &CheckArguments, common: &Common) -> Outcome {
    let limits = Limits {
        rpo: arguments.rpo.saturating_mul(60),
        verified_within: arguments
            .verified_within
            .map(|minutes| minutes.saturating_mul(60)),
        now: Moment::now().0,
        now_utc: jiff::Timestamp::now().as_second(),
    };
    let verdict = match (arguments.media.as_slice(), common.instance.as_deref()) {
        ([], None) => Verdict::unknown("name an instance by --instance, or folders by --media"),
        ([], Some(folder)) => instance::check(folder, common, &arguments.database, limits),
        (folders, _) => media::check(folders, common, &arguments.database, limits),
    };
    if common.json {
        result_json(&verdict.to_json(limits).to_string());
    } else {
        result_line(&verdict.to_line(limits));
    }
    Outcome::Checked(verdict.state().code())
}

/// Says on standard output, where monitoring systems look, that nothing was checked: the command line or the settings
/// cannot be followed.
pub(crate) fn unknown(reason: &str) {
    let words: Vec<&str> = reason.split_whitespace().collect();
    let verdict = Verdict::unknown(words.join(" "));
    // Without a command line there are no limits, and nothing was compared with one.
    let limits = Limits {
        rpo: 0,
        verified_within: None,
        now: Moment::now().0,
        now_utc: jiff::Timestamp::now().as_second(),
    };
    if !speaks_json() {
        return result_line(&verdict.to_line(limits));
    }
    let mut object = verdict.to_json(limits);
    object["rpo_seconds"] = Json::Null;
    result_json(&object.to_string());
}

/// The texts of messages, on one line.
fn texts(messages: Vec<Message>) -> String {
    let texts: Vec<String> = messages.into_iter().map(|message| message.text).collect();
    texts.join(" ")
}

/// The requested databases that were not found.
fn missing<'a>(asked: &'a [String], found: &[&str]) -> Vec<&'a str> {
    let is_found = |name: &str| found.iter().any(|other| is_named(other, name));
    let asked = asked.iter().map(String::as_str);
    asked.filter(|name| !is_found(name)).collect()
}

/// The part of a verdict that belongs to no database found: the missing ones.
fn rest(
    asked: &[String],
    found: &[&str],
    not_there: impl Fn(&str) -> Reason,
    nothing: Reason,
) -> Subject {
    let mut rest = Subject::new(None);
    let missing = missing(asked, found);
    rest.reasons.extend(missing.into_iter().map(not_there));
    if asked.is_empty() && found.is_empty() {
        rest.reasons.push(nothing);
    }
    rest
}

/// Whether a database, by the name that tells it from others of its name, was asked for.
fn is_asked(asked: &[String], name: &str) -> bool {
    asked.is_empty() || asked.iter().any(|other| is_named(name, other))
}
