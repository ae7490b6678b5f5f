//! Errors for files that cannot be read, and findings about files that can.

use std::fmt;

use windlass_base::{Guid, Lsn, beginning};

use crate::container::RECORD_HEADER_BYTES;
use crate::mtf::Tag;

/// A reason why a backup cannot be read, or not completely.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file does not start like either container.
    #[error("this is no backup of SQL Server, which begins with TAPE or MSSQLBAK: the file {}", beginning(.found))]
    NotABackup {
        /// The first bytes.
        found: Vec<u8>,
    },
    /// Tape format written by another program.
    #[error(
        "it was written by '{software}' (vendor {vendor}), not by SQL Server; windlass header, verify and restore read what Windlass wrote"
    )]
    OtherSoftware {
        /// The software name on the media.
        software: String,
        /// Its vendor id.
        vendor: u16,
    },
    /// A compressed container with version words that were never seen, and a first record that does not show
    /// how it is to be read.
    #[error(
        "the compressed backup has the version words {words}, not 2 and 3, and its first record cannot be \
         read: {reason}. It begins with {}", Hex(.record)
    )]
    ContainerVersion {
        words: VersionWords,
        reason: String,
        /// The bytes in place of the first record.
        record: Vec<u8>,
    },
    /// A record of an unknown kind.
    #[error(
        "the record at file offset {offset} of the compressed backup is not understood: {}{}",
        Hex(.header), Behind(*.words)
    )]
    RecordKind {
        offset: u64,
        header: [u8; RECORD_HEADER_BYTES],
        words: Option<VersionWords>,
    },
    /// A stream that is encrypted or compressed by the tape format itself, which no known server does.
    #[error(
        "the {tag} stream at file offset {offset} has the encryption algorithm {} and the compression algorithm {}: \
         only streams with neither can be read", .algorithms.0, .algorithms.1
    )]
    SealedStream {
        offset: u64,
        tag: Tag,
        /// Encryption and compression, as the header of the stream has them.
        algorithms: (u16, u16),
    },
    /// A page whose header is readable, and whose content is not.
    #[error(
        "page {page} seems to be encrypted, as in a database with transparent data encryption: its header has the \
         flags {flags:#06x}, and its slots make no sense. Only a server with the certificate can read it; which \
         certificate that is cannot be said, because no backup is known that shows where its thumbprint is stored"
    )]
    SealedPage { page: PageId, flags: u16 },
    /// The file ends in the middle of a structure.
    #[error("the file ends at {offset}, within {what}")]
    Truncated {
        /// File offset of the end.
        offset: u64,
        /// The truncated structure.
        what: &'static str,
    },
    /// A length above the limit for reading into memory.
    #[error("{what} at file offset {offset} has {found} bytes, more than the limit of {maximum}")]
    TooLarge {
        offset: u64,
        /// What is too large.
        what: &'static str,
        /// The stored length.
        found: u64,
        /// The limit.
        maximum: u64,
    },
    /// The set does not exist.
    #[error("there is no backup set {position} on the media; it has {sets}")]
    NoSuchSet {
        /// The requested position.
        position: u16,
        sets: usize,
    },
    /// The pages do not contain a readable catalog.
    #[error(
        "{what} cannot be read ({reason}), and without that the tables of the database are unknown. Use another \
         backup; windlass verify lists the damage of this one"
    )]
    Catalog {
        /// What is missing.
        what: &'static str,
        /// What was found in its place.
        reason: String,
    },
    /// The file could not be read, or the target not written.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

/// The two words at the start of a compressed container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VersionWords(pub u32, pub u32);

impl fmt::Display for VersionWords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} and {}", self.0, self.1)
    }
}

/// The version words of a container, if they were read.
struct Behind(Option<VersionWords>);

impl fmt::Display for Behind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(words) => write!(f, " (container version words {words})"),
            None => Ok(()),
        }
    }
}

/// Formats bytes so that people can send them in.
struct Hex<'a>(&'a [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, byte) in self.0.iter().enumerate() {
            let gap = if index == 0 { "" } else { " " };
            write!(f, "{gap}{byte:02X}")?;
        }
        Ok(())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Place {
    /// Offset in the plain stream, which equals the file offset unless the file is compressed.
    pub stream: u64,
    /// Offset in the file; in a compressed file, that of the record.
    pub file: u64,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.stream == self.file {
            write!(f, "offset {}", self.file)
        } else {
            write!(
                f,
                "offset {} (byte {} of the expanded stream)",
                self.file, self.stream
            )
        }
    }
}

/// A page of a database file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct PageId {
    pub file: u16,
    pub page: u32,
}

impl fmt::Display for PageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.page)
    }
}

/// A problem and its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub place: Place,
    pub damage: Damage,
}

