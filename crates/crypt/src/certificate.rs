//! Certificates and their private keys: RSA, as X.509 in PEM or DER, keys as PKCS#8.

use std::fmt;

use aws_lc_rs::digest;
use aws_lc_rs::encoding::AsDer as _;
use aws_lc_rs::rsa::{
    OAEP_SHA256_MGF1SHA256, OaepPrivateDecryptingKey, OaepPublicEncryptingKey,
    PrivateDecryptingKey, PublicEncryptingKey,
};
use pkcs8::der::pem::{self, LineEnding};
use pkcs8::pkcs5::pbes2::Kdf;
use pkcs8::{EncryptedPrivateKeyInfoRef, PrivateKeyInfoRef, SecretDocument};
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, RsaKeySize};
use x509_parser::prelude::{FromDer as _, X509Certificate};
use zeroize::Zeroizing;

use crate::passphrase::Passphrase;
use crate::set_key::SECRET_BYTES;
use crate::{Error, pkcs12};

const CERTIFICATE: &str = "certificate";
const PRIVATE_KEY: &str = "private key";

/// The smallest accepted RSA key.
const KEY_BITS_MIN: usize = 2048;

/// Maximum number of PBKDF2 rounds for the password of a key: some seconds.
const ITERATIONS_MAX: u32 = 10_000_000;

/// Maximum of memory times parallelization of scrypt for the password of a key.
const SCRYPT_BYTES_MAX: u64 = 512 << 20;

/// A certificate, which identifies a recipient of backups.
#[derive(Clone, PartialEq, Eq)]
pub struct Certificate {
    der: Vec<u8>,
    subject: String,
    serial: Vec<u8>,
    not_before: i64,
    not_after: i64,
    public_key: Vec<u8>,
}

impl Certificate {
    /// Reads a certificate in PEM or DER.
    ///
    /// # Errors
    /// [`Error::Unreadable`], also for keys that are not RSA of 2048 bits or more.
    pub fn read(bytes: &[u8]) -> Result<Self, Error> {
        let der = match pem_of(bytes, &["CERTIFICATE"]) {
            Some((label, der)) if label == "CERTIFICATE" => der.to_vec(),
            Some((label, _)) => return Err(unreadable(CERTIFICATE, format!("it is a {label}"))),
            None => bytes.to_vec(),
        };
        Self::from_der(der)
    }

    fn from_der(der: Vec<u8>) -> Result<Self, Error> {
        let (_, parsed) = X509Certificate::from_der(&der)
            .map_err(|_| unreadable(CERTIFICATE, "it is not X.509 in PEM or DER".to_owned()))?;
        let public_key = parsed.public_key().raw.to_vec();
        let subject = parsed.subject().to_string();
        let serial = parsed.raw_serial().to_vec();
        let (not_before, not_after) = (
            parsed.validity().not_before.timestamp(),
            parsed.validity().not_after.timestamp(),
        );
        let certificate = Self {
            der,
            subject,
            serial,
            not_before,
            not_after,
            public_key,
        };
        certificate.encrypting_key()?;
        Ok(certificate)
    }

    fn encrypting_key(&self) -> Result<OaepPublicEncryptingKey, Error> {
        let refused = || {
            let rule = format!("its key is not RSA of {KEY_BITS_MIN} bits or more");
            unreadable(CERTIFICATE, rule)
        };
        let key = PublicEncryptingKey::from_der(&self.public_key).map_err(|_| refused())?;
        if key.key_size_bits() < KEY_BITS_MIN {
            return Err(refused());
        }
        OaepPublicEncryptingKey::new(key).map_err(|_| refused())
    }

    pub(crate) fn wrap(
        &self,
        secret: &[u8; SECRET_BYTES],
        context: &[u8],
    ) -> Result<Vec<u8>, Error> {
        let key = self.encrypting_key()?;
        let mut output = vec![0; key.ciphertext_size()];
        let wrapped = key
            .encrypt(&OAEP_SHA256_MGF1SHA256, secret, &mut output, Some(context))
            .map_err(|_| Error::Library {
                doing: "wrapping a key",
            })?;
        Ok(wrapped.to_vec())
    }

