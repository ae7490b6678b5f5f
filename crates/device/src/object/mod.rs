//! Objects of stores as devices: S3 and compatible, Azure, Google.
//!
//! One object holds one media family. It is written by multipart upload (or by one request, if it is small) and
//! is visible only when the upload is completed, which is the device's commit; so it cannot be appended to.
//! Everything asynchronous is in here: the rest of the product waits for it on its own threads.

mod access;
mod again;
mod azure;
mod circle;
mod claim;
mod condition;
mod delete;
mod failure;
mod folder;
mod giving_up;
mod google;
mod hidden;
mod listing;
mod lock;
mod part;
mod probe;
mod profile;
mod read;
mod s3;
mod service;
mod settings;
mod side;
mod signed;
mod signer;
mod store;
mod tls;
mod uploads;
mod url;
mod webhook;
mod write;

use std::hash::{Hash, Hasher};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use bytes::Bytes;
use object_store::path::Path;
use object_store::{GetOptions, GetRange, GetResult, ObjectStore};

pub use self::access::{
    AZURE_SIGNATURE, Access, GOOGLE_ACCOUNT, KeyError, MANAGED_IDENTITY, S3_KEY,
};
use self::condition::Decided;
pub use self::delete::Removed;
pub use self::folder::ListedObject;
pub use self::giving_up::give_up_when;
pub use self::lock::Locked;
pub use self::probe::Probed;
use self::read::HEAD_BYTES;
pub(crate) use self::read::ObjectReader;
pub use self::read::{ENDS_BYTES, PIECE_BYTES};
pub use self::settings::{LockMode, ObjectLock, ObjectSettings, PartChecksum};
pub use self::side::{SideAddress, SideObject};
use self::store::Stores;
pub use self::uploads::UnfinishedUpload;
pub use self::url::{ObjectUrl, StoreKind, UrlError};
pub use self::webhook::post_json;
pub(crate) use self::write::ObjectWriter;
pub use self::write::PARTS_MAX;

/// An object or a folder of objects, and the right to it.
#[derive(Debug, Clone)]
pub(crate) struct ObjectAddress {
    pub(crate) url: ObjectUrl,
    access: Option<Access>,
    settings: ObjectSettings,
    /// Made when first used, so that all of a run's requests share their connections.
    stores: Arc<OnceLock<Stores>>,
    /// Whether it is asked for as patiently as everything of a run: see [`Stores`].
    is_patient: bool,
    /// What a listing said of it, or an earlier look.
    listed: Option<Found>,
    /// What the store answered when the first bytes were looked at, until it is opened.
    begun: Arc<Mutex<Option<io::Result<Option<Opened>>>>>,
}

/// An object, and its first bytes.
type Opened = (Found, Bytes);

impl ObjectAddress {
    pub(crate) fn new(url: ObjectUrl, access: Option<Access>, settings: ObjectSettings) -> Self {
        Self {
            url,
            access,
            settings,
            stores: Arc::default(),
            is_patient: false,
            listed: None,
            begun: Arc::default(),
        }
    }

    /// The same object, asked for until the store is not busy any more.
    pub(crate) fn patiently(self) -> Self {
        Self {
            is_patient: true,
            ..self
        }
    }

    /// The store as it is asked what is there.
    fn asking(&self) -> io::Result<&Arc<dyn ObjectStore>> {
        let stores = self.stores()?;
        Ok(match self.is_patient {
            true => &stores.patient,
            false => &stores.hasty,
        })
    }

    /// Another object or folder of the same store.
    fn at(&self, url: ObjectUrl) -> Self {
        Self {
            url,
            listed: None,
            begun: Arc::default(),
            ..self.clone()
        }
    }

    fn key(&self) -> io::Result<Path> {
        Path::parse(&self.url.key).map_err(io::Error::other)
    }

    fn access(&self) -> io::Result<&Access> {
        self.access.as_ref().ok_or_else(|| {
            let variables = match self.url.kind() {
                StoreKind::S3 => "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
                StoreKind::Azure => "AZURE_STORAGE_ACCOUNT and AZURE_STORAGE_KEY (or AZURE_STORAGE_SAS_TOKEN)",
                StoreKind::Google => "GOOGLE_APPLICATION_CREDENTIALS",
            };
            let reason = format!(
                "there is no key for this URL: make one with CREATE CREDENTIAL or windlass credential, or set {variables} \
                 in the environment"
            );
            io::Error::new(io::ErrorKind::PermissionDenied, reason)
        })
    }

    fn stores(&self) -> io::Result<&Stores> {
        if let Some(stores) = self.stores.get() {
            return Ok(stores);
        }
        let made = Stores::new(&self.url, self.access()?, &self.settings)?;
        Ok(self.stores.get_or_init(|| made))
    }

    /// The store, in which an object gets its name only on a condition that is decided by then.
    fn conditional(&self, condition: &Decided) -> io::Result<Arc<dyn ObjectStore>> {
        Stores::conditional(&self.url, self.access()?, &self.settings, condition)
    }

    /// What is at the address now; `None` if nothing.
    pub(crate) fn found(&self) -> io::Result<Option<Found>> {
        if self.url.is_folder() {
            let reason = "the URL names a folder; name an object in it";
            return Err(io::Error::new(io::ErrorKind::IsADirectory, reason));
        }
        if self.settings.write_only {
            // The condition of the completion finds it.
            return Ok(None);
        }
        found(&self.key()?, &**self.asking()?, self.url.kind())
    }

