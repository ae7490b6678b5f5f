//! The tables of "Improving Backup efficiency on SQL Server 2025 with the new ZSTD algorithm", and
//! the comparison of "Making SQL Server Database Backups Faster with the Intel QAT".

use serde_json::Map;
use windlass_codec::{Algorithm, Compression};
use windlass_report::{
    BarGroup, Bars, Cell, Chart, ChartKind, Column, Report, Row, Section, Table,
};

use super::{Bench, megabytes, name};
use crate::article::{QAT_FILES, QAT_SECONDS, ZstdArticle};
use crate::error::Error;
use crate::measure::{Scope, Setting};
use crate::present::{Outcome, runs_json, stage_chart};
use crate::rounds::{Runs, interleaved};

/// A variant and its runs.
struct Line {
    setting: Setting,
    label: String,
    runs: Runs,
}

pub(super) fn run(bench: &Bench<'_>, compressions: &[Compression]) -> Result<Outcome, Error> {
    let of = |scope: Scope| {
        compressions
            .iter()
            .map(move |compression| Setting::new(scope, *compression))
    };
    let mut settings: Vec<Setting> = of(Scope::Disk).chain(of(Scope::Nul)).collect();
    let is_qat_asked = QAT_SECONDS
        .iter()
        .all(|(compression, _)| compressions.contains(compression));
    if is_qat_asked {
        settings.extend(QAT_SECONDS.iter().map(|(compression, _)| Setting {
            files: QAT_FILES,
            ..Setting::new(Scope::Disk, *compression)
        }));
    }
    let runs = interleaved(&settings, bench.conditions.rounds, |setting, round| {
        bench.step(round, &label(setting), |laboratory| {
            laboratory.backup(setting, None)
        })
    })?;
    let lines: Vec<Line> = settings
        .into_iter()
        .zip(runs)
        .map(|(setting, runs)| Line {
            setting,
            label: label(&setting),
            runs,
        })
        .collect();
    let part = |scope: Scope, files: usize| -> Vec<&Line> {
        let wanted = |line: &&Line| line.setting.scope == scope && line.setting.files == files;
        lines.iter().filter(wanted).collect()
    };
    let (disk, nul) = (part(Scope::Disk, 1), part(Scope::Nul, 1));
    let mut sections = vec![
        overview(&disk, &nul),
        table_section("To a file", "disk", &disk),
        table_section("To NUL", "nul", &nul),
    ];
    if is_qat_asked {
        sections.push(qat_section(&part(Scope::Disk, QAT_FILES)));
    }
    sections.push(stages_section(&disk));
    Ok(Outcome {
        kind: "compression",
        report: Report {
            title: bench.title("Compression"),
            subtitle: "Every algorithm and level, to a file and to NUL".to_owned(),
            sections,
            notes: vec![
                "Article: Improving Backup efficiency on SQL Server 2025 with the new ZSTD algorithm (Pythian), 50 GB on a Core i7-13700HX. Ratios are to MS_XPRESS of the same table.".to_owned(),
                "QAT article: Making SQL Server Database Backups Faster with the Intel QuickAssist Technology: 4.783 s with MS_XPRESS, 2.423 s with QAT_DEFLATE in software, four files.".to_owned(),
            ],
            ..Report::default()
        },
        runs: runs_json(lines.iter().map(|line| (line.label.clone(), &line.runs))),
        extra: Map::new(),
    })
}

fn label(setting: &Setting) -> String {
    let to = match (setting.scope, setting.files) {
        (Scope::Nul, _) => "NUL".to_owned(),
        (_, 1) => "file".to_owned(),
        (_, files) => format!("{files} files"),
    };
    format!("{}, {to}", name(setting.compression))
}

fn overview(disk: &[&Line], nul: &[&Line]) -> Section {
    let rate = |line: &&Line| Some(line.runs.rate());
    let rates = disk.iter().zip(nul).map(|(disk, nul)| BarGroup {
        label: name(disk.setting.compression),
        values: vec![rate(disk), rate(nul)],
    });
    let sizes = disk.iter().map(|line| BarGroup {
        label: name(line.setting.compression),
        values: vec![Some(windlass_report::Spread::exact(megabytes(
            line.runs.stored_bytes(),
        )))],
    });
    let best = disk.iter().max_by(|a, b| {
        let rate = |line: &Line| line.runs.rate().median;
        rate(a).total_cmp(&rate(b))
    });
    let fastest = best.map_or_else(String::new, |line| {
        format!(" Fastest to a file: {}.", name(line.setting.compression))
    });
    let chart = |title: &str, description: String, bars: Bars| Chart {
        title: title.to_owned(),
        description,
        kind: ChartKind::Bars(bars),
    };
    Section {
        heading: "At a glance".to_owned(),
        charts: vec![
            chart(
                "Throughput: megabytes of the database per second. Longer is better",
                format!("For each compression, one bar to a file and one to NUL.{fastest}"),
                Bars {
                    unit: "MB/s".to_owned(),
                    series: vec!["to a file".to_owned(), "to NUL".to_owned()],
                    groups: rates.collect(),
                    ..Bars::default()
                },
            ),
            chart(
                "Size of the backup. Shorter is better",
                "One bar per compression.".to_owned(),
                Bars {
                    unit: "MB".to_owned(),
                    decimals: 1,
                    series: vec!["size".to_owned()],
                    groups: sizes.collect(),
                    ..Bars::default()
                },
            ),
        ],
        ..Section::default()
    }
}

