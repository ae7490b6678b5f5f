//! Parameters of calls: values of the protocol as values of T-SQL, and back.

use windlass_instance::{DataType, Decimal, IntegerType, Value};
use windlass_tds::data_type::{DataType as SentType, Length};
use windlass_tds::request::Parameter;
use windlass_tds::value::{Day, TimeOfDay, Value as Sent};

use super::column::{moment, own};

const MONEY_DIGITS: u8 = 4;
/// The units of `datetime` are 1/300 s.
const TICKS_PER_MINUTE: u32 = 300 * 60;
/// The longest `nvarchar` that is not `max`.
const NVARCHAR_BYTES_MAX: u16 = 8000;
const NANOSECONDS_PER_UNIT: i64 = 100;
const NANOSECONDS_PER_MINUTE: i64 = 60_000_000_000;

/// The type of T-SQL for a parameter.
pub(crate) fn data_type(sent: SentType) -> DataType {
    let text = |length, national| DataType::Text {
        limit: match length {
            Length::Bytes(bytes) if national => Some(usize::from(bytes / 2).max(1)),
            Length::Bytes(bytes) => Some(usize::from(bytes).max(1)),
            Length::Max => None,
        },
        padded: false,
        national,
    };
    match sent {
        SentType::Null | SentType::Variant => DataType::Variant,
        SentType::Bit => DataType::Bit,
        SentType::Integer(1) => DataType::Integer(IntegerType::TinyInt),
        SentType::Integer(2) => DataType::Integer(IntegerType::SmallInt),
        SentType::Integer(4) => DataType::Integer(IntegerType::Int),
        SentType::Integer(_) => DataType::Integer(IntegerType::BigInt),
        SentType::Float(4) => DataType::Real,
        SentType::Float(_) => DataType::Float,
        SentType::Money(4) => DataType::SmallMoney,
        SentType::Money(_) => DataType::Money,
        SentType::Decimal { precision, scale } => DataType::Decimal { precision, scale },
        SentType::Guid => DataType::Guid,
        SentType::Date => DataType::Date,
        SentType::Time(_) => DataType::Time,
        // There is no type with an offset here: the moment is kept in UTC.
        SentType::DateTime2(_) | SentType::DateTimeOffset(_) => DataType::DateTime2,
        SentType::DateTime(4) => DataType::SmallDateTime,
        SentType::DateTime(_) => DataType::DateTime,
        SentType::NVarChar(length, _) => text(length, true),
        SentType::VarChar(length, _) => text(length, false),
        SentType::Xml => text(Length::Max, true),
        SentType::VarBinary(length) => DataType::Binary {
            limit: match length {
                Length::Bytes(bytes) => Some(usize::from(bytes).max(1)),
                Length::Max => None,
            },
            padded: false,
        },
    }
}

/// The value of a parameter; `None` if T-SQL has no such value.
pub(crate) fn value(parameter: &Parameter) -> Option<Value> {
    Some(match &parameter.value {
        Sent::Null => Value::Null,
        Sent::Bit(bit) => Value::Bit(*bit),
        Sent::Integer(number) => Value::Integer(*number),
        Sent::Float(number) => Value::Float(*number),
        Sent::Money(units) => Value::Decimal(Decimal::scaled(i128::from(*units), MONEY_DIGITS)?),
        Sent::Decimal {
            is_negative,
            digits,
            scale,
        } => {
            let digits = i128::try_from(*digits).ok()?;
            let signed = if *is_negative { -digits } else { digits };
            Value::Decimal(Decimal::scaled(signed, *scale)?)
        }
        Sent::Guid(guid) => Value::Guid(*guid),
        Sent::Text(text) => Value::Text(text.clone()),
        Sent::Bytes(bytes) => Value::Binary(bytes.clone()),
        Sent::Date(Day(days)) => Value::Date(moment(1, i64::from(*days), 0)?.date()),
        Sent::Time(TimeOfDay(units)) => Value::Time(moment(1, 0, nanoseconds(*units)?)?.time()),
        Sent::DateTime2(Day(days), TimeOfDay(units))
        | Sent::DateTimeOffset(Day(days), TimeOfDay(units), _) => {
            Value::DateTime2(moment(1, i64::from(*days), nanoseconds(*units)?)?)
        }
        Sent::DateTime(days, ticks) => {
            let nanoseconds = i64::from(*ticks).checked_mul(10_000_000)? / 3;
            Value::DateTime(moment(1900, i64::from(*days), nanoseconds)?)
        }
        Sent::SmallDateTime(days, minutes) => Value::DateTime(moment(
            1900,
            i64::from(*days),
            i64::from(*minutes) * NANOSECONDS_PER_MINUTE,
        )?),
    })
}

