//! The full procedure of "Optimizing backup speed" (2013): reading only, reading and compressing,
//! whole backups, for each number of threads.

use serde_json::Map;
use windlass_codec::Compression;
use windlass_pipeline::StageCounters;
use windlass_report::{
    Chart, ChartKind, Column, Figure, Lines, Mark, Report, Row, Section, Series, Table, TableOf,
};

use super::{Bench, name};
use crate::article::{STAGES_CEILING, STAGES_FULL, STAGES_TRANSFORM};
use crate::error::Error;
use crate::measure::{Measured, Scope, Setting};
use crate::present::{Outcome, limit, run_columns, runs_json, size_column, stage_chart};
use crate::rounds::{Runs, interleaved};

pub(super) fn run(
    bench: &Bench<'_>,
    compressions: &[Compression],
    threads: &[u32],
) -> Result<Outcome, Error> {
    let mut settings = vec![Setting::new(Scope::Read, Compression::NONE)];
    for scope in [Scope::Transform, Scope::Disk] {
        for compression in compressions {
            settings.extend(threads.iter().map(|threads| Setting {
                threads: Some(*threads),
                ..Setting::new(scope, *compression)
            }));
        }
    }
    let runs = interleaved(&settings, bench.conditions.rounds, |setting, round| {
        bench.step(round, &label(setting), |laboratory| {
            laboratory.backup(setting, None)
        })
    })?;
    let lines: Vec<(Setting, Runs)> = settings.into_iter().zip(runs).collect();
    let results = Results {
        compressions,
        threads,
        lines: &lines,
        ceiling: lines.first().map_or(0.0, |(_, runs)| runs.rate().median),
    };
    Ok(Outcome {
        kind: "stages",
        report: Report {
            title: bench.title("Stages"),
            subtitle: "Read; read and compress; read, compress and write".to_owned(),
            figures: results.figures(),
            sections: vec![
                results.read(),
                results.step(Scope::Transform, "Read and compress", "transform"),
                results.step(Scope::Disk, "The whole backup", "full"),
                results.limits(),
                article_section(),
            ],
            notes: vec![
                "Article: Optimizing backup speed (SQL Backup Pro, 2013), where the first two steps are NOCOMPRESSWRITE and NOWRITE.".to_owned(),
            ],
            ..Report::default()
        },
        runs: runs_json(lines.iter().map(|(setting, runs)| (label(setting), runs))),
        extra: Map::new(),
    })
}

fn label(setting: &Setting) -> String {
    let threads = setting.threads.map_or_else(String::new, |threads| {
        format!(
            ", {threads} {}",
            if threads == 1 { "thread" } else { "threads" }
        )
    });
    match setting.scope {
        Scope::Read => "read only".to_owned(),
        Scope::Transform => format!("no write, {}{threads}", name(setting.compression)),
        Scope::Nul => format!("NUL, {}{threads}", name(setting.compression)),
        Scope::Disk | Scope::Write => format!("file, {}{threads}", name(setting.compression)),
    }
}

struct Results<'a> {
    compressions: &'a [Compression],
    threads: &'a [u32],
    lines: &'a [(Setting, Runs)],
    ceiling: f64,
}

