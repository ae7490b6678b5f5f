//! The tables of "Improving Backup efficiency on SQL Server 2025 with the new ZSTD algorithm", and
//! the comparison of "Making SQL Server Database Backups Faster with the Intel QAT".

use serde_json::Map;
use windlass_codec::{Algorithm, Compression};
use windlass_report::{BarGroup, Bars, Chart, ChartKind, Column, Report, Section, TableOf};

use super::{Bench, name};
use crate::article::{QAT_FILES, QAT_SECONDS, ZstdArticle};
use crate::error::Error;
use crate::measure::{Scope, Setting};
use crate::present::{Outcome, run_columns, runs_json, size_column, stage_chart};
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

/// Throughput as measured; then the article's four charts, as ratios to `MS_XPRESS`: the machines differ.
fn overview(disk: &[&Line], nul: &[&Line]) -> Section {
    let rate = |line: &&Line| Some(line.runs.rate());
    let rates = disk.iter().zip(nul).map(|(disk, nul)| BarGroup {
        label: name(disk.setting.compression),
        values: vec![rate(disk), rate(nul)],
    });
    let best = disk.iter().max_by(|a, b| {
        let rate = |line: &Line| line.runs.rate().median;
        rate(a).total_cmp(&rate(b))
    });
    let fastest = best.map_or_else(String::new, |line| {
        format!(" Fastest to a file: {}.", name(line.setting.compression))
    });
    let rates = Chart {
        title: "Throughput: megabytes of the database per second. Longer is better".to_owned(),
        description: format!("For each compression, one bar to a file and one to NUL.{fastest}"),
        kind: ChartKind::Bars(Bars {
            unit: "MB/s".to_owned(),
            series: vec!["to a file".to_owned(), "to NUL".to_owned()],
            groups: rates.collect(),
            ..Bars::default()
        }),
    };
    let article = |of: fn(&ZstdArticle) -> f64| {
        move |line: &Line| ZstdArticle::of(line.setting.compression).map(|line| of(&line))
    };
    let cpu = |line: &Line| line.runs.cpu_percent();
    let charts = [
        (
            "Size of the backup",
            compared(
                disk,
                |line| 1.0 / line.runs.ratio(),
                article(|of| of.gigabytes),
            ),
        ),
        ("CPU", compared(disk, cpu, article(|of| of.cpu_percent))),
        (
            "Throughput",
            compared(
                disk,
                |line| line.runs.rate().median,
                article(|of| of.disk_rate),
            ),
        ),
        (
            "Time",
            compared(
                disk,
                |line| 1.0 / line.runs.rate().median,
                article(|of| 1.0 / of.disk_rate),
            ),
        ),
    ];
    let charts = charts
        .into_iter()
        .filter_map(|(what, bars)| Some(beside(what, bars?)));
    Section {
        heading: "At a glance".to_owned(),
        charts: std::iter::once(rates).chain(charts).collect(),
        ..Section::default()
    }
}

/// For each compression a bar of ours and one of the article's, relative to `MS_XPRESS`. Without compression the
/// rate is many times theirs and would hide the differences between them, so it is left out, as in the article.
fn compared(
    lines: &[&Line],
    ours: impl Fn(&Line) -> f64,
    article: impl Fn(&Line) -> Option<f64>,
) -> Option<Bars> {
    let compressed = |line: &&&Line| line.setting.compression != Compression::NONE;
    let is_baseline = |line: &&&Line| line.setting.compression == Compression::MS_XPRESS;
    let baseline = lines.iter().find(is_baseline)?;
    let article_baseline = article(baseline)?;
    let exact = |value: f64| windlass_report::Spread::exact(value);
    let group = |line: &&Line| BarGroup {
        label: name(line.setting.compression),
        values: vec![
            Some(exact(ours(line) / ours(baseline))),
            article(line).map(|value| exact(value / article_baseline)),
        ],
    };
    Some(Bars {
        unit: "MS_XPRESS is 1".to_owned(),
        decimals: 2,
        series: vec!["here".to_owned(), "article".to_owned()],
        groups: lines.iter().filter(compressed).map(group).collect(),
        ..Bars::default()
    })
}

fn beside(what: &str, bars: Bars) -> Chart {
    Chart {
        title: format!("{what}, relative to MS_XPRESS, here and in the article"),
        description: "For each compression one bar for this machine and one for the article's."
            .to_owned(),
        kind: ChartKind::Bars(bars),
    }
}

/// The article's table: time, throughput, CPU, size; and its ratios next to Windlass's.
fn table_section(heading: &str, key: &'static str, lines: &[&Line]) -> Section {
    let baseline = lines
        .iter()
        .find(|line| line.setting.compression == Compression::MS_XPRESS)
        .map(|line| line.runs.rate().median);
    let is_disk = key == "disk";
    let article = |line: &&Line| ZstdArticle::of(line.setting.compression);
    let article_rate = move |article: ZstdArticle| {
        let of = |line: ZstdArticle| match is_disk {
            true => line.disk_rate,
            false => line.nul_rate,
        };
        of(article) / of(ZstdArticle::baseline())
    };
    let mut table = TableOf::default().column(
        Column::text("compression", "Compression"),
        |line: &&Line| name(line.setting.compression),
    );
    table = size_column(run_columns(table, |line| &line.runs), |line| &line.runs)
        .column(Column::number("ratio", "Ratio", "", 2), |line| {
            line.runs.ratio()
        })
        .column(
            Column::number("times_ms_xpress", "× MS_XPRESS", "", 2),
            move |line| baseline.map(|baseline| line.runs.rate().median / baseline),
        )
        .column(
            Column::number("article_times_ms_xpress", "article: × MS_XPRESS", "", 2),
            move |line| article(line).map(article_rate),
        );
    if is_disk {
        table = table
            .column(
                Column::number("article_ratio", "article: ratio", "", 2),
                move |line| article(line).map(|article| article.ratio()),
            )
            .column(
                Column::number("article_cpu_percent", "article: CPU", "%", 0),
                move |line| article(line).map(|article| article.cpu_percent),
            );
    }
    Section {
        heading: heading.to_owned(),
        tables: vec![table.of(key, format!("{heading}: medians"), lines.iter().copied())],
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
    let article = move |line: &&Line| {
        let compression = line.setting.compression;
        let of = |(known, _): &&(Compression, f64)| *known == compression;
        let known = QAT_SECONDS.iter().find(of);
        known.map(|(_, seconds)| article_baseline / seconds)
    };
    let table = TableOf::default().column(
        Column::text("compression", "Compression"),
        |line: &&Line| name(line.setting.compression),
    );
    let table = size_column(run_columns(table, |line| &line.runs), |line| &line.runs)
        .column(
            Column::number("times_ms_xpress", "× MS_XPRESS", "", 2),
            move |line| baseline.map(|baseline| baseline / line.runs.seconds().median),
        )
        .column(
            Column::number("article_times_ms_xpress", "article: × MS_XPRESS", "", 2),
            article,
        );
    let of_article = |line: &Line| article(&line).map(|times| 1.0 / times);
    let time = |line: &Line| line.runs.seconds().median;
    let chart = compared(lines, time, of_article).map(|bars| beside("Time to four files", bars));
    Section {
        heading: "QAT_DEFLATE and MS_XPRESS, four files".to_owned(),
        charts: chart.into_iter().collect(),
        tables: vec![table.of("qat", "To four files: medians", lines.iter().copied())],
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
