//! When a schedule is due next: SQL Server's frequencies on the calendar of a time zone.
//!
//! Pure: the caller gives the time and the zone. Neighbours: [`ScheduleRecord`] has the stored form, whose numbers
//! the procedures have checked.
//!
//! A day has a window, from the schedule's start time to its end time, in local time. Where the clocks change,
//! - a start that the clocks skip is the first moment after the gap, and one that they show twice is the first;
//! - an end that they show twice is the second, and one that they skip is the last moment before the gap;
//! - an interval counts the time that passes, so that a day of 25 hours has 25 hourly runs.
//!
//! A window whose end is before its start lasts into the next day.

use jiff::civil::{Date, DateTime, Time, Weekday};
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{Span, Timestamp};
use windlass_catalog::ScheduleRecord;

/// No calendar has a longer pause than this many days between two days of a schedule that has any: a leap day in a
/// year that is no leap year of the century.
const DAYS_LOOKED_AT: u32 = 366 * 100;

/// A schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    pub frequency: Frequency,
    pub repeated: Repeated,
    /// The first and the last day of it.
    pub days: (Date, Date),
    /// The window of each day.
    pub times: (Time, Time),
}

/// On which days.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Frequency {
    /// On its first day, once.
    Once,
    /// Every so many days.
    Daily(i64),
    /// On days of the week (1 Sunday, 2 Monday, to 64), every so many weeks.
    Weekly { days: i64, weeks: i64 },
    /// On a day of the month, every so many months; not in months without that day.
    Monthly { day: i64, months: i64 },
    /// On the first to fourth (1, 2, 4, 8) or last (16) of a kind of day (1 Sunday to 7 Saturday, 8 any, 9 a weekday,
    /// 10 of the weekend), every so many months.
    Relative { which: i64, kind: i64, months: i64 },
    /// When the agent starts.
    AgentStart,
}

/// How often on a day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repeated {
    Once,
    /// Every so many seconds of the window.
    Every(i64),
}

impl Schedule {
    /// The stored schedule; `None` if its numbers mean none.
    pub fn of(record: &ScheduleRecord) -> Option<Self> {
        let months = record.freq_recurrence_factor;
        let frequency = match record.freq_type {
            1 => Frequency::Once,
            4 => Frequency::Daily(record.freq_interval),
            8 => Frequency::Weekly {
                days: record.freq_interval,
                weeks: months,
            },
            16 => Frequency::Monthly {
                day: record.freq_interval,
                months,
            },
            32 => Frequency::Relative {
                which: record.freq_relative_interval,
                kind: record.freq_interval,
                months,
            },
            64 => Frequency::AgentStart,
            _ => return None,
        };
        let unit = match (record.freq_subday_type, frequency) {
            (_, Frequency::Once) | (0 | 1, _) => None,
            (2, _) => Some(1),
            (4, _) => Some(60),
            (8, _) => Some(3600),
            _ => return None,
        };
        Some(Self {
            frequency,
            repeated: unit.map_or(Repeated::Once, |unit| {
                Repeated::Every(record.freq_subday_interval.saturating_mul(unit))
            }),
            days: (
                date(record.active_start_date)?,
                date(record.active_end_date)?,
            ),
            times: (
                time(record.active_start_time)?,
                time(record.active_end_time)?,
            ),
        })
    }

    /// The first moment after `after` at which it is due; `None` if there is none.
    pub fn next_after(&self, after: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        // A window of the day before may last until now; the local date may lie a day from that of UTC.
        let today = zone.to_datetime(after).date();
        let from = today
            .checked_sub(Span::new().days(2))
            .unwrap_or(Date::MIN)
            .max(self.days.0);
        let mut day = from;
        for _ in 0..DAYS_LOOKED_AT {
            if day > self.days.1 {
                return None;
            }
            if self.is_on(day)
                && let Some(due) = self.next_in_window(day, after, zone)
            {
                return Some(due);
            }
            if self.frequency == Frequency::Once {
                return None;
            }
            day = day.tomorrow().ok()?;
        }
        None
    }

    fn is_on(&self, day: Date) -> bool {
        let first = self.days.0;
        match self.frequency {
            Frequency::Once => day == first,
            Frequency::Daily(every) => is_multiple(days_between(first, day), every),
            Frequency::Weekly { days, weeks } => {
                let weekday = i64::from(day.weekday().to_sunday_zero_offset());
                let week = |day: Date| {
                    let weekday = i64::from(day.weekday().to_sunday_zero_offset());
                    (days_between(first, day) - weekday).div_euclid(7)
                };
                days & (1 << weekday) != 0 && is_multiple(week(day) - week(first), weeks)
            }
            Frequency::Monthly {
                day: of_month,
                months,
            } => {
                i64::from(day.day()) == of_month && is_multiple(months_between(first, day), months)
            }
            Frequency::Relative {
                which,
                kind,
                months,
            } => is_relative(day, which, kind) && is_multiple(months_between(first, day), months),
            Frequency::AgentStart => false,
        }
    }

