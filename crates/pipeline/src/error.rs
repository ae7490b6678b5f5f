//! Errors of backup, restore and verification.

use std::io;

use windlass_base::Moment;
use windlass_base::panic::Panicked;
use windlass_media::{MediaError, ReadError};

use crate::coverage::FileRanges;
use crate::digests::DigestError;
use crate::media_set::PartlyFinished;
use crate::report::DamagedPage;

/// The first error, never one of its consequences.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Device(#[from] windlass_device::Error),
    #[error(transparent)]
    Source(#[from] windlass_source::Error),
    #[error(transparent)]
    Codec(#[from] windlass_codec::Error),
    #[error(transparent)]
    Digests(#[from] DigestError),
    /// The caller does not let what is on a medium be overwritten.
    #[error("{}", .0.text)]
    Guarded(Box<windlass_base::Message>),
    /// The content of a device is wrong.
    #[error("'{device}': {source}")]
    Media {
        device: String,
        #[source]
        source: windlass_media::MediaError,
    },
    #[error(transparent)]
    Crypt(#[from] windlass_crypt::Error),
    /// The key of an encrypted set is not available.
    #[error("'{device}': {source}")]
    Key {
        device: String,
        #[source]
        source: windlass_crypt::Error,
    },
    /// No given key opens the set, and the key files next to the media cannot be used.
    #[error("'{device}': {source}. The key file {file} cannot be used either: {reason}")]
    KeyAndKeyFile {
        device: String,
        /// Why no key on the media can be used.
        #[source]
        source: windlass_crypt::Error,
        /// Its path or URL.
        file: String,
        reason: String,
    },
    /// A key file that would be replaced cannot be read.
    #[error(
        "the key file {file} cannot be used: {reason}. Its recipients would lose access: restore the \
         file, or drop them with --replace"
    )]
    KeyFile {
        /// Its path or URL.
        file: String,
        reason: String,
    },
    #[error("the backup set on '{device}' is not encrypted, but a key was given for it")]
    NotEncrypted {
        /// The device.
        device: String,
    },
    /// A signature was required, but the set has none, or one of another key.
    #[error("{}", not_signed(device, found.as_deref(), wanted))]
    NotSigned {
        /// The device.
        device: String,
        /// The fingerprint of the key with which it says that it was signed.
        found: Option<String>,
        /// Fingerprints of the keys that were named.
        wanted: Vec<String>,
    },
    /// The digests in an encrypted set are not authenticated without its payloads.
    #[error(
        "the full backup on '{device}' is encrypted: only the instance that made it can take differentials against it"
    )]
    EncryptedBase { device: String },
    /// A bug: a thread of the run panicked.
    #[error(transparent)]
    Panicked(#[from] Panicked),
    /// The system has no thread for a stage of the run.
    #[error("no thread can be started for the {worker}: {reason}")]
    NoThread {
        worker: &'static str,
        reason: String,
    },
    /// A bug: a thread exited before its work was done.
    #[error("the {worker} ended before its work was finished")]
    EndedEarly { worker: &'static str },
    /// A bug: not everything that was to be backed up is on the media.
    #[error("the backup lacks {0}")]
    NotStored(FileRanges),
    /// A bug: part of the database is on the media twice.
    #[error("the backup would contain twice, or without being requested, {0}")]
    StoredTwice(FileRanges),
    /// A compressor or filter is at fault: what it made does not give back what it was made of.
    #[error(
        "a chunk that {algorithm} compressed does not expand to what was read (filter: {filter}): {reason}"
    )]
    NotReversible {
        algorithm: windlass_codec::Algorithm,
        filter: windlass_codec::Filter,
        reason: String,
    },
    /// A bug: the target did not receive everything in the set.
    #[error("{found} of the {expected} bytes of file '{file}' in the set were written")]
    NotWritten {
        /// Logical name.
        file: String,
        /// Bytes written.
        found: u64,
        expected: u64,
    },
    /// The observer requested a stop.
    #[error("the operation was cancelled")]
    Cancelled,
    /// A device that should belong to the media set is empty.
    #[error("'{device}' is empty")]
    VolumeEmpty { device: String },
    /// Fewer devices were named than the media set has families.
    #[error("the media set has {expected} families, but {provided} were named")]
    FamiliesMissing {
        expected: usize,
        provided: usize,
        /// Which families the named devices have, if they were read.
        named: Vec<(String, u16)>,
    },
    /// The media on a device belong to a set of another size.
    #[error(
        "'{device}' belongs to a media set of {found} families, but {expected} devices were named"
    )]
    FamilyCountDiffers {
        device: String,
        /// According to its header.
        found: usize,
        /// According to the request.
        expected: usize,
    },
    #[error("'{device}' and '{other}' hold the same media family {family}")]
    FamilyTwice {
        /// The second device.
        device: String,
        /// The first one.
        other: String,
        family: u16,
    },
    #[error("'{device}' is not part of the media set")]
    OtherMediaSet { device: String },
    /// The families disagree about a backup set.
    #[error(
        "'{device}' (family {family}) does not hold the backup set that the other families hold"
    )]
    OtherBackupSet { device: String, family: u16 },
    /// A backup was written, and is not there.
    #[error("the backup set was written to '{devices}', but is not there: {reason}")]
    WrittenLost { devices: String, reason: String },
    /// A backup was written into a store, which does not let it be read back.
    #[error("the backup set was written to '{devices}', but could not be read back: {reason}")]
    WrittenUnread { devices: String, reason: String },
    /// A copy of a family lacks a set that others have: it is an older copy, or lost its end.
    #[error(
        "'{device}' (media family {family}) holds {holds} backup set {position}, which '{other}' holds complete"
    )]
    FamilyBehind {
        device: String,
        family: u16,
        /// What the family contains at the position of the set.
        holds: Holds,
        /// The set that others have.
        position: u16,
        /// A device that has it.
        other: String,
    },
    /// A backup was interrupted while its files got their names.
    #[error("{}{files}", cause.as_ref().map(|cause| format!("{cause}: ")).unwrap_or_default())]
    HalfNamed {
        /// Why the named files do not fit together; `None` if a file that completes a set would be removed.
        cause: Option<Box<Error>>,
        /// The files that do.
        files: String,
    },
    /// The mirrors do not match the first copy, or the media.
    #[error("the media set has {expected} mirrors per family, but {provided} were named")]
    MirrorCount { expected: usize, provided: usize },
    #[error("a mirror needs {expected} devices like the first copy, but {provided} were named")]
    MirrorShape { expected: usize, provided: usize },
    /// A mirrored media set must be created with FORMAT.
    #[error("a mirrored media set must be created with FORMAT")]
    MirrorNeedsFormat,
    #[error("'{device}' has media name '{found}', not '{given}'")]
    MediaNameDiffers {
        device: String,
        found: String,
        given: String,
    },
    #[error("'{device}' expires on {expires}")]
    NotExpired { device: String, expires: Moment },
    #[error("'{device}' was formatted with a block size of {found}, not {given}")]
    BlockSizeDiffers {
        device: String,
        found: u32,
        given: u32,
    },
    #[error("'{device}' has no backup set {position}; it holds {count}")]
    SetNotFound {
        device: String,
        position: u16,
        /// Number of sets on the device.
        count: usize,
    },
    #[error("backup set {position} on '{device}' is incomplete")]
    SetIncomplete {
        /// The device where its end is missing.
        device: String,
        position: u16,
    },
    #[error("backup set {position}: {partly}")]
    PartlyFinished {
        position: u16,
        partly: PartlyFinished,
    },
    #[error("backup set on '{device}' is damaged: {damage}")]
    SetDamaged {
        /// The device, or all of them.
        device: String,
        damage: Damage,
    },
    #[error("page {} at byte {} of '{}' has an incorrect checksum", .0.page, .0.offset, .0.file)]
    PageDamaged(DamagedPage),
    /// A frame larger than a chunk can describe.
    #[error("a frame of {bytes} bytes does not fit a chunk")]
    FrameTooLarge { bytes: usize },
}

