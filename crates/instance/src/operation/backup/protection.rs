//! Whether a differential is protected as its base is.
//!
//! A restore refuses what is less protected than what it builds on, because anyone could have made it; and its
//! content would be readable for those from whom the full backup was kept. So this is found when the differential
//! is made, not when it is needed.

use windlass_base::Guid;
use windlass_base::message::table;
use windlass_catalog::{CertificateRecord, PastBackup};
use windlass_crypt::{Certificate, KeyBlock, KeyRing, Recipient, RecipientKind};
use windlass_device::DeviceAddress;
use windlass_media::SetConfiguration;
use windlass_pipeline::{Encryption, MediaSet, ReadKeys};
use windlass_source::{Protection, Sealing};

use super::base::{MissingBase, Wanted, past};
use crate::operation::Reach;
use crate::operation::media::sealing_of;
use crate::{Failure, Session, Sink};

/// What the differential lacks, and what to write.
const NOT_ENCRYPTED: &str = "that is encrypted, and this would not be. Give it the same key (--passphrase-file, --certificate; ENCRYPTION)";
const WEAKER: &str = "that is encrypted for a passphrase, and this would be for a certificate, with which anyone can encrypt. Give it the same passphrase (--passphrase-file)";
const OTHER_KEY: &str = "none of the keys of this one opens that. Give it the same key (--passphrase-file, --certificate; ENCRYPTION)";
const NOT_SIGNED: &str =
    "that is signed, and this would not be. Sign it too (--sign-with; SIGN_WITH)";

/// Warns, or refuses, if the differential is less protected than its base, or needs another key. What cannot be
/// opened is checked after the history.
///
/// # Errors
/// What it lacks, if [`MissingBase::Refuses`] applies.
pub(super) fn check(
    session: &mut Session,
    wanted: &Wanted<'_>,
    base: Guid,
    encryption: Option<&Encryption>,
    sink: &mut dyn Sink,
) -> Result<(), Failure> {
    let past = past(session, base)?;
    let reach = Reach::of(&session.instance)?;
    let lack = match opened(wanted, base, past.as_ref(), &reach) {
        Some((media, set)) => lack(session, wanted, &media, &set, encryption)?,
        None => lack_by_history(session, base, encryption)?,
    };
    let Some(lack) = lack else {
        return Ok(());
    };
    let database = &wanted.record.name;
    match wanted.options.missing_base {
        _ if wanted.options.is_as_protected => {
            Err(table::differential_less_protected(database, lack).into())
        }
        MissingBase::Refuses => Err(table::differential_less_protected(database, lack).into()),
        MissingBase::Warns => {
            sink.message(table::differential_less_protected_ignored(database, lack));
            Ok(())
        }
    }
}

/// The media of the base that can be read, and the base.
fn opened(
    wanted: &Wanted<'_>,
    base: Guid,
    past: Option<&PastBackup>,
    reach: &Reach,
) -> Option<(MediaSet, SetConfiguration)> {
    let mut copies: Vec<Vec<DeviceAddress>> = vec![wanted.options.base.clone()];
    copies.extend(past.into_iter().flat_map(|past| copies_of(past, reach)));
    copies.push(wanted.target.to_vec());
    first_with(base, copies)
}

/// The devices of each mirror.
fn copies_of(past: &PastBackup, reach: &Reach) -> impl Iterator<Item = Vec<DeviceAddress>> {
    (0..=3).map(|mirror| {
        let own = past.media.iter().filter(|medium| medium.mirror == mirror);
        own.map(|medium| reach.device(&medium.device)).collect()
    })
}

fn first_with(
    base: Guid,
    copies: impl IntoIterator<Item = Vec<DeviceAddress>>,
) -> Option<(MediaSet, SetConfiguration)> {
    let copies = copies.into_iter().filter(|copy| !copy.is_empty());
    copies
        .filter_map(|copy| MediaSet::open(&copy).ok())
        .find_map(|media| {
            let mut sets = media.sets().into_iter().map(|entry| entry.configuration);
            let set = sets.find(|set| set.set_guid == base)?;
            Some((media, set))
        })
}

