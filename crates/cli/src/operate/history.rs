//! `windlass history`: the backup history of the instance, and the periods without backups.

use windlass_base::Moment;
use windlass_catalog::PastBackup;
use windlass_instance::presence::{Looker, Presence};
use windlass_instance::retention::Now;
use windlass_instance::standing::{in_zone_of_now, standings, tell_apart};
use windlass_instance::{Column, ColumnType, ResultSet, Value};

use super::HistoryArguments;
use super::report::Subjects;
use crate::args::Common;
use crate::command::{Outcome, existing_session, misused};
use crate::output::{Console, Layout};

/// Parses a period as minutes, hours or days; returns minutes.
pub(super) fn parse_rpo(text: &str) -> Result<i64, String> {
    let digits = text.trim_end_matches(|last: char| !last.is_ascii_digit());
    let factor = match &text[digits.len()..] {
        "" | "m" => 1,
        "h" => 60,
        "d" => 24 * 60,
        _ => 0,
    };
    digits
        .parse::<i64>()
        .ok()
        .and_then(|number| number.checked_mul(factor))
        .filter(|minutes| *minutes > 0)
        .ok_or_else(|| format!("'{text}' is not a time such as 90, 24h or 7d"))
}

/// Runs the command.
pub(super) fn run(arguments: &HistoryArguments, common: &Common) -> Outcome {
    if common.instance.is_none() {
        return misused("the backup history needs --instance");
    }
    let mut console = Console::new(common.json, Layout::Table);
    let Some(mut session) = existing_session(common, &mut console) else {
        return Outcome::Failed;
    };
    let catalog = session.instance().catalog();
    let machine = &session.instance().identity().machine;
    let known = catalog.databases().and_then(|known| {
        let past = catalog.past_backups(arguments.database.as_deref())?;
        Ok((known, past, Looker::of(catalog)?))
    });
    let (known, mut past, mut looker) = match known {
        Ok(known) => known,
        Err(error) => return crate::command::failed(&error, &mut console),
    };
    let now = Moment::now().0;
    let outcome = if let Some(rpo) = arguments.rpo {
        let is_asked = |name: &&str| {
            let database = arguments.database.as_deref();
            database.is_none_or(|database| name.eq_ignore_ascii_case(database))
        };
        let records = known;
        let known: Vec<&str> = records.iter().map(|record| record.name.as_str()).collect();
        let known: Vec<&str> = known.into_iter().filter(is_asked).collect();
        tell_apart(&mut past, &records, machine);
        in_zone_of_now(&mut past);
        let standings = standings(&past, Some(&mut looker), Now::here());
        let subjects = Subjects::new(standings, &known, rpo, None, now);
        gaps(&subjects).send(&mut console);
        subjects.outcome()
    } else {
        past.retain(|backup| !backup.is_forgotten);
        let skipped = arguments
            .last
            .map_or(0, |last| past.len().saturating_sub(last));
        list(&past[skipped..], &mut looker, now).send(&mut console);
        Outcome::Succeeded
    };
    looker.note(session.instance_mut().catalog_mut(), now);
    outcome
}

/// Seconds from one moment to another.
pub(super) fn seconds(from: Moment, to: Moment) -> i64 {
    let span = to.to_civil() - from.to_civil();
    let total = span.total((
        jiff::Unit::Second,
        jiff::SpanRelativeTo::days_are_24_hours(),
    ));
    total.map_or(0, |seconds| seconds as i64)
}

/// The state of a backup's media.
fn media(backup: &PastBackup, looker: &mut Looker, now: Moment) -> String {
    if backup.is_overwritten {
        return "overwritten".to_owned();
    }
    match looker.look(backup) {
        Presence::There => "there".to_owned(),
        Presence::Unknown(reason) => format!("not seen: {reason}"),
        Presence::Damaged { reason, .. } => format!("damaged: {reason}"),
        Presence::Gone(reason) => {
            let since = backup.missing_since.unwrap_or(now);
            format!("missing, noticed on {since}: {reason}")
        }
    }
}

