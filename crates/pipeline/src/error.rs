//! Why a backup, a restore or a verification did not happen.

use windlass_base::Moment;
use windlass_base::panic::Panicked;

use crate::coverage::Stretches;
use crate::digests::DigestError;
use crate::report::DamagedPage;

/// The cause, never the consequence: the first thing that went wrong.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A device could not be opened, read, written or synced.
    #[error(transparent)]
    Device(#[from] windlass_device::Error),
    /// The database could not be read, or the target not be written.
    #[error(transparent)]
    Source(#[from] windlass_source::Error),
    /// The encoder or decoder failed.
    #[error(transparent)]
    Codec(#[from] windlass_codec::Error),
    /// The digests of the differential base could not be read or written.
    #[error(transparent)]
    Digests(#[from] DigestError),
    /// What is on the device is not what it should be.
    #[error("'{device}': {source}")]
    Media {
        /// The device.
        device: String,
        /// What is wrong with it.
        #[source]
        source: windlass_media::MediaError,
    },
    /// Keys could not be made or used.
    #[error(transparent)]
    Crypt(#[from] windlass_crypt::Error),
    /// The key of an encrypted set could not be had.
    #[error("'{device}': {source}")]
    Key {
        /// The device.
        device: String,
        /// Why.
        #[source]
        source: windlass_crypt::Error,
    },
    /// No key at hand opens a set, and the keys beside the media cannot be used.
    #[error(
        "'{device}': {source}. The key file {} cannot be used either: {reason}",
        path.display()
    )]
    KeyAndKeyFile {
        /// The device.
        device: String,
        /// Why no key on the media can be used.
        #[source]
        source: windlass_crypt::Error,
        /// The key file.
        path: std::path::PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A key file that would be replaced cannot be read.
    #[error(
        "the key file {} cannot be used: {reason}. Whoever it names would be locked out: bring it back, or drop \
         them with --replace",
        path.display()
    )]
    KeyFile {
        /// The file.
        path: std::path::PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// Keys were given for a set that is not encrypted.
    #[error("the backup set on '{device}' is not encrypted, but a key was given for it")]
    NotEncrypted {
        /// The device.
        device: String,
    },
    /// The digests in an encrypted set are not authenticated without its payloads.
    #[error(
        "the full backup on '{device}' is encrypted: only the instance that made it can take differentials against it"
    )]
    EncryptedBase {
        /// The device.
        device: String,
    },
    /// A defect in this program: one of the run's threads panicked.
    #[error(transparent)]
    Panicked(#[from] Panicked),
    /// A defect in this program: a thread ended before its work was done.
    #[error("the {worker} ended before its work was done")]
    EndedEarly {
        /// What was at work.
        worker: &'static str,
    },
    /// A defect in this program: not everything that was to be backed up reached the media.
    #[error("the backup lacks {0}")]
    NotStored(Stretches),
    /// A defect in this program: a part of the database came to the media twice.
    #[error("the backup would hold twice, or unasked, {0}")]
    StoredTwice(Stretches),
    /// A defect in this program: the target did not take all that the set holds.
    #[error("{found} of the {expected} bytes of file '{file}' in the set were written")]
    NotWritten {
        /// Logical name.
        file: String,
        /// Bytes the target took.
        found: u64,
        /// Bytes in the set.
        expected: u64,
    },
    /// The observer asked to stop.
    #[error("the operation was cancelled")]
    Cancelled,
    /// There is nothing on a device that should belong to the media set.
    #[error("'{device}' is empty")]
    VolumeEmpty {
        /// The device.
        device: String,
    },
    /// Fewer devices were named than the media set has families.
    #[error("the media set has {expected} families, but {provided} were named")]
    FamiliesMissing {
        /// Families in the media set.
        expected: usize,
        /// Devices that were named.
        provided: usize,
    },
    /// The media on a device belongs to a set of another size.
    #[error(
        "'{device}' belongs to a media set of {found} families, but {expected} devices were named"
    )]
    FamilyCountDiffers {
        /// The device.
        device: String,
        /// Families its header speaks of.
        found: usize,
        /// Devices that were named.
        expected: usize,
    },
    /// The same family was named twice.
    #[error("'{device}' and '{other}' hold the same media family {family}")]
    FamilyTwice {
        /// The second device.
        device: String,
        /// The first one.
        other: String,
        /// The family's number.
        family: u16,
    },
    /// A device belongs to another media set.
    #[error("'{device}' is not part of the media set")]
    OtherMediaSet {
        /// The device.
        device: String,
    },
    /// The families disagree about a backup set.
    #[error(
        "'{device}' (family {family}) does not hold the backup set that the other families hold"
    )]
    OtherBackupSet {
        /// The device.
        device: String,
        /// The family's number.
        family: u16,
    },
    /// A copy of a family does not hold a set that others hold: it is an older copy, or lost its end.
    #[error(
        "'{device}' (media family {family}) holds {holds} backup set {position}, which '{other}' holds complete"
    )]
    FamilyBehind {
        /// The device.
        device: String,
        /// The family's number.
        family: u16,
        /// What it holds in the place of the set.
        holds: Holds,
        /// The set that others hold.
        position: u16,
        /// A device that holds it.
        other: String,
    },
    /// The mirrors do not have the shape of the first copy, or of the media.
    #[error("the media set has {expected} mirrors per family, but {provided} were named")]
    MirrorCount {
        /// Copies the media set has.
        expected: usize,
        /// Copies that were named.
        provided: usize,
    },
    /// A mirror has another number of devices than the first copy.
    #[error("a mirror needs {expected} devices like the first copy, but {provided} were named")]
    MirrorShape {
        /// Devices of the first copy.
        expected: usize,
        /// Devices of the mirror.
        provided: usize,
    },
    /// A mirrored media set must be begun with FORMAT.
    #[error("a mirrored media set begins with FORMAT")]
    MirrorNeedsFormat,
    /// The media's name is not the one given.
    #[error("'{device}' has media name '{found}', not '{given}'")]
    MediaNameDiffers {
        /// The device.
        device: String,
        /// Name on the media.
        found: String,
        /// Name in the statement.
        given: String,
    },
    /// A set on the media has not expired yet.
    #[error("'{device}' expires on {expires}")]
    NotExpired {
        /// The device.
        device: String,
        /// Until when it is protected.
        expires: Moment,
    },
    /// The media was formatted with another block size.
    #[error("'{device}' was formatted with a block size of {found}, not {given}")]
    BlockSizeDiffers {
        /// The device.
        device: String,
        /// Block size of the media.
        found: u32,
        /// `BLOCKSIZE` of the statement.
        given: u32,
    },
    /// There is no set at this position.
    #[error("'{device}' has no backup set {position}; it holds {count}")]
    SetNotFound {
        /// The device.
        device: String,
        /// The position asked for.
        position: u16,
        /// How many sets there are.
        count: usize,
    },
    /// The set was never finished.
    #[error("backup set {position} on '{device}' is incomplete")]
    SetIncomplete {
        /// The device where its end is missing.
        device: String,
        /// The set.
        position: u16,
    },
    /// The set does not hold what it should.
    #[error("backup set on '{device}' is damaged: {damage}")]
    SetDamaged {
        /// The device, or all of them.
        device: String,
        /// What is wrong.
        damage: Damage,
    },
    /// A page of the database has a wrong checksum.
    #[error("page {} of '{}' has a wrong checksum", .0.page, .0.file)]
    PageDamaged(DamagedPage),
    /// A database larger than its set can describe.
    #[error("a frame of {bytes} bytes does not fit a chunk")]
    FrameTooLarge {
        /// The size.
        bytes: usize,
    },
}

