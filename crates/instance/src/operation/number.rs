//! Checks of numeric options against their ranges.

use windlass_base::message::table;
use windlass_base::range::{BLOCK_BYTES, NumberRange, TRANSFER_BYTES, TRANSFER_UNIT};

use crate::Failure;

/// Returns the number, if one was given.
///
/// # Errors
/// 3250 if it is out of range.
pub(crate) fn within(range: NumberRange, number: Option<i64>) -> Result<Option<u32>, Failure> {
    let refused = |number| table::out_of_range(number, range.option).into();
    number
        .map(|number| range.find(number).ok_or_else(|| refused(number)))
        .transpose()
}

/// `BLOCKSIZE`: a power of two from 512 to 65536.
pub(crate) fn block_bytes(number: Option<i64>) -> Result<Option<u32>, Failure> {
    let bytes = within(BLOCK_BYTES, number)?;
    match bytes.is_none_or(u32::is_power_of_two) {
        true => Ok(bytes),
        false => Err(table::block_size_power_of_two().into()),
    }
}

/// `MAXTRANSFERSIZE`: a multiple of 64 KB up to 4 MB.
pub(crate) fn transfer_bytes(number: Option<i64>) -> Result<Option<u32>, Failure> {
    let bytes = within(TRANSFER_BYTES, number)?;
    match bytes.is_none_or(|bytes| bytes % TRANSFER_UNIT == 0) {
        true => Ok(bytes),
        false => Err(table::invalid_parameter("MAXTRANSFERSIZE").into()),
    }
}

#[cfg(test)]
mod tests {
    use windlass_base::range::POSITION;

    use super::*;

    #[test]
    fn numbers_outside_of_their_range_are_named_with_their_option() {
        let reported = |result: Result<Option<u32>, Failure>| {
            let failure = result.expect_err("a refusal");
            (failure.messages[0].number, failure.messages[0].text.clone())
        };
        assert_eq!(within(POSITION, None).expect("none"), None);
        assert_eq!(within(POSITION, Some(7)).expect("a position"), Some(7));
        for number in [0, -1, 65_536, i64::MAX] {
            let (message, text) = reported(within(POSITION, Some(number)));
            assert_eq!(message, 3250, "{number}");
            assert!(
                text.contains("FILE") && text.contains(&number.to_string()),
                "{text}"
            );
        }
        assert_eq!(block_bytes(Some(4096)).expect("bytes"), Some(4096));
        assert_eq!(reported(block_bytes(Some(4095))).0, 3253);
        assert_eq!(transfer_bytes(Some(1 << 20)).expect("bytes"), Some(1 << 20));
        assert_eq!(reported(transfer_bytes(Some(65_537))).0, 3217);
    }
}
