//! The keys of an instance: the service key encrypts the master key, and the master key encrypts
//! private keys. The service key also encrypts the secrets of credentials, as on SQL Server.
//!
//! The service key is 32 bytes in the file `service.key` of the instance's directory. Only its owner may
//! read it, and it is not used if others could read it. An instance without a directory keeps one in
//! memory. The service key opens the master key without the password, as on SQL Server.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use windlass_base::message::table;
use windlass_catalog::{CertificateRecord, CredentialRecord, MasterKeyRecord};
use windlass_crypt::{Certificate, Identity, KeyRing, Passphrase, PrivateKey, VaultKey};
use zeroize::Zeroizing;

use crate::message_of::unreadable_file;
use crate::{Failure, Instance};

/// The file in an instance's directory that contains the service key.
pub const SERVICE_KEY_FILE: &str = "service.key";
const BY_SERVICE: &[u8] = b"windlass master key by service 1";
const BY_PASSWORD: &[u8] = b"windlass master key by password 1";

/// The context to which a sealed private key is bound.
fn purpose(thumbprint: &[u8; 20]) -> Vec<u8> {
    let mut purpose = b"windlass private key 1".to_vec();
    purpose.extend_from_slice(thumbprint);
    purpose
}

/// The same of the secret of a credential: one that is moved to another name cannot be opened.
fn of_credential(name: &str) -> Vec<u8> {
    let mut purpose = b"windlass credential 1".to_vec();
    purpose.extend_from_slice(name.to_lowercase().as_bytes());
    purpose
}

impl Instance {
    /// The service key; created if there is none and nothing needs one.
    fn service_key(&mut self) -> Result<VaultKey, Failure> {
        if let Some(key) = &self.service_key {
            return Ok(key.clone());
        }
        let key = match self.folder() {
            Some(folder) => {
                let catalog = self.catalog();
                let is_needed = catalog.master_key()?.is_some() || catalog.has_credentials()?;
                file_key(&folder.join(SERVICE_KEY_FILE), is_needed)?
            }
            None => VaultKey::generate()?,
        };
        self.service_key = Some(key.clone());
        Ok(key)
    }

    /// Seals the secret of a credential for storage.
    pub(crate) fn seal_secret(&mut self, name: &str, secret: &str) -> Result<Vec<u8>, Failure> {
        let service = self.service_key()?;
        Ok(service.seal(&of_credential(name), secret.as_bytes())?)
    }

    /// The secret of a credential.
    ///
    /// # Errors
    /// 50030 if the service key that opens it is lost, 50352 if it does not open it.
    pub(crate) fn open_secret(
        &self,
        record: &CredentialRecord,
    ) -> Result<Zeroizing<String>, Failure> {
        let service = match (&self.service_key, self.folder()) {
            (Some(key), _) => key.clone(),
            (None, Some(folder)) => file_key(&folder.join(SERVICE_KEY_FILE), true)?,
            (None, None) => return Err(table::encryption_failed("there is no service key").into()),
        };
        let failed = |why: String| Failure::from(table::credential_not_opened(&record.name, why));
        let opened = service
            .open(&of_credential(&record.name), &record.secret)
            .map_err(|error| failed(error.to_string()))?;
        let text = std::str::from_utf8(&opened).map_err(|error| failed(error.to_string()))?;
        Ok(Zeroizing::new(text.to_owned()))
    }

    /// Creates the master key.
    ///
    /// # Errors
    /// 15578 if there already is one.
    pub(crate) fn create_master_key(&mut self, password: &Passphrase) -> Result<(), Failure> {
        let key = VaultKey::generate()?;
        let service = self.service_key()?;
        let record = MasterKeyRecord {
            by_service: service.seal(BY_SERVICE, key.bytes())?,
            by_password: key.lock(BY_PASSWORD, password)?,
        };
        let added = self.catalog_mut().add_master_key(&record);
        if !added? {
            return Err(table::master_key_exists().into());
        }
        Ok(())
    }

    /// The opened master key.
    ///
    /// # Errors
    /// 15581 if there is none; 50030 if the service key that opens it is lost.
    pub(crate) fn master_key(&mut self) -> Result<VaultKey, Failure> {
        let needed = || Failure::from(table::master_key_needed());
        let stored = self.catalog().master_key();
        let record = stored?.ok_or_else(needed)?;
        let service = self.service_key()?;
        let bytes = service
            .open(BY_SERVICE, &record.by_service)
            .map_err(|_| needed())?;
        let bytes: [u8; 32] = bytes.as_slice().try_into().map_err(|_| needed())?;
        Ok(VaultKey::from_bytes(Zeroizing::new(bytes)))
    }

    /// Seals a private key for storage.
    pub(crate) fn seal_key(&mut self, identity: &Identity) -> Result<Vec<u8>, Failure> {
        let master = self.master_key()?;
        let purpose = purpose(&identity.certificate().thumbprint());
        Ok(master.seal(&purpose, identity.key().pkcs8())?)
    }

    /// A certificate with its private key; `None` if the key is missing.
    pub(crate) fn open_identity(
        &mut self,
        record: &CertificateRecord,
    ) -> Result<Option<Identity>, Failure> {
        let Some(sealed) = &record.private_key else {
            return Ok(None);
        };
        let opened = self
            .master_key()?
            .open(&purpose(&record.thumbprint), sealed)?;
        let key = PrivateKey::from_pkcs8(opened)?;
        let certificate = Certificate::read(&record.certificate)?;
        Ok(Some(Identity::new(certificate, key)?))
    }

