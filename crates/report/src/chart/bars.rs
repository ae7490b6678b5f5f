//! Horizontal bars in groups, each with its value after it and a whisker from the minimum to the
//! maximum.
//!
//! On a desktop the names of the groups are left of the bars, on a phone above them.

use super::axis::Axis;
use super::canvas::{Anchor, Area, Canvas, Role};
use super::measure::wrap;
use super::{series_class, with_marks};
use crate::model::{BarGroup, Bars, Mark, Spread};
use crate::number::number;

const BAR: f64 = 15.0;
const BAR_GAP: f64 = 4.0;
const GROUP_GAP: f64 = 12.0;
const LINE: f64 = 17.0;
/// Height of the label of a mark, above the bars.
const MARK_LINE: f64 = 14.0;
/// Between a name and the bars below it.
const NAME_GAP: f64 = 3.0;
const NAME_LINES_MAX: usize = 3;
/// Space for half a tick label left of the axis.
const EDGE: f64 = 8.0;

/// Below this width the names of groups are above the bars.
const NARROW_MAX: f64 = 500.0;

/// The horizontal layout.
struct Columns {
    /// Width for the names, if they are left of the bars.
    names: Option<f64>,
    left: f64,
    right: f64,
}

impl Columns {
    fn of(bars: &Bars, width: f64) -> Self {
        let widest = |texts: &mut dyn Iterator<Item = f64>| texts.fold(0.0, f64::max);
        let values = bars.groups.iter().flat_map(|group| group.values.iter());
        let value = widest(&mut values.flatten().map(|value| {
            let text = number(value.median, bars.decimals);
            Role::Value.width(&text)
        }));
        // The axis ends with a round number that may be longer than every value.
        let last = Role::Tick.width(&number(with_marks(bars.greatest(), &bars.marks) * 2.0, 0));
        let right = width - (value + 12.0).max(last / 2.0 + 2.0).max(30.0);
        if width < NARROW_MAX {
            return Self {
                names: None,
                left: EDGE,
                right,
            };
        }
        let names = bars.groups.iter();
        let name = widest(&mut names.map(|group| Role::Name.width(&group.label)));
        let names = name.min(width * 0.3);
        Self {
            names: Some(names),
            left: names + 14.0,
            right,
        }
    }
}

impl Bars {
    /// The maximum value in the chart.
    pub(super) fn greatest(&self) -> f64 {
        let values = self.groups.iter().flat_map(|group| group.values.iter());
        let values = values.flatten().map(|value| value.high.max(value.median));
        values.filter(|value| value.is_finite()).fold(0.0, f64::max)
    }
}

/// The chart and its horizontal axis.
struct Plot<'a> {
    bars: &'a Bars,
    columns: Columns,
    axis: Axis,
}

pub(super) fn draw(bars: &Bars, width: f64) -> Canvas {
    let mut canvas = Canvas::new(width);
    let columns = Columns::of(bars, width);
    let plot = Plot {
        bars,
        axis: Axis::new(
            with_marks(bars.greatest(), &bars.marks),
            columns.right - columns.left,
            40.0,
            true,
        ),
        columns,
    };
    let top = 6.0 + bars.marks.len() as f64 * MARK_LINE;
    let heights: Vec<f64> = bars
        .groups
        .iter()
        .map(|group| plot.group_height(group, width))
        .collect();
    let bottom = top + heights.iter().map(|height| height + GROUP_GAP).sum::<f64>();
    plot.draw_axis(&mut canvas, top, bottom);
    for (index, mark) in bars.marks.iter().enumerate() {
        plot.draw_mark(&mut canvas, mark, index, bottom);
    }
    let mut y = top + GROUP_GAP / 2.0;
    for (group, height) in bars.groups.iter().zip(&heights) {
        plot.draw_group(&mut canvas, group, y);
        y += height + GROUP_GAP;
    }
    canvas
}

