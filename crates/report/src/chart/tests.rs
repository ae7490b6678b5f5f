//! Layout of charts: nothing overlaps or extends beyond the drawing, whatever the texts.

use super::*;
use crate::model::{
    BarGroup, Bars, Lines, Map, MapPart, Mark, Series, Spread, StageBars, StageGroup, StageShares,
};
use crate::over_time::{
    Event, Moments, Period, TimePoint, TimeSeries, Timeline, TimelineRow, Times,
};

const LONG: &str = "StackOverflow2013_with_a_name_that_is_much_longer_than_any_label_should_be, 64 files, MAXTRANSFERSIZE 4194304";

fn names() -> Vec<String> {
    [
        "",
        "a",
        "zstd:low",
        "漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字",
        LONG,
    ]
    .map(str::to_owned)
    .to_vec()
}

fn mark_at(value: f64) -> Mark {
    Mark {
        label: LONG.to_owned(),
        value,
    }
}

fn bars(series: usize, scale: f64, mark: Option<f64>) -> ChartKind {
    let value = |index: usize| {
        let median = scale * (index % 7) as f64;
        Some(Spread {
            low: median * 0.8,
            median,
            high: median * 1.3,
        })
    };
    let groups = names().into_iter().enumerate().map(|(group, label)| {
        let values = (0..series).map(|index| value(group * 3 + index));
        BarGroup {
            label,
            values: values.collect(),
        }
    });
    ChartKind::Bars(Bars {
        unit: "MB/s".to_owned(),
        decimals: 1,
        series: vec!["series".to_owned(); series],
        groups: groups.collect(),
        marks: mark
            .into_iter()
            .flat_map(|value| [value, value * 1.01])
            .map(mark_at)
            .collect(),
    })
}

fn lines(steps: usize, series: usize) -> ChartKind {
    let line = |index: usize| Series {
        name: LONG.to_owned(),
        values: (0..steps)
            .map(|step| ((step + index) % 5 != 3).then_some((step * 100 + index * 7) as f64))
            .collect(),
    };
    ChartKind::Lines(Lines {
        step_name: LONG.to_owned(),
        steps: (0..steps)
            .map(|step| format!("{step} {}", if steps > 9 { LONG } else { "" }))
            .collect(),
        unit: "MB/s".to_owned(),
        decimals: 0,
        series: (0..series).map(line).collect(),
        marks: vec![mark_at(150.0), mark_at(151.0)],
    })
}

fn stages() -> ChartKind {
    let stage = |name: &str| StageShares {
        name: name.to_owned(),
        busy: 0.93,
        wait_input: 0.1,
        wait_output: 0.02,
        is_limit: name != "read",
    };
    let group = |label: String| StageGroup {
        label,
        stages: vec![stage("read"), stage("transform"), stage(LONG)],
    };
    ChartKind::Stages(StageBars {
        groups: names().into_iter().map(group).collect(),
    })
}

fn times(points: usize, series: usize, value: f64) -> ChartKind {
    let at = |day: usize| {
        let first: jiff::civil::DateTime = "2026-01-30T03:10:00".parse().unwrap();
        first.saturating_add(jiff::Span::new().hours(17 * day as i64))
    };
    let line = |index: usize| TimeSeries {
        name: LONG.to_owned(),
        points: (0..points)
            .map(|point| TimePoint {
                at: at(point),
                value: value * ((point + index) % 5) as f64,
            })
            .collect(),
    };
    ChartKind::Times(Times {
        moments: Moments {
            from: at(0),
            to: at(points.saturating_sub(1)),
        },
        unit: LONG.to_owned(),
        decimals: 2,
        series: (0..series).map(line).collect(),
        marks: vec![mark_at(value * 2.0)],
    })
}

fn timeline() -> ChartKind {
    let at = |text: &str| text.parse::<jiff::civil::DateTime>().unwrap();
    let row = |label: String| TimelineRow {
        label,
        events: vec![
            Event {
                at: at("2026-11-01T01:00:00"),
                kind: 0,
            },
            Event {
                at: at("2026-11-02T01:00:00"),
                kind: 1,
            },
            Event {
                at: at("2026-11-02T01:00:00"),
                kind: 7,
            },
        ],
        troubles: vec![Period {
            from: at("2026-10-01T01:00:00"),
            to: at("2026-11-01T12:00:00"),
        }],
    };
    ChartKind::Timeline(Timeline {
        moments: Moments {
            from: at("2026-11-01T00:00:00"),
            to: at("2026-11-12T00:00:00"),
        },
        kinds: vec![
            "full".to_owned(),
            "differential".to_owned(),
            LONG.to_owned(),
        ],
        trouble: LONG.to_owned(),
        rows: names().into_iter().map(row).collect(),
    })
}

