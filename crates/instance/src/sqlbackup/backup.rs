//! `BACKUP DATABASE(S)`: one backup for each database, with verification, copies and retention.

use std::path::{Path, PathBuf};

use windlass_base::Moment;
use windlass_catalog::DatabaseState;
use windlass_device::Removed;
use windlass_media::SetType;
use windlass_pipeline::Overwrite;
use windlass_tsql::option::{BACKUP, OptionWord, StatementKind};
use windlass_tsql::sqlbackup::{Command, Databases};

use super::options::Options;
use super::report::{Recorder, Report};
use super::{Runner, apart, copy, disks};
use crate::Session;
use crate::names::absolute;
use crate::operation::{
    BackupMade, BackupOptions, BackupOutcome, DeviceName, ExpireOptions, MediaOptions, Removal,
    VerifyOptions, check_url, is_url,
};
use crate::retention::Policy;
use crate::tag::{Tags, has_tag};
use crate::tsql::{option, print};

/// The messages for a differential without a base, and for one whose base's media are missing.
const NO_BASE: [(i64, &str); 4] = [
    (3035, "has no full backup yet"),
    (50012, "cannot be restored from its last full backup"),
    (50076, "has a last full backup that is dated in the future"),
    (50182, "has a last full backup with another protection"),
];

