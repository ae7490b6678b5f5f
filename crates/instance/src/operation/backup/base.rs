//! The base of a differential backup.
//!
//! Sought in this order: the media that the options name; the base that the history knows; failing
//! these, the newest full backup of that very database on the media that the differential goes to.
//! `COPY_ONLY` backups, runs to `NUL`, and backups of a copy or of a damaged database never count. One that is dated in the future
//! does not count either: which state is the newest could not be told. The digests to compare with come
//! from the instance's cache, one file per base, or else from the base's media.
//!
//! A database of the page engine itself knows the base of its differential map; the history only says
//! where the media of that set are.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use windlass_base::message::table;
use windlass_base::{Guid, Lsn, Moment};
use windlass_catalog::provenance::databases;
use windlass_catalog::{BackedUp, Base, DatabaseRecord, PastBackup, Provenance};
use windlass_device::DeviceAddress;
use windlass_media::{SetConfiguration, SetType, SourceKind};
use windlass_pipeline::{
    BackupKind, DifferentialBase, DigestFile, MediaSet, digests, extract_digests,
};

use super::BackupOptions;
use crate::chain::{ChainSet, Chains, Obstacle};
use crate::operation::Reach;
use crate::presence::{Looker, Presence};
use crate::provenance::of_set;
use crate::retention::Now;
use crate::{Failure, Session, Sink};

/// What to do if the media of the base are missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MissingBase {
    /// Makes the backup and warns that it cannot be restored.
    #[default]
    Warns,
    /// Refuses it.
    Refuses,
}

/// A differential that needs a base.
pub(super) struct Wanted<'a> {
    pub(super) record: &'a DatabaseRecord,
    /// The base that the database itself knows.
    pub(super) own: Option<(Guid, Lsn)>,
    /// The media of the new backup.
    pub(super) target: &'a [DeviceAddress],
    pub(super) options: &'a BackupOptions,
}

/// Finds the base of a differential.
///
/// # Errors
/// If there is none, its media are missing and [`MissingBase::Refuses`] applies, or nothing can be
/// compared.
pub(super) fn find(
    session: &mut Session,
    wanted: &Wanted<'_>,
    sink: &mut dyn Sink,
) -> Result<DifferentialBase, Failure> {
    let Wanted {
        record,
        own,
        target,
        options,
    } = *wanted;
    let none = || Failure::from(table::no_differential_base(&record.name));
    if let Some((set_guid, lsn)) = own {
        named_media_hold(&wanted.options.base, set_guid)?;
        let past = past(session, set_guid)?;
        check_media(session, set_guid, past.as_ref(), wanted, sink)?;
        return Ok(DifferentialBase {
            set_guid,
            lsn,
            digests: None,
        });
    }
    if !options.base.is_empty() {
        let media = MediaSet::open(&options.base)?;
        let newest = newest_base(session, wanted, &media, sink)?;
        return match newest {
            Some(position) => extracted(&media, position, None),
            None => Err(no_base_named(&media)),
        };
    }
    if let Some(base) = record.base {
        let past = past(session, base.set_guid)?;
        check_media(session, base.set_guid, past.as_ref(), wanted, sink)?;
        return known(session, base.set_guid, past.as_ref());
    }
    if !has_content(target) {
        return Err(none());
    }
    let media = MediaSet::open(target)?;
    let newest = newest_base(session, wanted, &media, sink)?;
    extracted(&media, newest.ok_or_else(none)?, None)
}

/// Checks what a dry run can check of the base without reading the database: that there is one, and
/// whether its media exist.
///
/// # Errors
/// If the differential would be refused.
pub(super) fn rehearse(
    session: &mut Session,
    wanted: &Wanted<'_>,
    sink: &mut dyn Sink,
) -> Result<Guid, Failure> {
    let named = wanted.options.base.as_slice();
    // A database of the page engine has its own base.
    let knows_itself = wanted.record.log_path.is_some();
    if (named.is_empty() || knows_itself)
        && let Some(base) = wanted.record.base
    {
        named_media_hold(named, base.set_guid)?;
        let past = past(session, base.set_guid)?;
        check_media(session, base.set_guid, past.as_ref(), wanted, sink)?;
        return Ok(base.set_guid);
    }
    let devices = match named {
        [] if has_content(wanted.target) => wanted.target,
        [] => return Err(table::no_differential_base(&wanted.record.name).into()),
        named => named,
    };
    let media = MediaSet::open(devices)?;
    match newest_base(session, wanted, &media, sink)? {
        Some(position) => Ok(media.set(position)?.configuration.set_guid),
        None if named.is_empty() => Err(table::no_differential_base(&wanted.record.name).into()),
        None => Err(no_base_named(&media)),
    }
}

