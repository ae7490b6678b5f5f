//! The parts of a report. All texts are plain text; all numbers are in the stated unit.

use std::fmt;

use crate::over_time::{Timeline, Times};

#[derive(Debug, Clone, Default)]
pub struct Report {
    pub title: String,
    /// One line below it.
    pub subtitle: String,
    /// The few most important results, shown large.
    pub figures: Vec<Figure>,
    /// What was measured, on what, and how.
    pub facts: Vec<Fact>,
    /// The results.
    pub sections: Vec<Section>,
    /// What a reader must know to judge the results.
    pub notes: Vec<String>,
}

/// One result, shown large.
#[derive(Debug, Clone)]
pub struct Figure {
    pub label: String,
    /// The result with its unit.
    pub value: String,
    /// A line below it; may be empty.
    pub detail: String,
}

/// A name and a value.
#[derive(Debug, Clone)]
pub struct Fact {
    pub name: String,
    /// The value with its unit.
    pub value: String,
}

impl Fact {
    pub fn new(name: impl Into<String>, value: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            value: value.into(),
        }
    }
}

/// A part of the page.
#[derive(Debug, Clone, Default)]
pub struct Section {
    pub heading: String,
    /// Paragraphs.
    pub text: Vec<String>,
    /// Statements and commands to copy.
    pub listings: Vec<Listing>,
    pub charts: Vec<Chart>,
    /// Tables with the values of the charts.
    pub tables: Vec<Table>,
}

/// A text to copy.
#[derive(Debug, Clone)]
pub struct Listing {
    pub caption: String,
    /// The text, with its line breaks.
    pub text: String,
}

#[derive(Debug, Clone, Default)]
pub struct Table {
    /// Name for programs, unique in the report.
    pub key: &'static str,
    pub caption: String,
    pub columns: Vec<Column>,
    /// Each row has a cell for every column.
    pub rows: Vec<Row>,
}

impl Table {
    /// The table without columns in which every value is missing or zero.
    #[must_use]
    pub fn without_empty_columns(mut self) -> Self {
        let tells = |cell: Option<&Cell>| match cell {
            Some(Cell::Text(text)) => !text.is_empty(),
            Some(Cell::Number(number)) => number.abs() > 0.0,
            Some(Cell::Missing) | None => false,
        };
        let kept: Vec<bool> = (0..self.columns.len())
            .map(|index| self.rows.iter().any(|row| tells(row.cells.get(index))))
            .collect();
        if self.rows.is_empty() {
            return self;
        }
        let mut keep = kept.iter();
        self.columns.retain(|_| *keep.next().unwrap_or(&true));
        for row in &mut self.rows {
            let mut keep = kept.iter();
            row.cells.retain(|_| *keep.next().unwrap_or(&true));
        }
        self
    }
}

/// A table in the making: each column, and what its cells show of the subject of a row.
pub struct TableOf<'a, S> {
    columns: Vec<ColumnOf<'a, S>>,
    is_marked: Box<dyn Fn(&S) -> bool + 'a>,
}

struct ColumnOf<'a, S> {
    column: Column,
    cell: Box<dyn Fn(&S) -> Cell + 'a>,
}

impl<S> fmt::Debug for TableOf<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.columns.iter().map(|column| &column.column);
        f.debug_list().entries(columns).finish()
    }
}

impl<S> Default for TableOf<'_, S> {
    fn default() -> Self {
        Self {
            columns: Vec::new(),
            is_marked: Box::new(|_| false),
        }
    }
}

impl<'a, S> TableOf<'a, S> {
    /// Adds a column.
    #[must_use]
    pub fn column<C: Into<Cell>>(mut self, column: Column, cell: impl Fn(&S) -> C + 'a) -> Self {
        let cell = Box::new(move |subject: &S| cell(subject).into());
        self.columns.push(ColumnOf { column, cell });
        self
    }

    /// Says which row is the one to look at.
    #[must_use]
    pub fn marked(mut self, is_marked: impl Fn(&S) -> bool + 'a) -> Self {
        self.is_marked = Box::new(is_marked);
        self
    }

    /// The table with a row for each subject.
    pub fn of(
        self,
        key: &'static str,
        caption: impl Into<String>,
        subjects: impl IntoIterator<Item = S>,
    ) -> Table {
        let row = |subject: S| Row {
            cells: self
                .columns
                .iter()
                .map(|column| (column.cell)(&subject))
                .collect(),
            is_marked: (self.is_marked)(&subject),
        };
        let rows = subjects.into_iter().map(row).collect();
        Table {
            key,
            caption: caption.into(),
            columns: self
                .columns
                .into_iter()
                .map(|column| column.column)
                .collect(),
            rows,
        }
    }
}

#[derive(Debug, Clone)]
pub struct Column {
    /// Name for programs, unique in the table.
    pub key: &'static str,
    /// Name for people.
    pub heading: String,
    pub kind: ColumnKind,
}

/// The content of a column's cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnKind {
    /// Texts, left-aligned.
    Text,
    /// Dates and times as texts, `YYYY-MM-DD hh:mm:ss`; the page shows them to the minute, without
    /// line breaks.
    Moment,
    /// Numbers, aligned at the decimal point.
    Number {
        /// Unit, shown in the heading; may be empty.
        unit: &'static str,
        /// Decimal places.
        decimals: usize,
    },
}

impl Column {
    pub fn text(key: &'static str, heading: impl Into<String>) -> Self {
        Self {
            key,
            heading: heading.into(),
            kind: ColumnKind::Text,
        }
    }

