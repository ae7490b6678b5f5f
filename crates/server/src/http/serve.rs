//! Sockets and connections of the page: a small runtime, as many clients as the limits allow.

use std::io;
use std::net::{SocketAddr, TcpListener as Socket};
use std::sync::Arc;
use std::time::Duration;

use axum::{Extension, Router};
use hyper::server::conn::http1::Builder;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_rustls::TlsAcceptor;

use super::HttpOptions;
use super::live::Live;
use super::login::{Logins, Visitor};
use super::route::{self, Web};
use crate::Error;
use crate::listen::Shared;

/// Threads that talk to clients.
const TALKERS: usize = 2;
/// Threads that read the catalog and media, and check passwords.
const READERS: usize = 4;
/// Connections at once, to each address that is listened on.
const CONNECTIONS: usize = 64;
/// Time for the head of a request: the first, and each further one.
const HEAD_TIME: Duration = Duration::from_secs(15);
/// A client that takes nothing of an answer for so long is gone.
const UNREAD_TIME: Duration = Duration::from_secs(30);
/// The longest connection, also of one that listens to events: it connects again.
const CONNECTION_TIME: Duration = Duration::from_secs(3600);
/// Length of the head of a request.
const HEAD_BYTES: usize = 16 << 10;
const HEAD_LINES: usize = 64;
/// Time for answers in the making when the server ends.
const LAST_ANSWERS: Duration = Duration::from_secs(1);
/// Pause after a failed accept, which fails again at once: no descriptors are left.
const AFTER_FAILURE: Duration = Duration::from_millis(100);

/// The page, being served. Its connections end with it.
#[derive(Debug)]
pub(crate) struct Http {
    pub(crate) addresses: Vec<SocketAddr>,
    runtime: Runtime,
}

impl Http {
    /// Starts to answer. On loopback nobody logs in; on other addresses everybody does, over TLS.
    pub(crate) fn start(shared: &Arc<Shared>, options: &HttpOptions) -> Result<Self, Error> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(TALKERS)
            .max_blocking_threads(READERS)
            .thread_name("http")
            .enable_io()
            .enable_time()
            .build()
            .map_err(Error::Runtime)?;
        let live = Live::start(shared, runtime.handle()).map_err(Error::Runtime)?;
        let web = Arc::new(Web {
            shared: Arc::clone(shared),
            rpo_minutes: options.rpo_minutes,
            live,
            logins: Logins::new(),
        });
        let mut addresses = Vec::new();
        for address in &options.addresses {
            let fails = |source| Error::Listen {
                address: *address,
                source,
            };
            let listener = bind(*address, &runtime).map_err(fails)?;
            addresses.push(listener.local_addr().map_err(fails)?);
            let entrance = Entrance {
                answers: route::answers(&web),
                // Its own: those who only reach one address take no place of another's clients.
                places: Arc::new(Semaphore::new(CONNECTIONS)),
                shared: (!address.ip().is_loopback()).then(|| Arc::clone(shared)),
            };
            runtime.spawn(accept(listener, entrance));
        }
        Ok(Self { addresses, runtime })
    }

    /// Ends all connections.
    pub(crate) fn stop(self) {
        self.runtime.shutdown_timeout(LAST_ANSWERS);
    }
}

fn bind(address: SocketAddr, runtime: &Runtime) -> io::Result<TcpListener> {
    let socket = Socket::bind(address)?;
    socket.set_nonblocking(true)?;
    let _entered = runtime.enter();
    TcpListener::from_std(socket)
}

/// What the connections to one address have in common.
#[derive(Clone)]
struct Entrance {
    answers: Router,
    places: Arc<Semaphore>,
    /// For its certificate, where TLS is spoken.
    shared: Option<Arc<Shared>>,
}

async fn accept(listener: TcpListener, entrance: Entrance) {
    loop {
        let (stream, peer) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "a browser could not be accepted");
                tokio::time::sleep(AFTER_FAILURE).await;
                continue;
            }
        };
        // One that is one too many is closed at once: nothing waits in memory.
        let Ok(place) = Arc::clone(&entrance.places).try_acquire_owned() else {
            tracing::warn!("a browser was turned away: there are too many connections");
            continue;
        };
        if let Err(error) = prepare(&stream) {
            tracing::info!(%error, "a browser was gone at once");
            continue;
        }
        let visitor = Visitor {
            peer: peer.ip(),
            must_log_in: entrance.shared.is_some(),
        };
        let answers = entrance.answers.clone().layer(Extension(visitor));
        match &entrance.shared {
            None => drop(tokio::spawn(converse(stream, answers, place))),
            Some(shared) => {
                let acceptor = TlsAcceptor::from(shared.certificate().page);
                drop(tokio::spawn(async move {
                    match tokio::time::timeout(HEAD_TIME, acceptor.accept(stream)).await {
                        Ok(Ok(stream)) => converse(stream, answers, place).await,
                        Ok(Err(error)) => tracing::debug!(%error, "a browser did not encrypt"),
                        Err(_) => tracing::debug!("a browser took too long to encrypt"),
                    }
                }));
            }
        }
    }
}

fn prepare(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let unread = u32::try_from(UNREAD_TIME.as_millis()).unwrap_or(u32::MAX);
    rustix::net::sockopt::set_tcp_user_timeout(stream, unread)?;
    Ok(())
}

/// Answers one connection's requests in turn.
async fn converse<S>(stream: S, answers: Router, _place: OwnedSemaphorePermit)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let connection = Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME)
        .max_headers(HEAD_LINES)
        .max_buf_size(HEAD_BYTES)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(answers));
    if let Ok(Err(error)) = tokio::time::timeout(CONNECTION_TIME, connection).await {
        tracing::debug!(%error, "a browser's connection ended");
    }
}
