//! The configuration files and their precedence.
//!
//! The command line overrides the environment, which overrides the user's file, which overrides the
//! system's file, which overrides built-in defaults. `--config` (or `WINDLASS_CONFIG`) names a file
//! that replaces both. An unknown key is an error, so that misspelt settings are noticed. A file that somebody else
//! could have written is refused: settings name commands to run.

mod asked;
mod fault;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::ArgMatches;
use clap::parser::ValueSource;
use serde::Deserialize;
use serde_json::{Value as Json, json};
use windlass_base::message::table;
use windlass_instance::RestorePolicy;

use super::texts;
use crate::args::Common;
use crate::command::Outcome;
use crate::logging::{self, Format, Level};
use crate::output::{Console, Layout, result_json};
pub(crate) use asked::ask_for_json;
use fault::fault;

const BUILT_IN: &str = "built in";

const FORMAT: Format = Format::Text;

const LEVEL: Level = Level::Info;

/// The variable that gives this machine a name.
const MACHINE_NAME: &str = "WINDLASS_MACHINE_NAME";

/// Maximum length of a file.
const BYTES_MAX: u64 = 1 << 20;

const SYSTEM_FILE: &str = "/etc/windlass/config.toml";

/// The keys of a file and what they mean, for the manual page.
pub(super) const KEYS: &[(&str, &str)] = &[
    ("instance", "The instance directory, as --instance."),
    (
        "machine_name",
        "The name of this machine in backups and history, where the system's name changes, as in most containers.",
    ),
    ("json", "true: machine-readable output, as --json."),
    (
        "metrics",
        "A file for the textfile collector of node_exporter, updated after each backup, restore and script.",
    ),
    (
        "on_success",
        "A command to run after windlass sqlbackup has succeeded, with the report as its input.",
    ),
    (
        "on_failure",
        "The same after errors or warnings; the exit code is in WINDLASS_EXIT_CODE.",
    ),
    (
        "log_file",
        "A log of the start, end and errors of statements.",
    ),
    ("log_format", "text or json."),
    ("log_level", "error, warn, info or debug."),
    ("restore_folders", "Folders to which restores are confined."),
    (
        "restores_must_be_encrypted",
        "true: backups that are not encrypted are not restored.",
    ),
    (
        "restores_signed_by",
        "Public keys, of which one must have signed what is restored.",
    ),
    (
        "drives",
        "A table: the folder of each drive letter, as --drive.",
    ),
];

/// The content of a file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    instance: Option<PathBuf>,
    machine_name: Option<String>,
    json: Option<bool>,
    metrics: Option<PathBuf>,
    on_success: Option<String>,
    on_failure: Option<String>,
    log_file: Option<PathBuf>,
    log_format: Option<Format>,
    log_level: Option<Level>,
    restore_folders: Option<Vec<PathBuf>>,
    restores_must_be_encrypted: Option<bool>,
    restores_signed_by: Option<Vec<PathBuf>>,
    #[serde(default)]
    drives: BTreeMap<String, PathBuf>,
}

/// A value and its source.
#[derive(Debug, Clone)]
struct Setting<T> {
    value: T,
    origin: String,
}

/// The effective settings.
#[derive(Debug)]
pub(crate) struct Settings {
    instance: Setting<Option<PathBuf>>,
    machine_name: Setting<Option<String>>,
    json: Setting<bool>,
    metrics: Setting<Option<PathBuf>>,
    on_success: Setting<Option<String>>,
    on_failure: Setting<Option<String>>,
    log_file: Setting<Option<PathBuf>>,
    log_format: Setting<Option<Format>>,
    log_level: Setting<Option<Level>>,
    restore_folders: Setting<Option<Vec<PathBuf>>>,
    restores_must_be_encrypted: Setting<Option<bool>>,
    restores_signed_by: Setting<Option<Vec<PathBuf>>>,
    drives: BTreeMap<char, Setting<PathBuf>>,
    /// The files searched for, and whether they exist.
    pub(super) files: Vec<(PathBuf, bool)>,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("{path}: {source}")]
    Read {
        path: String,
        source: std::io::Error,
    },
    #[error("{0}")]
    Toml(String),
    #[error("the log '{path}' cannot be opened: {source}")]
    Log {
        path: String,
        source: std::io::Error,
    },
    #[error("{path}: '{letter}' under [drives] is not a letter")]
    Drive { path: String, letter: String },
    #[error(
        "{origin}: '{name}' cannot be the name of a machine; give machine_name a name without a backslash, or \
         remove it for the system's"
    )]
    MachineName { origin: String, name: String },
}

