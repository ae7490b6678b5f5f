//! Text in the Standard Compression Scheme for Unicode (Unicode Technical Standard 6).

/// Start of the windows that do not move.
const STATIC_WINDOWS: [u32; 8] = [
    0x0000, 0x0080, 0x0100, 0x0300, 0x2000, 0x2080, 0x2100, 0x3000,
];

/// Start of the other windows at the beginning of a text.
const DYNAMIC_WINDOWS: [u32; 8] = [
    0x0080, 0x00C0, 0x0400, 0x0600, 0x0900, 0x3040, 0x30A0, 0xFF00,
];

/// The first letter beyond the 16-bit ones.
const SUPPLEMENTARY: u32 = 0x1_0000;

/// Letters in a window.
const WINDOW: u32 = 0x80;

/// Why a text cannot be expanded.
const RESERVED: &str = "compressed text with a reserved byte";
const CUT_OFF: &str = "compressed text that is cut off";

struct Expander<'a> {
    bytes: &'a [u8],
    at: usize,
    windows: [u32; 8],
    active: usize,
    is_unicode: bool,
    units: Vec<u16>,
}

/// Expands a text to UTF-16. A single byte at the end that begins a sequence is a filler: the server
/// makes the length odd with it.
pub(super) fn expand(bytes: &[u8]) -> Result<Vec<u16>, &'static str> {
    let mut expander = Expander {
        bytes,
        at: 0,
        windows: DYNAMIC_WINDOWS,
        active: 0,
        is_unicode: false,
        units: Vec::with_capacity(bytes.len()),
    };
    while let Some(byte) = expander.next() {
        let is_last = expander.at == bytes.len();
        let taken = match expander.is_unicode {
            true => expander.unicode(byte),
            false => expander.single(byte),
        };
        if !is_last {
            taken?;
        } else if taken == Err(RESERVED) {
            return Err(RESERVED);
        }
    }
    Ok(expander.units)
}

impl Expander<'_> {
    fn next(&mut self) -> Option<u8> {
        let byte = self.bytes.get(self.at).copied()?;
        self.at += 1;
        Some(byte)
    }

    fn operand(&mut self) -> Result<u8, &'static str> {
        self.next().ok_or(CUT_OFF)
    }

    fn unit(&mut self, high: u8) -> Result<(), &'static str> {
        let low = self.operand()?;
        self.units.push(u16::from_be_bytes([high, low]));
        Ok(())
    }

    /// A unit of two operands.
    fn quoted_unit(&mut self) -> Result<(), &'static str> {
        let high = self.operand()?;
        self.unit(high)
    }

    fn put(&mut self, letter: u32) -> Result<(), &'static str> {
        let mut pair = [0; 2];
        let letter = match u16::try_from(letter) {
            Ok(unit) => {
                self.units.push(unit);
                return Ok(());
            }
            Err(_) => char::from_u32(letter).ok_or(RESERVED)?,
        };
        self.units.extend_from_slice(letter.encode_utf16(&mut pair));
        Ok(())
    }

    fn window(&self, number: usize) -> u32 {
        self.windows.get(number).copied().unwrap_or(0)
    }

    fn single(&mut self, byte: u8) -> Result<(), &'static str> {
        match byte {
            0x01..=0x08 => {
                let number = usize::from(byte - 1);
                let operand = u32::from(self.operand()?);
                let fixed = STATIC_WINDOWS.get(number).copied().unwrap_or(0);
                match operand.checked_sub(WINDOW) {
                    None => self.put(fixed + operand),
                    Some(letter) => self.put(self.window(number) + letter),
                }
            }
            0x0B => self.define_extended(),
            0x0C => Err(RESERVED),
            0x0E => self.quoted_unit(),
            0x0F => {
                self.is_unicode = true;
                Ok(())
            }
            0x10..=0x17 => {
                self.active = usize::from(byte - 0x10);
                Ok(())
            }
            0x18..=0x1F => self.define(byte - 0x18),
            0x80.. => self.put(self.window(self.active) + u32::from(byte) - WINDOW),
            _ => self.put(byte.into()),
        }
    }

    fn unicode(&mut self, byte: u8) -> Result<(), &'static str> {
        match byte {
            0xE0..=0xE7 => {
                self.active = usize::from(byte - 0xE0);
                self.is_unicode = false;
                Ok(())
            }
            0xE8..=0xEF => self.define(byte - 0xE8),
            0xF0 => self.quoted_unit(),
            0xF1 => self.define_extended(),
            0xF2 => Err(RESERVED),
            _ => self.unit(byte),
        }
    }

    fn select(&mut self, number: usize, start: u32) {
        if let Some(window) = self.windows.get_mut(number) {
            *window = start;
        }
        self.active = number;
        self.is_unicode = false;
    }

    fn define(&mut self, number: u8) -> Result<(), &'static str> {
        let operand = self.operand()?;
        let start = match operand {
            0x01..=0x67 => u32::from(operand) * WINDOW,
            0x68..=0xA7 => u32::from(operand) * WINDOW + 0xAC00,
            0xF9 => 0x00C0,
            0xFA => 0x0250,
            0xFB => 0x0370,
            0xFC => 0x0530,
            0xFD => 0x3040,
            0xFE => 0x30A0,
            0xFF => 0xFF60,
            _ => return Err(RESERVED),
        };
        self.select(number.into(), start);
        Ok(())
    }

    fn define_extended(&mut self) -> Result<(), &'static str> {
        let operand = u16::from_be_bytes([self.operand()?, self.operand()?]);
        let start = SUPPLEMENTARY + WINDOW * u32::from(operand & 0x1FFF);
        self.select(usize::from(operand >> 13), start);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: &[u8]) -> String {
        String::from_utf16(&expand(bytes).unwrap()).unwrap()
    }

    #[test]
    fn the_examples_of_the_standard_are_expanded() {
        let german = [0xD6, 0x6C, 0x20, 0x66, 0x6C, 0x69, 0x65, 0xDF, 0x74];
        assert_eq!(text(&german), "Öl fließt");
        let russian = [0x12, 0x9C, 0xBE, 0xC1, 0xBA, 0xB2, 0xB0];
        assert_eq!(text(&russian), "Москва");
        assert_eq!(text(&[0x0F, 0x5C, 0x71, 0x75, 0x30]), "山田");
        assert_eq!(text(&[b'H', 0x0E, 0x5C, 0x71, b'i']), "H山i");
        assert_eq!(text(&[0x0B, 0, 0, 0x80, 0x81]), "\u{10000}\u{10001}");
        assert_eq!(text(&[0x0F, 0xD8, 0x3D, 0xDE, 0x00, 0xE0, b'!']), "😀!");
        assert_eq!(text(&[0x18, 0x08, 0x90, 0x05, 0x90, b'x']), "А\u{910}x");
    }

    #[test]
    fn the_filler_at_the_end_is_no_letter_and_what_is_cut_off_is_refused() {
        assert_eq!(text(&[b'G', b'r', b'a', b'y', 0x10]), "Gray");
        assert_eq!(text(&[0x0F, 0x5C, 0x71, 0x02]), "山");
        assert_eq!(expand(&[0x0E, 0x41]), Err(CUT_OFF));
        assert_eq!(expand(&[0x18, 0xA8, b'x']), Err(RESERVED));
        assert_eq!(expand(&[0x0C]), Err(RESERVED));
        assert_eq!(expand(&[0x0F, 0xF2, b'x']), Err(RESERVED));
    }
}