fn list(past: &[PastBackup], looker: &mut Looker, now: Moment) -> ResultSet {
    let text = |name: &str| Column::new(name, ColumnType::NVarChar(260));
    let number = |name: &str| Column::new(name, ColumnType::Float);
    let rows = past.iter().map(|backup| {
        let elapsed = match (backup.started, backup.finished) {
            (Some(started), Some(finished)) => seconds(started, finished) as f64,
            _ => 0.0,
        };
        let elapsed = backup.seconds.unwrap_or(elapsed);
        let mb =
            |bytes: u64| Value::Float((bytes as f64 / f64::from(1 << 20) * 100.0).round() / 100.0);
        let ratio = backup.raw_bytes as f64 / backup.stored_bytes.max(1) as f64;
        vec![
            Value::optional_moment(backup.finished),
            Value::text(&backup.database),
            Value::text(kind(&backup.kind)),
            mb(backup.raw_bytes),
            mb(backup.stored_bytes),
            Value::Float((ratio * 100.0).round() / 100.0),
            Value::Float(elapsed),
            Value::text(if backup.compression.is_empty() {
                "NONE"
            } else {
                backup.compression.as_str()
            }),
            Value::Integer(backup.position.into()),
            Value::Text(backup.devices.join(", ")),
            Value::Text(media(backup, looker, now)),
        ]
    });
    ResultSet {
        columns: vec![
            Column::new("finished", ColumnType::DateTime),
            text("database"),
            text("type"),
            number("size_mb"),
            number("stored_mb"),
            number("ratio"),
            number("seconds"),
            text("compression"),
            Column::new("position", ColumnType::Int),
            text("devices"),
            Column::new("media", ColumnType::NVarChar(4000)),
        ],
        rows: rows.collect(),
    }
}

/// The meaning of SQL Server's letters.
pub(super) fn kind(letter: &str) -> &str {
    match letter {
        "D" => "full",
        "I" => "differential",
        "L" => "log",
        other => other,
    }
}

/// For each database the maximum potential loss, and how many times it exceeded the objective.
fn gaps(subjects: &Subjects<'_>) -> ResultSet {
    let rows = subjects.all.iter().map(|subject| {
        let judged = subject.exposure.as_ref();
        let newest = judged.and_then(|judged| judged.newest?.finished);
        let since = newest.map_or(Value::Null, |newest| {
            Value::Integer(seconds(newest, subjects.now) / 60)
        });
        let usable = judged.map_or(0, |judged| judged.backups.len() - judged.unusable.len());
        let over = judged.map_or(0, |judged| judged.gaps.len());
        vec![
            Value::text(subject.name),
            Value::Integer(usable as i64),
            Value::optional_moment(newest),
            since,
            Value::Integer(judged.map_or(0, |judged| judged.worst / 60)),
            Value::Integer(over as i64),
            Value::text(subjects.verdict(subject).text()),
        ]
    });
    ResultSet {
        columns: vec![
            Column::new("database", ColumnType::NVarChar(128)),
            Column::new("backups", ColumnType::BigInt),
            Column::new("last", ColumnType::DateTime),
            Column::new("minutes_since", ColumnType::BigInt),
            Column::new("longest_gap_minutes", ColumnType::BigInt),
            Column::new("gaps_over_rpo", ColumnType::BigInt),
            Column::new("rpo", ColumnType::NVarChar(20)),
        ],
        rows: rows.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_in_minutes() {
        assert_eq!(parse_rpo("90"), Ok(90));
        assert_eq!(parse_rpo("24h"), Ok(1440));
        assert_eq!(parse_rpo("7d"), Ok(10080));
        for wrong in ["", "h", "0", "5x", "-1h"] {
            assert!(parse_rpo(wrong).is_err(), "{wrong}");
        }
    }
}
