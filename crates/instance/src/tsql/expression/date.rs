//! Dates: parts, arithmetic and the styles of CONVERT.

use jiff::civil::{Date, DateTime, Time};
use jiff::{Span, Unit};
use windlass_base::message::table;
use windlass_tsql::ast::InfixOperator;

use super::convert::date_time;
use crate::{Failure, Value};

/// The date from which T-SQL counts days.
pub(super) fn epoch() -> DateTime {
    DateTime::constant(1900, 1, 1, 0, 0, 0, 0)
}

/// A part of a date.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Year,
    Quarter,
    Month,
    DayOfYear,
    Day,
    Week,
    IsoWeek,
    Weekday,
    Hour,
    Minute,
    Second,
    Millisecond,
    Microsecond,
    Nanosecond,
}

impl Part {
    /// The part with the given full name or SQL Server abbreviation.
    pub(super) fn named(name: &str) -> Option<Self> {
        Some(match name.to_ascii_lowercase().as_str() {
            "year" | "yy" | "yyyy" => Self::Year,
            "quarter" | "qq" | "q" => Self::Quarter,
            "month" | "mm" | "m" => Self::Month,
            "dayofyear" | "dy" | "y" => Self::DayOfYear,
            "day" | "dd" | "d" => Self::Day,
            "week" | "wk" | "ww" => Self::Week,
            "iso_week" | "isowk" | "isoww" => Self::IsoWeek,
            "weekday" | "dw" | "w" => Self::Weekday,
            "hour" | "hh" => Self::Hour,
            "minute" | "mi" | "n" => Self::Minute,
            "second" | "ss" | "s" => Self::Second,
            "millisecond" | "ms" => Self::Millisecond,
            "microsecond" | "mcs" => Self::Microsecond,
            "nanosecond" | "ns" => Self::Nanosecond,
            _ => return None,
        })
    }

    /// The value of this part of a date.
    pub(super) fn of(self, at: DateTime) -> i64 {
        match self {
            Self::Year => i64::from(at.year()),
            Self::Quarter => (i64::from(at.month()) + 2) / 3,
            Self::Month => i64::from(at.month()),
            Self::DayOfYear => i64::from(at.date().day_of_year()),
            Self::Day => i64::from(at.day()),
            Self::Week => {
                let first = at.date().first_of_year().weekday().to_sunday_zero_offset();
                (i64::from(at.date().day_of_year()) - 1 + i64::from(first)) / 7 + 1
            }
            Self::IsoWeek => i64::from(at.date().iso_week_date().week()),
            Self::Weekday => i64::from(at.date().weekday().to_sunday_one_offset()),
            Self::Hour => i64::from(at.hour()),
            Self::Minute => i64::from(at.minute()),
            Self::Second => i64::from(at.second()),
            Self::Millisecond => i64::from(at.subsec_nanosecond()) / 1_000_000,
            Self::Microsecond => i64::from(at.subsec_nanosecond()) / 1_000,
            Self::Nanosecond => i64::from(at.subsec_nanosecond()),
        }
    }

    /// The name of this part of a date, as in DATENAME.
    pub(super) fn name_of(self, at: DateTime) -> String {
        match self {
            Self::Month => at.strftime("%B").to_string(),
            Self::Weekday => at.strftime("%A").to_string(),
            _ => self.of(at).to_string(),
        }
    }

