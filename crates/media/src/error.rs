//! What can be wrong with media, told apart as SQL Server tells it apart.
//!
//! The numbers named below are SQL Server's; the crates above turn a variant into a message.

use windlass_base::Guid;

/// Reading the bytes themselves failed.
#[derive(Debug, thiserror::Error)]
#[error("reading {length} bytes at offset {offset} failed: {source}")]
pub struct ReadError {
    /// Family offset of the first byte wanted.
    pub offset: u64,
    /// Bytes wanted.
    pub length: u64,
    /// The cause.
    pub source: std::io::Error,
}

/// Why media cannot be read, or why a value cannot be written to it.
#[derive(Debug, thiserror::Error)]
pub enum MediaError {
    /// The first block is no MTF media header (3242; 3241 when more is known about the device).
    #[error("not Microsoft Tape Format: the media begin with {found:02X?}")]
    NotMtf {
        /// The first four bytes, or fewer where the file is shorter.
        found: Vec<u8>,
    },
    /// Media written by SQL Server itself.
    #[error("the media were written by Microsoft SQL Server{}", if *.compressed { " (compressed)" } else { "" })]
    SqlServerMedia {
        /// Whether it is the compressed container (`MSSQLBAK`).
        compressed: bool,
    },
    /// Sound MTF media of another program.
    #[error("the media were written by '{software}' (vendor {vendor}), not by Windlass")]
    ForeignMtf {
        /// The software name in the media header.
        software: String,
        /// The software vendor id in the media header.
        vendor: u16,
    },
    /// A major version of MTF that does not exist for us (3243).
    #[error("MTF major version {found} is not supported, only {supported}")]
    MtfVersion {
        /// The version in the media header.
        found: u8,
        /// The one version this crate reads.
        supported: u8,
    },
    /// Media of a newer Windlass.
    #[error("the media have format version {found}; this program reads up to {supported}")]
    FormatVersion {
        /// The version in the media header.
        found: u16,
        /// The newest version this crate reads.
        supported: u16,
    },
    /// The family ends in the middle of something (3203 inside a set, else 3241).
    #[error(
        "the family ends at {available} inside the {what} at offset {offset}, which needs bytes up to {needed}"
    )]
    Truncated {
        /// Where the structure begins.
        offset: u64,
        /// Which structure.
        what: &'static str,
        /// Family offset at which it would end.
        needed: u64,
        /// Bytes the family has.
        available: u64,
    },
    /// A set whose end is missing: it was never finished, or its end was cut off (3256).
    #[error("backup set {number} at offset {offset} is incomplete: {reason}")]
    IncompleteSet {
        /// The set's position on the media.
        number: u16,
        /// Where its first block is.
        offset: u64,
        /// What was found instead of its end.
        reason: Box<MediaError>,
    },
    /// Bytes that cannot be what was written (3241; 3189 while verifying).
    #[error("damaged {what} at offset {offset}: expected {expected:#x}, found {found:#x}")]
    Damaged {
        /// Where, as a family offset.
        offset: u64,
        /// Which field or structure.
        what: &'static str,
        /// The value that would have been right.
        expected: u64,
        /// The value found.
        found: u64,
    },
    /// An identity that belongs to another set or other media (3241; a misdirected write, or a splice).
    #[error("wrong {what} at offset {offset}: expected {expected}, found {found}")]
    WrongIdentity {
        /// Where, as a family offset.
        offset: u64,
        /// Which identity.
        what: &'static str,
        /// The identity that would have been right.
        expected: Guid,
        /// The identity found.
        found: Guid,
    },
    /// A count or length above its named maximum; nothing is allocated for it.
    #[error("{what} at offset {offset} is {found}, above the maximum of {maximum}")]
    TooLarge {
        /// Where, as a family offset; 0 when the value was to be written.
        offset: u64,
        /// Which count or length.
        what: &'static str,
        /// The value found.
        found: u64,
        /// The greatest value allowed.
        maximum: u64,
    },
    /// A field of a newer program that must be understood.
    #[error("field {tag:#06x} at offset {offset} needs a newer program")]
    UnknownField {
        /// Where, as a family offset.
        offset: u64,
        /// The field's tag.
        tag: u16,
    },
    /// There is no such set on this family (3287).
    #[error("the family has no backup set {number}")]
    NoSuchSet {
        /// The position asked for.
        number: u16,
    },
    /// A block size that is not a power of two from 512 to 65536.
    #[error("block size {found} is not a power of two from 512 to 65536")]
    BlockSize {
        /// The size asked for.
        found: u32,
    },
    /// A value that the format has no room for or no meaning for.
    #[error("{what} cannot be {found}: {rule}")]
    Unwritable {
        /// Which value.
        what: &'static str,
        /// The value.
        found: u64,
        /// What the format asks for.
        rule: &'static str,
    },
    /// A call that does not fit what was written so far.
    #[error("'{call}' does not follow {state}")]
    OutOfOrder {
        /// The call made.
        call: &'static str,
        /// What the writer had written last.
        state: &'static str,
    },
    /// The bytes could not be had.
    #[error(transparent)]
    Read(#[from] ReadError),
}

impl MediaError {
    /// Whether the cause is that the family ends too early.
    pub fn is_truncation(&self) -> bool {
        match self {
            Self::Truncated { .. } => true,
            Self::IncompleteSet { reason, .. } => reason.is_truncation(),
            _ => false,
        }
    }
}
