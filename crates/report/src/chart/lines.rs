//! Lines over steps: thread counts, transfer sizes. Every point shows its value if there is space; the
//! table below has all values.

use super::axis::Axis;
use super::canvas::{Anchor, Area, Canvas, Label, Point, Role};
use super::measure::wrap;
use super::series_class;
use crate::model::Lines;
use crate::number::number;

const PLOT: f64 = 250.0;
/// Space for the unit, and for the value above the highest point.
const TOP: f64 = 40.0;
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

pub(super) fn draw(lines: &Lines, width: f64) -> Canvas {
    let mut canvas = Canvas::new(width);
    let values = lines.series.iter().flat_map(|series| series.values.iter());
    let mark = lines.mark.iter().map(|mark| mark.value);
    let greatest = values.flatten().copied().chain(mark).fold(0.0, f64::max);
    let axis = Axis::new(greatest, PLOT, TICK_GAP, false);
    let ticks = axis.ticks().map(|(_, text)| Role::Tick.width(&text));
    let plot = Plot {
        left: ticks.fold(0.0, f64::max) + 8.0,
        right: width - 2.0,
        bottom: TOP + PLOT,
        axis,
        steps: lines.steps.len(),
    };
    canvas.height = plot.bottom + 42.0;
    draw_axes(&mut canvas, &plot, lines);
    draw_mark(&mut canvas, &plot, lines);
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
    draw_points(&mut canvas, &plot, lines);
    canvas
}

fn point(plot: &Plot, step: usize, value: Option<f64>) -> Option<Point> {
    let value = value.filter(|_| step < plot.steps)?;
    Some(Point {
        x: plot.x(step),
        y: plot.y(value),
    })
}

fn draw_axes(canvas: &mut Canvas, plot: &Plot, lines: &Lines) {
    for (value, text) in plot.axis.ticks() {
        let y = plot.y(value);
        let class = if value > 0.0 { "grid" } else { "axis" };
        canvas.rule(Point { x: plot.left, y }, Point { x: plot.right, y }, class);
        let at = Point {
            x: plot.left - 6.0,
            y: y + 4.0,
        };
        canvas.label(Label {
            at,
            anchor: Anchor::End,
            role: Role::Tick,
            text,
        });
    }
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
        canvas.label(Label {
            at: Point {
                x: plot.x(step),
                y: plot.bottom + 18.0,
            },
            anchor: Anchor::Middle,
            role: Role::Tick,
            text: wrap(text, Role::Tick.size(), room, 1).remove(0),
        });
    }
    let width = canvas.width;
    let mut aside = |x: f64, y: f64, anchor: Anchor, text: &str| {
        canvas.label(Label {
            at: Point { x, y },
            anchor,
            role: Role::Tick,
            text: wrap(text, Role::Tick.size(), width * 0.9, 1).remove(0),
        });
    };
    aside(0.0, 12.0, Anchor::Start, &lines.unit);
    aside(
        plot.right,
        plot.bottom + 36.0,
        Anchor::End,
        &lines.step_name,
    );
}

/// The line across the plot; its label is where the unit leaves space above the plot's right end.
fn draw_mark(canvas: &mut Canvas, plot: &Plot, lines: &Lines) {
    let Some(mark) = &lines.mark else { return };
    let y = plot.y(mark.value);
    canvas.rule(
        Point { x: plot.left, y },
        Point { x: plot.right, y },
        "mark",
    );
    let room = plot.right - plot.left - 4.0;
    let text = wrap(&mark.label, Role::Mark.size(), room, 1).remove(0);
    let places = [y - 6.0, y + 14.0].into_iter();
    let label = |y: f64| Label {
        at: Point { x: plot.right, y },
        anchor: Anchor::End,
        role: Role::Mark,
        text: text.clone(),
    };
    let free = places
        .map(label)
        .find(|label| canvas.is_free(&label.area()));
    if let Some(label) = free {
        canvas.label(label);
    }
}

/// Markers, and their values wherever they cover no other text or marker.
fn draw_points(canvas: &mut Canvas, plot: &Plot, lines: &Lines) {
    let points: Vec<(Point, usize, f64)> = lines
        .series
        .iter()
        .enumerate()
        .flat_map(|(index, series)| {
            let values = series.values.iter().enumerate();
            values.filter_map(move |(step, value)| {
                Some((point(plot, step, *value)?, index, (*value)?))
            })
        })
        .collect();
    for (at, series, _) in &points {
        canvas.marker(*at, *series);
    }
    for (at, _, value) in &points {
        let text = number(*value, lines.decimals);
        let candidates = [
            (0.0, -9.0, Anchor::Middle),
            (0.0, 19.0, Anchor::Middle),
            (9.0, 4.0, Anchor::Start),
            (-9.0, 4.0, Anchor::End),
        ];
        let label = |(x, y, anchor): (f64, f64, Anchor)| Label {
            at: Point {
                x: at.x + x,
                y: at.y + y,
            },
            anchor,
            role: Role::Value,
            text: text.clone(),
        };
        let is_clear = |label: &Label| {
            let area = label.area();
            let hides = |(other, _, _): &(Point, usize, f64)| {
                let marker = Area {
                    x: other.x - 5.0,
                    y: other.y - 5.0,
                    width: 10.0,
                    height: 10.0,
                };
                marker.overlaps(&area)
            };
            area.x > plot.left
                && area.y + area.height < plot.bottom
                && canvas.is_free(&area)
                && !points.iter().any(hides)
        };
        if let Some(label) = candidates.map(label).into_iter().find(is_clear) {
            canvas.label(label);
        }
    }
}