    /// The full name.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Year => "year",
            Self::Quarter => "quarter",
            Self::Month => "month",
            Self::DayOfYear => "dayofyear",
            Self::Day => "day",
            Self::Week => "week",
            Self::IsoWeek => "iso_week",
            Self::Weekday => "weekday",
            Self::Hour => "hour",
            Self::Minute => "minute",
            Self::Second => "second",
            Self::Millisecond => "millisecond",
            Self::Microsecond => "microsecond",
            Self::Nanosecond => "nanosecond",
        }
    }

    /// Whether it is shorter than a day.
    pub(super) fn is_time(self) -> bool {
        matches!(
            self,
            Self::Hour
                | Self::Minute
                | Self::Second
                | Self::Millisecond
                | Self::Microsecond
                | Self::Nanosecond
        )
    }

    /// The start of the part that a date is in.
    pub(super) fn truncated(self, at: DateTime) -> DateTime {
        let date = at.date();
        let start = |date: Date| date.at(0, 0, 0, 0);
        let (hour, minute, second) = (at.hour(), at.minute(), at.second());
        match self {
            Self::Year => start(date.first_of_year()),
            Self::Quarter => {
                let month = (date.month() - 1) / 3 * 3 + 1;
                Date::new(date.year(), month, 1).map_or(at, start)
            }
            Self::Month => start(date.first_of_month()),
            Self::Week => {
                let back = i64::from(date.weekday().to_sunday_zero_offset());
                date.checked_sub(Span::new().days(back)).map_or(at, start)
            }
            Self::IsoWeek => {
                let back = i64::from(date.weekday().to_monday_zero_offset());
                date.checked_sub(Span::new().days(back)).map_or(at, start)
            }
            Self::DayOfYear | Self::Day | Self::Weekday => start(date),
            Self::Hour => date.at(hour, 0, 0, 0),
            Self::Minute => date.at(hour, minute, 0, 0),
            Self::Second => date.at(hour, minute, second, 0),
            Self::Millisecond => date.at(
                hour,
                minute,
                second,
                at.subsec_nanosecond() / 1_000_000 * 1_000_000,
            ),
            Self::Microsecond | Self::Nanosecond => at,
        }
    }

    /// The span of `count` units of this part, for adding.
    fn step(self, count: i64) -> Result<Span, jiff::Error> {
        let span = Span::new();
        match self {
            Self::Year => span.try_years(count),
            Self::Quarter => span.try_months(count.saturating_mul(3)),
            Self::Month => span.try_months(count),
            Self::DayOfYear | Self::Day | Self::Weekday => span.try_days(count),
            Self::Week | Self::IsoWeek => span.try_weeks(count),
            Self::Hour => span.try_hours(count),
            Self::Minute => span.try_minutes(count),
            Self::Second => span.try_seconds(count),
            Self::Millisecond => span.try_milliseconds(count),
            Self::Microsecond => span.try_microseconds(count),
            Self::Nanosecond => span.try_nanoseconds(count),
        }
    }

    /// Number of boundaries of this part between two dates.
    pub(super) fn boundaries(self, from: DateTime, to: DateTime) -> Result<i64, Failure> {
        let months = |at: DateTime| i64::from(at.year()) * 12 + i64::from(at.month()) - 1;
        let days = |at: DateTime| (at.date() - epoch().date()).get_days();
        let unit = |nanoseconds: i128| -> i128 {
            let since = |at: DateTime| {
                i128::from(days(at)) * 86_400_000_000_000
                    + (at.time() - Time::midnight())
                        .total(Unit::Nanosecond)
                        .unwrap_or(0.0) as i128
            };
            since(to).div_euclid(nanoseconds) - since(from).div_euclid(nanoseconds)
        };
        let count = match self {
            Self::Year => i128::from(to.year() - from.year()),
            Self::Quarter => i128::from(months(to).div_euclid(3) - months(from).div_euclid(3)),
            Self::Month => i128::from(months(to) - months(from)),
            Self::DayOfYear | Self::Day | Self::Weekday => i128::from(days(to) - days(from)),
            // 1900-01-01 was a Monday; T-SQL's weeks start on Sunday, regardless of DATEFIRST.
            Self::Week | Self::IsoWeek => {
                i128::from((days(to) + 1).div_euclid(7) - (days(from) + 1).div_euclid(7))
            }
            Self::Hour => unit(3_600_000_000_000),
            Self::Minute => unit(60_000_000_000),
            Self::Second => unit(1_000_000_000),
            Self::Millisecond => unit(1_000_000),
            Self::Microsecond => unit(1_000),
            Self::Nanosecond => unit(1),
        };
        i64::try_from(count).map_err(|_| table::arithmetic_overflow("bigint").into())
    }
}

/// A date `count` steps later, or earlier if negative.
pub(super) fn plus(at: DateTime, part: Part, count: i64) -> Result<DateTime, Failure> {
    part.step(count)
        .and_then(|span| at.checked_add(span))
        .map_err(|_| table::date_overflow("datetime").into())
}

/// A date from year, month, day, and perhaps hour, minute, second and millisecond.
pub(super) fn of_parts(values: &[Value]) -> Option<DateTime> {
    let part = |index: usize| match values.get(index) {
        Some(Value::Integer(number)) => Some(*number),
        None => Some(0),
        _ => None,
    };
    let small = |index: usize| i8::try_from(part(index)?).ok();
    let millis = i32::try_from(part(6)?)
        .ok()
        .filter(|millis| (0..1000).contains(millis))?;
    let year = i16::try_from(part(0)?).ok().filter(|year| *year > 0)?;
    DateTime::new(
        year,
        small(1)?,
        small(2)?,
        small(3)?,
        small(4)?,
        small(5)?,
        millis * 1_000_000,
    )
    .ok()
}

