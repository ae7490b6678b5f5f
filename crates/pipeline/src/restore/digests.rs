//! Extracts the extent digests of a full backup from its media, for a differential based on it.

use std::path::Path;

use windlass_base::EXTENT_BYTES;
use windlass_media::FamilyReader;

use crate::digests::{DigestFile, DigestWriter, DigestedFile};
use crate::error::Error;
use crate::error::media_error;
use crate::media_set::MediaSet;
use crate::window::Window;

const WINDOW_BYTES: usize = 64 << 10;

/// Writes the digests of the full backup at `position` to a digest file and opens it. Reads only
/// chunk headers, not payloads.
///
/// # Errors
/// If the set is incomplete or damaged, or the file cannot be written.
pub fn extract_digests(media: &MediaSet, position: u16, path: &Path) -> Result<DigestFile, Error> {
    let complete = media.complete(position)?;
    let set = complete.configuration();
    if set.is_encrypted() {
        return Err(Error::EncryptedBase {
            device: media.devices(),
        });
    }
    let file = |file: &windlass_media::DatabaseFile| DigestedFile {
        file_id: file.file_id,
        size_bytes: file.size_bytes,
    };
    let files: Vec<DigestedFile> = set.files.iter().map(file).collect();
    let writer = DigestWriter::create(path, set.set_guid, set.checkpoint_lsn, &files)?;
    for (family, set) in media.families.iter().zip(&complete.listings) {
        let window = Window::new(&*family.reader, WINDOW_BYTES);
        let (reader, _) =
            FamilyReader::open(&window).map_err(|source| media_error(&family.device, source))?;
        let mut failure = None;
        let walked = reader.walk(set, &mut |header, _| {
            let mut digests = header.digests.as_slice();
            for run in &header.runs {
                let count = (run.bytes as usize)
                    .div_ceil(EXTENT_BYTES)
                    .min(digests.len());
                let (these, rest) = digests.split_at(count);
                digests = rest;
                if let Err(error) =
                    writer.write(header.file_id, run.offset / EXTENT_BYTES as u64, these)
                {
                    failure = Some(error);
                    return false;
                }
            }
            true
        });
        failure.map_or(Ok(()), Err)?;
        walked.map_err(|source| media_error(&family.device, source))?;
    }
    writer.commit()?;
    Ok(DigestFile::open(path)?)
}
