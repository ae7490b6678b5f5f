//! Results for people: typed figures, tables and charts as ONE self-contained HTML page, and the
//! same tables as plain text.
//!
//! ```text
//! Report { figures, facts, sections: [text, charts, tables], notes }
//!    |-- html::page  one file: inline style, inline SVG, no scripts, no other file
//!    `-- Table::to_text  for terminals
//! ```
//!
//! Neighbours: `tune` and `windlass report` above fill the types. Nothing here depends on backups,
//! measures anything, or does I/O.
//!
//! Invariants:
//! 1. Whatever the texts contain, the page is well-formed and runs no code: the template library
//!    escapes texts, and the page's own policy forbids scripts and requests.
//! 2. Every chart is drawn twice, for a phone and for a desktop, at its natural size; the style
//!    shows one of them. So letters keep their size and labels do not overlap at either width.
//! 3. A chart never shows more than the table below it.
#![forbid(unsafe_code)]

mod chart;
pub mod html;
mod model;
mod number;
mod over_time;
mod text;

pub use model::{
    BarGroup, Bars, Cell, Chart, ChartKind, Column, ColumnKind, Fact, Figure, Lines, Listing, Map,
    MapPart, Mark, Report, Row, Section, Series, Spread, StageBars, StageGroup, StageShares, Table,
    TableOf,
};
pub use number::number;
pub use over_time::{Event, Moments, Period, TimePoint, TimeSeries, Timeline, TimelineRow, Times};
