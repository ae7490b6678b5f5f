//! Stores of Google: how they are reached with which key.

use std::sync::Arc;

use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::{ObjectStore, Result, RetryConfig};

use super::access::Key;
use super::service::Connector;
use super::store::Reached;

pub(super) fn store(
    reached: &Reached<'_>,
    connector: Connector,
    retry: RetryConfig,
) -> Result<Arc<dyn ObjectStore>> {
    let builder = GoogleCloudStorageBuilder::new()
        .with_base_url(&reached.endpoint)
        .with_bucket_name(&reached.url.bucket)
        .with_client_options(reached.options.clone())
        .with_http_connector(connector)
        .with_retry(retry);
    let builder = match &reached.access.key {
        Key::GoogleAccount(key) => builder.with_service_account_key(key),
        _ => match std::env::var("GOOGLE_APPLICATION_CREDENTIALS") {
            Ok(file) if !file.is_empty() => builder.with_application_credentials(file),
            // The file of Google's own programs, or the machine's service account.
            _ => builder,
        },
    };
    let store = builder.build()?;
    reached.signer.set_google(store.credentials());
    Ok(Arc::new(store))
}
