//! The drawing surface of charts: shapes and texts with known positions, so that overlaps can be
//! detected.

use std::fmt::Write as _;

use maud::{Markup, html};

use super::measure::{width, wrap};
use crate::model::Mark;

/// A drawing of a fixed size, in CSS pixels.
#[derive(Debug, Default)]
pub(crate) struct Canvas {
    pub(super) width: f64,
    pub(super) height: f64,
    shapes: Vec<Shape>,
    labels: Vec<Label>,
}

/// A shape; `class` is its colour class in the page's style.
#[derive(Debug)]
pub(super) enum Shape {
    Bar {
        area: Area,
        class: String,
    },
    Rule {
        from: Point,
        to: Point,
        class: &'static str,
    },
    Path {
        points: Vec<Point>,
        class: String,
    },
    Marker {
        at: Point,
        series: usize,
    },
}

/// A place.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Point {
    pub(super) x: f64,
    pub(super) y: f64,
}

impl From<(f64, f64)> for Point {
    fn from((x, y): (f64, f64)) -> Self {
        Self { x, y }
    }
}

/// A rectangle.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Area {
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) width: f64,
    pub(super) height: f64,
}

impl Area {
    pub(super) fn new(x: f64, y: f64, width: f64, height: f64) -> Self {
        Self {
            x,
            y,
            width,
            height,
        }
    }

    /// Whether two rectangles share more than an edge.
    pub(super) fn overlaps(&self, other: &Self) -> bool {
        self.x < other.x + other.width
            && other.x < self.x + self.width
            && self.y < other.y + other.height
            && other.y < self.y + self.height
    }
}

/// The role of a text, which determines its size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Tick,
    /// The name of a bar or group.
    Name,
    Value,
    /// A highlighted value.
    Strong,
    /// The label of a line across the chart.
    Mark,
}

impl Role {
    /// Font size in pixels.
    pub(super) fn size(self) -> f64 {
        match self {
            Self::Tick | Self::Mark => 11.0,
            Self::Name => 13.0,
            Self::Value | Self::Strong => 12.0,
        }
    }

    fn class(self) -> &'static str {
        match self {
            Self::Tick => "tick",
            Self::Name => "name",
            Self::Value => "value",
            Self::Strong => "value strong",
            Self::Mark => "marklabel",
        }
    }

    /// Width of a text in this role. Bold text is wider.
    pub(super) fn width(self, text: &str) -> f64 {
        let bold = if self == Self::Strong { 1.12 } else { 1.0 };
        width(text, self.size()) * bold
    }

    /// As much of a text as a width has room for.
    pub(super) fn cut(self, text: &str, room: f64) -> String {
        wrap(text, self.size(), room, 1).remove(0)
    }
}

/// Which part of a text is placed at its position: start, middle or end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

impl Anchor {
    fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Middle => "middle",
            Self::End => "end",
        }
    }
}

/// A text; `at` is on its baseline.
#[derive(Debug, Clone)]
pub(super) struct Label {
    pub(super) at: Point,
    pub(super) anchor: Anchor,
    pub(super) role: Role,
    pub(super) text: String,
}

impl Label {
    /// The rectangle that the text fills.
    pub(super) fn area(&self) -> Area {
        let width = self.role.width(&self.text);
        let x = match self.anchor {
            Anchor::Start => self.at.x,
            Anchor::Middle => self.at.x - width / 2.0,
            Anchor::End => self.at.x - width,
        };
        let size = self.role.size();
        Area::new(x, self.at.y - size * 0.95, width, size * 1.2)
    }
}

impl Canvas {
    pub(super) fn new(width: f64) -> Self {
        Self {
            width,
            ..Self::default()
        }
    }

    pub(super) fn bar(&mut self, area: Area, class: impl Into<String>) {
        let class = class.into();
        self.shapes.push(Shape::Bar { area, class });
    }

    pub(super) fn rule(
        &mut self,
        from: impl Into<Point>,
        to: impl Into<Point>,
        class: &'static str,
    ) {
        let (from, to) = (from.into(), to.into());
        self.shapes.push(Shape::Rule { from, to, class });
    }

    pub(super) fn path(&mut self, points: Vec<Point>, class: impl Into<String>) {
        let class = class.into();
        self.shapes.push(Shape::Path { points, class });
    }

    pub(super) fn marker(&mut self, at: impl Into<Point>, series: usize) {
        let at = at.into();
        self.shapes.push(Shape::Marker { at, series });
    }

    pub(super) fn text(
        &mut self,
        at: impl Into<Point>,
        anchor: Anchor,
        role: Role,
        text: impl Into<String>,
    ) {
        let (at, text) = (at.into(), text.into());
        self.label(Label {
            at,
            anchor,
            role,
            text,
        });
    }

    fn label(&mut self, label: Label) {
        if !label.text.is_empty() {
            self.labels.push(label);
        }
    }

