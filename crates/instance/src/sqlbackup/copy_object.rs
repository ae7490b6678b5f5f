//! Copies a backup file to an object of a store. It appears when it is complete.

use std::fs::File;
use std::io::{self, Read as _};

use windlass_catalog::QueuedCopy;
use windlass_device::{DeviceAddress, DeviceReader, Start, WriteTuning};
use windlass_io::queue::IoMethodChoice;
use windlass_io::secret;
use windlass_pipeline::{KEY_FILE_SUFFIX, key_file, key_file_for_copy};

use super::copy::Headers;

/// Bytes that are read at a time.
const READ_BYTES: usize = 1 << 20;

/// Parts on their way at a time.
const DEPTH: usize = 4;

/// The usual length of a part, and the number of parts for which it is made longer.
const PART_BYTES: u64 = 10 << 20;
const PARTS: u64 = 9_000;

/// Copies a file, and compares the headers of the copy with its own.
pub(super) fn make(copy: &QueuedCopy, target: &DeviceAddress) -> io::Result<()> {
    let source = DeviceAddress::disk(&copy.source);
    // While it is open for reading, no backup can write to the source.
    let _unchanged = source.open_reader().map_err(io::Error::other)?;
    let mut from = File::open(&copy.source)?;
    // What comes there while the copy is made stays.
    let earlier = target.as_found().map_err(io::Error::other)?;
    if let Some(earlier) = earlier.as_ref().filter(|_| !copy.overwrite) {
        check_earlier(&source, earlier)?;
    }
    copy_keys(copy, target)?;
    let bytes = from.metadata()?.len();
    let part_bytes = PART_BYTES.max((bytes / PARTS).next_multiple_of(1 << 20));
    let tuning = WriteTuning {
        transfer_bytes: READ_BYTES,
        part_bytes: usize::try_from(part_bytes).unwrap_or(usize::MAX),
        depth: DEPTH,
        io_method: IoMethodChoice::Auto,
    };
    let opened = match &earlier {
        Some(earlier) => earlier.open_writer(Start::Replace, tuning),
        None => target.open_writer(Start::Create, tuning),
    };
    let mut to = opened.map_err(io::Error::other)?;
    let mut buffer = vec![0; READ_BYTES];
    loop {
        let count = from.read(&mut buffer)?;
        if count == 0 {
            break;
        }
        to.append(&buffer[..count]).map_err(io::Error::other)?;
    }
    if to.position() != bytes {
        let found = to.position();
        return Err(io::Error::other(format!(
            "{found} of {bytes} bytes were read"
        )));
    }
    to.commit().map_err(io::Error::other)?;
    match Headers::of(&source)? == Headers::of(target)? {
        true => Ok(()),
        false => Err(io::Error::other(
            "the content of the copy differs from the backup",
        )),
    }
}

/// Copies the key file of a medium whose recipients were changed, before the copy appears: without it, the new ones
/// could not open that.
fn copy_keys(copy: &QueuedCopy, target: &DeviceAddress) -> io::Result<()> {
    let Some(object) = target.side_object(KEY_FILE_SUFFIX) else {
        return Ok(());
    };
    if !key_file(&copy.source).exists() {
        return Ok(());
    }
    let earlier = object.read(secret::BYTES_MAX)?;
    let before = earlier.as_ref().map(|earlier| earlier.bytes.as_slice());
    match key_file_for_copy(&copy.source, before, &object.to_string(), copy.overwrite)? {
        Some(bytes) if before != Some(&bytes) => object.write(&bytes, earlier.as_ref()),
        Some(_) | None => Ok(()),
    }
}

/// Refuses to replace an object that is no earlier state of the same file: the same media family, with the first of its
/// sets, byte for byte.
fn check_earlier(source: &DeviceAddress, target: &DeviceAddress) -> io::Result<()> {
    let refused = |why: &str| {
        let reason = format!(
            "an object of that name exists, and {why}; name another folder, or overwrite it with FILEOPTIONS = 4"
        );
        io::Error::new(io::ErrorKind::AlreadyExists, reason)
    };
    let earlier = Headers::of(target)
        .map_err(|error| refused(&format!("cannot be compared with the backup ({error})")))?;
    let now = Headers::of(source)?;
    let is_same = (earlier.media_set, earlier.family) == (now.media_set, now.family);
    if !is_same || !now.sets.starts_with(&earlier.sets) {
        return Err(refused("is no earlier copy of this backup file"));
    }
    let open = |device: &DeviceAddress| device.open_reader().map_err(io::Error::other);
    match are_same(&*open(source)?, &*open(target)?, earlier.bytes)? {
        true => Ok(()),
        false => Err(refused(
            "differs from this backup file in backup sets that both have: one of the two is damaged. Verify both",
        )),
    }
}

/// Whether two devices begin with the same bytes.
fn are_same(one: &dyn DeviceReader, other: &dyn DeviceReader, bytes: u64) -> io::Result<bool> {
    let (mut left, mut right) = (vec![0; READ_BYTES], vec![0; READ_BYTES]);
    let mut at = 0;
    while at < bytes {
        let wanted = usize::try_from(bytes - at).map_or(READ_BYTES, |rest| rest.min(READ_BYTES));
        let read = |reader: &dyn DeviceReader, buffer: &mut [u8]| {
            reader
                .read_at(&mut buffer[..wanted], at)
                .map_err(io::Error::other)
        };
        let counts = (read(one, &mut left)?, read(other, &mut right)?);
        if counts != (wanted, wanted) || left[..wanted] != right[..wanted] {
            return Ok(false);
        }
        at += wanted as u64;
    }
    Ok(true)
}