/// The base of a differential whose media are there when it begins; `None` if they are not, which was told.
pub(super) fn seen(
    session: &mut Session,
    kind: &BackupKind,
    options: &BackupOptions,
) -> Result<Option<Guid>, Failure> {
    let BackupKind::Differential(base) = kind else {
        return Ok(None);
    };
    let is_there = gone(session, base.set_guid, options)?.is_none();
    Ok(is_there.then_some(base.set_guid))
}

/// Looks once more for the media of the base, now that the differential is complete: somebody may have deleted
/// them meanwhile.
///
/// # Errors
/// What is gone.
pub(super) fn look_again(
    session: &mut Session,
    seen: Option<Guid>,
    options: &BackupOptions,
    database: &str,
) -> Result<(), Failure> {
    let gone = seen.map(|base| gone(session, base, options)).transpose()?;
    match gone.flatten() {
        Some(reason) => Err(table::base_lost_meanwhile(database, reason).into()),
        None => Ok(()),
    }
}

/// Why the media of a base cannot be used, if that is certain.
fn gone(
    session: &mut Session,
    base: Guid,
    options: &BackupOptions,
) -> Result<Option<String>, Failure> {
    if !options.base.is_empty() {
        let held = named_media_hold(&options.base, base).err();
        let message = held.and_then(|failure| failure.messages.into_iter().next());
        return Ok(message.map(|message| message.text));
    }
    let past = past(session, base)?;
    let mut looker = Looker::asking(&session.instance)?;
    match past.as_ref().map(|past| looker.look(past)) {
        Some(Presence::Gone(reason) | Presence::Damaged { reason, .. }) => Ok(Some(reason)),
        _ => Ok(None),
    }
}

/// Whether all of these are files that are not empty.
fn has_content(devices: &[DeviceAddress]) -> bool {
    let mut devices = devices.iter();
    devices.all(|device| device.file().is_some() && device.has_content().unwrap_or(false))
}

fn no_base_named(media: &MediaSet) -> Failure {
    let sets = media.sets();
    let sets: Vec<Provenance> = sets.iter().map(|set| of_set(&set.configuration)).collect();
    let held = databases(&sets);
    let held = held.iter().filter_map(|own| own.last());
    let held = held.map(|last| {
        let Provenance {
            name,
            path,
            machine,
            ..
        } = &sets[*last];
        format!("'{name}' ('{path}' on {machine})")
    });
    let held: Vec<String> = held.collect();
    let held = match held.as_slice() {
        [] => "no backup".to_owned(),
        held => format!("backups of {}", held.join(", ")),
    };
    let reason =
        format!("the media given as base have no full backup of this database. They hold {held}.");
    table::set_not_comparable(reason).into()
}

/// Checks that media named as the base contain the base that the database itself knows.
fn named_media_hold(devices: &[DeviceAddress], base: Guid) -> Result<(), Failure> {
    if devices.is_empty() {
        return Ok(());
    }
    let media = MediaSet::open(devices)?;
    let sets = media.sets();
    let is_base = |set: &SetConfiguration| set.set_guid == base;
    match sets
        .iter()
        .any(|entry| entry.is_complete && is_base(&entry.configuration))
    {
        true => Ok(()),
        false => {
            let reason = format!(
                "the media named as base do not hold the full backup that the database counts from, set {base}."
            );
            Err(table::set_not_comparable(reason).into())
        }
    }
}

