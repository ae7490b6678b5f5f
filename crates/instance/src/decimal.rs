//! Exact decimal numbers of T-SQL: an integer and a scale.
//!
//! Log sequence numbers (`numeric(25,0)`), constants with a decimal point and their sums stay
//! exact; division rounds to six places, the minimum that SQL Server keeps.

use std::fmt;
use std::str::FromStr;

/// A decimal number: `unscaled` divided by ten to the power `scale`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decimal {
    unscaled: i128,
    scale: u8,
}

/// Maximum number of digits in T-SQL.
const DIGITS_MAX: u8 = 38;
const DIVISION_SCALE: u8 = 6;

impl Decimal {
    /// Creates a whole number; `None` beyond 38 digits.
    pub fn whole(value: i128) -> Option<Self> {
        Self::new(value, 0)
    }

    fn new(unscaled: i128, scale: u8) -> Option<Self> {
        let limit = power(DIGITS_MAX)?;
        (unscaled.unsigned_abs() < limit.unsigned_abs()).then_some(Self { unscaled, scale })
    }

    /// The nearest floating-point number.
    pub fn to_f64(self) -> f64 {
        self.unscaled as f64 / 10f64.powi(i32::from(self.scale))
    }

    /// The whole part, rounded towards zero, as in T-SQL's conversion to integers.
    pub fn truncated(self) -> i128 {
        power(self.scale).map_or(0, |unit| self.unscaled / unit)
    }

    /// Returns the same number with `scale` places, rounded half away from zero.
    pub fn rescaled(self, scale: u8) -> Option<Self> {
        if scale >= self.scale {
            let unscaled = self.unscaled.checked_mul(power(scale - self.scale)?)?;
            return Self::new(unscaled, scale);
        }
        let unit = power(self.scale - scale)?;
        let half = unit / 2 * self.unscaled.signum();
        Self::new(self.unscaled.checked_add(half)? / unit, scale)
    }

    /// The negated number.
    pub fn negated(self) -> Self {
        Self {
            unscaled: -self.unscaled,
            ..self
        }
    }

    /// The sum; `None` on overflow.
    pub fn plus(self, other: Self) -> Option<Self> {
        let (left, right, scale) = self.aligned(other)?;
        Self::new(left.checked_add(right)?, scale)
    }

    /// The product; `None` on overflow.
    pub fn times(self, other: Self) -> Option<Self> {
        let scale = self.scale.checked_add(other.scale)?;
        Self::new(self.unscaled.checked_mul(other.unscaled)?, scale)
    }

    /// The quotient with `scale` places, the rest cut off; `None` on overflow or if `other` is zero.
    pub(crate) fn quotient(self, other: Self, scale: u8) -> Option<Self> {
        let shift = i32::from(scale) + i32::from(other.scale) - i32::from(self.scale);
        let mut quotient = self.unscaled.checked_div(other.unscaled)?;
        if shift < 0 {
            let unit = power(u8::try_from(-shift).ok()?)?;
            return Self::new(quotient / unit, scale);
        }
        let mut rest = self.unscaled.checked_rem(other.unscaled)?;
        for _ in 0..shift {
            rest = rest.checked_mul(10)?;
            quotient = quotient
                .checked_mul(10)?
                .checked_add(rest / other.unscaled)?;
            rest %= other.unscaled;
        }
        Self::new(quotient, scale)
    }

    /// Whether it has at most `precision` digits.
    pub(crate) fn fits(self, precision: u8) -> bool {
        power(precision).is_none_or(|limit| self.unscaled.unsigned_abs() < limit.unsigned_abs())
    }

    pub fn scale(self) -> u8 {
        self.scale
    }

    /// Number of digits, at least those after the point.
    pub(crate) fn precision(self) -> u8 {
        let digits = self.unscaled.unsigned_abs().checked_ilog10().unwrap_or(0) + 1;
        u8::try_from(digits).unwrap_or(DIGITS_MAX).max(self.scale)
    }

    pub fn unscaled(self) -> i128 {
        self.unscaled
    }

    /// The number `unscaled` divided by ten to the power `scale`.
    pub fn scaled(unscaled: i128, scale: u8) -> Option<Self> {
        Self::new(unscaled, scale)
    }

