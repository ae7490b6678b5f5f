//! How the stages of runs spent their time: for each stage a bar over the run's whole time, divided
//! into work, waiting for the previous stage, and waiting for the next one.

use super::canvas::{Anchor, Area, Canvas, Role};
use super::measure::wrap;
use crate::model::{StageBars, StageShares};
use crate::number::number;

const BAR: f64 = 14.0;
const BAR_GAP: f64 = 5.0;
const GROUP_GAP: f64 = 12.0;
const LINE: f64 = 17.0;
/// Between the name of a run and its first bar.
const NAME_GAP: f64 = 4.0;
const NAME_LINES_MAX: usize = 2;

/// Classes and names of the parts of a bar, in order; the last is the remainder.
pub(super) const LEGEND: [(&str, &str); 4] = [
    ("busy", "at work"),
    ("before", "waiting for input"),
    ("behind", "waiting for room in the next stage"),
    ("idle", "opening, syncing"),
];

pub(super) fn draw(stages: &StageBars, width: f64) -> Canvas {
    let mut canvas = Canvas::new(width);
    let widest = |texts: &mut dyn Iterator<Item = f64>| texts.fold(0.0, f64::max);
    let all = || stages.groups.iter().flat_map(|group| &group.stages);
    let names = widest(&mut all().map(|stage| Role::Value.width(&stage.name))).min(width * 0.25);
    let shares = widest(&mut all().map(|stage| Role::Strong.width(&share(stage))));
    let left = names + 10.0;
    let right = width - shares - 10.0;
    let mut y = 4.0;
    for group in &stages.groups {
        for text in wrap(&group.label, Role::Name.size(), width, NAME_LINES_MAX) {
            canvas.text((0.0, y + 13.0), Anchor::Start, Role::Name, text);
            y += LINE;
        }
        y += NAME_GAP;
        for stage in &group.stages {
            let name = Role::Value.cut(&stage.name, names + 1.0);
            draw_stage(&mut canvas, stage, name, (left, right), y);
            y += BAR + BAR_GAP;
        }
        y += GROUP_GAP;
    }
    canvas.height = (y - GROUP_GAP).max(1.0);
    canvas
}

fn draw_stage(
    canvas: &mut Canvas,
    stage: &StageShares,
    name: String,
    (left, right): (f64, f64),
    y: f64,
) {
    let role = if stage.is_limit {
        Role::Strong
    } else {
        Role::Value
    };
    let text_y = y + BAR / 2.0 + 4.2;
    canvas.text((left - 10.0, text_y), Anchor::End, Role::Value, name);
    let length = (right - left).max(1.0);
    let whole = Area::new(left, y, length, BAR);
    canvas.bar(whole, "idle");
    let mut x = left;
    let parts = [stage.busy, stage.wait_input, stage.wait_output];
    // Clocks are read at slightly different moments, so the shares may add up to slightly more than
    // 1.
    let sum = parts.iter().sum::<f64>().max(1.0);
    for (part, (class, _)) in parts.into_iter().zip(LEGEND) {
        let width = (part.max(0.0) / sum * length).min(right - x);
        if width >= 0.5 {
            let area = Area::new(x, y, width, BAR);
            canvas.bar(area, class);
            x += width;
        }
    }
    canvas.text((right + 8.0, text_y), Anchor::Start, role, share(stage));
}

fn share(stage: &StageShares) -> String {
    let limit = if stage.is_limit { ", limit" } else { "" };
    format!("{} %{limit}", number(stage.busy * 100.0, 0))
}
