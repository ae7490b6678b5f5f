//! `windlass expire`: retention on folders.

use serde_json::{Value as Json, json};
use windlass_base::json_time;
use windlass_base::message::table;
use windlass_device::{DeviceAddress, DeviceFolder, Removed};
use windlass_instance::operation::{
    ExpireError, ExpireOptions, ExpireReport, ExpiredMedia, Removal, Trust,
};
use windlass_instance::retention::{Decision, FoundFile, FoundMedia, Policy};

use super::{ExpireArguments, texts};
use crate::args::Common;
use crate::command::{Outcome, ended, failed, is_there, misused, refused, session_for};
use crate::output::{Console, Layout, error_line, result_json};

/// Runs the command.
pub(super) fn run(arguments: &ExpireArguments, common: &Common) -> Outcome {
    let policy = match policy(arguments) {
        Ok(policy) => policy,
        Err(error) => return misused(&error),
    };
    let mut console = Console::new(common.json, Layout::Table);
    if !is_there(common, &mut console) {
        return Outcome::Failed;
    }
    let Some(mut session) = session_for(arguments.dry_run, common, &mut console) else {
        return Outcome::Failed;
    };
    let deletes = arguments.delete && !arguments.dry_run;
    let folders = match session.folders(&arguments.folders) {
        Ok(folders) => folders,
        Err(failure) => return ended(Err::<(), _>(failure), &mut console),
    };
    let gone = match session.folders(&arguments.gone) {
        Ok(gone) => gone,
        Err(failure) => return ended(Err::<(), _>(failure), &mut console),
    };
    let options = ExpireOptions {
        gone: &gone,
        ..options(arguments, &folders, &policy, deletes)
    };
    let expired = session.expire(&options, &mut console);
    let report = match expired {
        Ok(report) => report,
        Err(ExpireError::Folders(error)) => {
            error_line(&format!("the folders cannot be listed: {error}"));
            return Outcome::Failed;
        }
        Err(ExpireError::NothingGone(folder)) => {
            return refused(table::nothing_is_gone(folder), &mut console);
        }
        Err(ExpireError::History(error)) => return failed(&error, &mut console),
        Err(ExpireError::Cancelled) => return refused(table::aborted(), &mut console),
    };
    let (outcome, freed) = listed(&report, arguments.database.as_deref(), &mut console, common);
    let megabytes = freed as f64 / f64::from(1 << 20);
    console.message(match deletes {
        true => table::bytes_freed(megabytes),
        false => table::bytes_would_be_freed(megabytes),
    });
    outcome
}

/// Whether the store still has the object: its bucket keeps versions.
fn is_hidden((_, removed): &(DeviceAddress, Removed)) -> bool {
    *removed == Removed::Hidden
}

/// Prints what is decided about each file; what that means, and the bytes of the files that go.
fn listed(
    report: &ExpireReport,
    database: Option<&str>,
    console: &mut Console,
    common: &Common,
) -> (Outcome, u64) {
    let mut outcome = outcome_of(report, database);
    let mut rows = Vec::new();
    let mut objects = Vec::new();
    let mut freed = 0;
    for ExpiredMedia {
        media,
        decision,
        deleted,
    } in &report.media
    {
        let verdict = match (decision.goes, deleted) {
            (false, _) => "stays",
            (true, None) => "goes",
            (true, Some(Ok(files))) => match files.iter().any(is_hidden) {
                true => "hidden by a delete marker",
                false => "deleted",
            },
            (true, Some(Err(error))) => {
                outcome = Outcome::Failed;
                error_line(&error.to_string());
                "not deleted"
            }
        };
        let is_freed = match deleted {
            Some(Ok(files)) => !files.iter().any(is_hidden),
            Some(Err(_)) => false,
            None => decision.goes,
        };
        if is_freed {
            freed += media.files.iter().map(|file| file.bytes).sum::<u64>();
        }
        rows.extend(media_rows(media, decision, verdict));
        objects.extend(media_objects(media, decision, verdict));
    }
    for other in &report.others {
        let file = other.device.to_string();
        let reason = format!("not a Windlass backup: {}", other.reason);
        objects.push(json!({ "file": file, "backups": [], "verdict": "stays", "reason": reason }));
        rows.push(vec![file, String::new(), "stays".to_owned(), reason]);
    }
    match common.json {
        true => result_json(&Json::Array(objects).to_string()),
        false => texts(&["file", "backups", "verdict", "reason"], rows).send(console),
    }
    (outcome, freed)
}

