//! The built-in functions: their arguments and their types.

use super::Bound;
use crate::{DataType, IntegerType};

/// The type that a function returns.
#[derive(Debug, Clone, Copy)]
enum Returns {
    Is(DataType),
    /// Text, national if one of the arguments is.
    Text,
    /// That of the first argument, which is made a number.
    Number,
    /// The date type of the last argument.
    Date,
    /// The same, without places.
    Whole,
    /// The type that fits all arguments.
    Common,
}

const INT: Returns = Returns::Is(DataType::INT);
const BIGINT: Returns = Returns::Is(DataType::BIGINT);
const FLOAT: Returns = Returns::Is(DataType::Float);
const NVARCHAR: Returns = Returns::Is(DataType::TEXT);
const DATETIME: Returns = Returns::Is(DataType::DateTime);
const DATETIME2: Returns = Returns::Is(DataType::DateTime2);
const DATE: Returns = Returns::Is(DataType::Date);
const SMALLINT: Returns = Returns::Is(DataType::Integer(IntegerType::SmallInt));

/// Name, least and most arguments, what each argument is made (`t` text, `n` integer, `f` float, `d` date,
/// `p` part of a date, `a` anything; the last letter is for all that follow), and the result.
const FUNCTIONS: &[(&str, usize, usize, &str, Returns)] = &[
    ("ABS", 1, 1, "a", Returns::Number),
    ("ACOS", 1, 1, "f", FLOAT),
    ("APP_NAME", 0, 0, "", NVARCHAR),
    ("ASCII", 1, 1, "t", INT),
    ("ASIN", 1, 1, "f", FLOAT),
    ("ATAN", 1, 1, "f", FLOAT),
    ("ATN2", 2, 2, "f", FLOAT),
    ("CEILING", 1, 1, "a", Returns::Whole),
    (
        "CHAR",
        1,
        1,
        "n",
        Returns::Is(DataType::Text {
            limit: Some(1),
            padded: false,
            national: false,
        }),
    ),
    ("CHARINDEX", 2, 3, "ttn", INT),
    ("CHOOSE", 2, 254, "na", Returns::Common),
    ("CONCAT", 2, 254, "t", Returns::Text),
    ("CONCAT_WS", 3, 254, "t", Returns::Text),
    ("COS", 1, 1, "f", FLOAT),
    ("COT", 1, 1, "f", FLOAT),
    ("CURRENT_TIMESTAMP", 0, 0, "", DATETIME),
    ("CURRENT_USER", 0, 0, "", NVARCHAR),
    (
        "DATABASEPROPERTYEX",
        2,
        2,
        "t",
        Returns::Is(DataType::Variant),
    ),
    ("DATABASE_PRINCIPAL_ID", 0, 1, "t", INT),
    ("DATALENGTH", 1, 1, "a", INT),
    ("DATEADD", 3, 3, "pnd", Returns::Date),
    ("DATEDIFF", 3, 3, "pd", INT),
    ("DATEDIFF_BIG", 3, 3, "pd", BIGINT),
    ("DATEFROMPARTS", 3, 3, "n", DATE),
    ("DATENAME", 2, 2, "pd", NVARCHAR),
    ("DATEPART", 2, 2, "pd", INT),
    ("DATETIMEFROMPARTS", 7, 7, "n", DATETIME),
    ("DATETRUNC", 2, 2, "pd", Returns::Date),
    ("DAY", 1, 1, "d", INT),
    ("DB_ID", 0, 1, "t", SMALLINT),
    (
        "DB_NAME",
        0,
        1,
        "n",
        Returns::Is(DataType::Text {
            limit: Some(128),
            padded: false,
            national: true,
        }),
    ),
    ("DEGREES", 1, 1, "f", FLOAT),
    ("EOMONTH", 1, 2, "dn", DATE),
    ("ERROR_LINE", 0, 0, "", INT),
    ("ERROR_MESSAGE", 0, 0, "", NVARCHAR),
    ("ERROR_NUMBER", 0, 0, "", INT),
    ("ERROR_PROCEDURE", 0, 0, "", NVARCHAR),
    ("ERROR_SEVERITY", 0, 0, "", INT),
    ("ERROR_STATE", 0, 0, "", INT),
    ("EXP", 1, 1, "f", FLOAT),
    ("FLOOR", 1, 1, "a", Returns::Whole),
    ("FORMAT", 2, 3, "att", NVARCHAR),
    ("GETDATE", 0, 0, "", DATETIME),
    ("GETUTCDATE", 0, 0, "", DATETIME),
    ("GREATEST", 1, 254, "a", Returns::Common),
    ("HAS_DBACCESS", 1, 1, "t", INT),
    ("HOST_NAME", 0, 0, "", NVARCHAR),
    ("ISDATE", 1, 1, "a", INT),
    ("ISNUMERIC", 1, 1, "a", INT),
    ("IS_SRVROLEMEMBER", 1, 2, "t", INT),
    ("LEAST", 1, 254, "a", Returns::Common),
    ("LEFT", 2, 2, "tn", Returns::Text),
    ("LEN", 1, 1, "t", INT),
    ("LOG", 1, 2, "f", FLOAT),
    ("LOG10", 1, 1, "f", FLOAT),
    ("LOWER", 1, 1, "t", Returns::Text),
    ("LTRIM", 1, 2, "t", Returns::Text),
    ("MONTH", 1, 1, "d", INT),
    (
        "NCHAR",
        1,
        1,
        "n",
        Returns::Is(DataType::Text {
            limit: Some(1),
            padded: false,
            national: true,
        }),
    ),
    ("NEWID", 0, 0, "", Returns::Is(DataType::Guid)),
    ("ORIGINAL_LOGIN", 0, 0, "", NVARCHAR),
    ("PARSENAME", 2, 2, "tn", Returns::Text),
    ("PATINDEX", 2, 2, "t", INT),
    ("PI", 0, 0, "", FLOAT),
    ("POWER", 2, 2, "af", Returns::Number),
    ("QUOTENAME", 1, 2, "t", Returns::Text),
    ("RADIANS", 1, 1, "f", FLOAT),
    ("RAND", 0, 1, "n", FLOAT),
    ("REPLACE", 3, 3, "t", Returns::Text),
    ("REPLICATE", 2, 2, "tn", Returns::Text),
    ("REVERSE", 1, 1, "t", Returns::Text),
    ("RIGHT", 2, 2, "tn", Returns::Text),
    ("ROUND", 2, 3, "an", Returns::Number),
    ("RTRIM", 1, 2, "t", Returns::Text),
    ("SCHEMA_NAME", 0, 1, "n", NVARCHAR),
    ("SERVERPROPERTY", 1, 1, "t", Returns::Is(DataType::Variant)),
    ("SESSION_USER", 0, 0, "", NVARCHAR),
    ("SIGN", 1, 1, "a", Returns::Number),
    ("SIN", 1, 1, "f", FLOAT),
    ("SPACE", 1, 1, "n", Returns::Text),
    ("SQRT", 1, 1, "f", FLOAT),
    ("SQUARE", 1, 1, "f", FLOAT),
    ("STR", 1, 3, "fn", Returns::Text),
    ("STUFF", 4, 4, "tnnt", Returns::Text),
    ("SUBSTRING", 3, 3, "tn", Returns::Text),
    ("SUSER_ID", 0, 1, "t", INT),
    ("SUSER_NAME", 0, 1, "n", NVARCHAR),
    (
        "SUSER_SID",
        0,
        2,
        "tn",
        Returns::Is(DataType::Binary {
            limit: Some(85),
            padded: false,
        }),
    ),
    ("SUSER_SNAME", 0, 1, "a", NVARCHAR),
    ("SYSDATETIME", 0, 0, "", DATETIME2),
    ("SYSTEM_USER", 0, 0, "", NVARCHAR),
    ("SYSUTCDATETIME", 0, 0, "", DATETIME2),
    ("TAN", 1, 1, "f", FLOAT),
    ("TRANSLATE", 3, 3, "t", Returns::Text),
    ("TRIM", 1, 1, "t", Returns::Text),
    ("UNICODE", 1, 1, "t", INT),
    ("UPPER", 1, 1, "t", Returns::Text),
    ("USER", 0, 0, "", NVARCHAR),
    ("USER_NAME", 0, 1, "n", NVARCHAR),
    ("XACT_STATE", 0, 0, "", SMALLINT),
    ("YEAR", 1, 1, "d", INT),
];

