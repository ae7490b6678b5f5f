//! `CREATE` and `DROP MASTER KEY`, `CREATE`, `BACKUP` and `DROP CERTIFICATE`.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use jiff::Timestamp;
use jiff::tz::TimeZone;
use windlass_base::Moment;
use windlass_base::message::table;
use windlass_catalog::CertificateRecord;
use windlass_crypt::{Certificate, Identity, Passphrase, PrivateKey};
use windlass_tsql::ast::{
    BackupCertificate, CertificateContent, CertificateOrigin, CreateCertificate, Secret,
};
use windlass_tsql::span::Spanned;

use crate::{Failure, Session};

/// How long a new certificate is valid unless `EXPIRY_DATE` says otherwise, as on SQL Server.
const VALID_DAYS: u64 = 365;

fn passphrase(secret: &Secret) -> Passphrase {
    Passphrase::new(secret.text().to_owned())
}

/// `CREATE MASTER KEY`
pub(super) fn create_master_key(session: &mut Session, password: &Secret) -> Result<(), Failure> {
    session.instance.create_master_key(&passphrase(password))
}

/// `DROP MASTER KEY`
pub(super) fn drop_master_key(session: &mut Session) -> Result<(), Failure> {
    let records = session.instance.catalog().certificates()?;
    if let Some(sealed) = records.iter().find(|record| record.private_key.is_some()) {
        return Err(table::key_in_use(&sealed.name).into());
    }
    let catalog = session.instance.catalog_mut();
    match catalog.drop_master_key()? {
        true => Ok(()),
        false => Err(table::cannot_find("drop", "master key", "").into()),
    }
}

/// `CREATE CERTIFICATE`
pub(super) fn create(session: &mut Session, create: &CreateCertificate) -> Result<(), Failure> {
    let (certificate, identity) = match &create.origin {
        CertificateOrigin::New {
            subject,
            start_date,
            expiry_date,
        } => {
            // Checked before creating a key that could not be stored.
            session.instance.master_key()?;
            let identity = new_identity(subject, start_date.as_ref(), expiry_date.as_ref())?;
            (identity.certificate().clone(), Some(identity))
        }
        CertificateOrigin::File { file, private_key } => {
            let bytes = read_file(session, file)?;
            let certificate = Certificate::read(&bytes).map_err(invalid)?;
            let identity = match private_key {
                None => None,
                Some(key) => {
                    let bytes = read_file(session, &key.file)?;
                    let password = key.password.as_ref().map(passphrase);
                    let key = PrivateKey::read(&bytes, password.as_ref()).map_err(invalid)?;
                    Some(Identity::new(certificate.clone(), key).map_err(invalid)?)
                }
            };
            (certificate, identity)
        }
        CertificateOrigin::Pfx { file, password } => {
            let bytes = read_file(session, file)?;
            let identity = Identity::from_pkcs12(&bytes, &passphrase(password)).map_err(invalid)?;
            (identity.certificate().clone(), Some(identity))
        }
    };
    let private_key = match &identity {
        Some(identity) => Some(session.instance.seal_key(identity)?),
        None => None,
    };
    let (from, to) = certificate.validity();
    let record = CertificateRecord {
        name: create.name.node.text.clone(),
        thumbprint: certificate.thumbprint(),
        certificate: certificate.der().to_vec(),
        private_key,
        subject: certificate.subject().to_owned(),
        serial_number: hexadecimal(certificate.serial()),
        start_date: moment_of(from),
        expiry_date: moment_of(to),
    };
    match session.instance.catalog_mut().add_certificate(&record)? {
        true => Ok(()),
        false => Err(table::certificate_exists(&record.name).into()),
    }
}

/// `DROP CERTIFICATE`
pub(super) fn drop(session: &mut Session, name: &str) -> Result<(), Failure> {
    match session.instance.catalog_mut().drop_certificate(name)? {
        true => Ok(()),
        false => Err(table::cannot_find("drop", "certificate", name).into()),
    }
}

/// Creates a file: either private, or readable by everyone.
type Make = fn(&Path, &[u8]) -> std::io::Result<()>;