/// Days since the date from which T-SQL counts.
pub(super) fn days(at: DateTime) -> f64 {
    let whole = f64::from((at.date() - epoch().date()).get_days());
    let part = (at.time() - Time::midnight())
        .total(Unit::Second)
        .unwrap_or(0.0);
    whole + part / 86_400.0
}

/// `+` and `-` with a `datetime` on one side: numbers are days; a difference is days since 1900.
pub(super) fn infix(
    operator: InfixOperator,
    left: &Value,
    right: &Value,
) -> Result<Value, Failure> {
    // Whole days are exact, whatever the time of day.
    if let (Value::DateTime(at), Value::Integer(count)) = (left, right) {
        let count = match operator {
            InfixOperator::Add => *count,
            _ => count.saturating_neg(),
        };
        return plus(*at, Part::Day, count).map(|at| Value::DateTime(to_ticks(at)));
    }
    let (one, two) = (days(date_time(left)?), days(date_time(right)?));
    let sum = match operator {
        InfixOperator::Add => one + two,
        _ => one - two,
    };
    date_time(&Value::Float(sum)).map(|at| Value::DateTime(to_ticks(at)))
}

/// The nearest 1/300 of a second: the precision of `datetime`.
pub(super) fn to_ticks(at: DateTime) -> DateTime {
    let nanoseconds = i64::from(at.subsec_nanosecond());
    let ticks = (nanoseconds * 3 + 5_000_000) / 10_000_000;
    let millis = (ticks * 10 + 1) / 3;
    let whole = at.with().subsec_nanosecond(0).build().unwrap_or(at);
    whole
        .checked_add(Span::new().milliseconds(millis))
        .unwrap_or(whole)
}

/// The nearest minute: the precision of `smalldatetime`.
pub(super) fn to_minute(at: DateTime) -> DateTime {
    at.round(Unit::Minute).unwrap_or(at)
}

/// Whether a text is built like a date, so that its numbers must be what is wrong.
pub(super) fn looks_like_date(text: &str) -> bool {
    let text = text.trim();
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    digits >= 6
        && text
            .bytes()
            .all(|byte| byte.is_ascii_digit() || b"-/.: T".contains(&byte))
}

/// Parses a date in the forms of style `style`, or in those common in scripts.
pub(super) fn parse(text: &str, style: Option<i64>) -> Option<DateTime> {
    const TIMES: [&str; 8] = [
        "%H:%M:%S%.f",
        "%H:%M:%S",
        "%H:%M",
        "%I:%M:%S %p",
        "%I:%M:%S%p",
        "%I:%M %p",
        "%I:%M%p",
        "%I%p",
    ];
    const DATES: [&str; 10] = [
        "%Y-%m-%d",
        "%Y%m%d",
        "%Y/%m/%d",
        "%Y.%m.%d",
        "%b %d %Y",
        "%d %b %Y",
        "%b %d, %Y",
        "%B %d, %Y",
        "%d %B %Y",
        "%B %d %Y",
    ];
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let forms: &[&str] = match style {
        Some(3..=5 | 103..=105) => &["%d/%m/%Y", "%d.%m.%Y", "%d-%m-%Y", "%d/%m/%y"],
        _ => &["%m/%d/%Y", "%m-%d-%Y", "%m.%d.%Y", "%m/%d/%y"],
    };
    let time_of = |text: &str| {
        let text = zulu(text);
        TIMES
            .iter()
            .find_map(|form| Time::strptime(form, text).ok())
            .or_else(|| old_time(text))
    };
    let date_of = |text: &str| {
        let all = DATES.iter().chain(forms);
        let date = all
            .copied()
            .find_map(|form| Date::strptime(form, text).ok())?;
        (date.year() >= 1).then_some(date)
    };
    if text.is_empty() {
        return Some(epoch());
    }
    if let Some(date) = date_of(&text) {
        return Some(date.at(0, 0, 0, 0));
    }
    if let Some(time) = time_of(&text) {
        return Some(epoch().date().to_datetime(time));
    }
    text.char_indices()
        .filter(|(_, character)| matches!(character, ' ' | 'T'))
        .find_map(|(at, _)| {
            let date = date_of(text.get(..at)?.trim())?;
            let time = time_of(text.get(at + 1..)?.trim())?;
            Some(date.to_datetime(time))
        })
}

/// A time without the `Z` of UTC.
fn zulu(text: &str) -> &str {
    text.strip_suffix('Z').unwrap_or(text)
}

/// `10:00:00:123`, with milliseconds after a colon.
fn old_time(text: &str) -> Option<Time> {
    let (time, millis) = text.rsplit_once(':')?;
    if millis.len() != 3 || time.matches(':').count() != 2 {
        return None;
    }
    Time::strptime("%H:%M:%S%.f", format!("{time}.{millis}")).ok()
}

