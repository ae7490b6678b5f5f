//! Reads log backups to see which states lie in their log: the headers tell it of their first and last LSNs only.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};

use windlass_base::message::table;
use windlass_base::{Guid, Lsn};
use windlass_crypt::KeyRing;
use windlass_device::DeviceAddress;
use windlass_media::{SourceKind, WalPosition};
use windlass_pipeline::{Observer, OnDamage, ReadRequest, Tuning, verify_content};
use windlass_source::engine::LogVerification;
use windlass_source::sqlite::LogReading;

use super::media::{MediaOptions, OpenedSet};
use crate::chain::{Ends, LogEnd, Within};
use crate::message_of::os_error;
use crate::retention::FoundMedia;
use crate::scratch::Scratch;
use crate::{Failure, Session};

/// The prefix of the folders in which logs are collected.
const PREFIX: &str = "windlass-log-";

/// Maximum number of log backups of which it is remembered what was read.
const REMEMBERED_MAX: usize = 1024;

type Before = BTreeMap<Lsn, Option<LogEnd>>;

/// What log backups have said: shipping asks them again in each round.
#[derive(Debug, Default)]
pub(crate) struct LogsWithin(HashMap<Guid, (Ends, Before)>);

impl LogsWithin {
    fn get(&self, set: Guid, ends: &Ends) -> Option<&Before> {
        let known = self.0.get(&set).filter(|(asked, _)| asked == ends);
        known.map(|(_, before)| before)
    }

    fn keep(&mut self, set: Guid, ends: &Ends, before: &Before) {
        if self.0.len() >= REMEMBERED_MAX {
            self.0.clear();
        }
        self.0.insert(set, (ends.clone(), before.clone()));
    }
}

/// Stops reading as soon as everything is known.
struct Until<'a, F> {
    is_known: F,
    cancel: &'a AtomicBool,
}

impl<F: Fn() -> bool + Sync> Observer for Until<'_, F> {
    fn is_cancelled(&self) -> bool {
        (self.is_known)() || self.cancel.load(Ordering::Relaxed)
    }
}

/// Why a log has not been read.
enum Unread {
    /// Its key is not here, or it is damaged: its verification or restore says what is wrong with it.
    Log,
    /// There is no place here to collect it.
    NoPlace(Failure),
}

impl<E: Into<Failure>> From<E> for Unread {
    fn from(_: E) -> Self {
        Self::Log
    }
}

impl Session {
    /// Reads a log backup on a medium, from the first copy that can be read, up to the last of the states within it.
    ///
    /// # Errors
    /// If there is no place here for the log. It then counts as one that cannot be read.
    pub(crate) fn look_within(
        &mut self,
        medium: &mut FoundMedia,
        place: usize,
        keys: &KeyRing,
        ends: &Ends,
    ) -> Result<(), Failure> {
        let mut within = Ok(Within::Unreadable);
        for copy in medium.copies(place) {
            within = self.log_within(copy, place + 1, keys, ends);
            if within.as_ref().ok() != Some(&Within::Unreadable) {
                break;
            }
        }
        let (within, failure) = match within {
            Ok(within) => (within, Ok(())),
            Err(failure) => (Within::Unreadable, Err(failure)),
        };
        if let Some(set) = medium.sets.get_mut(place) {
            set.chain.within = within;
        }
        failure
    }

    /// The same of some devices.
    ///
    /// # Errors
    /// If there is no place here for the log.
    pub(crate) fn log_within(
        &mut self,
        devices: Vec<DeviceAddress>,
        position: usize,
        keys: &KeyRing,
        ends: &Ends,
    ) -> Result<Within, Failure> {
        match self.log_before(devices, position, keys, ends) {
            Ok(Some(before)) => Ok(Within::Before(before)),
            Ok(None) | Err(Unread::Log) => Ok(Within::Unreadable),
            Err(Unread::NoPlace(failure)) => Err(failure),
        }
    }

    fn log_before(
        &mut self,
        devices: Vec<DeviceAddress>,
        position: usize,
        keys: &KeyRing,
        ends: &Ends,
    ) -> Result<Option<Before>, Unread> {
        let options = MediaOptions {
            position: i64::try_from(position).ok(),
            ..MediaOptions::default()
        };
        let device = devices
            .first()
            .map_or_else(String::new, |device| device.name.clone());
        let opened = OpenedSet::open(self, devices, &options)?;
        let set = opened.set.set_guid;
        if let Some(known) = self.logs_within.get(set, ends) {
            return Ok(Some(known.clone()));
        }
        let request = ReadRequest {
            keys: opened.keys(self, keys)?,
            on_damage: OnDamage::Stop,
            tuning: Tuning::default(),
        };
        let cancel = self.cancel_flag();
        let before = match opened.set.source_kind {
            SourceKind::Engine => of_engine(&opened, &request, ends, &cancel)?,
            SourceKind::Sqlite => of_file((&device, &opened), &request, ends, &cancel)?,
            _ => None,
        };
        if let Some(before) = &before {
            self.logs_within.keep(set, ends, before);
        }
        Ok(before)
    }
}

fn of_engine(
    opened: &OpenedSet,
    request: &ReadRequest,
    ends: &Ends,
    cancel: &AtomicBool,
) -> Result<Option<Before>, Failure> {
    let lsns = ends.iter().map(|(lsn, _)| *lsn);
    let Some(log) = LogVerification::of(&opened.set.source_description, lsns)? else {
        return Ok(None);
    };
    let is_known = || log.knows_before();
    let until = Until { is_known, cancel };
    let read = verify_content(&opened.media, opened.position, request, &log, &until);
    match read {
        Ok(_) => {}
        Err(_) if log.knows_before() => {}
        Err(error) => return Err(error.into()),
    }
    let before = log.before().into_iter();
    let before = before.map(|(lsn, block)| (lsn, block.map(LogEnd::Block)));
    Ok(Some(before.collect()))
}

fn of_file(
    (device, opened): (&str, &OpenedSet),
    request: &ReadRequest,
    ends: &Ends,
    cancel: &AtomicBool,
) -> Result<Option<Before>, Unread> {
    let folder = std::env::temp_dir();
    let no_place = |reason: String| {
        Unread::NoPlace(table::no_place_for_log(device, folder.display(), reason).into())
    };
    let scratch = Scratch::begin(&folder, PREFIX).map_err(|error| no_place(os_error(&error)))?;
    let file = scratch.path().join("log");
    let log = LogReading::of(&opened.set.source_description, &file);
    let Some(log) = log.map_err(|error| no_place(error.to_string()))? else {
        return Ok(None);
    };
    // A state can be in the middle of what a record tells, so all of them are needed.
    let until = Until {
        is_known: || false,
        cancel,
    };
    let read = verify_content(&opened.media, opened.position, request, &log, &until);
    if let Some(lack) = log.lack() {
        return Err(no_place(lack.to_owned()));
    }
    read?;
    let position = |(lsn, end): &(Lsn, LogEnd)| match end {
        LogEnd::Position(position) => Some((*lsn, *position)),
        LogEnd::Block(_) => None,
    };
    let asked: Vec<(Lsn, WalPosition)> = ends.iter().filter_map(position).collect();
    let positions: Vec<WalPosition> = asked.iter().map(|(_, position)| *position).collect();
    let mut before = Before::new();
    for ((lsn, position), goes_on) in asked.into_iter().zip(log.goes_on_from(&positions)?) {
        let end = before.entry(lsn).or_default();
        *end = end.or(goes_on.then_some(LogEnd::Position(position)));
    }
    Ok(Some(before))
}