impl Runner<'_> {
    /// Backs up each database; one that fails does not stop the others.
    pub(super) fn back_up(&mut self, databases: &Databases) {
        let names = self.names(databases).and_then(|names| {
            check(self.command, self.options, &names)?;
            if self.options.backup.probe.is_none() {
                apart::check(self.session, self.command, self.options, &names)?;
            }
            Ok(names)
        });
        let names = match names {
            Ok(names) => names,
            Err(error) => return self.report.refuse(&error),
        };
        let mut remote: Vec<(&str, PathBuf)> = Vec::new();
        for name in &names {
            if self.session.is_cancelled() {
                return self.report.fail(3204);
            }
            self.report.line(format!("Backing up {name} ..."));
            if let Some(made) = self.one(name) {
                let folders = self.options.copy_to.iter();
                let folders = folders
                    .filter_map(|folder| copy_folder_of(self.session, folder, name, &made).ok())
                    .map(|folder| (name.as_str(), folder));
                remote.extend(folders);
            }
        }
        if !self.options.copy_to.is_empty() && !self.session.is_rehearsal() {
            self.copy();
        }
        // Older copies are deleted only when the new ones exist.
        for (name, folder) in remote {
            self.erase(self.options.erase_remote, &[folder], name);
        }
        self.report.line("Process completed.");
    }

    /// The databases to back up; for `[*]` all that are online. The others are told.
    fn names(&mut self, databases: &Databases) -> Result<Vec<String>, String> {
        let except = match databases {
            Databases::Named(names) => return Ok(names.clone()),
            Databases::All { except } => except,
        };
        let known = self.session.instance.catalog().databases();
        let known = known.map_err(|error| error.to_string())?;
        let is_excepted = |name: &str| except.iter().any(|one| one.eq_ignore_ascii_case(name));
        let mut names = Vec::new();
        for record in known.into_iter().filter(|one| !is_excepted(&one.name)) {
            match record.state {
                DatabaseState::Online => names.push(record.name),
                DatabaseState::Restoring | DatabaseState::Standby => self.report.warn(&format!(
                    "'{}' is not backed up: it is in the middle of a restore. Complete that (RESTORE DATABASE WITH \
                     RECOVERY), or leave the database out (BACKUP DATABASES [*] EXCEPT [name]).",
                    record.name
                )),
                DatabaseState::Offline => self.report.warn(&format!(
                    "'{}' is not backed up: it is one of SQL Server, and offline. Keep its backups, or leave it out \
                     (BACKUP DATABASES [*] EXCEPT [name]).",
                    record.name
                )),
            }
        }
        Ok(names)
    }

    /// Makes the copies that are queued.
    fn copy(&mut self) {
        for outcome in copy::run_queue(self.session, Moment::now().0) {
            let target = outcome.target.display();
            match &outcome.error {
                None => self.report.line(format!("Copied to {target}")),
                Some(error) if self.session.instance.folder().is_some() => self.report.warn(&format!(
                    "'{target}' was not copied and stays in the queue: {error}. windlass copies --run --now tries again at once."
                )),
                Some(error) => self.report.error(&format!(
                    "'{target}' was not copied, and nothing tries again: {error}. Copy it yourself, or give an instance \
                     (--instance), which keeps a queue."
                )),
            }
        }
    }

    /// Backs up a database; returns the backup unless it failed or its verification did.
    fn one(&mut self, name: &str) -> Option<BackupMade> {
        let options = self.options;
        if self.session.is_rehearsal() {
            self.rehearse(name);
            return None;
        }
        if options.erase_at_start && options.backup.probe.is_none() {
            self.erase_before(name);
        }
        let (_, outcome, report) = self.make(name);
        self.report.absorb(report);
        let Some(BackupOutcome::Made(made)) = outcome else {
            return None;
        };
        if made.is_discarded {
            return None;
        }
        self.written.extend(made.files.iter().cloned());
        if !made.is_remembered {
            self.report.warn(
            "The backup is not in the history, so no verification, copies or deletions follow it.",
        );
            return None;
        }
        self.report.files.extend(made.devices.iter().cloned());
        for device in &made.devices {
            self.report.line(format!("  {device}"));
        }
        // Before the verification, so that a kill during it does not lose the copies.
        let queued = self.queue_copies(name, &made);
        if options.verify {
            let verification = VerifyOptions {
                media: MediaOptions {
                    devices: disks(&made.devices),
                    position: Some(made.report.set.position.into()),
                    ..MediaOptions::default()
                },
                keys: options.restore.keys.clone(),
                ..VerifyOptions::default()
            };
            let is_valid =
                self.execute(|session, sink| session.verify(&verification, sink).map(drop));
            if !is_valid {
                // The next steps would rely on this backup.
                self.unqueue(&queued);
                return None;
            }
        }
        if !options.erase_at_start {
            let folders = folders(made.devices.iter().map(Path::new));
            self.erase(options.erase, &folders, name);
        }
        Some(*made)
    }

    /// Makes the backup, or a full one if a differential has no base and FULLIFREQUIRED is given. Returns
    /// the options used in the end, the result, and the report.
    fn make(&mut self, name: &str) -> (BackupOptions, Option<BackupOutcome>, Report) {
        let options = self.options;
        let mut wanted = backup(self.command, options);
        wanted.written_before.clone_from(&self.written);
        let mut words = options.words.clone();
        if wanted.overwrite == Overwrite::Format && !words.contains(&OptionWord::Format) {
            words.push(OptionWord::Format);
        }
        let mut make = |wanted: &BackupOptions| {
            let mut outcome = None;
            let (_, report) = self.step(|session, sink| {
                option::check(&words, BACKUP, StatementKind::BackupDatabase)?;
                outcome.insert(session.backup(name, wanted, sink)?).told()
            });
            (outcome, report)
        };
        let (mut outcome, mut report) = make(&wanted);
        let mut no_base = NO_BASE.iter();
        let no_base = no_base.find(|(number, _)| *number == report.sql_error);
        if let Some((_, why)) = no_base.filter(|_| outcome.is_none() && options.full_if_required) {
            wanted.is_differential = false;
            (outcome, report) = make(&wanted);
            let line = format!("'{name}' {why}: a full backup is made first.");
            self.report.lines.insert(0, line);
        }
        (wanted, outcome, report)
    }

    /// Reports what would be done for a database.
    fn rehearse(&mut self, name: &str) {
        let options = self.options;
        let (wanted, outcome, report) = self.make(name);
        self.report.line(print::backup(name, &wanted));
        self.report.absorb(report);
        if outcome.is_none() || options.backup.probe.is_some() {
            return;
        }
        if options.verify {
            self.report.line("Then the backup would be verified.");
        }
        for folder in &options.copy_to {
            self.report
                .line(format!("Then it would be copied to {folder}."));
        }
        // The backup that would be made counts, so one more of the older ones may expire.
        self.erase_before(name);
    }

    /// Returns the entries of the queue.
    fn queue_copies(&mut self, name: &str, made: &BackupMade) -> Vec<i64> {
        let mut queued = Vec::new();
        for written in &self.options.copy_to {
            let folder = match copy_folder_of(self.session, written, name, made) {
                Ok(folder) => folder,
                Err(error) => {
                    self.report.warn(&format!("COPYTO '{written}': {error}"));
                    continue;
                }
            };
            // A later run of the queue may have another working directory.
            let folder = match is_store(&folder) {
                true => folder,
                false => absolute(&folder).unwrap_or(folder),
            };
            if let Err(error) = make_tagged(self.session, written, &folder) {
                self.report.warn(&format!("COPYTO '{written}': {error}"));
            }
            for source in made
                .devices
                .iter()
                .map(Path::new)
                .filter(|path| path.is_file())
            {
                let target = folder.join(source.file_name().unwrap_or_default());
                // A file with several sets is copied again for each of them; an earlier copy of it may be
                // replaced without this.
                let overwrite = self.options.copies_overwrite;
                let now = Moment::now().0;
                let catalog = self.session.instance.catalog_mut();
                match catalog.queue_copy(source, &target, overwrite, now) {
                    Ok(entry) => queued.push(entry),
                    Err(error) => self
                        .report
                        .warn(&format!("'{}' was not queued: {error}", target.display())),
                }
            }
        }
        queued
    }

    /// No copies are made of a backup that is not valid.
    fn unqueue(&mut self, queued: &[i64]) {
        for entry in queued {
            let catalog = self.session.instance.catalog_mut();
            if let Err(error) = catalog.drop_copy(*entry) {
                self.report
                    .warn(&format!("A copy stays in the queue: {error}"));
            }
        }
    }

    /// `ERASEFILES_ATSTART`: in the folders that the tags name now.
    fn erase_before(&mut self, name: &str) {
        let tags = Tags {
            database: Some(name.to_owned()),
            kind: Some(if self.options.backup.is_differential {
                "DIFF"
            } else {
                "FULL"
            }),
            moment: Some(Moment::now().0),
            ..self.session.instance.tags()
        };
        let paths = self.command.disks.iter().filter_map(|disk| {
            let device = self
                .session
                .instance
                .drives()
                .disk_device(&tags.expand(disk).ok()?);
            absolute(device.ok()?.file()?).ok()
        });
        let paths: Vec<PathBuf> = paths.collect();
        let folders: Vec<PathBuf> = folders(paths.iter().map(PathBuf::as_path))
            .into_iter()
            .filter(|folder| folder.is_dir())
            .collect();
        self.erase(self.options.erase, &folders, name);
    }

    /// Deletes the backups of a database that a policy does not keep, in some folders.
    fn erase(&mut self, policy: Option<Policy>, folders: &[PathBuf], name: &str) {
        let Some(policy) = policy.filter(|_| !folders.is_empty()) else {
            return;
        };
        let folders: Vec<String> = folders
            .iter()
            .map(|folder| folder.display().to_string())
            .collect();
        let folders = match self.session.folders(&folders) {
            Ok(folders) => folders,
            Err(failure) => {
                let why = failure.messages.into_iter().next();
                let why = why.map_or_else(String::new, |message| message.text);
                return self.report.warn(&format!("Nothing was erased: {why}"));
            }
        };
        let options = ExpireOptions {
            folders: &folders,
            policy: &policy,
            database: Some(name),
            removal: match self.session.is_rehearsal() {
                true => Removal::Name,
                false => Removal::Delete,
            },
            trust: self.session.trust(),
            gone: &[],
        };
        let mut recorder = Recorder::new(&mut self.report, self.sink);
        let expired = self.session.expire(&options, &mut recorder);
        let expired = match expired {
            Ok(expired) => expired,
            Err(error) => return self.report.warn(&format!("Nothing was erased: {error}")),
        };
        if expired.is_damaged {
            self.report.warn(
                "A backup that others were to be erased for is damaged, cannot be read now, lacks its full backup, or is dated in the future.",
            );
        }
        for expired in expired
            .media
            .into_iter()
            .filter(|media| media.decision.goes)
        {
            match expired.deleted {
                None => {
                    for file in &expired.media.files {
                        self.report.line(format!("Would delete {}", file.device));
                    }
                }
                Some(Ok(files)) => {
                    for (file, removed) in files {
                        self.report.line(match removed {
                            Removed::Gone => format!("Deleted {file}"),
                            Removed::Hidden => format!("Hidden by a delete marker: {file}"),
                        });
                    }
                }
                Some(Err(error)) => self.report.warn(&format!("Not erased: {error}")),
            }
        }
    }
}

