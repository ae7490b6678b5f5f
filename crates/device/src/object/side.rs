//! A small object beside a medium, as its keys are: read and written whole, never half.
//!
//! Invariant: what takes the place of another one was made from it. The store refuses it otherwise, whoever writes at
//! the same time. What locks, tags and classes the medium has are its own.

use std::{fmt, io};

use object_store::{
    ObjectStore as _, ObjectStoreExt as _, PutMode, PutOptions, PutPayload, UpdateVersion,
};

use super::store::runtime;
use super::{ObjectAddress, failure};

/// A small object in one of its states.
#[derive(Debug, Clone)]
pub struct SideObject {
    pub bytes: Vec<u8>,
    version: UpdateVersion,
}

/// Where a small object is or will be.
#[derive(Debug, Clone)]
pub struct SideAddress(ObjectAddress);

impl fmt::Display for SideAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.url.fmt(f)
    }
}

impl ObjectAddress {
    /// The object whose key is that of this one with `end` appended.
    pub(crate) fn beside(&self, end: &str) -> SideAddress {
        let key = format!("{}{end}", self.url.key);
        SideAddress(self.at(self.url.with_key(&key)))
    }
}

impl SideAddress {
    /// The whole object; `None` if there is none.
    ///
    /// # Errors
    /// What the store says; if it has more than `bytes_max`.
    pub fn read(&self, bytes_max: u64) -> io::Result<Option<SideObject>> {
        let (store, key) = (&self.0.stores()?.hasty, self.0.key()?);
        let asked = runtime()?.block_on(async {
            let answer = store.get(&key).await?;
            let version = UpdateVersion {
                e_tag: answer.meta.e_tag.clone(),
                version: answer.meta.version.clone(),
            };
            if answer.meta.size > bytes_max {
                return Ok((answer.meta.size, Vec::new(), version));
            }
            Ok((answer.meta.size, answer.bytes().await?.to_vec(), version))
        });
        match asked {
            Ok((bytes, ..)) if bytes > bytes_max => {
                let reason =
                    format!("it has {bytes} bytes, more than the {bytes_max} that it may have");
                Err(io::Error::new(io::ErrorKind::InvalidData, reason))
            }
            Ok((_, bytes, version)) => Ok(Some(SideObject { bytes, version })),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(failure::reported(&error)),
        }
    }

    /// Writes the whole object in place of `earlier`, or where there is none.
    ///
    /// # Errors
    /// [`io::ErrorKind::AlreadyExists`] if the store has another one now; what it says.
    pub fn write(&self, bytes: &[u8], earlier: Option<&SideObject>) -> io::Result<()> {
        let (store, key) = (&self.0.stores()?.patient, self.0.key()?);
        let options = PutOptions {
            mode: match earlier {
                Some(earlier) => PutMode::Update(earlier.version.clone()),
                None => PutMode::Create,
            },
            ..PutOptions::default()
        };
        let payload = PutPayload::from(bytes.to_vec());
        let written = runtime()?.block_on(store.put_opts(&key, payload, options));
        let Err(error) = written else {
            return Ok(());
        };
        // The answer to a request that was done may be lost; asked again, the store refuses it.
        let now = self.read(bytes.len() as u64);
        match now {
            Ok(Some(now)) if now.bytes == bytes => Ok(()),
            _ => Err(failure::reported(&error)),
        }
    }

    /// Deletes the object, unless it is locked.
    ///
    /// # Errors
    /// What the store says.
    pub fn remove(&self) -> io::Result<()> {
        self.0.refuse_locked()?;
        self.0.delete().map(drop)
    }
}