/// Parts of a third, a sixth and a half of the file, in turns of `bytes`.
fn map(turns: usize, bytes: u64) -> ChartKind {
    let part = |index: usize| MapPart {
        kind: index % 3,
        bytes: bytes * [2, 1, 3][index % 3],
    };
    ChartKind::Map(Map {
        kinds: ["rows", "log", LONG].map(str::to_owned).to_vec(),
        parts: (0..turns * 3).map(part).collect(),
    })
}

/// The widths of the bars of each class.
fn widths(chart: &ChartKind, width: f64) -> std::collections::BTreeMap<String, f64> {
    let svg = draw(chart, width).to_svg("c", "t", "d").into_string();
    let mut sums = std::collections::BTreeMap::new();
    for bar in svg.split("<rect").skip(1) {
        let attribute = |name: &str| {
            let value = bar.split(&format!(" {name}=\"")).nth(1).unwrap();
            value.split('"').next().unwrap().to_owned()
        };
        *sums.entry(attribute("class")).or_default() += attribute("width").parse::<f64>().unwrap();
    }
    sums
}

#[test]
fn a_map_shows_each_kind_as_large_as_it_is() {
    for width in [NARROW, WIDE] {
        let sums = widths(&map(1, 1 << 20), width);
        let total: f64 = sums.values().sum();
        let share = |class: &str| sums[class] / total;
        assert!((share("s1") - 2.0 / 6.0).abs() < 0.01, "{sums:?}");
        assert!((share("s0") - 1.0 / 6.0).abs() < 0.01, "{sums:?}");
        assert!((share("s4") - 3.0 / 6.0).abs() < 0.01, "{sums:?}");
        let canvas = draw(&map(1, 1 << 20), width);
        assert_eq!(canvas.texts().first(), Some(&"0.0 KB"));
        // So many parts that no line has room for them: of each spot, the kind with most of it.
        let fine = widths(&map(20_000, 7), width);
        assert_eq!(fine.keys().collect::<Vec<_>>(), ["s4"]);
    }
}

#[test]
fn times_stand_on_their_axis() {
    for width in [NARROW, WIDE] {
        let canvas = draw(&timeline(), width);
        assert!(canvas.texts().contains(&"5 Nov"), "{:?}", canvas.texts());
        let svg = canvas.to_svg("c", "t", "d").into_string();
        assert_eq!(svg.matches("class=\"trouble\"").count(), 5);
        assert_eq!(svg.matches("s0 event").count(), 5);
        assert_eq!(svg.matches("s1 event").count(), 5);
        let canvas = draw(&times(30, 2, 10.0), width);
        assert!(
            canvas.texts().contains(&"40.00"),
            "the last value: {:?}",
            canvas.texts()
        );
        assert!(
            canvas.texts().contains(&"40"),
            "the axis: {:?}",
            canvas.texts()
        );
    }
}

#[test]
fn events_close_together_stay_distinguishable() {
    let at = |minute: i64| {
        let first: jiff::civil::DateTime = "2026-11-01T00:00:00".parse().unwrap();
        first.saturating_add(jiff::Span::new().minutes(minute))
    };
    let minutes = [100, 140, 180, 5000, 5001, 5002, 5003];
    let chart = ChartKind::Timeline(Timeline {
        moments: Moments {
            from: at(0),
            to: at(10_000),
        },
        kinds: vec!["full".to_owned()],
        trouble: String::new(),
        rows: vec![TimelineRow {
            label: "a".to_owned(),
            events: minutes
                .map(|minute| Event {
                    at: at(minute),
                    kind: 0,
                })
                .to_vec(),
            troubles: Vec::new(),
        }],
    });
    let canvas = draw(&chart, WIDE);
    let svg = canvas.to_svg("c", "t", "d").into_string();
    let ticks: Vec<(f64, f64)> = svg
        .split("s0 event\" x=\"")
        .skip(1)
        .map(|rest| {
            let x = rest.split('"').next().unwrap().parse().unwrap();
            let width = rest
                .split("width=\"")
                .nth(1)
                .unwrap()
                .split('"')
                .next()
                .unwrap();
            (x, width.parse().unwrap())
        })
        .collect();
    assert_eq!(ticks.len(), 4, "three alone, four together: {ticks:?}");
    for pair in ticks.windows(2) {
        assert!(pair[0].0 + pair[0].1 < pair[1].0, "a gap: {ticks:?}");
    }
    assert!(canvas.texts().contains(&"4×"), "{:?}", canvas.texts());
}

