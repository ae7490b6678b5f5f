//! Works on the queue of copies: each copy appears under its name only when it is complete.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};

use windlass_base::{Guid, Moment};
use windlass_catalog::{PastBackup, QueuedCopy};
use windlass_device::DeviceAddress;
use windlass_io::{FileIdentity, FileState, directory, output, own, secret};
use windlass_pipeline::{MediaSet, key_file, key_file_for_copy};

use super::copy_object;
use crate::operation::{Reach, is_url};
use crate::{Session, overwriting};

/// Suffix of an incomplete copy's name.
const STAGING_SUFFIX: &str = ".windlass-copy";

/// Bytes of each file that are compared at a time.
const COMPARED_BYTES: usize = 1 << 20;

/// Maximum time between two attempts, in minutes.
const MINUTES_BETWEEN_ATTEMPTS_MAX: u32 = 60;

/// Result of a copy.
#[derive(Debug)]
pub struct CopyOutcome {
    pub target: PathBuf,
    pub error: Option<String>,
}

/// Makes the copies that are due. A failed copy is retried after 1, 2, 4 ... 60 minutes.
pub fn run_queue(session: &mut Session, now: Moment) -> Vec<CopyOutcome> {
    let queued = match session.instance.catalog().queued_copies() {
        Ok(queued) => queued,
        Err(error) => {
            return vec![CopyOutcome {
                target: PathBuf::new(),
                error: Some(error.to_string()),
            }];
        }
    };
    let due = queued
        .into_iter()
        .filter(|copy| copy.next_attempt.is_none_or(|next| next <= now));
    let past = session.instance.catalog().past_backups(None);
    let past = past.unwrap_or_default();
    due.map(|copy| {
        let result = allow(session, &copy)
            .and_then(|()| check_source(&copy.source, &past))
            .and_then(|()| made(session, &copy).map_err(|error| error.to_string()));
        let catalog = session.instance.catalog_mut();
        let noted = match &result {
            Ok(()) => catalog.drop_copy(copy.id),
            Err(error) => catalog.copy_failed(copy.id, error, next_attempt(&copy, Moment::now().0)),
        };
        let error = result.err().or(noted.err().map(|error| error.to_string()));
        crate::event_log::copied(&copy.target, error.as_deref());
        CopyOutcome {
            target: copy.target,
            error,
        }
    })
    .collect()
}

/// Makes a copy, as a file or as an object.
fn made(session: &Session, copy: &QueuedCopy) -> io::Result<()> {
    match copy.target.to_str().filter(|name| is_url(name)) {
        None => make(copy, session.makes_folders()),
        Some(url) => {
            let reach = Reach::of(&session.instance).map_err(io::Error::other)?;
            copy_object::make(copy, &reach.device(url))
        }
    }
}

/// The copies that are due; none if the queue cannot be read, which [`run_queue`] reports.
pub fn due_copies(session: &Session, now: Moment) -> Vec<QueuedCopy> {
    let mut queued = session
        .instance
        .catalog()
        .queued_copies()
        .unwrap_or_default();
    queued.retain(|copy| copy.next_attempt.is_none_or(|next| next <= now));
    queued
}

fn next_attempt(copy: &QueuedCopy, now: Moment) -> Moment {
    let minutes = 1_u32
        .checked_shl(copy.attempts)
        .unwrap_or(u32::MAX)
        .min(MINUTES_BETWEEN_ATTEMPTS_MAX);
    let later = now
        .to_civil()
        .saturating_add(jiff::Span::new().minutes(i64::from(minutes)));
    Moment::new(later)
}

/// Refuses to overwrite a database, or the backup that is to be copied.
fn allow(session: &Session, copy: &QueuedCopy) -> Result<(), String> {
    let name = copy.target.display().to_string();
    if is_url(&name) {
        return Ok(());
    }
    overwriting::refuse(session, &copy.target, &name, None).map_err(|failure| {
        let texts = failure.messages.iter().map(|message| message.text.clone());
        texts.collect::<Vec<_>>().join(" ")
    })?;
    let source = FileIdentity::at(&copy.source);
    if source.is_some() && FileIdentity::at(&copy.target) == source {
        return Err(
            "it is the backup itself: this would be no copy; name another folder".to_owned(),
        );
    }
    overwriting::refuse_content(&copy.target).map_err(|error| error.to_string())
}