impl Finding {
    /// The numbers of the media families that are missing, and how many there are, if that is all that was found:
    /// then the backup is incomplete rather than damaged.
    pub fn missing_families<'f>(
        findings: impl IntoIterator<Item = &'f Self>,
    ) -> Option<(Vec<u16>, u16)> {
        let missing = findings.into_iter().map(|found| match found.damage {
            Damage::FamilyMissing { number, count } => Some((number, count)),
            _ => None,
        });
        let missing: Vec<(u16, u16)> = missing.collect::<Option<_>>()?;
        let (_, count) = *missing.first()?;
        Some((missing.iter().map(|(number, _)| *number).collect(), count))
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.damage)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    /// No descriptor block at a place that requires one. The next one is searched for.
    #[error("no descriptor block: {found:02X?}")]
    NoDescriptor { found: [u8; 4] },
    /// A wrong checksum of a descriptor block.
    #[error("the checksum of the {tag} block header is {found:#06x}, computed {expected:#06x}")]
    DescriptorChecksum { tag: Tag, expected: u16, found: u16 },
    /// A wrong checksum of a stream header.
    #[error("the checksum of the {tag} stream header is {found:#06x}, computed {expected:#06x}")]
    StreamChecksum { tag: Tag, expected: u16, found: u16 },
    /// A descriptor block other than the expected next one of its set.
    #[error(
        "the {tag} block says it is number {} at logical block {}, but it is number {} at {}",
        .found.1, .found.0, .expected.1, .expected.0
    )]
    BlockOrder {
        tag: Tag,
        /// Expected logical block and number.
        expected: (u64, u32),
        /// Found logical block and number.
        found: (u64, u32),
    },
    #[error("{what} has an impossible length: {found}")]
    Length { what: &'static str, found: u64 },
    /// A wrong checksum of a record of the compressed container.
    #[error("the checksum of the compressed record is {found:#010x}, computed {expected:#010x}")]
    RecordChecksum { expected: u32, found: u32 },
    /// A record that does not expand; it is replaced by zeros.
    #[error("the compressed record does not expand: {reason}")]
    RecordContent {
        /// The decoder's error.
        reason: String,
    },
    #[error("the backup checksum of the {tag} stream is {found:#010x}, computed {expected:#010x}")]
    BackupChecksum { tag: Tag, expected: u32, found: u32 },
    /// A page whose checksum does not match.
    #[error("page {page}: its checksum is {found:#010x}, computed {expected:#010x}")]
    PageChecksum {
        page: PageId,
        expected: u32,
        found: u32,
    },
    /// A page that was written only in part.
    #[error("page {page}: its sectors do not share one torn-page pattern")]
    TornPage { page: PageId },
    /// An allocated page with another page's number.
    #[error("page {page}: it is allocated, but its header says {found}")]
    PageIdentity {
        /// The page at this position.
        page: PageId,
        /// The page number in its header.
        found: PageId,
    },
    /// A page whose position requires another type.
    #[error("page {page}: it has type {found}, not {expected}")]
    PageType {
        page: PageId,
        /// The type it must have.
        expected: u8,
        /// The type it has.
        found: u8,
    },
    /// 64 KB of pages without a header that identifies them.
    #[error("an extent without a valid page header cannot be placed")]
    UnplacedExtent,
    /// An extent stored twice, although the server writes it once.
    #[error("the extent at page {page} occurs twice")]
    ExtentTwice {
        /// Its first page.
        page: PageId,
    },
    /// An allocated or changed extent missing from the set.
    #[error("the extent at page {page} is missing: {map} marks it")]
    ExtentMissing {
        /// Its first page.
        page: PageId,
        /// The map that marks it.
        map: &'static str,
    },
    /// An extent that no map requires.
    #[error("the extent at page {page} exists, but {map} does not mark it")]
    ExtentExtra {
        /// Its first page.
        page: PageId,
        /// The map that does not mark it.
        map: &'static str,
    },
    /// The number of extents differs from the configuration.
    #[error("file {file} has {found} extents in the set, its configuration says {expected}")]
    ExtentCount {
        file: u16,
        /// Number in the configuration.
        expected: u64,
        found: u64,
    },
    /// A log block other than the expected next one.
    #[error("log block {found:#} was found instead of {expected:#}")]
    LogBlock { expected: Lsn, found: Lsn },
    /// Sectors of a log block with different parities.
    #[error("log block {lsn:#}: its sectors do not share one parity")]
    LogParity { lsn: Lsn },
    /// The log ends before the last LSN of the set.
    #[error("the log ends at {found:#}, but the set continues to {expected:#}")]
    LogEnds { expected: Lsn, found: Lsn },
    /// A gap between virtual log files.
    #[error("log file {file}: a virtual log file begins at {found}, not at {expected}")]
    VirtualLogGap {
        file: u16,
        expected: u64,
        found: u64,
    },
    /// A set without a required block.
    #[error("the backup set has no {what}: it is incomplete")]
    Incomplete {
        /// What is missing.
        what: &'static str,
    },
    /// The file ends in the middle of a structure.
    #[error("the file ends within {what}: it is incomplete")]
    Ends {
        /// The truncated structure.
        what: &'static str,
    },
    /// A file whose length is not a multiple of its block size.
    #[error("the file has {found} bytes, which is not a multiple of its {block_bytes}-byte blocks")]
    FileLength { found: u64, block_bytes: u32 },
    /// A missing stripe.
    #[error("media family {number} of {count} is missing")]
    FamilyMissing { number: u16, count: u16 },
    /// A file of another media set, or a family given twice.
    #[error("the file belongs to media set {found}, the others to {expected}")]
    OtherMediaSet {
        /// The media set of the first file.
        expected: Guid,
        /// The media set of this file.
        found: Guid,
    },
    /// A family given twice.
    #[error("media family {number} occurs twice")]
    FamilyTwice { number: u16 },
}
