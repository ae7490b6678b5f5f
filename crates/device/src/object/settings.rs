//! What can be said about objects besides their URLs.

use object_store::TagSet;
use object_store::aws::Checksum;

/// A checksum that is sent with each part, for the store to check and to keep with the object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartChecksum {
    Crc64Nvme,
    Sha256,
}

impl PartChecksum {
    pub(super) fn algorithm(self) -> Checksum {
        match self {
            Self::Crc64Nvme => Checksum::CRC64NVME,
            Self::Sha256 => Checksum::SHA256,
        }
    }
}

/// How objects are asked for and written; by default as the store does by itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ObjectSettings {
    /// Takes precedence over the one in the host's name.
    pub region: Option<String>,
    /// `STANDARD_IA` and the like, in the store's words.
    pub storage_class: Option<String>,
    /// Names and values.
    pub tags: Vec<(String, String)>,
    pub checksum: Option<PartChecksum>,
}

impl ObjectSettings {
    pub(super) fn tag_set(&self) -> TagSet {
        let mut set = TagSet::default();
        for (name, value) in &self.tags {
            set.push(name, value);
        }
        set
    }
}
