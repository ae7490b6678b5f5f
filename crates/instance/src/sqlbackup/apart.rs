//! The files that a command will write, before it writes the first: no two databases share one.

use std::path::{Path, PathBuf};

use windlass_base::Moment;
use windlass_device::DeviceAddress;
use windlass_io::FileIdentity;
use windlass_tsql::sqlbackup::Command;

use super::backup::{backup, copy_folder};
use super::options::Options;
use crate::Session;
use crate::names::absolute;
use crate::operation::{DeviceName, Store, addresses};
use crate::tag::Tags;

/// Refuses a command that would write two backups, or copies of them, to one file: the later would take the place
/// of the earlier. All names get the time of the command here; each backup takes its own time when it starts.
pub(super) fn check(
    session: &Session,
    command: &Command,
    options: &Options,
    names: &[String],
) -> Result<(), String> {
    let now = Moment::now().0;
    let mut all: Vec<Written<'_>> = Vec::new();
    for name in names {
        for written in of_database(session, command, options, name, now) {
            if let Some(other) = all.iter().find(|other| other.collides(&written)) {
                return Err(written.refusal(other));
            }
            all.push(written);
        }
    }
    Ok(())
}

/// The files of a database's backup, then those of its copies. What cannot be resolved, the backup reports.
fn of_database<'a>(
    session: &Session,
    command: &Command,
    options: &Options,
    name: &'a str,
    now: Moment,
) -> Vec<Written<'a>> {
    let wanted = backup(command, options);
    let kind = match wanted.is_differential {
        true => "DIFF",
        false => "FULL",
    };
    let tags = Tags {
        database: Some(name.to_owned()),
        kind: Some(kind),
        moment: Some(now),
        ..session.instance.tags()
    };
    let resolved = |devices: &[DeviceName]| {
        addresses(session, devices, &tags, &Store::default()).unwrap_or_default()
    };
    let devices = resolved(&wanted.devices);
    let mirrors = wanted.mirrors.iter().flat_map(|mirror| resolved(mirror));
    let files = devices.iter().filter_map(DeviceAddress::file);
    let mut all: Vec<Written<'a>> = Vec::new();
    for address in devices.iter().chain(&mirrors.collect::<Vec<_>>()) {
        all.extend(address.file().map(|file| Written::new(name, file, false)));
    }
    for folder in &options.copy_to {
        let Ok(folder) = copy_folder(session, folder, name, kind, Some(now)) else {
            continue;
        };
        let names = files.clone().filter_map(Path::file_name);
        all.extend(names.map(|file| Written::new(name, &folder.join(file), true)));
    }
    all
}

/// A file to which a backup or a copy will be written.
struct Written<'a> {
    database: &'a str,
    path: PathBuf,
    /// Names of two databases that differ by case alone are one file on some file systems.
    folded: String,
    /// The file that has this name now, and may have others.
    file: Option<FileIdentity>,
    is_copy: bool,
}

impl<'a> Written<'a> {
    fn new(database: &'a str, path: &Path, is_copy: bool) -> Self {
        let path = absolute(path).unwrap_or_else(|_| path.to_owned());
        Self {
            database,
            folded: path.to_string_lossy().to_lowercase(),
            file: FileIdentity::at(&path),
            path,
            is_copy,
        }
    }

    fn collides(&self, other: &Self) -> bool {
        let is_one_file = self.file.is_some() && self.file == other.file;
        match std::ptr::eq(self.database, other.database) {
            // Stripes that are one file, and a copy that is the backup itself, are refused by themselves.
            true => self.is_copy && other.is_copy && (self.path == other.path || is_one_file),
            false => self.folded == other.folded || is_one_file,
        }
    }

    fn refusal(&self, earlier: &Self) -> String {
        let what = |written: &Self| match written.is_copy {
            true => format!("a copy of the backup of '{}'", written.database),
            false => format!("the backup of '{}'", written.database),
        };
        let (first, second) = (what(earlier), what(self));
        let path = self.path.display();
        format!(
            "Nothing was backed up: {first} and {second} would be written to one file, '{path}'. In a name, <DATABASE> \
             has _ in place of each of / \\ : * ? \" < > |. Back them up with a command each, to other names."
        )
    }
}
