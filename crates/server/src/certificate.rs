//! The certificate that the server shows its clients, and the TLS settings made from it.
//!
//! Without a certificate of their own, users get one made at the first start: a certificate authority
//! (`server-ca.pem`, which clients may trust) and a certificate signed by it (`server.pem`) for this machine's
//! names and the loopback addresses. A self-signed certificate would not do: some drivers refuse it even if
//! they are told to trust it.
//!
//! Within TDS 7.x at most TLS 1.2 is offered: with 1.3 the drivers of Microsoft, `FreeTDS` and Go fail, because
//! the handshake travels in packets there. TDS 8.0 starts with TLS, 1.2 or 1.3.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::{Span, Timestamp};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose,
};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::NoServerSessionStorage;
use rustls::{ServerConfig, SupportedProtocolVersion, version};
use windlass_io::{directory, own, secret};

use crate::Error;

const AUTHORITY: &str = "server-ca.pem";
const AUTHORITY_KEY: &str = "server-ca.key";
const CERTIFICATE: &str = "server.pem";
const KEY: &str = "server.key";

/// How long a made certificate is valid, and when it is replaced.
const VALID_DAYS: i64 = 730;
const RENEWED_DAYS: i64 = 60;
const AUTHORITY_DAYS: i64 = 3650;

/// Files of a certificate, in PEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Files {
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
}

/// TLS settings for both ways to connect.
#[derive(Debug, Clone)]
pub(crate) struct Certificate {
    /// Within TDS 7.x.
    pub(crate) in_packets: Arc<ServerConfig>,
    /// For TDS 8.0.
    pub(crate) strict: Arc<ServerConfig>,
    /// For the page.
    pub(crate) page: Arc<ServerConfig>,
}

impl Certificate {
    /// Reads the certificate and its key.
    pub(crate) fn read(files: &Files) -> Result<Self, Error> {
        let failed = |path: &Path, reason: String| Error::Certificate {
            path: path.to_owned(),
            reason,
        };
        let chain: Result<Vec<_>, _> =
            CertificateDer::pem_file_iter(&files.certificate).and_then(Iterator::collect);
        let chain = chain.map_err(|error| failed(&files.certificate, error.to_string()))?;
        if chain.is_empty() {
            return Err(failed(
                &files.certificate,
                "it has no certificate in PEM".to_owned(),
            ));
        }
        let key = PrivateKeyDer::from_pem_file(&files.key)
            .map_err(|error| failed(&files.key, error.to_string()))?;
        let config = |versions: &[&'static SupportedProtocolVersion]| {
            settings(versions, chain.clone(), key.clone_key())
                .map_err(|error| failed(&files.certificate, error.to_string()))
        };
        let mut strict = config(&[&version::TLS13, &version::TLS12])?;
        let mut page = strict.clone();
        strict.alpn_protocols = vec![b"tds/8.0".to_vec()];
        page.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self {
            in_packets: Arc::new(config(&[&version::TLS12])?),
            strict: Arc::new(strict),
            page: Arc::new(page),
        })
    }
}

fn settings(
    versions: &[&'static SupportedProtocolVersion],
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
) -> Result<ServerConfig, rustls::Error> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(versions)?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    // Drivers do not resume sessions, and nothing about clients is kept.
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(config)
}

/// The files of the made certificate in an instance's folder; made now if necessary, or replaced if it is too old.
pub(crate) fn made(folder: &Path) -> Result<Files, Error> {
    let files = Files {
        certificate: folder.join(CERTIFICATE),
        key: folder.join(KEY),
    };
    let fails = |path: &Path| {
        let path = path.to_owned();
        move |source| Error::File { path, source }
    };
    if !is_due(&files).map_err(fails(&files.certificate))? {
        return Ok(files);
    }
    let refused = |error: rcgen::Error| Error::Certificate {
        path: files.certificate.clone(),
        reason: error.to_string(),
    };
    let authority = authority(folder)?;
    let key = KeyPair::generate().map_err(refused)?;
    let mut params = CertificateParams::new(names()).map_err(refused)?;
    params.distinguished_name = named("Windlass server");
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.key_usages = vec![
        KeyUsagePurpose::DigitalSignature,
        KeyUsagePurpose::KeyEncipherment,
    ];
    valid_for(&mut params, VALID_DAYS);
    let certificate = params.signed_by(&key, &authority).map_err(refused)?;
    let shown = folder.join(AUTHORITY);
    let authority = std::fs::read_to_string(&shown).map_err(fails(&shown))?;
    let chain = certificate.pem() + &authority;
    replace_secret(&files.key, key.serialize_pem().as_bytes()).map_err(fails(&files.key))?;
    own::replace(&files.certificate, chain.as_bytes()).map_err(fails(&files.certificate))?;
    Ok(files)
}