/// What the binder needs to know of a function.
pub(crate) struct FunctionType {
    pub(crate) least: usize,
    pub(crate) most: usize,
    letters: &'static str,
    returns: Returns,
}

/// The function with that name in capitals.
pub(crate) fn function_type(name: &str) -> Option<FunctionType> {
    let found = FUNCTIONS.iter().find(|(known, ..)| *known == name);
    found.map(|(_, least, most, letters, returns)| FunctionType {
        least: *least,
        most: *most,
        letters,
        returns: *returns,
    })
}

impl FunctionType {
    /// What an argument is made; `p` is the name of a part of a date.
    pub(crate) fn letter(&self, index: usize) -> char {
        let last = self.letters.chars().last().unwrap_or('a');
        self.letters.chars().nth(index).unwrap_or(last)
    }

    /// The argument, converted to what the function takes.
    pub(crate) fn argument(&self, index: usize, argument: Bound) -> Bound {
        let ty = argument.ty;
        match self.letter(index) {
            't' if !ty.is_text() => argument.converted(DataType::TEXT),
            'n' if !ty.is_whole() => argument.converted(DataType::BIGINT),
            'f' if ty != DataType::Float => argument.converted(DataType::Float),
            'd' if !ty.is_date() => argument.converted(DataType::DateTime),
            _ => argument,
        }
    }

    pub(crate) fn result(&self, arguments: &[Bound]) -> DataType {
        let first = arguments.first().map_or(DataType::Null, |first| first.ty);
        match self.returns {
            Returns::Is(ty) => ty,
            Returns::Text => DataType::Text {
                limit: None,
                padded: false,
                national: arguments
                    .iter()
                    .any(|argument| matches!(argument.ty, DataType::Text { national: true, .. })),
            },
            Returns::Number | Returns::Whole => match first {
                DataType::Decimal { precision, .. } if matches!(self.returns, Returns::Whole) => {
                    DataType::Decimal {
                        precision,
                        scale: 0,
                    }
                }
                DataType::Text { .. } | DataType::Bit | DataType::Null | DataType::Real => {
                    DataType::Float
                }
                DataType::Integer(IntegerType::TinyInt | IntegerType::SmallInt) => DataType::INT,
                other => other,
            },
            Returns::Date => match arguments.last().map(|last| last.ty) {
                Some(ty) if ty.is_date() => ty,
                _ => DataType::DateTime,
            },
            Returns::Common => {
                let skipped = usize::from(self.letters == "na");
                let types = arguments.iter().skip(skipped).map(|argument| argument.ty);
                types.fold(DataType::Null, DataType::common)
            }
        }
    }
}