    pub(crate) fn compare(self, other: Self) -> std::cmp::Ordering {
        match self.aligned(other) {
            Some((left, right, _)) => left.cmp(&right),
            None => self.to_f64().total_cmp(&other.to_f64()),
        }
    }

    /// The quotient; `None` on overflow or if `other` is zero.
    pub fn divided_by(self, other: Self) -> Option<Self> {
        let scale = DIVISION_SCALE.max(self.scale);
        let shift = power((scale - self.scale).checked_add(other.scale)?)?;
        let dividend = self.unscaled.checked_mul(shift)?;
        Self::new(dividend.checked_div(other.unscaled)?, scale)
    }

    /// The remainder; `None` on overflow or if `other` is zero.
    pub fn modulo(self, other: Self) -> Option<Self> {
        let (left, right, scale) = self.aligned(other)?;
        Self::new(left.checked_rem(right)?, scale)
    }

    pub fn is_zero(self) -> bool {
        self.unscaled == 0
    }

    fn aligned(self, other: Self) -> Option<(i128, i128, u8)> {
        let scale = self.scale.max(other.scale);
        Some((
            self.rescaled(scale)?.unscaled,
            other.rescaled(scale)?.unscaled,
            scale,
        ))
    }
}

fn power(exponent: u8) -> Option<i128> {
    10i128.checked_pow(u32::from(exponent))
}

impl From<i64> for Decimal {
    fn from(value: i64) -> Self {
        Self {
            unscaled: i128::from(value),
            scale: 0,
        }
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.unscaled < 0 { "-" } else { "" };
        let digits = self.unscaled.unsigned_abs().to_string();
        let scale = usize::from(self.scale);
        if scale == 0 {
            return write!(f, "{sign}{digits}");
        }
        let padded = format!("{digits:0>width$}", width = scale + 1);
        let (whole, fraction) = padded.split_at(padded.len() - scale);
        // SQL Server omits the zero before the point; JSON requires it.
        write!(f, "{sign}{whole}.{fraction}")
    }
}

impl FromStr for Decimal {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let text = text.trim();
        let (negative, digits) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let all_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        if whole.len() + fraction.len() == 0 || !all_digits(whole) || !all_digits(fraction) {
            return Err(());
        }
        let scale = u8::try_from(fraction.len()).map_err(|_| ())?;
        let unscaled: i128 = format!("{whole}{fraction}").parse().map_err(|_| ())?;
        let value = Self::new(unscaled, scale).ok_or(())?;
        Ok(if negative { value.negated() } else { value })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decimal(text: &str) -> Decimal {
        text.parse().unwrap()
    }

    #[test]
    fn arithmetic_is_exact_and_division_keeps_six_places() {
        assert_eq!(
            decimal("0.1").plus(decimal("0.2")).unwrap().to_string(),
            "0.3"
        );
        assert_eq!(
            decimal("1.50").times(decimal("-2")).unwrap().to_string(),
            "-3.00"
        );
        assert_eq!(
            decimal("10")
                .divided_by(decimal("4.0"))
                .unwrap()
                .to_string(),
            "2.500000"
        );
        assert_eq!(
            decimal("7.5").modulo(decimal("2")).unwrap().to_string(),
            "1.5"
        );
        assert!(decimal("1").divided_by(decimal("0.0")).is_none());
    }

    #[test]
    fn rounding_is_half_away_from_zero() {
        assert_eq!(decimal("2.345").rescaled(2).unwrap().to_string(), "2.35");
        assert_eq!(decimal("-2.345").rescaled(2).unwrap().to_string(), "-2.35");
        assert_eq!(decimal("-0.004").rescaled(2).unwrap().to_string(), "0.00");
    }

    #[test]
    fn what_does_not_fit_is_none() {
        let largest = decimal(&"9".repeat(38));
        assert!(largest.plus(decimal("1")).is_none());
        assert!(largest.times(largest).is_none());
        assert!(largest.divided_by(decimal("0.1")).is_none());
        assert!("9".repeat(39).parse::<Decimal>().is_err());
        assert!("1e5".parse::<Decimal>().is_err());
        assert!(".".parse::<Decimal>().is_err());
    }
}