/// `BACKUP CERTIFICATE`
pub(super) fn back_up(session: &mut Session, backup: &BackupCertificate) -> Result<(), Failure> {
    let name = &backup.name.node.text;
    let record = session.instance.certificate("find", name)?;
    let certificate = Certificate::read(&record.certificate)?;
    let mut identity = || {
        let identity = session.instance.open_identity(&record)?;
        identity.ok_or_else(|| {
            let reason = format!("certificate '{name}' has no private key here");
            Failure::from(table::encryption_failed(reason))
        })
    };
    let mut files: Vec<(&str, Vec<u8>, Make)> = Vec::new();
    let (public, secret): (Make, Make) = (
        windlass_io::secret::create_public,
        windlass_io::secret::create,
    );
    let pem = |certificate: &Certificate| certificate.to_pem();
    match &backup.content {
        CertificateContent::Public => {
            files.push((
                backup.file.as_str(),
                pem(&certificate)?.into_bytes(),
                public,
            ));
        }
        CertificateContent::WithKey { file, password } => {
            let key = identity()?.key().to_encrypted_pem(&passphrase(password));
            files.push((
                backup.file.as_str(),
                pem(&certificate)?.into_bytes(),
                public,
            ));
            files.push((file.as_str(), key?.as_bytes().to_vec(), secret));
        }
        CertificateContent::Pfx { password } => {
            let pfx = identity()?.to_pkcs12(name, &passphrase(password));
            files.push((backup.file.as_str(), pfx?, secret));
        }
    }
    let mut made: Vec<PathBuf> = Vec::new();
    for (file, bytes, make) in files {
        let path = path_of(session, file)?;
        if make(&path, &bytes).is_err() {
            for path in &made {
                // A certificate without its key would only be in the way of the next attempt.
                let _left = std::fs::remove_file(path);
            }
            return Err(table::cannot_write_file(path.display()).into());
        }
        made.push(path);
    }
    if backup.content != CertificateContent::Public {
        session.instance.catalog_mut().note_key_backup(name)?;
    }
    Ok(())
}

/// A new key with a certificate that is valid between two dates, UTC.
fn new_identity(
    subject: &str,
    start: Option<&Spanned<String>>,
    expiry: Option<&Spanned<String>>,
) -> Result<Identity, Failure> {
    let date = |text: &Spanned<String>| {
        let date: Result<Moment, _> = text.node.parse();
        let date = date.map_err(|_| table::date_conversion_failed())?;
        time_of(date).ok_or_else(|| Failure::from(table::date_conversion_failed()))
    };
    let from = match start {
        Some(text) => date(text)?,
        None => SystemTime::now(),
    };
    let to = match expiry {
        Some(text) => date(text)?,
        None => from + Duration::from_secs(VALID_DAYS * 86_400),
    };
    if to <= from {
        let reason = "EXPIRY_DATE is not after START_DATE";
        return Err(table::encryption_failed(reason).into());
    }
    Ok(Identity::create_valid(subject, from, to)?)
}

fn time_of(moment: Moment) -> Option<SystemTime> {
    let zoned = moment.to_civil().to_zoned(TimeZone::UTC).ok()?;
    let seconds = u64::try_from(zoned.timestamp().as_second()).ok()?;
    Some(UNIX_EPOCH + Duration::from_secs(seconds))
}

fn moment_of(seconds: i64) -> Moment {
    let timestamp = Timestamp::from_second(seconds).unwrap_or(Timestamp::UNIX_EPOCH);
    Moment::new(timestamp.to_zoned(TimeZone::UTC).datetime())
}

fn hexadecimal(bytes: &[u8]) -> String {
    let digits = |text, byte| format!("{text}{byte:02x}");
    bytes.iter().fold(String::new(), digits)
}

/// The messages for a file that is not a certificate or key: SQL Server's, and the reason.
fn invalid(error: windlass_crypt::Error) -> Failure {
    match error {
        windlass_crypt::Error::Password { .. } => error.into(),
        _ => Failure::from(vec![
            table::certificate_file_invalid(),
            table::reason(error),
        ]),
    }
}

fn path_of(session: &Session, written: &str) -> Result<PathBuf, Failure> {
    Ok(session.instance.drives().path(written)?)
}

fn read_file(session: &Session, written: &str) -> Result<Vec<u8>, Failure> {
    let path = path_of(session, written)?;
    windlass_io::secret::read(&path).map_err(|error| {
        Failure::from(vec![
            table::certificate_file_invalid(),
            table::found_on_device(path.display(), error),
        ])
    })
}
