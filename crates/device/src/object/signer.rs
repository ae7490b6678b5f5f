//! Signs requests that are made here, were changed here, or have become old.

use std::fmt;
use std::sync::{Arc, OnceLock};

use http::header::{AUTHORIZATION, HeaderValue};
use object_store::aws::{AwsAuthorizer, AwsCredentialProvider};
use object_store::azure::{AzureAuthorizer, AzureCredential, AzureCredentialProvider};
use object_store::client::{HttpError, HttpErrorKind, HttpRequest};
use object_store::gcp::GcpCredentialProvider;

use super::url::ObjectUrl;

const CONTENT_DIGEST: &str = "x-amz-content-sha256";
const UNSIGNED: &str = "UNSIGNED-PAYLOAD";

/// The key of a store, as it is now: a temporary one is renewed.
enum Provider {
    S3(AwsCredentialProvider),
    Azure(AzureCredentialProvider),
    Google(GcpCredentialProvider),
}

/// Signs with the key of a store.
pub(super) struct Signer {
    region: String,
    /// Azure's.
    account: String,
    /// What requests to the store begin with: others are those for keys.
    endpoint: String,
    /// Set when the store is made, which needs the connection first.
    provider: OnceLock<Provider>,
}

/// Without the key.
impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signer")
            .field("region", &self.region)
            .finish_non_exhaustive()
    }
}

impl Signer {
    pub(super) fn new(url: &ObjectUrl, region: &str, endpoint: &str) -> Arc<Self> {
        Arc::new(Self {
            region: region.to_owned(),
            account: url.account().unwrap_or_default().to_owned(),
            endpoint: endpoint.to_owned(),
            provider: OnceLock::new(),
        })
    }

    // All stores of an address have the same key.

    pub(super) fn set_s3(&self, credentials: &AwsCredentialProvider) {
        let _set = self.provider.set(Provider::S3(Arc::clone(credentials)));
    }

    pub(super) fn set_azure(&self, credentials: &AzureCredentialProvider) {
        let _set = self.provider.set(Provider::Azure(Arc::clone(credentials)));
    }

    pub(super) fn set_google(&self, credentials: &GcpCredentialProvider) {
        let _set = self.provider.set(Provider::Google(Arc::clone(credentials)));
    }

    /// Whether the request goes to the store, and is not one for a key.
    pub(super) fn is_for_store(&self, request: &HttpRequest) -> bool {
        request.uri().to_string().starts_with(&self.endpoint)
    }

    /// Signs a request with the key as it is now, in place of an earlier signature.
    pub(super) async fn sign(&self, request: &mut HttpRequest) -> Result<(), HttpError> {
        let failed = |error: object_store::Error| HttpError::new(HttpErrorKind::Request, error);
        match self.provider.get() {
            Some(Provider::S3(provider)) => {
                let credential = provider.get_credential().await.map_err(failed)?;
                // What was computed from the body is not computed again.
                let known = request.headers().get(CONTENT_DIGEST);
                let known = known.and_then(|value| value.to_str().ok());
                let digest = known.and_then(from_hex);
                AwsAuthorizer::new(&credential, "s3", &self.region)
                    .with_sign_payload(known != Some(UNSIGNED))
                    .try_authorize(request, digest.as_deref())
                    .map_err(failed)
            }
            Some(Provider::Azure(provider)) => {
                let credential = provider.get_credential().await.map_err(failed)?;
                let is_signed = request
                    .uri()
                    .query()
                    .is_some_and(|query| query.contains("sig="));
                if is_signed && matches!(*credential, AzureCredential::SASToken(_)) {
                    return Ok(());
                }
                request.headers_mut().remove(AUTHORIZATION);
                AzureAuthorizer::new(&credential, &self.account)
                    .try_authorize(request)
                    .map_err(failed)
            }
            Some(Provider::Google(provider)) => {
                let credential = provider.get_credential().await.map_err(failed)?;
                let value = HeaderValue::from_str(&format!("Bearer {}", credential.bearer));
                let mut value =
                    value.map_err(|error| HttpError::new(HttpErrorKind::Request, error))?;
                value.set_sensitive(true);
                request.headers_mut().insert(AUTHORIZATION, value);
                Ok(())
            }
            None => Ok(()),
        }
    }
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> = text
        .chars()
        .map(|digit| digit.to_digit(16).map(|digit| digit as u8))
        .collect();
    let digits = digits.filter(|digits| digits.len() == 64)?;
    let (pairs, _) = digits.as_chunks::<2>();
    Some(pairs.iter().map(|[high, low]| high << 4 | low).collect())
}