/// What a media family holds in the place of a set that others hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holds {
    /// It ends before.
    Nothing,
    /// Less than all of its data.
    Part,
    /// Another set.
    Another,
}

impl std::fmt::Display for Holds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Nothing => "nothing of",
            Self::Part => "only a part of",
            Self::Another => "another set in the place of",
        })
    }
}

/// What is wrong with a backup set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    /// A chunk's bytes are not those that were written.
    #[error(
        "chunk {ordinal} at offset {offset}: {part} checksum {found:#018x}, its header says {expected:#018x}"
    )]
    Checksum {
        /// The chunk.
        ordinal: u64,
        /// Where it is in the family.
        offset: u64,
        /// `stored` or `uncompressed`.
        part: &'static str,
        /// Computed.
        found: u64,
        /// Recorded.
        expected: u64,
    },
    /// A chunk is not what was encrypted under this number.
    #[error(
        "chunk {ordinal} at offset {offset} is not authentic: changed, moved, or of another set"
    )]
    Unauthentic {
        /// The chunk.
        ordinal: u64,
        /// Where it is in the family.
        offset: u64,
    },
    /// The set's configuration is not what was written.
    #[error("the configuration of the encrypted set is not authentic")]
    UnauthenticConfiguration,
    /// A family ends the set otherwise than the first one.
    #[error("media family {family} ends the set with another configuration than the first family")]
    ConfigurationDiffers {
        /// The family's number.
        family: u16,
    },
    /// The media header or the start of the set were changed since the set was written.
    #[error(
        "the set was not written behind this media header and this start of the set (media family {family}): one of them was changed"
    )]
    Unbound {
        /// The family's number.
        family: u16,
    },
    /// A chunk cannot be decoded.
    #[error("chunk {ordinal} at offset {offset} cannot be decompressed: {reason}")]
    Undecodable {
        /// The chunk.
        ordinal: u64,
        /// Where it is in the family.
        offset: u64,
        /// What the decoder says.
        reason: windlass_codec::Error,
    },
    /// A chunk comes twice, or its number is beyond the set's.
    #[error("chunk {ordinal} does not belong here: the set has {count} chunks, each once")]
    UnexpectedChunk {
        /// The chunk.
        ordinal: u64,
        /// Chunks in the set.
        count: u64,
    },
    /// A chunk says it comes from elsewhere.
    #[error("chunk {ordinal} at offset {offset} belongs to another backup set or file")]
    ForeignChunk {
        /// The chunk.
        ordinal: u64,
        /// Where it is in the family.
        offset: u64,
    },
    /// Chunks are missing.
    #[error("{found} of {expected} chunks are there")]
    MissingChunks {
        /// Found.
        found: u64,
        /// Recorded.
        expected: u64,
    },
    /// The totals do not match.
    #[error("the sum over all chunks is {found:#018x}, the set says {expected:#018x}")]
    SetChecksum {
        /// Computed.
        found: u64,
        /// Recorded.
        expected: u64,
    },
    /// A chunk holds what another one holds.
    #[error("chunk {ordinal} at offset {offset} holds what another chunk of the set holds")]
    Overlap {
        /// The chunk.
        ordinal: u64,
        /// Where it is in the family.
        offset: u64,
    },
    /// No chunk holds what the set should hold.
    #[error("no chunk holds {0}")]
    Missing(Stretches),
    /// Chunks hold what the set should not hold.
    #[error("chunks hold what the set should not hold: {0}")]
    Unexpected(Stretches),
    /// The extents in the set are not those that it names by their sum.
    #[error("of file '{file}' there are {found} extents, which are not the {expected} of the set")]
    OtherExtents {
        /// Logical name.
        file: String,
        /// Extents that are there.
        found: u64,
        /// Extents of the set.
        expected: u64,
    },
    /// What the set holds of a file is not told in any known way.
    #[error("what the set holds of file '{file}' cannot be read")]
    HeldUnreadable {
        /// Logical name.
        file: String,
    },
    /// Bytes of the database are not covered by any chunk.
    #[error("the chunks hold {found} of {expected} bytes of the database")]
    Coverage {
        /// Found.
        found: u64,
        /// Recorded.
        expected: u64,
    },
}