    fn next_in_window(&self, day: Date, after: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        let begin = begin_at(day.to_datetime(self.times.0), zone)?;
        let Repeated::Every(seconds) = self.repeated else {
            return (begin > after).then_some(begin);
        };
        let last_day = match self.times.1 < self.times.0 {
            true => day.tomorrow().ok()?,
            false => day,
        };
        let end = end_at(last_day.to_datetime(self.times.1), zone)?;
        let seconds = seconds.max(1);
        let passed = after.as_second() - begin.as_second();
        let number = match after < begin {
            true => 0,
            false => passed.div_euclid(seconds) + 1,
        };
        let offset = number.checked_mul(seconds)?;
        let due = Timestamp::from_second(begin.as_second().checked_add(offset)?).ok()?;
        (due <= end).then_some(due)
    }
}

/// The first moment at which the clocks show this time or a later one.
fn begin_at(local: DateTime, zone: &TimeZone) -> Option<Timestamp> {
    let ambiguous = zone.to_ambiguous_timestamp(local);
    match ambiguous.offset() {
        AmbiguousOffset::Gap { .. } => after_gap(local, zone),
        _ => ambiguous.earlier().ok(),
    }
}

/// The last moment at which the clocks show this time or an earlier one.
fn end_at(local: DateTime, zone: &TimeZone) -> Option<Timestamp> {
    let ambiguous = zone.to_ambiguous_timestamp(local);
    match ambiguous.offset() {
        AmbiguousOffset::Gap { .. } => {
            let begin = after_gap(local, zone)?;
            Timestamp::from_second(begin.as_second() - 1).ok()
        }
        _ => ambiguous.later().ok(),
    }
}

/// The first moment after the gap of the clocks that has this local time.
fn after_gap(local: DateTime, zone: &TimeZone) -> Option<Timestamp> {
    // With the offset of after the gap, a time in the gap is a moment before it.
    let before = zone.to_ambiguous_timestamp(local).earlier().ok()?;
    let change = zone.following(before).next()?;
    Some(change.timestamp())
}

fn is_multiple(count: i64, every: i64) -> bool {
    count >= 0 && every > 0 && count % every == 0
}

fn days_between(from: Date, to: Date) -> i64 {
    (to - from).get_days().into()
}

fn months_between(from: Date, to: Date) -> i64 {
    let months = |date: Date| i64::from(date.year()) * 12 + i64::from(date.month());
    months(to) - months(from)
}

/// Whether a day is the first to fourth, or the last, of its kind in its month.
fn is_relative(day: Date, which: i64, kind: i64) -> bool {
    if !is_kind(day, kind) {
        return false;
    }
    let of_kind = |from: i8, to: i8| {
        let days = (from..=to).filter_map(|number| Date::new(day.year(), day.month(), number).ok());
        days.filter(|other| is_kind(*other, kind)).count()
    };
    match which {
        16 => of_kind(day.day() + 1, day.days_in_month()) == 0,
        1 | 2 | 4 | 8 => of_kind(1, day.day()) == which.trailing_zeros() as usize + 1,
        _ => false,
    }
}

fn is_kind(day: Date, kind: i64) -> bool {
    let is_weekend = matches!(day.weekday(), Weekday::Saturday | Weekday::Sunday);
    match kind {
        1..=7 => i64::from(day.weekday().to_sunday_one_offset()) == kind,
        8 => true,
        9 => !is_weekend,
        10 => is_weekend,
        _ => false,
    }
}

/// A date of SQL Server Agent: `20261123`.
pub fn date(number: i64) -> Option<Date> {
    let year = i16::try_from(number.div_euclid(10_000)).ok()?;
    let month = i8::try_from(number.div_euclid(100).rem_euclid(100)).ok()?;
    let day = i8::try_from(number.rem_euclid(100)).ok()?;
    Date::new(year, month, day).ok()
}

/// A time of SQL Server Agent: `93000` is 09:30:00.
pub fn time(number: i64) -> Option<Time> {
    let part = |unit: i64| i8::try_from(number.div_euclid(unit).rem_euclid(100)).ok();
    let hour = i8::try_from(number.div_euclid(10_000)).ok()?;
    Time::new(hour, part(100)?, part(1)?, 0).ok()
}

/// As SQL Server Agent keeps it: date and time.
pub fn numbers(at: DateTime) -> (i64, i64) {
    let number = |parts: [i64; 3]| parts[0] * 10_000 + parts[1] * 100 + parts[2];
    let date = number([at.year().into(), at.month().into(), at.day().into()]);
    let time = number([at.hour().into(), at.minute().into(), at.second().into()]);
    (date, time)
}

/// As SQL Server Agent keeps a duration: `10203` is an hour, 2 minutes and 3 seconds.
pub fn duration_number(seconds: i64) -> i64 {
    seconds / 3600 * 10_000 + seconds / 60 % 60 * 100 + seconds % 60
}

/// The seconds of such a number.
pub fn duration_seconds(number: i64) -> i64 {
    number / 10_000 * 3600 + number / 100 % 100 * 60 + number % 100
}

#[cfg(test)]
#[path = "schedule_tests.rs"]
mod tests;
