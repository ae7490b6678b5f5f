//! The page: one self-contained file.
//!
//! Its policy allows inline style and nothing else, so injected scripts do not run, and opening a
//! report sends no requests. The server's page is made of the same parts.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::chart;
use crate::model::{Cell, Column, ColumnKind, Fact, Figure, Listing, Report, Row, Section, Table};
use crate::number::number;

/// The style of all pages, without scripts or other files.
pub const STYLE: &str = include_str!("style.css");

const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'";

impl Report {
    /// The report as a self-contained HTML page.
    pub fn to_html(&self) -> String {
        let page = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta http-equiv="Content-Security-Policy" content=(POLICY);
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    meta name="generator" content="Windlass";
                    link rel="icon" href="data:,";
                    title { (self.title) }
                    style { (PreEscaped(STYLE)) }
                }
                body {
                    main {
                        header {
                            h1 { (self.title) }
                            @if !self.subtitle.is_empty() { p class="subtitle" { (self.subtitle) } }
                        }
                        (figures(&self.figures))
                        (facts(&self.facts))
                        @for (index, section) in self.sections.iter().enumerate() {
                            (self::section(section, index))
                        }
                        (notes(&self.notes))
                    }
                }
            }
        };
        harmless(page)
    }
}

/// The text of a page. Control characters are not allowed in it, and those that change the direction of writing
/// could make a statement read differently.
pub fn harmless(page: Markup) -> String {
    page.into_string().chars().map(harmless_character).collect()
}

fn harmless_character(character: char) -> char {
    match character {
        '\n' | '\t' => character,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
            char::REPLACEMENT_CHARACTER
        }
        _ if character.is_control() => char::REPLACEMENT_CHARACTER,
        _ => character,
    }
}

/// Results, shown large.
pub fn figures(figures: &[Figure]) -> Markup {
    html! {
        @if !figures.is_empty() {
            div class="figures" {
                @for figure in figures {
                    div class="figure" {
                        div class="figure-label" { (figure.label) }
                        div class="figure-value" { (figure.value) }
                        @if !figure.detail.is_empty() { div class="figure-detail" { (figure.detail) } }
                    }
                }
            }
        }
    }
}

/// Names and values.
pub fn facts(facts: &[Fact]) -> Markup {
    html! {
        @if !facts.is_empty() {
            dl {
                @for fact in facts {
                    div { dt { (fact.name) } dd { (fact.value) } }
                }
            }
        }
    }
}

/// A part of a page; `index` is unique on it.
pub fn section(section: &Section, index: usize) -> Markup {
    html! {
        section {
            @if !section.heading.is_empty() { h2 { (section.heading) } }
            @for paragraph in &section.text { p { (paragraph) } }
            @for listing in &section.listings { (self::listing(listing)) }
            @for (number, chart) in section.charts.iter().enumerate() {
                (chart::figure(chart, &format!("chart-{index}-{number}")))
            }
            @for table in &section.tables { (self::table(table)) }
        }
    }
}

fn listing(listing: &Listing) -> Markup {
    html! {
        div class="listing" {
            div class="listing-caption" { (listing.caption) }
            pre tabindex="0" { code { (listing.text) } }
        }
    }
}

/// A table in its own frame, which scrolls if the page is too narrow.
fn table(table: &Table) -> Markup {
    html! {
        div class="scroll" tabindex="0" role="region" aria-label=(table.caption) {
            table {
                @if !table.caption.is_empty() { caption { (table.caption) } }
                thead { tr { @for column in &table.columns { (heading(column)) } } }
                tbody {
                    @for row in &table.rows { (self::row(table, row)) }
                }
            }
        }
    }
}

fn heading(column: &Column) -> Markup {
    match column.kind {
        ColumnKind::Text | ColumnKind::Moment => html! { th scope="col" { (column.heading) } },
        ColumnKind::Number { unit, .. } => html! {
            th scope="col" class="number" {
                (column.heading)
                @if !unit.is_empty() { " " span class="unit" { (unit) } }
            }
        },
    }
}

fn row(table: &Table, row: &Row) -> Markup {
    let cells = table.columns.iter().zip(&row.cells).enumerate();
    html! {
        tr class=[row.is_marked.then_some("marked")] {
            @for (index, (column, cell)) in cells {
                @let text = text(column, cell);
                @let class = class(column.kind);
                @if index == 0 {
                    th scope="row" class=[class] { (text) }
                } @else {
                    td class=[class] { (text) }
                }
            }
        }
    }
}

fn class(kind: ColumnKind) -> Option<&'static str> {
    match kind {
        ColumnKind::Text => None,
        ColumnKind::Moment => Some("moment"),
        ColumnKind::Number { .. } => Some("number"),
    }
}

