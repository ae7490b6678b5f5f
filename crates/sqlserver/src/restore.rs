//! Restores data files from a full backup and its differentials.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;

use windlass_bak::{
    BackupType, Configuration, FileKind, Finding, Listing, Rebuilder, Rebuilt, StoredFile, Target,
};
use windlass_base::{Guid, Lsn, Moment};
use windlass_device::DeviceAddress;
use windlass_io::output;

use crate::input::path_of;
use crate::target::{FileTarget, safe_name};
use crate::{BackupInput, Error};

/// A backup set: its devices (all stripes, in any order) and its position on them.
#[derive(Debug, Clone)]
pub struct Step {
    pub devices: Vec<DeviceAddress>,
    pub position: u16,
}

impl Step {
    /// Its first device.
    ///
    /// # Errors
    /// If there is none.
    fn first(&self) -> Result<&DeviceAddress, Error> {
        self.devices.first().ok_or_else(nothing)
    }

    /// What its first device is called, for errors.
    pub fn path(&self) -> PathBuf {
        self.devices.first().map_or_else(PathBuf::new, path_of)
    }
}

fn nothing() -> Error {
    Error::Sequence {
        path: PathBuf::new(),
        reason: "no backup was named".to_owned(),
    }
}

/// The destination of the database's files.
#[derive(Debug, Clone, Default)]
pub struct Destination {
    /// Folder for the files that are not moved.
    pub folder: Option<PathBuf>,
    /// Paths by logical name.
    pub moves: Vec<(String, PathBuf)>,
    /// Overwrites existing files.
    pub replace: bool,
    /// Writes whatever is readable of a damaged backup.
    pub continue_after_error: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestoredFile {
    pub id: u16,
    pub logical_name: String,
    pub is_log: bool,
    pub path: PathBuf,
    pub bytes: u64,
    /// Extents written from all sets.
    pub extents: u64,
}

#[derive(Debug)]
pub struct Restored {
    pub database: String,
    /// Shared by the database and its restored copies.
    pub family: Guid,
    /// The full backup.
    pub base: RestoredBase,
    pub files: Vec<RestoredFile>,
    /// Bytes of log in the last set.
    pub log_bytes: u64,
    /// The findings about the backups, by step.
    pub findings: Vec<(usize, Finding)>,
}

/// The full backup that a restore began with: differentials must be based on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RestoredBase {
    pub set: Guid,
    pub checkpoint: Lsn,
    pub finished: Option<Moment>,
}

/// Restores a full backup and its differentials to data files.
///
/// # Errors
/// A backup cannot be read, is damaged, or does not fit the sequence; a file cannot be written. In
/// these cases no files are left behind.
pub fn restore(steps: &[Step], destination: &Destination) -> Result<Restored, Error> {
    let (device, configuration) = first_full(steps)?;
    let paths = destination.paths(&configuration)?;
    let metadata = device.file().map(std::fs::metadata);
    let mode = metadata.map_or(0, |found| found.map_or(0, |found| found.mode()));
    // Users who cannot read the backup must not be able to read the database.
    let mode = (mode & 0o666 | 0o600) as u16;
    let mut target = FileTarget::create(paths.clone(), destination.replace, mode)?;
    let mut extents: BTreeMap<u16, u64> = BTreeMap::new();
    let mut findings = Vec::new();
    let mut base = RestoredBase {
        set: Guid::NIL,
        checkpoint: configuration.checkpoint_lsn,
        finished: configuration.finished,
    };
    let mut last = None;
    for (index, step) in steps.iter().enumerate() {
        if index > 0 {
            check_differential(step, base.set, &paths)?;
        }
        let rebuilt = run(step, &mut target, &paths)?;
        let count = rebuilt.findings.len() + rebuilt.more_findings as usize;
        if !destination.continue_after_error
            && let Some(error) = Error::of_findings(step.path(), &rebuilt.findings, count)
        {
            return Err(error);
        }
        if index == 0 {
            base.set = rebuilt.set.header.guid;
        }
        for (file, count) in &rebuilt.extents {
            *extents.entry(*file).or_default() += count;
        }
        findings.extend(rebuilt.findings.iter().map(|found| (index, found.clone())));
        last = Some(rebuilt);
    }
    target.keep()?;
    Ok(report(
        base,
        last,
        configuration,
        &paths,
        &extents,
        findings,
    ))
}

