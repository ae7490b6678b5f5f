//! Server options: `sp_configure` sets them, `RECONFIGURE` installs them, `sys.configurations`
//! shows them.
//!
//! A value passes through three places: `value` (set), `installed` (RECONFIGURE has run),
//! `value_in_use` (in effect). A dynamic option takes effect when it is installed; the others when
//! the instance is next opened, which corresponds to a restart of SQL Server.

use rusqlite::{Row, params};

use crate::error::Doing;
use crate::{Catalog, Error};

/// The options that this program reads by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerOption {
    /// `recovery interval (min)`
    RecoveryInterval,
    /// `show advanced options`
    ShowAdvancedOptions,
    /// `max server memory (MB)`
    MaxServerMemory,
    /// `media retention`
    MediaRetention,
    /// `backup compression default`
    BackupCompressionDefault,
    /// `backup checksum default`
    BackupChecksumDefault,
    /// `hardware offload enabled`
    HardwareOffloadEnabled,
    /// `hardware offload config`: a bit for each accelerator; QAT is 1.
    HardwareOffloadConfig,
    /// `hardware offload mode`: a bit for each accelerator restricted to software.
    HardwareOffloadMode,
    /// `backup compression algorithm`
    BackupCompressionAlgorithm,
    /// `restores must be encrypted`: a Windlass option.
    RestoresMustBeEncrypted,
}

impl ServerOption {
    /// Its name in `sys.configurations`.
    pub fn name(self) -> &'static str {
        match self {
            Self::RecoveryInterval => "recovery interval (min)",
            Self::ShowAdvancedOptions => "show advanced options",
            Self::MaxServerMemory => "max server memory (MB)",
            Self::MediaRetention => "media retention",
            Self::BackupCompressionDefault => "backup compression default",
            Self::BackupChecksumDefault => "backup checksum default",
            Self::HardwareOffloadEnabled => "hardware offload enabled",
            Self::HardwareOffloadConfig => "hardware offload config",
            Self::HardwareOffloadMode => "hardware offload mode",
            Self::BackupCompressionAlgorithm => "backup compression algorithm",
            Self::RestoresMustBeEncrypted => "restores must be encrypted",
        }
    }
}

/// A server option and its values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Configuration {
    /// `name`
    pub name: String,
    /// `minimum`
    pub minimum: i64,
    /// `maximum`
    pub maximum: i64,
    /// `value`: as set by `sp_configure`.
    pub value: i64,
    /// `value_in_use`: in effect.
    pub value_in_use: i64,
    /// `is_dynamic`: takes effect without a restart.
    pub is_dynamic: bool,
    /// `is_advanced`: shown only with `show advanced options`.
    pub is_advanced: bool,
}

impl Configuration {
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            name: row.get("name")?,
            minimum: row.get("minimum")?,
            maximum: row.get("maximum")?,
            value: row.get("value")?,
            value_in_use: row.get("value_in_use")?,
            is_dynamic: row.get("is_dynamic")?,
            is_advanced: row.get("is_advanced")?,
        })
    }
}

impl Catalog {
    /// All server options, by name.
    ///
    /// # Errors
    /// [`Error::Sqlite`].
    pub fn configurations(&self) -> Result<Vec<Configuration>, Error> {
        let doing = "listing server options";
        let mut statement = self
            .connection()
            .prepare_cached("SELECT * FROM own_configuration ORDER BY name")
            .doing(doing)?;
        let rows = statement
            .query_map([], Configuration::read)
            .doing(doing)?
            .collect::<rusqlite::Result<_>>();
        rows.doing(doing)
    }

    /// The value of an option that is in effect.
    ///
    /// # Errors
    /// [`Error::Sqlite`].
    pub fn option_in_use(&self, option: ServerOption) -> Result<i64, Error> {
        self.connection()
            .query_row(
                "SELECT value_in_use FROM own_configuration WHERE name = ?1",
                [option.name()],
                |row| row.get(0),
            )
            .doing("reading a server option")
    }

    /// Sets an option, which takes effect after [`Catalog::reconfigure`]. The caller has checked
    /// the range.
    ///
    /// # Errors
    /// [`Error::Sqlite`].
    pub fn configure(&mut self, name: &str, value: i64) -> Result<(), Error> {
        self.connection()
            .execute(
                "UPDATE own_configuration SET value = ?2 WHERE name = ?1",
                params![name, value],
            )
            .map(|_| ())
            .doing("setting a server option")
    }