/// What the report means; a database without any backup is reported.
fn outcome_of(report: &ExpireReport, database: Option<&str>) -> Outcome {
    let is_named = |name: &str| database.is_none_or(|wanted| name.eq_ignore_ascii_case(wanted));
    let mut sets = report.media.iter().flat_map(|found| &found.media.sets);
    let is_absent = database.is_some() && !sets.any(|set| is_named(&set.of.name));
    if is_absent {
        let database = database.unwrap_or_default();
        error_line(&format!("these folders hold no backup of '{database}'"));
    }
    match report.is_damaged || is_absent {
        true => Outcome::Failed,
        false => Outcome::Succeeded,
    }
}

fn options<'a>(
    arguments: &'a ExpireArguments,
    folders: &'a [DeviceFolder],
    policy: &'a Policy,
    deletes: bool,
) -> ExpireOptions<'a> {
    ExpireOptions {
        folders,
        policy,
        database: arguments.database.as_deref(),
        removal: match deletes {
            true => Removal::Delete,
            false => Removal::Name,
        },
        trust: match arguments.trust_headers {
            true => Trust::Headers,
            false => Trust::Content {
                within_hours: arguments.verified_within.saturating_mul(24),
            },
        },
        gone: &[],
    }
}

/// A row for each file of a medium.
fn media_rows(media: &FoundMedia, decision: &Decision, verdict: &str) -> Vec<Vec<String>> {
    let what: Vec<String> = media
        .sets
        .iter()
        .map(|set| {
            let finished = set.finished.map_or_else(String::new, |at| at.to_string());
            format!("{} {:?} {finished}", set.of.name, set.chain.kind)
        })
        .collect();
    let row = |file: &FoundFile| {
        vec![
            file.device.to_string(),
            what.join("; "),
            verdict.to_owned(),
            decision.reasons.join("; "),
        ]
    };
    media.files.iter().map(row).collect()
}

/// The same for programs.
fn media_objects(media: &FoundMedia, decision: &Decision, verdict: &str) -> Vec<Json> {
    let sets = media.sets.iter();
    let backups: Vec<Json> = sets
        .map(|set| {
            json!({
                "database": set.of.name,
                "type": format!("{:?}", set.chain.kind).to_lowercase(),
                "finished": set.finished.map(|at| json_time(&at.to_string())),
            })
        })
        .collect();
    let object = |file: &FoundFile| {
        json!({
            "file": file.device.to_string(),
            "backups": backups,
            "verdict": verdict,
            "reason": decision.reasons.join("; "),
        })
    };
    media.files.iter().map(object).collect()
}

fn policy(arguments: &ExpireArguments) -> Result<Policy, String> {
    let base = match &arguments.erasefiles {
        Some(text) => text
            .parse::<Policy>()
            .map_err(|error| format!("--erasefiles: {error}"))?,
        None => Policy {
            within_hours: arguments.within.map(|days| days.saturating_mul(24)),
            last: arguments.last,
            ..Policy::default()
        },
    };
    let policy = Policy {
        daily: arguments.daily,
        weekly: arguments.weekly,
        monthly: arguments.monthly,
        yearly: arguments.yearly,
        ..base
    };
    if policy.is_empty() {
        return Err(
            "no retention rule: give --within, --last, --daily, --weekly, --monthly, \
                    --yearly or --erasefiles"
                .to_owned(),
        );
    }
    Ok(policy)
}
