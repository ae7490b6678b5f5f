//! The file that remembers a sequence of restores between two statements.

use std::io;
use std::path::{Path, PathBuf};

use serde::de::Error as _;
use serde::{Deserialize, Serialize};
use windlass_base::{Guid, Lsn};
use windlass_io::own;

use super::super::{beside, file_error};
use super::{RequiredBase, remove_file};
use crate::{Error, Protection};

/// Version of the file's layout.
const VERSION: u32 = 1;

/// Longest state file that is read.
const STATE_BYTES_MAX: u64 = 1 << 20;

/// How far the last restore of a sequence got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RestoreProgress {
    /// A differential is being applied, or was when the restore ended without notice.
    Applying,
    /// The staging file holds the backup set entirely.
    Ready,
}

/// What a sequence of restores stands at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RestoringState {
    /// Name of the database.
    pub database_name: String,
    /// Family of the database that was backed up.
    #[serde(with = "as_text")]
    pub family_guid: Guid,
    /// The backup set that was restored last.
    #[serde(with = "as_text")]
    pub set_guid: Guid,
    /// Its checkpoint.
    #[serde(with = "as_text")]
    pub checkpoint_lsn: Lsn,
    /// Whether it was a differential; none can follow on it.
    pub is_differential: bool,
    /// Length of the database file.
    pub size_bytes: u64,
    /// How the base of the sequence is protected: nothing less may follow.
    pub protection: Protection,
    /// Permissions for the database, if it replaces none.
    pub mode: Option<u16>,
    /// Whether it need not be a database.
    pub as_is: bool,
    /// Whether it is there entirely.
    pub progress: RestoreProgress,
}

#[derive(Serialize, Deserialize)]
struct Stored<T> {
    version: u32,
    restoring: T,
}

/// Identities and positions as people read them.
mod as_text {
    use std::fmt::Display;
    use std::str::FromStr;

    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<T: Display, S: Serializer>(
        value: &T,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.collect_str(value)
    }

    pub(super) fn deserialize<'de, T, D>(from: D) -> Result<T, D::Error>
    where
        T: FromStr<Err: Display>,
        D: Deserializer<'de>,
    {
        String::deserialize(from)?.parse().map_err(D::Error::custom)
    }
}

impl RestoringState {
    /// Whether a differential may be applied now: only on its very base. Extents that are again as
    /// they were in the base are not part of a differential, so another one must not lie between.
    pub(super) fn check_base(&self, target: &Path, base: RequiredBase) -> Result<(), Error> {
        if self.set_guid == base.set_guid && !self.is_differential {
            return Ok(());
        }
        Err(Error::WrongBase {
            path: target.to_owned(),
            found: self.set_guid,
            found_lsn: self.checkpoint_lsn,
            expected: base.set_guid,
            expected_lsn: base.checkpoint_lsn,
        })
    }

    /// Writes the state beside `target`, durably and in one step.
    pub(super) fn write(&self, target: &Path) -> Result<(), Error> {
        let path = state_path(target);
        let stored = Stored {
            version: VERSION,
            restoring: self,
        };
        let text = serde_json::to_vec_pretty(&stored).map_err(|source| Error::StateUnreadable {
            path: path.clone(),
            source,
        })?;
        own::replace(&path, &text).map_err(|error| file_error("write", &path, error))
    }
}

fn state_path(target: &Path) -> PathBuf {
    beside(target, ".windlass-restoring.json")
}

/// The state beside `target`. One without a staging file is what a crash right after the end of a restore
/// leaves, and means nothing.
pub(super) fn read(target: &Path) -> Result<Option<RestoringState>, Error> {
    let path = state_path(target);
    let text = match own::read(&path, STATE_BYTES_MAX) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(file_error("read", &path, error)),
    };
    let state = parse(&text).map_err(|source| Error::StateUnreadable { path, source })?;
    Ok(super::staging_file::staging_path(target)
        .exists()
        .then_some(state))
}

fn parse(text: &[u8]) -> Result<RestoringState, serde_json::Error> {
    let stored: Stored<serde_json::Value> = serde_json::from_slice(text)?;
    if stored.version != VERSION {
        let (found, known) = (stored.version, VERSION);
        let message = format!("version {found}, this program knows version {known}");
        return Err(serde_json::Error::custom(message));
    }
    serde_json::from_value(stored.restoring)
}

/// The state of a sequence that can be continued.
pub(super) fn read_ready(target: &Path) -> Result<RestoringState, Error> {
    let path = || target.to_owned();
    let state = read(target)?.ok_or_else(|| Error::NotRestoring { path: path() })?;
    match state.progress {
        RestoreProgress::Ready => Ok(state),
        RestoreProgress::Applying => Err(Error::RestoreInterrupted { path: path() }),
    }
}

/// Removes the state beside `target`, if there is one.
pub(super) fn remove(target: &Path) -> Result<(), Error> {
    let path = state_path(target);
    remove_file(&beside(&path, ".new"))?;
    remove_file(&path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state() -> RestoringState {
        RestoringState {
            database_name: "Sales".to_owned(),
            family_guid: Guid::random(),
            set_guid: Guid::random(),
            checkpoint_lsn: Lsn {
                vlf: 1_800_000_000,
                block: 77,
                slot: 1,
            },
            is_differential: false,
            size_bytes: 1 << 33,
            protection: Protection::Passphrase,
            mode: Some(0o640),
            as_is: false,
            progress: RestoreProgress::Ready,
        }
    }

    #[test]
    fn what_was_written_is_read_while_a_stage_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("a.db");
        let written = state();
        written.write(&target).unwrap();
        assert_eq!(read(&target).unwrap(), None, "no staging file");
        std::fs::write(super::super::staging_file::staging_path(&target), b"").unwrap();
        assert_eq!(read(&target).unwrap(), Some(written));
        remove(&target).unwrap();
        assert!(matches!(
            read_ready(&target),
            Err(Error::NotRestoring { .. })
        ));
    }

    #[test]
    fn what_is_not_ours_is_refused_with_a_reason() {
        let good = serde_json::to_string(&Stored {
            version: VERSION,
            restoring: state(),
        })
        .unwrap();
        assert!(parse(good.as_bytes()).is_ok());
        for (from, to) in [
            ("\"version\":1", "\"version\":2"),
            ("\"ready\"", "\"half\""),
            ("size", "seize"),
        ] {
            assert!(
                parse(good.replace(from, to).as_bytes()).is_err(),
                "{from} -> {to}"
            );
        }
        assert!(parse(&good.as_bytes()[..good.len() - 1]).is_err());
    }

    #[test]
    fn a_differential_belongs_on_its_very_base() {
        let mut found = state();
        let base = RequiredBase {
            set_guid: found.set_guid,
            checkpoint_lsn: found.checkpoint_lsn,
        };
        let target = Path::new("a.db");
        assert!(found.check_base(target, base).is_ok());
        let other = RequiredBase {
            set_guid: Guid::random(),
            ..base
        };
        assert!(matches!(
            found.check_base(target, other),
            Err(Error::WrongBase { .. })
        ));
        found.is_differential = true;
        assert!(matches!(
            found.check_base(target, base),
            Err(Error::WrongBase { .. })
        ));
    }
}
