//! `RESTORE DATABASE`: the newest backups of a folder, a check, and the end of a test restore.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags};
use windlass_base::pattern::matches;
use windlass_catalog::Provenance;
use windlass_crypt::KeyRing;
use windlass_device::{DeviceAddress, DeviceFolder};
use windlass_media::SetType;
use windlass_source::Recovery;
use windlass_tsql::option::{RESTORE, StatementKind};
use windlass_tsql::sqlbackup::Command;

use super::options::{Drops, Options};
use super::report::Report;
use super::{Runner, disks};
use crate::Session;
use crate::chain::{ChainSet, Chains, Ends, Obstacle, Why, is_newer, rivals};
use crate::headers::HeaderCache;
use crate::operation::{MediaOptions, RestoreKind, RestoreOptions};
use crate::provenance::named_databases;
use crate::retention::{self, FoundMedia, FoundSet, Now, Place, Scan};
use crate::tsql::{option, print};

/// Maximum number of lines of `integrity_check` in a report.
const CHECK_LINES_MAX: usize = 20;

impl Runner<'_> {
    /// Restores a database, checks it and drops it, as the command says.
    pub(super) fn restore(&mut self, name: &str) {
        let options = self.options;
        let exists = || self.session.instance.database(name).ok().flatten();
        if options.drops != Drops::Never && !options.restore.replaces && exists().is_some() {
            return self.report.refuse(&format!(
                "DROPDB and DROPDBIFSUCCESSFUL are for a database that this restore makes, and '{name}' exists: \
                 choose another name, or add REPLACE to overwrite and then drop it."
            ));
        }
        let (restores, warnings) = match restores(self.session, self.command, name, options) {
            Ok(found) => found,
            Err(error) => return self.report.refuse(&error),
        };
        for warning in warnings {
            self.report.warn(&warning);
        }
        let is_rehearsal = self.session.is_rehearsal();
        let restored = restores.iter().all(|restore| {
            if is_rehearsal {
                self.report.line(print::restore(name, restore));
            }
            self.execute(|session, sink| {
                option::check(&options.words, RESTORE, StatementKind::RestoreDatabase)?;
                session.restore(name, restore, sink).map(drop)
            })
        });
        if is_rehearsal {
            return;
        }
        let checked =
            restored && (!options.check_database || check(self.session, name, &mut self.report));
        let drops = match options.drops {
            Drops::Never => false,
            Drops::Always => restored,
            // What was lost is to be looked at.
            Drops::IfSuccessful => checked && !self.report.has_failed(),
        };
        if drops && self.execute(|session, sink| session.drop_database(name, sink)) {
            self.report.line(format!("Database '{name}' was dropped."));
        }
    }
}

/// The restores, in order, and what to warn of.
fn restores(
    session: &mut Session,
    command: &Command,
    name: &str,
    options: &Options,
) -> Result<(Vec<RestoreOptions>, Vec<String>), String> {
    let restore = |files: &[String], position: Option<usize>| RestoreOptions {
        media: MediaOptions {
            devices: disks(files),
            position: position.and_then(|position| i64::try_from(position + 1).ok()),
            ..options.restore.media.clone()
        },
        ..options.restore.clone()
    };
    let Some(latest) = &command.latest else {
        refuse_several(session, command)?;
        return Ok((vec![restore(&command.disks, None)], Vec::new()));
    };
    let source = command.source.as_deref().unwrap_or(name);
    let Scan { mut media, others } = matching(session, command)?;
    let kinds: &[SetType] = match latest.as_str() {
        "LATEST_FULL" => &[SetType::Full],
        "LATEST_DIFF" => &[SetType::Full, SetType::Differential],
        _ => &[SetType::Full, SetType::Differential, SetType::Log],
    };
    let keys = &options.restore.keys;
    let plan = planned(session, &mut media, source, kinds, keys)?;
    let mut unfinished = plan.unfinished;
    let torn = media.iter().filter_map(FoundMedia::torn);
    let torn = torn.map(|file| (&file.device, file.defect.clone().unwrap_or_default()));
    let empty = media.iter().filter(|media| media.sets.is_empty());
    unfinished.extend(empty.flat_map(|media| &media.files).map(|file| {
        let device = &file.device;
        format!("'{device}' begins as a medium, and no backup set can be found on it")
    }));
    let others = others.iter().filter(|other| other.may_be_medium);
    let others = others.map(|other| (&other.device, other.reason.clone()));
    let warnings = torn.chain(others).map(|(device, why)| {
        format!("'{device}' may hold a newer backup, and cannot be read: {why}")
    });
    let warnings = warnings.chain(unfinished).collect();
    let of = |(medium, position): Place| restore(&files(&media[medium]), Some(position));
    let last = plan.steps.len().saturating_sub(1);
    let steps = plan.steps.into_iter().enumerate();
    let restores = steps.map(|(index, (place, kind))| {
        let restore = RestoreOptions {
            wants: Some(RestoreKind::of(kind)),
            ..of(place)
        };
        // MOVE and REPLACE apply to the first, the final state to the last.
        let restore = match index {
            0 => restore,
            _ => RestoreOptions {
                moves: Vec::new(),
                replaces: false,
                ..restore
            },
        };
        match index == last {
            true => restore,
            false => RestoreOptions {
                recovery: Recovery::NoRecovery,
                ..restore
            },
        }
    });
    let restores = restores.collect();
    Ok((restores, warnings))
}