#[test]
fn no_text_overlaps_another_or_leaves_the_drawing() {
    let mut charts = vec![stages(), timeline()];
    for (turns, bytes) in [
        (0, 0),
        (1, 0),
        (1, 1),
        (40, 1 << 10),
        (9, 1 << 40),
        (2, u64::MAX / 9),
    ] {
        charts.push(map(turns, bytes));
    }
    for series in 0..8 {
        for points in [0, 1, 2, 9, 90, 2000] {
            charts.push(times(points, series, 0.3));
            charts.push(times(points, series, 1e9));
        }
        for scale in [0.0, 1e-5, 0.3, 12.0, 1e9] {
            charts.push(bars(series, scale, None));
            charts.push(bars(series, scale, Some(scale * 9.0)));
        }
        for steps in [0, 1, 3, 9, 40] {
            charts.push(lines(steps, series));
        }
    }
    for chart in &charts {
        for width in [NARROW, WIDE] {
            let canvas = draw(chart, width);
            assert_eq!(canvas.first_overlap(), None, "{chart:?} at {width}");
        }
    }
}

#[test]
fn values_and_names_stand_in_the_drawing() {
    for width in [NARROW, WIDE] {
        let canvas = draw(&bars(2, 12.0, None), width);
        let texts = canvas.texts();
        for text in ["zstd:low", "36.0", "MB/s", "0"] {
            assert!(texts.contains(&text), "{text} in {texts:?}");
        }
        let canvas = draw(&lines(3, 1), width);
        let last = canvas
            .texts()
            .iter()
            .any(|text| text.starts_with("200 Stack"));
        assert!(last, "{:?}", canvas.texts());
        let canvas = draw(&stages(), width);
        assert!(canvas.texts().contains(&"93 %, limit"));
    }
}

#[test]
fn a_mark_far_beyond_the_values_is_a_note() {
    let figure = |value: f64| {
        let mut kind = lines(3, 2);
        if let ChartKind::Lines(lines) = &mut kind {
            lines.marks = vec![mark_at(value)];
        }
        let chart = Chart {
            title: String::new(),
            description: String::new(),
            kind,
        };
        figure(&chart, "c").into_string()
    };
    // The values reach 207.
    let (near, far) = (figure(300.0), figure(2000.0));
    assert!(near.contains("class=\"mark\"") && !near.contains("Beyond"));
    assert!(!far.contains("class=\"mark\"") && far.contains("Beyond the scale: StackOverflow"));
    assert!(far.contains(">200</text>"), "the axis ends with the values");
}

#[test]
fn each_line_has_its_name_once_at_its_end() {
    for width in [NARROW, WIDE] {
        for series in [1, 4, 16] {
            let canvas = draw(&lines(3, series), width);
            let texts = canvas.texts();
            let names = texts
                .iter()
                .filter(|text| text.contains("Stack") || text.contains("Sta"));
            let is_mark = |text: &&&str| text.starts_with("Stack");
            assert_eq!(
                names.filter(|text| !is_mark(text)).count(),
                series,
                "{texts:?}"
            );
        }
    }
}

#[test]
fn values_that_are_no_numbers_do_no_harm() {
    for width in [NARROW, WIDE] {
        let svg = draw(&times(9, 2, f64::NAN), width)
            .to_svg("c", "t", "d")
            .into_string();
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }
    let mut chart = bars(2, 1.0, Some(f64::NAN));
    if let ChartKind::Bars(bars) = &mut chart {
        bars.groups[0].values = vec![
            Some(Spread::exact(f64::NAN)),
            Some(Spread::exact(f64::INFINITY)),
        ];
        bars.groups[1].values = vec![Some(Spread::exact(-5.0)), None];
    }
    for width in [NARROW, WIDE] {
        let svg = draw(&chart, width).to_svg("c", "t", "d").into_string();
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }
}
