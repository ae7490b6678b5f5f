//! Sockets: accepts clients, each on a thread of its own, as many as the limits allow.
//!
//! A client that is one too many is closed at once: nothing waits in memory. Those who have logged in are not
//! disturbed by those who knock.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, TcpListener};
use std::os::unix::net::UnixListener;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use windlass_instance::{Instance, InstanceShare};
use windlass_local::serving::{Hello, Host};

use crate::certificate::Certificate;
use crate::server::Options;
use crate::tds::connection;
use crate::throttle::{Throttle, Turns};
use crate::wire::Socket;

/// Pause after a failed accept, which fails again at once: no descriptors are left.
const AFTER_FAILURE: Duration = Duration::from_millis(100);

/// What the connections of a server share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) options: Options,
    instance: InstanceShare,
    certificate: RwLock<Certificate>,
    connections: AtomicUsize,
    knocking: Mutex<HashMap<IpAddr, usize>>,
    pub(crate) throttle: Throttle,
    pub(crate) turns: Turns,
    is_stopping: AtomicBool,
}

impl Shared {
    pub(crate) fn new(options: Options, instance: InstanceShare, certificate: Certificate) -> Self {
        Self {
            options,
            instance,
            certificate: RwLock::new(certificate),
            connections: AtomicUsize::new(0),
            knocking: Mutex::default(),
            throttle: Throttle::default(),
            turns: Turns::default(),
            is_stopping: AtomicBool::new(false),
        }
    }

    /// The instance for another session.
    pub(crate) fn instance(&self) -> io::Result<Instance> {
        self.instance.open().map_err(io::Error::other)
    }

    pub(crate) fn certificate(&self) -> Certificate {
        let held = self.certificate.read();
        held.unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn set_certificate(&self, certificate: Certificate) {
        let mut held = self
            .certificate
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        *held = certificate;
    }

    /// No further client is served.
    pub(crate) fn stop(&self) {
        self.is_stopping.store(true, Ordering::SeqCst);
    }

    /// Whether the server ends. A session enters the list before it asks: the one who ends them all sees it there, or
    /// it sees the end.
    pub(crate) fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::SeqCst)
    }

    /// The number of connections.
    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    /// A place for a client; `None` if there is none left.
    fn admit(self: &Arc<Self>, socket: &Socket) -> Option<Context> {
        let limits = &self.options.limits;
        let before = self.connections.fetch_add(1, Ordering::Relaxed);
        // From here on the context gives the place back.
        let mut context = Context {
            shared: Arc::clone(self),
            knocks_from: Mutex::new(None),
        };
        if before >= limits.connections || self.is_stopping() {
            return None;
        }
        if let Some(peer) = socket.peer() {
            let mut knocking = self.knocking.lock().unwrap_or_else(PoisonError::into_inner);
            let count = knocking.entry(peer).or_default();
            if *count >= limits.logins_per_address {
                return None;
            }
            *count += 1;
            context.knocks_from = Mutex::new(Some(peer));
        }
        Some(context)
    }

    fn forget_knock(&self, peer: IpAddr) {
        let mut knocking = self.knocking.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = knocking.get_mut(&peer) {
            *count -= 1;
            if *count == 0 {
                knocking.remove(&peer);
            }
        }
    }
}

/// What a connection needs; its place is free again when it is dropped.
#[derive(Debug)]
pub(crate) struct Context {
    shared: Arc<Shared>,
    /// The address of a client that has not logged in.
    knocks_from: Mutex<Option<IpAddr>>,
}

impl std::ops::Deref for Context {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.shared
    }
}

impl Context {
    /// The client has logged in.
    pub(crate) fn logged_in(&self) {
        let mut knocks = self
            .knocks_from
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(peer) = knocks.take() {
            self.forget_knock(peer);
        }
    }
}

impl Host for Context {
    fn instance(&self, _hello: &Hello) -> io::Result<Instance> {
        self.shared.instance()
    }

    fn is_stopping(&self) -> bool {
        self.shared.is_stopping()
    }

    fn begun(&self) {
        self.logged_in();
    }

    fn request_bytes_max(&self) -> usize {
        self.options.limits.request_bytes
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        self.logged_in();
        self.shared.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A listening socket.
#[derive(Debug)]
pub(crate) enum Listener {
    Tcp(TcpListener),
    Local(UnixListener),
}

impl Listener {
    /// Ends it: who waits for clients wakes up.
    pub(crate) fn shut_down(&self) {
        let how = rustix::net::Shutdown::Both;
        let result = match self {
            Self::Tcp(listener) => rustix::net::shutdown(listener, how),
            Self::Local(listener) => rustix::net::shutdown(listener, how),
        };
        if let Err(error) = result {
            tracing::warn!(%error, "a socket could not be shut down");
        }
    }

    fn accept(&self) -> io::Result<Socket> {
        match self {
            Self::Tcp(listener) => {
                let (stream, _) = listener.accept()?;
                // Answers are written whole.
                stream.set_nodelay(true)?;
                rustix::net::sockopt::set_socket_keepalive(&stream, true)?;
                Ok(Socket::Tcp(stream))
            }
            Self::Local(listener) => Ok(Socket::Local(listener.accept()?.0)),
        }
    }
}

/// Accepts clients until the server stops; a last connection wakes it up then.
pub(crate) fn accept(listener: &Listener, shared: &Arc<Shared>) {
    while !shared.is_stopping() {
        match listener.accept() {
            Ok(socket) => {
                if let Some(context) = shared.admit(&socket) {
                    begin(socket, context);
                } else if !shared.is_stopping() {
                    tracing::warn!(
                        peer = ?socket.peer(),
                        "a client was turned away: there are too many connections"
                    );
                }
            }
            Err(_) if shared.is_stopping() => {}
            Err(error) => {
                tracing::warn!(%error, "a client could not be accepted");
                std::thread::sleep(AFTER_FAILURE);
            }
        }
    }
}

fn begin(socket: Socket, context: Context) {
    let peer = socket.peer();
    let started = std::thread::Builder::new()
        .name("tds".to_owned())
        .spawn(move || {
            let served =
                std::panic::catch_unwind(AssertUnwindSafe(|| connection::serve(socket, &context)));
            match served {
                Ok(Ok(())) => {}
                Ok(Err(error)) => tracing::info!(?peer, %error, "a connection ended"),
                Err(_) => tracing::error!(
                    ?peer,
                    "a connection ended by a panic; its transaction is rolled back"
                ),
            }
        });
    if let Err(error) = started {
        tracing::warn!(?peer, %error, "a client was turned away: no thread could be started");
    }
}