/// Refuses a file with several backup sets: the dialect has no word for which, and the first is the oldest state.
fn refuse_several(session: &Session, command: &Command) -> Result<(), String> {
    for disk in &command.disks {
        let device = session.instance.drives().disk_device(disk);
        let device = device.map_err(|error| error.to_string())?;
        // What cannot be read, the restore reports.
        let Ok(headers) = HeaderCache::default().read(&device) else {
            continue;
        };
        let count = headers.sets.len();
        if count > 1 {
            return Err(format!(
                "'{disk}' holds {count} backup sets. LATEST_ALL, LATEST_DIFF or LATEST_FULL takes the newest (SOURCE names \
                 the database if it has another name); to restore an older one, use T-SQL with FILE = n."
            ));
        }
    }
    Ok(())
}

/// The files that match the command's patterns.
fn matching(session: &Session, command: &Command) -> Result<Scan, String> {
    let mut patterns: Vec<(PathBuf, String)> = Vec::new();
    for disk in &command.disks {
        let path = session.instance.drives().path(disk);
        let path = path.map_err(|error| error.to_string())?;
        let pattern = path.file_name().unwrap_or_default().to_string_lossy();
        patterns.push((windlass_io::directory::parent(&path), pattern.into_owned()));
    }
    let folders: BTreeSet<PathBuf> = patterns.iter().map(|(folder, _)| folder.clone()).collect();
    let folders: Vec<DeviceFolder> = folders.into_iter().map(DeviceFolder::disk).collect();
    let is_meant = |device: &DeviceAddress| {
        let Some(path) = device.file() else {
            return false;
        };
        let folder = windlass_io::directory::parent(path);
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let mut patterns = patterns.iter();
        patterns.any(|(own, pattern)| *own == folder && matches(pattern, &name))
    };
    retention::scan_only(&folders, is_meant, &mut HeaderCache::default())
        .map_err(|error| error.to_string())
}

fn contradicted(one: &str, other: &str) -> String {
    format!(
        "By its date, {one} is older than {other}, and newer by its LSN: which state is the newest \
         cannot be told. Leave one out."
    )
}

/// The sets that give the newest state, and what to warn of.
struct Plan {
    /// In the order of their restores.
    steps: Vec<(Place, SetType)>,
    unfinished: Vec<String>,
    /// The log backup that has to be read before the plan is sure, and the ends of the states within it.
    unread: Option<(Place, Ends)>,
}

/// The plan with sets of some kinds, for which their log is read where it depends on that.
fn planned(
    session: &mut Session,
    media: &mut [FoundMedia],
    source: &str,
    kinds: &[SetType],
    keys: &KeyRing,
) -> Result<Plan, String> {
    loop {
        let mut plan = newest(media, source, kinds)?;
        let Some(((medium, place), ends)) = plan.unread.take() else {
            return Ok(plan);
        };
        let looked = session.look_within(&mut media[medium], place, keys, &ends);
        looked.map_err(|failure| {
            let texts = failure.messages.into_iter().map(|message| message.text);
            texts.collect::<Vec<_>>().join(" ")
        })?;
    }
}

