//! Lines over time. The last point of a line shows its value if there is space; the table below has all
//! values.

use super::axis::Axis;
use super::canvas::{Anchor, Canvas, Point, Role};
use super::time_axis::TimeAxis;
use super::{series_class, with_marks};
use crate::number::number;
use crate::over_time::Times;

const PLOT: f64 = 180.0;
/// Space for the unit, and for the value above the highest point.
const TOP: f64 = 34.0;
const TICK_GAP: f64 = 36.0;
/// With more points than this, markers would overlap.
const MARKERS_MAX: usize = 60;

impl Times {
    /// The maximum value in the chart.
    pub(super) fn greatest(&self) -> f64 {
        let values = self.series.iter().flat_map(|series| &series.points);
        let values = values
            .map(|point| point.value)
            .filter(|value| value.is_finite());
        values.fold(0.0, f64::max)
    }
}

pub(super) fn draw(times: &Times, width: f64) -> Canvas {
    let mut canvas = Canvas::new(width);
    let greatest = with_marks(times.greatest(), &times.marks);
    let axis = Axis::new(greatest, PLOT, TICK_GAP, false);
    let ticks = axis.ticks().map(|(_, text)| Role::Tick.width(&text));
    let left = ticks.fold(0.0, f64::max) + 8.0;
    let right = width - 8.0;
    let bottom = TOP + PLOT;
    let time = TimeAxis::new(times.moments, left, right);
    canvas.height = bottom + 26.0;
    axis.draw_grid(&mut canvas, left, right, bottom);
    draw_time(&mut canvas, &time, bottom);
    canvas.text(
        (0.0, 12.0),
        Anchor::Start,
        Role::Tick,
        Role::Tick.cut(&times.unit, width * 0.9),
    );
    for mark in &times.marks {
        let y = bottom - axis.place(mark.value);
        canvas.mark(mark, left, right, y);
    }
    draw_series(&mut canvas, times, &time, |value| {
        bottom - axis.place(value)
    });
    canvas
}

fn draw_series(canvas: &mut Canvas, times: &Times, time: &TimeAxis, y: impl Fn(f64) -> f64) {
    let mut ends: Vec<(Point, f64)> = Vec::new();
    for (index, series) in times.series.iter().enumerate() {
        let points: Vec<(Point, f64)> = series
            .points
            .iter()
            .filter(|point| point.value.is_finite())
            .filter_map(|point| {
                let (x, y) = (time.x(point.at)?, y(point.value));
                Some((Point { x, y }, point.value))
            })
            .collect();
        if points.len() > 1 {
            let path = points.iter().map(|(point, _)| *point).collect();
            canvas.path(path, format!("{} line", series_class(index)));
        }
        if points.len() <= MARKERS_MAX {
            for (point, _) in &points {
                canvas.marker(*point, index);
            }
        }
        ends.extend(points.last().copied());
    }
    for (at, value) in &ends {
        let places = [
            (at.x + 4.0, at.y - 9.0, Anchor::End),
            (at.x + 4.0, at.y + 18.0, Anchor::End),
        ];
        canvas.text_where_free(&places, Role::Value, &number(*value, times.decimals));
    }
}

/// Time ticks with their labels below `bottom`.
pub(super) fn draw_time(canvas: &mut Canvas, time: &TimeAxis, bottom: f64) {
    for (x, text) in time.ticks() {
        canvas.rule((x, bottom), (x, bottom + 5.0), "axis");
        let half = Role::Tick.width(&text) / 2.0;
        if x - half < 0.0 || x + half > canvas.width {
            continue;
        }
        canvas.text((x, bottom + 18.0), Anchor::Middle, Role::Tick, text);
    }
}