impl Plot<'_> {
    fn name_lines(&self, group: &BarGroup, width: f64) -> Vec<String> {
        let room = self.columns.names.unwrap_or(width - EDGE);
        wrap(&group.label, Role::Name.size(), room, NAME_LINES_MAX)
    }

    fn group_height(&self, group: &BarGroup, width: f64) -> f64 {
        let bars = bars_height(group);
        let names = self.name_lines(group, width).len() as f64 * LINE + NAME_GAP;
        match self.columns.names {
            Some(_) => bars.max(names - NAME_GAP),
            None => bars + names,
        }
    }

    /// The grid with its numbers below, and the unit below those.
    fn draw_axis(&self, canvas: &mut Canvas, top: f64, bottom: f64) {
        for (value, text) in self.axis.ticks() {
            let x = self.columns.left + self.axis.place(value);
            let class = if value > 0.0 { "grid" } else { "axis" };
            canvas.rule((x, top), (x, bottom), class);
            canvas.text((x, bottom + 15.0), Anchor::Middle, Role::Tick, text);
        }
        let at = (self.columns.right, bottom + 31.0);
        canvas.text(at, Anchor::End, Role::Tick, self.bars.unit.clone());
        canvas.height = bottom
            + if self.bars.unit.is_empty() {
                20.0
            } else {
                36.0
            };
    }

    fn draw_mark(&self, canvas: &mut Canvas, mark: &Mark, index: usize, bottom: f64) {
        let x = self.columns.left + self.axis.place(mark.value);
        let y = 12.0 + index as f64 * MARK_LINE;
        canvas.rule((x, y + 3.0), (x, bottom), "mark");
        let width = canvas.width;
        let text = Role::Mark.cut(&mark.label, width - 4.0);
        let half = Role::Mark.width(&text) / 2.0;
        canvas.text(
            (x.clamp(half, (width - half).max(half)), y),
            Anchor::Middle,
            Role::Mark,
            text,
        );
    }

    fn draw_group(&self, canvas: &mut Canvas, group: &BarGroup, mut y: f64) {
        let width = canvas.width;
        let lines = self.name_lines(group, width);
        let (x, anchor) = match self.columns.names {
            Some(room) => (room, Anchor::End),
            None => (EDGE, Anchor::Start),
        };
        let bars_height = bars_height(group);
        let names_height = lines.len() as f64 * LINE;
        let is_beside = self.columns.names.is_some();
        let centered = |room: f64, height: f64| {
            if is_beside {
                (room - height).max(0.0) / 2.0
            } else {
                0.0
            }
        };
        let names_y = y + centered(bars_height, names_height);
        for (index, text) in lines.into_iter().enumerate() {
            let y = names_y + index as f64 * LINE + 13.0;
            canvas.text((x, y), anchor, Role::Name, text);
        }
        y += if is_beside {
            centered(names_height, bars_height)
        } else {
            names_height + NAME_GAP
        };
        for (series, value) in group.values.iter().enumerate() {
            if let Some(value) = value {
                self.draw_bar(canvas, *value, series, y);
            }
            y += BAR + BAR_GAP;
        }
    }

    fn draw_bar(&self, canvas: &mut Canvas, value: Spread, series: usize, y: f64) {
        let left = self.columns.left;
        let middle = y + BAR / 2.0;
        let area = Area::new(left, y, self.axis.place(value.median).max(1.0), BAR);
        canvas.bar(area, series_class(series));
        let (low, high) = (self.axis.place(value.low), self.axis.place(value.high));
        if high - low > 1.5 {
            let at = |x: f64| (left + x, middle);
            canvas.rule(at(low), at(high), "whisker");
        }
        let end = self.axis.place(value.median).max(high);
        canvas.text(
            (left + end + 6.0, middle + 4.2),
            Anchor::Start,
            Role::Value,
            number(value.median, self.bars.decimals),
        );
    }
}

fn bars_height(group: &BarGroup) -> f64 {
    group.values.len().max(1) as f64 * (BAR + BAR_GAP) - BAR_GAP
}