/// Formats a date and time in a CONVERT style.
pub(super) fn text(at: DateTime, style: i64, type_name: &str) -> Result<String, Failure> {
    let form = match style {
        0 | 100 if type_name == "time" => "%l:%M%p",
        0 | 100 => "%b %e %Y %l:%M%p",
        8 | 24 | 108 => "%H:%M:%S",
        9 | 109 => "%b %e %Y %l:%M:%S:%3f%p",
        13 | 113 => "%d %b %Y %H:%M:%S:%3f",
        14 | 114 => "%H:%M:%S:%3f",
        20 | 120 => "%Y-%m-%d %H:%M:%S",
        21 | 25 | 121 => "%Y-%m-%d %H:%M:%S.%3f",
        22 => "%m/%d/%y %l:%M:%S %p",

        126 if at.subsec_nanosecond() == 0 => "%Y-%m-%dT%H:%M:%S",
        126 => "%Y-%m-%dT%H:%M:%S.%3f",
        127 if at.subsec_nanosecond() == 0 => "%Y-%m-%dT%H:%M:%SZ",
        127 => "%Y-%m-%dT%H:%M:%S.%3fZ",
        other => match date_form(other) {
            Some(form) => form,
            None => return Err(Failure::ending(table::invalid_style(other, type_name))),
        },
    };
    Ok(at.strftime(form).to_string())
}

/// Formats a date in a CONVERT style; styles for times or for both use only the date.
pub(super) fn date_text(at: DateTime, style: i64) -> Result<String, Failure> {
    let form = match style {
        0 | 9 | 100 | 109 => "%b %e %Y",
        13 | 113 => "%d %b %Y",
        20 | 21 | 25 | 120 | 121 | 126 | 127 => "%Y-%m-%d",
        other => match date_form(other) {
            Some(form) => form,
            None => return Err(Failure::ending(table::invalid_style(other, "date"))),
        },
    };
    Ok(at.strftime(form).to_string())
}

fn date_form(style: i64) -> Option<&'static str> {
    Some(match style {
        1 => "%m/%d/%y",
        2 => "%y.%m.%d",
        3 => "%d/%m/%y",
        4 => "%d.%m.%y",
        5 => "%d-%m-%y",
        6 => "%d %b %y",
        7 => "%b %d, %y",
        10 => "%m-%d-%y",
        11 => "%y/%m/%d",
        12 => "%y%m%d",
        23 => "%Y-%m-%d",
        101 => "%m/%d/%Y",
        102 => "%Y.%m.%d",
        103 => "%d/%m/%Y",
        104 => "%d.%m.%Y",
        105 => "%d-%m-%Y",
        106 => "%d %b %Y",
        107 => "%b %d, %Y",
        110 => "%m-%d-%Y",
        111 => "%Y/%m/%d",
        112 => "%Y%m%d",
        _ => return None,
    })
}

/// Formats a date with a .NET pattern, as FORMAT does: `yyyyMMdd_HHmmss`.
pub(super) fn by_pattern(at: DateTime, pattern: &str) -> String {
    let mut result = String::new();
    let mut rest = pattern;
    while let Some(first) = rest.chars().next() {
        let run = rest
            .chars()
            .take_while(|&character| character == first)
            .count();
        let (form, used) = match (first, run) {
            ('y', 4..) => ("%Y", run),
            ('y', _) => ("%y", run),
            ('M', 4..) => ("%B", run),
            ('M', 3) => ("%b", run),
            ('M', 2) => ("%m", run),
            ('M', _) => ("%-m", run),
            ('d', 4..) => ("%A", run),
            ('d', 3) => ("%a", run),
            ('d', 2) => ("%d", run),
            ('d', _) => ("%-d", run),
            ('H', 2..) => ("%H", run),
            ('H', _) => ("%-H", run),
            ('h', 2..) => ("%I", run),
            ('h', _) => ("%-I", run),
            ('m', 2..) => ("%M", run),
            ('m', _) => ("%-M", run),
            ('s', 2..) => ("%S", run),
            ('s', _) => ("%-S", run),
            ('f', 3) => ("%3f", run),
            ('f', _) => ("%6f", run),
            ('t', _) => ("%p", run),
            _ => ("", 1),
        };
        if form.is_empty() {
            if !matches!(first, '\'' | '"' | '\\') {
                result.push(first);
            }
        } else {
            result.push_str(&at.strftime(form).to_string());
        }
        rest = rest
            .char_indices()
            .nth(used)
            .and_then(|(at, _)| rest.get(at..))
            .unwrap_or("");
    }
    result
}
