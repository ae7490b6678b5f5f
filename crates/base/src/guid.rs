//! A 16-byte identity.

use std::fmt;
use std::str::FromStr;

use uuid::Uuid;

/// A globally unique identifier of a database, a media set or a backup set.
///
/// Stored in the mixed-endian order of Windows (the first three groups little-endian), printed in
/// upper case with hyphens, as SQL Server does.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Guid(Uuid);

impl Guid {
    /// The all-zero identity, which means "none".
    pub const NIL: Self = Self(Uuid::nil());

    /// A new random identity.
    pub fn random() -> Self {
        Self(Uuid::new_v4())
    }

    /// An identity that is a pure function of `name` within `space` (UUID version 5).
    pub fn named(space: Self, name: &[u8]) -> Self {
        Self(Uuid::new_v5(&space.0, name))
    }

    /// Whether it is a function of a name, from [`Guid::named`].
    pub fn is_named(self) -> bool {
        self.0.get_version_num() == 5
    }

    /// Nearly the same bits as an identity that is no function of a name (UUID version 8).
    #[must_use]
    pub fn custom(self) -> Self {
        Self(uuid::Builder::from_custom_bytes(self.0.into_bytes()).into_uuid())
    }

    /// Reads the 16 bytes of the stored form.
    pub fn from_stored(bytes: [u8; 16]) -> Self {
        Self(Uuid::from_bytes_le(bytes))
    }

    /// The 16 bytes of the stored form.
    pub fn to_stored(self) -> [u8; 16] {
        self.0.to_bytes_le()
    }

    /// Whether this is the all-zero identity.
    pub fn is_nil(self) -> bool {
        self.0.is_nil()
    }
}

impl fmt::Display for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = Uuid::encode_buffer();
        f.write_str(self.0.hyphenated().encode_upper(&mut text))
    }
}

impl fmt::Debug for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The text is not 32 hexadecimal digits in the usual grouping.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a GUID")]
pub struct GuidError(String);

impl FromStr for Guid {
    type Err = GuidError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Uuid::parse_str(text)
            .map(Self)
            .map_err(|_| GuidError(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_form_swaps_the_first_three_groups_as_windows_does() {
        let guid: Guid = "00112233-4455-6677-8899-AABBCCDDEEFF".parse().unwrap();
        let stored = guid.to_stored();
        assert_eq!(
            stored[..8],
            [0x33, 0x22, 0x11, 0x00, 0x55, 0x44, 0x77, 0x66]
        );
        assert_eq!(
            stored[8..],
            [0x88, 0x99, 0xAA, 0xBB, 0xCC, 0xDD, 0xEE, 0xFF]
        );
        assert_eq!(Guid::from_stored(stored), guid);
        assert_eq!(guid.to_string(), "00112233-4455-6677-8899-AABBCCDDEEFF");
    }
}