    /// SHA-1 of the DER form: what SQL Server calls the thumbprint.
    pub fn thumbprint(&self) -> [u8; 20] {
        let digest = digest::digest(&digest::SHA1_FOR_LEGACY_USE_ONLY, &self.der);
        let mut thumbprint = [0; 20];
        thumbprint.copy_from_slice(digest.as_ref());
        thumbprint
    }

    pub fn subject(&self) -> &str {
        &self.subject
    }

    pub fn serial(&self) -> &[u8] {
        &self.serial
    }

    /// First and last second of its validity, since 1970 UTC.
    pub fn validity(&self) -> (i64, i64) {
        (self.not_before, self.not_after)
    }

    pub fn der(&self) -> &[u8] {
        &self.der
    }

    /// PEM form.
    ///
    /// # Errors
    /// [`Error::Library`].
    pub fn to_pem(&self) -> Result<String, Error> {
        pem::encode_string("CERTIFICATE", LineEnding::LF, &self.der).map_err(|_| Error::Library {
            doing: "writing PEM",
        })
    }
}

impl fmt::Debug for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Certificate")
            .field("subject", &self.subject)
            .finish_non_exhaustive()
    }
}

/// An RSA private key; wiped when dropped.
#[derive(Clone)]
pub struct PrivateKey {
    pkcs8: Zeroizing<Vec<u8>>,
}

impl PrivateKey {
    /// Reads a key in PKCS#8, PEM or DER, encrypted or not.
    ///
    /// # Errors
    /// [`Error::Password`] if it is encrypted and the password is missing or wrong; otherwise
    /// [`Error::Unreadable`].
    pub fn read(bytes: &[u8], password: Option<&Passphrase>) -> Result<Self, Error> {
        const WRONG: Error = Error::Password {
            what: "the private key",
        };
        let labels = ["PRIVATE KEY", "ENCRYPTED PRIVATE KEY"];
        let der = match pem_of(bytes, &labels) {
            Some((label, der)) if labels.contains(&label.as_str()) => der,
            Some((label, _)) => {
                let advice = "only PKCS#8 is supported; convert it with openssl pkcs8 -topk8";
                return Err(unreadable(
                    PRIVATE_KEY,
                    format!("it is a {label}, and {advice}"),
                ));
            }
            None => Zeroizing::new(bytes.to_vec()),
        };
        if let Ok(encrypted) = EncryptedPrivateKeyInfoRef::try_from(der.as_slice()) {
            let password = password.ok_or(WRONG)?;
            check_cost(&encrypted)?;
            let opened = encrypted.decrypt(password.text()).map_err(|_| WRONG)?;
            return Self::from_pkcs8(Zeroizing::new(opened.as_bytes().to_vec()));
        }
        Self::from_pkcs8(der)
    }

    /// Takes a key in PKCS#8, DER.
    ///
    /// # Errors
    /// [`Error::Unreadable`].
    pub fn from_pkcs8(pkcs8: Zeroizing<Vec<u8>>) -> Result<Self, Error> {
        let key = Self { pkcs8 };
        key.decrypting_key()?;
        Ok(key)
    }

    fn decrypting_key(&self) -> Result<PrivateDecryptingKey, Error> {
        PrivateDecryptingKey::from_pkcs8(&self.pkcs8)
            .map_err(|_| unreadable(PRIVATE_KEY, "it is not an RSA key in PKCS#8".to_owned()))
    }

    /// PKCS#8, DER, to be sealed with a master key.
    pub fn pkcs8(&self) -> &[u8] {
        &self.pkcs8
    }

    /// PKCS#8 in PEM, encrypted with a password (PBES2: scrypt and AES-256).
    ///
    /// # Errors
    /// [`Error::Library`].
    pub fn to_encrypted_pem(&self, password: &Passphrase) -> Result<Zeroizing<String>, Error> {
        const FAILED: Error = Error::Library {
            doing: "encrypting a private key",
        };
        let info = PrivateKeyInfoRef::try_from(self.pkcs8.as_slice()).map_err(|_| FAILED)?;
        let encrypted = info.encrypt(password.text()).map_err(|_| FAILED)?;
        encrypted
            .to_pem("ENCRYPTED PRIVATE KEY", LineEnding::LF)
            .map_err(|_| FAILED)
    }

