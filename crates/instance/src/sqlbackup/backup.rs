//! `BACKUP DATABASE(S)`: one backup for each database, and what surrounds it.

use std::path::{Path, PathBuf};

use windlass_base::Moment;
use windlass_catalog::{DatabaseState, PastBackup};
use windlass_tsql::sqlbackup::{Command, Databases};

use super::options::Options;
use super::report::Report;
use super::{Runner, bracketed, copy, devices, quoted, with};
use crate::retention::{self, Policy};
use crate::tag::{Tags, has_tag};
use crate::{Session, Sink};

/// The messages of a differential without a base, and of one whose base's media are gone.
const NO_BASE: [(i64, &str); 2] = [
    (3035, "has no full backup yet"),
    (50012, "has lost the media of its last full backup"),
];

/// Executes the command for each database; one that fails does not stop the others.
pub(super) fn run(
    runner: &mut Runner<'_>,
    command: &Command,
    databases: &Databases,
    options: &Options,
    report: &mut Report,
    sink: &mut dyn Sink,
) {
    let names = match names(runner.session, databases) {
        Ok(names) => names,
        Err(error) => return report.refuse(&error),
    };
    if names.is_empty() {
        return report.refuse("No database is registered with the instance.");
    }
    if let Err(error) = check(command, options, &names) {
        return report.refuse(&error);
    }
    let mut remote: Vec<(&str, PathBuf)> = Vec::new();
    for name in &names {
        if runner.session.is_cancelled() {
            return report.fail(3204);
        }
        report.line(format!("Backing up {name} ..."));
        if let Some(made) = one(runner, command, name, options, report, sink) {
            let folders = options.copy_to.iter();
            let folders = folders
                .filter_map(|folder| copy_folder(runner.session, folder, name, &made).ok())
                .map(|folder| (name.as_str(), folder));
            remote.extend(folders);
        }
    }
    if !options.copy_to.is_empty() && !runner.session.is_rehearsal() {
        for outcome in copy::run_queue(runner.session, Moment::now().0) {
            match &outcome.error {
                None => report.line(format!("Copied to {}", outcome.target.display())),
                Some(error) => report.warn(&format!(
                    "'{}' was not copied and stays in the queue: {error}",
                    outcome.target.display()
                )),
            }
        }
    }
    // Only now are the copies there that older ones give way to.
    for (name, folder) in remote {
        erase(
            runner.session,
            options.erase_remote,
            &[folder],
            name,
            report,
        );
    }
    report.line("Process completed.");
}

