//! What a store has below a URL, from its listings.
//!
//! A listing is read page by page, so that memory does not grow with it. What it says of an object is enough to open
//! it: that it is still the same one is a condition of every read.

use std::io;
use std::time::Duration;

use futures_util::{Stream, StreamExt as _};
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStore as _};

use super::circle::Circle;
use super::giving_up::waited;
use super::{Found, ObjectAddress, claim, failure, quoted};

/// An object in a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedObject {
    pub key: String,
    pub bytes: u64,
}

impl ObjectAddress {
    /// The folder of this name, in whichever way it is written.
    pub(crate) fn as_folder(&self) -> Self {
        let key = match self.url.is_folder() {
            true => self.url.key.clone(),
            false => format!("{}/", self.url.key),
        };
        self.at(self.url.with_key(&key))
    }

    /// Calls `each` with every object below a folder, at any depth, in the order of keys, until it returns `false`. The
    /// empty object by which a console makes the folder is none below it.
    pub(crate) fn walk(&self, each: &mut dyn FnMut(ObjectMeta) -> bool) -> io::Result<()> {
        let stores = self.stores()?;
        let prefix = self.key()?;
        let mut listing = stores.hasty.list(Some(&prefix));
        let mut circle = Circle::default();
        waited(async {
            while let Some(found) = next(&mut listing).await? {
                circle.refuse(found.location.as_ref())?;
                let is_folder = found.size == 0 && found.location == prefix;
                if is_folder || found.location.as_ref().ends_with(claim::SUFFIX) {
                    continue;
                }
                if !each(found) {
                    break;
                }
            }
            Ok(())
        })?
    }

    /// Whether there is any object below a folder.
    pub(crate) fn has_any(&self) -> io::Result<bool> {
        let mut has = false;
        self.walk(&mut |_| {
            has = true;
            false
        })?;
        Ok(has)
    }

    /// An object of a listing of this folder.
    pub(crate) fn listed(&self, found: &ObjectMeta) -> Self {
        Self {
            listed: Some(Found {
                bytes: found.size,
                tag: found.e_tag.as_deref().map(quoted),
                version: None,
                write_id: None,
            }),
            ..self.at(self.url.with_key(found.location.as_ref()))
        }
    }

    /// The folders of a folder: not what is below them.
    pub(crate) fn folders(&self) -> io::Result<Vec<Self>> {
        let stores = self.stores()?;
        let prefix = self.key()?;
        let listing = stores.hasty.list_with_delimiter(Some(&prefix));
        let listing = waited(async {
            let listing = tokio::time::timeout(LISTS_NOTHING_MAX, listing).await;
            listing
                .map_err(|_| endless("listed folders without coming to an end"))?
                .map_err(|error| failure::reported(&error))
        })??;
        let folder = |path: &Path| self.at(self.url.with_key(&format!("{path}/")));
        Ok(listing.common_prefixes.iter().map(folder).collect())
    }
}

/// How long a list may go on without an object, or one of folders at all: longer than a page is asked for again.
const LISTS_NOTHING_MAX: Duration = Duration::from_secs(120);

/// The next object of a list. A store that names page after page with nothing on them does not hold up the program for ever.
async fn next(
    listing: &mut (impl Stream<Item = object_store::Result<ObjectMeta>> + Unpin),
) -> io::Result<Option<ObjectMeta>> {
    let found = tokio::time::timeout(LISTS_NOTHING_MAX, listing.next()).await;
    let found = found.map_err(|_| endless("said that its list goes on, and listed nothing"))?;
    let found = found.transpose();
    found.map_err(|error| failure::reported(&error))
}

fn endless(what: &str) -> io::Error {
    let seconds = LISTS_NOTHING_MAX.as_secs();
    io::Error::other(format!("the store has {what}, for {seconds} seconds"))
}