    pub(crate) fn unwrap(
        &self,
        wrapped: &[u8],
        context: &[u8],
    ) -> Option<Zeroizing<[u8; SECRET_BYTES]>> {
        let key = OaepPrivateDecryptingKey::new(self.decrypting_key().ok()?).ok()?;
        let mut output = Zeroizing::new(vec![0; key.min_output_size()]);
        let secret = key
            .decrypt(&OAEP_SHA256_MGF1SHA256, wrapped, &mut output, Some(context))
            .ok()?;
        let secret: &[u8] = secret;
        secret.try_into().ok().map(Zeroizing::new)
    }

    fn belongs_to(&self, certificate: &Certificate) -> bool {
        let public = self.decrypting_key().ok().map(|key| key.public_key());
        public.is_some_and(|public| {
            public
                .as_der()
                .is_ok_and(|der| der.as_ref() == certificate.public_key)
        })
    }
}

/// Rejects key derivations that would take minutes, or more memory than any common tool uses for
/// keys.
fn check_cost(encrypted: &EncryptedPrivateKeyInfoRef<'_>) -> Result<(), Error> {
    let is_bounded = match encrypted
        .encryption_algorithm
        .pbes2()
        .map(|scheme| &scheme.kdf)
    {
        Some(Kdf::Pbkdf2(params)) => params.iteration_count <= ITERATIONS_MAX,
        Some(Kdf::Scrypt(params)) => {
            let memory = params
                .cost_parameter
                .saturating_mul(u64::from(params.block_size))
                .saturating_mul(128);
            memory.saturating_mul(u64::from(params.parallelization)) <= SCRYPT_BYTES_MAX
        }
        _ => true,
    };
    if is_bounded {
        return Ok(());
    }
    let reason =
        "its password derivation is too expensive; rewrite the file with openssl pkcs8 -topk8";
    Err(unreadable(PRIVATE_KEY, reason.to_owned()))
}

impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PrivateKey(..)")
    }
}

/// A certificate with its private key.
#[derive(Debug, Clone)]
pub struct Identity {
    certificate: Certificate,
    key: PrivateKey,
}

impl Identity {
    /// Combines both.
    ///
    /// # Errors
    /// [`Error::KeyMismatch`] if they do not belong together.
    pub fn new(certificate: Certificate, key: PrivateKey) -> Result<Self, Error> {
        if !key.belongs_to(&certificate) {
            return Err(Error::KeyMismatch);
        }
        Ok(Self { certificate, key })
    }

    /// Creates a new RSA-3072 key and a self-signed certificate, valid from now.
    ///
    /// # Errors
    /// [`Error::Library`].
    pub fn create(subject: &str, days: u32) -> Result<Self, Error> {
        let now = std::time::SystemTime::now();
        let end = now + std::time::Duration::from_secs(u64::from(days) * 86_400);
        Self::create_valid(subject, now, end)
    }

    /// As [`Identity::create`], valid between two moments.
    ///
    /// # Errors
    /// [`Error::Library`].
    pub fn create_valid(
        subject: &str,
        from: std::time::SystemTime,
        to: std::time::SystemTime,
    ) -> Result<Self, Error> {
        const FAILED: Error = Error::Library {
            doing: "making a certificate",
        };
        let pair = KeyPair::generate_rsa_for(&rcgen::PKCS_RSA_SHA256, RsaKeySize::_3072)
            .map_err(|_| FAILED)?;
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, subject);
        params.not_before = from.into();
        params.not_after = to.into();
        let signed = params.self_signed(&pair).map_err(|_| FAILED)?;
        let certificate = Certificate::from_der(signed.der().to_vec())?;
        let key = PrivateKey::from_pkcs8(Zeroizing::new(pair.serialize_der()))?;
        Self::new(certificate, key)
    }

    /// Reads a PKCS#12 file (PFX).
    ///
    /// # Errors
    /// [`Error::Password`], [`Error::Unreadable`], [`Error::KeyMismatch`].
    pub fn from_pkcs12(bytes: &[u8], password: &Passphrase) -> Result<Self, Error> {
        let (certificate, key) = pkcs12::read(bytes, password)?;
        Self::new(
            Certificate::from_der(certificate)?,
            PrivateKey::from_pkcs8(key)?,
        )
    }

    /// Writes a PKCS#12 file.
    ///
    /// # Errors
    /// [`Error::Library`].
    pub fn to_pkcs12(&self, name: &str, password: &Passphrase) -> Result<Vec<u8>, Error> {
        pkcs12::write(name, self.certificate.der(), self.key.pkcs8(), password)
    }

    pub fn certificate(&self) -> &Certificate {
        &self.certificate
    }

    pub fn key(&self) -> &PrivateKey {
        &self.key
    }
}

