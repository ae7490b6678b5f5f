//! Removes the files of a medium, after reading their headers once more.

use std::io;

use windlass_device::{DeviceAddress, Removed};
use windlass_pipeline::{MediaSet, remove_key_file};

use super::FoundMedia;

/// Deletes the files of a medium; returns those that were deleted, and what became of each.
///
/// A file may have changed since the scan, so it is opened again and deleted only if it still belongs to
/// the media set and contains the same backup sets as it did. It is held meanwhile: a backup that overwrites it would give its
/// name to a new file.
///
/// # Errors
/// The first file that has changed or cannot be deleted; the files before it are gone.
pub fn delete(media: &FoundMedia) -> io::Result<Vec<(DeviceAddress, Removed)>> {
    let mut deleted = Vec::new();
    for file in &media.files {
        // From here on no backup writes to it.
        let held = file.device.hold()?;
        let now = MediaSet::open_any(std::slice::from_ref(&file.device));
        let now = now.map_err(io::Error::other)?;
        let sets = now.sets();
        // An older copy has fewer sets than its medium.
        let same_sets = sets.len() == file.sets.len()
            && sets
                .iter()
                .zip(&file.sets)
                .all(|(now, then)| now.configuration.set_guid == then.chain.set_guid);
        if now.header().media_set_guid != media.media_set_guid || !same_sets {
            return Err(io::Error::other(format!(
                "'{}' has changed since its headers were read; it was not deleted",
                file.device
            )));
        }
        let is_encrypted = sets.iter().any(|set| set.configuration.is_encrypted());
        drop(now);
        let removed = held.remove()?;
        if is_encrypted && let Err(error) = remove_key_file(&file.device) {
            // Without the medium it opens nothing.
            tracing::warn!("the key file of '{}' is left: {error}", file.device);
        }
        crate::event_log::deleted(&file.device);
        deleted.push((file.device.clone(), removed));
    }
    Ok(deleted)
}