fn nanoseconds(units: u64) -> Option<i64> {
    i64::try_from(units).ok()?.checked_mul(NANOSECONDS_PER_UNIT)
}

/// The type with which an output parameter goes back: the client's, except that text is Unicode, because a `varchar`
/// has only the letters of its code page.
pub(crate) fn returned_type(sent: SentType) -> SentType {
    match sent {
        SentType::VarChar(Length::Bytes(bytes), collation) => {
            let length = match bytes.checked_mul(2) {
                Some(doubled) if doubled <= NVARCHAR_BYTES_MAX => Length::Bytes(doubled),
                _ => Length::Max,
            };
            SentType::NVarChar(length, collation)
        }
        SentType::VarChar(Length::Max, collation) => SentType::NVarChar(Length::Max, collation),
        other => other,
    }
}

/// An output parameter's value, to be sent with [its type](returned_type); `None` if that has no such value.
pub(crate) fn returned(value: &Value, as_type: SentType) -> Option<Sent> {
    Some(match (as_type, value) {
        (_, Value::Null) => Sent::Null,
        (SentType::NVarChar(..) | SentType::VarChar(..) | SentType::Xml, value) => {
            Sent::Text(value.to_string())
        }
        (SentType::Bit, Value::Integer(number)) => Sent::Bit(*number != 0),
        (SentType::Integer(_), Value::Bit(bit)) => Sent::Integer(i64::from(*bit)),
        (SentType::Money(_), Value::Decimal(number)) => {
            let units = number
                .rescaled(MONEY_DIGITS)
                .and_then(|number| i64::try_from(number.unscaled()).ok());
            Sent::Money(units?)
        }
        (SentType::DateTime(4), Value::DateTime(_)) => match own(value) {
            Sent::DateTime(days, ticks) => Sent::SmallDateTime(
                u16::try_from(days).ok()?,
                u16::try_from(ticks / TICKS_PER_MINUTE).ok()?,
            ),
            other => other,
        },
        (SentType::DateTimeOffset(_), Value::DateTime2(_)) => match own(value) {
            Sent::DateTime2(day, time) => Sent::DateTimeOffset(day, time, 0),
            other => other,
        },
        (_, value) => own(value),
    })
}

#[cfg(test)]
mod tests {
    use windlass_tds::collation::Collation;

    use super::*;

    #[test]
    fn text_goes_back_with_all_its_letters() {
        let sent = SentType::VarChar(Length::Bytes(10), Collation::DEFAULT);
        let wanted = SentType::NVarChar(Length::Bytes(20), Collation::DEFAULT);
        assert_eq!(returned_type(sent), wanted);
        let sent = SentType::VarChar(Length::Bytes(8000), Collation::DEFAULT);
        let wanted = SentType::NVarChar(Length::Max, Collation::DEFAULT);
        assert_eq!(returned_type(sent), wanted);
        let value = Value::Text("\u{65e5}\u{672c}".to_owned());
        let text = Some(Sent::Text("\u{65e5}\u{672c}".to_owned()));
        assert_eq!(returned(&value, wanted), text);
    }

    #[test]
    fn what_a_type_cannot_hold_is_not_null() {
        let large = Decimal::scaled(i128::from(i64::MAX), 0).unwrap();
        assert_eq!(returned(&Value::Decimal(large), SentType::Money(8)), None);
        assert_eq!(returned(&Value::Null, SentType::Money(8)), Some(Sent::Null));
        let before = moment(1800, 0, 0).unwrap();
        let value = Value::DateTime(before);
        assert_eq!(returned(&value, SentType::DateTime(4)), None);
    }
}
