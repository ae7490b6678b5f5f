//! `windlass history`: the backup history of the instance, and the periods without backups.

use windlass_base::Moment;
use windlass_catalog::provenance::is_named;
use windlass_instance::overview::{Subjects, history, seconds};
use windlass_instance::presence::Looker;
use windlass_instance::retention::Now;
use windlass_instance::standing::{in_zone_of_now, standings, tell_apart};
use windlass_instance::watched::{failures, kept_names};
use windlass_instance::{Column, ColumnType, ResultSet, Value};

use super::HistoryArguments;
use crate::args::{Common, number_and_unit};
use crate::command::{Outcome, existing_session, misused};
use crate::output::{Console, Layout};

/// Parses a period as minutes, hours or days; returns minutes.
pub(crate) fn parse_rpo(text: &str) -> Result<i64, String> {
    let minutes = number_and_unit(text).and_then(|(number, unit)| {
        let factor = match unit {
            "" | "m" => 1,
            "h" => 60,
            "d" => 24 * 60,
            _ => 0,
        };
        i64::try_from(number).ok()?.checked_mul(factor)
    });
    minutes
        .filter(|minutes| *minutes > 0)
        .ok_or_else(|| format!("'{text}' is not a time such as 90, 24h or 7d"))
}

/// Parses a number of days, with or without its unit.
pub(super) fn parse_days(text: &str) -> Result<u32, String> {
    match number_and_unit(text) {
        Some((number, "" | "d")) => u32::try_from(number).map_err(|error| error.to_string()),
        _ => Err("it is not a number of days, such as 7 or 7d".to_owned()),
    }
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
    let database = arguments.database.as_deref();
    let known = catalog.databases().and_then(|registered| {
        let mut past = catalog.past_backups(database)?;
        if arguments.rpo.is_some() {
            tell_apart(&mut past, &registered, machine);
        }
        let failures = failures(catalog, &past, &registered, machine)?;
        Ok((registered, past, failures, Looker::of(catalog)?))
    });
    let (registered, mut past, failures, mut looker) = match known {
        Ok(known) => known,
        Err(error) => return crate::command::failed(&error, &mut console),
    };
    let is_asked = |name: &str| database.is_none_or(|database| is_named(name, database));
    let names = registered.iter().map(|record| &record.name);
    let mut names = names.chain(failures.iter().map(|one| &one.last.database));
    if let Some(database) = database
        && past.is_empty()
        && !names.any(|name| is_asked(name))
    {
        return misused(&format!("the instance knows no database '{database}'"));
    }
    let now = Moment::now().0;
    let outcome = if let Some(rpo) = arguments.rpo {
        in_zone_of_now(&mut past);
        let standings = standings(&past, Some(&mut looker), Now::here());
        let mut kept = kept_names(&registered, &standings, &failures);
        kept.retain(|name| is_asked(name));
        let subjects = Subjects::new(standings, &kept, rpo, None, now);
        gaps(&subjects).send(&mut console);
        super::met(&subjects)
    } else {
        past.retain(|backup| !backup.is_forgotten);
        let skipped = arguments
            .last
            .map_or(0, |last| past.len().saturating_sub(last));
        history::backups(&past[skipped..], &mut looker, now).send(&mut console);
        Outcome::Succeeded
    };
    looker.note(session.instance_mut().catalog_mut(), now);
    outcome
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
