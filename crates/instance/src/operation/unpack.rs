//! Writes the files of SQL Server from which sets on Windlass media were copied.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use windlass_bak::Original;
use windlass_base::message::table;
use windlass_base::range;
use windlass_crypt::KeyRing;
use windlass_device::DeviceAddress;
use windlass_io::queue::IoMethodChoice;
use windlass_media::{SetConfiguration, SourceKind};
use windlass_pipeline::{DamagedChunks, MediaSet, OnDamage, ReadRequest, Tuning};
use windlass_sqlserver::{Unpacking, unpacked_files};

use super::media::{MediaOptions, OpenedSet};
use super::observer::Watch;
use super::restore::{Placing, Wish, placed};
use super::{number, sql_server, timing};
use crate::event_log::Entry;
use crate::message_of::loss_messages;
use crate::{Failure, Session, Sink};

/// The operation's name in messages.
const OPERATION: &str = "UNPACK";

/// The options of an unpacking. Numbers are as given; it checks them.
#[derive(Debug, Clone, Default)]
pub struct UnpackOptions {
    /// The media, and a set of the wanted file; when absent, the media contain only one file.
    pub media: MediaOptions,
    /// One file for each media family of the original, in their order.
    pub to: Vec<PathBuf>,
    pub replaces: bool,
    /// Whether to write as much as can be read.
    pub continues_after_error: bool,
    pub keys: KeyRing,
    /// Files of public keys; one of them must have signed each set.
    pub signed_by: Vec<String>,
    pub threads: Option<i64>,
    pub io_method: IoMethodChoice,
    /// Percent between two progress messages.
    pub stats: Option<i64>,
}

/// A file that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnpackedFile {
    pub path: PathBuf,
    pub bytes: u64,
}

impl Session {
    /// Writes the files that sets on media were copied from. Their path and length are returned.
    ///
    /// # Errors
    /// The reason, in messages; [`Failure::is_done`] if the files were written with losses.
    pub fn unpack(
        &mut self,
        options: &UnpackOptions,
        sink: &mut dyn Sink,
    ) -> Result<Vec<UnpackedFile>, Failure> {
        let entry = Entry::of_operation(OPERATION, "", options.media.devices.iter());
        let done = entry.around(sink, |sink| attempt(self, options, sink));
        done.map_err(|failure| failure.then(table::terminating_abnormally(OPERATION)))
    }
}

fn attempt(
    session: &mut Session,
    options: &UnpackOptions,
    sink: &mut dyn Sink,
) -> Result<Vec<UnpackedFile>, Failure> {
    let devices = options.media.addresses(session, None)?;
    let tuning = Tuning {
        threads: number::within(range::THREADS, options.threads)?,
        io_method: options.io_method,
        ..Tuning::default()
    };
    let stats = number::within(range::STATS, options.stats)?;
    let sets = wanted(&devices, options)?;
    let originals: Vec<Original> = sets.iter().map(|(_, original)| original.clone()).collect();
    let device = devices.first().map_or("", |device| &device.name);
    let files = unpacked_files(&originals).map_err(|why| table::cannot_unpack(device, why))?;
    let paths = paths(session, &devices, options, &files)?;
    let target = Unpacking::begin(paths.clone(), options.replaces)?;
    let mut lost = DamagedChunks::default();
    for (position, original) in &sets {
        let media = MediaOptions {
            position: Some((*position).into()),
            ..options.media.clone()
        };
        let opened = OpenedSet::open(session, devices.clone(), &media)?;
        let keys = opened.restore_keys(session, &options.keys, &options.signed_by, false)?;
        windlass_pipeline::check(&opened.media, *position, &keys)?;
        let request = ReadRequest {
            keys,
            on_damage: match options.continues_after_error {
                true => OnDamage::Continue,
                false => OnDamage::Stop,
            },
            tuning,
        };
        let report = {
            let watch = Watch::new(session, OPERATION, &opened.set.database, stats, sink);
            let (media, target) = (&opened.media, target.set(original));
            let report = windlass_pipeline::restore(media, *position, &request, &target, &watch)?;
            watch.finish();
            report
        };
        sink.message(timing::closing(
            OPERATION,
            timing::pages(&report.files),
            report.processed_bytes,
            report.elapsed,
        ));
        if lost.is_empty() {
            lost = report.damaged;
        }
    }
    target.finish()?;
    let written = files.iter().filter_map(|(number, bytes)| {
        let path = paths.get(number)?.clone();
        Some(UnpackedFile {
            path,
            bytes: *bytes,
        })
    });
    let written: Vec<UnpackedFile> = written.collect();
    for file in &written {
        sink.message(table::file_unpacked(file.path.display(), file.bytes));
    }
    if lost.is_empty() {
        return Ok(written);
    }
    Err(Failure::of_loss(loss_messages(&lost)))
}

