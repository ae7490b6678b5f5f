//! The steps. Each runs its candidates alternately on samples that fit its share of the time, until the choice
//! between them is clear or the time is over, and passes the best to the next step.

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use windlass_codec::{Algorithm, Compression};
use windlass_report::Spread;

use super::choice::{Certainty, Choice, Contest};
use super::target::Targets;
use super::{Advice, Decision, Prediction, Recommendation, Request, Trial};
use crate::database::Database;
use crate::error::Error;
use crate::experiment::{name, short_size, thread_counts};
use crate::measure::{Laboratory, Scope, Setting, processors};
use crate::present::limit;
use crate::rounds::{Runs, elimination, interleaved_while};

/// Shares of the time: reading, compressing, files, transfers, confirming, writing.
const SHARES: [f64; 6] = [0.08, 0.34, 0.24, 0.11, 0.15, 0.08];

/// Runs of each candidate for which the samples are sized; as many more as there is time for.
const ROUNDS: usize = 5;

/// Fewer are not compared, so that every candidate has them whatever the time.
const ROUNDS_LEAST: usize = 3;
const ROUNDS_MOST: usize = 18;

/// Runs of the recommended setting.
const CONFIRMATIONS: usize = 3;

/// Values of MAXTRANSFERSIZE to try, the default first.
const TRANSFERS: [u32; 3] = [DEFAULT_TRANSFER, 256 << 10, 4 << 20];
const DEFAULT_TRANSFER: u32 = 1 << 20;

/// All threads, the default, stay if they reach this share of the best rate.
const ENOUGH_THREADS: f64 = 0.97;

/// Fewer files and the default transfer size are preferred if they reach this share of the best
/// rate.
const ENOUGH_DEVICES: f64 = 0.95;

/// Number of compressions tried to the end, besides none.
const FINALISTS: usize = 2;

/// Runs the procedure. Reports progress to `announce`; `cancel` stops it.
///
/// # Errors
/// The first run that failed; nothing is left behind.
pub fn advise(
    database: &Database,
    request: &Request,
    cancel: &AtomicBool,
    announce: &dyn Fn(&str),
) -> Result<Advice, Error> {
    let targets = Targets::new(&request.targets, database);
    let laboratory = Laboratory::new(database, &targets.folders(), request.cache, cancel)?;
    let procedure = Procedure {
        laboratory: &laboratory,
        request,
        announce,
    };
    let mut decisions = Vec::new();
    let read = procedure.read(&mut decisions)?;
    let ceiling = chosen(&read).map_or(1.0, Trial::rate);
    let write = procedure.write(&targets.counts(), &mut decisions)?;
    let transform = procedure.transform(&mut decisions)?;
    let counts = targets.counts();
    let mut full = procedure.files(&transform, ceiling, &counts, &mut decisions)?;
    let transfers = procedure.transfers(&full, &mut decisions)?;
    if transfers.iter().any(|trial| trial.is_chosen) {
        for trial in &mut full {
            trial.is_chosen = false;
        }
    }
    full.extend(transfers);
    let (setting, rate) = chosen(&full).map_or_else(
        || (Setting::new(Scope::Disk, Compression::ZSTD_LOW), 1.0),
        |trial| (trial.setting, trial.rate()),
    );
    let confirmed = procedure.confirm(setting, rate)?;
    let recommendation = Recommendation {
        compression: setting.compression,
        threads: setting
            .threads
            .filter(|threads| *threads as usize != processors()),
        transfer_bytes: setting
            .transfer_bytes
            .filter(|bytes| *bytes != DEFAULT_TRANSFER),
        devices: targets.devices(setting.files),
    };
    Ok(Advice {
        recommendation,
        prediction: predict(database.bytes(), &confirmed),
        request: request.clone(),
        database: database.clone(),
        read,
        write,
        transform,
        full,
        confirmed,
        decisions,
    })
}

fn chosen(trials: &[Trial]) -> Option<&Trial> {
    trials.iter().find(|trial| trial.is_chosen)
}

/// A choice that a step has to make.
struct Question<'a> {
    /// What is chosen, for people.
    subject: String,
    contest: Contest,
    /// Settings and the sizes of their samples, the simplest first.
    candidates: Vec<(Setting, u64)>,
    score: &'a dyn Fn(&Runs) -> Vec<f64>,
}

