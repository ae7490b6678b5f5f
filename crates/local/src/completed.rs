//! The result of a successful backup, restore or verification: a line, or an object.

use std::time::Duration;

use serde_json::{Value as Json, json};
use windlass_base::json_time;
use windlass_base::size::{Bytes, megabytes_per_second};
use windlass_codec::{Algorithm, Level};
use windlass_instance::{Completed, Rehearsal};
use windlass_pipeline::{
    Adapted, BackupReport, FileRanges, Plan, Probe, ReadReport, Stage, StageCounters, Stages,
    TimesIn, Way,
};

/// One line for people.
pub fn line(completed: Completed<'_>) -> String {
    match completed {
        Completed::Backup { database, report } => {
            let stored = report.set.stored_bytes;
            format!(
                "{database}: backup set {} ({}), {} in {} ({:.2} : 1), {}{}{}",
                report.set.position,
                method(
                    &report.plan,
                    &report.adapted,
                    narrowed_share(report.set.narrowed_bytes, report.set.backup_bytes),
                ),
                Bytes(report.processed_bytes),
                Bytes(stored),
                ratio(report.set.backup_bytes, stored),
                rate(report.processed_bytes, report.elapsed),
                bottleneck(&report.stages, &report.plan, Way::Backup),
                writers(report.writers_held),
            )
        }
        Completed::Probe { database, report } => format!(
            "{database}: {} ({}), {}{}",
            Bytes(report.processed_bytes),
            method(
                &report.plan,
                &report.adapted,
                narrowed_share(report.narrowed_bytes, report.processed_bytes),
            ),
            rate(report.processed_bytes, report.elapsed),
            bottleneck(&report.stages, &report.plan, Way::Backup),
        ),
        Completed::Restore {
            database,
            path,
            position,
            report,
        } => format!(
            "{database}: backup set {position} restored to {}, {}, {}{}",
            path.display(),
            Bytes(report.processed_bytes),
            rate(report.processed_bytes, report.elapsed),
            bottleneck(&report.stages, &report.plan, Way::Reading),
        ),
        Completed::Rehearsal(rehearsal) => rehearsal.lines().join("; "),
        Completed::Verify { position, report } => format!(
            "backup set {position}: {} in {} verified, {}{}",
            Bytes(report.processed_bytes),
            Bytes(report.stored_bytes),
            rate(report.processed_bytes, report.elapsed),
            bottleneck(&report.stages, &report.plan, Way::Reading),
        ),
    }
}

/// The share of a database whose text was narrowed, in percent.
fn narrowed_share(narrowed: u64, all: u64) -> f64 {
    narrowed as f64 * 100.0 / all.max(1) as f64
}

/// Algorithm and level; the share of each level if levels were chosen during the run; the share whose text was
/// narrowed, if any was.
fn method(plan: &Plan, adapted: &Adapted, narrowed_percent: f64) -> String {
    let narrowed = match narrowed_percent > 0.0 {
        true => format!("; text of {narrowed_percent:.0} % narrowed"),
        false => String::new(),
    };
    let threads = match plan.adapts_threads && adapted.mean_threads > 0.0 {
        true => format!("; {:.1} threads", adapted.mean_threads),
        false => String::new(),
    };
    match plan.adapts_level {
        true => format!("{}: {adapted}{threads}{narrowed}", plan.method()),
        false => format!("{}{narrowed}", plan.method()),
    }
}

/// What limited the run; empty if it was too short to tell.
fn bottleneck(stages: &Stages, plan: &Plan, way: Way) -> String {
    let verdict = stages.verdict(plan, way);
    verdict.map_or_else(String::new, |verdict| format!(", {verdict}"))
}

/// How long writers were locked out; empty if they were not.
fn writers(held: Option<Duration>) -> String {
    held.map_or_else(String::new, |held| {
        format!(", writers locked out for {:.3} s", held.as_secs_f64())
    })
}

fn rate(bytes: u64, elapsed: Duration) -> String {
    format!(
        "{:.1} s, {:.0} MB/s",
        elapsed.as_secs_f64(),
        megabytes_per_second(bytes, elapsed)
    )
}

fn ratio(database: u64, stored: u64) -> f64 {
    if stored == 0 {
        1.0
    } else {
        database as f64 / stored as f64
    }
}

/// One object for programs.
pub fn object(completed: Completed<'_>) -> Json {
    match completed {
        Completed::Backup { database, report } => backup(database, report),
        Completed::Probe { database, report } => json!({
            "operation": "probe",
            "probe": match report.probe {
                Probe::Read => "no_compress_write",
                Probe::Transform => "no_write",
            },
            "database": database,
            "processed_bytes": report.processed_bytes,
            "stored_bytes": report.stored_bytes,
            "narrowed_bytes": report.narrowed_bytes,
            "elapsed_seconds": report.elapsed.as_secs_f64(),
            "megabytes_per_second": megabytes_per_second(report.processed_bytes, report.elapsed),
            "adapted": adapted(&report.adapted),
            "stages": stages(&report.stages, &report.plan, Way::Backup),
            "plan": report.plan.to_json(),
        }),
        Completed::Restore {
            database,
            path,
            position,
            report,
        } => {
            let mut object = read("restore", position, report);
            object["database"] = json!(database);
            object["path"] = json!(path.display().to_string());
            object
        }
        Completed::Rehearsal(rehearsal) => rehearsed(rehearsal),
        Completed::Verify { position, report } => {
            let mut object = read("verify", position, report);
            object["valid"] = json!(true);
            object
        }
    }
}

