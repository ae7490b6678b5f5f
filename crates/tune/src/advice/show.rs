//! Formats the results of the procedure as a report.

use serde_json::{Map, Value as Json, json};
use windlass_base::size::Bytes;
use windlass_report::{
    BarGroup, Bars, Chart, ChartKind, Column, Figure, Lines, Listing, Mark, Report, Section,
    Series, Table, TableOf,
};

use super::procedure::{describe, options};
use super::{Advice, Decision, Prediction, Trial};
use crate::experiment::{megabytes, name};
use crate::measure::{Scope, Setting};
use crate::present::{self, Outcome, limit, runs_json, stage_chart};

/// The recommendation as commands.
#[derive(Debug, Clone)]
pub struct Statements {
    pub tsql: String,
    /// A command line.
    pub command: String,
}

impl Advice {
    /// All results, with the recommendation as commands.
    pub fn outcome(&self, statements: &Statements) -> Outcome {
        let trials = || {
            let all = [&self.read, &self.write, &self.transform, &self.full];
            let all = all.into_iter().flatten();
            all.chain([&self.confirmed])
        };
        let named = trials().map(|trial| (describe(&trial.setting), &trial.runs));
        let repetition = format!(
            "samples, for about {}; candidates alternate",
            duration(self.request.time.as_secs_f64())
        );
        let mut notes = vec![
            format!(
                "Goal {}: {}. Candidates run in turns. One drops out when it is worse with 95 % \
                 confidence, the whole choice considered; of those that are left the simplest is \
                 chosen: all threads, the fewest files, the default MAXTRANSFERSIZE. They are \
                 enough if they reach 97 % of the best (threads) or 95 % (the others).",
                self.request.goal,
                self.request.goal.words()
            ),
            "Samples are contiguous pieces spread over the database; the run of a sample starts \
             when the database is open. The prediction scales the last runs to the whole database \
             and adds the time to open it. A drive with a cache may write a sample faster than a \
             whole backup."
                .to_owned(),
        ];
        notes.extend(present::notes());
        Outcome {
            kind: "tune",
            report: Report {
                title: format!("Tuning: {}", self.database.name()),
                subtitle: "The bottleneck of backups of this database, and recommended settings"
                    .to_owned(),
                figures: self.figures(),
                facts: present::facts(&self.database, self.request.cache, repetition),
                sections: vec![
                    self.recommendation_section(statements),
                    self.read_section(),
                    self.transform_section(),
                    self.full_section(),
                    self.stages_section(),
                ],
                notes,
            },
            runs: runs_json(named),
            extra: self.extra(statements),
        }
    }

    fn figures(&self) -> Vec<Figure> {
        let prediction = &self.prediction;
        let database = self.database.bytes() as f64;
        let ratio = database / (prediction.stored_bytes.max(1) as f64);
        let figure = |label: &str, value: String, detail: String| Figure {
            label: label.to_owned(),
            value,
            detail,
        };
        vec![
            figure(
                "predicted duration",
                duration(prediction.seconds.median),
                format!(
                    "{} to {}",
                    duration(prediction.seconds.low),
                    duration(prediction.seconds.high)
                ),
            ),
            figure(
                "predicted size",
                Bytes(prediction.stored_bytes).to_string(),
                format!("ratio {ratio:.2}"),
            ),
            figure(
                "throughput",
                format!("{:.0} MB/s", prediction.rate),
                format!(
                    "read ceiling {:.0} MB/s, write ceiling {:.0} MB/s",
                    ceiling(&self.read),
                    ceiling(&self.write)
                ),
            ),
            figure(
                "limited by",
                prediction.limit.to_owned(),
                format!(
                    "{:.0} % of the database sampled",
                    prediction.sampled * 100.0
                ),
            ),
        ]
    }

    fn recommendation_section(&self, statements: &Statements) -> Section {
        let listing = |caption: &str, text: &str| Listing {
            caption: caption.to_owned(),
            text: text.to_owned(),
        };
        let prediction = &self.prediction;
        let table = TableOf::default()
            .column(
                Column::number("seconds", "Time", "s", 2),
                |reported: &&Prediction| reported.seconds.median,
            )
            .column(
                Column::number("seconds_low", "at best", "s", 2),
                |reported| reported.seconds.low,
            )
            .column(
                Column::number("seconds_high", "at worst", "s", 2),
                |reported| reported.seconds.high,
            )
            .column(
                Column::number("megabytes_per_second", "Throughput", "MB/s", 0),
                |reported| reported.rate,
            )
            .column(Column::number("megabytes", "Size", "MB", 1), |reported| {
                megabytes(reported.stored_bytes)
            })
            .column(
                Column::number("sampled_percent", "Sampled", "%", 0),
                |reported| reported.sampled * 100.0,
            )
            .column(Column::text("limit", "Limit"), |reported| reported.limit);
        Section {
            heading: "Recommended".to_owned(),
            listings: vec![
                listing("T-SQL", &statements.tsql),
                listing("Command line", &statements.command),
            ],
            tables: vec![
                table.of("prediction", "The whole backup, predicted", [prediction]),
                self.decisions(),
            ],
            ..Section::default()
        }
    }

