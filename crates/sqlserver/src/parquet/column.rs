//! A column of a Parquet file: its type, and the values of a row group.

use parquet::basic::{LogicalType, Repetition, TimeUnit, Type as PhysicalType};
use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DoubleType, FixedLenByteArray, FixedLenByteArrayType,
    FloatType, Int32Type, Int64Type,
};
use parquet::errors::ParquetError;
use parquet::file::writer::SerializedColumnWriter;
use parquet::schema::types::Type;
use windlass_bak::table::{Column, Value};

use super::time::{days_of, guid_of, microseconds_of, nanoseconds_of_day};

/// Decimals of up to this precision are 64-bit integers.
const LONG_DIGITS_MAX: u8 = 18;

/// Digits of `money` and `smallmoney`.
const MONEY_DIGITS: u8 = 19;
const SMALLMONEY_DIGITS: u8 = 10;
const MONEY_SCALE: u8 = 4;

/// The largest scale whose times are whole microseconds.
const MICROSECOND_SCALE: u8 = 6;

/// How values are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Bit,
    /// Bits, and whether it is signed.
    Small(i8, bool),
    Long,
    Float,
    Double,
    Date,
    /// Microseconds since 1970 in no time zone.
    Timestamp,
    /// Nanoseconds of the day.
    Time,
    /// Precision and scale.
    Decimal(u8, u8),
    Guid,
    Text,
    Binary,
}

#[derive(Debug)]
enum Values {
    Bits(Vec<bool>),
    Small(Vec<i32>),
    Long(Vec<i64>),
    Floats(Vec<f32>),
    Doubles(Vec<f64>),
    Bytes(Vec<ByteArray>),
    Fixed(Vec<FixedLenByteArray>),
}

/// The values of a column, not yet written.
#[derive(Debug)]
pub(super) struct ColumnBuffer {
    form: Form,
    values: Values,
    /// For each row, whether it has a value: 1 or 0.
    levels: Vec<i16>,
}

impl ColumnBuffer {
    pub(super) fn of(column: &Column) -> Self {
        let form = Form::of(column);
        let values = match form {
            Form::Bit => Values::Bits(Vec::new()),
            Form::Small(..) | Form::Date => Values::Small(Vec::new()),
            Form::Long | Form::Timestamp | Form::Time | Form::Decimal(..=LONG_DIGITS_MAX, _) => {
                Values::Long(Vec::new())
            }
            Form::Float => Values::Floats(Vec::new()),
            Form::Double => Values::Doubles(Vec::new()),
            Form::Decimal(..) | Form::Guid => Values::Fixed(Vec::new()),
            Form::Text | Form::Binary => Values::Bytes(Vec::new()),
        };
        Self {
            form,
            values,
            levels: Vec::new(),
        }
    }

    /// The column in the schema of the file. A value can always be missing, as damaged rows are written, too.
    pub(super) fn schema(&self, name: &str) -> Result<Type, ParquetError> {
        let (physical, logical, length) = match self.form {
            Form::Bit => (PhysicalType::BOOLEAN, None, 0),
            Form::Small(bits, is_signed) => (
                PhysicalType::INT32,
                Some(LogicalType::integer(bits, is_signed)),
                0,
            ),
            Form::Long => (PhysicalType::INT64, Some(LogicalType::integer(64, true)), 0),
            Form::Float => (PhysicalType::FLOAT, None, 0),
            Form::Double => (PhysicalType::DOUBLE, None, 0),
            Form::Date => (PhysicalType::INT32, Some(LogicalType::Date), 0),
            Form::Timestamp => {
                let logical = LogicalType::timestamp(false, TimeUnit::MICROS);
                (PhysicalType::INT64, Some(logical), 0)
            }
            Form::Time => {
                let logical = LogicalType::time(false, TimeUnit::NANOS);
                (PhysicalType::INT64, Some(logical), 0)
            }
            Form::Decimal(precision, scale) => {
                let logical = LogicalType::decimal(scale.into(), precision.into());
                let (physical, length) = match precision <= LONG_DIGITS_MAX {
                    true => (PhysicalType::INT64, 0),
                    false => (PhysicalType::FIXED_LEN_BYTE_ARRAY, decimal_bytes(precision)),
                };
                (physical, Some(logical), length)
            }
            Form::Guid => (
                PhysicalType::FIXED_LEN_BYTE_ARRAY,
                Some(LogicalType::Uuid),
                16,
            ),
            Form::Text => (PhysicalType::BYTE_ARRAY, Some(LogicalType::String), 0),
            Form::Binary => (PhysicalType::BYTE_ARRAY, None, 0),
        };
        let mut builder = Type::primitive_type_builder(name, physical)
            .with_repetition(Repetition::OPTIONAL)
            .with_logical_type(logical);
        if length > 0 {
            builder = builder.with_length(length as i32);
        }
        if let Form::Decimal(precision, scale) = self.form {
            builder = builder
                .with_precision(precision.into())
                .with_scale(scale.into());
        }
        builder.build()
    }