/// The sets of one file of SQL Server, with their positions on the media.
fn wanted(
    devices: &[DeviceAddress],
    options: &UnpackOptions,
) -> Result<Vec<(u16, Original)>, Failure> {
    let device = devices.first().map_or("", |device| &device.name);
    let refuse = |why: &str| Failure::from(table::cannot_unpack(device, why));
    if sql_server::is_backup(devices) {
        return Err(refuse("it is a file of SQL Server already"));
    }
    let media = options.media.open_any(devices)?;
    let mut groups: Vec<Vec<(u16, Original)>> = Vec::new();
    for entry in media.sets() {
        let position = entry.configuration.position;
        let Some(original) = original(&media, &entry.configuration)? else {
            continue;
        };
        let begins = original.families.iter().all(|family| family.offset == 0);
        match groups.last_mut().filter(|_| !begins) {
            Some(group) => group.push((position, original)),
            None => groups.push(vec![(position, original)]),
        }
    }
    let position = options.media.position()?;
    let is_wanted = |group: &&Vec<(u16, Original)>| {
        position.is_none_or(|wanted| group.iter().any(|(position, _)| *position == wanted))
    };
    let found: Vec<_> = groups.iter().filter(is_wanted).collect();
    match found.as_slice() {
        [group] => Ok((*group).clone()),
        [] if position.is_some() => Err(refuse(
            "there is no such set, or it was not copied from a file of SQL Server",
        )),
        [] => Err(refuse("no set was copied from a file of SQL Server")),
        several => {
            let first = several.iter().filter_map(|group| group.first());
            let first: Vec<String> = first.map(|(position, _)| position.to_string()).collect();
            let first = first.join(", ");
            Err(refuse(&format!(
                "its sets were copied from several files, which begin at sets {first}; name one of them"
            )))
        }
    }
}

/// What a set was copied from; `None` for other sets.
pub(super) fn original(
    media: &MediaSet,
    set: &SetConfiguration,
) -> Result<Option<Original>, Failure> {
    if set.source_kind != SourceKind::SqlServer {
        return Ok(None);
    }
    let entry = media.set(set.position)?;
    Ok(Original::load(&entry.configuration.source_description))
}

/// The path of each family, which must be allowed.
fn paths(
    session: &Session,
    devices: &[DeviceAddress],
    options: &UnpackOptions,
    files: &[(u16, u64)],
) -> Result<BTreeMap<u16, PathBuf>, Failure> {
    let device = devices.first().map_or("", |device| &device.name);
    let (needed, given) = (files.len(), options.to.len());
    if needed != given {
        let why = format!("the backup has {needed} media families, but {given} files are given");
        return Err(table::cannot_unpack(device, why).into());
    }
    let mut paths = BTreeMap::new();
    for ((number, _), path) in files.iter().zip(&options.to) {
        paths.insert(*number, placed(path)?);
    }
    let together: Vec<PathBuf> = paths.values().cloned().collect();
    let wish = Wish {
        name: "",
        devices,
        replace: options.replaces,
        // What it gives back is a backup as a rule, and may take an earlier one's place.
        replaces_backups: true,
    };
    for (index, path) in together.iter().enumerate() {
        if together.iter().take(index).any(|other| other == path) {
            let why = format!("'{}' is given twice", path.display());
            return Err(table::cannot_unpack(device, why).into());
        }
        let placing = Placing {
            logical: "backup",
            path,
            is_named: true,
            own: &[],
            together: &together,
        };
        placing
            .check(session, &wish)
            .map_err(|failure| refusal(failure, device, path))?;
    }
    Ok(paths)
}

/// Why a file cannot be written, without the words of a restore: here is no MOVE.
fn refusal(failure: Failure, device: &str, path: &Path) -> Failure {
    let exists = table::file_exists("", "", "").number;
    match failure.messages.into_iter().next() {
        Some(cause) if cause.number != exists => cause.into(),
        _ => {
            let why = format!(
                "'{}' exists: --replace overwrites it; or name another file with --to",
                path.display()
            );
            table::cannot_unpack(device, why).into()
        }
    }
}
