//! What a statement says about the stores of its URLs: the credential, and options in JSON.

use serde_json::Value as Json;
use windlass_base::message::table;
use windlass_device::{LockMode, ObjectLock, ObjectSettings, PartChecksum, StoreKind};

use super::credential::CredentialChoice;
use super::{DeviceName, device};
use crate::{Failure, Session};

/// Tags that a store takes of an object, and their lengths.
const TAGS_MAX: usize = 10;
const TAG_NAME_CHARACTERS_MAX: usize = 128;
const TAG_VALUE_CHARACTERS_MAX: usize = 256;

/// What is implemented of `BACKUP_OPTIONS`.
fn of_backups(kind: StoreKind) -> &'static str {
    match kind {
        StoreKind::S3 => {
            "region, storage_class, tags, checksum, object_lock, concurrency and write_only are"
        }
        StoreKind::Azure => "storage_class, tags and concurrency are",
        StoreKind::Google => "storage_class and concurrency are",
    }
}

/// What is said about the stores of URLs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StoreOptions {
    pub credential: CredentialChoice,
    /// `BACKUP_OPTIONS` or `RESTORE_OPTIONS`: `{"s3": {"region": "eu-central-1"}}`
    pub json: Option<String>,
}

/// Whose options they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    Backup,
    Restore,
}

impl Use {
    fn option(self) -> &'static str {
        match self {
            Self::Backup => "BACKUP_OPTIONS",
            Self::Restore => "RESTORE_OPTIONS",
        }
    }
}

impl StoreOptions {
    /// How the objects among the devices are reached.
    ///
    /// # Errors
    /// If nothing of it would have an effect, or it is invalid.
    pub(super) fn of_devices(
        &self,
        session: &Session,
        devices: &[DeviceName],
        used: Use,
    ) -> Result<device::Store, Failure> {
        self.check_devices(session, devices, used)?;
        let (kind, settings) = self.settings(used)?.unzip();
        Ok(device::Store {
            credential: self.credential.clone(),
            settings: settings.unwrap_or_default(),
            kind: kind.map(|kind| (kind, used.option())),
            takes_folders: false,
        })
    }

    /// Refuses what would do nothing: no device is a URL.
    fn check_devices(
        &self,
        session: &Session,
        devices: &[DeviceName],
        used: Use,
    ) -> Result<(), Failure> {
        let given = match (&self.credential, &self.json) {
            (_, Some(_)) => used.option(),
            (CredentialChoice::Any, None) => return Ok(()),
            _ => "CREDENTIAL",
        };
        match device::has_url(session, devices)? {
            true => Ok(()),
            false => Err(table::option_of_urls(given).into()),
        }
    }

    /// The options, checked, and the kind of store that they are for.
    fn settings(&self, used: Use) -> Result<Option<(StoreKind, ObjectSettings)>, Failure> {
        let Some(json) = &self.json else {
            return Ok(None);
        };
        let read = read(json, used);
        read.map(Some)
            .map_err(|why| table::store_options_invalid(used.option(), why).into())
    }
}

fn read(json: &str, used: Use) -> Result<(StoreKind, ObjectSettings), String> {
    let example = r#"write {"s3": {"region": "eu-central-1"}}"#;
    // The parser's own words would quote the text.
    let parsed: Json =
        serde_json::from_str(json).map_err(|_| format!("it is not JSON; {example}"))?;
    let kinds = [StoreKind::S3, StoreKind::Azure, StoreKind::Google];
    let said = parsed.as_object().filter(|outer| outer.len() == 1);
    let said = said.and_then(|outer| {
        kinds
            .into_iter()
            .find_map(|kind| Some((kind, outer.get(kind.word())?.as_object()?)))
    });
    let (kind, said) =
        said.ok_or_else(|| format!("it has one object, 's3', 'azure' or 'gs'; {example}"))?;
    let mut settings = ObjectSettings::default();
    for (name, value) in said {
        let is_read = match used {
            Use::Backup => of_backup(&mut settings, kind, name, value)?,
            Use::Restore => of_any(&mut settings, kind, name, value)?,
        };
        if !is_read {
            return Err(match used {
                Use::Backup => format!(
                    "'{}' is not implemented for '{}'; {}",
                    shown(name),
                    kind.word(),
                    of_backups(kind)
                ),
                Use::Restore => format!(
                    "'{}' has no effect on a restore; concurrency has, and region of 's3'",
                    shown(name)
                ),
            });
        }
    }
    Ok((kind, settings))
}