/// The recipients of a backup, if all of them are certificates of the instance; otherwise none: what is encrypted for
/// some of them only, the others could not restore.
///
/// # Errors
/// Those of the catalog and of certificates.
pub(crate) fn recipients_of(
    session: &Session,
    past: &PastBackup,
) -> Result<Vec<Recipient>, Failure> {
    let reach = Reach::of(&session.instance)?;
    let found = past
        .set_guid
        .and_then(|base| first_with(base, copies_of(past, &reach)));
    let Some((_, set)) = found.filter(|(_, set)| set.is_encrypted()) else {
        return Ok(Vec::new());
    };
    let block = KeyBlock::from_stored(&set.key_block);
    let wanted = block.map(|block| block.recipients()).unwrap_or_default();
    let known = session.instance.catalog().certificates()?;
    let mut recipients = Vec::new();
    for recipient in wanted {
        let is_it =
            |own: &&CertificateRecord| recipient == RecipientKind::Certificate(own.thumbprint);
        let Some(own) = known.iter().find(is_it) else {
            return Ok(Vec::new());
        };
        recipients.push(Recipient::Certificate(Certificate::read(&own.certificate)?));
    }
    Ok(recipients)
}

/// What a differential lacks upon a base that can be read.
fn lack(
    session: &mut Session,
    wanted: &Wanted<'_>,
    media: &MediaSet,
    base: &SetConfiguration,
    encryption: Option<&Encryption>,
) -> Result<Option<&'static str>, Failure> {
    if base.is_signed() && wanted.options.sign_with.is_none() {
        return Ok(Some(NOT_SIGNED));
    }
    if !base.is_encrypted() {
        return Ok(None);
    }
    if let Some(lack) = weaker(sealing_of(base), encryption) {
        return Ok(Some(lack));
    }
    let recipients = encryption.map_or(&[][..], |how| &how.recipients);
    let block = KeyBlock::from_stored(&base.key_block);
    let known = block.map(|block| block.recipients()).unwrap_or_default();
    let mut certificates = recipients.iter().filter_map(|recipient| match recipient {
        Recipient::Certificate(certificate) => Some(certificate.thumbprint()),
        Recipient::Passphrase(_) => None,
    });
    if certificates.any(|own| known.contains(&RecipientKind::Certificate(own))) {
        return Ok(None);
    }
    // The instance's certificates open what was encrypted for them, whatever else was given.
    let mut ring: KeyRing = session.instance.key_ring()?;
    let passphrases = recipients.iter().filter_map(|recipient| match recipient {
        Recipient::Passphrase(passphrase) => Some(passphrase.clone()),
        Recipient::Certificate(_) => None,
    });
    ring.passphrases.extend(passphrases);
    let keys = ReadKeys {
        ring: std::sync::Arc::new(ring),
        ..ReadKeys::default()
    };
    let opens = windlass_pipeline::check(media, base.position, &keys);
    Ok(match opens {
        Err(
            windlass_pipeline::Error::Key { .. } | windlass_pipeline::Error::KeyAndKeyFile { .. },
        ) => Some(OTHER_KEY),
        // Damage is told by whoever restores it.
        _ => None,
    })
}

/// The same, of what the history says about the base.
fn lack_by_history(
    session: &Session,
    base: Guid,
    encryption: Option<&Encryption>,
) -> Result<Option<&'static str>, Failure> {
    let encryptors = session.instance.catalog().encryptors_of(base)?;
    let kinds = encryptors.iter().map(|kind| Sealing::of_encryptor(kind));
    Ok(weaker(kinds.max().unwrap_or_default(), encryption))
}

fn weaker(base: Sealing, encryption: Option<&Encryption>) -> Option<&'static str> {
    let is_passphrase = |recipient: &Recipient| matches!(recipient, Recipient::Passphrase(_));
    let own = match encryption {
        None => Sealing::None,
        Some(how) if how.recipients.iter().all(is_passphrase) => Sealing::Passphrase,
        Some(_) => Sealing::Certificate,
    };
    match (Protection::from(base).admits(&own.into()), own) {
        (true, _) => None,
        (false, Sealing::None) => Some(NOT_ENCRYPTED),
        (false, _) => Some(WEAKER),
    }
}
