//! Checks before a backup whether it will fit.
//!
//! The size of a backup without compression is known, so too little space is an error. The size of a
//! compressed one or of a differential is estimated from the last one of its kind, so too little space
//! is only a warning: it may fit after all.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use windlass_base::Message;
use windlass_base::message::table;
use windlass_codec::Compression;
use windlass_device::DeviceAddress;
use windlass_io::directory;
use windlass_pipeline::MediaRequest;
use windlass_source::Snapshot;

use super::BackupOperation;
use crate::{Failure, Sink};

/// The size of a backup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expected {
    /// At least this many bytes.
    Known(u64),
    /// About this many bytes.
    Guessed(u64),
}

/// A file system that part of a backup goes to.
struct Place {
    device: u64,
    folder: PathBuf,
    needed: u64,
}

impl BackupOperation<'_> {
    /// Compares the size of the backup with the free space.
    pub(super) fn check_space(
        &self,
        media: &MediaRequest,
        snapshot: &dyn Snapshot,
        sink: &mut dyn Sink,
    ) -> Result<(), Failure> {
        let Some(expected) = self.expected(snapshot) else {
            return Ok(());
        };
        let (Expected::Known(total) | Expected::Guessed(total)) = expected;
        for place in places(media, total) {
            let Ok(Some(free)) = directory::free_bytes(&place.folder) else {
                continue;
            };
            if free >= place.needed {
                continue;
            }
            let short =
                table::insufficient_backup_space(place.folder.display(), place.needed, free);
            match expected {
                Expected::Known(_) => return Err(short.into()),
                Expected::Guessed(_) => sink.message(Message {
                    severity: windlass_base::Severity(10),
                    text: format!(
                        "{} The backup continues, because this is an estimate.",
                        short.text
                    ),
                    ..short
                }),
            }
        }
        Ok(())
    }

    fn expected(&self, snapshot: &dyn Snapshot) -> Option<Expected> {
        let pages: u64 = snapshot
            .files()
            .iter()
            .flat_map(|file| snapshot.ranges(file.id))
            .map(|range| range.end - range.start)
            .sum();
        let is_differential = self.options.is_differential;
        if !is_differential && self.settled.compression == Compression::NONE {
            return Some(Expected::Known(pages));
        }
        // A history that cannot be read must not stop a backup.
        let last = self.session.instance.catalog().last_sizes(
            &snapshot.identity().name,
            if is_differential { 'I' } else { 'D' },
            self.settled.compression.algorithm.name(),
        );
        let (raw, stored) = last.ok().flatten()?;
        if is_differential {
            return Some(Expected::Guessed(stored));
        }
        let scaled = u128::from(pages) * u128::from(stored) / u128::from(raw.max(1));
        Some(Expected::Guessed(u64::try_from(scaled).unwrap_or(u64::MAX)))
    }
}

/// The file systems of all stripes and mirrors, and the space needed on each.
fn places(media: &MediaRequest, total: u64) -> Vec<Place> {
    let mut places: Vec<Place> = Vec::new();
    for copy in std::iter::once(&media.devices).chain(&media.mirrors) {
        let share = total / (copy.len() as u64).max(1);
        let files = copy.iter().filter_map(DeviceAddress::file);
        for file in files.filter(|file| is_regular(file)) {
            let folder = directory::parent(file);
            let Ok(metadata) = std::fs::metadata(&folder) else {
                continue;
            };
            let known = places
                .iter_mut()
                .find(|place| place.device == metadata.dev());
            match known {
                Some(place) => place.needed += share,
                None => places.push(Place {
                    device: metadata.dev(),
                    folder,
                    needed: share,
                }),
            }
        }
    }
    places
}

/// Whether a path is a regular file or will become one: a pipe or a block device takes no space in a folder.
fn is_regular(path: &Path) -> bool {
    std::fs::metadata(path).map_or(true, |metadata| metadata.is_file())
}
