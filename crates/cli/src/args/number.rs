//! Numbers and sizes of options, checked against the ranges that T-SQL's options have, in the words of the command line.

use windlass_base::range::{BLOCK_BYTES, NumberRange, PART_BYTES, TRANSFER_BYTES, TRANSFER_UNIT};
use windlass_base::size::{Bytes, parse_bytes};

/// How many of something: at least one.
pub(crate) const COUNT: NumberRange = NumberRange {
    option: "",
    least: 1,
    most: u32::MAX,
};

/// Parses a number of a range.
pub(crate) fn number<T: TryFrom<u32>>(
    range: NumberRange,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static {
    move |text| {
        let number = text.parse().ok().and_then(|number| range.find(number));
        number
            .and_then(|number| T::try_from(number).ok())
            .ok_or_else(|| {
                let (least, most) = (range.least, range.most);
                format!("it is not a whole number from {least} to {most}")
            })
    }
}

/// Parses the size of a block of media.
pub(crate) fn block_bytes<T: From<u32>>(text: &str) -> Result<T, String> {
    let block = size(text)?.and_then(|bytes| BLOCK_BYTES.find(bytes));
    block
        .filter(|bytes| bytes.is_power_of_two())
        .map(T::from)
        .ok_or_else(|| "it is not a power of two from 512 to 64K".to_owned())
}

/// Parses the size of a transfer to a file.
pub(crate) fn file_transfer_bytes(text: &str) -> Result<u32, String> {
    size(text)?
        .and_then(transfer)
        .ok_or_else(|| "it is not a multiple of 64K from 64K to 4M".to_owned())
}

fn transfer(bytes: i64) -> Option<u32> {
    TRANSFER_BYTES
        .find(bytes)
        .filter(|bytes| bytes.is_multiple_of(TRANSFER_UNIT))
}

/// Parses the size of a transfer, or of a part of an object: what the backup is written to decides which.
pub(crate) fn transfer_bytes(text: &str) -> Result<i64, String> {
    size(text)?
        .filter(|bytes| transfer(*bytes).or(PART_BYTES.find(*bytes)).is_some())
        .ok_or_else(|| {
            format!(
                "it is neither a multiple of 64K up to {} nor, for URLs, from {} to {}",
                Bytes(TRANSFER_BYTES.most.into()),
                Bytes(PART_BYTES.least.into()),
                Bytes(PART_BYTES.most.into())
            )
        })
}

/// A size; `None` if it is too large for any option.
fn size(text: &str) -> Result<Option<i64>, String> {
    match parse_bytes(text) {
        Some(bytes) => Ok(i64::try_from(bytes).ok()),
        None => Err("it is not a size, such as 65536, 64K or 4M".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use windlass_base::range::POSITION;

    use super::*;

    #[test]
    fn numbers_and_sizes_out_of_range_are_refused_with_the_range() {
        let position = number::<u16>(POSITION);
        assert_eq!(position("65535"), Ok(65535));
        for text in ["0", "65536", "-1", "x", ""] {
            let refused = position(text).unwrap_err();
            assert_eq!(refused, "it is not a whole number from 1 to 65535");
        }
        assert_eq!(block_bytes("4K"), Ok(4096_i64));
        assert_eq!(transfer_bytes("1M"), Ok(1 << 20));
        assert_eq!(transfer_bytes("20M"), Ok(20 << 20));
        for text in ["0", "100", "4097", "128K"] {
            assert!(block_bytes::<i64>(text).unwrap_err().contains("512 to 64K"));
        }
        for text in ["0", "1", "65537", "21M"] {
            let refused = transfer_bytes(text).unwrap_err();
            assert!(refused.contains("up to 4.0 MB"), "{refused}");
        }
        assert!(transfer_bytes("much").unwrap_err().contains("not a size"));
    }
}
