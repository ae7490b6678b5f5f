//! `RESTORE DATABASE`: the newest backups of a folder, a check, and the end of a test restore.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags};
use windlass_media::SetType;
use windlass_source::Recovery;
use windlass_tsql::option::{RESTORE, StatementKind};
use windlass_tsql::sqlbackup::Command;

use super::options::{Drops, Options};
use super::report::Report;
use super::{Runner, disks};
use crate::Session;
use crate::chain::Chains;
use crate::operation::{MediaOptions, RestoreOptions};
use crate::retention::{self, FoundMedia, Place};
use crate::tsql::{option, print};

/// Maximum number of lines of `integrity_check` in a report.
const CHECK_LINES_MAX: usize = 20;

impl Runner<'_> {
    /// Restores a database, checks it and drops it, as the command says.
    pub(super) fn restore(&mut self, name: &str) {
        let options = self.options;
        let restores = match restores(self.session, self.command, name, options) {
            Ok(restores) => restores,
            Err(error) => return self.report.refuse(&error),
        };
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
            Drops::IfSuccessful => checked,
        };
        if drops && self.execute(|session, sink| session.drop_database(name, sink)) {
            self.report.line(format!("Database '{name}' was dropped."));
        }
    }
}

/// The restores, in order.
fn restores(
    session: &Session,
    command: &Command,
    name: &str,
    options: &Options,
) -> Result<Vec<RestoreOptions>, String> {
    let restore = |files: &[String], position: Option<usize>| RestoreOptions {
        media: MediaOptions {
            devices: disks(files),
            position: position.and_then(|position| i64::try_from(position + 1).ok()),
            ..options.restore.media.clone()
        },
        ..options.restore.clone()
    };
    let Some(latest) = &command.latest else {
        return Ok(vec![restore(&command.disks, None)]);
    };
    let source = command.source.as_deref().unwrap_or(name);
    let media = matching(session, command, source)?;
    let (full, differential) = newest(&media, source, latest != "LATEST_FULL")
        .ok_or_else(|| format!("There is no full backup of '{source}' among these files."))?;
    let of = |(medium, position): Place| restore(&files(&media[medium]), Some(position));
    Ok(match differential {
        None => vec![of(full)],
        // MOVE and REPLACE apply to the first of the two, the final state to the second.
        Some(differential) => vec![
            RestoreOptions {
                recovery: Recovery::NoRecovery,
                ..of(full)
            },
            RestoreOptions {
                moves: Vec::new(),
                replaces: false,
                ..of(differential)
            },
        ],
    })
}

/// The media that match the command's patterns and contain backups of `source`.
fn matching(session: &Session, command: &Command, source: &str) -> Result<Vec<FoundMedia>, String> {
    let mut found: Vec<FoundMedia> = Vec::new();
    for disk in &command.disks {
        let path = session.instance.drives().path(disk);
        let path = path.map_err(|error| error.to_string())?;
        let folder = windlass_io::directory::parent(&path);
        let pattern = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let scan = retention::scan(&[folder]).map_err(|error| format!("{disk}: {error}"))?;
        found.extend(scan.media.into_iter().filter(|media| {
            media.files.iter().all(|file| {
                let name = file.path.file_name().unwrap_or_default();
                matches(&pattern, &name.to_string_lossy())
            })
        }));
    }
    found.retain(|media| {
        media.trouble.is_none()
            && media.is_whole()
            && media
                .sets
                .iter()
                .any(|set| set.database.eq_ignore_ascii_case(source))
    });
    Ok(found)
}

/// Whether a name matches a pattern with `*` and `?`.
fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), name.chars().collect());
    let (mut at, mut place) = (0, 0);
    // The position of the last star, and how far it matches so far.
    let mut star: Option<(usize, usize)> = None;
    while place < name.len() {
        match pattern.get(at) {
            Some('*') => {
                star = Some((at, place));
                at += 1;
            }
            Some(character) if *character == '?' || *character == name[place] => {
                at += 1;
                place += 1;
            }
            _ => match star {
                Some((position, taken)) => {
                    star = Some((position, taken + 1));
                    at = position + 1;
                    place = taken + 1;
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|character| *character == '*')
}

/// The newest full backup, and the newest differential based on it.
fn newest(
    media: &[FoundMedia],
    source: &str,
    with_differential: bool,
) -> Option<(Place, Option<Place>)> {
    let (places, sets) = retention::chain_sets(media);
    let chains = Chains::of(&sets);
    let wanted = (0..sets.len()).filter(|index| {
        let (medium, place) = places[*index];
        let set = &media[medium].sets[place];
        set.database.eq_ignore_ascii_case(source)
            && (set.chain.kind == SetType::Full
                || with_differential && set.chain.kind == SetType::Differential)
    });
    let path = chains.path(chains.newest_among(wanted)?).ok()?;
    let second = path.get(1).map(|index| places[*index]);
    Some((places[*path.first()?], second))
}

/// One file of each family.
fn files(media: &FoundMedia) -> Vec<String> {
    (1..=media.family_count)
        .filter_map(|number| media.files.iter().find(|file| file.family == number))
        .map(|file| file.path.display().to_string())
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
            .engines
            .database(&record)
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