/// Whether the certificate is missing, or soon too old: a program that runs for months reads it again on SIGHUP.
fn is_due(files: &Files) -> io::Result<bool> {
    if !files.key.try_exists()? {
        return Ok(true);
    }
    let made = match std::fs::metadata(&files.certificate) {
        Ok(found) => found.modified()?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
        Err(error) => return Err(error),
    };
    let days = made.elapsed().map_or(0, |age| age.as_secs() / 86_400);
    Ok(i64::try_from(days).unwrap_or(i64::MAX) > VALID_DAYS - RENEWED_DAYS)
}

/// The authority in the folder; made if there is none.
fn authority(folder: &Path) -> Result<Issuer<'static, KeyPair>, Error> {
    let (shown, hidden) = (folder.join(AUTHORITY), folder.join(AUTHORITY_KEY));
    let refused = |error: rcgen::Error| Error::Certificate {
        path: hidden.clone(),
        reason: error.to_string(),
    };
    let fails = |path: &Path| {
        let path = path.to_owned();
        move |source| Error::File { path, source }
    };
    let mut params = CertificateParams::default();
    params.distinguished_name = named("Windlass server authority");
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    valid_for(&mut params, AUTHORITY_DAYS);
    let is_there = hidden.try_exists().map_err(fails(&hidden))?
        && shown.try_exists().map_err(fails(&shown))?;
    let key = match is_there {
        true => {
            let pem = secret::read(&hidden).map_err(fails(&hidden))?;
            KeyPair::from_pem(&String::from_utf8_lossy(&pem)).map_err(refused)?
        }
        false => {
            let key = KeyPair::generate().map_err(refused)?;
            let certificate = params.self_signed(&key).map_err(refused)?;
            replace_secret(&hidden, key.serialize_pem().as_bytes()).map_err(fails(&hidden))?;
            own::replace(&shown, certificate.pem().as_bytes()).map_err(fails(&shown))?;
            key
        }
    };
    Ok(Issuer::new(params, key))
}

/// Writes a file that only its owner may read, in place of an older one.
fn replace_secret(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let beside = own::beside(path, ".new");
    match std::fs::remove_file(&beside) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    secret::create(&beside, bytes)?;
    directory::replace(&beside, path)
}

fn named(name: &str) -> DistinguishedName {
    let mut named = DistinguishedName::new();
    named.push(DnType::CommonName, name);
    named
}

/// The names under which clients may reach this machine.
fn names() -> Vec<String> {
    let host = rustix::system::uname();
    let host = host.nodename().to_string_lossy().into_owned();
    let mut names = vec![
        "localhost".to_owned(),
        "127.0.0.1".to_owned(),
        "::1".to_owned(),
    ];
    let is_name = |name: &str| {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.');
        !name.is_empty() && name.bytes().all(is_plain)
    };
    if is_name(&host) && !names.contains(&host) {
        names.push(host);
    }
    names
}

fn valid_for(params: &mut CertificateParams, days: i64) {
    // Clocks of clients may be behind.
    let begins = Timestamp::now() - Span::new().hours(24);
    let date = |at: Timestamp| {
        let date = at.to_zoned(jiff::tz::TimeZone::UTC).date();
        rcgen::date_time_ymd(
            i32::from(date.year()),
            u8::try_from(date.month()).unwrap_or(1),
            u8::try_from(date.day()).unwrap_or(1),
        )
    };
    params.not_before = date(begins);
    params.not_after = date(begins + Span::new().hours(24 * (days + 1)));
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_certificate_is_made_once_with_private_keys() {
        let folder = tempfile::tempdir().unwrap();
        let files = made(folder.path()).unwrap();
        Certificate::read(&files).unwrap();
        let first = std::fs::read(&files.certificate).unwrap();
        made(folder.path()).unwrap();
        assert_eq!(std::fs::read(&files.certificate).unwrap(), first);
        for name in [KEY, AUTHORITY_KEY] {
            let mode = std::fs::metadata(folder.path().join(name)).unwrap();
            assert_eq!(mode.permissions().mode() & 0o777, 0o600, "{name}");
        }
    }

    #[test]
    fn a_new_certificate_is_of_the_same_authority() {
        let folder = tempfile::tempdir().unwrap();
        let files = made(folder.path()).unwrap();
        let authority = std::fs::read(folder.path().join(AUTHORITY)).unwrap();
        std::fs::remove_file(&files.certificate).unwrap();
        made(folder.path()).unwrap();
        assert_eq!(
            std::fs::read(folder.path().join(AUTHORITY)).unwrap(),
            authority
        );
        Certificate::read(&files).unwrap();
    }

    #[test]
    fn what_is_no_certificate_is_refused_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let files = made(folder.path()).unwrap();
        std::fs::write(&files.certificate, "nothing").unwrap();
        let error = Certificate::read(&files).unwrap_err();
        assert!(error.to_string().contains("server.pem"), "{error}");
    }
}
