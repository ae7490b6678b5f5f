//! Axes from zero to a round number, with ticks at round numbers.

use super::canvas::{Anchor, Canvas, Role};
use crate::number::number;

#[derive(Debug)]
pub(super) struct Axis {
    /// The last tick: a round number, at least the maximum value.
    max: f64,
    step: f64,
    decimals: usize,
    length: f64,
}

impl Axis {
    /// An axis of `length` pixels for values from 0 to `greatest`, with at least `gap` pixels
    /// between ticks, and more if adjacent labels need it.
    pub(super) fn new(greatest: f64, length: f64, gap: f64, is_horizontal: bool) -> Self {
        let greatest = if greatest.is_finite() && greatest > 0.0 {
            greatest
        } else {
            1.0
        };
        let fits = |axis: &Self| {
            let ticks = (axis.max / axis.step).round().max(1.0);
            let widest = axis
                .ticks()
                .map(|(_, label)| Role::Tick.width(&label))
                .fold(0.0, f64::max);
            let needed = if is_horizontal {
                gap.max(widest + 10.0)
            } else {
                gap
            };
            length / ticks >= needed
        };
        let exponent = greatest.log10().floor() as i32 - 1;
        let candidates = (exponent..exponent + 3).flat_map(|exponent| {
            [1.0, 2.0, 2.5, 5.0].map(|digit| (digit, digit * 10_f64.powi(exponent), exponent))
        });
        let mut axes = candidates.map(|(digit, step, exponent)| {
            let quarter = i32::from((digit - 2.5_f64).abs() < f64::EPSILON);
            Self {
                max: (greatest / step - 1e-9).ceil().max(1.0) * step,
                step,
                decimals: (quarter - exponent).clamp(0, 9) as usize,
                length,
            }
        });
        axes.find(fits).unwrap_or(Self {
            max: greatest,
            step: greatest,
            decimals: 1,
            length,
        })
    }

    /// Pixels from the start of the axis to a value.
    pub(super) fn place(&self, value: f64) -> f64 {
        let value = if value.is_finite() { value } else { 0.0 };
        (value / self.max).clamp(0.0, 1.0) * self.length
    }

    /// The lines of a vertical axis across a plot, with their values left of it.
    pub(super) fn draw_grid(&self, canvas: &mut Canvas, left: f64, right: f64, bottom: f64) {
        for (value, text) in self.ticks() {
            let y = bottom - self.place(value);
            let class = if value > 0.0 { "grid" } else { "axis" };
            canvas.rule((left, y), (right, y), class);
            canvas.text((left - 6.0, y + 4.0), Anchor::End, Role::Tick, text);
        }
    }

    /// Values and labels of the ticks, zero first.
    pub(super) fn ticks(&self) -> impl Iterator<Item = (f64, String)> {
        let count = (self.max / self.step).round() as u32;
        (0..=count).map(|index| {
            let value = f64::from(index) * self.step;
            let decimals = if index == 0 { 0 } else { self.decimals };
            (value, number(value, decimals))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(greatest: f64, length: f64) -> Vec<String> {
        let axis = Axis::new(greatest, length, 40.0, true);
        axis.ticks().map(|(_, label)| label).collect()
    }

    #[test]
    fn ticks_are_round_and_few_enough() {
        assert_eq!(labels(97.0, 300.0), ["0", "20", "40", "60", "80", "100"]);
        assert_eq!(labels(1311.0, 200.0), ["0", "500", "1000", "1500"]);
        assert_eq!(labels(0.8, 230.0), ["0", "0.2", "0.4", "0.6", "0.8"]);
        assert_eq!(labels(f64::NAN, 120.0).first().unwrap(), "0");
        assert!(labels(5.0, 10.0).len() <= 2);
    }

    #[test]
    fn the_greatest_value_is_on_the_axis() {
        for greatest in [1e-6, 0.03, 1.0, 7.3, 999.9, 1e12] {
            let axis = Axis::new(greatest, 100.0, 20.0, true);
            assert!(axis.max >= greatest, "{greatest}");
            assert!(axis.place(greatest) > 35.0, "{greatest}");
        }
    }
}
