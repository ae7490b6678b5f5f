//! The bytes of a document, read forward.

/// Where a document is read.
#[derive(Debug)]
pub(super) struct Input<'b> {
    bytes: &'b [u8],
    at: usize,
}

const CUT_OFF: &str = "it ends within a token";

impl<'b> Input<'b> {
    pub(super) fn new(bytes: &'b [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    pub(super) fn at(&self) -> usize {
        self.at
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.at >= self.bytes.len()
    }

    /// Reads the last byte again.
    pub(super) fn step_back(&mut self) {
        self.at = self.at.saturating_sub(1);
    }

    pub(super) fn take(&mut self, length: usize) -> Result<&'b [u8], String> {
        let end = self.at.checked_add(length).ok_or(CUT_OFF)?;
        let taken = self.bytes.get(self.at..end).ok_or(CUT_OFF)?;
        self.at = end;
        Ok(taken)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], String> {
        self.take(N)?.try_into().map_err(|_| CUT_OFF.to_owned())
    }

    pub(super) fn byte(&mut self) -> Result<u8, String> {
        self.array().map(|[byte]| byte)
    }

    /// A number in groups of 7 bits, lowest first, of up to 31 bits.
    pub(super) fn number(&mut self) -> Result<usize, String> {
        let mut number = 0_u64;
        for shift in [0, 7, 14, 21, 28] {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7F) << shift;
            if byte < 0x80 {
                return match i32::try_from(number) {
                    Ok(number) => Ok(number as usize),
                    Err(_) => break,
                };
            }
        }
        Err("a number of more than 31 bits".to_owned())
    }

    /// The number of UTF-16 units, and these.
    pub(super) fn text(&mut self) -> Result<String, String> {
        let bytes = self.number()?.saturating_mul(2);
        let units: Vec<u16> = self
            .take(bytes)?
            .as_chunks::<2>()
            .0
            .iter()
            .map(|pair| u16::from_le_bytes(*pair))
            .collect();
        String::from_utf16(&units).map_err(|_| "half of a surrogate pair".to_owned())
    }
}
