//! Objects of S3 and compatible stores as devices.
//!
//! One object holds one media family. It is written by multipart upload (or by one request, if it is small) and
//! is visible only when the upload is completed, which is the device's commit; so it cannot be appended to.
//! Everything asynchronous is in here: the rest of the product waits for it on its own threads.

mod access;
mod failure;
mod read;
mod settings;
mod store;
mod url;
mod webhook;
mod write;

use std::hash::{Hash, Hasher};
use std::io;
use std::sync::{Arc, OnceLock};

use object_store::ObjectStore as _;

pub use self::access::{Access, KeyError};
pub(crate) use self::read::ObjectReader;
pub use self::read::PIECE_BYTES;
pub use self::settings::{ObjectSettings, PartChecksum};
use self::store::Stores;
pub use self::url::{ObjectUrl, UrlError};
pub use self::webhook::post_json;
pub(crate) use self::write::ObjectWriter;
pub use self::write::PARTS_MAX;

/// An object, and the right to it.
#[derive(Debug, Clone)]
pub(crate) struct ObjectAddress {
    pub(crate) url: ObjectUrl,
    access: Option<Access>,
    settings: ObjectSettings,
    /// Made when first used, so that all of a run's requests share their connections.
    stores: Arc<OnceLock<Stores>>,
}

impl ObjectAddress {
    pub(crate) fn new(url: ObjectUrl, access: Option<Access>, settings: ObjectSettings) -> Self {
        Self {
            url,
            access,
            settings,
            stores: Arc::default(),
        }
    }

    fn stores(&self) -> io::Result<&Stores> {
        if let Some(stores) = self.stores.get() {
            return Ok(stores);
        }
        let access = self.access.as_ref().ok_or_else(|| {
            let reason = "there is no key for this URL: make one with CREATE CREDENTIAL or windlass credential, or \
                          set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment";
            io::Error::new(io::ErrorKind::PermissionDenied, reason)
        })?;
        let made = Stores::new(&self.url, access, &self.settings)?;
        Ok(self.stores.get_or_init(|| made))
    }

    /// What is at the address now; `None` if nothing.
    pub(crate) fn found(&self) -> io::Result<Option<Found>> {
        let stores = self.stores()?;
        found(stores, &stores.hasty)
    }
}

impl PartialEq for ObjectAddress {
    fn eq(&self, other: &Self) -> bool {
        self.url == other.url
    }
}

impl Eq for ObjectAddress {}

impl Hash for ObjectAddress {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.url.hash(state);
    }
}

/// An object that exists.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) bytes: u64,
    /// Differs if another object takes its place.
    tag: Option<String>,
    /// Of the run that wrote it, if Windlass did.
    write_id: Option<String>,
}

/// Looks for the object with the given patience.
fn found(stores: &Stores, store: &object_store::aws::AmazonS3) -> io::Result<Option<Found>> {
    let options = object_store::GetOptions::new().with_head(true);
    let asked = store::runtime()?.block_on(store.get_opts(&stores.key, options));
    match asked {
        Ok(answer) => Ok(Some(Found {
            bytes: answer.meta.size,
            tag: answer.meta.e_tag.clone(),
            write_id: answer
                .attributes
                .get(&write::write_id_attribute())
                .map(|id| id.to_string()),
        })),
        Err(object_store::Error::NotFound { .. }) => Ok(None),
        Err(error) => Err(failure::reported(&error)),
    }
}