fn not_signed(device: &str, found: Option<&str>, wanted: &[String]) -> String {
    let wanted = wanted.join(" or ");
    match found {
        None => format!(
            "the backup set on '{device}' is not signed; a signature with the key {wanted} was asked for"
        ),
        Some(found) => format!(
            "the backup set on '{device}' is signed with the key {found}; a signature with the key {wanted} was asked for"
        ),
    }
}

/// What a media family has at the position of a set that others have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holds {
    /// It ends before.
    Nothing,
    /// Part of its data.
    Part,
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

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    /// The bytes of a chunk are not those that were written.
    #[error(
        "chunk {ordinal} at offset {offset}: {part} checksum {found:#018x}, its header says {expected:#018x}"
    )]
    Checksum {
        ordinal: u64,
        /// Offset in the family.
        offset: u64,
        /// `stored` or `uncompressed`.
        part: &'static str,
        found: u64,
        expected: u64,
    },
    /// A chunk is not what was encrypted under this number.
    #[error(
        "chunk {ordinal} at offset {offset} is not authentic: changed, moved, or of another set"
    )]
    Unauthentic {
        ordinal: u64,
        /// Offset in the family.
        offset: u64,
    },
    /// The configuration of the set is not as it was written.
    #[error("the configuration of the encrypted set is not authentic")]
    UnauthenticConfiguration,
    /// The set claims a signer who did not sign it.
    #[error("the signature of the set is forged, or the set was changed after it was signed")]
    ForgedSignature,
    /// The chunk headers of a family are not those that were signed.
    #[error(
        "the chunks of media family {family} are not those that were signed: changed, left out, added or moved"
    )]
    OtherChunks {
        /// The family's number.
        family: u16,
    },
    /// A payload is not what was signed.
    #[error("chunk {ordinal} at offset {offset} does not hold what was signed")]
    UnsignedPayload {
        /// The chunk.
        ordinal: u64,
        /// Where it is in the family.
        offset: u64,
    },
    /// The end of the set in a family differs from the first family.
    #[error(
        "media family {family} ends the set with a different configuration from the first family"
    )]
    ConfigurationDiffers { family: u16 },
    /// The media header or the start of the set changed after the set was written.
    #[error(
        "the set does not match its media header and its start (media family {family}): one of \
         them was changed"
    )]
    Unbound { family: u16 },
    #[error("chunk {ordinal} at offset {offset} cannot be decompressed: {reason}")]
    Undecodable {
        ordinal: u64,
        /// Offset in the family.
        offset: u64,
        reason: windlass_codec::Error,
    },
    /// A codec or a filter that this version does not have.
    #[error(
        "chunk {ordinal} at offset {offset} was made with {part} {number}, which is unknown here: was it written by a \
         newer version?"
    )]
    UnknownMethod {
        ordinal: u64,
        /// Offset in the family.
        offset: u64,
        /// `codec` or `filter`.
        part: &'static str,
        number: u16,
    },
    /// A chunk occurs twice, or its number is beyond the end of the set.
    #[error("chunk {ordinal} does not belong here: the set has {count} chunks, each once")]
    UnexpectedChunk { ordinal: u64, count: u64 },
    /// A chunk names another set or file as its origin.
    #[error("chunk {ordinal} at offset {offset} belongs to another backup set or file")]
    ForeignChunk {
        ordinal: u64,
        /// Offset in the family.
        offset: u64,
    },
    #[error("{found} of {expected} chunks were found")]
    MissingChunks { found: u64, expected: u64 },
    /// The totals do not match.
    #[error("the checksum of all chunks is {found:#018x}, the set says {expected:#018x}")]
    SetChecksum { found: u64, expected: u64 },
    /// A chunk has the content of another chunk.
    #[error(
        "chunk {ordinal} at offset {offset} has the same content range as another chunk of the set"
    )]
    Overlap {
        ordinal: u64,
        /// Offset in the family.
        offset: u64,
    },
    /// No chunk contains these ranges of the set.
    #[error("no chunk holds {0}")]
    Missing(FileRanges),
    /// Chunks contain ranges that the set should not contain.
    #[error("chunks contain data that the set should not contain: {0}")]
    Unexpected(FileRanges),
    /// The extents in the set do not match the digest of them in its configuration.
    #[error("file '{file}' has {found} extents, not the {expected} of the set")]
    OtherExtents {
        /// Logical name.
        file: String,
        found: u64,
        expected: u64,
    },
    /// The list of ranges of a file is in an unknown encoding.
    #[error("the extent list of file '{file}' in the set cannot be read")]
    HeldUnreadable {
        /// Logical name.
        file: String,
    },
    /// Some bytes of the database are in no chunk.
    #[error("the chunks contain {found} of {expected} bytes of the database")]
    Coverage { found: u64, expected: u64 },
}

impl Error {
    pub(crate) fn no_thread(worker: &'static str, error: &std::io::Error) -> Self {
        Self::NoThread {
            worker,
            reason: error.to_string(),
        }
    }
}

/// Adds the device to a media error; the device's own errors say nothing of the media.
pub(crate) fn media_error(device: &str, source: MediaError) -> Error {
    match source.read_failure() {
        Some(failure) => read_failed(device, failure),
        None => Error::Media {
            device: device.to_owned(),
            source,
        },
    }
}

pub(crate) fn read_failed(device: &str, failure: &ReadError) -> Error {
    let source = match failure.source.raw_os_error() {
        Some(code) => io::Error::from_raw_os_error(code),
        None => io::Error::new(failure.source.kind(), failure.source.to_string()),
    };
    windlass_device::Error::new(windlass_device::Operation::Read, device, source).into()
}