/// Refuses a source that holds no media any more that this instance has written to it: somebody has put another file
/// there since the copy was queued.
fn check_source(source: &Path, past: &[PastBackup]) -> Result<(), String> {
    let is_here = |backup: &&PastBackup| {
        let mut media = backup.media.iter();
        media.any(|medium| Path::new(&medium.device) == source)
    };
    let mut written = past.iter().filter(is_here).peekable();
    // What cannot be read fails when it is copied.
    let (Some(_), Ok(found)) = (written.peek(), Headers::read(source)) else {
        return Ok(());
    };
    match written.any(|backup| backup.media_set_guid == Some(found.media_set)) {
        true => Ok(()),
        false => Err(format!(
            "'{}' holds other media than the backup that is to be copied: another program has replaced it",
            source.display()
        )),
    }
}

/// Copies a file under a temporary name, syncs it, checks its headers, and renames it.
fn make(copy: &QueuedCopy, makes_folders: bool) -> io::Result<()> {
    let folder = directory::parent(&copy.target);
    if makes_folders {
        directory::create(&folder)?;
    } else if !folder.is_dir() {
        // The folder may be on a disk that is not mounted: the copy would fill the disk below.
        return Err(io::Error::new(
            io::ErrorKind::NotFound,
            format!(
                "the folder '{}' does not exist; mount it, or create it with --make-folders",
                folder.display()
            ),
        ));
    }
    let beside = own::beside(&copy.target, STAGING_SUFFIX);
    own::refuse_database(&beside)?;
    // While it is held, nobody else makes a copy of this name, or gives the name to one.
    let held = own::claim_file(&beside)?;
    let earlier = state_of(&copy.target)?;
    let made = check_replaced(copy)
        .and_then(|()| fill(&copy.source, &held, &beside, &copy.target))
        .and_then(|()| match &earlier {
            None => own::take_name(&held, &beside, &copy.target),
            Some(_) if copy.overwrite || state_of(&copy.target)? == earlier => {
                own::replace_name(&held, &beside, &copy.target)
            }
            Some(_) => Err(io::Error::new(
                io::ErrorKind::AlreadyExists,
                "the file of that name was changed while the copy was made, and is kept",
            )),
        });
    if made.is_err() {
        drop(own::remove_held(&held, &beside));
    }
    made.and_then(|()| copy_keys(copy))
}

