//! The data types of variables, columns and expressions.

use windlass_tsql::ast::{DataType as WrittenType, TypeArgument};

use crate::ColumnType;

/// A type of T-SQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DataType {
    /// `NULL` written as such: it fits every type.
    Null,
    /// `bit`
    Bit,
    /// `tinyint`, `smallint`, `int`, `bigint`
    Integer(IntegerType),
    /// `decimal(p, s)`, `numeric(p, s)`
    Decimal {
        /// Number of digits.
        precision: u8,
        /// Digits after the point.
        scale: u8,
    },
    /// `money`
    Money,
    /// `smallmoney`
    SmallMoney,
    /// `real`
    Real,
    /// `float`
    Float,
    /// `varchar(n)` and similar types
    Text {
        /// Maximum number of characters; `None` for `max`.
        limit: Option<usize>,
        /// Whether shorter values are padded with blanks (`char`, `nchar`).
        padded: bool,
        /// `nvarchar`, `nchar`
        national: bool,
    },
    /// `binary(n)`, `varbinary(n)`
    Binary {
        /// Maximum number of bytes; `None` for `max`.
        limit: Option<usize>,
        padded: bool,
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
    /// `sql_variant`, and what SQLite does not declare: every value has its own type.
    Variant,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
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

    /// The digits that a decimal number needs for it.
    fn digits(self) -> u8 {
        match self {
            Self::TinyInt => 3,
            Self::SmallInt => 5,
            Self::Int => 10,
            Self::BigInt => 19,
        }
    }

    /// The length of its values.
    pub(crate) fn bytes(self) -> usize {
        match self {
            Self::TinyInt => 1,
            Self::SmallInt => 2,
            Self::Int => 4,
            Self::BigInt => 8,
        }
    }
}

/// Length that `CAST` and `CONVERT` use if none is given.
pub const CONVERSION_LENGTH: usize = 30;

/// Maximum number of digits of a decimal number.
pub(crate) const DIGITS_MAX: u8 = 38;

impl DataType {
    pub const INT: Self = Self::Integer(IntegerType::Int);
    pub const BIGINT: Self = Self::Integer(IntegerType::BigInt);
    /// `nvarchar(max)`
    pub const TEXT: Self = Self::Text {
        limit: None,
        padded: false,
        national: true,
    };

