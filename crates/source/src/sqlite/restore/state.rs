//! The state file that connects the statements of a restore sequence.

use std::io;
use std::path::{Path, PathBuf};

use serde::de::Error as _;
use serde::{Deserialize, Serialize};
use windlass_base::{Guid, Lsn};
use windlass_io::own;

use super::{RequiredBase, remove_file};
use crate::sqlite::{beside, file_error, spool};
use crate::{Error, Protection};

const VERSION: u32 = 1;

/// Maximum length of a state file.
const STATE_BYTES_MAX: u64 = 1 << 20;

/// Progress of the last restore of a sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RestoreProgress {
    /// A differential is being applied, or was when the restore was killed.
    Applying,
    /// A log backup may have been applied in part: it can be applied again, up to the same point or further.
    Rolling,
    /// The staging file contains the whole backup set.
    Ready,
}

/// The state of a sequence of restores.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RestoringState {
    pub database_name: String,
    /// Family of the database that was backed up.
    #[serde(with = "as_text")]
    pub family_guid: Guid,
    /// The backup set that was restored last.
    #[serde(with = "as_text")]
    pub set_guid: Guid,
    #[serde(with = "as_text")]
    pub checkpoint_lsn: Lsn,
    /// Whether it was a differential, or followed by a spool; no differential can follow.
    pub is_differential: bool,
    /// Length of the database file.
    pub size_bytes: u64,
    /// Protection of the base; later backups of the sequence must not have less.
    pub protection: Protection,
    /// Permissions for the database, if it replaces none.
    pub mode: Option<u16>,
    /// Whether the content may be something other than a database.
    pub as_is: bool,
    /// The registered database that the file is made for; nil for none.
    #[serde(with = "as_text")]
    pub made_for: Guid,
    /// The number of the file that the sequence is to replace, in its file system; none where the name is free.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaced: Option<u64>,
    /// Where the content is in the history of the write-ahead log; empty if that is not known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub wal_position: String,
    /// The time up to which a log is being applied, in microseconds since 1970, UTC; 0 if none is.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub rolling_us: u64,
    /// The time of the content, as far as logs have been applied; 0 before the first.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub reached_us: u64,
    pub progress: RestoreProgress,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the form that serde wants"
)]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

#[derive(Serialize, Deserialize)]
struct Stored<T> {
    version: u32,
    restoring: T,
}

/// Identities and positions in human-readable form.
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
    /// The LSN of the content: that of the set that was restored last, or of the time up to which logs have been applied.
    pub fn reached_lsn(&self) -> Lsn {
        match self.reached_us {
            0 => self.checkpoint_lsn,
            reached_us => spool::lsn_of(reached_us),
        }
    }

    /// The time of the content, in milliseconds since 1970, UTC; before the first log, to the second.
    pub fn reached_ms(&self) -> u64 {
        match self.reached_us {
            0 => u64::from(self.checkpoint_lsn.vlf) * 1000,
            reached_us => reached_us / 1000,
        }
    }

    /// Whether a differential may be applied now: only to exactly its base. Extents that changed
    /// back to their state in the base are not part of a differential, so no other differential may
    /// come in between.
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

    /// Writes the state next to `target`, durably and in one step.
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

/// The state next to `target`. A state without a staging file comes from a crash right after the
/// end of a restore, and means nothing.
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
        let message = format!("version {found}; this program supports version {known}");
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
        RestoreProgress::Rolling => Err(Error::RollInterrupted { path: path() }),
    }
}

/// The state of a sequence that a log can continue, also one that was interrupted.
pub(super) fn read_for_log(target: &Path) -> Result<RestoringState, Error> {
    match read(target)? {
        Some(state) if state.progress == RestoreProgress::Rolling => Ok(state),
        _ => read_ready(target),
    }
}

/// The file that collects the log of a set while it is applied.
pub(super) fn log_path(target: &Path) -> PathBuf {
    beside(target, ".windlass-restoring.log")
}

/// Removes the state next to `target`, if it exists, and what a killed restore of a log has left.
pub(super) fn remove(target: &Path) -> Result<(), Error> {
    let path = state_path(target);
    remove_file(&log_path(target))?;
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
            protection: crate::Sealing::Passphrase.into(),
            mode: Some(0o640),
            as_is: false,
            made_for: Guid::random(),
            replaced: Some(7),
            wal_position: String::new(),
            rolling_us: 0,
            reached_us: 0,
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
    fn a_state_that_cannot_be_read_is_not_taken_for_none() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("a.db");
        std::fs::create_dir(state_path(&target)).unwrap();
        let error = read(&target).unwrap_err();
        assert!(matches!(error, Error::Io { action: "read", .. }), "{error}");
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