    /// A column of dates and times, shown without line breaks.
    pub fn moment(key: &'static str, heading: impl Into<String>) -> Self {
        Self {
            key,
            heading: heading.into(),
            kind: ColumnKind::Moment,
        }
    }

    pub fn number(
        key: &'static str,
        heading: impl Into<String>,
        unit: &'static str,
        decimals: usize,
    ) -> Self {
        Self {
            key,
            heading: heading.into(),
            kind: ColumnKind::Number { unit, decimals },
        }
    }

    /// Heading and unit in one line.
    pub fn title(&self) -> String {
        match self.kind {
            ColumnKind::Number { unit, .. } if !unit.is_empty() => {
                format!("{}, {unit}", self.heading)
            }
            _ => self.heading.clone(),
        }
    }
}

#[derive(Debug, Clone, Default)]
pub struct Row {
    pub cells: Vec<Cell>,
    /// Whether it is highlighted.
    pub is_marked: bool,
}

impl Row {
    /// An ordinary row.
    pub fn new(cells: Vec<Cell>) -> Self {
        Self {
            cells,
            is_marked: false,
        }
    }

    /// The same row, highlighted if `is_marked`.
    pub fn marked(self, is_marked: bool) -> Self {
        Self { is_marked, ..self }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    Text(String),
    /// A number in the column's unit.
    Number(f64),
    /// No value.
    Missing,
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<f64> for Cell {
    fn from(number: f64) -> Self {
        Self::Number(number)
    }
}

impl From<Option<f64>> for Cell {
    fn from(number: Option<f64>) -> Self {
        number.map_or(Self::Missing, Self::Number)
    }
}

/// A chart and its description.
#[derive(Debug, Clone)]
pub struct Chart {
    pub title: String,
    /// A description for people who cannot see it: what is compared, and the result.
    pub description: String,
    pub kind: ChartKind,
}

/// The kinds of charts.
#[derive(Debug, Clone)]
pub enum ChartKind {
    /// Horizontal bars in groups.
    Bars(Bars),
    /// Lines over steps.
    Lines(Lines),
    /// How the stages of runs spent their time.
    Stages(StageBars),
    /// Values over time.
    Times(Times),
    /// Events over time, and periods in which something was wrong.
    Timeline(Timeline),
    /// What lies where in a file.
    Map(Map),
}

/// What lies where in a file: parts, one behind the other.
#[derive(Debug, Clone, Default)]
pub struct Map {
    /// Names of the kinds of parts, in the order of their colours.
    pub kinds: Vec<String>,
    /// The parts from the beginning of the file to its end.
    pub parts: Vec<MapPart>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MapPart {
    /// Number of its kind.
    pub kind: usize,
    pub bytes: u64,
}

/// Bars in groups; every group has a bar for each series.
#[derive(Debug, Clone, Default)]
pub struct Bars {
    /// Unit of the values.
    pub unit: String,
    /// Decimal places of the values.
    pub decimals: usize,
    /// Names of the series, in the order of their bars.
    pub series: Vec<String>,
    /// The groups from top to bottom.
    pub groups: Vec<BarGroup>,
    /// Values to compare all bars with.
    pub marks: Vec<Mark>,
}

#[derive(Debug, Clone)]
pub struct BarGroup {
    pub label: String,
    /// A value for each series; `None` draws no bar.
    pub values: Vec<Option<Spread>>,
}

/// The median of several measurements, and their range.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// The minimum.
    pub low: f64,
    pub median: f64,
    /// The maximum.
    pub high: f64,
}

impl Spread {
    /// A value that does not vary.
    pub fn exact(value: f64) -> Self {
        Self {
            low: value,
            median: value,
            high: value,
        }
    }
}

/// A line across a chart, or a note if it is far beyond the values.
#[derive(Debug, Clone)]
pub struct Mark {
    pub label: String,
    pub value: f64,
}

impl Mark {
    /// A rate in MB/s.
    pub fn rate(name: &str, value: f64) -> Self {
        Self {
            label: format!("{name}: {value:.0} MB/s"),
            value,
        }
    }
}

/// Lines over equidistant steps.
#[derive(Debug, Clone, Default)]
pub struct Lines {
    pub step_name: String,
    /// The steps from left to right.
    pub steps: Vec<String>,
    /// Unit of the values.
    pub unit: String,
    /// Decimal places of the values.
    pub decimals: usize,
    pub series: Vec<Series>,
    /// Values to compare all lines with.
    pub marks: Vec<Mark>,
}

/// A line.
#[derive(Debug, Clone)]
pub struct Series {
    pub name: String,
    /// A value for each step; `None` leaves it out.
    pub values: Vec<Option<f64>>,
}

/// How the stages of runs spent their time.
#[derive(Debug, Clone, Default)]
pub struct StageBars {
    /// The runs from top to bottom.
    pub groups: Vec<StageGroup>,
}

/// A run.
#[derive(Debug, Clone)]
pub struct StageGroup {
    /// What ran.
    pub label: String,
    pub stages: Vec<StageShares>,
}

/// How a stage spent its time: shares of the time of its threads, 0 to 1.
#[derive(Debug, Clone)]
pub struct StageShares {
    pub name: String,
    pub busy: f64,
    /// Waiting for the previous stage.
    pub wait_input: f64,
    /// Waiting for the next stage.
    pub wait_output: f64,
    /// Whether this stage was the bottleneck.
    pub is_limit: bool,
}
