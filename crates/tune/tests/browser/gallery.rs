//! Reports that are hard to lay out, and an ordinary one.

use jiff::civil::DateTime;
use windlass_report::{
    BarGroup, Bars, Cell, Chart, ChartKind, Column, Event, Fact, Figure, Lines, Listing, Mark,
    Moments, Period, Report, Row, Section, Series, Spread, StageBars, StageGroup, StageShares,
    Table, TimePoint, TimeSeries, Timeline, TimelineRow, Times,
};

const LONG: &str = "StackOverflow2013_production_replica_of_the_north_European_data_center_2026, 64 files, BLOCKSIZE 65536, MAXTRANSFERSIZE 4194304";
const UNBROKEN: &str =
    "aVeryLongNameWithoutAnyPlaceWhereALineCouldBreakWhichDatabasesDoHaveInPracticeEverywhere";
const HOSTILE: &str = "</text></svg><script>console.error('ran')</script><img src=x onerror=\"console.error('ran')\">'\"&\u{202e}txet";

fn spread(median: f64) -> Spread {
    Spread {
        low: median * 0.85,
        median,
        high: median * 1.2,
    }
}

fn bars(labels: &[String], series: usize) -> ChartKind {
    let group = |(index, label): (usize, &String)| BarGroup {
        label: label.clone(),
        values: (0..series)
            .map(|series| Some(spread(37.0 * ((index * 5 + series * 3) % 31) as f64)))
            .collect(),
    };
    ChartKind::Bars(Bars {
        unit: "MB/s".to_owned(),
        decimals: 1,
        series: (0..series).map(|index| format!("{index} {LONG}")).collect(),
        groups: labels.iter().enumerate().map(group).collect(),
        marks: vec![Mark {
            label: format!("read only: {LONG}"),
            value: 1311.0,
        }],
    })
}

fn lines(steps: usize, series: usize) -> ChartKind {
    let line = |index: usize| Series {
        name: format!("{index} {UNBROKEN}"),
        values: (0..steps)
            .map(|step| Some((100 + step * 60 + index * (step + 1) * 9) as f64))
            .collect(),
    };
    ChartKind::Lines(Lines {
        step_name: "threads".to_owned(),
        steps: (1..=steps).map(|step| format!("{step} threads")).collect(),
        unit: "MB/s".to_owned(),
        decimals: 0,
        series: (0..series).map(line).collect(),
        marks: vec![Mark {
            label: "read only: 1311 MB/s".to_owned(),
            value: 1311.0,
        }],
    })
}

fn stages(labels: &[String]) -> ChartKind {
    let stage = |name: &str, busy: f64, is_limit: bool| StageShares {
        name: name.to_owned(),
        busy,
        wait_input: (1.0 - busy) * 0.7,
        wait_output: (1.0 - busy) * 0.3,
        is_limit,
    };
    let group = |label: &String| StageGroup {
        label: label.clone(),
        stages: vec![
            stage("read", 0.12, false),
            stage("compress", 0.99, true),
            stage("write", 0.31, false),
        ],
    };
    ChartKind::Stages(StageBars {
        groups: labels.iter().map(group).collect(),
    })
}

fn hours(count: usize) -> DateTime {
    let first: DateTime = "2026-01-30T03:10:00".parse().unwrap();
    first.saturating_add(jiff::Span::new().hours(17 * count as i64))
}

fn times(points: usize, series: usize) -> ChartKind {
    let line = |index: usize| TimeSeries {
        name: format!("{index} {UNBROKEN}"),
        points: (0..points)
            .map(|point| TimePoint {
                at: hours(point),
                value: (200 * index + point % 7) as f64 * 1.7,
            })
            .collect(),
    };
    ChartKind::Times(Times {
        moments: Moments {
            from: hours(0),
            to: hours(points),
        },
        unit: "MB".to_owned(),
        decimals: 1,
        series: (0..series).map(line).collect(),
        marks: Vec::new(),
    })
}

fn timeline(labels: &[String], points: usize) -> ChartKind {
    let row = |(index, label): (usize, &String)| TimelineRow {
        label: label.clone(),
        events: (0..points)
            .filter(|point| (point + index) % 9 < 6)
            .map(|point| Event {
                at: hours(point),
                kind: usize::from(point % 4 > 0),
            })
            .collect(),
        troubles: vec![Period {
            from: hours(index),
            to: hours(index + 2),
        }],
    };
    ChartKind::Timeline(Timeline {
        moments: Moments {
            from: hours(0),
            to: hours(points),
        },
        kinds: ["full", "differential", "log"].map(str::to_owned).to_vec(),
        trouble: "gap".to_owned(),
        rows: labels.iter().enumerate().map(row).collect(),
    })
}

fn table(labels: &[String]) -> Table {
    let mut columns = vec![Column::text("name", "Setting")];
    columns.extend((0..11).map(|_| Column::number("n", "Throughput", "MB/s", 1)));
    let row = |(index, label): (usize, &String)| {
        let mut cells: Vec<Cell> = vec![label.clone().into()];
        cells.extend((0..11).map(|column| Cell::Number(f64::from(column) * 1234.5)));
        Row::new(cells).marked(index == 1)
    };
    Table {
        key: "table",
        caption: LONG.to_owned(),
        columns,
        rows: labels.iter().enumerate().map(row).collect(),
    }
}

fn report(title: &str, labels: &[String], series: usize, steps: usize) -> Report {
    let chart = |kind: ChartKind| Chart {
        title: format!("Throughput: {title}"),
        description: title.to_owned(),
        kind,
    };
    let charts = vec![
        chart(bars(labels, series)),
        chart(lines(steps, series)),
        chart(stages(labels)),
        chart(times(steps * 9, series)),
        chart(timeline(labels, steps * 9)),
    ];
    let figure = Figure {
        label: "predicted duration".to_owned(),
        value: "2 h 30 min".to_owned(),
        detail: title.to_owned(),
    };
    Report {
        title: title.to_owned(),
        subtitle: title.to_owned(),
        figures: vec![figure.clone(), figure.clone(), figure],
        facts: vec![Fact::new("database", title), Fact::new(title, "5 rounds")],
        sections: vec![Section {
            heading: title.to_owned(),
            text: vec![title.to_owned()],
            listings: vec![Listing {
                caption: "T-SQL".to_owned(),
                text: format!("BACKUP DATABASE [{title}] TO DISK = N'{UNBROKEN}';"),
            }],
            charts,
            tables: vec![table(labels)],
        }],
        notes: vec![title.to_owned()],
    }
}

/// Every text is long, unbroken, or tries to be markup.
pub(crate) fn hostile() -> Report {
    let labels = [
        LONG,
        UNBROKEN,
        HOSTILE,
        "",
        "漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字",
    ];
    report(HOSTILE, &labels.map(str::to_owned), 3, 3)
}

/// Forty groups, six series, many steps.
pub(crate) fn many() -> Report {
    let labels: Vec<String> = (0..40)
        .map(|index| format!("{index} files, BLOCKSIZE 65536, MAXTRANSFERSIZE 4 MB"))
        .collect();
    report("Many bars", &labels, 6, 24)
}

/// An ordinary report.
pub(crate) fn plain() -> Report {
    let labels = ["NONE", "MS_XPRESS", "ZSTD LOW", "ZSTD MEDIUM", "ZSTD HIGH"];
    report("Compression", &labels.map(str::to_owned), 2, 4)
}
