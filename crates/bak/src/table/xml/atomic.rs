//! Values in a document: texts, and the typed values of columns with a schema.

use super::input::Input;
use super::names::Names;
use crate::fields::Fields;
use crate::table::date::{date_text, datetime2_text, offset_text, time_text};
use crate::table::text::decode_page;
use crate::table::value::{MONEY_SCALE, SqlType, Value, datetime_text, id};

/// Minutes from UTC of `date` values in documents of SQL Server 2005: stored from -14:00, 29 hours.
const ZONE_MINUTES: u64 = 29 * 60;
const ZONE_BEGIN: i64 = 14 * 60;

/// Years in these begin here.
const YEAR_BEGIN: i64 = -9999;
const YEAR_END: i64 = 9999;

/// The text of the value of a token; `None` if the token is none of a value.
pub(super) fn text(
    token: u8,
    input: &mut Input<'_>,
    names: &Names,
) -> Result<Option<String>, String> {
    Ok(Some(match token {
        0x0E | 0x11 | 0x18 => input.text()?,
        0x01 => i16::from_le_bytes(input.array()?).to_string(),
        0x02 => i32::from_le_bytes(input.array()?).to_string(),
        0x03 => real(f32::from_le_bytes(input.array()?)),
        0x04 => float(f64::from_le_bytes(input.array()?)),
        0x05 => money(i64::from_le_bytes(input.array()?)),
        0x06 | 0x07 => input.byte()?.to_string(),
        0x08 => i64::from_le_bytes(input.array()?).to_string(),
        0x09 => Fields(&input.array::<16>()?).guid(0).to_string(),
        0x0A | 0x0B => decimal(input, false)?,
        0x87 => decimal(input, true)?,
        0x0C | 0x0F | 0x17 | 0x1B | 0x85 => base64(bytes(input)?),
        // Behind the `0x` of binary values.
        0x84 => Value::Binary(bytes(input)?.to_vec())
            .to_string()
            .split_off(2),
        0x0D | 0x10 | 0x16 => {
            let bytes = bytes(input)?;
            let Some((page, text)) = bytes.split_first_chunk::<4>() else {
                return Err("a text without a code page".to_owned());
            };
            let page = u32::from_le_bytes(*page);
            decode_page(text, page).ok_or_else(|| format!("a text in code page {page}"))?
        }
        0x12 => {
            let days = i32::from_le_bytes(input.array()?);
            trimmed(&datetime_text(u32::from_le_bytes(input.array()?), days)?)
        }
        0x13 => {
            let days = u16::from_le_bytes(input.array()?);
            let minutes = u32::from(u16::from_le_bytes(input.array()?));
            trimmed(&datetime_text(minutes * 60 * 300, days.into())?)
        }
        0x14 => money(i32::from_le_bytes(input.array()?).into()),
        0x81..=0x83 => of_2005(token, u64::from_le_bytes(input.array()?))?,
        0x86 => match input.byte()? {
            0 => "false".to_owned(),
            _ => "true".to_owned(),
        },
        0x88 => i8::from_le_bytes(input.array()?).to_string(),
        0x89 => u16::from_le_bytes(input.array()?).to_string(),
        0x8A => u32::from_le_bytes(input.array()?).to_string(),
        0x8B => u64::from_le_bytes(input.array()?).to_string(),
        0x8C => names.qualified(input.number()?)?.label(),
        0x7F => date_text(days(input)?)?,
        0x7A..=0x7E => moment(token, input)?,
        _ => return Ok(None),
    }))
}

fn bytes<'b>(input: &mut Input<'b>) -> Result<&'b [u8], String> {
    let length = input.number()?;
    input.take(length)
}

/// The shortest text that is this number again.
fn float(number: f64) -> String {
    special(number).unwrap_or_else(|| match number.abs() {
        0.0 | 1e-5..1e15 => number.to_string(),
        _ => format!("{number:E}"),
    })
}

fn real(number: f32) -> String {
    special(number.into()).unwrap_or_else(|| match number.abs() {
        0.0 | 1e-5..1e7 => number.to_string(),
        _ => format!("{number:E}"),
    })
}

/// The names of XML for what is no finite number.
fn special(number: f64) -> Option<String> {
    let name = match number {
        f64::INFINITY => "INF",
        f64::NEG_INFINITY => "-INF",
        _ if number.is_nan() => "NaN",
        _ => return None,
    };
    Some(name.to_owned())
}

