//! Scalar values in variables, expressions and result sets.

use std::fmt;

use jiff::civil::{Date, DateTime, Time};
use windlass_base::{Guid, Lsn, Moment};

use crate::Decimal;

/// A value of T-SQL.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// `NULL`
    Null,
    /// `bit`
    Bit(bool),
    /// `tinyint` to `bigint`
    Integer(i64),
    /// `decimal`, `numeric`
    Decimal(Decimal),
    /// `float`, `real`
    Float(f64),
    /// `nvarchar` and similar types
    Text(String),
    /// `varbinary` and similar types
    Binary(Vec<u8>),
    /// `uniqueidentifier`
    Guid(Guid),
    /// `datetime`, `smalldatetime`
    DateTime(DateTime),
    /// `datetime2`
    DateTime2(DateTime),
    /// `date`
    Date(Date),
    /// `time`
    Time(Time),
}

impl Value {
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// Text, or NULL if `None`.
    pub fn optional_text(text: Option<&str>) -> Self {
        text.map_or(Self::Null, Self::text)
    }

    /// A date, or NULL if `None`.
    pub fn optional_moment(moment: Option<Moment>) -> Self {
        moment.map_or(Self::Null, |moment| Self::DateTime(moment.to_civil()))
    }

    /// A log sequence number as `numeric(25,0)`.
    pub fn lsn(lsn: Lsn) -> Self {
        let whole = i128::try_from(lsn.to_decimal()).ok();
        whole
            .and_then(Decimal::whole)
            .map_or(Self::Null, Self::Decimal)
    }

    /// An amount as `bigint`, which SQLite and T-SQL store.
    pub fn amount(amount: u64) -> Self {
        Self::Integer(i64::try_from(amount).unwrap_or(i64::MAX))
    }

    pub fn is_null(&self) -> bool {
        *self == Self::Null
    }
}

impl fmt::Display for Value {
    /// Formats the value as `sqlcmd` prints it in a result set.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("NULL"),
            Self::Bit(value) => write!(f, "{}", u8::from(*value)),
            Self::Integer(value) => write!(f, "{value}"),
            Self::Decimal(value) => write!(f, "{value}"),
            Self::Float(value) => write!(f, "{value}"),
            Self::Text(text) => f.write_str(text),
            Self::Binary(bytes) => {
                f.write_str("0x")?;
                bytes.iter().try_for_each(|byte| write!(f, "{byte:02X}"))
            }
            Self::Guid(guid) => write!(f, "{guid}"),
            Self::DateTime(at) => write!(f, "{}", at.strftime("%Y-%m-%d %H:%M:%S.%3f")),
            Self::DateTime2(at) => write!(f, "{}00", at.strftime("%Y-%m-%d %H:%M:%S.%5f")),
            Self::Date(date) => write!(f, "{}", date.strftime("%Y-%m-%d")),
            Self::Time(time) => write!(f, "{}00", time.strftime("%H:%M:%S.%5f")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_print_as_sqlcmd_prints_them() {
        let at = DateTime::new(2026, 11, 20, 9, 5, 3, 120_000_000).unwrap();
        for (value, text) in [
            (Value::Null, "NULL"),
            (Value::Bit(true), "1"),
            (Value::Binary(vec![1, 0xAB]), "0x01AB"),
            (Value::DateTime(at), "2026-11-20 09:05:03.120"),
            (Value::DateTime2(at), "2026-11-20 09:05:03.1200000"),
            (Value::Time(at.time()), "09:05:03.1200000"),
            (Value::lsn("39:992:1".parse().unwrap()), "39000000099200001"),
        ] {
            assert_eq!(value.to_string(), text);
        }
    }
}
