//! Repetitions: every round runs each variant once, starting with a different one. So the order
//! favours no variant, and drift of the machine affects all alike.

use windlass_report::Spread;

use crate::error::Error;
use crate::measure::Measured;

/// All runs of one variant.
#[derive(Debug, Clone)]
pub(crate) struct Runs(Vec<Measured>);

impl Runs {
    /// Duration in seconds.
    pub(crate) fn seconds(&self) -> Spread {
        self.spread(|run| run.elapsed.as_secs_f64())
    }

    /// Seconds for opening the database.
    pub(crate) fn opening(&self) -> f64 {
        self.spread(|run| run.opening.as_secs_f64()).median
    }

    /// Megabytes of the database per second.
    pub(crate) fn rate(&self) -> Spread {
        self.spread(Measured::rate)
    }

    /// The rate of each run.
    pub(crate) fn rates(&self) -> Vec<f64> {
        self.0.iter().map(Measured::rate).collect()
    }

    /// Share of all cores, in percent.
    pub(crate) fn cpu_percent(&self) -> f64 {
        self.spread(Measured::cpu_percent).median
    }

    /// The difference between the slowest and the fastest run, in percent of the median.
    pub(crate) fn spread_percent(&self) -> f64 {
        let seconds = self.seconds();
        if seconds.median > 0.0 {
            (seconds.high - seconds.low) / seconds.median * 100.0
        } else {
            0.0
        }
    }

    /// The median run by time.
    pub(crate) fn typical(&self) -> Option<&Measured> {
        let mut sorted: Vec<&Measured> = self.0.iter().collect();
        sorted.sort_by_key(|run| run.elapsed);
        sorted.get(sorted.len() / 2).copied()
    }

    /// Bytes on media of the median run.
    pub(crate) fn stored_bytes(&self) -> u64 {
        self.typical().map_or(0, |run| run.stored_bytes)
    }

    /// Bytes of the database of the median run.
    pub(crate) fn processed_bytes(&self) -> u64 {
        self.typical().map_or(0, |run| run.processed_bytes)
    }

    /// Compression ratio: database size divided by backup size.
    pub(crate) fn ratio(&self) -> f64 {
        let stored = self.stored_bytes();
        if stored == 0 {
            1.0
        } else {
            self.processed_bytes() as f64 / stored as f64
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Measured> {
        self.0.iter()
    }

    fn spread(&self, value: impl Fn(&Measured) -> f64) -> Spread {
        spread(self.0.iter().map(value))
    }
}

/// Minimum, median and maximum; the median of two values is their mean. Zeros if there are no
/// values.
pub(crate) fn spread(values: impl Iterator<Item = f64>) -> Spread {
    let mut sorted: Vec<f64> = values.collect();
    sorted.sort_by(f64::total_cmp);
    let at = |index: usize| sorted.get(index).copied().unwrap_or(0.0);
    let count = sorted.len();
    let median = if count.is_multiple_of(2) && count > 0 {
        f64::midpoint(at(count / 2 - 1), at(count / 2))
    } else {
        at(count / 2)
    };
    Spread {
        low: at(0),
        median,
        high: at(count.saturating_sub(1)),
    }
}

/// Runs every variant `rounds` times, alternately.
pub(crate) fn interleaved<V>(
    variants: &[V],
    rounds: usize,
    run: impl FnMut(&V, usize) -> Result<Measured, Error>,
) -> Result<Vec<Runs>, Error> {
    interleaved_while(variants, rounds, || true, run)
}

/// As [`interleaved`], stopped when `goes_on` returns false. Every variant runs at least once.
pub(crate) fn interleaved_while<V>(
    variants: &[V],
    rounds: usize,
    goes_on: impl Fn() -> bool,
    mut run: impl FnMut(&V, usize) -> Result<Measured, Error>,
) -> Result<Vec<Runs>, Error> {
    let mut all = vec![Runs(Vec::with_capacity(rounds)); variants.len()];
    for round in 0..rounds {
        for turn in 0..variants.len() {
            if round > 0 && !goes_on() {
                return Ok(all);
            }
            let index = (turn + round) % variants.len();
            all[index].0.push(run(&variants[index], round)?);
        }
    }
    Ok(all)
}

/// Runs the variants alternately. After each round `remaining` says which of them run again, until none does.
pub(crate) fn elimination<V>(
    variants: &[V],
    mut remaining: impl FnMut(&[Runs]) -> Vec<usize>,
    mut run: impl FnMut(&V) -> Result<Measured, Error>,
) -> Result<Vec<Runs>, Error> {
    let mut all = vec![Runs(Vec::new()); variants.len()];
    let mut running: Vec<usize> = (0..variants.len()).collect();
    while !running.is_empty() {
        for index in &running {
            all[*index].0.push(run(&variants[*index])?);
        }
        let first = all.iter().map(|runs| runs.0.len()).max().unwrap_or(0);
        running = remaining(&all);
        let turn = first % running.len().max(1);
        running.rotate_left(turn);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn took(seconds: u64) -> Measured {
        Measured {
            elapsed: Duration::from_secs(seconds),
            opening: Duration::ZERO,
            cpu: Duration::from_secs(1),
            processed_bytes: 64 << 20,
            stored_bytes: 16 << 20,
            stages: windlass_pipeline::Stages::default(),
        }
    }

    #[test]
    fn variants_take_turns_and_each_round_begins_with_another() {
        let mut order = Vec::new();
        let variants = ['a', 'b', 'c'];
        let runs = interleaved(&variants, 3, |variant, _| {
            order.push(*variant);
            Ok(took(1))
        });
        assert_eq!(order.iter().collect::<String>(), "abcbcacab");
        assert!(runs.unwrap().iter().all(|runs| runs.iter().count() == 3));
    }

    #[test]
    fn when_time_is_up_every_variant_has_run_once() {
        let runs = interleaved_while(&[1, 2, 3], 9, || false, |seconds, _| Ok(took(*seconds)));
        let counts: Vec<usize> = runs
            .unwrap()
            .iter()
            .map(|runs| runs.iter().count())
            .collect();
        assert_eq!(counts, [1, 1, 1]);
    }

    #[test]
    fn what_drops_out_does_not_run_again() {
        let mut order = Vec::new();
        let left = [vec![0, 2], vec![0, 2], vec![]];
        let runs = elimination(
            &['a', 'b', 'c'],
            |all| left[all[0].0.len() - 1].clone(),
            |variant| {
                order.push(*variant);
                Ok(took(1))
            },
        );
        assert_eq!(order.iter().collect::<String>(), "abccaac");
        assert_eq!(runs.unwrap()[1].iter().count(), 1);
    }

    #[test]
    fn an_outlier_does_not_move_the_median_but_shows_in_the_spread() {
        let runs = Runs([4, 4, 5, 4, 40].map(took).to_vec());
        assert!((runs.seconds().median - 4.0).abs() < 1e-9);
        assert!((runs.spread_percent() - 900.0).abs() < 1e-9);
        assert!((runs.rate().median - 16.0).abs() < 1e-9);
        assert!((runs.ratio() - 4.0).abs() < 1e-9);
        assert!((spread([1.0, 3.0].into_iter()).median - 2.0).abs() < 1e-9);
        assert!(spread(std::iter::empty()).median.abs() < 1e-9);
    }
}
