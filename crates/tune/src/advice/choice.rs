//! Decides between settings that were measured repeatedly, without following the noise of the machine.
//!
//! The candidates of a contest run in turns, so drift affects all alike, and each round gives every candidate one
//! score. Two candidates are compared by the logarithms of their ratios, round by round, with Student's t.
//! What is clearly worse than the best drops out and does not run again. Of what is left the simplest is chosen.
//!
//! The whole contest is wrong with a probability of at most 5 %: the error of a single comparison is that, divided
//! by the number of comparisons and of [`LOOKS`].

use std::f64::consts::PI;

/// Confidence of a contest.
const ERROR: f64 = 0.05;

/// The rounds after which candidates may drop out. Each look has a chance of being wrong, so they are few.
const LOOKS: [usize; 5] = [3, 5, 8, 12, 18];

/// What repeated measurements tell.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Choice {
    pub(super) chosen: usize,
    /// Candidates that are not clearly worse than the best, the chosen one included.
    pub(super) standing: Vec<usize>,
    pub(super) certainty: Certainty,
    pub(super) rounds: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Certainty {
    /// All others are worse.
    Clear,
    /// Those that are left differ from the chosen one by less than matters.
    Equal,
    /// More rounds could show a difference.
    Open,
}

impl Certainty {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Clear => "clear",
            Self::Equal => "no difference",
            Self::Open => "no difference shown",
        }
    }
}

/// Candidates, the simplest first, with their scores.
#[derive(Debug)]
pub(super) struct Contest {
    /// A candidate is good enough if it reaches this share of the best score.
    pub(super) enough: f64,
    /// For each candidate its kind: simplicity decides only within the best kind.
    pub(super) kinds: Vec<usize>,
}

impl Contest {
    /// The choice after the rounds so far: `scores[candidate][round]`. What dropped out has fewer rounds. Between
    /// two looks nothing drops out, except when the `rounds_are_over`.
    pub(super) fn choose(&self, scores: &[Vec<f64>], rounds_are_over: bool) -> Choice {
        let rounds = scores.iter().map(Vec::len).max().unwrap_or(0);
        let mut standing: Vec<usize> = (0..scores.len())
            .filter(|candidate| scores[*candidate].len() == rounds)
            .collect();
        let total = |candidate: usize| -> f64 { scores[candidate].iter().map(|s| s.ln()).sum() };
        let best = standing.iter().copied();
        let best = best.max_by(|a, b| total(*a).total_cmp(&total(*b)));
        let best = best.unwrap_or(0);
        let comparisons = scores.len().saturating_sub(1).max(1) * (LOOKS.len() + 1);
        let error = ERROR / comparisons as f64;
        if rounds_are_over || LOOKS.contains(&rounds) {
            standing.retain(|candidate| {
                let ratio = Ratio::of(&scores[*candidate], &scores[best]);
                ratio.is_not_above(self.enough.ln(), error) != Some(true)
            });
        }
        let of_best_kind = |candidate: &&usize| self.kinds[**candidate] == self.kinds[best];
        let chosen = standing.iter().find(of_best_kind).copied().unwrap_or(best);
        let mut others = standing.iter().filter(|candidate| **candidate != chosen);
        let is_equal = |candidate: &usize| {
            let ratio = Ratio::of(&scores[*candidate], &scores[chosen]);
            ratio.is_not_above(-self.enough.ln(), error) == Some(true)
        };
        let certainty = match standing.len() {
            0 | 1 => Certainty::Clear,
            _ if others.all(is_equal) => Certainty::Equal,
            _ => Certainty::Open,
        };
        Choice {
            chosen,
            standing,
            certainty,
            rounds,
        }
    }
}

/// The logarithms of the ratios of two candidates' scores in the same rounds.
struct Ratio {
    mean: f64,
    /// Standard error of the mean.
    error: f64,
    count: usize,
}

impl Ratio {
    fn of(scores: &[f64], others: &[f64]) -> Self {
        let logs: Vec<f64> = (scores.iter().zip(others))
            .map(|(score, other)| (score / other).ln())
            .collect();
        let count = logs.len().max(1) as f64;
        let mean = logs.iter().sum::<f64>() / count;
        let squares: f64 = logs.iter().map(|log| (log - mean).powi(2)).sum();
        Self {
            mean,
            error: (squares / (count - 1.0).max(1.0) / count).sqrt(),
            count: logs.len(),
        }
    }

    /// Whether the true mean is at most `bound`, with a probability of `error` to be wrong; `None` for too few
    /// rounds to tell.
    fn is_not_above(&self, bound: f64, error: f64) -> Option<bool> {
        if self.count < LOOKS[0] {
            return None;
        }
        if self.error == 0.0 {
            return Some(self.mean <= bound);
        }
        let t = (bound - self.mean) / self.error;
        Some(t > 0.0 && beyond(t, self.count - 1) <= error)
    }
}

