//! Backup, verification and restore of every algorithm and level, to and from one file.

use serde_json::Map;
use windlass_codec::Compression;
use windlass_report::{BarGroup, Bars, Chart, ChartKind, Column, Report, Section, TableOf};

use super::{Bench, name};
use crate::error::Error;
use crate::measure::{Laboratory, Measured, Media, Scope, Setting};
use crate::present::{Outcome, run_columns, runs_json, size_column, stage_chart};
use crate::rounds::{Runs, interleaved};

/// The measured operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Backup,
    Verify,
    Restore,
}

impl Way {
    const ALL: [Self; 3] = [Self::Backup, Self::Verify, Self::Restore];

    fn name(self) -> &'static str {
        match self {
            Self::Backup => "backup",
            Self::Verify => "verify",
            Self::Restore => "restore",
        }
    }
}

/// A compression with its media, which are read repeatedly.
struct Kept {
    compression: Compression,
    media: Media,
}

impl Kept {
    fn run(&self, way: Way, laboratory: &Laboratory<'_>) -> Result<Measured, Error> {
        match way {
            Way::Backup => laboratory.backup(&Setting::new(Scope::Disk, self.compression), None),
            Way::Verify => laboratory.verify(&self.media),
            Way::Restore => laboratory.restore(&self.media),
        }
    }
}

pub(super) fn run(bench: &Bench<'_>, compressions: &[Compression]) -> Result<Outcome, Error> {
    let mut kept = Vec::new();
    for (index, compression) in compressions.iter().enumerate() {
        (bench.announce)(&format!("preparing: {}", name(*compression)));
        let setting = Setting::new(Scope::Disk, *compression);
        let media = bench
            .laboratory
            .keep_backup(&setting, &format!("kept-{index}"))?;
        kept.push(Kept {
            compression: *compression,
            media,
        });
    }
    let variants: Vec<(&Kept, Way)> = kept
        .iter()
        .flat_map(|kept| Way::ALL.map(|way| (kept, way)))
        .collect();
    let runs = interleaved(&variants, bench.conditions.rounds, |(kept, way), round| {
        let label = label(kept.compression, *way);
        bench.step(round, &label, |laboratory| kept.run(*way, laboratory))
    })?;
    let lines: Vec<Line> = variants
        .into_iter()
        .zip(runs)
        .map(|((kept, way), runs)| Line {
            compression: kept.compression,
            way,
            runs,
        })
        .collect();
    let named = lines
        .iter()
        .map(|line| (label(line.compression, line.way), &line.runs));
    Ok(Outcome {
        kind: "restore",
        report: Report {
            title: bench.title("Restore"),
            subtitle: "Backup, verification and restore, one file".to_owned(),
            sections: vec![results(compressions, &lines), limits(&lines)],
            notes: vec![
                "The articles publish no restore times; they are compared with Windlass's own backup.".to_owned(),
                "Verification reads and checks every byte and writes nothing. A restore ends when the file is durable under its name.".to_owned(),
            ],
            ..Report::default()
        },
        runs: runs_json(named),
        extra: Map::new(),
    })
}

/// An operation and its runs.
struct Line {
    compression: Compression,
    way: Way,
    runs: Runs,
}

fn label(compression: Compression, way: Way) -> String {
    format!("{}, {}", name(compression), way.name())
}

fn results(compressions: &[Compression], lines: &[Line]) -> Section {
    let find = |compression: Compression, way: Way| {
        let is_it = |line: &&Line| line.compression == compression && line.way == way;
        lines.iter().find(is_it).map(|line| &line.runs)
    };
    let groups = compressions.iter().map(|compression| BarGroup {
        label: name(*compression),
        values: Way::ALL
            .map(|way| find(*compression, way).map(Runs::rate))
            .to_vec(),
    });
    let backup = |line: &&Line| {
        let backup = find(line.compression, Way::Backup).map(|runs| runs.rate().median);
        backup.map(|backup| line.runs.rate().median / backup)
    };
    let table = TableOf::default()
        .column(
            Column::text("compression", "Compression"),
            |line: &&Line| name(line.compression),
        )
        .column(Column::text("operation", "Operation"), |line| {
            line.way.name()
        });
    let table = size_column(run_columns(table, |line| &line.runs), |line| &line.runs)
        .column(Column::number("times_backup", "× backup", "", 2), backup);
    Section {
        heading: "Throughput".to_owned(),
        charts: vec![Chart {
            title: "Megabytes of the database per second. Longer is better".to_owned(),
            description: "For each compression, one bar each for backup, verification and restore."
                .to_owned(),
            kind: ChartKind::Bars(Bars {
                unit: "MB/s".to_owned(),
                series: Way::ALL.map(|way| way.name().to_owned()).to_vec(),
                groups: groups.collect(),
                ..Bars::default()
            }),
        }],
        tables: vec![table.of(
            "restore",
            "Backup, verification and restore: medians",
            lines,
        )],
        ..Section::default()
    }
}

fn limits(lines: &[Line]) -> Section {
    let restores = || {
        let lines = lines.iter().filter(|line| line.way == Way::Restore);
        lines.map(|line| (name(line.compression), &line.runs))
    };
    Section {
        heading: "What limited the restores".to_owned(),
        charts: vec![Chart {
            title: "Share of the time of each stage's threads".to_owned(),
            description: "For each compression, three bars: read, decompress, write.".to_owned(),
            kind: stage_chart(restores()),
        }],
        tables: vec![super::stages::limits_table("limits", restores())],
        ..Section::default()
    }
}
