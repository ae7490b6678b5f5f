//! Tries what a backup needs of a store, with a small object that is deleted again.

use std::io;

use object_store::path::Path;
use object_store::{Error, ObjectStore, PutMode, PutMultipartOptions, PutOptions, PutPayload};

use super::condition::{Condition, Decided};
use super::store::runtime;
use super::url::StoreKind;
use super::{ObjectAddress, failure};

/// What a store did. What it refused altogether is an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Probed {
    /// Whether it refused to put an object in the place of another, as it was told to: a request, and an upload in parts.
    pub keeps_object: bool,
    /// Whether the key may delete.
    pub deletes: bool,
    /// Whether it refused to delete an object that is not the one meant, as it was told to.
    pub keeps_what_is_another: bool,
}

impl ObjectAddress {
    /// Tries it below a folder.
    ///
    /// # Errors
    /// What the store says, if it does not write or list.
    pub(crate) fn probe(&self) -> io::Result<Probed> {
        let key = format!(
            "{}.windlass-probe-{}",
            self.as_folder().url.key,
            windlass_base::Guid::random()
        );
        let object = self.at(self.url.with_key(key.trim_start_matches('/')));
        let (path, stores) = (object.key()?, object.stores()?);
        let reported = |error: Error| failure::reported(&error);
        runtime()?
            .block_on(put(&*stores.hasty, &path))
            .map_err(reported)?;
        let kind = self.url.kind();
        let condition = Decided::default();
        condition.get_or_init(|| Condition::absent(kind));
        let creating = object.conditional(&condition)?;
        let probed = runtime()?.block_on(overwritten(&*stores.hasty, &*creating, &path, kind));
        let keeps_what_is_another = object.keeps_what_is_another();
        let deletes = object.delete().is_ok();
        let (of_request, of_parts) = probed.map_err(reported)?;
        self.as_folder().has_any()?;
        Ok(Probed {
            keeps_object: of_request && of_parts,
            deletes,
            keeps_what_is_another: keeps_what_is_another?,
        })
    }
}

async fn put(store: &dyn ObjectStore, path: &Path) -> object_store::Result<()> {
    let options = PutOptions {
        mode: PutMode::Create,
        ..PutOptions::default()
    };
    let payload = PutPayload::from_static(b"a trial of windlass doctor");
    store.put_opts(path, payload, options).await.map(drop)
}

/// Whether the store keeps the object from being overwritten by a request, and by an upload.
async fn overwritten(
    store: &dyn ObjectStore,
    creating: &dyn ObjectStore,
    path: &Path,
    kind: StoreKind,
) -> object_store::Result<(bool, bool)> {
    let is_kept = |answer: object_store::Result<()>| match answer {
        Ok(()) => Ok(false),
        Err(Error::AlreadyExists { .. } | Error::Precondition { .. }) => Ok(true),
        Err(error) => Err(error),
    };
    let by_request = is_kept(put(store, path).await)?;
    if kind == StoreKind::Google {
        // Claims take the place of the condition, and they are requests.
        return Ok((by_request, by_request));
    }
    let mut upload = creating
        .put_multipart_opts(path, PutMultipartOptions::default())
        .await?;
    upload.put_part(PutPayload::from_static(b"another")).await?;
    let completed = is_kept(upload.complete().await.map(drop));
    if !matches!(completed, Ok(false)) {
        let _aborted = upload.abort().await;
    }
    Ok((by_request, completed?))
}
