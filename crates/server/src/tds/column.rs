//! Columns and values of results, as the protocol has them.

use jiff::civil::{Date, DateTime, Time};
use windlass_instance::{Column, ColumnType, Value};
use windlass_tds::answer::Column as Described;
use windlass_tds::collation::Collation;
use windlass_tds::data_type::{DataType, Length};
use windlass_tds::value::{Day, TimeOfDay, Value as Sent};

/// Digits after the point of `datetime2` and `time`.
const FRACTION_DIGITS: u8 = 7;
/// Digits after the point of `money`.
const MONEY_DIGITS: u8 = 4;
/// Units of `datetime` in a second.
const TICKS_PER_SECOND: i64 = 300;
const NANOSECONDS_PER_UNIT: i64 = 100;
const NANOSECONDS_PER_SECOND: i64 = 1_000_000_000;
const TICKS_PER_DAY: i64 = 86_400 * TICKS_PER_SECOND;

/// The description of a column.
pub(crate) fn described(column: &Column) -> Described {
    Described {
        name: column.name.clone(),
        data_type: data_type(column.column_type),
        is_nullable: true,
    }
}

/// The protocol's type for a column. What has no type of its own is sent as text.
pub(crate) fn data_type(column_type: ColumnType) -> DataType {
    match column_type {
        ColumnType::Bit => DataType::Bit,
        ColumnType::TinyInt => DataType::Integer(1),
        ColumnType::SmallInt => DataType::Integer(2),
        ColumnType::Int => DataType::Integer(4),
        ColumnType::BigInt => DataType::Integer(8),
        ColumnType::Numeric(precision) => DataType::Decimal {
            precision,
            scale: 0,
        },
        ColumnType::Decimal(precision, scale) => DataType::Decimal { precision, scale },
        ColumnType::Money => DataType::Money(8),
        ColumnType::Float => DataType::Float(8),
        ColumnType::NVarChar(0) | ColumnType::Any => {
            DataType::NVarChar(Length::Max, Collation::DEFAULT)
        }
        // `varchar` here may hold any character: it is sent as what can.
        ColumnType::VarChar(0) => DataType::NVarChar(Length::Max, Collation::DEFAULT),
        ColumnType::NVarChar(length) | ColumnType::VarChar(length) | ColumnType::NChar(length) => {
            DataType::nvarchar(usize::from(length))
        }
        ColumnType::VarBinary(0) => DataType::VarBinary(Length::Max),
        ColumnType::VarBinary(length) => DataType::varbinary(usize::from(length)),
        ColumnType::UniqueIdentifier => DataType::Guid,
        ColumnType::DateTime => DataType::DateTime(8),
        ColumnType::DateTime2 => DataType::DateTime2(FRACTION_DIGITS),
        ColumnType::Date => DataType::Date,
        ColumnType::Time => DataType::Time(FRACTION_DIGITS),
    }
}

/// A value of such a column.
pub(crate) fn sent(value: &Value, column_type: ColumnType) -> Sent {
    match (column_type, value) {
        (_, Value::Null) => Sent::Null,
        (ColumnType::Any, value) => Sent::Text(value.to_string()),
        (ColumnType::Bit, Value::Integer(number)) => Sent::Bit(*number != 0),
        (ColumnType::Money, Value::Decimal(number)) => {
            let scaled = number.rescaled(MONEY_DIGITS);
            let units = scaled.and_then(|number| i64::try_from(number.unscaled()).ok());
            units.map_or(Sent::Null, Sent::Money)
        }
        (ColumnType::Numeric(_) | ColumnType::Decimal(..), Value::Integer(number)) => {
            Sent::Decimal {
                is_negative: *number < 0,
                digits: u128::from(number.unsigned_abs()),
                scale: 0,
            }
        }
        (ColumnType::Float, Value::Integer(number)) => Sent::Float(*number as f64),
        (ColumnType::NVarChar(_) | ColumnType::VarChar(_) | ColumnType::NChar(_), value) => {
            Sent::Text(value.to_string())
        }
        (_, value) => own(value),
    }
}

