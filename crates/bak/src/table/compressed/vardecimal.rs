//! Decimals of variable length: sign, exponent, and the digits in groups of three.

/// Maximum length: the first byte and 39 digits in groups of ten bits.
const BYTES_MAX: usize = 20;

/// What is added to the exponent.
const BIAS: i32 = 64;

/// Bit of the first byte: the number is not negative.
const POSITIVE: u8 = 0x80;

const GROUP_BITS: u32 = 10;

/// A decimal, in units of its last digit; the error describes what is invalid.
pub(super) fn decode(bytes: &[u8], scale: u8) -> Result<i128, String> {
    let Some((&first, groups)) = bytes.split_first() else {
        return Ok(0);
    };
    if bytes.len() > BYTES_MAX {
        return Err(format!("a decimal of {} bytes", bytes.len()));
    }
    let digits = digits(groups)?;
    let leading = digits.iter().take_while(|digit| **digit == 0).count();
    let end = digits.len() - digits.iter().rev().take_while(|digit| **digit == 0).count();
    let digits = digits.get(leading..end).unwrap_or_default();
    if digits.is_empty() {
        return Ok(0);
    }
    // The exponent is that of the first digit.
    let exponent = i32::from(first & !POSITIVE) - BIAS;
    let shift = exponent - (digits.len() as i32 - 1) + i32::from(scale);
    let shift = u32::try_from(shift).map_err(|_| "a decimal with more digits than its scale")?;
    let magnitude = digits
        .iter()
        .try_fold(0_i128, |number, digit| {
            number.checked_mul(10)?.checked_add((*digit).into())
        })
        .and_then(|number| number.checked_mul(10_i128.checked_pow(shift)?))
        .ok_or("a decimal of more than 38 digits")?;
    Ok(match first & POSITIVE {
        0 => -magnitude,
        _ => magnitude,
    })
}

/// The digits of groups of ten bits, most significant bit first. Zero bits at the end are not stored.
fn digits(groups: &[u8]) -> Result<Vec<u8>, String> {
    let mut digits = Vec::with_capacity(groups.len() * 3);
    let mut pending = 0_u32;
    let mut bits = 0;
    let padding = [0; 2];
    for byte in groups.iter().chain(&padding) {
        pending = pending << 8 | u32::from(*byte);
        bits += 8;
        if bits >= GROUP_BITS {
            bits -= GROUP_BITS;
            let group = pending >> bits;
            pending &= (1 << bits) - 1;
            if group > 999 {
                return Err(format!("a group of decimal digits of the value {group}"));
            }
            digits.extend([group / 100, group / 10 % 10, group % 10].map(|digit| digit as u8));
        }
    }
    Ok(digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_those_of_the_groups() {
        assert_eq!(decode(&[], 4), Ok(0));
        // 123.45 as decimal(5,2): 123, 450.
        assert_eq!(decode(&[0xC2, 0x1E, 0xDC, 0x20], 2), Ok(12_345));
        assert_eq!(decode(&[0x42, 0x1E, 0xDC, 0x20], 2), Ok(-12_345));
        // 12.345 with a leading zero: 012, 345.
        assert_eq!(decode(&[0xC1, 0x03, 0x15, 0x90], 3), Ok(12_345));
        // 1 = 100 in one group, whose last bits are zero.
        assert_eq!(decode(&[0xC0, 0x19], 0), Ok(1));
        assert_eq!(decode(&[0xC0, 0x19], 10), Ok(10_000_000_000));
        // 412: the last bits of the group are zero.
        assert_eq!(decode(&[0xC2, 0x67], 0), Ok(412));
    }

    #[test]
    fn what_no_decimal_has_is_refused() {
        assert!(decode(&[0xC0, 0xFF, 0xFF], 0).is_err(), "a group of 1023");
        assert!(
            decode(&[0xC0, 0x1E, 0xDC], 0).is_err(),
            "1.23 as an integer"
        );
        assert!(decode(&[0xFF, 0x19], 38).is_err(), "10 to the power of 63");
        assert!(decode(&[0xC0; 21], 0).is_err());
        let all: Vec<u8> = std::iter::once(0xFF).chain([0xF9; 19]).collect();
        assert!(decode(&all, 38).is_err());
    }
}
