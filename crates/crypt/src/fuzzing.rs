//! The entry point of the fuzz target `crypt_keys`, and tests on damaged files.

use crate::{
    Certificate, Identity, KeyBlock, KeyFile, Passphrase, PrivateKey, Signature, Signer, SigningKey,
};

/// Reads bytes as each kind of file supplied by users or media. Nothing may panic; what is read can
/// be written and read again.
///
/// # Panics
/// If it reads back differently: the fuzzer's finding.
pub fn fuzz_keys(bytes: &[u8]) {
    if let Ok(block) = KeyBlock::from_stored(bytes) {
        assert_eq!(KeyBlock::from_stored(&block.to_stored()), Ok(block));
    }
    if let Ok(file) = KeyFile::from_stored(bytes) {
        let stored = file.to_stored();
        assert_eq!(stored.as_deref(), Ok(bytes));
    }
    if let Ok(certificate) = Certificate::read(bytes) {
        let again = Certificate::read(certificate.der());
        assert_eq!(again, Ok(certificate));
    }
    if let Ok(signer) = Signer::read(bytes) {
        let again = signer.to_pem().map(|pem| Signer::read(pem.as_bytes()));
        assert_eq!(again, Ok(Ok(signer)));
    }
    if let Ok(key) = SigningKey::read(bytes) {
        let signed = key.sign(bytes).and_then(|stored| {
            let signature = Signature::from_stored(&stored)?;
            signature.check(bytes).map(|()| signature.signer())
        });
        assert_eq!(signed, Ok(key.signer()));
    }
    if let Ok(signature) = Signature::from_stored(bytes) {
        let _checked = signature.check(b"a set");
    }
    let password = Passphrase::new("password".to_owned());
    let _key = PrivateKey::read(bytes, Some(&password));
    let _identity = Identity::from_pkcs12(bytes, &password);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cipher, Error, Recipient, SetKey};

    /// A valid file of every kind. An unencrypted key lets mutations reach its content.
    fn files() -> Vec<(&'static str, Vec<u8>)> {
        let identity = Identity::create("Backup", 365).unwrap();
        let password = Passphrase::new("password".to_owned());
        let key = SetKey::generate(Cipher::Aes256, [3; 16]).unwrap();
        let recipients = [
            Recipient::Certificate(identity.certificate().clone()),
            Recipient::Passphrase(password.clone()),
        ];
        let block = KeyBlock::wrap(&key, &recipients).unwrap();
        let mut file = KeyFile::default();
        file.replace(&key, block.clone()).unwrap();
        let encrypted = identity.key().to_encrypted_pem(&password).unwrap();
        let signing = SigningKey::generate().unwrap();
        let signer = signing.signer().to_pem().unwrap();
        vec![
            ("signing key", signing.to_pem().unwrap().as_bytes().to_vec()),
            ("signer", signer.into_bytes()),
            ("signature", signing.sign(b"a set").unwrap()),
            ("key block", block.to_stored()),
            ("key file", file.to_stored().unwrap()),
            ("certificate", identity.certificate().der().to_vec()),
            ("PEM", identity.certificate().to_pem().unwrap().into_bytes()),
            ("key", identity.key().pkcs8().to_vec()),
            ("encrypted key", encrypted.as_bytes().to_vec()),
            ("PKCS#12", identity.to_pkcs12("b", &password).unwrap()),
        ]
    }

    #[test]
    fn damaged_files_of_keys_are_refused_or_read_and_never_panic() {
        let mut seed = 0x2545_F491_4F6C_DD1D_u64;
        let mut random = |below: usize| {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            (seed % below as u64) as usize
        };
        for (what, good) in files() {
            // Key derivation from a password takes time.
            let tries = if matches!(what, "PKCS#12" | "encrypted key") {
                60
            } else {
                400
            };
            for _ in 0..tries {
                let mut bytes = good.clone();
                for _ in 0..=random(3) {
                    let at = random(bytes.len());
                    match random(4) {
                        0 => bytes[at] ^= 1 << random(8),
                        1 => bytes[at] = [0, 0x7F, 0x80, 0x84, 0xFF][random(5)],
                        2 => bytes.truncate(at.max(1)),
                        _ => bytes.insert(at, random(256) as u8),
                    }
                }
                fuzz_keys(&bytes);
            }
        }
    }

    /// `SEQUENCE { SEQUENCE { PBES2, SEQUENCE { SEQUENCE { kdf }, aes256-CBC } }, OCTET STRING }`
    fn encrypted_key(kdf: &[u8]) -> Vec<u8> {
        let wrap = |tag: u8, parts: &[&[u8]]| {
            let body = parts.concat();
            let mut out = vec![tag, 0x82];
            out.extend_from_slice(&(body.len() as u16).to_be_bytes());
            out.extend_from_slice(&body);
            // DER allows only the shortest form of a length.
            if body.len() < 128 {
                out.splice(1..4, [body.len() as u8]);
            }
            out
        };
        let pbes2 = [6, 9, 0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 1, 5, 13];
        let aes = [6, 9, 0x60, 0x86, 0x48, 1, 0x65, 3, 4, 1, 42];
        let cipher = wrap(0x30, &[&aes, &wrap(4, &[&[7; 16]])]);
        let scheme = wrap(0x30, &[&pbes2, &wrap(0x30, &[kdf, &cipher])]);
        wrap(0x30, &[&scheme, &wrap(4, &[&[7; 48]])])
    }

    #[test]
    fn a_private_key_whose_password_costs_minutes_or_gigabytes_is_refused_at_once() {
        let begun = std::time::Instant::now();
        let password = Passphrase::new("password".to_owned());
        // PBKDF2 with 2,000,000,000 / 90,000,000 rounds.
        let pbkdf2 = |rounds: [u8; 4]| {
            let mut kdf = vec![
                0x30, 0x1B, 6, 9, 0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 1, 5, 12,
            ];
            kdf.extend([0x30, 14, 4, 8, 7, 7, 7, 7, 7, 7, 7, 7, 2, 4]);
            kdf.extend(rounds);
            kdf[1] = (kdf.len() - 2) as u8;
            kdf[14] = (kdf.len() - 15) as u8;
            kdf
        };
        // scrypt with N = 2^24, r = 8: 16 GiB.
        let mut scrypt = vec![0x30, 0, 6, 9, 0x2B, 6, 1, 4, 1, 0xDA, 0x47, 4, 11];
        scrypt.extend([0x30, 0, 4, 8, 7, 7, 7, 7, 7, 7, 7, 7]);
        scrypt.extend([2, 4, 1, 0, 0, 0, 2, 1, 8, 2, 1, 1]);
        scrypt[1] = (scrypt.len() - 2) as u8;
        scrypt[14] = (scrypt.len() - 15) as u8;
        // The parser itself refuses values beyond its own limits.
        let refused = |kdf: &[u8]| {
            let key = encrypted_key(kdf);
            PrivateKey::read(&key, Some(&password))
                .unwrap_err()
                .to_string()
        };
        for kdf in [pbkdf2(2_000_000_000_u32.to_be_bytes()), scrypt] {
            let said = refused(&kdf);
            assert!(said.starts_with("private key: it"), "{said}");
        }
        let said = refused(&pbkdf2(90_000_000_u32.to_be_bytes()));
        assert!(said.contains("too expensive"), "{said}");
        // The same structure with an acceptable cost: so the cost was the reason for refusal.
        let paid = pbkdf2(16_777_216_u32.to_be_bytes());
        assert!(PrivateKey::read(&encrypted_key(&paid), Some(&password)).is_err());
        let cheap = pbkdf2(8_388_609_u32.to_be_bytes());
        let wrong = PrivateKey::read(&encrypted_key(&cheap), Some(&password));
        assert!(matches!(wrong, Err(Error::Password { .. })), "{wrong:?}");
        assert!(begun.elapsed() < std::time::Duration::from_secs(60));
    }

    #[test]
    fn a_pkcs12_file_of_more_than_a_key_and_its_certificates_is_refused() {
        let password = Passphrase::new("password".to_owned());
        let refused = Identity::from_pkcs12(&vec![0x30; 70_000], &password);
        assert!(matches!(refused, Err(Error::Unreadable { .. })));
    }
}