/// The probability that Student's t with `freedom` degrees exceeds a positive `t`.
fn beyond(t: f64, freedom: usize) -> f64 {
    // Abramowitz and Stegun, 26.7.3 and 26.7.4.
    let angle = (t / (freedom as f64).sqrt()).atan();
    let (sine, cosine) = angle.sin_cos();
    let is_odd = freedom % 2 == 1;
    let first = if is_odd { cosine } else { 1.0 };
    let mut sum = if freedom == 1 { 0.0 } else { first };
    let mut term = first;
    let mut divisor = if is_odd { 3 } else { 2 };
    while divisor < freedom {
        term *= cosine * cosine * (divisor - 1) as f64 / divisor as f64;
        sum += term;
        divisor += 2;
    }
    let within = match is_odd {
        true => 2.0 / PI * (angle + sine * sum),
        false => sine * sum,
    };
    ((1.0 - within) / 2.0).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reproducible noise.
    struct Noise(u64);

    impl Noise {
        fn uniform(&mut self) -> f64 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            (self.0 >> 11) as f64 / (1_u64 << 53) as f64
        }

        /// A factor with a standard deviation of about 30 %, and now and then a run of half the speed.
        fn factor(&mut self) -> f64 {
            let (first, second) = (self.uniform(), self.uniform());
            let normal = (-2.0 * first.max(1e-12).ln()).sqrt() * (2.0 * PI * second).cos();
            let outlier = if self.uniform() < 0.05 { 0.5 } else { 1.0 };
            (0.3 * normal).exp() * outlier
        }
    }

    const CONTEST: [usize; 4] = [0; 4];

    /// Simulates a contest of settings with these true scores, until it is decided or `rounds` are over.
    fn decide(truth: [f64; 4], rounds: usize, noise: &mut Noise) -> Choice {
        let contest = Contest {
            enough: 0.95,
            kinds: CONTEST.to_vec(),
        };
        let mut scores = vec![Vec::new(); truth.len()];
        let mut standing: Vec<usize> = (0..truth.len()).collect();
        for round in 1.. {
            // Drift of the whole machine, by up to ten.
            let drift = 1.0 + 9.0 * (round as f64 / rounds as f64);
            for candidate in &standing {
                scores[*candidate].push(truth[*candidate] * drift * noise.factor());
            }
            let choice = contest.choose(&scores, round == rounds);
            if choice.certainty != Certainty::Open || round == rounds {
                return choice;
            }
            standing = choice.standing;
        }
        unreachable!("the rounds end")
    }

    /// How often each was chosen, and how often that was clear or equal, in percent.
    fn outcomes(truth: [f64; 4], rounds: usize) -> ([f64; 4], f64) {
        const CONTESTS: usize = 2000;
        let mut noise = Noise(0x9E37_79B9_7F4A_7C15);
        let (mut chosen, mut decided) = ([0.0; 4], 0.0);
        for _ in 0..CONTESTS {
            let choice = decide(truth, rounds, &mut noise);
            chosen[choice.chosen] += 100.0 / CONTESTS as f64;
            if choice.certainty != Certainty::Open {
                decided += 100.0 / CONTESTS as f64;
            }
        }
        (chosen, decided)
    }

    #[test]
    fn of_settings_that_differ_only_by_noise_the_simplest_is_chosen() {
        for rounds in [3, 6, 18] {
            let (chosen, _) = outcomes([100.0; 4], rounds);
            assert!(chosen[0] >= 95.0, "{rounds}: {chosen:?}");
        }
    }

    #[test]
    fn a_setting_that_is_twice_as_fast_is_found_in_noise_of_30_percent() {
        for (best, truth) in [
            (0, [200.0, 100.0, 100.0, 50.0]),
            (2, [100.0, 100.0, 200.0, 50.0]),
            (3, [90.0, 80.0, 100.0, 200.0]),
        ] {
            let (chosen, decided) = outcomes(truth, 18);
            assert!(chosen[best] >= 95.0, "{truth:?}: {chosen:?}");
            assert!(decided >= 80.0, "{truth:?}: {decided}");
        }
    }

    #[test]
    fn a_small_gain_is_left_alone_rather_than_guessed() {
        let (chosen, _) = outcomes([100.0, 110.0, 95.0, 100.0], 18);
        assert!(chosen[2] + chosen[3] < 1.0, "{chosen:?}");
        assert!(chosen[0] >= 95.0, "less than the noise shows: {chosen:?}");
    }

    #[test]
    fn without_noise_two_percent_are_no_difference_and_ten_are_clear() {
        let contest = Contest {
            enough: 0.95,
            kinds: vec![0, 0],
        };
        let choice = |scores: [f64; 2]| contest.choose(&scores.map(|score| vec![score; 3]), false);
        let equal = choice([100.0, 102.0]);
        assert_eq!((equal.chosen, equal.certainty), (0, Certainty::Equal));
        let clear = choice([100.0, 110.0]);
        assert_eq!((clear.chosen, clear.certainty), (1, Certainty::Clear));
        let early = contest.choose(&[vec![100.0; 2], vec![500.0; 2]], true);
        assert_eq!((early.chosen, early.certainty), (0, Certainty::Open));
    }

    #[test]
    fn of_several_kinds_the_best_is_taken_and_of_it_the_simplest() {
        let contest = Contest {
            enough: 0.95,
            kinds: vec![0, 1, 0, 1],
        };
        let scores = [1.0, 3.0, 1.1, 3.1].map(|score| vec![score, score * 1.2]);
        let choice = contest.choose(&scores, true);
        assert_eq!((choice.chosen, choice.certainty), (1, Certainty::Open));
    }

    #[test]
    fn the_quantiles_are_students() {
        for (t, freedom, expected) in [
            (6.314, 1, 0.05),
            (2.920, 2, 0.05),
            (2.353, 3, 0.05),
            (4.604, 4, 0.005),
            (3.365, 5, 0.01),
            (1.796, 11, 0.05),
        ] {
            let found = beyond(t, freedom);
            assert!(
                (found - expected).abs() < expected * 0.01,
                "{freedom}: {found}"
            );
        }
    }
}