impl Results<'_> {
    fn of(&self, scope: Scope) -> impl Iterator<Item = &(Setting, Runs)> {
        self.lines
            .iter()
            .filter(move |(setting, _)| setting.scope == scope)
    }

    fn rate(&self, scope: Scope, compression: Compression, threads: u32) -> Option<f64> {
        let is_it = |(setting, _): &&(Setting, Runs)| {
            setting.compression == compression && setting.threads == Some(threads)
        };
        self.of(scope)
            .find(is_it)
            .map(|(_, runs)| runs.rate().median)
    }

    /// The fastest of a step.
    fn best(&self, scope: Scope) -> Option<&(Setting, Runs)> {
        self.of(scope)
            .max_by(|a, b| a.1.rate().median.total_cmp(&b.1.rate().median))
    }

    fn figures(&self) -> Vec<Figure> {
        let steps = [
            ("1. read", Scope::Read),
            ("2. read and compress", Scope::Transform),
            ("3. whole backup", Scope::Disk),
        ];
        let figure = |(label, scope): (&str, Scope)| {
            let (setting, runs) = self.best(scope)?;
            Some(Figure {
                label: label.to_owned(),
                value: format!("{:.0} MB/s", runs.rate().median),
                detail: self::label(setting),
            })
        };
        steps.into_iter().filter_map(figure).collect()
    }

    fn read(&self) -> Section {
        let table = TableOf::default().column(
            Column::text("step", "Step"),
            |_: &&(Setting, Runs)| "read only",
        );
        let table = run_columns(table, |(_, runs)| runs);
        Section {
            heading: "1. Read".to_owned(),
            text: vec![
                "The highest rate that any backup of this database can reach on this machine."
                    .to_owned(),
            ],
            tables: vec![table.of("read", "Reading alone: medians", self.of(Scope::Read))],
            ..Section::default()
        }
    }

    fn step(&self, scope: Scope, heading: &str, key: &'static str) -> Section {
        let number = if scope == Scope::Disk { 3 } else { 2 };
        let series = self.compressions.iter().map(|compression| Series {
            name: name(*compression),
            values: self
                .threads
                .iter()
                .map(|threads| self.rate(scope, *compression, *threads))
                .collect(),
        });
        Section {
            heading: format!("{number}. {heading}"),
            charts: vec![Chart {
                title: "Throughput by number of threads. Higher is better".to_owned(),
                description: "One line per compression; the dashed line is reading only."
                    .to_owned(),
                kind: ChartKind::Lines(Lines {
                    step_name: "threads".to_owned(),
                    steps: self.threads.iter().map(ToString::to_string).collect(),
                    unit: "MB/s".to_owned(),
                    decimals: 0,
                    series: series.collect(),
                    marks: vec![Mark::rate("read only", self.ceiling)],
                }),
            }],
            tables: vec![self.table(scope, heading, key)],
            ..Section::default()
        }
    }

    fn table(&self, scope: Scope, heading: &str, key: &'static str) -> Table {
        let best = self.best(scope).map(|(_, runs)| runs.rate().median);
        let ceiling = self.ceiling;
        let table = TableOf::default()
            .column(
                Column::text("compression", "Compression"),
                |(setting, _): &&(Setting, Runs)| name(setting.compression),
            )
            .column(
                Column::number("threads", "Threads", "", 0),
                |(setting, _)| f64::from(setting.threads.unwrap_or_default()),
            );
        size_column(run_columns(table, |(_, runs)| runs), |(_, runs)| runs)
            .column(
                Column::number("times_read_only", "× read only", "", 2),
                move |(_, runs)| (ceiling > 0.0).then(|| runs.rate().median / ceiling),
            )
            .column(
                Column::number("times_one_thread", "× one thread", "", 2),
                |(setting, runs)| {
                    let one = self.rate(scope, setting.compression, 1);
                    one.map(|one| runs.rate().median / one)
                },
            )
            .marked(move |(_, runs)| best.is_some_and(|best| runs.rate().median >= best))
            .of(
                key,
                format!("{heading}: medians. The fastest is marked"),
                self.of(scope),
            )
    }

    fn limits(&self) -> Section {
        let most = self.threads.iter().max().copied();
        let shown = || {
            self.of(Scope::Disk)
                .filter(|(setting, _)| setting.threads == most)
        };
        Section {
            heading: "What limited the backups".to_owned(),
            charts: vec![Chart {
                title: "Share of the time of each stage's threads, most threads".to_owned(),
                description: "For each compression, three bars: read, compress, write.".to_owned(),
                kind: stage_chart(shown().map(|(setting, runs)| (label(setting), runs))),
            }],
            tables: vec![limits_table(
                "limits",
                self.lines
                    .iter()
                    .map(|(setting, runs)| (label(setting), runs)),
            )],
            ..Section::default()
        }
    }
}

