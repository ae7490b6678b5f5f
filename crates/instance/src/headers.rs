//! What the headers of media say, each read once.
//!
//! A plan for a restore looks at all headers in a folder, and log shipping does so every few seconds. What was read is
//! remembered until the file or object is another one, or has changed.
//!
//! Invariant: what is remembered was read after the state of the file was taken with which it is compared, so a change
//! meanwhile is found the next time.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use windlass_base::Guid;
use windlass_device::DeviceAddress;
use windlass_io::FileState;
use windlass_media::MediaError;
use windlass_pipeline::{Error, MediaSet, SetEntry};

/// Objects that are read at a time.
const READERS_MAX: usize = 16;

/// What the headers of one device say.
#[derive(Debug)]
pub(crate) struct Headers {
    pub(crate) media_set_guid: Guid,
    pub(crate) family: u16,
    pub(crate) family_count: u16,
    /// The length of the device.
    pub(crate) bytes: u64,
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
            bytes: media.device_bytes(),
            sets: media.sets(),
            trouble: media.trouble().map(Trouble::of),
            trouble_behind: media.trouble_behind().map(Trouble::of),
        })
    }
}

/// The state with which it is compared later.
#[derive(Debug, PartialEq, Eq)]
enum State {
    File(FileState),
    /// Of an object, as its listing said.
    Object(String),
}

impl State {
    /// That of a file or of an object of a listing; what would have to be asked for has none.
    fn of(device: &DeviceAddress) -> Option<Self> {
        let Some(path) = device.file() else {
            return device.listed_state().map(Self::Object);
        };
        let found = std::fs::metadata(path).ok()?;
        found.is_file().then(|| Self::File(FileState::of(&found)))
    }
}

/// What is the same for two addresses of the same file or object.
fn place(device: &DeviceAddress) -> String {
    match (device.file(), device.url()) {
        (Some(path), _) => path.display().to_string(),
        (None, Some(url)) => url.to_string(),
        (None, None) => device.name.clone(),
    }
}

/// The headers of files that were read before.
#[derive(Debug, Default)]
pub(crate) struct HeaderCache {
    /// By their places.
    known: HashMap<String, Known>,
    round: u64,
    reads: u64,
}

#[derive(Debug)]
struct Known {
    state: State,
    headers: Arc<Headers>,
    /// The last round in which it was asked for.
    round: u64,
}

impl HeaderCache {
    /// The headers of a device, from memory if it has not changed since.
    ///
    /// # Errors
    /// As [`Headers::read`]; that is not remembered.
    pub(crate) fn read(&mut self, device: &DeviceAddress) -> Result<Arc<Headers>, Error> {
        let state = State::of(device);
        if let Some(state) = &state
            && let Some(known) = self.known.get_mut(&place(device))
            && known.state == *state
        {
            known.round = self.round;
            return Ok(Arc::clone(&known.headers));
        }
        self.reads += 1;
        let headers = Headers::read(device)?;
        Ok(self.keep(device, state, headers))
    }

    /// The headers of many devices, in their order. Objects are read several at a time: each takes the time of some
    /// requests.
    pub(crate) fn read_all(
        &mut self,
        devices: &[DeviceAddress],
    ) -> Vec<Result<Arc<Headers>, Error>> {
        let is_remote =
            |index: &usize| devices[*index].is_object() && !self.knows(&devices[*index]);
        let remote: Vec<usize> = (0..devices.len()).filter(is_remote).collect();
        let next = AtomicUsize::new(0);
        let read = || {
            let mut read = Vec::new();
            while let Some(index) = remote.get(next.fetch_add(1, Ordering::Relaxed)) {
                let device = &devices[*index];
                read.push((*index, State::of(device), Headers::read(device)));
            }
            read
        };
        let mut found: Vec<Option<Result<Arc<Headers>, Error>>> = std::iter::repeat_with(|| None)
            .take(devices.len())
            .collect();
        std::thread::scope(|scope| {
            let count = remote.len().min(READERS_MAX);
            let start = |_| std::thread::Builder::new().spawn_scoped(scope, read).ok();
            let readers: Vec<_> = (0..count).map_while(start).collect();
            // What one that panicked was to read is read again below.
            let read = readers
                .into_iter()
                .flat_map(|one| one.join().unwrap_or_default());
            for (index, state, headers) in read {
                self.reads += 1;
                found[index] =
                    Some(headers.map(|headers| self.keep(&devices[index], state, headers)));
            }
        });
        let each = devices.iter().zip(found);
        each.map(|(device, found)| found.unwrap_or_else(|| self.read(device)))
            .collect()
    }

    fn knows(&self, device: &DeviceAddress) -> bool {
        let known = self.known.get(&place(device));
        known.is_some_and(|known| State::of(device).as_ref() == Some(&known.state))
    }

    /// Remembers what was read of a device that has a state.
    fn keep(
        &mut self,
        device: &DeviceAddress,
        state: Option<State>,
        headers: Headers,
    ) -> Arc<Headers> {
        let headers = Arc::new(headers);
        if let Some(state) = state {
            let known = Known {
                state,
                headers: Arc::clone(&headers),
                round: self.round,
            };
            self.known.insert(place(device), known);
        }
        headers
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
                keys: &windlass_crypt::KeyRing::default(),
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