impl Question<'_> {
    /// Which of settings of one kind has the highest rate.
    fn fastest(subject: String, enough: f64, candidates: Vec<(Setting, u64)>) -> Self {
        Self {
            subject,
            contest: Contest {
                enough,
                kinds: vec![0; candidates.len()],
            },
            candidates,
            score: &Runs::rates,
        }
    }

    fn choice(&self, runs: &[Runs], is_over: bool) -> Choice {
        let scores: Vec<Vec<f64>> = runs.iter().map(self.score).collect();
        self.contest.choose(&scores, is_over)
    }
}

/// Data shared by all steps.
struct Procedure<'a> {
    laboratory: &'a Laboratory<'a>,
    request: &'a Request,
    announce: &'a dyn Fn(&str),
}

impl Procedure<'_> {
    /// Time budget of a step.
    fn share(&self, step: usize) -> Duration {
        self.request.time.mul_f64(SHARES[step])
    }

    /// Bytes for a run of about `seconds` at `rate` MB/s, but enough to keep all threads busy.
    fn sample_bytes(&self, compression: Compression, rate: f64, seconds: f64) -> u64 {
        let least = 2 * processors().max(2) as u64 * compression.frame_bytes() as u64;
        let wanted = (rate * seconds * f64::from(1 << 20)) as u64;
        wanted.max(least).min(self.laboratory.database.bytes())
    }

    /// Runs the candidates of all questions alternately on their samples, until all are answered or the time of
    /// the step is over.
    fn answer(
        &self,
        step: usize,
        questions: &[Question<'_>],
        decisions: &mut Vec<Decision>,
    ) -> Result<Vec<Trial>, Error> {
        let begun = Instant::now();
        let limit = self.share(step);
        let all = questions.iter().flat_map(|question| &question.candidates);
        let settings: Vec<(Setting, u64)> = all.copied().collect();
        let mut choices = Vec::new();
        let mut rounds = 0;
        let remaining = |runs: &[Runs]| {
            rounds += 1;
            let is_over =
                rounds >= ROUNDS_LEAST && begun.elapsed() >= limit || rounds >= ROUNDS_MOST;
            let (mut left, mut first) = (Vec::new(), 0);
            choices.clear();
            for question in questions {
                let next = first + question.candidates.len();
                let choice = question.choice(&runs[first..next], is_over);
                if choice.certainty == Certainty::Open && !is_over {
                    left.extend(choice.standing.iter().map(|index| first + index));
                }
                choices.push(choice);
                first = next;
            }
            left
        };
        let runs = elimination(&settings, remaining, |(setting, bytes)| {
            (self.announce)(&describe(setting));
            self.laboratory.backup(setting, Some(*bytes))
        })?;
        let mut trials: Vec<Trial> = (settings.into_iter().zip(runs))
            .map(|((setting, _), runs)| Trial {
                setting,
                runs,
                is_chosen: false,
            })
            .collect();
        let mut first = 0;
        for (question, choice) in questions.iter().zip(choices) {
            let name = |index: usize| options(&question.candidates[index].0);
            trials[first + choice.chosen].is_chosen = true;
            let others = choice
                .standing
                .iter()
                .filter(|index| **index != choice.chosen);
            decisions.push(Decision {
                subject: question.subject.clone(),
                chosen: name(choice.chosen),
                certainty: choice.certainty.name(),
                others: others.map(|index| name(*index)).collect(),
                rounds: choice.rounds,
            });
            first += question.candidates.len();
        }
        Ok(trials)
    }

    /// The rate of a setting, from a short run.
    fn rough_rate(&self, setting: &Setting) -> Result<f64, Error> {
        let bytes = self.sample_bytes(setting.compression, 0.0, 0.0);
        (self.announce)(&format!("calibrating: {}", describe(setting)));
        Ok(self
            .laboratory
            .backup(setting, Some(bytes))?
            .rate()
            .max(1.0))
    }

    /// First step: how fast the database can be read, by MAXTRANSFERSIZE.
    fn read(&self, decisions: &mut Vec<Decision>) -> Result<Vec<Trial>, Error> {
        let setting = Setting::new(Scope::Read, Compression::NONE);
        let rate = self.rough_rate(&setting)?;
        let seconds = self.share(0).as_secs_f64() / (TRANSFERS.len() * ROUNDS) as f64;
        let bytes = self.sample_bytes(Compression::NONE, rate, seconds);
        let settings = TRANSFERS.map(|transfer| {
            let transfer_bytes = Some(transfer);
            let setting = Setting {
                transfer_bytes,
                ..setting
            };
            (setting, bytes)
        });
        let subject = "reading: MAXTRANSFERSIZE".to_owned();
        let question = Question::fastest(subject, ENOUGH_DEVICES, settings.to_vec());
        self.answer(0, &[question], decisions)
    }

    /// How fast files can be written without a backup, by their number.
    fn write(&self, counts: &[usize], decisions: &mut Vec<Decision>) -> Result<Vec<Trial>, Error> {
        let setting = Setting::new(Scope::Write, Compression::NONE);
        let rate = self.rough_rate(&setting)?;
        let seconds = self.share(5).as_secs_f64() / (counts.len() * ROUNDS) as f64;
        let bytes = self.sample_bytes(Compression::NONE, rate, seconds);
        let settings = counts.iter().map(|files| {
            let files = *files;
            (Setting { files, ..setting }, bytes)
        });
        let subject = "writing: files".to_owned();
        let question = Question::fastest(subject, ENOUGH_DEVICES, settings.collect());
        self.answer(5, &[question], decisions)
    }

    /// Second step: every compression with every number of threads. For each compression, chooses
    /// fewer threads than there are processors only if they are faster.
    fn transform(&self, decisions: &mut Vec<Decision>) -> Result<Vec<Trial>, Error> {
        let compressions = Compression::ALL.into_iter();
        let compressions = compressions.filter(|one| {
            one.algorithm != Algorithm::None && !self.request.without.contains(&one.algorithm)
        });
        let compressions: Vec<Compression> = compressions.collect();
        let mut threads = thread_counts();
        threads.retain(|threads| *threads as usize <= processors());
        let cores = processors() as f64;
        // One thread takes as long as all threads times their number.
        let weight: f64 = threads
            .iter()
            .map(|threads| cores / f64::from(*threads).min(cores))
            .sum();
        let seconds = self.share(1).as_secs_f64() / (compressions.len() * ROUNDS) as f64 / weight;
        let mut questions = Vec::new();
        for compression in compressions {
            let setting = Setting::new(Scope::Transform, compression);
            let rate = self.rough_rate(&setting)?;
            let bytes = self.sample_bytes(compression, rate, seconds);
            // All processors are the default, and so the simplest.
            let settings = threads.iter().rev().map(|threads| {
                let threads = Some(*threads);
                (Setting { threads, ..setting }, bytes)
            });
            let subject = format!("{}: threads", name(compression));
            questions.push(Question::fastest(
                subject,
                ENOUGH_THREADS,
                settings.collect(),
            ));
        }
        self.answer(1, &questions, decisions)
    }

    /// Third step, first half: whole backups with the best compressions, and with none, by number
    /// of files.
    fn files(
        &self,
        transform: &[Trial],
        ceiling: f64,
        counts: &[usize],
        decisions: &mut Vec<Decision>,
    ) -> Result<Vec<Trial>, Error> {
        let goal = self.request.goal;
        let score = |trial: &Trial| goal.score(trial.rate(), trial.runs.ratio());
        let mut finalists: Vec<&Trial> = transform.iter().filter(|trial| trial.is_chosen).collect();
        finalists.sort_by(|a, b| score(b).total_cmp(&score(a)));
        let compressed = finalists.into_iter().take(FINALISTS).map(|trial| {
            let setting = Setting {
                scope: Scope::Disk,
                ..trial.setting
            };
            (setting, trial.rate())
        });
        let none = (Setting::new(Scope::Disk, Compression::NONE), ceiling);
        let candidates: Vec<(Setting, f64)> = compressed.chain([none]).collect();
        let runs = candidates.len() * counts.len() * ROUNDS;
        let seconds = self.share(2).as_secs_f64() / runs as f64;
        let (mut settings, mut kinds) = (Vec::new(), Vec::new());
        for files in counts.iter().copied() {
            for (kind, (setting, rate)) in candidates.iter().enumerate() {
                let bytes = self.sample_bytes(setting.compression, *rate, seconds);
                settings.push((Setting { files, ..*setting }, bytes));
                kinds.push(kind);
            }
        }
        let question = Question {
            subject: "compression and files".to_owned(),
            contest: Contest {
                enough: ENOUGH_DEVICES,
                kinds,
            },
            candidates: settings,
            score: &|runs| {
                let of_run = |rate| goal.score(rate, runs.ratio());
                runs.rates().into_iter().map(of_run).collect()
            },
        };
        self.answer(2, &[question], decisions)
    }

    /// Third step, second half: the default transfer size against others.
    fn transfers(
        &self,
        full: &[Trial],
        decisions: &mut Vec<Decision>,
    ) -> Result<Vec<Trial>, Error> {
        let Some(base) = chosen(full) else {
            return Ok(Vec::new());
        };
        let seconds = self.share(3).as_secs_f64() / (TRANSFERS.len() * ROUNDS) as f64;
        let bytes = self.sample_bytes(base.setting.compression, base.rate(), seconds);
        let settings = TRANSFERS.map(|transfer| {
            let setting = Setting {
                transfer_bytes: Some(transfer),
                ..base.setting
            };
            (setting, bytes)
        });
        let subject = "MAXTRANSFERSIZE".to_owned();
        let question = Question::fastest(subject, ENOUGH_DEVICES, settings.to_vec());
        self.answer(3, &[question], decisions)
    }

    /// The recommended setting once more, on a sample as large as the time allows.
    fn confirm(&self, setting: Setting, rate: f64) -> Result<Trial, Error> {
        let begun = Instant::now();
        let limit = self.share(4);
        let seconds = limit.as_secs_f64() / CONFIRMATIONS as f64;
        let bytes = self.sample_bytes(setting.compression, rate, seconds);
        let mut runs = interleaved_while(
            &[setting],
            CONFIRMATIONS,
            || begun.elapsed() < limit * 2,
            |setting, _| {
                (self.announce)(&format!("confirming: {}", describe(setting)));
                self.laboratory.backup(setting, Some(bytes))
            },
        )?;
        Ok(Trial {
            setting,
            runs: runs.remove(0),
            is_chosen: true,
        })
    }
}