/// A table of how the stages of runs spent their time.
pub(crate) fn limits_table<'a>(
    key: &'static str,
    named: impl Iterator<Item = (String, &'a Runs)>,
) -> Table {
    let kilobytes = |counters: &StageCounters| {
        (counters.calls > 0).then(|| counters.bytes_per_call() as f64 / 1024.0)
    };
    let in_flight =
        |counters: &StageCounters| (counters.calls > 0).then(|| counters.mean_in_flight());
    let share = |run: &Measured, counters: &StageCounters| {
        let whole = run.elapsed.as_secs_f64() * f64::from(counters.threads);
        (whole > 0.0).then(|| counters.busy.as_secs_f64() / whole * 100.0)
    };
    let typical = |(label, runs): (String, &'a Runs)| Some((label, runs.typical()?));
    TableOf::default()
        .column(
            Column::text("run", "Run"),
            |(label, _): &(String, &Measured)| label.clone(),
        )
        .column(Column::text("limit", "Limit"), |(_, run)| {
            limit(&run.stages)
        })
        .column(
            Column::number("read_percent", "read", "%", 0),
            |(_, run)| share(run, &run.stages.read),
        )
        .column(
            Column::number("compress_percent", "compress", "%", 0),
            |(_, run)| share(run, &run.stages.transform),
        )
        .column(
            Column::number("write_percent", "write", "%", 0),
            |(_, run)| share(run, &run.stages.write),
        )
        .column(
            Column::number("kilobytes_per_read", "per read", "KB", 0),
            |(_, run)| kilobytes(&run.stages.read),
        )
        .column(
            Column::number("kilobytes_per_write", "per write", "KB", 0),
            |(_, run)| kilobytes(&run.stages.write),
        )
        .column(
            Column::number("reads_in_flight", "reads in flight", "", 1),
            |(_, run)| in_flight(&run.stages.read),
        )
        .column(
            Column::number("writes_in_flight", "writes in flight", "", 1),
            |(_, run)| in_flight(&run.stages.write),
        )
        .of(
            key,
            "The stage that limited each run, and how much of the time the stages were at work",
            named.filter_map(typical),
        )
}

/// The article's own figures, in the same form.
fn article_section() -> Section {
    let transform = STAGES_TRANSFORM.iter().flat_map(|(level, rates)| {
        rates.iter().enumerate().map(move |(index, rate)| {
            Row::new(vec![
                format!("read and compress, {level}").into(),
                (index as f64 + 1.0).into(),
                (*rate).into(),
                (rate / STAGES_CEILING).into(),
                (rate / rates[0]).into(),
            ])
        })
    });
    let full = STAGES_FULL.iter().map(|(threads, rate)| {
        Row::new(vec![
            "whole backup, level 2".into(),
            (*threads as f64).into(),
            (*rate).into(),
            (rate / STAGES_CEILING).into(),
            windlass_report::Cell::Missing,
        ])
    });
    Section {
        heading: "The article".to_owned(),
        text: vec![format!(
            "Its disks gave {STAGES_CEILING:.0} MB/s; two threads at level 2 were the best whole backup."
        )],
        tables: vec![Table {
            key: "article",
            caption: "SQL Backup Pro, four disks".to_owned(),
            columns: vec![
                Column::text("step", "Step"),
                Column::number("threads", "Threads", "", 0),
                Column::number("megabytes_per_second", "Throughput", "MB/s", 0),
                Column::number("times_read_only", "× read only", "", 2),
                Column::number("times_one_thread", "× one thread", "", 2),
            ],
            rows: transform.chain(full).collect(),
        }],
        ..Section::default()
    }
}