fn rehearsed(rehearsal: &Rehearsal) -> Json {
    let files = rehearsal.files.iter();
    let files = files.map(|(path, how)| json!({ "path": path.display().to_string(), "how": how }));
    json!({
        "operation": "dry run",
        "statement": rehearsal.operation,
        "database": rehearsal.database,
        "files": files.collect::<Vec<_>>(),
        "read_bytes": rehearsal.read_bytes,
        "estimated_write_bytes": rehearsal.write_bytes.as_ref().map(|estimate| estimate.value),
        "estimated_seconds": rehearsal.time.as_ref().map(|estimate| estimate.value.as_secs_f64()),
        "plan": rehearsal.plan.as_ref().map(Plan::to_json),
    })
}

fn backup(database: &str, report: &BackupReport) -> Json {
    let set = &report.set;
    let moment =
        |moment: Option<windlass_base::Moment>| moment.map(|moment| json_time(&moment.to_string()));
    json!({
        "operation": "backup",
        "database": database,
        "set": {
            "guid": set.set_guid.to_string(),
            "position": set.position,
            "type": match set.set_type {
                windlass_media::SetType::Full => "full",
                windlass_media::SetType::Differential => "differential",
                windlass_media::SetType::Log => "log",
            },
            "copy_only": set.is_copy_only,
            "name": set.name,
            "started": moment(set.started),
            "finished": moment(set.finished),
            "expires": moment(set.expires),
            "checkpoint_lsn": set.checkpoint_lsn.to_string(),
            "family_guid": set.family_guid.to_string(),
            "damaged": set.is_damaged,
        },
        "media": {
            "guid": report.media.media_set_guid.to_string(),
            "name": report.media.media_name,
            "families": report.media.family_count,
            "copies": report.media.mirror_count,
        },
        "algorithm": Algorithm::from_id(set.compression).map(Algorithm::name),
        "level": Level::name_of_id(set.compression_level),
        "adapted": adapted(&report.adapted),
        "files": report.files.iter().map(|file| json!({
            "logical_name": file.logical_name,
            "pages": file.pages,
        })).collect::<Vec<_>>(),
        "processed_bytes": report.processed_bytes,
        "backup_bytes": set.backup_bytes,
        "stored_bytes": set.stored_bytes,
        "narrowed_bytes": set.narrowed_bytes,
        "ratio": ratio(set.backup_bytes, set.stored_bytes),
        "elapsed_seconds": report.elapsed.as_secs_f64(),
        "megabytes_per_second": megabytes_per_second(report.processed_bytes, report.elapsed),
        "damaged_pages": report.damaged.len(),
        "writers_locked_out_seconds": report.writers_held.map(|held| held.as_secs_f64()),
        "stages": stages(&report.stages, &report.plan, Way::Backup),
        "plan": report.plan.to_json(),
    })
}

fn read(operation: &str, position: u16, report: &ReadReport) -> Json {
    json!({
        "operation": operation,
        "position": position,
        "files": report.files.iter().map(|file| json!({
            "logical_name": file.logical_name,
            "pages": file.pages,
        })).collect::<Vec<_>>(),
        "processed_bytes": report.processed_bytes,
        "stored_bytes": report.stored_bytes,
        "elapsed_seconds": report.elapsed.as_secs_f64(),
        "megabytes_per_second": megabytes_per_second(report.processed_bytes, report.elapsed),
        "damaged_chunks": report.damaged.count,
        "missing_chunks": report.damaged.missing_count,
        "damaged": ranges(&report.damaged.ranges),
        "missing": ranges(&report.damaged.missing),
        "stages": stages(&report.stages, &report.plan, Way::Reading),
        "plan": report.plan.to_json(),
    })
}

/// The losses: the first ranges by name, and the totals.
fn ranges(ranges: &FileRanges) -> Json {
    let named = ranges.named.iter().map(|range| {
        json!({
            "file": range.file,
            "file_id": range.file_id,
            "offset": range.offset,
            "bytes": range.bytes,
        })
    });
    json!({
        "count": ranges.count,
        "bytes": ranges.bytes,
        "named": named.collect::<Vec<_>>(),
    })
}

fn stages(stages: &Stages, plan: &Plan, way: Way) -> Json {
    let stage = |counters: &StageCounters| counters.to_json(TimesIn::Seconds);
    json!({
        "read": stage(&stages.read),
        "transform": stage(&stages.transform),
        "write": stage(&stages.write),
        "limiting": stages.limiting().map(Stage::name),
        "verdict": stages.verdict(plan, way),
    })
}

fn adapted(adapted: &Adapted) -> Json {
    let levels = adapted.levels.iter().map(|level| {
        json!({
            "level": level.effort.name(),
            "chunks": level.chunks,
            "raw_bytes": level.raw_bytes,
            "stored_bytes": level.stored_bytes,
        })
    });
    json!({
        "levels": levels.collect::<Vec<_>>(),
        "mean_threads": adapted.mean_threads,
    })
}