    /// Adds a value; returns its bytes, or `None` if the column cannot hold it exactly.
    pub(super) fn put(&mut self, value: &Value) -> Option<usize> {
        if *value == Value::Null {
            self.levels.push(0);
            return Some(size_of::<i16>());
        }
        let bytes = match &mut self.values {
            Values::Bits(bits) => {
                bits.push(whole(value)? != 0);
                1
            }
            Values::Small(numbers) => {
                numbers.push(match (self.form, value) {
                    (Form::Date, Value::Text(text)) => days_of(text)?,
                    _ => i32::try_from(whole(value)?).ok()?,
                });
                4
            }
            Values::Long(numbers) => {
                numbers.push(match (self.form, value) {
                    (Form::Timestamp, Value::Text(text)) => microseconds_of(text)?,
                    (Form::Time, Value::Text(text)) => nanoseconds_of_day(text)?,
                    (Form::Decimal(precision, scale), _) => {
                        i64::try_from(decimal(value, precision, scale)?).ok()?
                    }
                    _ => whole(value)?,
                });
                8
            }
            Values::Floats(numbers) => {
                numbers.push(real(value)? as f32);
                4
            }
            Values::Doubles(numbers) => {
                numbers.push(real(value)?);
                8
            }
            Values::Bytes(texts) => {
                let bytes = match (self.form, value) {
                    (_, Value::Text(text)) => text.as_bytes().to_vec(),
                    (Form::Binary, Value::Binary(bytes)) => bytes.clone(),
                    _ => value.to_string().into_bytes(),
                };
                let length = bytes.len();
                texts.push(bytes.into());
                length + size_of::<ByteArray>()
            }
            Values::Fixed(arrays) => {
                let bytes = match (self.form, value) {
                    (Form::Decimal(precision, scale), _) => {
                        let digits = decimal(value, precision, scale)?.to_be_bytes();
                        digits
                            .get(digits.len() - decimal_bytes(precision)..)?
                            .to_vec()
                    }
                    (_, Value::Text(text)) => guid_of(text)?.to_vec(),
                    _ => return None,
                };
                arrays.push(bytes.into());
                16 + size_of::<FixedLenByteArray>()
            }
        };
        self.levels.push(1);
        Some(bytes + size_of::<i16>())
    }

    /// Writes the values, and forgets them.
    pub(super) fn write(
        &mut self,
        column: &mut SerializedColumnWriter<'_>,
    ) -> Result<(), ParquetError> {
        let levels = Some(&self.levels[..]);
        match &self.values {
            Values::Bits(values) => column.typed::<BoolType>().write_batch(values, levels, None),
            Values::Small(values) => column
                .typed::<Int32Type>()
                .write_batch(values, levels, None),
            Values::Long(values) => column
                .typed::<Int64Type>()
                .write_batch(values, levels, None),
            Values::Floats(values) => column
                .typed::<FloatType>()
                .write_batch(values, levels, None),
            Values::Doubles(values) => column
                .typed::<DoubleType>()
                .write_batch(values, levels, None),
            Values::Bytes(values) => {
                let writer = column.typed::<ByteArrayType>();
                writer.write_batch(values, levels, None)
            }
            Values::Fixed(values) => {
                let writer = column.typed::<FixedLenByteArrayType>();
                writer.write_batch(values, levels, None)
            }
        }?;
        self.levels.clear();
        match &mut self.values {
            Values::Bits(values) => values.clear(),
            Values::Small(values) => values.clear(),
            Values::Long(values) => values.clear(),
            Values::Floats(values) => values.clear(),
            Values::Doubles(values) => values.clear(),
            Values::Bytes(values) => values.clear(),
            Values::Fixed(values) => values.clear(),
        }
        Ok(())
    }
}

