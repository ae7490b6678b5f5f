//! The ranges of numeric options, under SQL Server's names, because messages contain them. Each is declared
//! here once; parsers, the command line and the option page use it.

/// The numbers an option takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NumberRange {
    /// The option's name in T-SQL.
    pub option: &'static str,
    pub least: u32,
    pub most: u32,
}

impl NumberRange {
    const fn new(option: &'static str, least: u32, most: u32) -> Self {
        Self {
            option,
            least,
            most,
        }
    }

    /// The number, if it is within the range.
    pub fn find(self, number: i64) -> Option<u32> {
        let number = u32::try_from(number).ok()?;
        (self.least..=self.most).contains(&number).then_some(number)
    }
}

/// The position of a set on its media.
pub const POSITION: NumberRange = NumberRange::new("FILE", 1, 0xffff);

/// Days for which a set may not be overwritten.
pub const RETAIN_DAYS: NumberRange = NumberRange::new("RETAINDAYS", 0, 99_999);

/// Transfers in flight; the maximum, with 4 MB each, is a quarter of a terabyte.
pub const BUFFER_COUNT: NumberRange = NumberRange::new("BUFFERCOUNT", 1, 65_536);

/// Compression threads.
pub const THREADS: NumberRange = NumberRange::new("THREADCOUNT", 1, 1024);

/// MB (2^20) per second read from the database, up to a terabyte.
pub const READ_RATE: NumberRange = NumberRange::new("MAXRATE", 1, 1 << 20);

/// MB (2^20) per second written to each device, up to a terabyte.
pub const WRITE_RATE: NumberRange = NumberRange::new("MAXWRITERATE", 1, 1 << 20);

/// Percent between two progress messages.
pub const STATS: NumberRange = NumberRange::new("STATS", 1, 100);

/// Bytes; powers of two.
pub const BLOCK_BYTES: NumberRange = NumberRange::new("BLOCKSIZE", 512, 65_536);

/// Bytes; multiples of [`TRANSFER_UNIT`].
pub const TRANSFER_BYTES: NumberRange = NumberRange::new("MAXTRANSFERSIZE", TRANSFER_UNIT, 4 << 20);

pub const TRANSFER_UNIT: u32 = 64 << 10;

/// Bytes of a part of an object.
pub const PART_BYTES: NumberRange = NumberRange::new("MAXTRANSFERSIZE", 5 << 20, 20 << 20);