    /// A line across a plot, with its label where no other is.
    pub(super) fn mark(&mut self, mark: &Mark, left: f64, right: f64, y: f64) {
        self.rule((left, y), (right, y), "mark");
        let text = Role::Mark.cut(&mark.label, right - left - 4.0);
        let places = [
            (right, y - 6.0, Anchor::End),
            (right, y + 14.0, Anchor::End),
            (left + 4.0, y - 6.0, Anchor::Start),
            (left + 4.0, y + 14.0, Anchor::Start),
        ];
        self.text_where_free(&places, Role::Mark, &text);
    }

    /// Writes a text at the first of some places that is free of others, if one is.
    pub(super) fn text_where_free(
        &mut self,
        places: &[(f64, f64, Anchor)],
        role: Role,
        text: &str,
    ) {
        let label = |&(x, y, anchor): &(f64, f64, Anchor)| Label {
            at: Point { x, y },
            anchor,
            role,
            text: text.to_owned(),
        };
        let mut labels = places.iter().map(label);
        if let Some(label) = labels.find(|label| self.is_free(&label.area())) {
            self.label(label);
        }
    }

    /// Whether a rectangle is inside the drawing and free of texts.
    fn is_free(&self, area: &Area) -> bool {
        let is_inside = area.x >= 0.0
            && area.y >= 0.0
            && area.x + area.width <= self.width
            && (self.height <= 0.0 || area.y + area.height <= self.height);
        is_inside && !self.labels.iter().any(|label| label.area().overlaps(area))
    }

    /// The drawing as an SVG element with a description.
    pub(crate) fn to_svg(&self, id: &str, title: &str, description: &str) -> Markup {
        let title_id = format!("{id}-title");
        let description_id = format!("{id}-text");
        let view = format!("0 0 {} {}", short(self.width), short(self.height));
        html! {
            svg role="img" viewBox=(view) width=(short(self.width)) height=(short(self.height))
                aria-labelledby=(format!("{title_id} {description_id}")) {
                title id=(title_id) { (title) }
                desc id=(description_id) { (description) }
                @for shape in &self.shapes { (shape.to_svg()) }
                @for label in &self.labels { (label.to_svg()) }
            }
        }
    }
}

impl Shape {
    fn to_svg(&self) -> Markup {
        match self {
            Self::Bar { area, class } => html! {
                rect class=(class) x=(short(area.x)) y=(short(area.y))
                    width=(short(area.width)) height=(short(area.height)) {}
            },
            Self::Rule { from, to, class } => html! {
                line class=(class) x1=(short(from.x)) y1=(short(from.y))
                    x2=(short(to.x)) y2=(short(to.y)) {}
            },
            Self::Path { points, class } => html! {
                polyline class=(class) points=(point_list(points)) {}
            },
            Self::Marker { at, series } => marker(*at, *series),
        }
    }
}

/// A marker with a different shape for every series, so that it can be read without colours.
pub(super) fn marker(at: Point, series: usize) -> Markup {
    const R: f64 = 4.5;
    let class = format!("s{} dot", series % SERIES_COLORS);
    let corners = |corners: &[(f64, f64)]| {
        let points: Vec<Point> = corners
            .iter()
            .map(|(x, y)| Point {
                x: at.x + x * R,
                y: at.y + y * R,
            })
            .collect();
        html! { polygon class=(class) points=(point_list(&points)) {} }
    };
    match series % 4 {
        0 => html! { circle class=(class) cx=(short(at.x)) cy=(short(at.y)) r=(short(R)) {} },
        1 => corners(&[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)]),
        2 => corners(&[(0.0, -1.15), (1.1, 0.85), (-1.1, 0.85)]),
        _ => corners(&[(0.0, -1.25), (1.25, 0.0), (0.0, 1.25), (-1.25, 0.0)]),
    }
}

/// Number of series colours in the page's style.
pub(super) const SERIES_COLORS: usize = 6;

impl Label {
    fn to_svg(&self) -> Markup {
        html! {
            text class=(self.role.class()) x=(short(self.at.x)) y=(short(self.at.y))
                font-size=(short(self.role.size())) text-anchor=(self.anchor.name()) { (self.text) }
        }
    }
}

fn point_list(points: &[Point]) -> String {
    let mut list = String::new();
    for point in points {
        let space = if list.is_empty() { "" } else { " " };
        write!(list, "{space}{},{}", short(point.x), short(point.y)).ok();
    }
    list
}

/// A coordinate with at most one decimal.
fn short(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map(str::to_owned).unwrap_or(text)
}

#[cfg(test)]
impl Canvas {
    /// The first two texts that overlap, or one that extends beyond the drawing.
    pub(super) fn first_overlap(&self) -> Option<String> {
        for (index, label) in self.labels.iter().enumerate() {
            let area = label.area();
            if area.x < -0.5 || area.x + area.width > self.width + 0.5 {
                return Some(format!("'{}' leaves the drawing", label.text));
            }
            if area.y < -0.5 || area.y + area.height > self.height + 0.5 {
                return Some(format!("'{}' leaves the drawing", label.text));
            }
            for other in &self.labels[..index] {
                if area.overlaps(&other.area()) {
                    return Some(format!("'{}' and '{}'", label.text, other.text));
                }
            }
        }
        None
    }

    pub(super) fn texts(&self) -> Vec<&str> {
        let texts = self.labels.iter().map(|label| label.text.as_str());
        texts.collect()
    }
}
