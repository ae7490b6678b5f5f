//! Events over time: a row per subject, a tick per event, a band for each period in which something
//! was wrong.
//!
//! Kinds of events differ in height as well as in colour. Events close together are thinner ticks with a gap
//! between them; those that no gap can separate are one tick with their number above it.
//!
//! On a desktop the subjects are left of
//! their rows, on a phone above them.

use super::canvas::{Anchor, Area, Canvas, Role};
use super::measure::wrap;
use super::series_class;
use super::time_axis::TimeAxis;
use super::times::draw_time;
use crate::over_time::{Timeline, TimelineRow};

const ROW: f64 = 22.0;
const ROW_GAP: f64 = 16.0;
const LINE: f64 = 17.0;
const EVENT: f64 = 2.5;
/// Events that are closer than this are one tick, with their number above it.
const TICK_GAP: f64 = 1.2;
/// Minimum width of a period, so that it is visible.
const TROUBLE_MIN: f64 = 2.0;
/// Below this width the subjects are above their rows.
const NARROW_MAX: f64 = 500.0;
const NAME_LINES_MAX: usize = 2;

pub(super) fn draw(timeline: &Timeline, width: f64) -> Canvas {
    let mut canvas = Canvas::new(width);
    let is_beside = width >= NARROW_MAX;
    let names = timeline.rows.iter();
    let widest = names.map(|row| Role::Name.width(&row.label));
    let names = if is_beside {
        widest.fold(0.0, f64::max).min(width * 0.3)
    } else {
        0.0
    };
    let left = if is_beside { names + 14.0 } else { 8.0 };
    let time = TimeAxis::new(timeline.moments, left, width - 8.0);
    let mut y = 14.0;
    for row in &timeline.rows {
        let room = if is_beside { names } else { width - 16.0 };
        let lines = wrap(&row.label, Role::Name.size(), room, NAME_LINES_MAX);
        let names_height = lines.len() as f64 * LINE;
        let (x, anchor) = if is_beside {
            (names, Anchor::End)
        } else {
            (8.0, Anchor::Start)
        };
        for (index, text) in lines.into_iter().enumerate() {
            canvas.text(
                (x, y + index as f64 * LINE + 14.0),
                anchor,
                Role::Name,
                text,
            );
        }
        if !is_beside {
            y += names_height + 2.0;
        }
        draw_row(&mut canvas, &time, row, y, timeline.kinds.len());
        y += if is_beside {
            ROW.max(names_height)
        } else {
            ROW
        } + ROW_GAP;
    }
    canvas.rule((left, y), (width - 8.0, y), "axis");
    draw_time(&mut canvas, &time, y);
    canvas.height = y + 26.0;
    canvas
}

fn draw_row(canvas: &mut Canvas, time: &TimeAxis, row: &TimelineRow, top: f64, kinds: usize) {
    let area =
        |from: f64, to: f64, height: f64| Area::new(from, top + ROW - height, to - from, height);
    let ends = [jiff::civil::DateTime::MIN, jiff::civil::DateTime::MAX].map(|end| time.place(end));
    canvas.bar(area(ends[0], ends[1], ROW), "idle");
    for trouble in &row.troubles {
        let (from, to) = (time.place(trouble.from), time.place(trouble.to));
        canvas.bar(area(from, to.max(from + TROUBLE_MIN), ROW), "trouble");
    }
    // The most important last, so that no other covers it.
    for kind in (0..kinds).rev() {
        let height = ROW * (1.0 - 0.3 * kind.min(2) as f64);
        let events = row.events.iter().filter(|event| event.kind == kind);
        let mut places: Vec<f64> = events.filter_map(|event| time.x(event.at)).collect();
        places.sort_by(f64::total_cmp);
        let mut rest = places.as_slice();
        while let Some((first, others)) = rest.split_first() {
            // Ticks that no gap could separate become one, as wide as they are apart.
            let mut joined = rest.chunk_by(|one, next| next - one < TICK_GAP);
            let last = joined.next().and_then(<[f64]>::last).unwrap_or(first);
            let count = rest.partition_point(|x| x <= last);
            let next = rest.get(count).copied().unwrap_or(f64::INFINITY);
            rest = rest.get(count..).unwrap_or(others);
            // Thin ticks leave a gap to the next one; all may be printed at any scale.
            let width = EVENT.min((next - last) * 0.6);
            let class = format!("{} event", series_class(kind));
            canvas.bar(area(first - width / 2.0, last + width / 2.0, height), class);
            if count > 1 {
                let place = (f64::midpoint(*first, *last), top - 2.0, Anchor::Middle);
                canvas.text_where_free(&[place], Role::Tick, &format!("{count}×"));
            }
        }
    }
}