/// The article's table: time, throughput, CPU, size; and its ratios next to ours.
fn table_section(heading: &str, key: &'static str, lines: &[&Line]) -> Section {
    let baseline = lines
        .iter()
        .find(|line| line.setting.compression == Compression::MS_XPRESS)
        .map(|line| line.runs.rate().median);
    let is_disk = key == "disk";
    let mut columns = vec![
        Column::text("compression", "Compression"),
        Column::number("seconds", "Time", "s", 2),
        Column::number("spread_percent", "Spread", "%", 0),
        Column::number("megabytes_per_second", "Throughput", "MB/s", 0),
        Column::number("cpu_percent", "CPU", "%", 0),
        Column::number("megabytes", "Size", "MB", 1),
        Column::number("ratio", "Ratio", "", 2),
        Column::number("times_ms_xpress", "× MS_XPRESS", "", 2),
        Column::number("article_times_ms_xpress", "article: × MS_XPRESS", "", 2),
    ];
    if is_disk {
        columns.push(Column::number("article_ratio", "article: ratio", "", 2));
        columns.push(Column::number(
            "article_cpu_percent",
            "article: CPU",
            "%",
            0,
        ));
    }
    let row = |line: &&Line| {
        let article = ZstdArticle::of(line.setting.compression);
        let article_rate = |article: ZstdArticle| {
            let of = |line: ZstdArticle| {
                if is_disk {
                    line.disk_rate
                } else {
                    line.nul_rate
                }
            };
            of(article) / of(ZstdArticle::baseline())
        };
        let rate = line.runs.rate().median;
        let mut cells: Vec<Cell> = vec![
            name(line.setting.compression).into(),
            line.runs.seconds().median.into(),
            line.runs.spread_percent().into(),
            rate.into(),
            line.runs.cpu_percent().into(),
            megabytes(line.runs.stored_bytes()).into(),
            line.runs.ratio().into(),
            baseline.map(|baseline| rate / baseline).into(),
            article.map(article_rate).into(),
        ];
        if is_disk {
            cells.push(article.map(|article| article.ratio()).into());
            cells.push(article.map(|article| article.cpu_percent).into());
        }
        Row::new(cells)
    };
    Section {
        heading: heading.to_owned(),
        tables: vec![Table {
            key,
            caption: format!("{heading}: medians"),
            columns,
            rows: lines.iter().map(row).collect(),
        }],
        ..Section::default()
    }
}

fn qat_section(lines: &[&Line]) -> Section {
    let seconds = |algorithm: Algorithm| {
        let of = |line: &&&Line| line.setting.compression.algorithm == algorithm;
        lines.iter().find(of).map(|line| line.runs.seconds().median)
    };
    let baseline = seconds(Algorithm::MsXpress);
    let article_baseline = QAT_SECONDS[0].1;
    let row = |line: &&Line| {
        let of = |(compression, _): &&(Compression, f64)| *compression == line.setting.compression;
        let article = QAT_SECONDS
            .iter()
            .find(of)
            .map(|(_, seconds)| article_baseline / seconds);
        let seconds = line.runs.seconds().median;
        Row::new(vec![
            name(line.setting.compression).into(),
            seconds.into(),
            line.runs.spread_percent().into(),
            line.runs.rate().median.into(),
            line.runs.cpu_percent().into(),
            megabytes(line.runs.stored_bytes()).into(),
            baseline.map(|baseline| baseline / seconds).into(),
            article.into(),
        ])
    };
    Section {
        heading: "QAT_DEFLATE and MS_XPRESS, four files".to_owned(),
        tables: vec![Table {
            key: "qat",
            caption: "To four files: medians".to_owned(),
            columns: vec![
                Column::text("compression", "Compression"),
                Column::number("seconds", "Time", "s", 2),
                Column::number("spread_percent", "Spread", "%", 0),
                Column::number("megabytes_per_second", "Throughput", "MB/s", 0),
                Column::number("cpu_percent", "CPU", "%", 0),
                Column::number("megabytes", "Size", "MB", 1),
                Column::number("times_ms_xpress", "× MS_XPRESS", "", 2),
                Column::number("article_times_ms_xpress", "article: × MS_XPRESS", "", 2),
            ],
            rows: lines.iter().map(row).collect(),
        }],
        ..Section::default()
    }
}

fn stages_section(disk: &[&Line]) -> Section {
    let named = disk
        .iter()
        .map(|line| (name(line.setting.compression), &line.runs));
    Section {
        heading: "What limited each backup".to_owned(),
        text: vec![
            "The stage that is busy nearly all the time limits the backup; the others wait for it."
                .to_owned(),
        ],
        charts: vec![Chart {
            title: "Share of the time of each stage's threads, to a file".to_owned(),
            description: "For each compression, three bars: read, compress, write.".to_owned(),
            kind: stage_chart(named),
        }],
        tables: vec![super::stages::limits_table(
            "limits",
            disk.iter()
                .map(|line| (name(line.setting.compression), &line.runs)),
        )],
        ..Section::default()
    }
}
