//! Log sequence numbers.

use std::fmt;
use std::str::FromStr;

/// A position in a database's log: virtual log file, 512-byte block within it, slot within that.
///
/// Ordered by position. Printed in SQL Server's decimal form `vlf * 10^15 + block * 10^5 + slot`
/// (`33:288:1` is `33000000028800001`); the alternate form `{:#}` prints `33:288:1`.
/// Source: `sql-server-bak` section 3.1, confirmed on real files.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Lsn {
    /// Sequence number of the virtual log file.
    pub vlf: u32,
    /// Block within the virtual log file, in 512-byte units.
    pub block: u32,
    /// Record within the block.
    pub slot: u16,
}

const VLF_UNIT: u128 = 1_000_000_000_000_000;
const BLOCK_UNIT: u128 = 100_000;

impl Lsn {
    /// The position before everything, which means "none".
    pub const ZERO: Self = Self {
        vlf: 0,
        block: 0,
        slot: 0,
    };

    /// Whether this is [`Lsn::ZERO`].
    pub fn is_zero(self) -> bool {
        self == Self::ZERO
    }

    /// The decimal form as a number; at most 25 digits.
    pub fn to_decimal(self) -> u128 {
        u128::from(self.vlf) * VLF_UNIT
            + u128::from(self.block) * BLOCK_UNIT
            + u128::from(self.slot)
    }

    /// Reads the decimal form. `None` when a part does not fit its field.
    pub fn from_decimal(value: u128) -> Option<Self> {
        Some(Self {
            vlf: u32::try_from(value / VLF_UNIT).ok()?,
            block: u32::try_from(value % VLF_UNIT / BLOCK_UNIT).ok()?,
            slot: u16::try_from(value % BLOCK_UNIT).ok()?,
        })
    }

    /// The ten bytes of the stored form: `u32` vlf, `u32` block, `u16` slot, little-endian.
    pub fn to_stored(self) -> [u8; 10] {
        let mut bytes = [0; 10];
        bytes[..4].copy_from_slice(&self.vlf.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.block.to_le_bytes());
        bytes[8..].copy_from_slice(&self.slot.to_le_bytes());
        bytes
    }

    /// Reads the ten bytes of the stored form.
    pub fn from_stored(bytes: [u8; 10]) -> Self {
        let [a, b, c, d, e, f, g, h, i, j] = bytes;
        Self {
            vlf: u32::from_le_bytes([a, b, c, d]),
            block: u32::from_le_bytes([e, f, g, h]),
            slot: u16::from_le_bytes([i, j]),
        }
    }
}

impl fmt::Display for Lsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if f.alternate() {
            write!(f, "{}:{}:{}", self.vlf, self.block, self.slot)
        } else {
            write!(f, "{}", self.to_decimal())
        }
    }
}

impl fmt::Debug for Lsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:#}")
    }
}

/// The text is not an LSN in decimal or `vlf:block:slot` form.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a log sequence number")]
pub struct LsnError(String);

impl FromStr for Lsn {
    type Err = LsnError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parse = || {
            let mut parts = text.split(':');
            let (first, second, third) = (parts.next()?, parts.next(), parts.next());
            match (second, third, parts.next()) {
                (None, ..) => Self::from_decimal(first.parse().ok()?),
                (Some(block), Some(slot), None) => Some(Self {
                    vlf: first.parse().ok()?,
                    block: block.parse().ok()?,
                    slot: slot.parse().ok()?,
                }),
                _ => None,
            }
        };
        parse().ok_or_else(|| LsnError(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimal_form_is_sql_servers() {
        let lsn = Lsn {
            vlf: 33,
            block: 288,
            slot: 1,
        };
        assert_eq!(lsn.to_string(), "33000000028800001");
        assert_eq!("33000000028800001".parse(), Ok(lsn));
        assert_eq!("33:288:1".parse(), Ok(lsn));
        assert_eq!(format!("{lsn:#}"), "33:288:1");
        assert_eq!(Lsn::from_stored(lsn.to_stored()), lsn);
    }

    #[test]
    fn order_is_by_position() {
        let mut lsns = [(2, 0, 0), (1, 9, 9), (1, 9, 1), (1, 2, 7)].map(|(vlf, block, slot)| Lsn {
            vlf,
            block,
            slot,
        });
        lsns.sort();
        assert!(
            lsns.windows(2)
                .all(|pair| pair[0].to_decimal() < pair[1].to_decimal())
        );
    }

    #[test]
    fn parts_that_do_not_fit_are_refused() {
        assert!("1:2".parse::<Lsn>().is_err());
        assert!("99999999999999999999999999999".parse::<Lsn>().is_err());
        assert_eq!(Lsn::from_decimal(70_000), None, "slots have 16 bits");
    }
}
