//! Charts over time. Dates and times are local and have no zone, as in backup histories.

use jiff::civil::DateTime;

use crate::model::Mark;

/// The period that a chart shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moments {
    /// Its left end.
    pub from: DateTime,
    /// Its right end.
    pub to: DateTime,
}

/// Values over time.
#[derive(Debug, Clone)]
pub struct Times {
    /// The period shown; values outside of it are omitted.
    pub moments: Moments,
    /// Unit of the values.
    pub unit: String,
    /// Decimal places of the values.
    pub decimals: usize,
    /// The lines.
    pub series: Vec<TimeSeries>,
    /// Values to compare all lines with.
    pub marks: Vec<Mark>,
}

/// A line over time.
#[derive(Debug, Clone)]
pub struct TimeSeries {
    pub name: String,
    /// Its values, oldest first.
    pub points: Vec<TimePoint>,
}

/// A value at a time.
#[derive(Debug, Clone, Copy)]
pub struct TimePoint {
    pub at: DateTime,
    pub value: f64,
}

/// Events over time, one row per subject.
#[derive(Debug, Clone)]
pub struct Timeline {
    /// The period shown; events outside of it are omitted.
    pub moments: Moments,
    /// Names of the kinds of events, most important first: its ticks are the tallest.
    pub kinds: Vec<String>,
    /// The meaning of the marked periods.
    pub trouble: String,
    /// The subjects from top to bottom.
    pub rows: Vec<TimelineRow>,
}

#[derive(Debug, Clone)]
pub struct TimelineRow {
    /// The subject.
    pub label: String,
    pub events: Vec<Event>,
    /// Periods in which something was wrong.
    pub troubles: Vec<Period>,
}

#[derive(Debug, Clone, Copy)]
pub struct Event {
    pub at: DateTime,
    /// Index of the event's kind in the timeline.
    pub kind: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Period {
    pub from: DateTime,
    pub to: DateTime,
}
