//! Result sets for people: aligned columns, or one line per column.

use std::borrow::Cow;

use windlass_base::visible;
use windlass_instance::{Column, ColumnType, Value};

use super::result_line;

/// Rows that are buffered before the first is printed, to find the column widths.
const ROWS_MEASURED: usize = 1000;

/// Maximum column width; longer texts extend beyond it.
const WIDTH_MAX: usize = 256;

/// How a table is printed.
#[derive(Debug, Clone)]
pub(crate) struct Style {
    /// Between two columns.
    pub(crate) separator: String,
    /// Whether columns are as wide as their values.
    pub(crate) is_trimmed: bool,
    pub(crate) has_headings: bool,
    /// Where lines are cut.
    pub(crate) line_max: Option<usize>,
}

impl Default for Style {
    fn default() -> Self {
        Self {
            separator: " ".to_owned(),
            is_trimmed: false,
            has_headings: true,
            line_max: None,
        }
    }
}

/// Prints a result set as it arrives, with the widths of its first rows.
#[derive(Debug)]
pub(crate) struct Table {
    columns: Vec<Column>,
    style: Style,
    waiting: Vec<Vec<String>>,
    /// The width and alignment of each column, once rows are being printed.
    shapes: Option<Vec<Shape>>,
    /// If its lines would be longer, each row has one line per column instead.
    fits: Option<usize>,
    vertical: Vertical,
}

#[derive(Debug, Clone, Copy)]
struct Shape {
    width: usize,
    is_number: bool,
}

impl Table {
    pub(crate) fn new(columns: &[Column], style: Style) -> Self {
        Self {
            style,
            columns: columns.to_vec(),
            waiting: Vec::new(),
            shapes: None,
            fits: None,
            vertical: Vertical::default(),
        }
    }

    /// The same with one line per column, if its lines would be longer than `width`.
    pub(crate) fn fitting(self, width: usize) -> Self {
        Self {
            fits: Some(width),
            ..self
        }
    }

    /// Begins a table of texts with these headings; the columns in `numbers` are right-aligned.
    pub(crate) fn of_texts(headings: &[&str], numbers: &[usize]) -> Self {
        let column = |(index, heading): (usize, &&str)| {
            let column_type = if numbers.contains(&index) {
                ColumnType::Float
            } else {
                ColumnType::Any
            };
            Column::new(*heading, column_type)
        };
        let columns: Vec<Column> = headings.iter().enumerate().map(column).collect();
        Self::new(&columns, Style::default())
    }

    pub(crate) fn row(&mut self, row: &[Value]) {
        self.texts(row.iter().map(ToString::to_string).collect());
    }

    /// Adds a row of texts.
    pub(crate) fn texts(&mut self, mut row: Vec<String>) {
        for cell in &mut row {
            if let Cow::Owned(spelled) = visible(cell) {
                *cell = spelled;
            }
        }
        match &self.shapes {
            Some(_) if self.vertical.is_chosen => self.vertical.row(&self.columns, &row),
            Some(shapes) => print_row(&row, shapes, &self.style),
            None => {
                self.waiting.push(row);
                if self.waiting.len() >= ROWS_MEASURED {
                    self.flush();
                }
            }
        }
    }

    /// Prints the buffered rows.
    pub(crate) fn finish(mut self) {
        if self.shapes.is_none() {
            self.flush();
        }
    }

    fn flush(&mut self) {
        let shapes: Vec<Shape> = (0..self.columns.len())
            .map(|index| self.shape(index))
            .collect();
        let length: usize = shapes.iter().map(|shape| shape.width + 1).sum();
        if self.fits.is_some_and(|width| length > width + 1) && !self.waiting.is_empty() {
            self.vertical.is_chosen = true;
            for row in std::mem::take(&mut self.waiting) {
                self.vertical.row(&self.columns, &row);
            }
            self.shapes = Some(shapes);
            return;
        }
        let headings: Vec<String> = self
            .columns
            .iter()
            .map(|column| visible(&column.name).into_owned())
            .collect();
        let rules: Vec<String> = shapes.iter().map(|shape| "-".repeat(shape.width)).collect();
        if self.style.has_headings {
            print_row(&headings, &shapes, &self.style);
            print_row(&rules, &shapes, &self.style);
        }
        for row in self.waiting.drain(..) {
            print_row(&row, &shapes, &self.style);
        }
        self.shapes = Some(shapes);
    }

    fn shape(&self, index: usize) -> Shape {
        let cells = || self.waiting.iter().filter_map(|row| row.get(index));
        let heading = self
            .columns
            .get(index)
            .map_or(0, |column| visible(&column.name).chars().count());
        let widest = cells().map(|cell| cell.chars().count()).max().unwrap_or(0);
        let column_type = self
            .columns
            .get(index)
            .map_or(ColumnType::Any, |column| column.column_type);
        let is_number = column_type.is_number()
            || column_type == ColumnType::Any
                && cells().next().is_some()
                && cells().all(|cell| cell == "NULL" || cell.parse::<f64>().is_ok());
        Shape {
            width: heading.max(widest).clamp(1, WIDTH_MAX),
            is_number,
        }
    }
}

fn print_row(row: &[String], shapes: &[Shape], style: &Style) {
    let mut line = String::new();
    for (index, (cell, shape)) in row.iter().zip(shapes).enumerate() {
        if index > 0 {
            line.push_str(&style.separator);
        }
        let missing = match style.is_trimmed {
            true => 0,
            false => shape.width.saturating_sub(cell.chars().count()),
        };
        let filling = " ".repeat(missing);
        if shape.is_number {
            line.push_str(&filling);
            line.push_str(cell);
        } else {
            line.push_str(cell);
            line.push_str(&filling);
        }
    }
    let line = line.trim_end();
    match style.line_max {
        Some(most) => result_line(&line.chars().take(most).collect::<String>()),
        None => result_line(line),
    }
}

/// Rows with one line per column, and an empty line between them.
#[derive(Debug, Default)]
pub(super) struct Vertical {
    is_chosen: bool,
    rows: u64,
}

impl Vertical {
    pub(super) fn row(&mut self, columns: &[Column], row: &[String]) {
        if self.rows > 0 {
            result_line("");
        }
        self.rows += 1;
        let names = columns.iter().map(|column| visible(&column.name));
        let width = names.map(|name| name.chars().count()).max().unwrap_or(0);
        for (column, value) in columns.iter().zip(row) {
            result_line(&format!("{:<width$}  {value}", visible(&column.name)));
        }
    }
}
