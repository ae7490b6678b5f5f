//! The sink of the command line.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde_json::{Value as Json, json};
use windlass_base::Message;
use windlass_base::similar::did_you_mean;
use windlass_instance::{Column, Completed, Event, Progress, Sink, Value, json as json_of};
use windlass_local::completed;

use super::progress::Bar;
use super::table::{Style, Table, Vertical};
use super::{
    error_line, message_json, message_line, message_text, plain, result_json, result_json_piece,
    result_line,
};

/// The layout of result sets for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layout {
    /// Aligned columns, and a line with the number of rows.
    Table,
    /// One line per column.
    Vertical,
    /// Aligned columns if they fit the terminal of that width, else one line per column.
    Fitting(usize),
}

/// The last message of a statement that failed.
const CLOSES_STATEMENT: u32 = 3013;

/// Prints the output of statements.
#[expect(clippy::struct_excessive_bools, reason = "each is a switch")]
#[derive(Debug)]
pub(crate) struct Console {
    is_json: bool,
    layout: Layout,
    style: Style,
    /// The columns to print of each result, if not all.
    chosen: Vec<String>,
    /// Where they are in the result being printed.
    places: Option<Vec<usize>>,
    prints_plan: bool,
    /// Whether a summary line follows a long operation, as after plain commands.
    summarizes: bool,
    counts_rows: bool,
    /// `SET NOCOUNT ON`
    hides_counts: bool,
    bar: Bar,
    result: Option<Open>,
    results: u64,
    has_failed: bool,
    /// The greatest severity so far.
    worst: u8,
    /// The numbers of the errors so far.
    reported: BTreeSet<u32>,
    /// Whether messages have the words of the command line; T-SQL's otherwise.
    is_plain: bool,
    /// Whether an error was printed that closing messages follow.
    has_reason: bool,
    /// Whether standard output is reserved for T-SQL: text for people goes to standard error.
    is_script: bool,
}

/// A result set being printed.
#[derive(Debug)]
enum Open {
    Table(Table),
    Vertical(Vec<Column>, Vertical),
    Json(Vec<Column>, u64),
}

impl Console {
    /// A console for plain commands.
    pub(crate) fn new(is_json: bool, layout: Layout) -> Self {
        Self {
            is_json,
            layout,
            style: Style::default(),
            chosen: Vec::new(),
            places: None,
            prints_plan: false,
            summarizes: true,
            counts_rows: false,
            hides_counts: false,
            bar: Bar::new(),
            result: None,
            results: 0,
            has_failed: false,
            worst: 0,
            reported: BTreeSet::new(),
            is_plain: true,
            has_reason: false,
            is_script: false,
        }
    }

    /// A console for scripts: row counts, but no summaries in addition to SQL Server's messages.
    pub(crate) fn for_scripts(is_json: bool, layout: Layout) -> Self {
        Self {
            summarizes: false,
            is_plain: false,
            counts_rows: true,
            ..Self::new(is_json, layout)
        }
    }

    /// A console for the commands of another dialect: messages are printed as they come.
    pub(crate) fn with_messages_as_they_come(self) -> Self {
        Self {
            is_plain: false,
            ..self
        }
    }

    /// Prints only these columns of each result, in this order; none: all.
    pub(crate) fn with_columns(self, chosen: &[String]) -> Self {
        Self {
            chosen: chosen.to_vec(),
            ..self
        }
    }

    /// Prints tables in another style.
    pub(crate) fn with_style(self, style: Style) -> Self {
        Self { style, ..self }
    }

    /// The greatest severity of a message so far.
    pub(crate) fn worst_severity(&self) -> u8 {
        self.worst
    }

    /// Begins to look for the greatest severity from here on; returns the one so far.
    pub(crate) fn forget_worst(&mut self) -> u8 {
        std::mem::take(&mut self.worst)
    }

    pub(crate) fn note_severity(&mut self, severity: u8) {
        self.worst = self.worst.max(severity);
    }

    /// Prints plans too.
    pub(crate) fn with_plan(self, prints_plan: bool) -> Self {
        Self {
            prints_plan,
            ..self
        }
    }

    /// Prints the equivalent T-SQL. All other text for people then goes to standard error, so that
    /// standard output can be piped.
    pub(crate) fn tsql(&mut self, statement: &str) {
        self.is_script = true;
        let text = format!("{statement};");
        match self.is_json {
            true => result_json(&json!({ "tsql": text }).to_string()),
            false => result_line(&text),
        }
    }

    /// Prints what was done, as one object for programs; people are told by messages.
    pub(crate) fn done(&self, result: &Json) {
        if self.is_json {
            result_json(&result.to_string());
        }
    }

    /// Whether an error with this number was printed.
    pub(crate) fn has_reported(&self, number: u32) -> bool {
        self.reported.contains(&number)
    }

    /// Whether any message was an error.
    pub(crate) fn has_failed(&self) -> bool {
        self.has_failed
    }

    /// Needed also if a statement fails after some rows, so that standard output stays well-formed.
    fn close_result(&mut self) {
        match self.result.take() {
            Some(Open::Table(table)) => table.finish(),
            Some(Open::Json(..)) => result_json("]"),
            Some(Open::Vertical(..)) | None => {}
        }
    }