/// The state of the file of a name; `None` if there is none.
fn state_of(path: &Path) -> io::Result<Option<FileState>> {
    match std::fs::symlink_metadata(path) {
        Ok(found) => Ok(Some(FileState::of(&found))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Copies the key file of a medium whose recipients were changed: without it, the new ones could not open the
/// copy. If it cannot be copied, the whole copy is tried again.
fn copy_keys(copy: &QueuedCopy) -> io::Result<()> {
    let target = key_file(&copy.target);
    let earlier = secret::read_if_there(&target)?;
    let name = target.display().to_string();
    let bytes = key_file_for_copy(&copy.source, earlier.as_deref(), &name, copy.overwrite)?;
    let Some(bytes) = bytes else {
        return Ok(());
    };
    let beside = own::beside(&target, STAGING_SUFFIX);
    own::refuse_database(&beside)?;
    let mut held = own::claim_file(&beside)?;
    held.write_all(&bytes)?;
    let source = std::fs::metadata(key_file(&copy.source))?;
    held.set_permissions(source.permissions())?;
    held.sync_all()?;
    own::replace_name(&held, &beside, &target)
}

/// Refuses to replace a file, unless that was asked for, or it is an earlier state of the same one: the same
/// media family, with the first sets of those that it has now.
fn check_replaced(copy: &QueuedCopy) -> io::Result<()> {
    if copy.overwrite || !own::is_there(&copy.target) {
        return Ok(());
    }
    let refused = |why: String| {
        let reason = format!(
            "a file of that name exists, and {why}; name another folder or file, or overwrite it \
             with FILEOPTIONS = 4"
        );
        Err(io::Error::new(io::ErrorKind::AlreadyExists, reason))
    };
    let earlier = match Headers::read(&copy.target) {
        Ok(earlier) => earlier,
        Err(error) => return refused(format!("cannot be compared with the backup ({error})")),
    };
    let now = Headers::read(&copy.source)?;
    if (earlier.media_set, earlier.family) != (now.media_set, now.family) {
        return refused("holds other media: it is no earlier copy of this backup file".to_owned());
    }
    if !now.sets.starts_with(&earlier.sets) {
        let reason = "holds backup sets that this backup file does not have".to_owned();
        return refused(reason);
    }
    match first_difference(&copy.source, &copy.target, earlier.bytes)? {
        None => Ok(()),
        Some(at) => refused(format!(
            "differs from this backup file at byte {at}, in backup sets that both have: one of the two is \
             damaged, so the copy is kept. Verify both"
        )),
    }
}

/// Offset of the first of `bytes` bytes in which two files differ.
fn first_difference(one: &Path, other: &Path, bytes: u64) -> io::Result<Option<u64>> {
    let mut one = BufReader::with_capacity(COMPARED_BYTES, File::open(one)?);
    let mut other = BufReader::with_capacity(COMPARED_BYTES, File::open(other)?);
    let mut at = 0;
    while at < bytes {
        let (left, right) = (one.fill_buf()?, other.fill_buf()?);
        let count = left.len().min(right.len()).min((bytes - at) as usize);
        let differs =
            (left[..count].iter().zip(&right[..count])).position(|(left, right)| left != right);
        if let Some(place) = differs {
            return Ok(Some(at + place as u64));
        }
        if count == 0 {
            return Ok(Some(at));
        }
        one.consume(count);
        other.consume(count);
        at += count as u64;
    }
    Ok(None)
}

/// What identifies the content of a backup file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Headers {
    pub(super) media_set: Guid,
    pub(super) family: u16,
    pub(super) sets: Vec<Guid>,
    /// Bytes up to the end of the last complete set: an append leaves them as they are.
    pub(super) bytes: u64,
}

impl Headers {
    fn read(path: &Path) -> io::Result<Self> {
        Self::of(&DeviceAddress::disk(path))
    }

    pub(super) fn of(device: &DeviceAddress) -> io::Result<Self> {
        let media = MediaSet::open_any(std::slice::from_ref(device)).map_err(io::Error::other)?;
        let sets = media.sets();
        Ok(Self {
            media_set: media.header().media_set_guid,
            family: media.header().family_number,
            sets: sets.iter().map(|set| set.configuration.set_guid).collect(),
            bytes: media.kept_bytes(),
        })
    }
}

/// Fills the staging file. Users who could read the replaced file can read the copy.
fn fill(source: &Path, mut to: &File, beside: &Path, target: &Path) -> io::Result<()> {
    let address = DeviceAddress::disk(source);
    // While it is open for reading, no backup can write to the source.
    let _unchanged = address.open_reader().map_err(io::Error::other)?;
    let mut from = File::open(source)?;
    let length = from.metadata()?.len();
    let copied = io::copy(&mut from, &mut to)?;
    if let Ok(replaced) = std::fs::symlink_metadata(target)
        && replaced.is_file()
    {
        output::keep(to, &replaced)?;
    }
    to.sync_all()?;
    if copied != length {
        return Err(io::Error::other(format!(
            "{copied} of {length} bytes arrived"
        )));
    }
    own::share(to)?;
    if Headers::read(source)? != Headers::read(beside)? {
        return Err(io::Error::other(
            "the content of the copy differs from the backup",
        ));
    }
    Ok(())
}
