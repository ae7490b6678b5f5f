//! The steps. Each runs its candidates alternately on samples that fit its share of the time, and
//! passes the best to the next step.

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use windlass_codec::{Algorithm, Compression};
use windlass_report::Spread;

use super::target::Targets;
use super::{Advice, Prediction, Recommendation, Request, Trial};
use crate::database::Database;
use crate::error::Error;
use crate::experiment::{name, short_size, thread_counts};
use crate::measure::{Laboratory, Scope, Setting, processors};
use crate::present::limit;
use crate::rounds::interleaved_while;

/// Shares of the time: reading, compressing, files, transfers, confirming.
const SHARES: [f64; 5] = [0.08, 0.40, 0.22, 0.10, 0.20];

/// Runs of each candidate, if time allows.
const ROUNDS: usize = 2;

/// Runs of the recommended setting.
const CONFIRMATIONS: usize = 3;

/// Values of MAXTRANSFERSIZE to try besides the default.
const TRANSFERS: [u32; 3] = [256 << 10, DEFAULT_TRANSFER, 4 << 20];
const DEFAULT_TRANSFER: u32 = 1 << 20;

/// Fewer threads are preferred if they reach this share of the best rate.
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
    let read = procedure.read()?;
    let ceiling = read.iter().map(Trial::rate).fold(0.0, f64::max);
    let transform = procedure.transform()?;
    let mut full = procedure.files(&transform, ceiling, &targets.counts())?;
    let base = best_device(&full, request).map_or_else(
        || Setting::new(Scope::Disk, Compression::ZSTD_LOW),
        |trial| trial.setting,
    );
    full.extend(procedure.transfers(base, &full)?);
    let chosen = mark_device(&mut full, request).unwrap_or(base);
    let expected = full.iter().find(|trial| trial.is_chosen);
    let confirmed = procedure.confirm(chosen, expected.map_or(1.0, Trial::rate))?;
    let recommendation = Recommendation {
        compression: chosen.compression,
        threads: chosen
            .threads
            .filter(|threads| *threads as usize != processors()),
        transfer_bytes: chosen
            .transfer_bytes
            .filter(|bytes| *bytes != DEFAULT_TRANSFER),
        devices: targets.devices(chosen.files),
    };
    Ok(Advice {
        recommendation,
        prediction: predict(database.bytes(), &confirmed),
        request: request.clone(),
        database: database.clone(),
        read,
        transform,
        full,
        confirmed,
    })
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

    /// Runs settings alternately on their samples for the duration of the step.
    fn trials(&self, step: usize, settings: Vec<(Setting, u64)>) -> Result<Vec<Trial>, Error> {
        let begun = Instant::now();
        let limit = self.share(step);
        let runs = interleaved_while(
            &settings,
            ROUNDS,
            || begun.elapsed() < limit,
            |(setting, bytes), _| {
                (self.announce)(&describe(setting));
                self.laboratory.backup(setting, Some(*bytes))
            },
        )?;
        let trials = settings.into_iter().zip(runs);
        Ok(trials
            .map(|((setting, _), runs)| Trial {
                setting,
                runs,
                is_chosen: false,
            })
            .collect())
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
    fn read(&self) -> Result<Vec<Trial>, Error> {
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
        let mut trials = self.trials(0, settings.to_vec())?;
        if let Some(best) = trials
            .iter_mut()
            .max_by(|a, b| a.rate().total_cmp(&b.rate()))
        {
            best.is_chosen = true;
        }
        Ok(trials)
    }

    /// Second step: every compression with every number of threads. For each compression, chooses
    /// the fewest threads that are about as fast as any number.
    fn transform(&self) -> Result<Vec<Trial>, Error> {
        let compressions: Vec<Compression> = Compression::ALL
            .into_iter()
            .filter(|compression| compression.algorithm != Algorithm::None)
            .collect();
        let mut threads = thread_counts();
        threads.retain(|threads| *threads as usize <= processors());
        let cores = processors() as f64;
        // One thread takes as long as all threads times their number.
        let weight: f64 = threads
            .iter()
            .map(|threads| cores / f64::from(*threads).min(cores))
            .sum();
        let seconds = self.share(1).as_secs_f64() / (compressions.len() * ROUNDS) as f64 / weight;
        let mut settings = Vec::new();
        for compression in &compressions {
            let setting = Setting::new(Scope::Transform, *compression);
            let rate = self.rough_rate(&setting)?;
            let bytes = self.sample_bytes(*compression, rate, seconds);
            settings.extend(threads.iter().map(|threads| {
                let threads = Some(*threads);
                (Setting { threads, ..setting }, bytes)
            }));
        }
        let mut trials = self.trials(1, settings)?;
        for compression in compressions {
            let own = |trial: &Trial| trial.setting.compression == compression;
            let own_trials = trials.iter().filter(|trial| own(trial));
            let best = own_trials.map(Trial::rate).fold(0.0, f64::max);
            let fewest = trials
                .iter_mut()
                .filter(|trial| own(trial) && trial.rate() >= best * ENOUGH_THREADS)
                .min_by_key(|trial| trial.setting.threads);
            if let Some(trial) = fewest {
                trial.is_chosen = true;
            }
        }
        Ok(trials)
    }

    /// Third step, first half: whole backups with the best compressions, and with none, by number
    /// of files.
    fn files(
        &self,
        transform: &[Trial],
        ceiling: f64,
        counts: &[usize],
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
        let mut settings = Vec::new();
        for (setting, rate) in candidates {
            let bytes = self.sample_bytes(setting.compression, rate, seconds);
            settings.extend(counts.iter().map(|files| {
                let files = *files;
                (Setting { files, ..setting }, bytes)
            }));
        }
        self.trials(2, settings)
    }

    /// Third step, second half: other transfer sizes than the default.
    fn transfers(&self, base: Setting, known: &[Trial]) -> Result<Vec<Trial>, Error> {
        let known = known.iter().find(|trial| trial.setting == base);
        let rate = known.map_or(1.0, Trial::rate);
        let others = TRANSFERS.iter().filter(|bytes| **bytes != DEFAULT_TRANSFER);
        let seconds = self.share(3).as_secs_f64() / ((TRANSFERS.len() - 1) * ROUNDS) as f64;
        let bytes = self.sample_bytes(base.compression, rate, seconds);
        let settings = others.map(|transfer| {
            let transfer_bytes = Some(*transfer);
            let setting = Setting {
                transfer_bytes,
                ..base
            };
            (setting, bytes)
        });
        self.trials(3, settings.collect())
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

/// The best compression for the goal, with the fewest files that are about as fast as any number.
fn best_device<'a>(full: &'a [Trial], request: &Request) -> Option<&'a Trial> {
    let score = |trial: &Trial| request.goal.score(trial.rate(), trial.runs.ratio());
    let best = full.iter().max_by(|a, b| score(a).total_cmp(&score(b)))?;
    let fastest = full
        .iter()
        .filter(|trial| trial.setting.compression == best.setting.compression)
        .map(Trial::rate)
        .fold(0.0, f64::max);
    let is_enough = |trial: &&Trial| {
        trial.setting.compression == best.setting.compression
            && trial.rate() >= fastest * ENOUGH_DEVICES
    };
    // Fewest files first, the default transfer size before others.
    let simplest = full.iter().filter(is_enough);
    simplest.min_by_key(|trial| (trial.setting.files, trial.setting.transfer_bytes.is_some()))
}

/// Marks the setting that is recommended.
fn mark_device(full: &mut [Trial], request: &Request) -> Option<Setting> {
    let setting = best_device(full, request)?.setting;
    for trial in full.iter_mut() {
        trial.is_chosen = trial.setting == setting;
    }
    Some(setting)
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
    let compression = (setting.scope != Scope::Read).then(|| name(setting.compression));
    let files = (setting.scope == Scope::Disk).then(|| counted(setting.files as u64, "file"));
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
