//! Connections to a store, and the threads that serve them.

use std::io;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use http::header::HeaderMap;
use jiff::Timestamp;
use object_store::client::HttpClient;
use object_store::{BackoffConfig, ClientOptions, ObjectStore, RetryConfig};
use tokio::runtime::Runtime;
use windlass_base::panic::contained;

use super::access::Access;
use super::condition::Decided;
use super::service::Connector;
use super::settings::ObjectSettings;
use super::signer::Signer;
use super::tls::no_client;
use super::url::{ObjectUrl, StoreKind};
use super::{azure, google, hidden, s3};

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

/// A store, reached in two ways over the same connections.
#[derive(Debug)]
pub(super) struct Stores {
    /// For questions before a run: gives up soon.
    pub(super) hasty: Arc<dyn ObjectStore>,
    /// For everything else: patient.
    pub(super) patient: Arc<dyn ObjectStore>,
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
        // Connecting registers timers with the runtime.
        let _entered = runtime()?.enter();
        let reached = Reached::new(url, access, settings)?;
        let hasty = RetryConfig {
            backoff: BackoffConfig::default(),
            max_retries: 6,
            retry_timeout: HASTY_RETRY_TIMEOUT,
        };
        let unconditional = Decided::default();
        Ok(Self {
            hasty: reached.store(&unconditional, hasty)?,
            patient: reached.store(&unconditional, patience())?,
            client: reached.client,
            bucket: reached.bucket,
            signer: reached.signer,
        })
    }

    /// As `patient`, but an object gets its name only on the condition, if one is decided by then. Google's knows none on
    /// the completion of an upload; it has claims.
    pub(super) fn conditional(
        url: &ObjectUrl,
        access: &Access,
        settings: &ObjectSettings,
        condition: &Decided,
    ) -> io::Result<Arc<dyn ObjectStore>> {
        let _entered = runtime()?.enter();
        Reached::new(url, access, settings)?.store(condition, patience())
    }
}

fn patience() -> RetryConfig {
    RetryConfig {
        backoff: BackoffConfig::default(),
        max_retries: RETRIES_MAX,
        retry_timeout: RETRY_TIMEOUT,
    }
}

/// How a store is reached, whatever its kind.
pub(super) struct Reached<'a> {
    pub(super) url: &'a ObjectUrl,
    pub(super) access: &'a Access,
    pub(super) settings: &'a ObjectSettings,
    /// `https://host[:port]`, of Azure with the account
    pub(super) endpoint: String,
    /// The URL of the bucket.
    bucket: String,
    pub(super) options: ClientOptions,
    client: HttpClient,
    plain_client: HttpClient,
    lock: HeaderMap,
    pub(super) signer: Arc<Signer>,
}

impl<'a> Reached<'a> {
    fn new(
        url: &'a ObjectUrl,
        access: &'a Access,
        settings: &'a ObjectSettings,
    ) -> io::Result<Self> {
        let denied = |reason| io::Error::new(io::ErrorKind::PermissionDenied, reason);
        access.check(url).map_err(denied)?;
        hidden::know(&access.key);
        let authority = match url.kind() {
            // There is one; in its place an emulator.
            StoreKind::Google => access.plain_authority().unwrap_or(&url.authority),
            StoreKind::S3 | StoreKind::Azure => &url.authority,
        };
        let is_plain = access.is_plain(authority);
        let lock = (settings.lock.as_ref()).map(|lock| lock.headers(Timestamp::now()));
        let scheme = match is_plain {
            true => "http",
            false => "https",
        };
        let endpoint = match url.kind() {
            StoreKind::Google => format!("{scheme}://{authority}"),
            StoreKind::S3 | StoreKind::Azure => format!("{scheme}://{}", url.endpoint()),
        };
        let bucket = match url.kind() == StoreKind::S3 && url.in_host {
            true => format!("{endpoint}/"),
            false => format!("{endpoint}/{}", url.bucket),
        };
        let signer = Signer::new(url, s3::region(url, access, settings), &endpoint);
        Ok(Self {
            url,
            access,
            settings,
            endpoint,
            bucket,
            options: ClientOptions::new()
                .with_timeout_disabled()
                .with_read_timeout(STALL_TIMEOUT)
                .with_connect_timeout(CONNECT_TIMEOUT)
                .with_allow_http(is_plain),
            client: shared_client(is_plain)?,
            plain_client: shared_client(true)?,
            lock: lock.unwrap_or_default(),
            signer,
        })
    }

    fn store(&self, condition: &Decided, retry: RetryConfig) -> io::Result<Arc<dyn ObjectStore>> {
        let connector = Connector {
            kind: self.url.kind(),
            client: self.client.clone(),
            plain_client: self.plain_client.clone(),
            condition: Arc::clone(condition),
            lock: self.lock.clone(),
            signer: Arc::clone(&self.signer),
        };
        let made = match self.url.kind() {
            StoreKind::S3 => s3::store(self, connector, retry),
            StoreKind::Azure => azure::store(self, connector, retry),
            StoreKind::Google => google::store(self, connector, retry),
        };
        made.map_err(|error| super::failure::reported(&error))
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
        .no_deflate();
    let client = match is_plain {
        // What is not encrypted goes to the host that was meant, as a rule this one, and to no proxy.
        true => client.no_proxy(),
        false => client,
    };
    Ok(HttpClient::new(
        client.build().map_err(|error| no_client(&error))?,
    ))
}

/// The threads that serve all requests; they never hold up the end of the process.
pub(super) fn runtime() -> io::Result<&'static Runtime> {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    if let Some(runtime) = RUNTIME.get() {
        return Ok(runtime);
    }
    // Where the system has no thread for it, it panics.
    let made = contained("network", || {
        tokio::runtime::Builder::new_multi_thread()
            .worker_threads(THREADS)
            .thread_name("windlass-net")
            .enable_all()
            .build()
    })??;
    Ok(RUNTIME.get_or_init(|| made))
}