/// Reads the files and applies the command line.
pub(crate) fn load(common: &Common, matches: &ArgMatches) -> Result<Settings, Error> {
    let mut settings = Settings::unset();
    settings.read_all(common.config.as_deref())?;
    settings.override_by(common, matches);
    settings.check()?;
    Ok(settings)
}

fn built_in<T>(value: T) -> Setting<T> {
    Setting {
        value,
        origin: BUILT_IN.to_owned(),
    }
}

/// Whether a file does not exist, or is in a folder that this user cannot enter, such as another
/// user's home.
fn is_out_of_reach(path: &Path, error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{NotADirectory, NotFound, PermissionDenied};
    match error.kind() {
        NotFound | NotADirectory => true,
        PermissionDenied => {
            std::fs::symlink_metadata(path).is_err_and(|error| error.kind() == PermissionDenied)
        }
        _ => false,
    }
}

fn user_file() -> Option<PathBuf> {
    crate::user::settings_folder().map(|folder| folder.join("windlass/config.toml"))
}

impl Settings {
    fn unset() -> Self {
        Self {
            instance: built_in(None),
            machine_name: built_in(None),
            json: built_in(false),
            metrics: built_in(None),
            on_success: built_in(None),
            on_failure: built_in(None),
            log_file: built_in(None),
            log_format: built_in(None),
            log_level: built_in(None),
            restore_folders: built_in(None),
            restores_must_be_encrypted: built_in(None),
            restores_signed_by: built_in(None),
            drives: BTreeMap::new(),
            files: Vec::new(),
        }
    }

    /// Reads the file that the user names, which must exist; or the system's and the user's.
    fn read_all(&mut self, config: Option<&Path>) -> Result<(), Error> {
        if let Some(path) = config {
            return self.read(path, true);
        }
        self.read(Path::new(SYSTEM_FILE), false)?;
        match user_file() {
            Some(path) => self.read(&path, false),
            None => Ok(()),
        }
    }

    fn read(&mut self, path: &Path, must_exist: bool) -> Result<(), Error> {
        let shown = path.display().to_string();
        let text = match windlass_io::obeyed::read(path, BYTES_MAX) {
            Ok(text) => text,
            Err(error) if !must_exist && is_out_of_reach(path, &error) => {
                self.files.push((path.to_owned(), false));
                return Ok(());
            }
            Err(source) => {
                return Err(Error::Read {
                    path: shown,
                    source,
                });
            }
        };
        self.files.push((path.to_owned(), true));
        let file: Written =
            toml::from_str(&text).map_err(|error| Error::Toml(fault(&shown, &text, &error)))?;
        // Paths in a file are relative to the file.
        let folder = path.parent().unwrap_or(Path::new("."));
        let absolute = |path: PathBuf| folder.join(path);
        self.instance.put(file.instance.map(absolute), &shown);
        self.machine_name.put(file.machine_name, &shown);
        self.metrics.put(file.metrics.map(absolute), &shown);
        self.on_success.put(file.on_success, &shown);
        self.on_failure.put(file.on_failure, &shown);
        self.log_file.put(file.log_file.map(absolute), &shown);
        self.log_format.put(file.log_format, &shown);
        self.log_level.put(file.log_level, &shown);
        let all = |paths: Vec<PathBuf>| paths.into_iter().map(absolute).collect();
        self.restore_folders
            .put(file.restore_folders.map(all), &shown);
        self.restores_signed_by
            .put(file.restores_signed_by.map(all), &shown);
        self.restores_must_be_encrypted
            .put(file.restores_must_be_encrypted, &shown);
        if let Some(json) = file.json {
            self.json = Setting {
                value: json,
                origin: shown.clone(),
            };
        }
        for (letter, target) in file.drives {
            let mut characters = letter.trim_end_matches(':').chars();
            let (Some(drive), None, true) = (
                characters.next(),
                characters.next(),
                letter.starts_with(|first: char| first.is_ascii_alphabetic()),
            ) else {
                return Err(Error::Drive {
                    path: shown,
                    letter,
                });
            };
            let setting = Setting {
                value: absolute(target),
                origin: shown.clone(),
            };
            self.drives.insert(drive.to_ascii_uppercase(), setting);
        }
        Ok(())
    }

