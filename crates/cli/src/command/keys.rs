//! Keys of the command line: only in files, so that no secret is in a process's title or a shell's
//! history.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use windlass_base::Message;
use windlass_base::message::table;
use windlass_crypt::{Certificate, KeyRing, Passphrase, PrivateKey, Recipient};
use windlass_instance::message_of::unreadable_file;

use crate::args::KeyArguments;

fn read(path: &Path) -> Result<Vec<u8>, Message> {
    windlass_io::secret::read(path).map_err(|error| match error.raw_os_error() {
        Some(_) => unreadable_file(path, &error),
        None => table::encryption_failed(format!("'{}': {error}", path.display())),
    })
}

fn unusable(path: &Path, error: &windlass_crypt::Error) -> Message {
    table::encryption_failed(format!("'{}': {error}", path.display()))
}

fn passphrase(path: &Path) -> Result<Passphrase, Message> {
    Passphrase::from_file(read(path)?)
        .map_err(|error| table::encryption_failed(format!("'{}': {error}", path.display())))
}

/// The recipients: certificates in files, and a passphrase in another file.
pub(super) fn recipients(
    certificates: &[PathBuf],
    passphrase_file: Option<&Path>,
) -> Result<Vec<Recipient>, Message> {
    let mut recipients = Vec::new();
    for path in certificates {
        let certificate =
            Certificate::read(&read(path)?).map_err(|error| unusable(path, &error))?;
        recipients.push(Recipient::Certificate(certificate));
    }
    if let Some(path) = passphrase_file {
        recipients.push(Recipient::Passphrase(passphrase(path)?));
    }
    Ok(recipients)
}

/// The keys for reading a backup.
pub(crate) fn ring(arguments: &KeyArguments) -> Result<KeyRing, Message> {
    let mut ring = KeyRing::default();
    let password = match &arguments.key_password_file {
        Some(path) => Some(passphrase(path)?),
        None => None,
    };
    for path in &arguments.key {
        let key = PrivateKey::read(&read(path)?, password.as_ref())
            .map_err(|error| unusable(path, &error))?;
        ring.keys.push(Arc::new(key));
    }
    if let Some(path) = &arguments.passphrase_file {
        ring.passphrases.push(passphrase(path)?);
    }
    Ok(ring)
}
