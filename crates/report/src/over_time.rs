//! Charts over time. Dates and times are local and carry no zone, as backup histories keep them.

use jiff::civil::DateTime;

use crate::model::Mark;

/// The time that a chart shows.
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
    /// The time that is shown; values outside it are not.
    pub moments: Moments,
    /// Unit of the values.
    pub unit: String,
    /// Digits behind the point of the values.
    pub decimals: usize,
    /// The lines.
    pub series: Vec<TimeSeries>,
    /// A value to compare all lines with.
    pub mark: Option<Mark>,
}

/// A line over time.
#[derive(Debug, Clone)]
pub struct TimeSeries {
    /// Its name.
    pub name: String,
    /// Its values, the oldest first.
    pub points: Vec<TimePoint>,
}

/// A value at a time.
#[derive(Debug, Clone, Copy)]
pub struct TimePoint {
    /// When.
    pub at: DateTime,
    /// How much.
    pub value: f64,
}

/// What happened when, a row for each subject.
#[derive(Debug, Clone)]
pub struct Timeline {
    /// The time that is shown; what happened outside it is not.
    pub moments: Moments,
    /// Names of the kinds of events, the most important first: its ticks are the tallest.
    pub kinds: Vec<String>,
    /// What the marked periods are.
    pub trouble: String,
    /// The subjects from top to bottom.
    pub rows: Vec<TimelineRow>,
}

/// What happened to a subject.
#[derive(Debug, Clone)]
pub struct TimelineRow {
    /// The subject.
    pub label: String,
    /// What happened.
    pub events: Vec<Event>,
    /// When something was wrong.
    pub troubles: Vec<Period>,
}

/// An event.
#[derive(Debug, Clone, Copy)]
pub struct Event {
    /// When.
    pub at: DateTime,
    /// Which of the timeline's kinds.
    pub kind: usize,
}

/// A time with a beginning and an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Period {
    /// Its beginning.
    pub from: DateTime,
    /// Its end.
    pub to: DateTime,
}