/// The history's row of a set.
pub(super) fn past(session: &mut Session, set_guid: Guid) -> Result<Option<PastBackup>, Failure> {
    let past = session.instance.catalog().past_backups(None)?;
    let found = past.into_iter().rev();
    Ok(found
        .filter(|backup| backup.set_guid == Some(set_guid))
        .min_by_key(|backup| backup.is_overwritten))
}

/// Warns, or refuses, if the media of the base are missing: without its base a differential is useless.
fn check_media(
    session: &mut Session,
    base: Guid,
    past: Option<&PastBackup>,
    wanted: &Wanted<'_>,
    sink: &mut dyn Sink,
) -> Result<(), Failure> {
    let database = &wanted.record.name;
    let Some(past) = past else {
        // Media that are named were looked at.
        if wanted.options.base.is_empty() {
            let made = format!("an unknown date, set {base}");
            let reason = "the history of this instance does not know that backup";
            sink.message(table::base_not_seen(database, made, reason));
        }
        return Ok(());
    };
    let set = ChainSet::of_past(past);
    let times = set.and_then(|set| set.times);
    if times.is_some_and(|times| times.is_future(Now::here().utc)) {
        doubt_future(wanted, past.started, sink)?;
    }
    let mut looker = Looker::asking(&session.instance)?;
    let found = looker.look(past);
    looker.note(session.instance.catalog_mut(), Moment::now().0);
    let made = past.finished.map_or_else(String::new, |at| at.to_string());
    let reason = match found {
        _ if past.is_overwritten => "a later backup has overwritten it".to_owned(),
        // What is made of a database that is still damaged is marked anyway.
        _ if past.is_damaged && session.known_damage(wanted.record)?.is_none() => {
            Obstacle::Damaged.to_string()
        }
        Presence::There => return Ok(()),
        Presence::Gone(reason) | Presence::Damaged { reason, .. } => reason,
        Presence::Unknown(reason) => {
            sink.message(table::base_not_seen(database, made, reason));
            return Ok(());
        }
    };
    match wanted.options.missing_base {
        MissingBase::Refuses => Err(table::base_media_missing(database, made, reason).into()),
        MissingBase::Warns => {
            sink.message(table::base_media_missing_ignored(database, made, reason));
            Ok(())
        }
    }
}

/// Warns, or refuses, because the base is dated in the future: a restore could not tell that it is no newer than
/// later backups.
fn doubt_future(
    wanted: &Wanted<'_>,
    started: Option<Moment>,
    sink: &mut dyn Sink,
) -> Result<(), Failure> {
    let database = &wanted.record.name;
    let started = started.map_or_else(String::new, |at| at.to_string());
    match wanted.options.missing_base {
        MissingBase::Refuses => Err(table::base_in_future(database, started).into()),
        MissingBase::Warns => {
            sink.message(table::base_in_future_ignored(database, started));
            Ok(())
        }
    }
}

/// Opens a base known to the history: its digests from the cache, else from its media.
fn known(
    session: &Session,
    set_guid: Guid,
    past: Option<&PastBackup>,
) -> Result<DifferentialBase, Failure> {
    let folder = session.instance.bases_folder();
    let cached = folder.map(|folder| digests::path(&folder, set_guid));
    // A damaged digest file does not matter if the media have the digests too.
    let opened = cached.as_deref().map(DigestFile::open);
    if let Some(Ok(file)) = opened
        && file.set_guid() == set_guid
    {
        return Ok(base_of(file));
    }
    let Some(past) = past else {
        let reason = "neither its digests nor its media are known here; make a new full backup.";
        return Err(table::set_not_comparable(reason).into());
    };
    let reach = Reach::of(&session.instance)?;
    let devices = past.devices.iter().map(|name| reach.device(name));
    let media = MediaSet::open(&devices.collect::<Vec<_>>())?;
    let sets = media.sets().into_iter().map(|entry| entry.configuration);
    let Some(set) = sets.into_iter().find(|set| set.set_guid == set_guid) else {
        let reason = format!("it is no longer on '{}'.", past.devices.join("', '"));
        return Err(table::set_not_comparable(reason).into());
    };
    extracted(&media, set.position, cached)
}