impl Form {
    fn of(column: &Column) -> Self {
        let declared = column.sql_type.declaration();
        let (precision, scale) = (column.sql_type.precision, column.sql_type.scale);
        match declared.split('(').next().unwrap_or_default() {
            _ if column.sql_type.is_opaque() => Self::Binary,
            "bit" => Self::Bit,
            "tinyint" => Self::Small(8, false),
            "smallint" => Self::Small(16, true),
            "int" => Self::Small(32, true),
            "bigint" => Self::Long,
            "real" => Self::Float,
            "float" => Self::Double,
            "money" => Self::Decimal(MONEY_DIGITS, MONEY_SCALE),
            "smallmoney" => Self::Decimal(SMALLMONEY_DIGITS, MONEY_SCALE),
            "decimal" | "numeric" if (1..=38).contains(&precision) && scale <= precision => {
                Self::Decimal(precision, scale)
            }
            "date" => Self::Date,
            "datetime" | "smalldatetime" => Self::Timestamp,
            "datetime2" if scale <= MICROSECOND_SCALE => Self::Timestamp,
            "time" => Self::Time,
            "uniqueidentifier" => Self::Guid,
            "binary" | "varbinary" | "image" | "timestamp" => Self::Binary,
            _ => Self::Text,
        }
    }
}

fn whole(value: &Value) -> Option<i64> {
    match value {
        Value::Integer(number) => Some(*number),
        _ => None,
    }
}

fn real(value: &Value) -> Option<f64> {
    match value {
        Value::Real(number) => Some(*number),
        _ => None,
    }
}

/// The digits of a decimal with the scale of its column.
fn decimal(value: &Value, precision: u8, scale: u8) -> Option<i128> {
    let Value::Decimal(digits, found) = value else {
        return None;
    };
    let missing = scale.checked_sub(*found)?;
    let digits = digits.checked_mul(10_i128.checked_pow(missing.into())?)?;
    let limit = 10_i128.checked_pow(precision.into())?;
    (digits.unsigned_abs() < limit.unsigned_abs()).then_some(digits)
}

/// Bytes of the shortest two's complement number with so many digits.
fn decimal_bytes(precision: u8) -> usize {
    let limit = 10_u128.pow(precision.min(38).into());
    (128 - limit.leading_zeros() as usize + 1).div_ceil(8)
}

#[cfg(test)]
mod tests {
    use std::io::Seek as _;
    use std::sync::Arc;

    use parquet::file::reader::{FileReader as _, SerializedFileReader};
    use parquet::file::writer::SerializedFileWriter;
    use windlass_bak::table::SqlType;

    use super::*;

    #[test]
    fn decimals_take_the_scale_of_their_column_or_are_refused() {
        assert_eq!(decimal(&Value::Decimal(-15, 1), 19, 4), Some(-15_000));
        assert_eq!(decimal(&Value::Decimal(15, 5), 19, 4), None);
        assert_eq!(decimal(&Value::Decimal(1000, 0), 3, 0), None);
        assert_eq!(decimal_bytes(19), 9);
        assert_eq!(decimal_bytes(38), 16);
    }

    fn column(id: u8, precision: u8, scale: u8) -> Column {
        Column {
            id: 1,
            name: "c".to_owned(),
            sql_type: SqlType {
                id,
                length: -1,
                precision,
                scale,
                collation: 0,
            },
            alias: None,
            is_nullable: true,
            is_identity: false,
        }
    }

