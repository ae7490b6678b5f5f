//! Metrics for Prometheus: a text file that `node_exporter`'s textfile collector reads.
//!
//! The numbers come from the instance's history, so that they are the same whoever made the backups.
//! The file is replaced as a whole.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;
use std::path::Path;

use jiff::tz::TimeZone;
use windlass_base::{Moment, visible};
use windlass_catalog::{Catalog, PastBackup};

use super::MetricsArguments;
use super::history::{kind, seconds};
use super::settings::Settings;
use crate::args::Common;
use crate::command::{Outcome, failed, misused, session};
use crate::output::{Console, Layout, message_line, result_text};

/// Runs the command.
pub(super) fn run(arguments: &MetricsArguments, common: &Common) -> Outcome {
    if common.instance.is_none() {
        return misused("without --instance nothing is remembered");
    }
    let mut console = Console::new(common.json, Layout::Table);
    let Some(session) = session(common, &mut console) else {
        return Outcome::Failed;
    };
    let text = match text(session.instance().catalog()) {
        Ok(text) => text,
        Err(error) => return failed(&error, &mut console),
    };
    let Some(output) = &arguments.output else {
        result_text(text.trim_end());
        return Outcome::Succeeded;
    };
    match write(output, &text) {
        Ok(()) => Outcome::Succeeded,
        Err(error) => {
            message_line(&format!("error: {}: {error}", output.display()));
            Outcome::Failed
        }
    }
}

/// Renews the file that the settings name. A failure is told and nothing more: the backup was made.
pub(crate) fn renew(common: &Common, settings: &Settings) {
    let (Some(path), Some(instance)) = (settings.metrics(), &common.instance) else {
        return;
    };
    let result = Catalog::open(instance)
        .and_then(|catalog| text(&catalog))
        .map_err(io::Error::other)
        .and_then(|text| write(path, &text));
    if let Err(error) = result {
        message_line(&format!("warning: the metrics were not written: {error}"));
    }
}

/// Writes the file, or what stands in its place. It is readable for everybody: a collector runs as somebody else.
fn write(path: &Path, text: &str) -> io::Result<()> {
    windlass_io::output::write(path, text.as_bytes(), windlass_io::output::MODE_PUBLIC)
}

fn text(catalog: &Catalog) -> Result<String, windlass_catalog::Error> {
    let past = catalog.past_backups(None)?;
    let mut last: BTreeMap<(&str, &str), &PastBackup> = BTreeMap::new();
    let mut counts: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for backup in &past {
        let key = (backup.database.as_str(), kind(&backup.kind));
        last.insert(key, backup);
        *counts.entry(key).or_default() += 1;
    }
    let mut text = String::new();
    let mut family = |name: &str, help: &str, value: &dyn Fn(&PastBackup) -> Option<f64>| {
        heading(&mut text, name, help);
        for ((database, kind), backup) in &last {
            if let Some(value) = value(backup) {
                sample(&mut text, name, database, kind, value);
            }
        }
    };
    family(
        "windlass_backup_last_finished_timestamp_seconds",
        "When the last backup was finished.",
        &|backup| backup.finished.and_then(unix_time),
    );
    family(
        "windlass_backup_last_duration_seconds",
        "How long the last backup took, in whole seconds.",
        &|backup| Some(seconds(backup.started?, backup.finished?) as f64),
    );
    family(
        "windlass_backup_last_size_bytes",
        "What the last backup holds, before compression.",
        &|backup| Some(backup.raw_bytes as f64),
    );
    family(
        "windlass_backup_last_stored_bytes",
        "What the last backup takes.",
        &|backup| Some(backup.stored_bytes as f64),
    );
    family(
        "windlass_backup_last_damaged",
        "Whether the last backup was made of a damaged database.",
        &|backup| Some(f64::from(u8::from(backup.is_damaged))),
    );
    heading(&mut text, "windlass_backups", "Backups in the history.");
    for ((database, kind), count) in &counts {
        sample(&mut text, "windlass_backups", database, kind, *count as f64);
    }
    let queued = catalog.queued_copies()?;
    heading(
        &mut text,
        "windlass_copies_queued",
        "Copies that have not been made yet.",
    );
    // Writing to a String cannot fail.
    let _ = writeln!(text, "windlass_copies_queued {}", queued.len());
    let failing = queued.iter().filter(|copy| copy.attempts > 0).count();
    heading(
        &mut text,
        "windlass_copies_failing",
        "Copies that have failed at least once.",
    );
    let _ = writeln!(text, "windlass_copies_failing {failing}");
    Ok(text)
}

fn heading(text: &mut String, name: &str, help: &str) {
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} gauge");
}

fn sample(text: &mut String, name: &str, database: &str, kind: &str, value: f64) {
    let label = visible(database)
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n");
    let _ = writeln!(
        text,
        "{name}{{database=\"{label}\",type=\"{kind}\"}} {value}"
    );
}

/// Seconds since 1970 of a local date and time.
fn unix_time(moment: Moment) -> Option<f64> {
    let zoned = moment.to_civil().to_zoned(TimeZone::system()).ok()?;
    Some(zoned.timestamp().as_second() as f64)
}
