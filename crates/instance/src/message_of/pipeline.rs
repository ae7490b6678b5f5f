//! Errors of backups, restores and verifications.

use windlass_base::Message;
use windlass_base::message::table;
use windlass_base::panic::Panicked;
use windlass_crypt::Error as CryptError;
use windlass_pipeline::{Damage, DamagedChunks, DamagedPage, DigestError, Error};

use super::{device_message, media_message, needed_base, source_message, unreadable_file};

/// The messages for an error, in SQL Server's order; the caller appends 3013.
pub(super) fn pipeline_messages(error: &Error) -> Vec<Message> {
    let mut messages = vec![message(error)];
    messages.extend(further_message(error));
    messages
}

/// A message that follows SQL Server's.
fn further_message(error: &Error) -> Option<Message> {
    match error {
        Error::SetDamaged { device, damage } => Some(place_of_damage(device, damage)),
        Error::NotExpired { .. } => Some(table::aborted()),
        Error::Source(error) => needed_base(error),
        // The offset and the field are needed to examine the file.
        Error::Media { device, source } => Some(table::found_on_device(device, source)),
        Error::SetNotFound {
            device,
            position,
            count,
        } if *count > 0 => Some(sets_there(device, *position, *count)),
        Error::Key {
            device,
            source: CryptError::KeyMissing { recipients },
        } => certificates(recipients).and(passphrase(device, recipients)),
        Error::HalfNamed {
            cause: Some(_),
            files,
        } => Some(table::half_named(files)),
        Error::FamilyBehind { family, .. } => Some(table::newest_copy_needed(error, family)),
        _ => None,
    }
}

fn message(error: &Error) -> Message {
    match error {
        Error::Device(error) => device_message(error),
        Error::Guarded(reason) => (**reason).clone(),
        Error::Source(error) => source_message(error),
        Error::Codec(error) => table::instance_failed("cannot compress", error),
        Error::Digests(error) => digest_message(error),
        Error::Cancelled => table::aborted(),
        Error::Panicked(panicked) => defect_message(panicked),
        Error::NoThread { .. } => table::no_thread(error),
        Error::EndedEarly { .. }
        | Error::NotStored(_)
        | Error::StoredTwice(_)
        | Error::NotReversible { .. }
        | Error::NotWritten { .. } => defect(error),
        Error::HalfNamed { cause, files } => half_named(cause.as_deref(), files),
        Error::VolumeEmpty { device } => table::volume_empty(device),
        Error::FamiliesMissing {
            expected,
            provided,
            named,
        } => table::families_missing(expected, provided).with_advice(missing(*expected, named)),
        Error::FamilyCountDiffers {
            device,
            found,
            expected,
        } => table::family_count_differs(device, found, expected),
        Error::FamilyTwice {
            device,
            other,
            family,
        } => table::family_given_twice(device, family, other),
        Error::OtherMediaSet { device } => of_another_backup(device),
        Error::OtherBackupSet { device, family } | Error::FamilyBehind { device, family, .. } => {
            table::set_identity_missing(device, family)
        }
        Error::MirrorCount { .. } => table::mirror_member_count(),
        Error::MirrorNeedsFormat => table::format_needed_for_mirror(),
        Error::MediaNameDiffers {
            device,
            found,
            given,
        } => table::media_name_differs(given, found, device),
        Error::BlockSizeDiffers {
            device,
            found,
            given,
        } => table::block_size_incompatible(device, found, given),
        Error::SetIncomplete { device, .. } => table::set_incomplete(device),
        Error::WrittenLost { .. } | Error::WrittenUnread { .. } => written(error),
        Error::PartlyFinished { position, partly } => table::set_partly_finished(position, partly),
        Error::PageDamaged(DamagedPage { page, offset, file }) => {
            table::logical_consistency("incorrect checksum", page, format!("0x{offset:x}"), file)
        }
        Error::FrameTooLarge { .. } => table::internal_consistency(),
        Error::Key { device, source } => key_message(device, source),
        Error::NotSigned { .. } => table::not_signed(error),
        Error::Crypt(_)
        | Error::NotEncrypted { .. }
        | Error::EncryptedBase { .. }
        | Error::KeyAndKeyFile { .. }
        | Error::KeyFile { .. } => table::encryption_failed(error),
        Error::MirrorShape { .. } => table::instance_failed("cannot go on", error),
        Error::SetDamaged { .. } => table::set_damaged(),
        Error::NotExpired { device, expires } => table::not_expired(device, expires),
        Error::Media { device, source } => media_message(device, source),
        Error::SetNotFound {
            device,
            position,
            count,
        } => no_such_set(device, *position, *count),
    }
}

const DEFECT_HINT: &str = "Nothing was completed. Run the statement again; if it fails again, \
                           report this message and the lines on standard error that begin with \
                           'thread'.";

const OTHER_ALGORITHM: &str = "Nothing was completed. Back up with another algorithm, or without compression, and \
                               report this message with the version and the processor.";

/// The message for a panic of a thread. What it had begun is not reported as done.
pub fn defect_message(panicked: &Panicked) -> Message {
    let Panicked { worker, reason } = panicked;
    table::defect(format!("{worker}: {reason}"), DEFECT_HINT)
}

