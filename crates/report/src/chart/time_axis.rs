//! Time axes: ticks at the starts of hours, days, months or years, as many as there is space for their
//! labels.

use jiff::Span;
use jiff::civil::{DateTime, Time};

use super::canvas::Role;
use crate::over_time::Moments;

/// Space between two labels.
const LABEL_GAP: f64 = 14.0;

/// A horizontal axis of time.
#[derive(Debug)]
pub(super) struct TimeAxis {
    from: DateTime,
    to: DateTime,
    left: f64,
    right: f64,
}

/// The distance between two ticks.
#[derive(Debug, Clone, Copy)]
enum Step {
    Minutes(i64),
    Days(i64),
    Months(i64),
    Years(i64),
}

const STEPS: [Step; 23] = [
    Step::Minutes(1),
    Step::Minutes(5),
    Step::Minutes(15),
    Step::Minutes(30),
    Step::Minutes(60),
    Step::Minutes(180),
    Step::Minutes(360),
    Step::Minutes(720),
    Step::Days(1),
    Step::Days(2),
    Step::Days(4),
    Step::Days(7),
    Step::Days(14),
    Step::Months(1),
    Step::Months(2),
    Step::Months(3),
    Step::Months(6),
    Step::Years(1),
    Step::Years(2),
    Step::Years(5),
    Step::Years(10),
    Step::Years(20),
    Step::Years(100),
];

impl TimeAxis {
    /// An axis from `left` to `right` pixels.
    pub(super) fn new(moments: Moments, left: f64, right: f64) -> Self {
        Self {
            from: moments.from,
            to: moments.to,
            left,
            right: right.max(left + 1.0),
        }
    }

    /// Pixels of a time; `None` if it is outside of the axis.
    pub(super) fn x(&self, at: DateTime) -> Option<f64> {
        (self.from..=self.to).contains(&at).then(|| self.place(at))
    }

    /// Pixels of a time, clamped to the axis.
    pub(super) fn place(&self, at: DateTime) -> f64 {
        let whole = seconds(self.from, self.to).max(1.0);
        let share = (seconds(self.from, at) / whole).clamp(0.0, 1.0);
        self.left + share * (self.right - self.left)
    }

    /// Places and labels of the ticks, from left to right.
    pub(super) fn ticks(&self) -> Vec<(f64, String)> {
        let fits = |ticks: &Vec<(f64, String)>| {
            ticks.windows(2).all(|pair| {
                let widths = [&pair[0].1, &pair[1].1].map(|label| Role::Tick.width(label));
                let halves = f64::midpoint(widths[0], widths[1]);
                pair[1].0 - pair[0].0 >= halves + LABEL_GAP
            })
        };
        // An axis of many years would have millions of minutes.
        let room = ((self.right - self.left) / LABEL_GAP) as usize + 2;
        let candidates = STEPS.iter().map(|step| self.at_steps(*step, room));
        candidates.flatten().find(fits).unwrap_or_default()
    }

    /// The ticks at a step; `None` if there are more than `most`.
    fn at_steps(&self, step: Step, most: usize) -> Option<Vec<(f64, String)>> {
        let mut ticks = Vec::new();
        let mut at = step.at_or_before(self.from);
        while at <= self.to {
            if let Some(x) = self.x(at) {
                ticks.push((x, step.label(at)));
            }
            if ticks.len() > most {
                return None;
            }
            at = at.checked_add(step.span()).ok()?;
        }
        Some(ticks)
    }
}

impl Step {
    fn span(self) -> Span {
        match self {
            Self::Minutes(minutes) => Span::new().minutes(minutes),
            Self::Days(days) => Span::new().days(days),
            Self::Months(months) => Span::new().months(months),
            Self::Years(years) => Span::new().years(years),
        }
    }

    /// The last tick at or before a time. Days count from the beginning of the previous month, so
    /// that ticks do not jump when the axis grows by an hour.
    fn at_or_before(self, at: DateTime) -> DateTime {
        let midnight = at.date().to_datetime(Time::midnight());
        match self {
            Self::Minutes(minutes) => {
                let since = i64::from(at.hour()) * 60 + i64::from(at.minute());
                midnight.saturating_add(Span::new().minutes(since / minutes * minutes))
            }
            Self::Days(_) => at.date().first_of_month().to_datetime(Time::midnight()),
            Self::Months(months) => {
                let month = i64::from(at.month() - 1) / months * months;
                let january = at.date().first_of_year().to_datetime(Time::midnight());
                january.saturating_add(Span::new().months(month))
            }
            Self::Years(years) => {
                let january = at.date().first_of_year().to_datetime(Time::midnight());
                january.saturating_sub(Span::new().years(i64::from(at.year()).rem_euclid(years)))
            }
        }
    }

    fn label(self, at: DateTime) -> String {
        let format = match self {
            Self::Minutes(_) if at.time() != Time::midnight() => "%H:%M",
            Self::Minutes(_) | Self::Days(_) => "%-d %b",
            Self::Months(_) if at.month() > 1 => "%b",
            Self::Months(_) | Self::Years(_) => "%Y",
        };
        at.strftime(format).to_string()
    }
}

fn seconds(from: DateTime, to: DateTime) -> f64 {
    to.duration_since(from).as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(from: &str, to: &str, width: f64) -> Vec<String> {
        let moments = Moments {
            from: from.parse().unwrap(),
            to: to.parse().unwrap(),
        };
        let ticks = TimeAxis::new(moments, 40.0, 40.0 + width).ticks();
        ticks.into_iter().map(|(_, label)| label).collect()
    }

    #[test]
    fn ticks_stand_where_days_and_months_begin() {
        assert_eq!(
            labels("2026-11-20T17:10:00", "2026-11-21T16:00:00", 300.0),
            ["18:00", "21 Nov", "06:00", "12:00"]
        );
        assert_eq!(
            labels("2026-10-30T17:10:00", "2026-11-03T16:00:00", 300.0),
            ["31 Oct", "1 Nov", "2 Nov", "3 Nov"]
        );
        assert_eq!(
            labels("2025-08-30T00:00:00", "2026-08-01T00:00:00", 700.0),
            [
                "Sep", "Oct", "Nov", "Dec", "2026", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug"
            ]
        );
        assert_eq!(
            labels("1990-08-30T00:00:00", "2026-08-01T00:00:00", 300.0),
            ["2000", "2010", "2020"]
        );
    }

    #[test]
    fn every_span_has_an_axis() {
        for to in [
            "2026-01-01T00:00:00",
            "2026-01-01T00:00:01",
            "2026-01-02T00:00:00",
            "9999-12-31T23:59:59",
        ] {
            for width in [10.0, 300.0, 700.0] {
                assert!(labels("2026-01-01T00:00:00", to, width).len() < 60);
            }
        }
        assert!(labels("2026-02-01T00:00:00", "2026-01-01T00:00:00", 300.0).is_empty());
    }
}