fn text(column: &Column, cell: &Cell) -> String {
    match (column.kind, cell) {
        (_, Cell::Missing) => "–".to_owned(),
        // Readers compare only `YYYY-MM-DD hh:mm`.
        (ColumnKind::Moment, Cell::Text(text)) => text.get(..16).unwrap_or(text).to_owned(),
        (_, Cell::Text(text)) => text.clone(),
        (ColumnKind::Number { decimals, .. }, Cell::Number(value)) => number(*value, decimals),
        (ColumnKind::Text | ColumnKind::Moment, Cell::Number(value)) => value.to_string(),
    }
}

fn notes(notes: &[String]) -> Markup {
    html! {
        @if !notes.is_empty() {
            footer {
                h2 { "Notes" }
                ul { @for note in notes { li { (note) } } }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{BarGroup, Bars, Chart, ChartKind, Spread};

    const HOSTILE: &str =
        r#"</title><script>alert(1)</script>"'><img src=x onerror=alert(2)>&amp;"#;

    /// A report with a hostile text in every field.
    fn hostile() -> Report {
        let text = || HOSTILE.to_owned();
        let table = Table {
            key: "t",
            caption: text(),
            columns: vec![
                Column::text("a", text()),
                Column::number("b", text(), "MB/s", 1),
            ],
            rows: vec![Row::new(vec![text().into(), text().into()])],
        };
        let bars = Bars {
            unit: text(),
            series: vec![text(), text()],
            groups: vec![BarGroup {
                label: text(),
                values: vec![Some(Spread::exact(1.0)), None],
            }],
            ..Bars::default()
        };
        Report {
            title: text(),
            subtitle: text(),
            figures: vec![Figure {
                label: text(),
                value: text(),
                detail: text(),
            }],
            facts: vec![Fact::new(text(), text())],
            sections: vec![Section {
                heading: text(),
                text: vec![text()],
                listings: vec![Listing {
                    caption: text(),
                    text: text(),
                }],
                charts: vec![Chart {
                    title: text(),
                    description: text(),
                    kind: ChartKind::Bars(bars),
                }],
                tables: vec![table],
            }],
            notes: vec![text()],
        }
    }

    #[test]
    fn hostile_texts_stay_texts() {
        let page = hostile().to_html();
        for forbidden in ["<script", "<img", "\"'>", "&amp;\""] {
            assert!(!page.contains(forbidden), "{forbidden}");
        }
        assert!(page.contains("&lt;script&gt;"));
        assert!(page.contains("default-src 'none'"));
    }

    #[test]
    fn no_text_changes_the_direction_of_another() {
        let report = Report {
            title: "a\u{202e}b\u{2066}\0\u{1b}[1m".to_owned(),
            ..Report::default()
        };
        assert!(
            report
                .to_html()
                .contains("<h1>a\u{fffd}b\u{fffd}\u{fffd}\u{fffd}[1m</h1>")
        );
    }

    #[test]
    fn the_page_needs_no_other_file_and_says_what_charts_are() {
        let page = hostile().to_html();
        for forbidden in ["http://", "https://", "url(", "@import", "<iframe"] {
            assert!(!page.contains(forbidden), "{forbidden}");
        }
        let count = |text: &str| page.matches(text).count();
        assert_eq!(count("role=\"img\""), 2, "one drawing for each width");
        assert_eq!(count("aria-labelledby"), 2);
        assert!(page.contains("id=\"chart-0-0-narrow-title\""));
    }

    #[test]
    fn columns_that_tell_nothing_go() {
        let row = |cells: [Cell; 3]| Row::new(cells.to_vec());
        let table = Table {
            columns: vec![
                Column::moment("at", "at"),
                Column::number("none", "none", "", 0),
                Column::text("text", "text"),
            ],
            rows: vec![
                row([Cell::Missing, Cell::Number(0.0), Cell::Missing]),
                row(["2026-11-21 20:15:59".into(), Cell::Missing, "x".into()]),
            ],
            ..Table::default()
        };
        let table = table.without_empty_columns();
        let keys: Vec<&str> = table.columns.iter().map(|column| column.key).collect();
        assert_eq!(keys, ["at", "text"]);
        let page = self::table(&table).into_string();
        assert!(
            page.contains("<th scope=\"row\" class=\"moment\">2026-11-21 20:15</th><td>x</td>"),
            "{page}"
        );
    }

    #[test]
    fn numbers_have_the_digits_of_their_column() {
        let column = Column::number("a", "a", "s", 2);
        assert_eq!(text(&column, &Cell::Number(1.5)), "1.50");
        assert_eq!(text(&column, &Cell::Missing), "–");
    }
}
