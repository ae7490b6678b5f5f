//! Stores of Azure: how they are reached with which key.

use std::sync::Arc;

use object_store::azure::{MicrosoftAzureBuilder, split_sas};
use object_store::{ObjectStore, Result, RetryConfig};

use super::access::Key;
use super::service::Connector;
use super::store::Reached;

/// What the identity of a machine, container or pod is found by, under the names of Azure's own programs.
const OF_IDENTITIES: [&str; 5] = [
    "AZURE_AUTHORITY_HOST",
    "AZURE_CLIENT_ID",
    "AZURE_FEDERATED_TOKEN_FILE",
    "AZURE_TENANT_ID",
    "IDENTITY_ENDPOINT",
];

pub(super) fn store(
    reached: &Reached<'_>,
    connector: Connector,
    retry: RetryConfig,
) -> Result<Arc<dyn ObjectStore>> {
    let builder = MicrosoftAzureBuilder::new()
        .with_endpoint(reached.endpoint.clone())
        .with_account(reached.url.account().unwrap_or_default())
        .with_container_name(&reached.url.bucket)
        .with_client_options(reached.options.clone())
        .with_http_connector(connector)
        .with_retry(retry);
    let builder = match &reached.access.key {
        Key::AzureAccount { key, .. } => builder
            .with_access_key(key)
            .with_credential_type("access_key"),
        Key::AzureSignature { signature, .. } => {
            builder.with_sas_authorization(split_sas(signature)?)
        }
        Key::AzureClient { tenant, id, secret } => builder
            .with_client_secret_authorization(id, secret, tenant)
            .with_credential_type("client_secret"),
        _ => OF_IDENTITIES
            .iter()
            .fold(builder, |builder, name| match std::env::var(name) {
                Ok(value) => match *name {
                    "AZURE_AUTHORITY_HOST" => builder.with_authority_host(value),
                    "AZURE_CLIENT_ID" => builder.with_client_id(value),
                    "AZURE_FEDERATED_TOKEN_FILE" => builder.with_federated_token_file(value),
                    "AZURE_TENANT_ID" => builder.with_tenant_id(value),
                    _ => builder.with_msi_endpoint(value),
                },
                Err(_) => builder,
            }),
    };
    let store = builder.build()?;
    reached.signer.set_azure(store.credentials());
    Ok(Arc::new(store))
}