fn base_of(digests: DigestFile) -> DifferentialBase {
    DifferentialBase {
        set_guid: digests.set_guid(),
        lsn: digests.lsn(),
        digests: Some(Arc::new(digests)),
    }
}

/// The position of the newest set of a database that can be a base; one that is dated in the future only if there
/// is no other.
fn newest_base(
    session: &Session,
    wanted: &Wanted<'_>,
    media: &MediaSet,
    sink: &mut dyn Sink,
) -> Result<Option<u16>, Failure> {
    let Some(own) = session.provenance_of(wanted.record) else {
        return Ok(None);
    };
    let entries = media.sets();
    let sets: Vec<ChainSet> = entries
        .iter()
        .map(|entry| {
            ChainSet::of(&entry.configuration, entry.is_complete)
                .on(media.header().media_set_guid, entry.configuration.position)
        })
        .collect();
    let mut all: Vec<Provenance> = entries
        .iter()
        .map(|set| of_set(&set.configuration))
        .collect();
    all.push(own);
    let groups = databases(&all);
    let own = groups.into_iter().find(|group| group.contains(&sets.len()));
    let can_be = |index: &usize| sets.get(*index).is_some_and(ChainSet::can_be_base);
    let own: Vec<usize> = own.unwrap_or_default().into_iter().filter(can_be).collect();
    let now = Now::here().utc;
    let is_future = |index: &usize| sets[*index].times.is_some_and(|times| times.is_future(now));
    let chains = Chains::of(&sets);
    let dated = own.iter().copied().filter(|index| !is_future(index));
    let newest = match chains.newest_among(dated) {
        Some(newest) => newest,
        None => {
            let Some(ahead) = chains.newest_among(own.iter().copied()) else {
                return Ok(None);
            };
            doubt_future(wanted, entries[ahead].configuration.started, sink)?;
            ahead
        }
    };
    Ok(Some(entries[newest].configuration.position))
}

/// Extracts the digests of a set from its media, into `cache` if that can be written.
fn extracted(
    media: &MediaSet,
    position: u16,
    cache: Option<PathBuf>,
) -> Result<DifferentialBase, Failure> {
    if let Some(path) = cache
        && windlass_io::directory::create(&windlass_io::directory::parent(&path)).is_ok()
        && let Ok(digests) = extract_digests(media, position, &path)
    {
        return Ok(base_of(digests));
    }
    // The folder goes at the end of the function; the open descriptor keeps the file readable.
    let folder = temporary_folder()?;
    let path = folder.path().join("base.digests");
    let digests = extract_digests(media, position, &path)?;
    Ok(base_of(digests))
}

fn temporary_folder() -> Result<tempfile::TempDir, Failure> {
    tempfile::tempdir().map_err(|error| {
        let folder = std::env::temp_dir();
        crate::message_of::unreadable_file(&folder, &error).into()
    })
}

/// Removes the digests of sets that are no longer a base.
pub(super) fn tidy(session: &Session) {
    let Some(folder) = session.instance.bases_folder() else {
        return;
    };
    let removed = match session.instance.catalog().base_guids() {
        Ok(kept) => digests::remove_others(&folder, &kept).map_err(|error| error.to_string()),
        Err(error) => Err(error.to_string()),
    };
    if let Err(error) = removed
        && Path::new(&folder).exists()
    {
        tracing::warn!(
            "old digests could not be removed from '{}': {error}",
            folder.display()
        );
    }
}

/// The row for the database, with the set as its new base if it can be one.
pub(super) fn backed_up(
    record: &DatabaseRecord,
    set: &SetConfiguration,
    is_discarded: bool,
) -> BackedUp {
    let is_whole = !set.is_copy_only && !set.is_damaged && !is_discarded;
    let is_base = set.set_type == SetType::Full && is_whole;
    BackedUp {
        database_id: record.database_id,
        of: of_set(set),
        base: is_base.then(|| Base {
            set_guid: set.set_guid,
            lsn: set.checkpoint_lsn,
            finished: set.finished.unwrap_or_else(|| Moment::now().0),
        }),
        fork: (set.source_kind == SourceKind::Engine).then_some(set.recovery_fork_guid),
    }
}

#[cfg(test)]
mod tests;
