//! What a report consists of. All texts are plain texts; all numbers are in the unit that stands
//! beside them.

use crate::over_time::{Timeline, Times};

/// A whole page.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// What the page is about.
    pub title: String,
    /// One line beneath it.
    pub subtitle: String,
    /// The few results that matter most, shown large.
    pub figures: Vec<Figure>,
    /// What was measured, on what, how.
    pub facts: Vec<Fact>,
    /// The results.
    pub sections: Vec<Section>,
    /// What a reader must know to judge them.
    pub notes: Vec<String>,
}

/// One result, shown large.
#[derive(Debug, Clone)]
pub struct Figure {
    /// What it is.
    pub label: String,
    /// The result with its unit.
    pub value: String,
    /// A line beneath; may be empty.
    pub detail: String,
}

/// A name and what it stands for.
#[derive(Debug, Clone)]
pub struct Fact {
    /// The name.
    pub name: String,
    /// The value with its unit.
    pub value: String,
}

impl Fact {
    /// A fact.
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
    /// Its heading.
    pub heading: String,
    /// Paragraphs.
    pub text: Vec<String>,
    /// Texts to be copied: statements, commands.
    pub listings: Vec<Listing>,
    /// Charts.
    pub charts: Vec<Chart>,
    /// Tables with the charts' numbers.
    pub tables: Vec<Table>,
}

/// A text to be copied as it is.
#[derive(Debug, Clone)]
pub struct Listing {
    /// What it is.
    pub caption: String,
    /// The text; lines are kept.
    pub text: String,
}

/// A table.
#[derive(Debug, Clone, Default)]
pub struct Table {
    /// Name for programs, unique in the report.
    pub key: &'static str,
    /// What it shows.
    pub caption: String,
    /// Its columns.
    pub columns: Vec<Column>,
    /// Its rows, each with a cell for every column.
    pub rows: Vec<Row>,
}

impl Table {
    /// The table without the columns that tell nothing: those in which every row has no value, or zero.
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

/// A column.
#[derive(Debug, Clone)]
pub struct Column {
    /// Name for programs, unique in the table.
    pub key: &'static str,
    /// Name for people.
    pub heading: String,
    /// What its cells hold.
    pub kind: ColumnKind,
}

/// What the cells of a column hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnKind {
    /// Texts, flush left.
    Text,
    /// Dates and times as texts, `YYYY-MM-DD hh:mm:ss`; the page shows them to the minute, in one line.
    Moment,
    /// Numbers, aligned at the decimal point.
    Number {
        /// Unit, shown in the heading; may be empty.
        unit: &'static str,
        /// Digits behind the point.
        decimals: usize,
    },
}

impl Column {
    /// A column of texts.
    pub fn text(key: &'static str, heading: impl Into<String>) -> Self {
        Self {
            key,
            heading: heading.into(),
            kind: ColumnKind::Text,
        }
    }

    /// A column of dates and times, which stay in one line.
    pub fn moment(key: &'static str, heading: impl Into<String>) -> Self {
        Self {
            key,
            heading: heading.into(),
            kind: ColumnKind::Moment,
        }
    }

    /// A column of numbers.
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

/// A row.
#[derive(Debug, Clone, Default)]
pub struct Row {
    /// Its cells.
    pub cells: Vec<Cell>,
    /// Whether it is the one to look at.
    pub is_marked: bool,
}

impl Row {
    /// A row like any other.
    pub fn new(cells: Vec<Cell>) -> Self {
        Self {
            cells,
            is_marked: false,
        }
    }

    /// The same, to be looked at if `is_marked`.
    pub fn marked(self, is_marked: bool) -> Self {
        Self { is_marked, ..self }
    }
}

/// A cell.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    /// A text.
    Text(String),
    /// A number in the column's unit.
    Number(f64),
    /// There is no such value.
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

/// A chart with what it says in words.
#[derive(Debug, Clone)]
pub struct Chart {
    /// What it shows.
    pub title: String,
    /// The same for those who cannot see it: what is compared, and what comes out.
    pub description: String,
    /// The chart itself.
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
    /// What happened when, and for how long something was wrong.
    Timeline(Timeline),
}

/// Bars in groups; every group has a bar for each series.
#[derive(Debug, Clone, Default)]
pub struct Bars {
    /// Unit of the values.
    pub unit: String,
    /// Digits behind the point of the values.
    pub decimals: usize,
    /// Names of the series, in the order of their bars.
    pub series: Vec<String>,
    /// The groups from top to bottom.
    pub groups: Vec<BarGroup>,
    /// A value to compare all bars with.
    pub mark: Option<Mark>,
}

/// A group of bars.
#[derive(Debug, Clone)]
pub struct BarGroup {
    /// What the group is.
    pub label: String,
    /// A value for each series; `None` draws no bar.
    pub values: Vec<Option<Spread>>,
}

/// The middle of several measurements, and how far they lie apart.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// The least.
    pub low: f64,
    /// The one in the middle.
    pub median: f64,
    /// The greatest.
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

/// A line across a chart.
#[derive(Debug, Clone)]
pub struct Mark {
    /// What it stands for.
    pub label: String,
    /// Where it is.
    pub value: f64,
}

/// Lines over steps that stand at equal distances.
#[derive(Debug, Clone, Default)]
pub struct Lines {
    /// What the steps are.
    pub step_name: String,
    /// The steps from left to right.
    pub steps: Vec<String>,
    /// Unit of the values.
    pub unit: String,
    /// Digits behind the point of the values.
    pub decimals: usize,
    /// The lines.
    pub series: Vec<Series>,
    /// A value to compare all lines with.
    pub mark: Option<Mark>,
}

/// A line.
#[derive(Debug, Clone)]
pub struct Series {
    /// Its name.
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
    /// Its stages.
    pub stages: Vec<StageShares>,
}

/// How a stage spent its time: shares of the time of its threads, 0 to 1.
#[derive(Debug, Clone)]
pub struct StageShares {
    /// The stage.
    pub name: String,
    /// At work.
    pub busy: f64,
    /// Waiting for the stage before.
    pub wait_input: f64,
    /// Waiting for the stage behind.
    pub wait_output: f64,
    /// Whether this stage limited the run.
    pub is_limit: bool,
}
