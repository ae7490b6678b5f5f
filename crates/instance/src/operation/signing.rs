//! Reads the key files that statements and settings name: keys that sign backups, and keys that must
//! have signed them.

use std::path::Path;
use std::sync::Arc;

use windlass_base::message::table;
use windlass_crypt::{Error, Signer, SigningKey};

use crate::{Failure, Session};

/// The key that `SIGN_WITH` names. Only its owner may be able to read the file.
pub(super) fn signing_key(
    session: &Session,
    written: Option<&String>,
) -> Result<Option<Arc<SigningKey>>, Failure> {
    let Some(written) = written else {
        return Ok(None);
    };
    let path = session.instance.drives().path(written)?;
    let bytes = windlass_io::secret::read_private(&path).map_err(|error| unread(&path, &error))?;
    let bytes = zeroize::Zeroizing::new(bytes);
    let key = SigningKey::read(&bytes).map_err(|error| unusable(&path, &error))?;
    Ok(Some(Arc::new(key)))
}

/// The public keys that `SIGNED_BY` names.
pub(super) fn signers(session: &Session, written: &[String]) -> Result<Vec<Signer>, Failure> {
    let signer = |written: &String| signer(&session.instance.drives().path(written)?);
    written.iter().map(signer).collect()
}

/// The same for a restore: if the settings name keys too, only keys in both lists count.
pub(super) fn restore_signers(
    session: &Session,
    written: &[String],
) -> Result<Vec<Signer>, Failure> {
    let given = signers(session, written)?;
    let trusted = session.instance.restores_signed_by();
    let trusted = trusted.iter().map(|path| signer(path));
    let trusted = trusted.collect::<Result<Vec<_>, _>>()?;
    if given.is_empty() || trusted.is_empty() {
        return Ok(if given.is_empty() { trusted } else { given });
    }
    let both: Vec<Signer> = given
        .into_iter()
        .filter(|signer| trusted.contains(signer))
        .collect();
    if both.is_empty() {
        return Err(table::not_signed(
            "none of the keys named is one of those that the settings trust (restores_signed_by)",
        )
        .into());
    }
    Ok(both)
}

fn signer(path: &Path) -> Result<Signer, Failure> {
    let bytes = windlass_io::secret::read(path).map_err(|error| unread(path, &error))?;
    Signer::read(&bytes).map_err(|error| unusable(path, &error))
}

fn unread(path: &Path, error: &std::io::Error) -> Failure {
    table::signing_failed(format!("'{}': {error}", path.display())).into()
}

fn unusable(path: &Path, error: &Error) -> Failure {
    table::signing_failed(format!("'{}': {error}", path.display())).into()
}