    /// The address of the object that is there now, and of no other: a writer replaces only that one. `None` if there is
    /// none.
    pub(crate) fn as_found(&self) -> io::Result<Option<Self>> {
        let found = self.found()?;
        Ok(found.map(|found| Self {
            listed: Some(found),
            begun: Arc::default(),
            ..self.clone()
        }))
    }

    /// Whether its key may write it and nothing else.
    pub(crate) fn is_write_only(&self) -> bool {
        self.settings.write_only
    }

    /// Parts on their way at a time, if that is said.
    pub(crate) fn concurrency(&self) -> Option<usize> {
        self.settings.concurrency
    }

    /// Its first bytes, at most `bytes`, as far as the store has them. What it answers is that of the next
    /// [`ObjectAddress::head`].
    pub(crate) fn begin(&self, bytes: usize) -> Vec<u8> {
        if self.url.is_folder() || self.settings.write_only {
            return Vec::new();
        }
        let head = match &self.listed {
            // A listing has no content.
            Some(_) => self.asked(HEAD_BYTES),
            None => self.head(HEAD_BYTES),
        };
        let begin = match &head {
            Ok(Some((_, head))) => head[..head.len().min(bytes)].to_owned(),
            Ok(None) | Err(_) => Vec::new(),
        };
        *self.begun() = Some(head);
        begin
    }

    fn begun(&self) -> MutexGuard<'_, Option<io::Result<Option<Opened>>>> {
        self.begun.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The object in the state in which it is, with its first bytes, or in which it was listed, without any; `None` if
    /// there is none.
    pub(crate) fn head(&self, bytes: u64) -> io::Result<Option<Opened>> {
        if let Some(head) = self.begun().take() {
            return head;
        }
        if let Some(listed) = &self.listed {
            return Ok(Some((listed.clone(), Bytes::new())));
        }
        self.asked(bytes)
    }

    fn asked(&self, bytes: u64) -> io::Result<Option<Opened>> {
        let without_head = || Ok(self.found()?.map(|found| (found, Bytes::new())));
        if self.url.is_folder() || self.settings.write_only {
            return without_head();
        }
        let (store, key) = (self.asking()?, self.key()?);
        let options = GetOptions::new().with_range(Some(GetRange::Bounded(0..bytes)));
        let asked: Result<_, object_store::Error> = giving_up::waited(async {
            let answer = store.get_opts(&key, options).await?;
            let found = Found::of(&answer, self.url.kind());
            Ok((found, answer.bytes().await?))
        })?;
        match asked {
            Ok(opened) => Ok(Some(opened)),
            // An empty object has no first byte.
            Err(error) if error.to_string().contains("status code: 416") => without_head(),
            Err(error) => match failure::says_missing(&error) {
                Some(true) => Ok(None),
                Some(false) => Err(failure::reported(&error)),
                // Where the bucket is missing, it cannot be listed either.
                None => self.as_folder().has_any().map(|_| None),
            },
        }
    }

    /// A text that differs if the object is replaced, as a listing said; `None` if it is from none.
    pub(crate) fn listed_state(&self) -> Option<String> {
        self.listed.as_ref().map(Found::state)
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
#[derive(Debug, Clone)]
pub(crate) struct Found {
    pub(crate) bytes: u64,
    /// Differs if another object takes its place.
    tag: Option<String>,
    /// Google's number of it, by which its conditions go.
    version: Option<String>,
    /// Of the run that wrote it, if Windlass did.
    write_id: Option<String>,
}

impl Found {
    fn of(answer: &GetResult, kind: StoreKind) -> Self {
        let write_id = answer.attributes.get(&write::write_id_attribute(kind));
        Self {
            bytes: answer.meta.size,
            tag: answer.meta.e_tag.clone(),
            version: answer.meta.version.clone(),
            write_id: write_id.map(|id| id.to_string()),
        }
    }

    /// Whether it is the same object, as far as the store tells.
    fn is_same(&self, other: &Self) -> bool {
        match (&self.tag, &other.tag) {
            (Some(tag), Some(other)) => quoted(tag) == quoted(other),
            _ => (self.bytes, &self.write_id) == (other.bytes, &other.write_id),
        }
    }

    /// A text of one line that differs if another object takes its place.
    pub(crate) fn state(&self) -> String {
        let tag = self.tag.as_deref().unwrap_or("-");
        format!("{}\t{}", self.bytes, tag.replace(char::is_control, "_"))
    }
}

/// A tag as conditions have it: not every listing has the quotation marks, and not every answer of one store.
fn quoted(tag: &str) -> String {
    match tag.contains('"') {
        true => tag.to_owned(),
        false => format!("\"{tag}\""),
    }
}

/// Looks for the object with the given patience.
fn found(key: &Path, store: &dyn ObjectStore, kind: StoreKind) -> io::Result<Option<Found>> {
    let options = object_store::GetOptions::new().with_head(true);
    let asked = giving_up::waited(store.get_opts(key, options))?;
    match asked {
        Ok(answer) => Ok(Some(Found::of(&answer, kind))),
        Err(object_store::Error::NotFound { .. }) => Ok(None),
        Err(error) => Err(failure::reported(&error)),
    }
}
