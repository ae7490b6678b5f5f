//! The numeric options and their ranges, with SQL Server's names, because messages contain them.

use windlass_base::message::table;

use crate::Failure;

/// The range of an option's number.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Range {
    option: &'static str,
    least: i64,
    most: i64,
}

impl Range {
    const fn new(option: &'static str, least: i64, most: i64) -> Self {
        Self {
            option,
            least,
            most,
        }
    }

    /// Returns the number, if one was given.
    ///
    /// # Errors
    /// 3250 if it is out of range.
    pub(crate) fn check(self, number: Option<i64>) -> Result<Option<u32>, Failure> {
        let Some(number) = number else {
            return Ok(None);
        };
        match u32::try_from(number) {
            Ok(found) if (self.least..=self.most).contains(&number) => Ok(Some(found)),
            _ => Err(table::out_of_range(number, self.option).into()),
        }
    }
}

/// The unit and the minimum of `MAXTRANSFERSIZE`.
const TRANSFER_UNIT: u32 = 64 << 10;

/// The position of a set on its media.
pub(crate) const POSITION: Range = Range::new("FILE", 1, 0xffff);

/// Days for which a set may not be overwritten.
pub(crate) const RETAIN_DAYS: Range = Range::new("RETAINDAYS", 0, 99_999);

/// Transfers in flight; the maximum, with 4 MB each, is a quarter of a terabyte.
pub(crate) const BUFFER_COUNT: Range = Range::new("BUFFERCOUNT", 1, 65_536);

/// Compression threads.
pub(crate) const THREADS: Range = Range::new("THREADCOUNT", 1, 1024);

/// MB per second read from the database, up to a terabyte.
pub(crate) const READ_RATE: Range = Range::new("MAXRATE", 1, 1 << 20);

/// MB per second written to each device, up to a terabyte.
pub(crate) const WRITE_RATE: Range = Range::new("MAXWRITERATE", 1, 1 << 20);

/// Percent between two progress messages.
pub(crate) const STATS: Range = Range::new("STATS", 1, 100);

const BLOCK_BYTES: Range = Range::new("BLOCKSIZE", 512, 65_536);

const TRANSFER_BYTES: Range = Range::new("MAXTRANSFERSIZE", TRANSFER_UNIT as i64, 4 << 20);

/// `BLOCKSIZE`: a power of two from 512 to 65536.
pub(crate) fn block_bytes(number: Option<i64>) -> Result<Option<u32>, Failure> {
    let bytes = BLOCK_BYTES.check(number)?;
    match bytes.is_none_or(u32::is_power_of_two) {
        true => Ok(bytes),
        false => Err(table::block_size_power_of_two().into()),
    }
}

/// `MAXTRANSFERSIZE`: a multiple of 64 KB up to 4 MB.
pub(crate) fn transfer_bytes(number: Option<i64>) -> Result<Option<u32>, Failure> {
    let bytes = TRANSFER_BYTES.check(number)?;
    match bytes.is_none_or(|bytes| bytes % TRANSFER_UNIT == 0) {
        true => Ok(bytes),
        false => Err(table::invalid_parameter("MAXTRANSFERSIZE").into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_outside_of_their_range_are_named_with_their_option() {
        let reported = |result: Result<Option<u32>, Failure>| {
            let failure = result.expect_err("a refusal");
            (failure.messages[0].number, failure.messages[0].text.clone())
        };
        assert_eq!(POSITION.check(None).expect("none"), None);
        assert_eq!(POSITION.check(Some(7)).expect("a position"), Some(7));
        for number in [0, -1, 65_536, i64::MAX] {
            let (message, text) = reported(POSITION.check(Some(number)));
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
