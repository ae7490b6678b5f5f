//! The table of "SQL Server Backup I/O Performance" (2007): one and several files, with and without
//! BLOCKSIZE = 65536; and MAXTRANSFERSIZE, which readers of the article requested.

use serde_json::Map;
use windlass_base::size::Bytes;
use windlass_codec::Compression;
use windlass_report::{
    Chart, ChartKind, Column, Figure, Lines, Mark, Report, Section, Series, Table, TableOf,
};

use super::{Bench, name};
use crate::article::{DEVICES, DEVICES_OF_120};
use crate::error::Error;
use crate::measure::{Scope, Setting};
use crate::present::{Outcome, run_columns, runs_json, stage_chart};
use crate::rounds::{Runs, interleaved};

/// The values to combine.
pub(super) struct Grid<'a> {
    pub(super) files: &'a [usize],
    pub(super) block_bytes: &'a [u32],
    pub(super) transfer_bytes: &'a [u32],
    pub(super) compression: Compression,
}

impl Grid<'_> {
    /// All combinations of block and transfer sizes.
    fn options(&self) -> Vec<(u32, u32)> {
        let blocks = self.block_bytes.iter();
        blocks
            .flat_map(|block| {
                self.transfer_bytes
                    .iter()
                    .map(move |transfer| (*block, *transfer))
            })
            .collect()
    }

    fn setting(&self, files: usize, (block, transfer): (u32, u32)) -> Setting {
        Setting {
            files,
            block_bytes: Some(block),
            transfer_bytes: Some(transfer),
            ..Setting::new(Scope::Disk, self.compression)
        }
    }
}

pub(super) fn run(bench: &Bench<'_>, grid: &Grid<'_>) -> Result<Outcome, Error> {
    let read = Setting::new(Scope::Read, Compression::NONE);
    let options = grid.options();
    let mut settings = vec![read];
    let ends = [grid.files.first(), grid.files.last()];
    settings.extend(ends.into_iter().flatten().map(|files| Setting {
        files: *files,
        ..Setting::new(Scope::Write, Compression::NONE)
    }));
    settings.dedup();
    let ceilings = settings.len();
    for files in grid.files {
        settings.extend(options.iter().map(|options| grid.setting(*files, *options)));
    }
    let runs = interleaved(&settings, bench.conditions.rounds, |setting, round| {
        bench.step(round, &label(setting), |laboratory| {
            laboratory.backup(setting, None)
        })
    })?;
    let lines: Vec<(Setting, Runs)> = settings.into_iter().zip(runs).collect();
    let named = lines.iter().map(|(setting, runs)| (label(setting), runs));
    let (ceilings, lines) = lines.split_at(ceilings);
    let best = |scope: Scope| {
        let rates = ceilings
            .iter()
            .filter(|(setting, _)| setting.scope == scope);
        rates
            .map(|(_, runs)| runs.rate().median)
            .fold(0.0, f64::max)
    };
    let results = Results {
        grid,
        options: &options,
        ceilings,
        lines,
        read: best(Scope::Read),
        write: best(Scope::Write),
    };
    Ok(Outcome {
        kind: "devices",
        report: Report {
            title: bench.title("Devices"),
            subtitle: format!(
                "Files, BLOCKSIZE and MAXTRANSFERSIZE; compression {}",
                name(grid.compression)
            ),
            figures: results.figures(),
            sections: vec![results.section(), article_section(), results.stages()],
            notes: vec![
                "Article: SQL Server Backup I/O Performance (Linchi Shea, 2007). SQL Server kept too few requests in flight, so that one file did not reach what the drive could do; here one file should.".to_owned(),
                "× write only compares what went to the files with writing alone. When the same drive is read and written, both ceilings share it.".to_owned(),
            ],
            ..Report::default()
        },
        runs: runs_json(named),
        extra: Map::new(),
    })
}

fn label(setting: &Setting) -> String {
    let size = |bytes: Option<u32>| bytes.map_or_else(|| "default".to_owned(), short_size);
    match setting.scope {
        Scope::Read => "read only".to_owned(),
        Scope::Write if setting.files == 1 => "write only, 1 file".to_owned(),
        Scope::Write => format!("write only, {} files", setting.files),
        _ => format!(
            "{} {}, BLOCKSIZE {}, MAXTRANSFERSIZE {}",
            setting.files,
            if setting.files == 1 { "file" } else { "files" },
            size(setting.block_bytes),
            size(setting.transfer_bytes),
        ),
    }
}