/// Extrapolates from the sample to the whole.
fn predict(whole_bytes: u64, confirmed: &Trial) -> Prediction {
    let runs = &confirmed.runs;
    let sampled = runs.processed_bytes().max(1) as f64 / whole_bytes as f64;
    let seconds = runs.seconds();
    let scaled = |seconds: f64| runs.opening() + seconds / sampled;
    Prediction {
        seconds: Spread {
            low: scaled(seconds.low),
            median: scaled(seconds.median),
            high: scaled(seconds.high),
        },
        stored_bytes: (runs.stored_bytes() as f64 / sampled) as u64,
        rate: runs.rate().median,
        limit: runs.typical().map_or("read", |run| limit(&run.stages)),
        sampled,
    }
}

/// A description of the current measurement.
pub(super) fn describe(setting: &Setting) -> String {
    let scope = match setting.scope {
        Scope::Read => return format!("read only, {}", options(setting)),
        Scope::Write => return format!("write only, {}", options(setting)),
        Scope::Transform => "no write",
        Scope::Nul => "NUL",
        Scope::Disk => "whole backup",
    };
    format!("{scope}, {}", options(setting))
}

/// The settings alone, if the scope is clear from the context.
pub(super) fn options(setting: &Setting) -> String {
    let counted = |count: u64, one: &str| {
        let plural = if count == 1 { "" } else { "s" };
        format!("{count} {one}{plural}")
    };
    let compresses = !matches!(setting.scope, Scope::Read | Scope::Write);
    let compression = compresses.then(|| name(setting.compression));
    let writes = matches!(setting.scope, Scope::Disk | Scope::Write);
    let files = writes.then(|| counted(setting.files as u64, "file"));
    let threads = setting
        .threads
        .map(|threads| counted(u64::from(threads), "thread"));
    let transfer = setting
        .transfer_bytes
        .map(|bytes| format!("MAXTRANSFERSIZE {}", short_size(bytes)));
    let parts = [compression, files, threads, transfer];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    if parts.is_empty() {
        return "default settings".to_owned();
    }
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Measured;
    use crate::rounds::interleaved;

    #[test]
    fn opening_the_database_takes_no_longer_for_more_of_it() {
        let setting = Setting::new(Scope::Disk, Compression::ZSTD_LOW);
        let measured = Measured {
            elapsed: Duration::from_secs(2),
            opening: Duration::from_secs(3),
            cpu: Duration::from_secs(1),
            processed_bytes: 64 << 20,
            stored_bytes: 16 << 20,
            stages: windlass_pipeline::Stages::default(),
        };
        let runs = interleaved(&[setting], 1, |_, _| Ok(measured));
        let confirmed = Trial {
            setting,
            runs: runs.unwrap().remove(0),
            is_chosen: true,
        };
        let prediction = predict(640 << 20, &confirmed);
        assert!((prediction.seconds.median - 23.0).abs() < 1e-9);
        assert_eq!(prediction.stored_bytes, 160 << 20);
        assert!((prediction.sampled - 0.1).abs() < 1e-9);
    }
}