/// Reads what backups and restores have; `false` if it is nothing of that.
fn of_any(
    settings: &mut ObjectSettings,
    kind: StoreKind,
    name: &str,
    value: &Json,
) -> Result<bool, String> {
    match (name, kind) {
        ("region", StoreKind::S3) => settings.region = Some(word(name, value)?),
        ("concurrency", _) => settings.concurrency = Some(concurrency(value)?),
        _ => return Ok(false),
    }
    Ok(true)
}

/// Reads what backups have; `false` if it is nothing of that.
fn of_backup(
    settings: &mut ObjectSettings,
    kind: StoreKind,
    name: &str,
    value: &Json,
) -> Result<bool, String> {
    match (name, kind) {
        ("storage_class", _) => settings.storage_class = Some(word(name, value)?),
        ("tags", StoreKind::S3 | StoreKind::Azure) => settings.tags = tags(value)?,
        ("checksum", StoreKind::S3) => settings.checksum = checksum(value)?,
        ("write_only", StoreKind::S3) => {
            let refused = || "'write_only' is true or false".to_owned();
            settings.write_only = value.as_bool().ok_or_else(refused)?;
        }
        ("object_lock", StoreKind::S3) => settings.lock = Some(lock(value)?),
        _ => return of_any(settings, kind, name, value),
    }
    Ok(true)
}

fn word(name: &str, value: &Json) -> Result<String, String> {
    let text = value.as_str().filter(|text| is_word(text));
    text.map(str::to_owned)
        .ok_or_else(|| format!("'{name}' is a text of letters, digits, '-' and '_', at most 64"))
}

/// A name that was written, for a message.
fn shown(name: &str) -> String {
    name.chars()
        .take(64)
        .flat_map(char::escape_default)
        .collect()
}

/// It is sent in a header.
fn is_word(text: &str) -> bool {
    let letters = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    (1..=64).contains(&text.len()) && text.chars().all(letters)
}

fn concurrency(value: &Json) -> Result<usize, String> {
    let number = value
        .as_u64()
        .and_then(|number| usize::try_from(number).ok());
    let number = number.filter(|number| (1..=ObjectSettings::CONCURRENCY_MAX).contains(number));
    number.ok_or_else(|| {
        format!(
            "'concurrency' is a number of parts of a stripe on their way at a time, 1 to {}",
            ObjectSettings::CONCURRENCY_MAX
        )
    })
}

fn checksum(value: &Json) -> Result<Option<PartChecksum>, String> {
    match value.as_str() {
        Some("crc64nvme") => Ok(Some(PartChecksum::Crc64Nvme)),
        Some("sha256") => Ok(Some(PartChecksum::Sha256)),
        Some("none") => Ok(None),
        _ => Err("'checksum' is 'crc64nvme', 'sha256' or 'none'".to_owned()),
    }
}

fn lock(value: &Json) -> Result<ObjectLock, String> {
    let refused = || {
        format!(
            "'object_lock' is an object with 'mode' ('GOVERNANCE' or 'COMPLIANCE') and 'days' (1 to {}), with 'legal_hold' \
             (true or false), or with all three",
            ObjectLock::DAYS_MAX
        )
    };
    let said = value.as_object().ok_or_else(refused)?;
    let is_known = |name: &String| matches!(name.as_str(), "mode" | "days" | "legal_hold");
    let mode = said
        .get("mode")
        .map(|mode| mode.as_str().and_then(LockMode::of_word));
    let days = said.get("days").map(|days| {
        let days = days.as_u64().and_then(|days| u32::try_from(days).ok());
        days.filter(|days| (1..=ObjectLock::DAYS_MAX).contains(days))
    });
    let legal_hold = said.get("legal_hold").map_or(Some(false), Json::as_bool);
    let retention = match (mode, days) {
        (None, None) => None,
        (Some(Some(mode)), Some(Some(days))) => Some((mode, days)),
        _ => return Err(refused()),
    };
    let lock = ObjectLock {
        retention,
        legal_hold: legal_hold.ok_or_else(refused)?,
    };
    match said.keys().all(is_known) && (lock.retention.is_some() || lock.legal_hold) {
        true => Ok(lock),
        false => Err(refused()),
    }
}