/// The destination of each file of a database, by its logical name.
///
/// # Errors
/// The backup cannot be read, or nothing determines the destination of a file.
pub fn places(steps: &[Step], destination: &Destination) -> Result<Vec<(String, PathBuf)>, Error> {
    let (_, configuration) = first_full(steps)?;
    let paths = destination.paths(&configuration)?;
    let files = configuration.files.iter();
    let placed =
        files.filter_map(|file| Some((file.logical_name.clone(), paths.get(&file.id)?.clone())));
    Ok(placed.collect())
}

/// The first device of the full backup that starts the sequence, and its configuration.
fn first_full(steps: &[Step]) -> Result<(&DeviceAddress, Configuration), Error> {
    let first = steps.first().ok_or_else(nothing)?;
    let configuration = configuration(first)?;
    if configuration.backup_type != BackupType::Database {
        return Err(Error::Sequence {
            path: first.path(),
            reason: format!(
                "a restore begins with a full backup, this one is of type '{}'",
                configuration.backup_type.description()
            ),
        });
    }
    Ok((first.first()?, configuration))
}

fn report(
    base: RestoredBase,
    last: Option<Rebuilt>,
    first: Configuration,
    paths: &BTreeMap<u16, PathBuf>,
    extents: &BTreeMap<u16, u64>,
    findings: Vec<(usize, Finding)>,
) -> Restored {
    let log_bytes = last.as_ref().map_or(0, |rebuilt| rebuilt.log_bytes);
    let configuration = last
        .and_then(|rebuilt| rebuilt.set.configuration().cloned())
        .unwrap_or(first);
    let file = |file: &StoredFile| {
        Some(RestoredFile {
            id: file.id,
            logical_name: file.logical_name.clone(),
            is_log: file.kind == FileKind::Log,
            path: paths.get(&file.id)?.clone(),
            bytes: file.bytes,
            extents: extents.get(&file.id).copied().unwrap_or(0),
        })
    };
    Restored {
        database: configuration.database.clone(),
        family: configuration.family,
        base,
        files: configuration.files.iter().filter_map(file).collect(),
        log_bytes,
        findings,
    }
}

/// The configuration of a set, from its first device.
pub(crate) fn configuration(step: &Step) -> Result<Configuration, Error> {
    let device = step.first()?;
    let input = BackupInput::open(device).map_err(|error| Error::device(device, error))?;
    let listing = Listing::read(input).map_err(|error| Error::backup(device, error))?;
    let set = listing
        .set(step.position)
        .map_err(|error| Error::backup(device, error))?;
    set.configuration().cloned().ok_or_else(|| Error::Sequence {
        path: step.path(),
        reason: "the configuration of the set cannot be read".to_owned(),
    })
}

/// Rejects a set that is not a differential of the full backup.
pub(crate) fn check_differential(
    step: &Step,
    base: Guid,
    paths: &BTreeMap<u16, PathBuf>,
) -> Result<(), Error> {
    let configuration = configuration(step)?;
    let path = step.path();
    if configuration.backup_type != BackupType::Differential {
        return Err(Error::Sequence {
            path,
            reason: format!(
                "only differentials can be applied to a full backup; this one is of type '{}', \
                 whose log only a server can redo",
                configuration.backup_type.description()
            ),
        });
    }
    if configuration.differential_base != base {
        return Err(Error::OtherBase {
            path,
            expected: configuration.differential_base,
            found: base,
        });
    }
    let new = configuration
        .files
        .iter()
        .find(|file| !paths.contains_key(&file.id));
    match new {
        None => Ok(()),
        Some(file) => Err(Error::Sequence {
            path,
            reason: format!(
                "the file '{}' was added since the full backup: move it as well",
                file.logical_name
            ),
        }),
    }
}

