//! PKCS#12 files: a certificate and its private key, protected by one password.

use p12_keystore::{
    Certificate, KeyStore, KeyStoreEntry, Pkcs12ImportPolicy, PrivateKey, PrivateKeyChain,
};
use zeroize::Zeroizing;

use crate::Error;
use crate::passphrase::Passphrase;

/// Maximum length of a file. Each key in it may request a million rounds of key derivation (the
/// library refuses more), so its length bounds the time.
const BYTES_MAX: usize = 64 << 10;

/// Certificate (DER) and key (PKCS#8) of the first entry that has both.
pub(crate) fn read(
    bytes: &[u8],
    password: &Passphrase,
) -> Result<(Vec<u8>, Zeroizing<Vec<u8>>), Error> {
    if bytes.len() > BYTES_MAX {
        return Err(Error::Unreadable {
            what: "PKCS#12 file",
            reason: format!(
                "its {} bytes are more than a key and its certificates need",
                bytes.len()
            ),
        });
    }
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

/// A file with one entry.
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
