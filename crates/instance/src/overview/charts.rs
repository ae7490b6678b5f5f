//! The report as charts.

use windlass_base::Moment;
use windlass_catalog::PastBackup;
use windlass_report::{
    Chart, ChartKind, Event, Period, TimePoint, TimeSeries, Timeline, TimelineRow, Times,
};

use super::kind;
use super::subject::{Subject, Subjects, rate, ratio};

/// SQL Server's letters in the order of the charts.
const KINDS: [&str; 3] = ["D", "I", "L"];

/// Maximum number of points in a line; of more, every second, third... and the last are drawn.
const POINTS_MAX: usize = 250;

/// Maximum number of databases in a timeline.
const ROWS_MAX: usize = 60;

/// The events of all databases over time.
pub fn timeline(subjects: &Subjects<'_>) -> Chart {
    let row = |subject: &Subject<'_>| {
        let events = subjects.backups(subject).into_iter().filter_map(|backup| {
            Some(Event {
                at: backup.finished?.to_civil(),
                kind: KINDS.iter().position(|kind| *kind == backup.kind)?,
            })
        });
        let mut troubles: Vec<Period> = subjects
            .gaps(subject)
            .into_iter()
            .map(|gap| Period {
                from: gap.from.to_civil(),
                to: gap.to.to_civil(),
            })
            .collect();
        if subjects.never().any(|never| never.name == subject.name) {
            troubles.push(Period {
                from: subjects.moments.from,
                to: subjects.moments.to,
            });
        }
        TimelineRow {
            label: subject.name.to_owned(),
            events: events.collect(),
            troubles,
        }
    };
    let rows: Vec<TimelineRow> = subjects.all.iter().take(ROWS_MAX).map(row).collect();
    let troubled = rows.iter().filter(|row| !row.troubles.is_empty()).count();
    Chart {
        title: if subjects.all.len() > ROWS_MAX {
            format!("Backups, the first {ROWS_MAX} databases")
        } else {
            "Backups and gaps".to_owned()
        },
        description: format!(
            "One row for each of {} databases with a tick for each backup; {troubled} had periods \
             without a recent enough restorable backup",
            rows.len()
        ),
        kind: ChartKind::Timeline(Timeline {
            moments: subjects.moments,
            kinds: KINDS.map(|letter| kind(letter).to_owned()).to_vec(),
            trouble: "gap".to_owned(),
            rows,
        }),
    }
}

/// Size, rate and ratio of a database's backups over time.
pub fn of_database(subjects: &Subjects<'_>, subject: &Subject<'_>) -> Vec<Chart> {
    let backups = subjects.backups(subject);
    let mb = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    let size = lines(
        &backups,
        &[
            ("size", &|backup| Some(mb(backup.raw_bytes))),
            ("stored", &|backup| Some(mb(backup.stored_bytes))),
        ],
    );
    let charts = [
        ("Size", "MB", 1, size),
        ("Rate", "MB/s", 1, lines(&backups, &[("", &rate)])),
        (
            "Ratio",
            "size : stored",
            2,
            lines(&backups, &[("", &ratio)]),
        ),
    ];
    charts
        .into_iter()
        .filter(|(_, _, _, series)| !series.is_empty())
        .map(|(title, unit, decimals, series)| Chart {
            title: format!("{title} of the backups of {}", subject.name),
            description: described(&series, unit),
            kind: ChartKind::Times(Times {
                moments: subjects.moments,
                unit: unit.to_owned(),
                decimals,
                series,
                marks: Vec::new(),
            }),
        })
        .collect()
}

/// The start and end of each line, in words.
fn described(series: &[TimeSeries], unit: &str) -> String {
    let line = |series: &TimeSeries| {
        let first = series.points.first()?.value;
        let last = series.points.last()?.value;
        let name = &series.name;
        Some(format!("{name}: from {first:.2} to {last:.2} {unit}"))
    };
    series
        .iter()
        .filter_map(line)
        .collect::<Vec<_>>()
        .join("; ")
}

type Measure<'a> = (&'a str, &'a dyn Fn(&PastBackup) -> Option<f64>);

/// A line for each measure and each kind of backup.
fn lines(backups: &[&PastBackup], measures: &[Measure<'_>]) -> Vec<TimeSeries> {
    let mut lines = Vec::new();
    for letter in KINDS {
        for (name, measure) in measures {
            let points = backups
                .iter()
                .filter(|backup| backup.kind == letter)
                .filter_map(|backup| {
                    Some(TimePoint {
                        at: backup.finished.map(Moment::to_civil)?,
                        value: measure(backup)?,
                    })
                })
                .collect();
            let points = thinned(points);
            if !points.is_empty() {
                lines.push(TimeSeries {
                    name: format!("{} {name}", kind(letter)).trim_end().to_owned(),
                    points,
                });
            }
        }
    }
    lines
}

fn thinned(points: Vec<TimePoint>) -> Vec<TimePoint> {
    let every = points.len().div_ceil(POINTS_MAX).max(1);
    let last = points.len().saturating_sub(1);
    let kept = points.into_iter().enumerate();
    // Counted from the end, so that the newest is always included.
    kept.filter(|(index, _)| (last - index).is_multiple_of(every))
        .map(|(_, point)| point)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_thinned_and_keep_their_end() {
        let at = "2026-11-21T00:00:00".parse().unwrap();
        let points = |count: u32| {
            (0..count).map(|value| TimePoint {
                at,
                value: value.into(),
            })
        };
        assert_eq!(thinned(points(250).collect()).len(), 250);
        let thin = thinned(points(1001).collect());
        assert!(thin.len() <= POINTS_MAX);
        assert!((thin.last().unwrap().value - 1000.0).abs() < f64::EPSILON);
        assert!(thinned(Vec::new()).is_empty());
    }
}