    /// Machines without a name would all be one.
    fn check(&self) -> Result<(), Error> {
        let Setting { value, origin } = &self.machine_name;
        match value {
            Some(name) if name.trim().is_empty() || name.contains('\\') => {
                Err(Error::MachineName {
                    origin: origin.clone(),
                    name: name.clone(),
                })
            }
            _ => Ok(()),
        }
    }

    fn override_by(&mut self, common: &Common, matches: &ArgMatches) {
        let origin = |name: &str, variable: &str| match matches.value_source(name) {
            Some(ValueSource::EnvVariable) => format!("environment, {variable}"),
            _ => "command line".to_owned(),
        };
        if let Some(instance) = &common.instance {
            self.instance = Setting {
                value: Some(instance.clone()),
                origin: origin("instance", "WINDLASS_INSTANCE"),
            };
        }
        let machine = std::env::var(MACHINE_NAME).ok();
        let machine = machine.filter(|name| !name.is_empty());
        self.machine_name
            .put(machine, &format!("environment, {MACHINE_NAME}"));
        if common.json {
            self.json = Setting {
                value: true,
                origin: "command line".to_owned(),
            };
        }
        let line = "command line";
        self.log_file.put(common.log_file.clone(), line);
        self.log_format.put(common.log_format, line);
        self.log_level.put(common.log_level, line);
        for (letter, folder) in &common.drive {
            let setting = Setting {
                value: folder.clone(),
                origin: "command line".to_owned(),
            };
            self.drives.insert(*letter, setting);
        }
    }

    /// Copies the settings to the command line arguments.
    pub(crate) fn apply(&self, common: &mut Common) {
        common.instance.clone_from(&self.instance.value);
        common.json = self.json.value;
        common.machine_name.clone_from(&self.machine_name.value);
        common.restores = RestorePolicy {
            folders: self.restore_folders.value.clone().unwrap_or_default(),
            must_be_encrypted: self.restores_must_be_encrypted.value.unwrap_or_default(),
            signed_by: self.restores_signed_by.value.clone().unwrap_or_default(),
        };
        common.drive = self
            .drives
            .iter()
            .map(|(letter, folder)| (*letter, folder.value.clone()))
            .collect();
    }

    /// What the log is: its file, format and level.
    pub(crate) fn log(&self) -> (Option<&Path>, Option<Format>, Option<Level>) {
        let file = self.log_file.value.as_deref();
        (file, self.log_format.value, self.log_level.value)
    }

    /// Starts the log, if one is requested; a server always has one.
    pub(crate) fn begin_log(&self, is_server: bool) -> Result<(), Error> {
        let file = self.log_file.value.as_deref();
        if self.log() == (None, None, None) && !is_server {
            return Ok(());
        }
        let format = self.log_format.value.unwrap_or(FORMAT);
        let level = self.log_level.value.unwrap_or(LEVEL);
        logging::begin(file, format, level).map_err(|source| Error::Log {
            path: file.unwrap_or(Path::new("-")).display().to_string(),
            source,
        })
    }

    /// The metrics file, updated after each run.
    pub(crate) fn metrics(&self) -> Option<&Path> {
        self.metrics.value.as_deref()
    }

    /// The command to run after success or failure, unless the command line names one.
    pub(super) fn hook(&self, succeeded: bool) -> Option<&str> {
        let hook = if succeeded {
            &self.on_success
        } else {
            &self.on_failure
        };
        hook.value.as_deref()
    }
}