/// Checks that need the list of databases.
fn check(command: &Command, options: &Options, names: &[String]) -> Result<(), String> {
    if names.is_empty() {
        return Err("No database is registered with the instance.".to_owned());
    }
    let tagged = command.disks.iter().all(|disk| has_tag(disk));
    let measures = options.backup.probe.is_some();
    if names.len() > 1 && !command.disks.iter().all(|disk| names_database(disk)) && !measures {
        return Err(
            "Several databases need <DATABASE> or <AUTO> in the name of each file.".to_owned(),
        );
    }
    if options.file_count > 1 && (command.disks.len() > 1 || !tagged) {
        return Err("FILECOUNT needs one DISK with a tag in its name.".to_owned());
    }
    if options.mirror.is_some() && !tagged && options.backup.overwrite == Overwrite::Append {
        return Err(
            "MIRRORFILE creates new media: use INIT, FORMAT, or a tag such as <AUTO> in the name."
                .to_owned(),
        );
    }
    Ok(())
}

fn names_database(disk: &str) -> bool {
    let upper = disk.to_ascii_uppercase();
    upper.contains("<AUTO>") || upper.contains("<DATABASE>")
}

/// The options of the backup that a command asks for.
pub(super) fn backup(command: &Command, options: &Options) -> BackupOptions {
    let disk = |written: &String| DeviceName::Disk(with_extension(written));
    let mut devices: Vec<DeviceName> = command.disks.iter().map(disk).collect();
    if let (Some(first), true) = (devices.first(), options.file_count > 1) {
        devices = vec![first.clone(); options.file_count as usize];
    }
    let mirrors: Vec<Vec<DeviceName>> = options.mirror.iter().map(|one| vec![disk(one)]).collect();
    BackupOptions {
        // A backup with mirrors needs new media.
        overwrite: match mirrors.is_empty() {
            true => options.backup.overwrite,
            false => Overwrite::Format,
        },
        devices,
        mirrors,
        ..options.backup.clone()
    }
}

