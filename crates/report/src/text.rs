//! A table for terminals: columns aligned, numbers flush right, a star before the marked rows.

use crate::model::{Cell, Column, ColumnKind, Row, Table};
use crate::number::plain;

impl Table {
    /// The table as lines of text, with its caption above and no final line end.
    pub fn to_text(&self) -> String {
        let has_marks = self.rows.iter().any(|row| row.is_marked);
        let headings: Vec<String> = self.columns.iter().map(Column::title).collect();
        let rows: Vec<Vec<String>> = self.rows.iter().map(|row| self.texts(row)).collect();
        let widths: Vec<usize> = (0..self.columns.len())
            .map(|index| {
                let cells = rows.iter().filter_map(|row| row.get(index));
                cells
                    .chain(headings.get(index))
                    .map(|text| text.chars().count())
                    .max()
                    .unwrap_or(0)
            })
            .collect();
        let rules: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
        let mut lines = Vec::new();
        if !self.caption.is_empty() {
            lines.push(one_line(&self.caption));
        }
        lines.push(self.line(&headings, &widths, has_marks.then_some(false)));
        lines.push(self.line(&rules, &widths, has_marks.then_some(false)));
        for (row, texts) in self.rows.iter().zip(&rows) {
            lines.push(self.line(texts, &widths, has_marks.then_some(row.is_marked)));
        }
        lines.join("\n")
    }

    fn texts(&self, row: &Row) -> Vec<String> {
        let text = |(column, cell): (&Column, &Cell)| match (column.kind, cell) {
            (_, Cell::Missing) => "-".to_owned(),
            (_, Cell::Text(text)) => one_line(text),
            (ColumnKind::Number { decimals, .. }, Cell::Number(number)) => plain(*number, decimals),
            (ColumnKind::Text | ColumnKind::Moment, Cell::Number(number)) => number.to_string(),
        };
        self.columns.iter().zip(&row.cells).map(text).collect()
    }

    fn line(&self, texts: &[String], widths: &[usize], mark: Option<bool>) -> String {
        let mut line = match mark {
            Some(true) => "* ".to_owned(),
            Some(false) => "  ".to_owned(),
            None => String::new(),
        };
        for (index, ((text, width), column)) in
            texts.iter().zip(widths).zip(&self.columns).enumerate()
        {
            if index > 0 {
                line.push_str("  ");
            }
            let filling = " ".repeat(width.saturating_sub(text.chars().count()));
            match column.kind {
                ColumnKind::Number { .. } => line.extend([filling.as_str(), text]),
                ColumnKind::Text | ColumnKind::Moment => line.extend([text, filling.as_str()]),
            }
        }
        line.trim_end().to_owned()
    }
}

/// The text without characters that would break the table or act on the terminal.
fn one_line(text: &str) -> String {
    let visible = |character: char| {
        if character.is_control() {
            ' '
        } else {
            character
        }
    };
    text.chars().map(visible).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_marked_rows_starred() {
        let table = Table {
            key: "t",
            caption: "what".to_owned(),
            columns: vec![
                Column::text("name", "name"),
                Column::number("rate", "rate", "MB/s", 1),
            ],
            rows: vec![
                Row::new(vec!["a\u{1b}[1m".into(), 12.25.into()]).marked(true),
                Row::new(vec!["longer".into(), Cell::Missing]),
            ],
        };
        let expected = "what
  name    rate, MB/s
  ------  ----------
* a [1m         12.2
  longer           -";
        assert_eq!(table.to_text(), expected);
    }
}
