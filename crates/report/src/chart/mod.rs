//! Charts as SVG.
//!
//! | file | what |
//! |---|---|
//! | `bars` | horizontal bars in groups |
//! | `lines` | lines over steps |
//! | `stages` | shares of time of the stages of runs |
//! | `map` | what lies where in a file |
//! | `times` | values over time |
//! | `timeline` | events over time, one row per subject |
//! | `axis` | round ticks |
//! | `time_axis` | ticks at the beginnings of hours, days, months, years |
//! | `canvas` | shapes and texts with known positions |
//! | `measure` | estimated widths of texts |

mod axis;
mod bars;
mod canvas;
mod lines;
mod map;
mod measure;
mod stages;
#[cfg(test)]
mod tests;
mod time_axis;
mod timeline;
mod times;

use maud::{Markup, html};

use crate::model::{Chart, ChartKind, Mark};
use canvas::Canvas;

/// Width of a chart on a phone.
const NARROW: f64 = 340.0;

/// Width of a chart on a desktop and on paper.
const WIDE: f64 = 760.0;

/// The figure of a chart: title, legend, and the drawing for both widths. `id` is unique on the page.
pub(crate) fn figure(chart: &Chart, id: &str) -> Markup {
    let (kind, beyond) = without_far_marks(chart.kind.clone());
    html! {
        figure {
            figcaption { (chart.title) }
            (legend(&kind))
            div class="narrow" {
                (draw(&kind, NARROW).to_svg(&format!("{id}-narrow"), &chart.title, &chart.description))
            }
            div class="wide" {
                (draw(&kind, WIDE).to_svg(&format!("{id}-wide"), &chart.title, &chart.description))
            }
            @if !beyond.is_empty() { p class="beyond" { "Beyond the scale: " (beyond.join("; ")) } }
        }
    }
}

/// A mark further beyond the greatest value than this would squeeze all values into a part of the chart.
const FAR: f64 = 1.5;

/// The chart without such marks, and their labels.
fn without_far_marks(mut kind: ChartKind) -> (ChartKind, Vec<String>) {
    let (greatest, marks) = match &mut kind {
        ChartKind::Bars(bars) => (bars.greatest(), &mut bars.marks),
        ChartKind::Lines(lines) => (lines.greatest(), &mut lines.marks),
        ChartKind::Times(times) => (times.greatest(), &mut times.marks),
        ChartKind::Stages(_) | ChartKind::Timeline(_) | ChartKind::Map(_) => {
            return (kind, Vec::new());
        }
    };
    let is_far = |mark: &mut Mark| greatest > 0.0 && mark.value > greatest * FAR;
    let beyond = marks
        .extract_if(.., is_far)
        .map(|mark| mark.label)
        .collect();
    (kind, beyond)
}

/// The greatest of the values and the marks of a chart.
fn with_marks(greatest: f64, marks: &[Mark]) -> f64 {
    let values = marks.iter().map(|mark| mark.value);
    values
        .filter(|value| value.is_finite())
        .fold(greatest, f64::max)
}

fn draw(kind: &ChartKind, width: f64) -> Canvas {
    match kind {
        ChartKind::Bars(bars) => bars::draw(bars, width),
        ChartKind::Lines(lines) => lines::draw(lines, width),
        ChartKind::Stages(stages) => stages::draw(stages, width),
        ChartKind::Times(times) => times::draw(times, width),
        ChartKind::Timeline(timeline) => timeline::draw(timeline, width),
        ChartKind::Map(map) => map::draw(map, width),
    }
}

/// The names of the series, in drawing order. Omitted for a single series.
fn legend(kind: &ChartKind) -> Markup {
    let entries: Vec<(Markup, &str)> = match kind {
        ChartKind::Bars(bars) => numbered(&bars.series, |index| swatch(&series_class(index))),
        ChartKind::Lines(lines) if lines::names_fit(lines) => Vec::new(),
        ChartKind::Lines(lines) => {
            numbered(lines.series.iter().map(|series| &series.name), line_swatch)
        }
        ChartKind::Stages(_) => stages::LEGEND
            .iter()
            .map(|(class, name)| (swatch(class), *name))
            .collect(),
        ChartKind::Times(times) => {
            numbered(times.series.iter().map(|series| &series.name), line_swatch)
        }
        ChartKind::Map(map) => numbered(&map.kinds, |index| swatch(map::class(index))),
        ChartKind::Timeline(timeline) => {
            let mut entries = numbered(&timeline.kinds, |kind| {
                swatch(&format!("{} event", series_class(kind)))
            });
            if !timeline.trouble.is_empty() {
                entries.push((swatch("trouble"), timeline.trouble.as_str()));
            }
            entries
        }
    };
    html! {
        @if entries.len() > 1 {
            ul class="legend" {
                @for (swatch, name) in &entries { li { (swatch) span { (name) } } }
            }
        }
    }
}

fn numbered<'a, S: AsRef<str> + 'a>(
    names: impl IntoIterator<Item = &'a S>,
    swatch: impl Fn(usize) -> Markup,
) -> Vec<(Markup, &'a str)> {
    let names = names.into_iter().enumerate();
    names
        .map(|(index, name)| (swatch(index), name.as_ref()))
        .collect()
}

fn swatch(class: &str) -> Markup {
    html! {
        svg aria-hidden="true" width="14" height="14" viewBox="0 0 14 14" {
            rect class=(class) x="1" y="1" width="12" height="12" {}
        }
    }
}

fn line_swatch(index: usize) -> Markup {
    html! {
        svg aria-hidden="true" width="26" height="14" viewBox="0 0 26 14" {
            line class=(format!("{} line", series_class(index))) x1="1" y1="7" x2="25" y2="7" {}
            (canvas::marker((13.0, 7.0).into(), index))
        }
    }
}

/// The style's class for a series.
fn series_class(index: usize) -> String {
    format!("s{}", index % canvas::SERIES_COLORS)
}
