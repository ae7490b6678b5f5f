//! Errors of backups, restores and verifications.

use windlass_base::Message;
use windlass_base::message::table;
use windlass_base::panic::Panicked;
use windlass_crypt::Error as CryptError;
use windlass_pipeline::{Damage, DamagedChunks, DigestError, Error};

use super::{device_message, media_message, os_error, source_message};

/// What went wrong, in the order in which SQL Server tells it; the closing 3013 is the caller's.
///
/// `state` is 1 for backups and 2 for restores.
pub fn pipeline_messages(error: &Error, state: u8) -> Vec<Message> {
    match error {
        Error::SetDamaged { device, damage } => damage_message(device, damage),
        Error::NotExpired { device, expires } => {
            vec![table::not_expired(device, expires), table::aborted()]
        }
        Error::Media { device, source } => {
            let mut messages = vec![media_message(device, source)];
            // The offset and the field are what one needs to look into the file.
            messages.push(table::note(format!("'{device}': {source}.")));
            messages
        }
        Error::SetNotFound {
            device,
            position,
            count,
        } => set_not_found(device, *position, *count),
        Error::Key {
            device,
            source: CryptError::KeyMissing { recipients },
        } => key_missing(device, recipients),
        Error::FamilyBehind { device, family, .. } => vec![
            table::set_identity_missing(device, family),
            table::newest_copy_needed(error, family),
        ],
        other => vec![message(other, state)],
    }
}

fn message(error: &Error, state: u8) -> Message {
    match error {
        Error::Device(error) => device_message(error, state),
        Error::Source(error) => source_message(error),
        Error::Codec(error) => table::instance_failed("cannot compress", error),
        Error::Digests(error) => digest_message(error),
        Error::Cancelled => table::aborted(),
        Error::Panicked(panicked) => defect_message(panicked),
        Error::EndedEarly { .. } | Error::NotStored(_) | Error::StoredTwice(_) => {
            table::defect(format!("backup: {error}"), DEFECT_HINT)
        }
        Error::NotWritten { .. } => table::defect(format!("restore: {error}"), DEFECT_HINT),
        Error::VolumeEmpty { device } => table::volume_empty(device),
        Error::FamiliesMissing { expected, provided } => {
            table::families_missing(expected, provided)
        }
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
        Error::OtherMediaSet { device } => table::not_part_of_media_set(device),
        Error::OtherBackupSet { device, family } => table::set_identity_missing(device, family),
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
        Error::PageDamaged(page) => table::logical_consistency(
            "incorrect checksum",
            format!("({}:{})", page.file_id, page.page),
            "its place",
            &page.file,
        ),
        Error::FrameTooLarge { .. } => table::internal_consistency(),
        Error::Crypt(source) => table::encryption_failed(source),
        Error::Key { device, source } => table::encryption_failed(format!("'{device}': {source}")),
        Error::NotEncrypted { .. }
        | Error::EncryptedBase { .. }
        | Error::KeyAndKeyFile { .. }
        | Error::KeyFile { .. } => table::encryption_failed(error),
        other => table::instance_failed("cannot go on", other),
    }
}

const DEFECT_HINT: &str = "Nothing that was begun counts as done. Run the statement again; if it stops \
                           again, report this message with the lines on standard error that begin \
                           with 'thread'.";

/// A thread of this program panicked. Nothing that it had begun was taken for done.
pub fn defect_message(panicked: &Panicked) -> Message {
    let Panicked { worker, reason } = panicked;
    table::defect(format!("{worker}: {reason}"), DEFECT_HINT)
}

/// Certificates are named as SQL Server names them; it knows no passphrases.
fn key_missing(device: &str, recipients: &str) -> Vec<Message> {
    let names = recipients.split(", ");
    let (certificates, passphrases): (Vec<_>, Vec<_>) =
        names.partition(|name| name.starts_with("0x"));
    let certificates = (!certificates.is_empty())
        .then(|| table::certificate_not_found(certificates.join(", ")).with_state(3));
    let passphrase = (!passphrases.is_empty()).then(|| table::passphrase_needed(device));
    certificates.into_iter().chain(passphrase).collect()
}

fn digest_message(error: &DigestError) -> Message {
    match error {
        DigestError::Io { path, source } => {
            table::cannot_open_file(path.display(), os_error(source))
        }
        other => table::set_not_comparable(other),
    }
}

/// A position at which there is no set: SQL Server's message, and how many there are.
pub fn set_not_found(device: &str, position: u16, count: usize) -> Vec<Message> {
    let are = if count == 1 {
        "is 1 backup set"
    } else {
        "are {} backup sets"
    };
    let are = are.replace("{}", &count.to_string());
    vec![
        table::file_id_malformed(position, device),
        table::note(format!(
            "On '{device}' there {are}; there is no set {position}."
        )),
    ]
}

/// What is wrong with a backup set: SQL Server's message and the place.
pub fn damage_message(device: &str, damage: &Damage) -> Vec<Message> {
    vec![
        table::set_damaged(),
        table::note(format!("'{device}': {damage}.")),
    ]
}

/// Stretches that are told one by one.
const STRETCHES_TOLD: usize = 20;

/// What a set does not give any more: all of it, one stretch a line as far as that is of use.
pub fn loss_messages(damaged: &DamagedChunks) -> Vec<Message> {
    let mut messages = vec![table::set_damaged()];
    let mut note = |text: String| messages.push(table::note(text));
    if let Some((device, damage)) = &damaged.first {
        let chunks = damaged.count;
        note(format!(
            "{chunks} of the set's chunks are damaged. The first, on '{device}': {damage}."
        ));
    }
    if damaged.missing_count > 0 {
        let chunks = damaged.missing_count;
        note(format!("{chunks} of the set's chunks are missing."));
    }
    for (what, stretches) in [
        ("Damaged", &damaged.stretches),
        ("Missing", &damaged.missing),
    ] {
        let told = stretches.named.len().min(STRETCHES_TOLD);
        for stretch in &stretches.named[..told] {
            note(format!("{what}: {stretch}."));
        }
        let (count, bytes) = (stretches.count, stretches.bytes);
        if count > told as u64 {
            note(format!(
                "{what}: {count} stretches with {bytes} bytes in all."
            ));
        }
    }
    messages
}