impl<T> Setting<Option<T>> {
    /// Takes a value and its source.
    fn put(&mut self, found: Option<T>, origin: &str) {
        if found.is_some() {
            self.value = found;
            origin.clone_into(&mut self.origin);
        }
    }
}

/// `windlass config [--effective]`
pub(super) fn show(settings: &Settings, all: bool, common: &Common) -> Outcome {
    let mut rows = rows(settings);
    rows.retain(|row| all || row.last().is_none_or(|origin| origin != BUILT_IN));
    if common.json {
        let objects: Vec<Json> = rows.iter().map(|row| object(row)).collect();
        result_json(&Json::Array(objects).to_string());
        return Outcome::Succeeded;
    }
    let mut console = Console::new(common.json, Layout::Table);
    texts(&["setting", "value", "origin"], rows).send(&mut console);
    for (file, is_there) in &settings.files {
        console.message(match is_there {
            true => table::settings_read(file.display()),
            false => table::settings_not_there(file.display()),
        });
    }
    Outcome::Succeeded
}

/// A setting for programs: one that is not set is null, a switch is true or false.
fn object(row: &[String]) -> Json {
    let text = |index: usize| row.get(index).cloned().unwrap_or_default();
    let (setting, value) = (text(0), text(1));
    let is_switch = matches!(setting.as_str(), "json" | "restores_must_be_encrypted");
    let value = match value.as_str() {
        NOT_SET => Json::Null,
        "true" | "false" if is_switch => Json::Bool(value == "true"),
        _ => Json::String(value),
    };
    json!({ "setting": setting, "value": value, "origin": text(2) })
}

/// The value of a setting that is not set.
const NOT_SET: &str = "(none)";

/// Name, value and origin of each setting.
fn rows(settings: &Settings) -> Vec<Vec<String>> {
    fn row<T>(name: &str, setting: &Setting<T>, value: impl Fn(&T) -> String) -> Vec<String> {
        let value = value(&setting.value);
        vec![name.to_owned(), value, setting.origin.clone()]
    }
    let none = || NOT_SET.to_owned();
    let path = |path: &Option<PathBuf>| {
        let path = path.as_ref();
        path.map_or_else(none, |path| path.display().to_string())
    };
    let paths = |paths: &Option<Vec<PathBuf>>| {
        let paths = paths.iter().flatten();
        let paths: Vec<_> = paths.map(|path| path.display().to_string()).collect();
        match paths.is_empty() {
            true => none(),
            false => paths.join(", "),
        }
    };
    let text = |text: &Option<String>| text.clone().unwrap_or_else(none);
    let mut rows = vec![
        row("instance", &settings.instance, path),
        row("machine_name", &settings.machine_name, text),
        row("json", &settings.json, ToString::to_string),
        row("metrics", &settings.metrics, path),
        row("on_success", &settings.on_success, text),
        row("on_failure", &settings.on_failure, text),
        row("log_file", &settings.log_file, path),
        row("log_format", &settings.log_format, |format| {
            logging::name(&format.unwrap_or(FORMAT))
        }),
        row("log_level", &settings.log_level, |level| {
            logging::name(&level.unwrap_or(LEVEL))
        }),
        row("restore_folders", &settings.restore_folders, paths),
        row(
            "restores_must_be_encrypted",
            &settings.restores_must_be_encrypted,
            |is_set| is_set.unwrap_or_default().to_string(),
        ),
        row("restores_signed_by", &settings.restores_signed_by, paths),
    ];
    for (letter, folder) in &settings.drives {
        let name = format!("drives.{letter}");
        rows.push(row(&name, folder, |path| path.display().to_string()));
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manual_page_has_every_key_of_the_file() {
        let unknown = toml::from_str::<Written>("surely_no_key = 1").unwrap_err();
        let text = unknown.message().to_owned();
        let expected = text.split("expected one of").nth(1).unwrap();
        let keys: Vec<&str> = expected
            .split(',')
            .map(|key| key.trim().trim_matches('`'))
            .collect();
        let documented: Vec<&str> = KEYS.iter().map(|(key, _)| *key).collect();
        assert_eq!(documented, keys);
    }
}