    /// The certificate with the given name.
    ///
    /// # Errors
    /// 15151 if there is none; `action` is the verb in the message.
    pub(crate) fn certificate(
        &self,
        action: &str,
        name: &str,
    ) -> Result<CertificateRecord, Failure> {
        let records = self.catalog().certificates()?;
        let found = records
            .into_iter()
            .find(|record| record.name.eq_ignore_ascii_case(name));
        found.ok_or_else(|| table::cannot_find(action, "certificate", name).into())
    }

    /// The keys with which the instance can read backups. Keys that cannot be opened are left out:
    /// only the backup set shows whether they are needed.
    pub(crate) fn key_ring(&mut self) -> Result<KeyRing, Failure> {
        let records = self.catalog().certificates()?;
        let mut ring = KeyRing::default();
        if records.iter().any(|record| record.private_key.is_some()) {
            // A service key that must not be used is reported, not treated as missing.
            self.service_key()?;
        }
        for record in &records {
            if let Ok(Some(identity)) = self.open_identity(record) {
                ring.identities.push(Arc::new(identity));
            }
        }
        Ok(ring)
    }
}

/// How many times, and at what interval, to look for a key that another process is creating.
const MAKING_TRIES: u32 = 50;
/// See [`MAKING_TRIES`].
const BETWEEN_TRIES: Duration = Duration::from_millis(100);

/// What to do about a service key that is lost: nothing else opens the master key here.
const LOST: &str = "copy it back from a backup of the instance's folder; without one, the private keys of \
     this instance and the secrets of its credentials are lost: drop certificates, credentials and the master key, \
     remove this file if it exists, and create them again, the certificates from the files of BACKUP CERTIFICATE";

/// What to do about such a file while nothing needs it.
const UNUSED: &str = "nothing is encrypted with it yet: remove it, and a new one is made";

/// Reads the key from a file, or creates a new one unless something needs the one that was there.
fn file_key(path: &Path, is_needed: bool) -> Result<VaultKey, Failure> {
    let unusable = |reason: String| {
        let reason = format!("the service key {}: {reason}", path.display());
        Failure::from(table::encryption_failed(reason))
    };
    let mut tries = MAKING_TRIES;
    loop {
        match windlass_io::secret::read_private(path) {
            Ok(bytes) => {
                let bytes = Zeroizing::new(bytes);
                let key: Result<[u8; 32], _> = bytes.as_slice().try_into();
                let advice = if is_needed { LOST } else { UNUSED };
                return key
                    .map(|key| VaultKey::from_bytes(Zeroizing::new(key)))
                    .map_err(|_| {
                        unusable(format!("{} bytes instead of 32; {advice}", bytes.len()))
                    });
            }
            Err(error) if error.kind() == ErrorKind::NotFound && !is_needed => {}
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(unusable(format!("it is missing; {LOST}")));
            }
            Err(error) => return Err(unusable(error.to_string())),
        }
        let key = VaultKey::generate()?;
        match windlass_io::secret::create(path, key.bytes()) {
            Ok(()) => return Ok(key),
            // Another process has created the file, or is doing so: use its key.
            Err(error) if error.kind() == ErrorKind::AlreadyExists && tries > 0 => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock && tries > 0 => {
                std::thread::sleep(BETWEEN_TRIES);
            }
            Err(error) => {
                return Err(unreadable_file(path, &error).into());
            }
        }
        tries -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_key_that_is_not_whole_says_what_to_do_and_is_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(SERVICE_KEY_FILE);
        for length in [0, 31, 33] {
            windlass_io::secret::create(&path, &vec![1; length]).unwrap();
            for (has_master_key, advice) in [(false, UNUSED), (true, LOST)] {
                let failure = file_key(&path, has_master_key).unwrap_err();
                let text = &failure.messages[0].text;
                assert!(
                    text.contains(&format!("{length} bytes instead of 32")),
                    "{text}"
                );
                assert!(text.contains(advice), "{text}");
            }
            assert_eq!(std::fs::read(&path).unwrap().len(), length);
            std::fs::remove_file(&path).unwrap();
        }
    }

    #[test]
    fn a_service_key_that_the_master_key_needs_is_never_made_again() {
        let folder = tempfile::tempdir().unwrap();
        let mut instance = Instance::open(Some(folder.path())).unwrap();
        let password = Passphrase::new("Correct-Horse-Battery".to_owned());
        instance.create_master_key(&password).unwrap();
        drop(instance);
        let path = folder.path().join(SERVICE_KEY_FILE);
        std::fs::remove_file(&path).unwrap();
        let mut instance = Instance::open(Some(folder.path())).unwrap();
        let failure = instance.master_key().unwrap_err();
        assert!(failure.messages[0].text.contains(LOST), "{failure:?}");
        assert!(!path.exists());
    }

    #[test]
    fn processes_that_need_the_first_key_agree_on_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(SERVICE_KEY_FILE);
        let keys: Vec<_> = std::thread::scope(|scope| {
            let make = || scope.spawn(|| *file_key(&path, false).unwrap().bytes());
            let makers = [(); 8].map(|()| make());
            makers.map(|maker| maker.join().unwrap()).to_vec()
        });
        assert!(keys.iter().all(|key| *key == keys[0]));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
