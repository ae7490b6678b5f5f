//! What a store has below a URL, from its listings.
//!
//! A listing is read page by page, so that memory does not grow with it. What it says of an object is enough to open
//! it: that it is still the same one is a condition of every read.

use std::io;

use futures_util::StreamExt as _;
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStore as _};

use super::giving_up::waited;
use super::{Found, ObjectAddress, claim, failure};

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

    /// Calls `each` with every object below a folder, at any depth, in the order of keys, until it returns `false`.
    pub(crate) fn walk(&self, each: &mut dyn FnMut(ObjectMeta) -> bool) -> io::Result<()> {
        let stores = self.stores()?;
        let prefix = self.key()?;
        let mut listing = stores.hasty.list(Some(&prefix));
        waited(async {
            while let Some(found) = listing.next().await {
                let found = found.map_err(|error| failure::reported(&error))?;
                if found.location.as_ref().ends_with(claim::SUFFIX) {
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
                write_id: None,
            }),
            ..self.at(self.url.with_key(found.location.as_ref()))
        }
    }

    /// The folders of a folder: not what is below them.
    pub(crate) fn folders(&self) -> io::Result<Vec<Self>> {
        let stores = self.stores()?;
        let prefix = self.key()?;
        let listing = waited(stores.hasty.list_with_delimiter(Some(&prefix)))?;
        let listing = listing.map_err(|error| failure::reported(&error))?;
        let folder = |path: &Path| self.at(self.url.with_key(&format!("{path}/")));
        Ok(listing.common_prefixes.iter().map(folder).collect())
    }
}

/// A tag as conditions have it: not every listing has the quotation marks.
fn quoted(tag: &str) -> String {
    match tag.contains('"') {
        true => tag.to_owned(),
        false => format!("\"{tag}\""),
    }
}
