//! The keys of an instance: the service key encrypts the master key, and the master key encrypts
//! private keys.
//!
//! The service key is 32 bytes in the file `service.key` of the instance's directory. Only its owner may
//! read it, and it is not used if others could read it. An instance without a directory keeps one in
//! memory. The service key opens the master key without the password, as on SQL Server; elsewhere the
//! password opens it.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use windlass_base::message::table;
use windlass_catalog::{CertificateRecord, MasterKeyRecord};
use windlass_crypt::{Certificate, Identity, KeyRing, Passphrase, PrivateKey, VaultKey};
use zeroize::Zeroizing;

use crate::message_of::os_error;
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

impl Instance {
    /// The service key; created if there is none.
    fn service_key(&mut self) -> Result<VaultKey, Failure> {
        if let Some(key) = &self.service_key {
            return Ok(key.clone());
        }
        let key = match self.folder() {
            Some(folder) => file_key(&folder.join(SERVICE_KEY_FILE))?,
            None => VaultKey::generate()?,
        };
        self.service_key = Some(key.clone());
        Ok(key)
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
    /// 15581 if there is none, or if the service key that opens it is lost.
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

/// Reads the key from a file, or creates a new one.
fn file_key(path: &Path) -> Result<VaultKey, Failure> {
    let failed = |error: &std::io::Error| {
        Failure::from(table::cannot_open_file(path.display(), os_error(error)))
    };
    match windlass_io::secret::read_private(path) {
        Ok(bytes) => {
            let bytes = Zeroizing::new(bytes);
            let bytes: [u8; 32] = bytes
                .as_slice()
                .try_into()
                .map_err(|_| table::encryption_failed("the service key is not 32 bytes long"))?;
            return Ok(VaultKey::from_bytes(Zeroizing::new(bytes)));
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            let reason = format!("the service key {}: {error}", path.display());
            return Err(table::encryption_failed(reason).into());
        }
        Err(error) => return Err(failed(&error)),
    }
    let key = VaultKey::generate()?;
    match windlass_io::secret::create(path, key.bytes()) {
        // Another process created the file first, so its key is used.
        Err(error) if error.kind() == ErrorKind::AlreadyExists => file_key(path),
        Err(error) => Err(failed(&error)),
        Ok(()) => Ok(key),
    }
}