/// Checks that are possible only once the databases are known.
fn check(command: &Command, options: &Options, names: &[String]) -> Result<(), String> {
    let tagged = command.disks.iter().all(|disk| has_tag(disk));
    if names.len() > 1 && !command.disks.iter().all(|disk| names_database(disk)) && !options.probes
    {
        return Err(
            "Several databases need <DATABASE> or <AUTO> in the name of each file.".to_owned(),
        );
    }
    if options.file_count > 1 && (command.disks.len() > 1 || !tagged) {
        return Err("FILECOUNT needs one DISK with a tag in its name.".to_owned());
    }
    if options.mirror.is_some() && !tagged && !options.overwrites {
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

/// The databases that are meant: all that are online for `[*]`.
fn names(session: &Session, databases: &Databases) -> Result<Vec<String>, String> {
    let except = match databases {
        Databases::Named(names) => return Ok(names.clone()),
        Databases::All { except } => except,
    };
    let known = session.instance.catalog().databases();
    let known = known.map_err(|error| error.to_string())?;
    Ok(known
        .into_iter()
        .filter(|record| record.state == DatabaseState::Online)
        .map(|record| record.name)
        .filter(|name| !except.iter().any(|other| other.eq_ignore_ascii_case(name)))
        .collect())
}

/// Backs a database up; the backup, unless it failed or its verification did.
fn one(
    runner: &mut Runner<'_>,
    command: &Command,
    name: &str,
    options: &Options,
    report: &mut Report,
    sink: &mut dyn Sink,
) -> Option<PastBackup> {
    if runner.session.is_rehearsal() {
        rehearse(runner, command, name, options, report, sink);
        return None;
    }
    if options.erase_at_start && !options.probes {
        erase_before(runner.session, command, name, options, report);
    }
    let before = last(runner.session, name).map(|backup| backup.id);
    let mut attempt = Report::default();
    let text = statement(command, name, options, options.differential);
    let mut done = runner.execute(&text, &mut attempt, sink);
    let mut no_base = NO_BASE.iter();
    let no_base = no_base.find(|(number, _)| *number == attempt.sql_error);
    if let Some((_, why)) = no_base.filter(|_| !done && options.full_if_required) {
        report.line(format!("'{name}' {why}: a full backup is made first."));
        attempt = Report::default();
        let text = statement(command, name, options, false);
        done = runner.execute(&text, &mut attempt, sink);
    }
    report.lines.extend(attempt.lines);
    report.exit_code = report.exit_code.max(attempt.exit_code);
    if report.sql_error == 0 {
        report.sql_error = attempt.sql_error;
    }
    let is_discarded = command.disks.iter().any(|disk| {
        let disk = disk.trim();
        disk.eq_ignore_ascii_case("NUL")
    });
    if !done || options.probes || is_discarded {
        return None;
    }
    let made = last(runner.session, name).filter(|backup| Some(backup.id) != before);
    let Some(made) = made else {
        report.warn(
            "The backup is not in the history, so no verification, copies or deletions \
                     follow it.",
        );
        return None;
    };
    report.files.extend(made.devices.iter().cloned());
    for device in &made.devices {
        report.line(format!("  {device}"));
    }
    if options.verify {
        let text = format!(
            "RESTORE VERIFYONLY FROM {} WITH FILE = {}",
            devices(&made.devices),
            made.position
        );
        if !runner.execute(&text, report, sink) {
            // What follows would rely on this backup.
            return None;
        }
    }
    let session = &mut *runner.session;
    queue_copies(session, name, &made, options, report);
    if !options.erase_at_start {
        let folders = folders(made.devices.iter().map(Path::new));
        erase(session, options.erase, &folders, name, report);
    }
    Some(made)
}

/// Reports what would be done for a database.
fn rehearse(
    runner: &mut Runner<'_>,
    command: &Command,
    name: &str,
    options: &Options,
    report: &mut Report,
    sink: &mut dyn Sink,
) {
    let mut attempt = Report::default();
    let mut text = statement(command, name, options, options.differential);
    let mut done = runner.execute(&text, &mut attempt, sink);
    let is_base_missing = NO_BASE
        .iter()
        .any(|(number, _)| *number == attempt.sql_error);
    if !done && options.full_if_required && is_base_missing {
        attempt = Report::default();
        text = statement(command, name, options, false);
        done = runner.execute(&text, &mut attempt, sink);
    }
    report.line(text);
    report.lines.extend(attempt.lines);
    report.exit_code = report.exit_code.max(attempt.exit_code);
    report.sql_error = report.sql_error.max(attempt.sql_error);
    if !done || options.probes {
        return;
    }
    if options.verify {
        report.line("Then the backup would be verified.");
    }
    for folder in &options.copy_to {
        report.line(format!("Then it would be copied to {folder}."));
    }
    // With the backup that would be made, one more of the older ones may go.
    erase_before(runner.session, command, name, options, report);
}

/// The T-SQL that says the same.
fn statement(command: &Command, name: &str, options: &Options, differential: bool) -> String {
    let mut disks: Vec<String> = command
        .disks
        .iter()
        .map(|disk| with_extension(disk))
        .collect();
    if options.file_count > 1 {
        disks = vec![disks.first().cloned().unwrap_or_default(); options.file_count as usize];
    }
    let mut clauses = options.clauses.clone();
    if differential {
        clauses.push("DIFFERENTIAL".to_owned());
    }
    let mut text = format!("BACKUP DATABASE {} TO {}", bracketed(name), devices(&disks));
    if let Some(mirror) = &options.mirror {
        text += " MIRROR TO DISK = ";
        text += &quoted(&with_extension(mirror));
        if !clauses.iter().any(|clause| clause == "FORMAT") {
            clauses.retain(|clause| clause != "INIT");
            clauses.push("FORMAT".to_owned());
        }
    }
    text + &with(&clauses)
}

/// `<AUTO>` alone gets the extension of backups.
fn with_extension(disk: &str) -> String {
    let bare = disk.to_ascii_uppercase().ends_with("<AUTO>");
    format!("{disk}{}", if bare { ".bak" } else { "" })
}

/// The newest backup of a database that the history knows.
fn last(session: &Session, name: &str) -> Option<PastBackup> {
    let past = session.instance.catalog().past_backups(Some(name)).ok()?;
    past.into_iter().max_by_key(|backup| backup.id)
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

/// Where COPYTO leads for a backup.
fn copy_folder(
    session: &Session,
    folder: &str,
    name: &str,
    made: &PastBackup,
) -> Result<PathBuf, String> {
    let tags = Tags {
        database: Some(name.to_owned()),
        kind: Some(if made.kind == "I" { "DIFF" } else { "FULL" }),
        moment: made.started,
        ..session.instance.tags()
    };
    let folder = tags.expand(folder).map_err(|error| error.to_string())?;
    let path = session.instance.drives().path(&folder);
    path.map_err(|error| error.to_string())
}

/// Makes the folders that tags name below one that is there. What is written without a tag is not made
/// unasked: it may be where a disk should be mounted.
fn make_tagged(session: &Session, written: &str, folder: &Path) -> Result<(), String> {
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

fn queue_copies(
    session: &mut Session,
    name: &str,
    made: &PastBackup,
    options: &Options,
    report: &mut Report,
) {
    for written in &options.copy_to {
        let folder = match copy_folder(session, written, name, made) {
            Ok(folder) => folder,
            Err(error) => {
                report.warn(&format!("COPYTO '{written}': {error}"));
                continue;
            }
        };
        if let Err(error) = make_tagged(session, written, &folder) {
            report.warn(&format!("COPYTO '{written}': {error}"));
        }
        for source in made
            .devices
            .iter()
            .map(Path::new)
            .filter(|path| path.is_file())
        {
            let target = folder.join(source.file_name().unwrap_or_default());
            // Several sets in one file: the copy is renewed with each of them.
            let overwrite = options.copies_overwrite || made.position > 1;
            let now = Moment::now().0;
            let catalog = session.instance.catalog_mut();
            if let Err(error) = catalog.queue_copy(source, &target, overwrite, now) {
                report.warn(&format!("'{}' was not queued: {error}", target.display()));
            }
        }
    }
}

/// `ERASEFILES_ATSTART`: the folders are those the tags name now.
fn erase_before(
    session: &Session,
    command: &Command,
    name: &str,
    options: &Options,
    report: &mut Report,
) {
    let tags = Tags {
        database: Some(name.to_owned()),
        kind: Some(if options.differential { "DIFF" } else { "FULL" }),
        moment: Some(Moment::now().0),
        ..session.instance.tags()
    };
    let paths = command.disks.iter().filter_map(|disk| {
        let path = tags.expand(disk).ok()?;
        session.instance.drives().path(&path).ok()
    });
    let paths: Vec<PathBuf> = paths.collect();
    let folders: Vec<PathBuf> = folders(paths.iter().map(PathBuf::as_path))
        .into_iter()
        .filter(|folder| folder.is_dir())
        .collect();
    erase(session, options.erase, &folders, name, report);
}

/// Deletes the backups of a database that a policy does not keep, in some folders.
fn erase(
    session: &Session,
    policy: Option<Policy>,
    folders: &[PathBuf],
    name: &str,
    report: &mut Report,
) {
    let Some(policy) = policy.filter(|_| !folders.is_empty()) else {
        return;
    };
    let mut scan = match retention::scan(folders) {
        Ok(scan) => scan,
        Err(error) => return report.warn(&format!("Nothing was erased: {error}")),
    };
    match session.instance.catalog().past_backups(None) {
        Ok(past) => retention::add_dependents(&mut scan, &past),
        Err(error) => return report.warn(&format!("Nothing was erased: {error}")),
    }
    let decisions = retention::decide(&scan.media, &policy, Some(name), Moment::now().0);
    for (media, decision) in scan.media.iter().zip(decisions) {
        if !decision.goes {
            continue;
        }
        if session.is_rehearsal() {
            for file in &media.files {
                report.line(format!("Would delete {}", file.path.display()));
            }
            continue;
        }
        match retention::delete(media) {
            Ok(files) => {
                for file in files {
                    report.line(format!("Deleted {}", file.display()));
                }
            }
            Err(error) => report.warn(&format!("Not erased: {error}")),
        }
    }
}