/// Writes what a set holds to the files of a database, which have these paths.
pub(crate) fn run(
    step: &Step,
    target: &mut dyn Target,
    paths: &BTreeMap<u16, PathBuf>,
) -> Result<Rebuilt, Error> {
    let mut noting = Noting {
        target,
        failed: None,
    };
    let rebuilt = rebuild(step, &mut noting);
    match noting.failed {
        Some((file, source)) => Err(Error::Target {
            path: paths.get(&file).cloned().unwrap_or_default(),
            source,
        }),
        None => rebuilt,
    }
}

/// Keeps why a file could not be written: the backup is not at fault then.
struct Noting<'t> {
    target: &'t mut dyn Target,
    failed: Option<(u16, io::Error)>,
}

impl Noting<'_> {
    fn noted(&mut self, file: u16, result: io::Result<()>) -> io::Result<()> {
        result.map_err(|error| {
            let told = io::Error::new(error.kind(), error.to_string());
            self.failed.get_or_insert((file, error));
            told
        })
    }
}

impl Target for Noting<'_> {
    fn write(&mut self, file: u16, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let result = self.target.write(file, offset, bytes);
        self.noted(file, result)
    }

    fn set_length(&mut self, file: u16, bytes: u64) -> io::Result<()> {
        let result = self.target.set_length(file, bytes);
        self.noted(file, result)
    }
}

fn rebuild(step: &Step, target: &mut dyn Target) -> Result<Rebuilt, Error> {
    let mut rebuilder = Rebuilder::new(step.position, target);
    for device in &step.devices {
        let input = BackupInput::open(device).map_err(|error| Error::device(device, error))?;
        rebuilder
            .family(input)
            .map_err(|error| Error::backup(device, error))?;
    }
    rebuilder.finish().map_err(|source| Error::Backup {
        path: step.path(),
        source,
    })
}

impl Destination {
    /// The path of each file, by its number.
    fn paths(&self, configuration: &Configuration) -> Result<BTreeMap<u16, PathBuf>, Error> {
        for (logical, _) in &self.moves {
            let is_there = |file: &StoredFile| file.logical_name.eq_ignore_ascii_case(logical);
            if !configuration.files.iter().any(is_there) {
                return Err(Error::NoSuchFile(logical.clone()));
            }
        }
        let mut paths = BTreeMap::new();
        let mut seen = BTreeSet::new();
        for file in &configuration.files {
            let path = self.path(file)?;
            if !seen.insert(path.clone()) {
                return Err(Error::SameDestination(path));
            }
            paths.insert(file.id, path);
        }
        Ok(paths)
    }

    fn path(&self, file: &StoredFile) -> Result<PathBuf, Error> {
        let moved = self
            .moves
            .iter()
            .find(|(logical, _)| file.logical_name.eq_ignore_ascii_case(logical));
        if let Some((_, path)) = moved {
            output::refuse_link_of_others(path).map_err(|error| Error::target(path, error))?;
            return Ok(path.clone());
        }
        let extension = match (file.kind, file.id) {
            (FileKind::Log, _) => "ldf",
            (_, 1) => "mdf",
            _ => "ndf",
        };
        let name = safe_name(&file.logical_name, extension);
        let no_destination = || Error::NoDestination(file.logical_name.clone());
        let path = self.folder.as_ref().ok_or_else(no_destination)?.join(name);
        // The backup chose the name, so that nobody meant what a link leads to.
        if path.is_symlink() {
            let reason = "it is a symbolic link; remove it, or name what it leads to with MOVE";
            let error = io::Error::new(io::ErrorKind::PermissionDenied, reason);
            return Err(Error::target(&path, error));
        }
        Ok(path)
    }
}
