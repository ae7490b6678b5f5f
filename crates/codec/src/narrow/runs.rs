//! The list of runs in a narrowed form: two numbers for each, seven bits per byte, the lowest first; the
//! top bit means that another byte follows.

/// Bits of a number: no chunk is longer than 2^28 bytes.
const BITS_MAX: u32 = 28;

/// Writes the list to the start of a slice.
pub(super) struct Writer<'a> {
    bytes: &'a mut [u8],
    length: usize,
}

impl<'a> Writer<'a> {
    pub(super) fn new(bytes: &'a mut [u8]) -> Self {
        Self { bytes, length: 0 }
    }

    /// Appends a run: the bytes before it, and its pairs beyond the shortest run. `None` if there is no
    /// room.
    #[inline]
    pub(super) fn push(&mut self, gap: usize, extra: usize) -> Option<()> {
        // Both in one byte each is the usual case.
        if (gap | extra) < 0x80
            && let Some(entry) = self.bytes.get_mut(self.length..self.length + 2)
        {
            entry.copy_from_slice(&[gap as u8, extra as u8]);
            self.length += 2;
            return Some(());
        }
        self.number(gap)?;
        self.number(extra)
    }

    fn number(&mut self, mut number: usize) -> Option<()> {
        while number >= 0x80 {
            *self.bytes.get_mut(self.length)? = number as u8 | 0x80;
            self.length += 1;
            number >>= 7;
        }
        *self.bytes.get_mut(self.length)? = number as u8;
        self.length += 1;
        Some(())
    }

    pub(super) fn bytes(self) -> &'a [u8] {
        &self.bytes[..self.length]
    }
}

/// Reads the list.
pub(super) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// The next run: the bytes before it, and its pairs beyond the shortest run.
    ///
    /// # Errors
    /// If the list ends within a run, or a number has a superfluous byte or too many bits.
    #[inline]
    pub(super) fn next(&mut self) -> Result<Option<(usize, usize)>, &'static str> {
        match *self.0 {
            [] => Ok(None),
            [gap @ ..0x80, extra @ ..0x80, ref rest @ ..] => {
                self.0 = rest;
                Ok(Some((gap.into(), extra.into())))
            }
            _ => Ok(Some((self.number()?, self.number()?))),
        }
    }

    fn number(&mut self) -> Result<usize, &'static str> {
        let mut number = 0;
        for shift in (0..BITS_MAX).step_by(7) {
            let (&byte, rest) = self
                .0
                .split_first()
                .ok_or("list of narrowed runs ends early")?;
            self.0 = rest;
            number |= usize::from(byte & 0x7F) << shift;
            if byte < 0x80 {
                return match byte == 0 && shift > 0 {
                    true => Err("list of narrowed runs has a superfluous byte"),
                    false => Ok(number),
                };
            }
        }
        Err("list of narrowed runs has a number that is too long")
    }
}