/// Adds `.bak` to a name that ends with `<AUTO>`.
fn with_extension(disk: &str) -> String {
    let bare = disk.to_ascii_uppercase().ends_with("<AUTO>");
    format!("{disk}{}", if bare { ".bak" } else { "" })
}

fn folders<'a>(files: impl Iterator<Item = &'a Path>) -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = files
        .filter(|file| file.is_absolute() || file.exists())
        .map(windlass_io::directory::parent)
        .collect();
    folders.sort();
    folders.dedup();
    folders
}

/// Whether a folder is one of a store.
fn is_store(folder: &Path) -> bool {
    is_url(&folder.to_string_lossy())
}

/// The folder to which COPYTO copies a backup.
fn copy_folder_of(
    session: &Session,
    folder: &str,
    name: &str,
    made: &BackupMade,
) -> Result<PathBuf, String> {
    let kind = match made.report.set.set_type {
        SetType::Differential => "DIFF",
        SetType::Full | SetType::Log => "FULL",
    };
    copy_folder(session, folder, name, kind, made.report.set.started)
}

pub(super) fn copy_folder(
    session: &Session,
    folder: &str,
    name: &str,
    kind: &'static str,
    moment: Option<Moment>,
) -> Result<PathBuf, String> {
    let tags = Tags {
        database: Some(name.to_owned()),
        kind: Some(kind),
        moment,
        ..session.instance.tags()
    };
    let folder = tags.expand(folder).map_err(|error| error.to_string())?;
    if is_url(&folder) {
        check_url(session, &folder).map_err(|failure| {
            let text = failure.messages.into_iter().next();
            text.map_or_else(String::new, |message| message.text)
        })?;
        return Ok(PathBuf::from(folder));
    }
    let path = session.instance.drives().path(&folder);
    path.map_err(|error| error.to_string())
}

/// Creates the folders named by tags below an existing folder. Folders written without a tag are not
/// created: a disk may be missing there that should be mounted.
fn make_tagged(session: &Session, written: &str, folder: &Path) -> Result<(), String> {
    if is_store(folder) {
        return Ok(());
    }
    let parts = written.split(['/', '\\']).filter(|part| !part.is_empty());
    let parts: Vec<&str> = parts.collect();
    let untagged = parts.iter().take_while(|part| !has_tag(part)).count();
    let tagged = parts.len() - untagged;
    let is_there = folder.ancestors().nth(tagged).is_some_and(Path::is_dir);
    if session.makes_folders() || (tagged > 0 && is_there) {
        windlass_io::directory::create(folder).map_err(|error| error.to_string())?;
    }
    Ok(())
}