    /// Prints a message.
    pub(crate) fn message(&mut self, message: Message) {
        crate::service::alive();
        let message = match self.is_plain {
            true => plain::reworded(message),
            false => message,
        };
        self.has_failed |= message.is_error();
        self.note_severity(message.severity.0);
        if message.is_error() {
            self.reported.insert(message.number);
            self.bar.clear();
            self.close_result();
        }
        let follows = self.is_plain && plain::is_closing(&message) && self.has_reason;
        if message.is_error() {
            self.has_reason = message.number != CLOSES_STATEMENT;
        }
        if self.is_json {
            message_json(&json_of::message(&message).to_string());
        } else if !follows {
            self.bar.aside(|| message_text(&message.to_string()));
        }
    }

    /// Where the chosen columns are; reports those that are not there, and whether all are.
    fn find_chosen(&mut self, columns: &[Column]) -> bool {
        self.places = (!self.chosen.is_empty()).then(Vec::new);
        let mut is_complete = true;
        for name in &self.chosen {
            let mut there = columns.iter();
            match there.position(|column| column.name.eq_ignore_ascii_case(name)) {
                Some(place) => self.places.get_or_insert_default().push(place),
                None => {
                    let known = columns.iter().map(|column| column.name.as_str());
                    let hint = did_you_mean(name, known).unwrap_or_default();
                    error_line(&format!("the result has no column '{name}'. {hint}"));
                    self.has_failed = true;
                    is_complete = false;
                }
            }
        }
        is_complete
    }

    fn columns(&mut self, all: &[Column]) {
        self.bar.clear();
        let is_complete = self.find_chosen(all);
        let columns = &chosen_of(self.places.as_deref(), all);
        // A result whose error CATCH handles ends without one.
        self.close_result();
        if !is_complete {
            return;
        }
        if self.results > 0 && !self.is_json {
            result_line("");
        }
        self.results += 1;
        self.result = Some(match (self.is_json, self.layout) {
            (true, _) => {
                result_json_piece("[");
                Open::Json(columns.to_vec(), 0)
            }
            (false, Layout::Table) => Open::Table(Table::new(columns, self.style.clone())),
            (false, Layout::Fitting(width)) => {
                Open::Table(Table::new(columns, self.style.clone()).fitting(width))
            }
            (false, Layout::Vertical) => Open::Vertical(columns.to_vec(), Vertical::default()),
        });
    }

    fn row(&mut self, all: &[Value]) {
        let row = &chosen_of(self.places.as_deref(), all);
        match &mut self.result {
            Some(Open::Table(table)) => table.row(row),
            Some(Open::Vertical(columns, rows)) => {
                let texts: Vec<String> = row.iter().map(ToString::to_string).collect();
                rows.row(columns, &texts);
            }
            Some(Open::Json(columns, count)) => {
                let separator = if *count > 0 { ",\n" } else { "" };
                *count += 1;
                result_json_piece(&format!("{separator}{}", json_of::row(columns, row)));
            }
            None => {}
        }
    }

    fn rows_end(&mut self, count: u64) {
        self.close_result();
        if self.counts_rows && !self.hides_counts && !self.is_json {
            self.rows_affected(count);
        }
    }

    fn rows_affected(&mut self, count: u64) {
        if self.is_json {
            return;
        }
        let rows = if count == 1 { "row" } else { "rows" };
        message_line(&format!("({count} {rows} affected)"));
    }

    fn progress(&mut self, progress: &Progress) {
        crate::service::progress(progress);
        if !self.is_json {
            self.bar.show(progress);
        }
    }

    fn planned(&mut self, plan: &str) {
        if self.prints_plan && !self.is_json {
            self.bar.aside(|| message_text(plan.trim_end()));
        }
    }

    /// A report that a server has rendered.
    fn reported(&mut self, line: &str, json: &str) {
        self.bar.clear();
        if self.is_json {
            result_json(json);
        } else if self.summarizes && self.is_script {
            message_line(line);
        } else if self.summarizes {
            result_line(line);
        }
    }

    fn completed(&mut self, completed: Completed<'_>) {
        self.bar.clear();
        if let (Completed::Rehearsal(rehearsal), false) = (completed, self.is_json) {
            for line in rehearsal.lines() {
                match self.is_script {
                    true => message_line(&line),
                    false => result_line(&line),
                }
            }
            return;
        }
        if self.is_json {
            result_json(&completed::object(completed).to_string());
        } else if self.summarizes && self.is_script {
            message_line(&completed::line(completed));
        } else if self.summarizes {
            result_line(&completed::line(completed));
        }
    }
}

/// The items in these places, or all.
fn chosen_of<'a, T: Clone>(places: Option<&[usize]>, all: &'a [T]) -> Cow<'a, [T]> {
    match places {
        None => Cow::Borrowed(all),
        Some(places) => places
            .iter()
            .filter_map(|place| all.get(*place).cloned())
            .collect(),
    }
}

impl Sink for Console {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Message(message) => self.message(message),
            Event::Columns(columns) => self.columns(columns),
            Event::Row(row) => self.row(row),
            Event::RowsEnd(count) => self.rows_end(count),
            Event::RowsAffected(count) => self.rows_affected(count),
            Event::CountsShown(are_shown) => self.hides_counts = !are_shown,
            Event::Progress(progress) => self.progress(progress),
            Event::Planned(plan) => self.planned(&plan.to_string()),
            Event::Completed(completed) => self.completed(completed),
            Event::Reported { line, json } => self.reported(line, json),
            Event::PlannedElsewhere(plan) => self.planned(plan),
        }
    }
}