fn key_message(device: &str, error: &CryptError) -> Message {
    let missing = match error {
        CryptError::KeyMissing { recipients } => {
            certificates(recipients).or_else(|| passphrase(device, recipients))
        }
        _ => None,
    };
    missing.unwrap_or_else(|| table::encryption_failed(format!("'{device}': {error}")))
}

fn half_named(cause: Option<&Error>, files: &str) -> Message {
    cause.map_or_else(|| table::half_named(files), message)
}

fn of_another_backup(device: &str) -> Message {
    table::not_part_of_media_set(device).with_advice(Some(table::OTHER_MEDIA_SET))
}

/// Names certificates as SQL Server does; SQL Server has no passphrases.
fn certificates(recipients: &str) -> Option<Message> {
    let names = recipients.split(", ");
    let thumbprints: Vec<_> = names.filter(|name| name.starts_with("0x")).collect();
    (!thumbprints.is_empty()).then(|| {
        table::certificate_not_found(thumbprints.join(", "))
            .with_state(3)
            .with_advice(Some(table::CERTIFICATE_ADVICE))
    })
}

fn passphrase(device: &str, recipients: &str) -> Option<Message> {
    let mut names = recipients.split(", ");
    names
        .any(|name| !name.starts_with("0x"))
        .then(|| table::passphrase_needed(device))
}

fn digest_message(error: &DigestError) -> Message {
    match error {
        DigestError::Io { path, source } => unreadable_file(path, source),
        DigestError::Malformed { .. } | DigestError::TooManyFiles { .. } => {
            table::set_not_comparable(error)
        }
    }
}

/// The messages for a position without a set: SQL Server's, and the number of sets.
pub fn set_not_found(device: &str, position: u16, count: usize) -> Vec<Message> {
    let there = (count > 0).then(|| sets_there(device, position, count));
    let error = no_such_set(device, position, count);
    std::iter::once(error).chain(there).collect()
}

fn no_such_set(device: &str, position: u16, count: usize) -> Message {
    match count {
        0 => table::volume_empty(device),
        _ => table::file_id_malformed(position, device),
    }
}

fn sets_there(device: &str, position: u16, count: usize) -> Message {
    let are = if count == 1 {
        "is 1 backup set"
    } else {
        "are {} backup sets"
    };
    let are = are.replace("{}", &count.to_string());
    table::sets_on_device(device, are, position)
}

/// The messages for a damaged backup set: SQL Server's, and the place.
pub fn damage_message(device: &str, damage: &Damage) -> Vec<Message> {
    vec![table::set_damaged(), place_of_damage(device, damage)]
}

fn place_of_damage(device: &str, damage: &Damage) -> Message {
    table::found_on_device(device, damage)
}

/// Maximum number of ranges listed individually.
const RANGES_NAMED_MAX: usize = 20;

/// The messages for data lost from a set: all of it, or one range per line up to the maximum.
pub fn loss_messages(damaged: &DamagedChunks) -> Vec<Message> {
    let mut messages = vec![table::set_damaged()];
    if let Some((device, damage)) = &damaged.first {
        let chunks = damaged.count;
        messages.push(table::chunks_damaged(chunks, device, damage));
    }
    if damaged.missing_count > 0 {
        let chunks = damaged.missing_count;
        messages.push(table::chunks_missing(chunks));
    }
    for (what, ranges) in [("Damaged", &damaged.ranges), ("Missing", &damaged.missing)] {
        let reported = ranges.named.len().min(RANGES_NAMED_MAX);
        for range in &ranges.named[..reported] {
            messages.push(table::ranges_lost(what, range));
        }
        let (count, bytes) = (ranges.count, ranges.bytes);
        if count > reported as u64 {
            messages.push(table::ranges_lost_in_total(what, count, bytes));
        }
    }
    messages
}

/// What could not be read back when it was written.
fn written(error: &Error) -> Message {
    match error {
        Error::WrittenUnread { devices, reason } => table::written_set_unread(devices, reason),
        Error::WrittenLost { devices, reason } => table::written_set_lost(devices, reason),
        _ => defect(error),
    }
}

/// What only a defect of the program explains.
fn defect(error: &Error) -> Message {
    match error {
        Error::NotReversible { .. } => table::defect(format!("backup: {error}"), OTHER_ALGORITHM),
        Error::NotWritten { .. } => table::defect(format!("restore: {error}"), DEFECT_HINT),
        _ => table::defect(format!("backup: {error}"), DEFECT_HINT),
    }
}

/// Which of the families of a media set are not named.
fn missing(expected: usize, named: &[(String, u16)]) -> Option<String> {
    const SHOWN: usize = 8;
    if named.is_empty() {
        return None;
    }
    let is_named = |number: usize| {
        named
            .iter()
            .any(|(_, family)| usize::from(*family) == number)
    };
    let absent = (1..=expected).filter(|number| !is_named(*number));
    let mut numbers: Vec<String> = absent
        .clone()
        .take(SHOWN)
        .map(|number| number.to_string())
        .collect();
    if absent.count() > SHOWN {
        numbers.push("...".to_owned());
    }
    let given = named
        .iter()
        .take(SHOWN)
        .map(|(device, family)| format!("'{device}' is family {family}"));
    let given = given.collect::<Vec<_>>().join(", ");
    Some(format!("{given}; missing: {}.", numbers.join(", ")))
}
