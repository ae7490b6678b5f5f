//! What the headers of media say, each read once.
//!
//! A plan for a restore looks at all headers in a folder, and log shipping does so every few seconds. What was read is
//! remembered until the file is another one, or has changed.
//!
//! Invariant: what is remembered was read after the state of the file was taken with which it is compared, so a change
//! meanwhile is found the next time.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use windlass_base::Guid;
use windlass_device::DeviceAddress;
use windlass_io::FileState;
use windlass_media::MediaError;
use windlass_pipeline::{Error, MediaSet, SetEntry};

/// What the headers of one device say.
#[derive(Debug)]
pub(crate) struct Headers {
    pub(crate) media_set_guid: Guid,
    pub(crate) family: u16,
    pub(crate) family_count: u16,
    pub(crate) sets: Vec<SetEntry>,
    /// The first problem outside of the content of the sets.
    pub(crate) trouble: Option<Trouble>,
    /// The same, where a set may follow the last one that was found.
    pub(crate) trouble_behind: Option<Trouble>,
}

#[derive(Debug, Clone)]
pub(crate) struct Trouble {
    pub(crate) device: String,
    pub(crate) text: String,
    /// The rest of an interrupted append.
    pub(crate) is_truncation: bool,
}

impl Trouble {
    pub(crate) fn of((device, error): (&str, &MediaError)) -> Self {
        Self {
            device: device.to_owned(),
            text: error.to_string(),
            is_truncation: error.is_truncation(),
        }
    }
}

impl Headers {
    /// Reads them.
    ///
    /// # Errors
    /// The device cannot be read, or is no medium.
    pub(crate) fn read(device: &DeviceAddress) -> Result<Self, Error> {
        let media = MediaSet::open_any(std::slice::from_ref(device))?;
        let header = media.header();
        Ok(Self {
            media_set_guid: header.media_set_guid,
            family: header.family_number,
            family_count: header.family_count,
            sets: media.sets(),
            trouble: media.trouble().map(Trouble::of),
            trouble_behind: media.trouble_behind().map(Trouble::of),
        })
    }
}

/// The state of what is a file; a stream or a folder has none.
fn state_of(path: &Path) -> Option<FileState> {
    let found = std::fs::metadata(path).ok()?;
    found.is_file().then(|| FileState::of(&found))
}

/// The headers of files that were read before.
#[derive(Debug, Default)]
pub(crate) struct HeaderCache {
    known: HashMap<PathBuf, Known>,
    round: u64,
    reads: u64,
}

#[derive(Debug)]
struct Known {
    state: FileState,
    headers: Arc<Headers>,
    /// The last round in which it was asked for.
    round: u64,
}

impl HeaderCache {
    /// The headers of a device, from memory if it is a file that has not changed since.
    ///
    /// # Errors
    /// As [`Headers::read`]; that is not remembered.
    pub(crate) fn read(&mut self, device: &DeviceAddress) -> Result<Arc<Headers>, Error> {
        let path = device.file().map(PathBuf::from);
        let named = path.and_then(|path| Some((state_of(&path)?, path)));
        if let Some((state, path)) = &named
            && let Some(known) = self.known.get_mut(path)
            && known.state == *state
        {
            known.round = self.round;
            return Ok(Arc::clone(&known.headers));
        }
        self.reads += 1;
        let headers = Arc::new(Headers::read(device)?);
        if let Some((state, path)) = named {
            let known = Known {
                state,
                headers: Arc::clone(&headers),
                round: self.round,
            };
            self.known.insert(path, known);
        }
        Ok(headers)
    }

    /// Forgets what was not asked for since the last call: files that are gone, or that nobody wants any more.
    pub(crate) fn end_round(&mut self) {
        let round = self.round;
        self.known.retain(|_, known| known.round == round);
        self.round += 1;
    }

    /// How often a device was read.
    #[cfg(test)]
    pub(crate) fn reads(&self) -> u64 {
        self.reads
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operation::{Aim, NewestRequest};
    use crate::presence::tests::Place;
    use crate::{Instance, Session};

    #[test]
    fn each_header_is_read_once_until_its_file_changes() {
        let place = Place::new();
        std::fs::create_dir(place.path("media")).unwrap();
        let add = |names: &[&str]| drop(place.back_up(names, true));
        add(&["media/1"]);
        add(&["media/2"]);
        let mut session = Session::new(Instance::open(None).unwrap());
        // The number of sets that are found, and how many headers have been read for that.
        let mut found = || {
            let request = NewestRequest {
                of: None,
                name: "copy",
                target: None,
                leaves_open: false,
                aim: Aim::Newest,
            };
            let folder = vec![DeviceAddress::disk(place.path("media"))];
            let plan = session.newest_on(folder, &request).unwrap();
            assert_eq!(plan.steps.len(), 1);
            (session.headers.known.len(), session.headers.reads())
        };
        assert_eq!(found(), (2, 2));
        assert_eq!(found(), (2, 2));
        add(&["media/3"]);
        assert_eq!(found(), (3, 3));
        // A file that has another's name is another.
        std::fs::remove_file(place.path("media/1")).unwrap();
        add(&["media/1"]);
        assert_eq!(found(), (3, 4));
        std::fs::remove_file(place.path("media/1")).unwrap();
        assert_eq!(found(), (2, 4));
    }
}
