//! Whether a bucket is the one that the history knows: whether it has any of the objects that were put there.
//!
//! A store that was set up again, or another one that has got its name, says of every object that there is none, as an
//! empty mount point does of every file.

use std::collections::{BTreeSet, HashMap};

use windlass_catalog::{PastBackup, PastMedium};
use windlass_device::{DeviceAddress, ObjectUrl};

use crate::operation::Reach;

/// Most objects that are asked for, each with a request.
const LOOKED_AT_MAX: usize = 32;

/// The buckets of the history.
pub(super) struct Buckets<'a> {
    /// The objects of each, the newest first: these are the likeliest to exist.
    known: HashMap<String, Vec<&'a PastMedium>>,
    /// Why what is missing in a bucket is not known to be gone.
    unseen: HashMap<String, Option<String>>,
}

impl<'a> Buckets<'a> {
    pub(super) fn of(past: &'a [PastBackup]) -> Self {
        let mut known: HashMap<String, Vec<&PastMedium>> = HashMap::new();
        for medium in past.iter().rev().flat_map(|backup| &backup.media) {
            if let Ok(url) = ObjectUrl::parse_any(&medium.device) {
                known.entry(url.bucket_url()).or_default().push(medium);
            }
        }
        Self {
            known,
            unseen: HashMap::new(),
        }
    }

    /// Why an object that its store does not have may still exist; `None` if it is gone.
    pub(super) fn unseen(&mut self, device: &DeviceAddress, reach: &Reach) -> Option<String> {
        let bucket = device.url()?.bucket_url();
        if let Some(why) = self.unseen.get(&bucket) {
            return why.clone();
        }
        let why = self.look(&bucket, reach);
        self.unseen.insert(bucket, why.clone());
        why
    }

    fn look(&self, bucket: &str, reach: &Reach) -> Option<String> {
        let mut asked = BTreeSet::new();
        let own = self.known.get(bucket).into_iter().flatten();
        let own = own.filter(|medium| asked.insert(medium.device.as_str()));
        for medium in own.take(LOOKED_AT_MAX) {
            match reach.device(&medium.device).has_content() {
                Ok(true) => return None,
                Ok(false) => {}
                Err(error) => return Some(error.to_string()),
            }
        }
        Some(format!(
            "'{bucket}' has none of the newest objects that the history knows there, as if it were another bucket"
        ))
    }
}
