//! Errors of media, distinguished as SQL Server distinguishes them.
//!
//! The numbers below are SQL Server's; the crates above turn a variant into a message.

use windlass_base::Guid;

/// The bytes could not be read.
#[derive(Debug, thiserror::Error)]
#[error("reading {length} bytes at offset {offset} failed: {source}")]
pub struct ReadError {
    /// Family offset of the first requested byte.
    pub offset: u64,
    /// Requested bytes.
    pub length: u64,
    pub source: std::io::Error,
}

/// Why media cannot be read, or a value cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum MediaError {
    /// The first block is not an MTF media header (3242; 3241 when more is known about the device).
    #[error(
        "this is no backup, of Windlass or of SQL Server: {}",
        beginning(found)
    )]
    NotMtf {
        /// The first four bytes, or fewer if the file is shorter.
        found: Vec<u8>,
    },
    /// Media written by SQL Server itself.
    #[error("the media were written by Microsoft SQL Server{}", if *.compressed { " (compressed)" } else { "" })]
    SqlServerMedia {
        /// Whether it is the compressed container (`MSSQLBAK`).
        compressed: bool,
    },
    /// Valid MTF media of another program.
    #[error("the media were written by '{software}' (vendor {vendor}), not by Windlass")]
    ForeignMtf {
        /// The software name in the media header.
        software: String,
        /// The software vendor id in the media header.
        vendor: u16,
    },
    /// An unsupported major version of MTF (3243).
    #[error("MTF major version {found} is not supported, only {supported}")]
    MtfVersion {
        /// The version in the media header.
        found: u8,
        /// The only supported version.
        supported: u8,
    },
    /// Media of a newer Windlass.
    #[error("the media have format version {found}; this program reads up to {supported}")]
    FormatVersion {
        /// The version in the media header.
        found: u16,
        /// The newest supported version.
        supported: u16,
    },
    /// The family is truncated (3203 inside a set, else 3241).
    #[error(
        "the family ends at {available} inside the {what} at offset {offset}, which needs bytes up to {needed}"
    )]
    Truncated {
        /// Start of the structure.
        offset: u64,
        /// Which structure.
        what: &'static str,
        /// Family offset of its end.
        needed: u64,
        /// Length of the family.
        available: u64,
    },
    /// The end of a set is missing: it was never finished, or was truncated (3256).
    #[error("backup set {number} at offset {offset} is incomplete: {reason}")]
    IncompleteSet {
        /// The set's position on the media.
        number: u16,
        /// Offset of its first block.
        offset: u64,
        /// What was found instead of its end.
        reason: Box<MediaError>,
    },
    /// Bytes that cannot have been written (3241; 3189 while verifying).
    #[error("damaged {what} at offset {offset}: expected {expected:#x}, found {found:#x}")]
    Damaged {
        /// Family offset.
        offset: u64,
        /// The field or structure.
        what: &'static str,
        /// The correct value.
        expected: u64,
        found: u64,
    },
    /// An identity that belongs to another set or other media (3241): a misdirected write, or a
    /// splice.
    #[error("wrong {what} at offset {offset}: expected {expected}, found {found}")]
    WrongIdentity {
        /// Family offset.
        offset: u64,
        what: &'static str,
        /// The correct identity.
        expected: Guid,
        found: Guid,
    },
    /// A count or length above its maximum; nothing was allocated for it.
    #[error("{what} at offset {offset} is {found}, above the maximum of {maximum}")]
    TooLarge {
        /// Family offset; 0 for a value to be written.
        offset: u64,
        /// The count or length.
        what: &'static str,
        found: u64,
        maximum: u64,
    },
    /// A mandatory field of a newer version.
    #[error("field {tag:#06x} at offset {offset} needs a newer program")]
    UnknownField {
        /// Family offset.
        offset: u64,
        tag: u16,
    },
    /// The family has no such set (3287).
    #[error("the family has no backup set {number}")]
    NoSuchSet {
        /// The requested position.
        number: u16,
    },
    /// A block size that is not a power of two from 512 to 65536.
    #[error("block size {found} is not a power of two from 512 to 65536")]
    BlockSize {
        /// The requested size.
        found: u32,
    },
    /// A value for which the format has no space, or that has no meaning.
    #[error("{what} cannot be {found}: {rule}")]
    Unwritable {
        what: &'static str,
        found: u64,
        /// The rule of the format.
        rule: &'static str,
    },
    /// A call in the wrong state of the writer.
    #[error("'{call}' does not follow {state}")]
    OutOfOrder {
        call: &'static str,
        /// What the writer wrote last.
        state: &'static str,
    },
    #[error(transparent)]
    Read(#[from] ReadError),
}

impl MediaError {
    /// Whether the cause is a truncated family.
    pub fn is_truncation(&self) -> bool {
        match self {
            Self::Truncated { .. } => true,
            Self::IncompleteSet { reason, .. } => reason.is_truncation(),
            _ => false,
        }
    }

    /// The failure of a device, if that is the cause: nothing is known of the bytes then.
    pub fn read_failure(&self) -> Option<&ReadError> {
        match self {
            Self::Read(error) => {
                (error.source.kind() != std::io::ErrorKind::UnexpectedEof).then_some(error)
            }
            Self::IncompleteSet { reason, .. } => reason.read_failure(),
            _ => None,
        }
    }
}

/// What a file that is no backup begins with.
fn beginning(found: &[u8]) -> String {
    if found == b"SQLi" {
        return "it begins as SQLite databases do".to_owned();
    }
    format!("it {}", windlass_base::beginning(found))
}
