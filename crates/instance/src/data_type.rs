//! The data types of variables and conversions.

use windlass_tsql::ast::{DataType as WrittenType, TypeArgument};

/// A type that a value can be converted to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DataType {
    /// `bit`
    Bit,
    /// `tinyint`, `smallint`, `int`, `bigint`
    Integer(IntegerType),
    /// `decimal(p, s)`, `numeric(p, s)`, `money`
    Decimal {
        /// Digits after the point.
        scale: u8,
    },
    /// `float`, `real`
    Float,
    /// `varchar(n)` and similar types
    Text {
        /// Maximum number of characters; `None` for `max`.
        limit: Option<usize>,
        /// Whether shorter values are padded with blanks (`char`, `nchar`).
        padded: bool,
    },
    /// `binary(n)`, `varbinary(n)`
    Binary {
        /// Maximum number of bytes; `None` for `max`.
        limit: Option<usize>,
    },
    /// `uniqueidentifier`
    Guid,
    /// `datetime`
    DateTime,
    /// `smalldatetime`
    SmallDateTime,
    /// `datetime2(n)`
    DateTime2,
    /// `date`
    Date,
    /// `time(n)`
    Time,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IntegerType {
    /// 0 to 255
    TinyInt,
    /// 16 bits
    SmallInt,
    /// 32 bits
    Int,
    /// 64 bits
    BigInt,
}

impl IntegerType {
    /// The smallest and the largest value.
    pub fn range(self) -> (i64, i64) {
        match self {
            Self::TinyInt => (0, i64::from(u8::MAX)),
            Self::SmallInt => (i64::from(i16::MIN), i64::from(i16::MAX)),
            Self::Int => (i64::from(i32::MIN), i64::from(i32::MAX)),
            Self::BigInt => (i64::MIN, i64::MAX),
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::TinyInt => "tinyint",
            Self::SmallInt => "smallint",
            Self::Int => "int",
            Self::BigInt => "bigint",
        }
    }
}

/// Length that `CAST` and `CONVERT` use if none is given.
pub const CONVERSION_LENGTH: usize = 30;

impl DataType {
    /// Parses a type; `default_length` applies to text without a length (1 in DECLARE, 30 in
    /// conversions). `None` for an unknown type.
    pub fn of(written: &WrittenType, default_length: usize) -> Option<Self> {
        let name = written.name.object.text.to_ascii_lowercase();
        let number = |index: usize| match written.arguments.get(index) {
            Some(TypeArgument::Number(number)) => Some(*number),
            Some(TypeArgument::Max) | None => None,
        };
        let limit = match written.arguments.first() {
            Some(TypeArgument::Max) => None,
            Some(TypeArgument::Number(number)) => Some(*number as usize),
            None => Some(default_length),
        };
        Some(match name.as_str() {
            "bit" => Self::Bit,
            "tinyint" => Self::Integer(IntegerType::TinyInt),
            "smallint" => Self::Integer(IntegerType::SmallInt),
            "int" | "integer" => Self::Integer(IntegerType::Int),
            "bigint" => Self::Integer(IntegerType::BigInt),
            "decimal" | "numeric" | "dec" => Self::Decimal {
                scale: u8::try_from(number(1).unwrap_or(0).min(38)).unwrap_or(38),
            },
            "money" | "smallmoney" => Self::Decimal { scale: 4 },
            "float" | "real" => Self::Float,
            "char" | "nchar" => Self::Text {
                limit,
                padded: true,
            },
            "varchar" | "nvarchar" => Self::Text {
                limit,
                padded: false,
            },
            "text" | "ntext" => Self::Text {
                limit: None,
                padded: false,
            },
            "sysname" => Self::Text {
                limit: Some(128),
                padded: false,
            },
            "binary" | "varbinary" => Self::Binary { limit },
            "uniqueidentifier" => Self::Guid,
            "datetime" => Self::DateTime,
            "smalldatetime" => Self::SmallDateTime,
            "datetime2" => Self::DateTime2,
            "date" => Self::Date,
            "time" => Self::Time,
            _ => return None,
        })
    }

    /// Its name in messages; parameters are omitted.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bit => "bit",
            Self::Integer(integer) => integer.name(),
            Self::Decimal { .. } => "numeric",
            Self::Float => "float",
            Self::Text { padded: false, .. } => "nvarchar",
            Self::Text { padded: true, .. } => "nchar",
            Self::Binary { .. } => "varbinary",
            Self::Guid => "uniqueidentifier",
            Self::DateTime => "datetime",
            Self::SmallDateTime => "smalldatetime",
            Self::DateTime2 => "datetime2",
            Self::Date => "date",
            Self::Time => "time",
        }
    }
}