/// A value in its own type.
pub(crate) fn own(value: &Value) -> Sent {
    match value {
        Value::Null => Sent::Null,
        Value::Bit(bit) => Sent::Bit(*bit),
        Value::Integer(number) => Sent::Integer(*number),
        Value::Decimal(number) => Sent::Decimal {
            is_negative: number.unscaled() < 0,
            digits: number.unscaled().unsigned_abs(),
            scale: number.scale(),
        },
        Value::Float(number) => Sent::Float(*number),
        Value::Text(text) => Sent::Text(text.clone()),
        Value::Binary(bytes) => Sent::Bytes(bytes.clone()),
        Value::Guid(guid) => Sent::Guid(*guid),
        Value::DateTime(at) => {
            let (days, ticks) = ticks(*at);
            Sent::DateTime(days, ticks)
        }
        Value::DateTime2(at) => Sent::DateTime2(day(at.date()), time_of_day(at.time())),
        Value::Date(date) => Sent::Date(day(*date)),
        Value::Time(time) => Sent::Time(time_of_day(*time)),
    }
}

const fn epoch(year: i16) -> Date {
    jiff::civil::date(year, 1, 1)
}

/// Whole days from a date to another.
fn days_between(from: Date, to: Date) -> i32 {
    from.until(to).map_or(0, |span| span.get_days())
}

fn day(date: Date) -> Day {
    Day(u32::try_from(days_between(epoch(1), date)).unwrap_or(0))
}

fn nanoseconds(time: Time) -> i64 {
    let seconds =
        i64::from(time.hour()) * 3600 + i64::from(time.minute()) * 60 + i64::from(time.second());
    seconds * NANOSECONDS_PER_SECOND + i64::from(time.subsec_nanosecond())
}

fn time_of_day(time: Time) -> TimeOfDay {
    TimeOfDay(u64::try_from(nanoseconds(time) / NANOSECONDS_PER_UNIT).unwrap_or(0))
}

/// Days from 1900, and 1/300 seconds, rounded.
fn ticks(at: DateTime) -> (i32, u32) {
    let days = days_between(epoch(1900), at.date());
    let ticks = nanoseconds(at.time()) * TICKS_PER_SECOND + NANOSECONDS_PER_SECOND / 2;
    let ticks = ticks / NANOSECONDS_PER_SECOND;
    match ticks >= TICKS_PER_DAY {
        true => (days + 1, 0),
        false => (days, u32::try_from(ticks).unwrap_or(0)),
    }
}

/// A civil moment from days since a year's first, and nanoseconds of the day.
pub(super) fn moment(year: i16, days: i64, nanoseconds: i64) -> Option<DateTime> {
    let date = epoch(year)
        .checked_add(jiff::Span::new().try_days(days).ok()?)
        .ok()?;
    let midnight = date.to_datetime(Time::midnight());
    let span = jiff::Span::new().try_nanoseconds(nanoseconds).ok()?;
    midnight.checked_add(span).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_count_from_the_right_day() {
        let date = jiff::civil::date(2026, 11, 23);
        let at = date.at(23, 59, 59, 997_000_000);
        assert_eq!(ticks(at), (46_347, 25_919_999), "rounded to 1/300 s");
        let late = date.at(23, 59, 59, 999_000_000);
        assert_eq!(ticks(late), (46_348, 0), "the next day, as on SQL Server");
        assert_eq!(day(epoch(1)), Day(0));
        assert_eq!(day(date), Day(739_942));
        assert_eq!(moment(1900, 46_347, 0), Some(date.at(0, 0, 0, 0)));
    }

    #[test]
    fn text_longer_than_short_types_is_sent_in_pieces() {
        assert_eq!(
            data_type(ColumnType::NVarChar(4000)),
            DataType::NVarChar(Length::Bytes(8000), Collation::DEFAULT)
        );
        assert_eq!(
            data_type(ColumnType::VarChar(8000)),
            DataType::NVarChar(Length::Max, Collation::DEFAULT)
        );
    }
}