    /// Writes a value and a NULL, and reads both.
    fn read_back(column: &Column, value: &Value) -> Vec<String> {
        let mut buffer = ColumnBuffer::of(column);
        for value in [value, &Value::Null] {
            buffer.put(value).unwrap();
        }
        let schema = Type::group_type_builder("schema")
            .with_fields(vec![Arc::new(buffer.schema("c").unwrap())])
            .build()
            .unwrap();
        let mut file = tempfile::tempfile().unwrap();
        let copy = file.try_clone().unwrap();
        let mut writer = SerializedFileWriter::new(copy, Arc::new(schema), Arc::default()).unwrap();
        let mut group = writer.next_row_group().unwrap();
        let mut chunk = group.next_column().unwrap().unwrap();
        buffer.write(&mut chunk).unwrap();
        chunk.close().unwrap();
        group.close().unwrap();
        writer.close().unwrap();
        file.rewind().unwrap();
        let reader = SerializedFileReader::new(file).unwrap();
        let rows = reader.get_row_iter(None).unwrap();
        rows.map(|row| row.unwrap().to_string()).collect()
    }

    #[test]
    fn every_type_is_read_back_exactly() {
        let text = |text: &str| Value::Text(text.to_owned());
        let guid = "01020304-0506-0708-090A-0B0C0D0E0F10";
        let cases = [
            (column(104, 0, 0), Value::Integer(1), "true"),
            (column(48, 0, 0), Value::Integer(255), "255"),
            (column(52, 0, 0), Value::Integer(-32_768), "-32768"),
            (
                column(127, 0, 0),
                Value::Integer(i64::MIN),
                "-9223372036854775808",
            ),
            (column(59, 0, 0), Value::Real(f64::from(1.5_f32)), "1.5"),
            (column(62, 0, 0), Value::Real(-0.1), "-1E-1"),
            (
                column(60, 0, 0),
                Value::Decimal(i64::MAX.into(), 4),
                "922337203685477.5807",
            ),
            (column(122, 0, 0), Value::Decimal(-1, 4), "-0.0001"),
            (column(106, 5, 2), Value::Decimal(-12_345, 2), "-123.45"),
            (
                column(106, 38, 0),
                Value::Decimal(-(10_i128.pow(38) - 1), 0),
                "-99999999999999999999999999999999999999",
            ),
            (column(40, 0, 0), text("0001-01-01"), "0001-01-01"),
            (
                column(61, 0, 0),
                text("9999-12-31 23:59:59.997"),
                "9999-12-31 23:59:59.997",
            ),
            (
                column(42, 0, 6),
                text("2016-05-04 06:07:08.123456"),
                "2016-05-04 06:07:08.123456",
            ),
            (
                column(42, 0, 7),
                text("0001-01-01 00:00:00.0000001"),
                "\"0001-01-01 00:00:00.0000001\"",
            ),
            (
                column(43, 0, 7),
                text("2016-05-04 06:07:08.0000000 +02:00"),
                "\"2016-05-04 06:07:08.0000000 +02:00\"",
            ),
            (column(231, 0, 0), text("ä"), "\"ä\""),
            (column(98, 0, 0), Value::Integer(7), "\"7\""),
            (column(165, 0, 0), Value::Binary(vec![1, 255]), "[1, 255]"),
        ];
        let mut wrong = Vec::new();
        for (column, value, expected) in &cases {
            let rows = read_back(column, value);
            assert!(rows.len() == 2 && rows[1].contains("null"), "{rows:?}");
            if !rows[0].contains(expected) {
                wrong.push(format!("{value:?}: {} has no {expected}", rows[0]));
            }
        }
        assert_eq!(wrong, [""; 0]);
        let rows = read_back(&column(41, 0, 7), &text("23:59:59.9999999"));
        assert!(rows[0].contains("86399999999900"), "{rows:?}");
        let rows = read_back(&column(36, 0, 0), &text(guid));
        assert!(
            rows[0].contains("[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]"),
            "{rows:?}"
        );
        let mut wrong = ColumnBuffer::of(&column(106, 5, 2));
        assert_eq!(wrong.put(&Value::Decimal(1, 3)), None);
    }
}