fn money(units: i64) -> String {
    Value::Decimal(units.into(), MONEY_SCALE).to_string()
}

/// Length, precision, scale, sign, digits. `xs:decimal` is written without trailing zeros.
fn decimal(input: &mut Input<'_>, is_trimmed: bool) -> Result<String, String> {
    let bytes = bytes(input)?;
    let (&[precision, scale, ref stored @ ..], 7 | 11 | 15 | 19) = (bytes, bytes.len()) else {
        return Err(format!("a decimal of {} bytes", bytes.len()));
    };
    if precision > 38 || scale > precision || stored.first().is_none_or(|sign| *sign > 1) {
        return Err("a decimal that is none".to_owned());
    }
    let sql_type = SqlType {
        id: id::DECIMAL,
        precision: match bytes.len() {
            7 => 9,
            11 => 19,
            15 => 28,
            _ => 38,
        },
        scale,
        ..SqlType::default()
    };
    let text = sql_type.decode(stored)?.to_string();
    Ok(match is_trimmed && text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    })
}

fn days(input: &mut Input<'_>) -> Result<u32, String> {
    let [low, middle, high] = input.array()?;
    Ok(u32::from_le_bytes([low, middle, high, 0]))
}

/// A time, a moment, or one of them in a time zone: all are stored as the whole of it.
fn moment(token: u8, input: &mut Input<'_>) -> Result<String, String> {
    let scale = input.byte()?;
    let length = match scale {
        0..=2 => 3,
        3..=4 => 4,
        5..=7 => 5,
        _ => return Err(format!("a time with {scale} digits")),
    };
    let mut wide = [0; 8];
    let stored = input.take(length)?;
    wide.iter_mut()
        .zip(stored)
        .for_each(|(slot, byte)| *slot = *byte);
    let (units, days) = (u64::from_le_bytes(wide), days(input)?);
    match token {
        0x7D => return time_text(units, scale).map(|text| trimmed(&text)),
        0x7E => return datetime2_text(days, units, scale).map(|text| trimmed(&text)),
        _ => {}
    }
    let minutes = i16::from_le_bytes(input.array()?);
    let text = offset_text(days, units, scale, minutes)?;
    let (date, rest) = text.split_once(' ').unwrap_or_default();
    let (time, zone) = rest.split_once(' ').unwrap_or_default();
    let zone = if minutes == 0 { "Z" } else { zone };
    Ok(match token {
        0x7A => format!("{}{zone}", trimmed(time)),
        0x7B => format!("{date}T{}{zone}", trimmed(time)),
        _ => format!("{date}{zone}"),
    })
}

/// A moment in the form of XML, without zeros at the end of its fraction.
fn trimmed(text: &str) -> String {
    let text = text.replacen(' ', "T", 1);
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// `time`, `dateTime` and `date` of SQL Server 2005: fields of a number, with months of 31 days.
fn of_2005(token: u8, stored: u64) -> Result<String, String> {
    const TIME: u8 = 0x81;
    const MOMENT: u8 = 0x82;
    // Two bits say whether the date and the time are there.
    let stored = stored / 4;
    if token == TIME {
        return Ok(format!("{}Z", trimmed(&time_text(stored, 3)?)));
    }
    let (rest, days) = match token {
        MOMENT => (stored % 86_400_000, stored / 86_400_000),
        _ => (stored % ZONE_MINUTES, stored / ZONE_MINUTES),
    };
    let (day, month) = (days % 31 + 1, days / 31 % 12 + 1);
    let year = YEAR_BEGIN + (days / 372).cast_signed();
    if year > YEAR_END {
        return Err(format!("the year {year}"));
    }
    let sign = if year < 0 { "-" } else { "" };
    let date = format!("{sign}{:04}-{month:02}-{day:02}", year.unsigned_abs());
    if token == MOMENT {
        return Ok(format!("{date}T{}Z", trimmed(&time_text(rest, 3)?)));
    }
    let minutes = rest.cast_signed() - ZONE_BEGIN;
    if minutes == 0 {
        return Ok(format!("{date}Z"));
    }
    let sign = if minutes < 0 { '-' } else { '+' };
    let minutes = minutes.unsigned_abs();
    Ok(format!(
        "{date}{sign}{:02}:{:02}",
        minutes / 60,
        minutes % 60
    ))
}

fn base64(bytes: &[u8]) -> String {
    use base64ct::{Base64, Encoding as _};
    Base64::encode_string(bytes)
}
