//! Lines over steps: thread counts, transfer sizes. Each line has its name and last value at its end; the
//! table below has all values.

use super::axis::Axis;
use super::canvas::{Anchor, Canvas, Point, Role};
use super::{series_class, with_marks};
use crate::model::Lines;
use crate::number::number;

const PLOT: f64 = 250.0;
/// Space for the unit.
const TOP: f64 = 28.0;
/// Height of a name at the end of a line.
const NAME_LINE: f64 = 15.0;
/// The most of the width that names take.
const NAMES_MAX: f64 = 0.34;
const TICK_GAP: f64 = 38.0;
/// A label truncated to less than this would be meaningless.
const ROOM_MIN: f64 = 30.0;

/// The rectangle of the plot and its vertical axis.
struct Plot {
    left: f64,
    right: f64,
    bottom: f64,
    axis: Axis,
    steps: usize,
}

impl Plot {
    fn x(&self, step: usize) -> f64 {
        let slot = self.slot();
        self.left + slot * (step as f64 + 0.5)
    }

    /// Width per step.
    fn slot(&self) -> f64 {
        (self.right - self.left) / self.steps.max(1) as f64
    }

    fn y(&self, value: f64) -> f64 {
        self.bottom - self.axis.place(value)
    }
}

impl Lines {
    /// The maximum value in the chart.
    pub(super) fn greatest(&self) -> f64 {
        let values = self.series.iter().flat_map(|series| &series.values);
        let values = values.flatten().copied().filter(|value| value.is_finite());
        values.fold(0.0, f64::max)
    }
}

pub(super) fn draw(lines: &Lines, width: f64) -> Canvas {
    let mut canvas = Canvas::new(width);
    let greatest = with_marks(lines.greatest(), &lines.marks);
    let axis = Axis::new(greatest, PLOT, TICK_GAP, false);
    let ticks = axis.ticks().map(|(_, text)| Role::Tick.width(&text));
    let widest = names(lines).map(|(_, _, text)| Role::Tick.width(&text));
    let names_width = match widest.fold(0.0, f64::max) {
        0.0 => 2.0,
        widest => widest.min(width * NAMES_MAX) + 24.0,
    };
    let plot = Plot {
        left: ticks.fold(0.0, f64::max) + 8.0,
        right: width - names_width,
        bottom: TOP + PLOT,
        axis,
        steps: lines.steps.len(),
    };
    canvas.height = plot.bottom + 42.0;
    draw_axes(&mut canvas, &plot, lines);
    for mark in &lines.marks {
        let y = plot.y(mark.value);
        canvas.mark(mark, plot.left, plot.right, y);
    }
    for (index, series) in lines.series.iter().enumerate() {
        // A gap interrupts the line.
        let runs = series.values.split(Option::is_none);
        let mut step = 0;
        for run in runs {
            let points: Vec<Point> = run
                .iter()
                .enumerate()
                .filter_map(|(offset, value)| point(&plot, step + offset, *value))
                .collect();
            step += run.len() + 1;
            if points.len() > 1 {
                canvas.path(points, format!("{} line", series_class(index)));
            }
        }
    }
    for (index, series) in lines.series.iter().enumerate() {
        for (step, value) in series.values.iter().enumerate() {
            if let Some(at) = point(&plot, step, *value) {
                canvas.marker(at, index);
            }
        }
    }
    draw_names(&mut canvas, &plot, lines);
    canvas
}

fn point(plot: &Plot, step: usize, value: Option<f64>) -> Option<Point> {
    let value = value.filter(|_| step < plot.steps)?;
    Some((plot.x(step), plot.y(value)).into())
}

fn draw_axes(canvas: &mut Canvas, plot: &Plot, lines: &Lines) {
    plot.axis
        .draw_grid(canvas, plot.left, plot.right, plot.bottom);
    // Short labels are below each step; long ones are truncated, and if there are many, some are
    // omitted.
    let longest = lines.steps.iter().map(|step| Role::Tick.width(step));
    let longest = longest.fold(0.0, f64::max).min(90.0) + 8.0;
    let every = (longest / plot.slot()).ceil().max(1.0) as usize;
    for (step, text) in lines.steps.iter().enumerate().step_by(every) {
        let room = plot.slot() * every as f64 - 6.0;
        let room = room.min(2.0 * (canvas.width - plot.x(step)).min(plot.x(step)));
        if room < ROOM_MIN && Role::Tick.width(text) > room {
            continue;
        }
        canvas.text(
            (plot.x(step), plot.bottom + 18.0),
            Anchor::Middle,
            Role::Tick,
            Role::Tick.cut(text, room),
        );
    }
    let width = canvas.width;
    let mut aside = |x: f64, y: f64, anchor: Anchor, text: &str| {
        let room = if anchor == Anchor::End {
            x
        } else {
            width * 0.9
        };
        canvas.text((x, y), anchor, Role::Tick, Role::Tick.cut(text, room));
    };
    aside(0.0, 12.0, Anchor::Start, &lines.unit);
    aside(
        plot.right,
        plot.bottom + 36.0,
        Anchor::End,
        &lines.step_name,
    );
}

/// Whether every line can have its name at its end.
pub(super) fn names_fit(lines: &Lines) -> bool {
    lines.series.len() as f64 * NAME_LINE <= PLOT
}

/// The names of the lines with their last values.
fn names(lines: &Lines) -> impl Iterator<Item = (usize, f64, String)> {
    let series = lines.series.iter().enumerate().filter(|_| names_fit(lines));
    series.filter_map(|(index, series)| {
        let last = series.values.iter().rev().find_map(|value| *value)?;
        Some((
            index,
            last,
            format!("{} {}", number(last, lines.decimals), series.name),
        ))
    })
}

/// The name of each line right of its end, moved apart where lines end close together.
fn draw_names(canvas: &mut Canvas, plot: &Plot, lines: &Lines) {
    let mut ends: Vec<(f64, f64, usize, String)> = names(lines)
        .map(|(index, value, text)| (plot.y(value), plot.y(value), index, text))
        .collect();
    ends.sort_by(|one, other| one.0.total_cmp(&other.0));
    let mut least = TOP;
    for end in &mut ends {
        end.1 = end.1.max(least);
        least = end.1 + NAME_LINE;
    }
    let mut most = plot.bottom;
    for end in ends.iter_mut().rev() {
        end.1 = end.1.min(most);
        most = end.1 - NAME_LINE;
    }
    let x = plot.right + 14.0;
    let room = canvas.width - x - 8.0;
    for (from, y, index, text) in ends {
        let (line_end, name) = ((plot.right - plot.slot() / 2.0, from), (x, y));
        canvas.rule(line_end, name, "leader");
        canvas.marker(name, index);
        canvas.text(
            (x + 8.0, y + 4.0),
            Anchor::Start,
            Role::Tick,
            Role::Tick.cut(&text, room),
        );
    }
}