/// `64 KB` rather than `64.0 KB`.
pub(crate) fn short_size(bytes: u32) -> String {
    Bytes(u64::from(bytes)).to_string().replace(".0 ", " ")
}

struct Results<'a> {
    grid: &'a Grid<'a>,
    options: &'a [(u32, u32)],
    lines: &'a [(Setting, Runs)],
    /// Only reading, and only writing.
    ceilings: &'a [(Setting, Runs)],
    /// Their best rates.
    read: f64,
    write: f64,
}

impl Results<'_> {
    fn rate(&self, files: usize, (block, transfer): (u32, u32)) -> Option<f64> {
        let is_it = |(setting, _): &&(Setting, Runs)| {
            setting.files == files
                && setting.block_bytes == Some(block)
                && setting.transfer_bytes == Some(transfer)
        };
        let line = self.lines.iter().find(is_it);
        line.map(|(_, runs)| runs.rate().median)
    }

    /// The fastest of the lines accepted by `wanted`.
    fn best(&self, wanted: impl Fn(&Setting) -> bool) -> Option<&(Setting, Runs)> {
        let lines = self.lines.iter().filter(|(setting, _)| wanted(setting));
        lines.max_by(|a, b| a.1.rate().median.total_cmp(&b.1.rate().median))
    }

    fn figures(&self) -> Vec<Figure> {
        let mut figures = vec![Figure {
            label: "read only".to_owned(),
            value: format!("{:.0} MB/s", self.read),
            detail: "nothing is written".to_owned(),
        }];
        figures.push(Figure {
            label: "write only".to_owned(),
            value: format!("{:.0} MB/s", self.write),
            detail: "from memory, without a backup".to_owned(),
        });
        let mut add = |label: &str, line: Option<&(Setting, Runs)>| {
            if let Some((setting, runs)) = line {
                figures.push(Figure {
                    label: label.to_owned(),
                    value: format!("{:.0} MB/s", runs.rate().median),
                    detail: self::label(setting),
                });
            }
        };
        add(
            "best with one file",
            self.best(|setting| setting.files == 1),
        );
        add("best with several", self.best(|setting| setting.files > 1));
        figures
    }

    fn section(&self) -> Section {
        let series = self.options.iter().map(|options| Series {
            name: format!(
                "{} blocks, {} transfers",
                short_size(options.0),
                short_size(options.1)
            ),
            values: self
                .grid
                .files
                .iter()
                .map(|files| self.rate(*files, *options))
                .collect(),
        });
        Section {
            heading: "Throughput".to_owned(),
            charts: vec![Chart {
                title: "Throughput by number of files. Higher is better".to_owned(),
                description: "One line per BLOCKSIZE and MAXTRANSFERSIZE; the dashed lines are \
                              reading only and writing only."
                    .to_owned(),
                kind: ChartKind::Lines(Lines {
                    step_name: "files".to_owned(),
                    steps: self.grid.files.iter().map(ToString::to_string).collect(),
                    unit: "MB/s".to_owned(),
                    decimals: 0,
                    series: series.collect(),
                    marks: vec![
                        Mark::rate("read only", self.read),
                        Mark::rate("write only", self.write),
                    ],
                }),
            }],
            tables: vec![self.ceilings(), self.table()],
            ..Section::default()
        }
    }

    /// What the drives do without a backup: no row of the next table can be better than both of its ends.
    fn ceilings(&self) -> Table {
        let table = TableOf::default().column(
            Column::text("run", "Run"),
            |(setting, _): &&(Setting, Runs)| label(setting),
        );
        run_columns(table, |(_, runs)| runs).of(
            "ceilings",
            "What the drives do without a backup: medians",
            self.ceilings,
        )
    }

    fn table(&self) -> Table {
        let best = self.best(|_| true).map(|(_, runs)| runs.rate().median);
        let (read, write) = (self.read, self.write);
        let options = |setting: &Setting| {
            (
                setting.block_bytes.unwrap_or_default(),
                setting.transfer_bytes.unwrap_or_default(),
            )
        };
        let article = move |(setting, _): &&(Setting, Runs)| {
            let known = DEVICES.iter().find(|(files, _, _)| *files == setting.files);
            known.map(|(_, plain, large)| {
                let (_, plain_one, large_one) = DEVICES[0];
                match options(setting).0 == ARTICLE_BLOCK_BYTES {
                    true => large / large_one,
                    false => plain / plain_one,
                }
            })
        };
        let table = TableOf::default()
            .column(
                Column::number("files", "Files", "", 0),
                |(setting, _): &&(Setting, Runs)| setting.files as f64,
            )
            .column(
                Column::number("block_bytes", "BLOCKSIZE", "bytes", 0),
                move |(setting, _)| f64::from(options(setting).0),
            )
            .column(
                Column::number("transfer_kilobytes", "MAXTRANSFERSIZE", "KB", 0),
                move |(setting, _)| f64::from(options(setting).1) / 1024.0,
            );
        run_columns(table, |(_, runs)| runs)
            .column(
                Column::number("times_read_only", "× read only", "", 2),
                move |(_, runs)| (read > 0.0).then(|| runs.rate().median / read),
            )
            .column(
                Column::number("times_write_only", "× write only", "", 2),
                move |(_, runs)| (write > 0.0).then(|| runs.rate().median / runs.ratio() / write),
            )
            .column(
                Column::number("times_one_file", "× one file", "", 2),
                move |(setting, runs)| {
                    let one = self.rate(1, options(setting));
                    one.map(|one| runs.rate().median / one)
                },
            )
            .column(
                Column::number("article_times_one_file", "article: × one file", "", 2),
                article,
            )
            .marked(move |(_, runs)| best.is_some_and(|best| runs.rate().median >= best))
            .of(
                "devices",
                "Backups by files and sizes: medians. The fastest is marked",
                self.lines,
            )
    }

    fn stages(&self) -> Section {
        let first = self.options.first().copied();
        let shown = |setting: &Setting| {
            first.is_some_and(|(block, transfer)| {
                setting.block_bytes == Some(block) && setting.transfer_bytes == Some(transfer)
            })
        };
        let lines = || self.lines.iter().filter(|(setting, _)| shown(setting));
        let named = || lines().map(|(setting, runs)| (label(setting), runs));
        Section {
            heading: "What limited the backups".to_owned(),
            charts: vec![Chart {
                title: "Share of the time of each stage's threads".to_owned(),
                description: "For each number of files, three bars: read, compress, write."
                    .to_owned(),
                kind: stage_chart(named()),
            }],
            tables: vec![super::stages::limits_table("limits", named())],
            ..Section::default()
        }
    }
}

