//! Results for people: typed figures, tables and charts as ONE self-contained HTML page, and the
//! same tables as plain text.
//!
//! ```text
//! Report { figures, facts, sections: [text, charts, tables], notes }
//!    |-- html::page  one file: inline style, inline SVG, no scripts, no other file
//!    `-- Table::to_text  for terminals
//! ```
//!
//! Neighbours: `tune` above fills the types. Nothing here knows what a backup is, measures anything,
//! or does I/O.
//!
//! Invariants:
//! 1. Whatever the texts hold, the page is well-formed and runs nothing: texts are escaped by the
//!    template library, and the page's own policy forbids scripts and any request.
//! 2. Every chart is drawn twice, for a phone and for a desk, at its natural size; the style shows
//!    one of them. So letters keep their size and labels do not overlap at either width.
//! 3. A chart never tells more than the table that stands beneath it.
#![forbid(unsafe_code)]

mod chart;
mod html;
mod model;
mod number;
mod over_time;
mod text;

pub use model::{
    BarGroup, Bars, Cell, Chart, ChartKind, Column, ColumnKind, Fact, Figure, Lines, Listing, Mark,
    Report, Row, Section, Series, Spread, StageBars, StageGroup, StageShares, Table,
};
pub use number::number;
pub use over_time::{Event, Moments, Period, TimePoint, TimeSeries, Timeline, TimelineRow, Times};
