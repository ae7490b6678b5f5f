//! Collations as encoded in the protocol: five bytes (MS-TDS 2.2.5.1.2).

use encoding_rs::{Encoding, UTF_8, WINDOWS_1250, WINDOWS_1251, WINDOWS_1252, WINDOWS_1253};

use crate::Error;

const UTF8_FLAG: u32 = 1 << 26;

/// A locale, flags of comparison, and the sort order of older servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Collation(pub [u8; 5]);

impl Collation {
    /// `SQL_Latin1_General_CP1_CI_AS`, the server's.
    pub const DEFAULT: Self = Self([0x09, 0x04, 0xD0, 0x00, 0x34]);

    fn locale_and_flags(self) -> u32 {
        let [a, b, c, d, _] = self.0;
        u32::from_le_bytes([a, b, c, d])
    }

    /// Text of a `varchar` in this collation.
    ///
    /// # Errors
    /// An unsupported code page; a driver can send `nvarchar` instead.
    pub fn decode(self, bytes: &[u8]) -> Result<String, Error> {
        let encoding = self.encoding()?;
        Ok(encoding.decode_without_bom_handling(bytes).0.into_owned())
    }

    /// The code page, by the locale's primary language.
    fn encoding(self) -> Result<&'static Encoding, Error> {
        let bits = self.locale_and_flags();
        if bits & UTF8_FLAG != 0 {
            return Ok(UTF_8);
        }
        let locale = bits & 0x000F_FFFF;
        Ok(match locale & 0x3FF {
            // Czech, Hungarian, Polish, Romanian, Croatian, Slovak, Albanian, Slovenian.
            0x05 | 0x0E | 0x15 | 0x18 | 0x1A..=0x1C | 0x24 => WINDOWS_1250,
            // Bulgarian, Russian, Ukrainian, Belarusian, Macedonian.
            0x02 | 0x19 | 0x22 | 0x23 | 0x2F => WINDOWS_1251,
            0x08 => WINDOWS_1253,
            0x04 | 0x11 | 0x12 | 0x1E | 0x1F | 0x0D | 0x01 | 0x20 | 0x29 | 0x2A | 0x25..=0x27 => {
                return Err(Error::NotSupported {
                    what: "varchar in this collation's code page",
                });
            }
            _ => WINDOWS_1252,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_read_in_the_code_page_of_its_collation() {
        let text = Collation::DEFAULT.decode(&[0x80, 0xE9]);
        assert_eq!(text.as_deref(), Ok("€é"));
        let russian = Collation([0x19, 0x04, 0xD0, 0x00, 0]);
        assert_eq!(russian.decode(&[0xC4, 0xE0]).as_deref(), Ok("Да"));
        let utf8 = Collation([0x09, 0x04, 0xD0, 0x04, 0]);
        assert_eq!(utf8.decode("é".as_bytes()).as_deref(), Ok("é"));
    }

    #[test]
    fn a_code_page_that_is_not_known_is_refused_and_not_guessed() {
        let japanese = Collation([0x11, 0x04, 0xD0, 0x00, 0]);
        assert!(japanese.decode(&[0x82, 0xA0]).is_err());
    }
}