fn tags(value: &Json) -> Result<Vec<(String, String)>, String> {
    let refused = || {
        format!(
            "'tags' is an object of at most {TAGS_MAX} texts, with names of 1 to {TAG_NAME_CHARACTERS_MAX} characters \
             and values of up to {TAG_VALUE_CHARACTERS_MAX}"
        )
    };
    let tags = value.as_object().filter(|tags| tags.len() <= TAGS_MAX);
    let tags = tags.ok_or_else(refused)?.iter();
    tags.map(|(name, value)| {
        let length = name.chars().count();
        let value = value.as_str().filter(|value| {
            (1..=TAG_NAME_CHARACTERS_MAX).contains(&length)
                && value.chars().count() <= TAG_VALUE_CHARACTERS_MAX
                && !value.chars().chain(name.chars()).any(char::is_control)
        });
        Ok((name.clone(), value.ok_or_else(refused)?.to_owned()))
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_used_or_refused() {
        let said = r#"{"s3": {"region": "r-1", "storage_class": "STANDARD_IA", "checksum": "sha256", "tags": {"a": "1"}}}"#;
        let read_as = |json: &str, used| {
            let options = StoreOptions {
                json: Some(json.to_owned()),
                ..StoreOptions::default()
            };
            options.settings(used).map(|read| read.unwrap().1)
        };
        let found = read_as(said, Use::Backup).unwrap();
        let expected = ObjectSettings {
            region: Some("r-1".to_owned()),
            storage_class: Some("STANDARD_IA".to_owned()),
            tags: vec![("a".to_owned(), "1".to_owned())],
            checksum: Some(PartChecksum::Sha256),
            lock: None,
            concurrency: None,
            write_only: false,
        };
        assert_eq!(found, expected);
        let locked = |lock: &str| {
            let json = format!(r#"{{"s3": {{"object_lock": {lock}}}}}"#);
            read_as(&json, Use::Backup).map(|settings| settings.lock)
        };
        let compliance = r#"{"mode": "COMPLIANCE", "days": 30, "legal_hold": true}"#;
        assert_eq!(
            locked(compliance).unwrap(),
            Some(ObjectLock {
                retention: Some((LockMode::Compliance, 30)),
                legal_hold: true,
            })
        );
        for half in [
            "{}",
            r#"{"mode": "COMPLIANCE"}"#,
            r#"{"days": 3}"#,
            r#"{"mode": "compliance", "days": 3}"#,
            r#"{"mode": "COMPLIANCE", "days": 0}"#,
            r#"{"mode": "COMPLIANCE", "days": 40000}"#,
            r#"{"legal_hold": false}"#,
            r#"{"legal_hold": "ON"}"#,
            r#"{"legal_hold": true, "until": "2027-01-01"}"#,
            "true",
        ] {
            assert!(locked(half).is_err(), "{half}");
        }
        for used in [Use::Backup, Use::Restore] {
            let found = read_as(r#"{"azure": {"concurrency": 16}}"#, used).unwrap();
            assert_eq!(found.concurrency, Some(16));
        }
        let restored = read_as(r#"{"s3":{"region":"r-1"}}"#, Use::Restore).unwrap();
        assert_eq!(restored.region.as_deref(), Some("r-1"));
        for refused in [
            "",
            "[]",
            "{}",
            r#"{"s3": 1}"#,
            r#"{"azure": {"region": "r-1"}}"#,
            r#"{"azure": {"object_lock": {"legal_hold": true}}}"#,
            r#"{"gs": {"tags": {"a": "1"}}}"#,
            r#"{"s3": {}, "gs": {}}"#,
            r#"{"s3": {"region": 1}}"#,
            r#"{"s3": {"region": "a\r\nb"}}"#,
            r#"{"s3": {"concurrency": 0}}"#,
            r#"{"s3": {"concurrency": 65}}"#,
            r#"{"gs": {"concurrency": "3"}}"#,
            r#"{"s3": {"write_only": "yes"}}"#,
            r#"{"s3": {"checksum": "md5"}}"#,
            r#"{"s3": {"tags": ["a"]}}"#,
            r#"{"s3": {"tags": {"": "a"}}}"#,
            r#"{"s3": {"tags": {"a": 1}}}"#,
        ] {
            assert!(read_as(refused, Use::Backup).is_err(), "{refused}");
        }
        for (of_other, class) in [
            (
                r#"{"azure": {"storage_class": "Cool", "tags": {"a": "1"}}}"#,
                "Cool",
            ),
            (r#"{"gs": {"storage_class": "NEARLINE"}}"#, "NEARLINE"),
        ] {
            let found = read_as(of_other, Use::Backup).unwrap();
            assert_eq!(found.storage_class.as_deref(), Some(class));
            assert!(read_as(of_other, Use::Restore).is_err(), "{of_other}");
        }
        assert!(read_as(said, Use::Restore).is_err());
        assert!(
            read_as(
                r#"{"s3": {"object_lock": {"legal_hold": true}}}"#,
                Use::Restore
            )
            .is_err()
        );
    }
}