fn unreadable(what: &'static str, reason: String) -> Error {
    Error::Unreadable { what, reason }
}

/// Returns label and content of the first PEM block with a wanted label, else of the first block; `None`
/// if it is not PEM.
pub(crate) fn pem_of(bytes: &[u8], wanted: &[&str]) -> Option<(String, Zeroizing<Vec<u8>>)> {
    let mut text = std::str::from_utf8(bytes).ok()?;
    let mut first = None;
    while let Some(begin) = text.find("-----BEGIN ") {
        text = text.get(begin..)?;
        let end = text.find("-----END ").unwrap_or(text.len());
        let line = text.get(end..)?.find('\n').unwrap_or(text.len() - end);
        let (block, rest) = text.split_at(end + line);
        text = rest;
        let Ok((label, document)) = SecretDocument::from_pem(block.trim_end()) else {
            continue;
        };
        let found = (
            label.to_owned(),
            Zeroizing::new(document.as_bytes().to_vec()),
        );
        if wanted.contains(&label) {
            return Some(found);
        }
        first.get_or_insert(found);
    }
    first
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_openssl_encrypts_by_default_is_read() {
        // `openssl req -x509 -newkey rsa` of OpenSSL 3.0 encrypts it with triple DES.
        let key = include_bytes!("key-of-openssl-3.0.pem");
        let password = Passphrase::new("correct-horse".to_owned());
        PrivateKey::read(key, Some(&password)).unwrap();
        let wrong = Passphrase::new("wrong".to_owned());
        let refused = PrivateKey::read(key, Some(&wrong));
        assert!(matches!(refused, Err(Error::Password { .. })));
    }

    #[test]
    fn a_certificate_and_its_key_go_through_files() {
        let identity = Identity::create("CN is escaped, \"so\" it is", 30).unwrap();
        let password = Passphrase::new("p\u{e9}ss".to_owned());
        let pem = identity.certificate().to_pem().unwrap();
        assert_eq!(
            &Certificate::read(pem.as_bytes()).unwrap(),
            identity.certificate()
        );
        assert_eq!(
            &Certificate::read(identity.certificate().der()).unwrap(),
            identity.certificate()
        );
        let key = identity.key().to_encrypted_pem(&password).unwrap();
        let read = PrivateKey::read(key.as_bytes(), Some(&password)).unwrap();
        assert_eq!(read.pkcs8(), identity.key().pkcs8());
        let wrong = Passphrase::new("wrong".to_owned());
        for password in [None, Some(&wrong)] {
            assert!(matches!(
                PrivateKey::read(key.as_bytes(), password),
                Err(Error::Password { .. })
            ));
        }
        let pfx = identity.to_pkcs12("backup", &password).unwrap();
        let read = Identity::from_pkcs12(&pfx, &password).unwrap();
        assert_eq!(read.key().pkcs8(), identity.key().pkcs8());
        assert!(Identity::from_pkcs12(&pfx, &wrong).is_err());
    }

    #[test]
    fn a_key_of_another_certificate_is_refused() {
        let (one, other) = (
            Identity::create("one", 1).unwrap(),
            Identity::create("other", 1).unwrap(),
        );
        assert_eq!(
            Identity::new(one.certificate().clone(), other.key().clone()).unwrap_err(),
            Error::KeyMismatch
        );
    }

    #[test]
    fn what_is_no_certificate_is_refused() {
        for bytes in [
            &b""[..],
            b"-----BEGIN CERTIFICATE-----\n",
            b"\x30\x03\x02\x01\x01",
        ] {
            assert!(Certificate::read(bytes).is_err());
            assert!(PrivateKey::read(bytes, None).is_err());
        }
    }
}
