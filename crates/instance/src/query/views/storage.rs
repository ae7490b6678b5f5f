//! How SQL Server stores a type, as `sys.parameters` shows it.

use crate::{DataType, IntegerType};

/// The numbers of a type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Storage {
    pub(super) system_type_id: u8,
    /// -1 for `max`.
    pub(super) bytes: i64,
    pub(super) precision: u8,
    pub(super) scale: u8,
}

pub(super) fn storage(ty: DataType) -> Storage {
    let (system_type_id, bytes, precision, scale) = match ty {
        DataType::Bit => (104, 1, 1, 0),
        DataType::Integer(IntegerType::TinyInt) => (48, 1, 3, 0),
        DataType::Integer(IntegerType::SmallInt) => (52, 2, 5, 0),
        DataType::Null | DataType::Integer(IntegerType::Int) => (56, 4, 10, 0),
        DataType::Integer(IntegerType::BigInt) => (127, 8, 19, 0),
        DataType::Decimal { precision, scale } => {
            let bytes = match precision {
                0..=9 => 5,
                10..=19 => 9,
                20..=28 => 13,
                _ => 17,
            };
            (108, bytes, precision, scale)
        }
        DataType::Money => (60, 8, 19, 4),
        DataType::SmallMoney => (122, 4, 10, 4),
        DataType::Real => (59, 4, 24, 0),
        DataType::Float => (62, 8, 53, 0),
        DataType::Text {
            limit,
            padded,
            national,
        } => {
            let (id, width) = match (national, padded) {
                (true, true) => (239, 2),
                (true, false) => (231, 2),
                (false, true) => (175, 1),
                (false, false) => (167, 1),
            };
            (id, length(limit, width), 0, 0)
        }
        DataType::Binary { limit, padded } => {
            (if padded { 173 } else { 165 }, length(limit, 1), 0, 0)
        }
        DataType::Guid => (36, 16, 0, 0),
        DataType::DateTime => (61, 8, 23, 3),
        DataType::SmallDateTime => (58, 4, 16, 0),
        DataType::DateTime2 => (42, 8, 27, 7),
        DataType::Date => (40, 3, 10, 0),
        DataType::Time => (41, 5, 16, 7),
        DataType::Variant => (98, 8016, 0, 0),
    };
    Storage {
        system_type_id,
        bytes,
        precision,
        scale,
    }
}

fn length(limit: Option<usize>, width: i64) -> i64 {
    let characters = limit.and_then(|limit| i64::try_from(limit).ok());
    characters.map_or(-1, |characters| characters * width)
}