    /// Installs all set options: dynamic options take effect now, the others after a restart.
    ///
    /// # Errors
    /// [`Error::Sqlite`].
    pub fn reconfigure(&mut self) -> Result<(), Error> {
        self.connection()
            .execute(
                "UPDATE own_configuration SET installed = value, \
                 value_in_use = CASE is_dynamic WHEN 1 THEN value ELSE value_in_use END \
                 WHERE installed <> value OR (is_dynamic = 1 AND value_in_use <> value)",
                [],
            )
            .map(|_| ())
            .doing("installing server options")
    }

    /// Sets and installs an option in one step, for statements other than `sp_configure`.
    ///
    /// # Errors
    /// [`Error::Sqlite`].
    pub fn install(&mut self, option: ServerOption, value: i64) -> Result<(), Error> {
        self.connection()
            .execute(
                "UPDATE own_configuration SET value = ?2, installed = ?2, \
                 value_in_use = CASE is_dynamic WHEN 1 THEN ?2 ELSE value_in_use END \
                 WHERE name = ?1",
                params![option.name(), value],
            )
            .map(|_| ())
            .doing("installing a server option")
    }

    /// Makes all installed options take effect, like a restart of the server.
    ///
    /// # Errors
    /// [`Error::Sqlite`].
    pub fn restart(&mut self) -> Result<(), Error> {
        let waiting: bool = self
            .connection()
            .query_row(
                "SELECT EXISTS (SELECT 1 FROM own_configuration WHERE value_in_use <> installed)",
                [],
                |row| row.get(0),
            )
            .doing("reading server options")?;
        // Most openings change nothing, and must not wait for a writer.
        if !waiting {
            return Ok(());
        }
        self.connection()
            .execute(
                "UPDATE own_configuration SET value_in_use = installed \
                 WHERE value_in_use <> installed",
                [],
            )
            .map(|_| ())
            .doing("starting with new server options")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(catalog: &Catalog, option: ServerOption) -> (i64, i64) {
        let all = catalog.configurations().unwrap();
        let found = all.iter().find(|row| row.name == option.name()).unwrap();
        (found.value, found.value_in_use)
    }

    #[test]
    fn a_dynamic_option_acts_after_reconfigure_and_another_after_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let mut catalog = Catalog::open(folder.path()).unwrap();
        let dynamic = ServerOption::BackupChecksumDefault;
        let fixed = ServerOption::HardwareOffloadEnabled;
        for option in [dynamic, fixed] {
            catalog.configure(option.name(), 1).unwrap();
            assert_eq!(values(&catalog, option), (1, 0));
        }
        catalog.reconfigure().unwrap();
        assert_eq!(values(&catalog, dynamic), (1, 1));
        assert_eq!(values(&catalog, fixed), (1, 0));
        drop(catalog);
        let mut catalog = Catalog::open(folder.path()).unwrap();
        assert_eq!(values(&catalog, fixed), (1, 0));
        catalog.restart().unwrap();
        assert_eq!(values(&catalog, fixed), (1, 1));
    }

    #[test]
    fn what_was_not_reconfigured_does_not_act_after_a_restart() {
        let mut catalog = Catalog::in_memory().unwrap();
        catalog.configure("hardware offload enabled", 1).unwrap();
        catalog.restart().unwrap();
        assert_eq!(
            values(&catalog, ServerOption::HardwareOffloadEnabled),
            (1, 0)
        );
    }

    #[test]
    fn every_option_has_its_row() {
        let catalog = Catalog::in_memory().unwrap();
        let rows = catalog.configurations().unwrap();
        assert_eq!(rows.len(), 11);
        let memory = catalog.option_in_use(ServerOption::MaxServerMemory);
        assert_eq!(
            memory.unwrap(),
            i64::from(i32::MAX),
            "unlimited, as on SQL Server"
        );
        for option in [
            ServerOption::RecoveryInterval,
            ServerOption::ShowAdvancedOptions,
            ServerOption::MediaRetention,
            ServerOption::BackupCompressionDefault,
            ServerOption::BackupChecksumDefault,
            ServerOption::HardwareOffloadEnabled,
            ServerOption::HardwareOffloadConfig,
            ServerOption::HardwareOffloadMode,
            ServerOption::BackupCompressionAlgorithm,
            ServerOption::RestoresMustBeEncrypted,
        ] {
            assert_eq!(catalog.option_in_use(option).unwrap(), 0, "{option:?}");
        }
    }
}
