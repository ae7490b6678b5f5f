//! `windlass expire`: retention on folders.

use windlass_base::message::table;
use windlass_device::DeviceFolder;
use windlass_instance::operation::{
    ExpireError, ExpireOptions, ExpireReport, ExpiredMedia, Removal, Trust,
};
use windlass_instance::retention::{Decision, FoundFile, FoundMedia, Policy};

use super::{ExpireArguments, texts};
use crate::args::Common;
use crate::command::{Outcome, ended, failed, is_there, misused, refused, session_for};
use crate::output::{Console, Layout, message_line};

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
    let options = options(arguments, &folders, &policy, deletes);
    let expired = session.expire(&options, &mut console);
    let report = match expired {
        Ok(report) => report,
        Err(ExpireError::Folders(error)) => {
            message_line(&format!("error: the folders cannot be listed: {error}"));
            return Outcome::Failed;
        }
        Err(ExpireError::History(error)) => return failed(&error, &mut console),
        Err(ExpireError::Cancelled) => return refused(table::aborted(), &mut console),
    };
    let mut outcome = outcome_of(&report, arguments.database.as_deref());
    let mut rows = Vec::new();
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
            (true, Some(Ok(_))) => "deleted",
            (true, Some(Err(error))) => {
                outcome = Outcome::Failed;
                message_line(&format!("error: {error}"));
                "not deleted"
            }
        };
        if decision.goes {
            freed += media.files.iter().map(|file| file.bytes).sum::<u64>();
        }
        rows.extend(media_rows(media, decision, verdict));
    }
    for other in &report.others {
        rows.push(vec![
            other.device.to_string(),
            String::new(),
            "stays".to_owned(),
            format!("not a Windlass backup: {}", other.reason),
        ]);
    }
    texts(&["file", "backups", "verdict", "reason"], rows).send(&mut console);
    let megabytes = freed as f64 / f64::from(1 << 20);
    console.message(match deletes {
        true => table::bytes_freed(megabytes),
        false => table::bytes_would_be_freed(megabytes),
    });
    outcome
}

/// What the report means; a database without any backup is reported.
fn outcome_of(report: &ExpireReport, database: Option<&str>) -> Outcome {
    let is_named = |name: &str| database.is_none_or(|wanted| name.eq_ignore_ascii_case(wanted));
    let mut sets = report.media.iter().flat_map(|found| &found.media.sets);
    let is_absent = database.is_some() && !sets.any(|set| is_named(&set.of.name));
    if is_absent {
        let database = database.unwrap_or_default();
        message_line(&format!(
            "error: these folders hold no backup of '{database}'"
        ));
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