    /// `nvarchar(limit)` or `varchar(limit)`
    pub(crate) fn text(limit: usize, national: bool) -> Self {
        Self::Text {
            limit: Some(limit.max(1)),
            padded: false,
            national,
        }
    }

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
        let text = |padded, national| Self::Text {
            limit,
            padded,
            national,
        };
        let digits = |index: usize, default: u8| {
            let number = number(index).unwrap_or(u32::from(default));
            u8::try_from(number).unwrap_or(DIGITS_MAX).min(DIGITS_MAX)
        };
        Some(match name.as_str() {
            "bit" => Self::Bit,
            "tinyint" => Self::Integer(IntegerType::TinyInt),
            "smallint" => Self::Integer(IntegerType::SmallInt),
            "int" | "integer" => Self::INT,
            "bigint" => Self::BIGINT,
            "decimal" | "numeric" | "dec" => {
                let precision = digits(0, 18).max(1);
                Self::Decimal {
                    precision,
                    scale: digits(1, 0).min(precision),
                }
            }
            "money" => Self::Money,
            "smallmoney" => Self::SmallMoney,
            "real" => Self::Real,
            "float" if number(0).is_some_and(|bits| bits <= 24) => Self::Real,
            "float" => Self::Float,
            "char" => text(true, false),
            "nchar" => text(true, true),
            "varchar" => text(false, false),
            "nvarchar" => text(false, true),
            "text" => Self::Text {
                limit: None,
                padded: false,
                national: false,
            },
            "ntext" | "xml" => Self::TEXT,
            "sysname" => Self::text(128, true),
            "binary" | "varbinary" => Self::Binary {
                limit,
                padded: name == "binary",
            },
            "uniqueidentifier" => Self::Guid,
            "datetime" => Self::DateTime,
            "smalldatetime" => Self::SmallDateTime,
            "datetime2" => Self::DateTime2,
            "date" => Self::Date,
            "time" => Self::Time,
            "sql_variant" => Self::Variant,
            _ => return None,
        })
    }

    /// Its name in messages; parameters are omitted.
    pub fn name(self) -> &'static str {
        match self {
            Self::Null => "NULL",
            Self::Bit => "bit",
            Self::Integer(integer) => integer.name(),
            Self::Decimal { .. } => "numeric",
            Self::Money => "money",
            Self::SmallMoney => "smallmoney",
            Self::Real => "real",
            Self::Float => "float",
            Self::Text {
                padded, national, ..
            } => match (padded, national) {
                (false, true) => "nvarchar",
                (false, false) => "varchar",
                (true, true) => "nchar",
                (true, false) => "char",
            },
            Self::Binary { padded: false, .. } => "varbinary",
            Self::Binary { padded: true, .. } => "binary",
            Self::Guid => "uniqueidentifier",
            Self::DateTime => "datetime",
            Self::SmallDateTime => "smalldatetime",
            Self::DateTime2 => "datetime2",
            Self::Date => "date",
            Self::Time => "time",
            Self::Variant => "sql_variant",
        }
    }

    pub(crate) fn is_text(self) -> bool {
        matches!(self, Self::Text { .. })
    }

    /// Whether it is a number of any kind, `bit` included.
    pub(crate) fn is_number(self) -> bool {
        matches!(
            self,
            Self::Bit
                | Self::Integer(_)
                | Self::Decimal { .. }
                | Self::Money
                | Self::SmallMoney
                | Self::Real
                | Self::Float
        )
    }

    pub(crate) fn is_whole(self) -> bool {
        matches!(self, Self::Bit | Self::Integer(_))
    }

    pub(crate) fn is_date(self) -> bool {
        matches!(
            self,
            Self::DateTime | Self::SmallDateTime | Self::DateTime2 | Self::Date | Self::Time
        )
    }

    /// Precision and scale of an exact number.
    /// Whether values are exact numbers that SQLite does not have.
    pub(crate) fn is_exact(self) -> bool {
        matches!(self, Self::Decimal { .. } | Self::Money | Self::SmallMoney)
    }

    pub(crate) fn digits(self) -> Option<(u8, u8)> {
        Some(match self {
            Self::Bit => (1, 0),
            Self::Integer(integer) => (integer.digits(), 0),
            Self::Decimal { precision, scale } => (precision, scale),
            Self::Money => (19, 4),
            Self::SmallMoney => (10, 4),
            _ => return None,
        })
    }

    /// T-SQL's precedence: of two types, the value with the lower one is converted.
    fn rank(self) -> u8 {
        match self {
            Self::Null => 0,
            Self::Binary { .. } => 1,
            Self::Text { .. } => 2,
            Self::Guid => 3,
            Self::Bit => 4,
            Self::Integer(integer) => 5 + integer as u8,
            Self::SmallMoney => 9,
            Self::Money => 10,
            Self::Decimal { .. } => 11,
            Self::Real => 12,
            Self::Float => 13,
            Self::Time => 14,
            Self::Date => 15,
            Self::SmallDateTime => 16,
            Self::DateTime => 17,
            Self::DateTime2 => 18,
            Self::Variant => 19,
        }
    }

    /// The type that holds values of both.
    pub(crate) fn common(self, other: Self) -> Self {
        let (high, low) = match self.rank() >= other.rank() {
            true => (self, other),
            false => (other, self),
        };
        match (high, low) {
            (
                Self::Text {
                    limit,
                    padded,
                    national,
                },
                Self::Text {
                    limit: limit2,
                    padded: padded2,
                    national: national2,
                },
            ) => Self::Text {
                limit: limit.zip(limit2).map(|(one, two)| one.max(two)),
                padded: padded && padded2,
                national: national || national2,
            },
            (Self::Binary { limit, .. }, Self::Binary { limit: limit2, .. }) => Self::Binary {
                limit: limit.zip(limit2).map(|(one, two)| one.max(two)),
                padded: false,
            },
            (Self::Decimal { precision, scale }, low) => match low.digits() {
                Some((precision2, scale2)) => {
                    let most = scale.max(scale2);
                    let whole = (precision - scale).max(precision2 - scale2);
                    Self::Decimal {
                        precision: (whole + most).min(DIGITS_MAX),
                        scale: most.min(DIGITS_MAX - whole),
                    }
                }
                None => high,
            },
            _ => high,
        }
    }

    /// How a result set declares it.
    pub(crate) fn column_type(self) -> ColumnType {
        let length =
            |limit: Option<usize>| limit.map_or(0, |limit| u16::try_from(limit).unwrap_or(0));
        match self {
            Self::Bit => ColumnType::Bit,
            Self::Integer(IntegerType::TinyInt) => ColumnType::TinyInt,
            Self::Integer(IntegerType::SmallInt) => ColumnType::SmallInt,
            Self::Null | Self::Integer(IntegerType::Int) => ColumnType::Int,
            Self::Integer(IntegerType::BigInt) => ColumnType::BigInt,
            Self::Decimal {
                precision,
                scale: 0,
            } => ColumnType::Numeric(precision),
            Self::Decimal { precision, scale } => ColumnType::Decimal(precision, scale),
            Self::Money | Self::SmallMoney => ColumnType::Money,
            Self::Real | Self::Float => ColumnType::Float,
            Self::Text {
                limit,
                national: true,
                padded: true,
            } => ColumnType::NChar(length(limit)),
            Self::Text {
                limit,
                national: true,
                ..
            } => ColumnType::NVarChar(length(limit)),
            Self::Text { limit, .. } => ColumnType::VarChar(length(limit)),
            Self::Binary { limit, .. } => ColumnType::VarBinary(length(limit)),
            Self::Guid => ColumnType::UniqueIdentifier,
            Self::DateTime | Self::SmallDateTime => ColumnType::DateTime,
            Self::DateTime2 => ColumnType::DateTime2,
            Self::Date => ColumnType::Date,
            Self::Time => ColumnType::Time,
            Self::Variant => ColumnType::Any,
        }
    }
}
