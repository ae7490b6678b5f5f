//! Stores of the S3 kind: how they are reached with which key.

use std::sync::Arc;

use object_store::aws::AmazonS3Builder;
use object_store::{ObjectStore, Result, RetryConfig};

use super::access::{Access, Key};
use super::service::Connector;
use super::settings::ObjectSettings;
use super::store::Reached;
use super::url::ObjectUrl;

/// What the role of a machine, container or pod is found by, under the names of Amazon's own programs.
const OF_ROLES: [&str; 9] = [
    "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_ENDPOINT_URL_STS",
    "AWS_IMDSV1_FALLBACK",
    "AWS_METADATA_ENDPOINT",
    "AWS_ROLE_ARN",
    "AWS_ROLE_SESSION_NAME",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
];

pub(super) fn region<'r>(
    url: &'r ObjectUrl,
    access: &'r Access,
    settings: &'r ObjectSettings,
) -> &'r str {
    let said = settings.region.as_deref();
    let region = said.or(url.region()).or(access.region.as_deref());
    region.unwrap_or("us-east-1")
}

pub(super) fn store(
    reached: &Reached<'_>,
    connector: Connector,
    retry: RetryConfig,
) -> Result<Arc<dyn ObjectStore>> {
    let Reached {
        url,
        access,
        settings,
        ..
    } = *reached;
    let mut builder = AmazonS3Builder::new()
        .with_endpoint(&reached.endpoint)
        .with_virtual_hosted_style_request(url.in_host)
        .with_bucket_name(&url.bucket)
        .with_region(region(url, access, settings))
        .with_disable_bulk_delete(true)
        .with_client_options(reached.options.clone())
        .with_http_connector(connector)
        .with_retry(retry);
    if let Some(checksum) = settings.checksum_sent() {
        builder = builder.with_checksum_algorithm(checksum);
    }
    let builder = match &access.key {
        Key::S3 { id, secret, token } => {
            let builder = builder
                .with_access_key_id(id)
                .with_secret_access_key(secret);
            match token {
                Some(token) => builder.with_token(token),
                None => builder,
            }
        }
        _ => OF_ROLES.iter().fold(builder, |builder, name| {
            let known = name.to_ascii_lowercase().parse();
            match (std::env::var(name), known) {
                (Ok(value), Ok(known)) => builder.with_config(known, value),
                _ => builder,
            }
        }),
    };
    let store = builder.build()?;
    reached.signer.set_s3(store.credentials());
    Ok(Arc::new(store))
}
