//! A claim to a name of Google's, whose uploads in parts cannot be completed on a condition.
//!
//! It is a small object beside the name, made on the condition that there is none, and deleted when the upload has
//! ended. So of two backups to one name the second is refused. One that was killed leaves its claim; after as long as the
//! store keeps unfinished uploads, another run takes it over.

use std::io;
use std::sync::Arc;

use jiff::Timestamp;
use object_store::path::Path;
use object_store::{
    Attributes, GetOptions, ObjectStore, ObjectStoreExt as _, PutMode, PutOptions, PutPayload,
    UpdateVersion,
};

use super::store::{Stores, runtime};
use super::url::StoreKind;
use super::write::write_id_attribute;
use super::{ObjectAddress, failure};

/// Ends the names of claims, which no listing shows.
pub(super) const SUFFIX: &str = ".windlass-claim";

/// Seconds after which a claim is that of a killed run.
const AGE_MAX: i64 = 7 * 86_400;

/// A claim that this run has.
#[derive(Debug)]
pub(super) struct Claim {
    key: Path,
    store: Arc<dyn ObjectStore>,
}

impl Claim {
    /// Takes the claim to an address for the run with the id.
    ///
    /// # Errors
    /// If another run has it, or the store cannot be asked.
    pub(super) fn take(address: &ObjectAddress, write_id: &str) -> io::Result<Self> {
        let key = format!("{}{SUFFIX}", address.url.key);
        let key = Path::parse(key).map_err(io::Error::other)?;
        let stores: &Stores = address.stores()?;
        let store = Arc::clone(&stores.patient);
        runtime()?.block_on(async {
            let Err(error) = put(&*store, &key, write_id, PutMode::Create).await else {
                return Ok(());
            };
            if !matches!(error, object_store::Error::AlreadyExists { .. }) {
                return Err(failure::reported(&error));
            }
            let earlier = Earlier::of(&*store, &key).await?;
            if earlier.write_id.as_deref() == Some(write_id) {
                return Ok(());
            }
            let age = Timestamp::now().as_second() - earlier.made;
            if age <= AGE_MAX {
                return Err(claimed(&key, earlier.made));
            }
            let taken = put(&*store, &key, write_id, PutMode::Update(earlier.version)).await;
            taken.map_err(|_| claimed(&key, Timestamp::now().as_second()))
        })?;
        Ok(Self { key, store })
    }

    /// Gives the claim back. If the store does not do that, it becomes old.
    pub(super) fn release(self) {
        if let Ok(runtime) = runtime() {
            let _deleted = runtime.block_on(self.store.delete(&self.key));
        }
    }
}

/// The claim of another run.
struct Earlier {
    write_id: Option<String>,
    /// Seconds since 1970, UTC.
    made: i64,
    version: UpdateVersion,
}

impl Earlier {
    async fn of(store: &dyn ObjectStore, key: &Path) -> io::Result<Self> {
        let options = GetOptions::new().with_head(true);
        let found = store.get_opts(key, options).await;
        let found = found.map_err(|error| failure::reported(&error))?;
        let attribute = write_id_attribute(StoreKind::Google);
        Ok(Self {
            write_id: found.attributes.get(&attribute).map(|id| id.to_string()),
            made: found.meta.last_modified.timestamp(),
            version: UpdateVersion {
                e_tag: found.meta.e_tag,
                version: found.meta.version,
            },
        })
    }
}

async fn put(
    store: &dyn ObjectStore,
    key: &Path,
    write_id: &str,
    mode: PutMode,
) -> object_store::Result<()> {
    let own = (write_id_attribute(StoreKind::Google), write_id.to_owned());
    let options = PutOptions {
        mode,
        attributes: Attributes::from_iter([own]),
        ..PutOptions::default()
    };
    let payload = PutPayload::from(write_id.to_owned());
    store.put_opts(key, payload, options).await.map(drop)
}

fn claimed(key: &Path, made: i64) -> io::Error {
    let since = Timestamp::from_second(made).unwrap_or_default();
    let reason = format!(
        "another backup to this name began at {since}; if it was killed, delete the object '{key}', or name another one"
    );
    io::Error::new(io::ErrorKind::AlreadyExists, reason)
}