/// The plan by what is known. As everywhere, no backup of a copy counts, one that is dated in the future proves nothing, and a
/// newer one that cannot be restored is not left out in silence.
fn newest(media: &[FoundMedia], source: &str, kinds: &[SetType]) -> Result<Plan, String> {
    let (places, mut sets) = retention::settled_sets(media);
    for set in sets.iter_mut().filter(|set| !kinds.contains(&set.kind)) {
        set.obstacle = Some(Obstacle::Media(
            "it is of no kind that is wanted".to_owned(),
        ));
    }
    let chains = Chains::of(&sets);
    let found = |index: usize| -> &FoundSet { &media[places[index].0].sets[places[index].1] };
    let name = |index: usize| {
        let file = media[places[index].0].files.first();
        let path = file.map(|file| file.device.to_string());
        format!(
            "set {} of '{}'",
            places[index].1 + 1,
            path.unwrap_or_default()
        )
    };
    let wanted = (0..sets.len()).filter(|index| {
        let is_of_kind = kinds.contains(&sets[*index].kind);
        found(*index).of.name.eq_ignore_ascii_case(source) && is_of_kind
    });
    let wanted: Vec<usize> = wanted.collect();
    let of: Vec<Provenance> = wanted
        .iter()
        .map(|index| found(*index).of.clone())
        .collect();
    one_database(&of)?;
    if let Some(ahead) = ahead(&sets, &wanted) {
        return Err(format!(
            "{} is dated in the future, so which state is the newest cannot be told. Leave it out.",
            name(ahead)
        ));
    }
    let none = || {
        format!(
            "There is no full backup of '{source}' among these files. If the database had another name then, give it: \
             SOURCE = 'name'."
        )
    };
    let newest = chains.newest_among(wanted.iter().copied());
    let newest = newest.ok_or_else(none)?;
    if let Some(rival) = rivals(&sets, newest, &wanted).next() {
        return Err(contradicted(&name(rival), &name(newest)));
    }
    let mut unfinished = Vec::new();
    let newer = |index: &usize| is_newer(&sets[*index], &sets[newest]);
    for index in wanted.into_iter().filter(newer) {
        let Err(why) = chains.verdict(index) else {
            continue;
        };
        let newer = format!(
            "{} would give a newer state than the others, but {why}",
            name(index)
        );
        match why {
            // It may be running now.
            Why::Obstacle(Obstacle::Incomplete) => unfinished.push(newer),
            _ => return Err(format!("{newer}. For the older state, leave it out.")),
        }
    }
    let path = chains.path(newest).map_err(ToString::to_string)?;
    let unread = chains.unread(path.iter().copied()).into_iter().next();
    let unread = unread.map(|log| (places[log], sets[log].ends_within(&sets)));
    let steps = path.into_iter();
    let steps = steps.map(|index| (places[index], sets[index].kind));
    Ok(Plan {
        steps: steps.collect(),
        unfinished,
        unread,
    })
}

/// A set that is dated in the future beside others that are not.
fn ahead(sets: &[ChainSet], wanted: &[usize]) -> Option<usize> {
    let now = Now::here().utc;
    let is_future = |index: &&usize| {
        let times = sets[**index].times;
        times.is_some_and(|times| times.is_future(now))
    };
    let ahead = wanted.iter().find(is_future).copied();
    ahead.filter(|_| !wanted.iter().all(|index| is_future(&index)))
}

fn one_database(of: &[Provenance]) -> Result<(), String> {
    let databases = named_databases(of);
    if databases.len() <= 1 {
        return Ok(());
    }
    let names: Vec<String> = databases.into_iter().map(|(name, _)| name).collect();
    Err(format!(
        "These files hold backups of several databases: {}. Name only those of one.",
        names.join(", ")
    ))
}

/// One file of each family.
fn files(media: &FoundMedia) -> Vec<String> {
    (1..=media.family_count)
        .filter_map(|number| media.best(number))
        .map(|file| file.device.to_string())
        .collect()
}

/// Runs `PRAGMA integrity_check` on the restored database.
fn check(session: &mut Session, name: &str, report: &mut Report) -> bool {
    let record = session.instance.database(name).ok().flatten();
    let Some(record) = record else {
        report.fail(911);
        return false;
    };
    // A page engine database is opened by name, any other by path.
    let place = match record.log_path {
        None => Ok(record.path.clone()),
        Some(_) => session
            .instance
            .engine(&record)
            .and_then(|_| session.instance.engines.uri(&record.name))
            .map(PathBuf::from),
    };
    let place = match place {
        Ok(place) => place,
        Err(failure) => {
            report
                .lines
                .extend(failure.messages.iter().map(|message| message.text.clone()));
            report.fail(50000);
            return false;
        }
    };
    match integrity(&place) {
        Ok(lines) if lines == ["ok"] => {
            report.line(format!("CHECKDB found no errors in database '{name}'."));
            true
        }
        Ok(lines) => {
            report.line(format!("CHECKDB found errors in database '{name}':"));
            report.lines.extend(lines.into_iter().take(CHECK_LINES_MAX));
            report.fail(50000);
            false
        }
        Err(error) => {
            report.line(format!("CHECKDB of N'{name}' failed: {error}"));
            report.fail(50000);
            false
        }
    }
}

fn integrity(path: &Path) -> rusqlite::Result<Vec<String>> {
    let connection = Connection::open_with_flags(
        PathBuf::from(path),
        OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_URI
            | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )?;
    let mut statement = connection.prepare("PRAGMA integrity_check")?;
    statement.query_map([], |row| row.get(0))?.collect()
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn patterns_match_names() {
        for (pattern, name, expected) in [
            ("*.bak", "a.bak", true),
            ("*", "", true),
            ("a*b*c", "aXbYbc", true),
            ("a*b*c", "aXbY", false),
            ("?.bak", "ab.bak", false),
            ("a.bak", "a.bak", true),
            ("FULL_*", "DIFF_x", false),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }
}
