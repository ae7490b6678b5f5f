//! Finding what a differential is taken against.
//!
//! In this order: the media that the command names; the digests that the instance keeps of the
//! family's last full backup; the newest full backup of the family on the media that the
//! differential goes to. `COPY_ONLY` backups never count.

use std::path::Path;
use std::sync::Arc;

use windlass_base::Guid;
use windlass_base::message::table;
use windlass_device::{DeviceAddress, DeviceKind};
use windlass_media::SetType;
use windlass_pipeline::{DifferentialBase, DigestFile, Error, MediaSet, extract_digests};

use crate::message_of::pipeline_messages;
use crate::{Failure, Session};

/// The base of a differential of `family`; `None` when there is no full backup of it.
pub(super) fn find(
    session: &Session,
    family: Guid,
    target: &[DeviceAddress],
    named: &[DeviceAddress],
) -> Result<Option<DifferentialBase>, Failure> {
    if !named.is_empty() {
        let found = on_media(family, named)?;
        return match found {
            Some(base) => Ok(Some(base)),
            None => Err(table::set_not_comparable(
                "the media named as base hold no full backup of this database.",
            )
            .into()),
        };
    }
    if let Some(path) = session
        .instance
        .digests_path(family)
        .filter(|path| path.exists())
    {
        // A damaged file of digests is no reason to fail when the media have them too.
        if let Ok(base) = from_file(&path) {
            return Ok(Some(base));
        }
    }
    let has_content = target
        .iter()
        .all(|device| device.kind == DeviceKind::Disk && device.has_content().unwrap_or(false));
    if has_content {
        on_media(family, target)
    } else {
        Ok(None)
    }
}

fn from_file(path: &Path) -> Result<DifferentialBase, Failure> {
    let digests = DigestFile::open(path)
        .map_err(|error| Failure::from(pipeline_messages(&Error::from(error), 1)))?;
    Ok(base_of(digests))
}

fn base_of(digests: DigestFile) -> DifferentialBase {
    DifferentialBase {
        set_guid: digests.set_guid(),
        lsn: digests.lsn(),
        digests: Some(Arc::new(digests)),
    }
}

fn on_media(family: Guid, devices: &[DeviceAddress]) -> Result<Option<DifferentialBase>, Failure> {
    let failed = |error: Error| Failure::from(pipeline_messages(&error, 1));
    let media = MediaSet::open(devices).map_err(failed)?;
    let newest = media.sets().into_iter().rev().find(|entry| {
        let set = &entry.configuration;
        entry.is_complete
            && set.set_type == SetType::Full
            && !set.is_copy_only
            && set.family_guid == family
    });
    let Some(entry) = newest else { return Ok(None) };
    // The file has no name any more once the folder is gone; the open descriptor is enough.
    let folder = temporary_folder()?;
    let path = folder.path().join("base.digests");
    let digests = extract_digests(&media, entry.configuration.position, &path).map_err(failed)?;
    Ok(Some(base_of(digests)))
}

fn temporary_folder() -> Result<tempfile::TempDir, Failure> {
    tempfile::tempdir().map_err(|error| {
        let folder = std::env::temp_dir();
        table::cannot_open_file(folder.display(), crate::message_of::os_error(&error)).into()
    })
}