    /// What was chosen, and how sure that is.
    fn decisions(&self) -> Table {
        TableOf::default()
            .column(Column::text("choice", "Choice"), |one: &&Decision| {
                one.subject.clone()
            })
            .column(Column::text("chosen", "Chosen"), |one| one.chosen.clone())
            .column(Column::text("certainty", "At 95 %"), |one| one.certainty)
            .column(Column::text("others", "Not shown to be worse"), |one| {
                one.others.join("; ")
            })
            .column(Column::number("rounds", "Runs", "", 0), |one| {
                one.rounds as f64
            })
            .of("decisions", "How the settings were chosen", &self.decisions)
    }

    fn read_section(&self) -> Section {
        Section {
            heading: "1. Read, and write".to_owned(),
            text: vec![
                "How fast the database can be read, and files be written without a backup around \
                 them: no backup is faster than both allow."
                    .to_owned(),
            ],
            tables: vec![
                self.table("read", "Reading alone", &self.read),
                self.table("write", "Writing alone", &self.write),
            ],
            ..Section::default()
        }
    }

    fn transform_section(&self) -> Section {
        let mut threads: Vec<u32> = self
            .transform
            .iter()
            .filter_map(|trial| trial.setting.threads)
            .collect();
        threads.sort_unstable();
        threads.dedup();
        let mut compressions: Vec<_> = Vec::new();
        for trial in &self.transform {
            if !compressions.contains(&trial.setting.compression) {
                compressions.push(trial.setting.compression);
            }
        }
        let rate = |setting: &dyn Fn(&Setting) -> bool| {
            let trial = self.transform.iter().find(|trial| setting(&trial.setting));
            trial.map(Trial::rate)
        };
        let series = compressions.iter().map(|compression| Series {
            name: name(*compression),
            values: threads
                .iter()
                .map(|threads| {
                    rate(&|setting| {
                        setting.compression == *compression && setting.threads == Some(*threads)
                    })
                })
                .collect(),
        });
        Section {
            heading: "2. Read and compress".to_owned(),
            text: vec!["Which compression keeps up with reading, and how many threads that takes. Nothing is written.".to_owned()],
            charts: vec![Chart {
                title: "Throughput by number of threads. Higher is better".to_owned(),
                description: "One line per compression; the dashed line is the read ceiling.".to_owned(),
                kind: ChartKind::Lines(Lines {
                    step_name: "threads".to_owned(),
                    steps: threads.iter().map(ToString::to_string).collect(),
                    unit: "MB/s".to_owned(),
                    decimals: 0,
                    series: series.collect(),
                    marks: vec![Mark::rate("read ceiling", ceiling(&self.read))],
                }),
            }],
            tables: vec![self.table("transform", "Reading and compressing", &self.transform)],
            ..Section::default()
        }
    }

    fn full_section(&self) -> Section {
        let group = |trial: &Trial| BarGroup {
            label: options(&trial.setting),
            values: vec![Some(trial.runs.rate())],
        };
        Section {
            heading: "3. The whole backup".to_owned(),
            text: vec!["The best compressions, and none, by number of files; then other transfer sizes with the best of them.".to_owned()],
            charts: vec![Chart {
                title: "Throughput. Longer is better".to_owned(),
                description: "One bar per setting; the dashed lines are the ceilings.".to_owned(),
                kind: ChartKind::Bars(Bars {
                    unit: "MB/s".to_owned(),
                    series: vec!["throughput".to_owned()],
                    groups: self.full.iter().map(group).collect(),
                    marks: vec![
                        Mark::rate("read ceiling", ceiling(&self.read)),
                        Mark::rate("write ceiling", ceiling(&self.write)),
                    ],
                    ..Bars::default()
                }),
            }],
            tables: vec![self.table("full", "Whole backups", &self.full)],
            ..Section::default()
        }
    }

