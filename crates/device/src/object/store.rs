//! Connections to a store, and the threads that serve them.

use std::io;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use http::header::HeaderMap;
use jiff::Timestamp;
use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::client::HttpClient;
use object_store::{BackoffConfig, ClientOptions, RetryConfig};
use tokio::runtime::Runtime;

use super::access::Access;
use super::service::{Connector, Signer};
use super::settings::ObjectSettings;
use super::url::ObjectUrl;

/// Threads for the requests of a process: they sign, encrypt and wait.
const THREADS: usize = 2;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// A request that makes no progress for so long is made again. It covers the time that a part of the largest
/// common size takes at 128 KB/s.
const STALL_TIMEOUT: Duration = Duration::from_secs(80);

/// How long the same request is tried again: a store that is away for some minutes does not end a run of hours.
const RETRY_TIMEOUT: Duration = Duration::from_secs(600);
const RETRIES_MAX: usize = 200;

/// A store that cannot be reached is reported soon when nothing has been done yet.
const HASTY_RETRY_TIMEOUT: Duration = Duration::from_secs(15);

/// A store, reached in three ways over the same connections.
#[derive(Debug)]
pub(super) struct Stores {
    /// For questions before a run: gives up soon.
    pub(super) hasty: AmazonS3,
    /// For everything else: patient.
    pub(super) patient: AmazonS3,
    /// As `patient`, but completes an upload only where there is no object.
    pub(super) creating: AmazonS3,
    /// For requests that are made and signed here: the client, the URL of the bucket, the key.
    pub(super) client: HttpClient,
    pub(super) bucket: String,
    pub(super) signer: Arc<Signer>,
}

impl Stores {
    pub(super) fn new(
        url: &ObjectUrl,
        access: &Access,
        settings: &ObjectSettings,
    ) -> io::Result<Self> {
        let options = ClientOptions::new()
            .with_timeout_disabled()
            .with_read_timeout(STALL_TIMEOUT)
            .with_connect_timeout(CONNECT_TIMEOUT)
            .with_allow_http(access.is_plain(&url.authority));
        // Connecting registers timers with the runtime.
        let _entered = runtime()?.enter();
        let failed = |error: object_store::Error| super::failure::reported(&error);
        let client = shared_client(access.is_plain(&url.authority))?;
        let signer = Signer::new(region(url, access, settings));
        let lock = (settings.lock.as_ref()).map(|lock| lock.headers(Timestamp::now()));
        let lock: HeaderMap = lock.unwrap_or_default();
        let store = |creates, retry| {
            let connector = Connector {
                client: client.clone(),
                creates,
                lock: lock.clone(),
                signer: Arc::clone(&signer),
            };
            let store = builder(url, access, settings)
                .with_client_options(options.clone())
                .with_http_connector(connector)
                .with_retry(retry);
            store.build().map_err(failed)
        };
        let patient = RetryConfig {
            backoff: BackoffConfig::default(),
            max_retries: RETRIES_MAX,
            retry_timeout: RETRY_TIMEOUT,
        };
        let hasty = RetryConfig {
            backoff: BackoffConfig::default(),
            max_retries: 6,
            retry_timeout: HASTY_RETRY_TIMEOUT,
        };
        let hasty = store(false, hasty)?;
        signer.set(hasty.credentials());
        Ok(Self {
            hasty,
            patient: store(false, patient.clone())?,
            creating: store(true, patient)?,
            bucket: match url.in_host {
                true => format!("{}/", endpoint(url, access)),
                false => format!("{}/{}", endpoint(url, access), url.bucket),
            },
            signer,
            client,
        })
    }
}

/// The client of this process: objects of one store share its connections.
fn shared_client(is_plain: bool) -> io::Result<HttpClient> {
    static CLIENTS: [OnceLock<HttpClient>; 2] = [const { OnceLock::new() }; 2];
    let shared = &CLIENTS[usize::from(is_plain)];
    if let Some(client) = shared.get() {
        return Ok(client.clone());
    }
    let made = client(is_plain)?;
    Ok(shared.get_or_init(|| made).clone())
}

/// A client that follows no redirection: it would take the session's token, and the data, to whatever host the
/// answer names.
fn client(is_plain: bool) -> io::Result<HttpClient> {
    let client = reqwest::Client::builder()
        .user_agent(concat!("windlass/", env!("CARGO_PKG_VERSION")))
        .read_timeout(STALL_TIMEOUT)
        .connect_timeout(CONNECT_TIMEOUT)
        .redirect(reqwest::redirect::Policy::none())
        .http1_only()
        .https_only(!is_plain)
        // As object_store's own: lengths are those of the object.
        .no_gzip()
        .no_brotli()
        .no_zstd()
        .no_deflate()
        .build()
        .map_err(io::Error::other)?;
    Ok(HttpClient::new(client))
}

fn endpoint(url: &ObjectUrl, access: &Access) -> String {
    let scheme = match access.is_plain(&url.authority) {
        true => "http",
        false => "https",
    };
    format!("{scheme}://{}", url.endpoint())
}

fn region<'r>(url: &'r ObjectUrl, access: &'r Access, settings: &'r ObjectSettings) -> &'r str {
    let said = settings.region.as_deref();
    let region = said.or(url.region()).or(access.region.as_deref());
    region.unwrap_or("us-east-1")
}

fn builder(url: &ObjectUrl, access: &Access, settings: &ObjectSettings) -> AmazonS3Builder {
    let mut builder = AmazonS3Builder::new()
        .with_endpoint(endpoint(url, access))
        .with_virtual_hosted_style_request(url.in_host)
        .with_bucket_name(&url.bucket)
        .with_region(region(url, access, settings))
        .with_access_key_id(&access.key_id)
        .with_secret_access_key(&access.secret)
        .with_disable_bulk_delete(true);
    if let Some(checksum) = settings.checksum_sent() {
        builder = builder.with_checksum_algorithm(checksum);
    }
    match &access.session_token {
        Some(token) => builder.with_token(token),
        None => builder,
    }
}

/// The threads that serve all requests; they never hold up the end of the process.
pub(super) fn runtime() -> io::Result<&'static Runtime> {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    if let Some(runtime) = RUNTIME.get() {
        return Ok(runtime);
    }
    let made = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(THREADS)
        .thread_name("windlass-net")
        .enable_all()
        .build()?;
    Ok(RUNTIME.get_or_init(|| made))
}
