//! PKCS#12 files: a certificate and its private key, protected by one password.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use p12_keystore::{
    Certificate, KeyStore, KeyStoreEntry, Pkcs12ImportPolicy, PrivateKey, PrivateKeyChain,
};
use zeroize::Zeroizing;

use crate::Error;
use crate::passphrase::Passphrase;

/// Maximum length of a file. Each key in it may require a million rounds of key derivation (the library
/// refuses more), so the length limits the time, to minutes.
const BYTES_MAX: usize = 64 << 10;

/// Time limit for opening a file. The cost of its encrypted parts is known only when they are open;
/// genuine files of any program take less than two seconds.
const PATIENCE: Duration = Duration::from_secs(30);

/// Certificate (DER) and key (PKCS#8).
type Found = (Vec<u8>, Zeroizing<Vec<u8>>);

/// Returns certificate and key of the first entry that has both.
pub(crate) fn read(bytes: &[u8], password: &Passphrase) -> Result<Found, Error> {
    read_within(bytes, password, PATIENCE)
}

/// The library cannot be stopped: after the time limit its thread is abandoned.
fn read_within(bytes: &[u8], password: &Passphrase, patience: Duration) -> Result<Found, Error> {
    if bytes.len() > BYTES_MAX {
        return Err(Error::Unreadable {
            what: "PKCS#12 file",
            reason: format!(
                "its {} bytes are more than a key and its certificates need",
                bytes.len()
            ),
        });
    }
    let (bytes, password) = (bytes.to_vec(), password.clone());
    let (sender, found) = mpsc::sync_channel(1);
    std::thread::spawn(move || {
        // The receiver may have given up.
        let _unheard = sender.send(open(&bytes, &password));
    });
    match found.recv_timeout(patience) {
        Ok(found) => found,
        Err(RecvTimeoutError::Timeout) => Err(Error::Unreadable {
            what: "PKCS#12 file",
            reason:
                "its password derivation is too expensive; rewrite the file with openssl pkcs12"
                    .to_owned(),
        }),
        Err(RecvTimeoutError::Disconnected) => Err(Error::Library {
            doing: "reading a PKCS#12 file",
        }),
    }
}

fn open(bytes: &[u8], password: &Passphrase) -> Result<Found, Error> {
    let store = KeyStore::from_pkcs12(bytes, password.text(), Pkcs12ImportPolicy::Relaxed)
        .map_err(|_| Error::Password {
            what: "the PKCS#12 file, if it is one,",
        })?;
    let missing = || Error::Unreadable {
        what: "PKCS#12 file",
        reason: "it holds no private key with a certificate".to_owned(),
    };
    let (_, chain) = store.private_key_chain().ok_or_else(missing)?;
    let certificate = chain.certs().first().ok_or_else(missing)?;
    Ok((
        certificate.as_der().to_vec(),
        Zeroizing::new(chain.key().as_der().to_vec()),
    ))
}

/// Writes a file with one entry.
pub(crate) fn write(
    name: &str,
    certificate: &[u8],
    key: &[u8],
    password: &Passphrase,
) -> Result<Vec<u8>, Error> {
    const FAILED: Error = Error::Library {
        doing: "writing a PKCS#12 file",
    };
    let key = PrivateKey::from_der(key).map_err(|_| FAILED)?;
    let certificate = Certificate::from_der(certificate).map_err(|_| FAILED)?;
    let chain = PrivateKeyChain::new(name.as_bytes(), key, [certificate]);
    let mut store = KeyStore::new();
    store.add_entry(name, KeyStoreEntry::PrivateKeyChain(chain));
    store.writer(password.text()).write().map_err(|_| FAILED)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Identity;

    /// The keys of this file together take longer than the limit, although each is within its own.
    #[test]
    fn a_file_of_many_costly_keys_is_given_up() {
        let identity = Identity::create("Backup", 365).unwrap();
        let password = Passphrase::new("password".to_owned());
        let mut store = KeyStore::new();
        for number in 0..8 {
            let key = PrivateKey::from_der(identity.key().pkcs8()).unwrap();
            let certificate = Certificate::from_der(identity.certificate().der()).unwrap();
            let chain = PrivateKeyChain::new([number; 20].as_slice(), key, [certificate]);
            store.add_entry(&number.to_string(), KeyStoreEntry::PrivateKeyChain(chain));
        }
        let writer = store.writer(password.text()).encryption_iterations(20_000);
        let file = writer.write().unwrap();
        assert!(file.len() < BYTES_MAX);
        let refused = read_within(&file, &password, Duration::from_millis(10)).unwrap_err();
        assert!(refused.to_string().contains("too expensive"), "{refused}");
        let patient = read_within(&file, &password, Duration::from_secs(300)).unwrap();
        assert_eq!(patient.0, identity.certificate().der());
    }
}