const ARTICLE_BLOCK_BYTES: u32 = 65536;

/// The article's own figures, in the same form.
fn article_section() -> Section {
    let [one, striped, drive] = DEVICES_OF_120;
    let (_, plain_one, large_one) = DEVICES[0];
    let table = TableOf::default()
        .column(
            Column::number("files", "Files", "", 0),
            |(files, _, _): &&(usize, f64, f64)| *files as f64,
        )
        .column(
            Column::number("megabytes_per_second", "without BLOCKSIZE", "MB/s", 0),
            |(_, plain, _)| *plain,
        )
        .column(
            Column::number("megabytes_per_second_64k", "BLOCKSIZE 65536", "MB/s", 0),
            |(_, _, large)| *large,
        )
        .column(
            Column::number("times_one_file", "× one file", "", 2),
            move |(_, plain, _)| plain / plain_one,
        )
        .column(
            Column::number("times_one_file_64k", "BLOCKSIZE 65536: × one file", "", 2),
            move |(_, _, large)| large / large_one,
        );
    Section {
        heading: "The article".to_owned(),
        text: vec![format!(
            "On its first machine one file took {one:.0} MB/s and several took {striped:.0} MB/s of the {drive:.0} MB/s that the drive could do: {:.2} and {:.2} of it.",
            one / drive,
            striped / drive
        )],
        tables: vec![table.of("article", "SQL Server 2005, second machine", &DEVICES)],
        ..Section::default()
    }
}