    fn stages_section(&self) -> Section {
        let best_read = self.read.iter().find(|trial| trial.is_chosen);
        let own = self.transform.iter().find(|trial| {
            trial.is_chosen && trial.setting.compression == self.confirmed.setting.compression
        });
        let steps = [
            ("1. read only", best_read),
            ("2. read and compress", own),
            ("3. the whole backup", Some(&self.confirmed)),
        ];
        let named = || {
            let steps = steps.iter();
            steps.filter_map(|(label, trial)| {
                trial.map(|trial| {
                    let label = format!("{label}: {}", options(&trial.setting));
                    (label, &trial.runs)
                })
            })
        };
        Section {
            heading: "Bottleneck of each step".to_owned(),
            charts: vec![Chart {
                title: "Share of the time of each stage's threads, recommended settings".to_owned(),
                description: "For each step three bars: read, compress, write.".to_owned(),
                kind: stage_chart(named()),
            }],
            tables: vec![crate::experiment::limits_table("limits", named())],
            ..Section::default()
        }
    }

    fn table(&self, key: &'static str, what: &str, trials: &[Trial]) -> Table {
        let (read, write) = (ceiling(&self.read), ceiling(&self.write));
        TableOf::default()
            .column(Column::text("setting", "Setting"), |trial: &&Trial| {
                options(&trial.setting)
            })
            .column(
                Column::number("megabytes_per_second", "Throughput", "MB/s", 0),
                |trial| trial.rate(),
            )
            .column(
                Column::number("spread_percent", "Spread", "%", 0),
                |trial| trial.runs.spread_percent(),
            )
            .column(
                Column::number("times_read_only", "× read ceiling", "", 2),
                move |trial| (read > 0.0).then(|| trial.rate() / read),
            )
            .column(
                Column::number("times_write_only", "× write ceiling", "", 2),
                move |trial| {
                    let writes = matches!(trial.setting.scope, Scope::Disk | Scope::Write);
                    (writes && write > 0.0).then(|| trial.rate() / trial.runs.ratio() / write)
                },
            )
            .column(Column::number("rounds", "Runs", "", 0), |trial| {
                trial.runs.iter().count() as f64
            })
            .column(Column::number("cpu_percent", "CPU", "%", 0), |trial| {
                trial.runs.cpu_percent()
            })
            .column(Column::number("ratio", "Ratio", "", 2), |trial| {
                trial.runs.ratio()
            })
            .column(
                Column::number("sample_megabytes", "Sample", "MB", 0),
                |trial| megabytes(trial.runs.processed_bytes()),
            )
            .column(Column::text("limit", "Limit"), |trial| {
                trial.runs.typical().map_or("", |run| limit(&run.stages))
            })
            .marked(|trial| trial.is_chosen)
            .of(
                key,
                format!("{what}: medians. What the next step goes on with is marked"),
                trials,
            )
    }

    fn extra(&self, statements: &Statements) -> Map<String, Json> {
        let recommendation = &self.recommendation;
        let prediction = &self.prediction;
        let devices = recommendation.devices.iter();
        let mut extra = Map::new();
        extra.insert(
            "recommendation".to_owned(),
            json!({
                "tsql": statements.tsql,
                "command": statements.command,
                "compression": recommendation.compression.to_string(),
                "threads": recommendation.threads,
                "max_transfer_size": recommendation.transfer_bytes,
                "devices": devices.map(|path| path.display().to_string()).collect::<Vec<_>>(),
            }),
        );
        extra.insert(
            "prediction".to_owned(),
            json!({
                "seconds": prediction.seconds.median,
                "seconds_low": prediction.seconds.low,
                "seconds_high": prediction.seconds.high,
                "stored_bytes": prediction.stored_bytes,
                "megabytes_per_second": prediction.rate,
                "limit": prediction.limit,
                "sampled": prediction.sampled,
            }),
        );
        extra
    }
}

/// The best of the trials that only read or only write.
fn ceiling(trials: &[Trial]) -> f64 {
    trials.iter().map(Trial::rate).fold(0.0, f64::max)
}

/// Seconds in human-readable form.
fn duration(seconds: f64) -> String {
    if seconds < 1.0 {
        return format!("{:.0} ms", seconds * 1000.0);
    }
    if seconds < 120.0 {
        return format!("{seconds:.1} s");
    }
    let minutes = (seconds / 60.0).round();
    if minutes < 120.0 {
        return format!("{minutes:.0} min");
    }
    format!(
        "{:.0} h {:.0} min",
        (minutes / 60.0).floor(),
        minutes % 60.0
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_well() {
        let texts = [0.25, 7.3, 119.0, 3000.0, 9000.0].map(duration);
        assert_eq!(
            texts,
            ["250 ms", "7.3 s", "119.0 s", "50 min", "2 h 30 min"]
        );
    }
}
