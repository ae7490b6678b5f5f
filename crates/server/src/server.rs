//! A running server: its sockets, its end.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use windlass_instance::{Failure, Instance, Settings};
use windlass_local::socket;

use crate::Error;
use crate::certificate::{self, Certificate, Files};
use crate::http::{Http, HttpOptions};
use crate::limits::Limits;
use crate::listen::{Listener, Shared, accept};
use crate::wire::Protection;

/// Pause while sessions end.
const BETWEEN_LOOKS: Duration = Duration::from_millis(20);

/// How a server listens.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where TDS is spoken over TCP; none for the local socket alone. Port 0 lets the system choose one.
    pub tds: Vec<SocketAddr>,
    pub protection: Protection,
    /// Certificate (with its chain) and key in PEM; otherwise one is made.
    pub certificate: Option<(PathBuf, PathBuf)>,
    pub limits: Limits,
    /// The page; `None` for none.
    pub http: Option<HttpOptions>,
}

/// Where a server listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Addresses {
    pub tds: Vec<SocketAddr>,
    /// The page.
    pub http: Vec<SocketAddr>,
    pub socket: PathBuf,
}

/// How a server ended.
#[derive(Debug)]
pub struct Stopped {
    /// Running requests that were cancelled.
    pub cancelled: usize,
    /// Engine databases that could not be closed, by name.
    pub not_closed: Vec<(String, Failure)>,
}

/// A running server. Dropping it does not stop it: [`Server::stop`] does.
#[derive(Debug)]
pub struct Server {
    shared: Arc<Shared>,
    files: Files,
    folder: PathBuf,
    addresses: Addresses,
    socket: socket::Made,
    local: Arc<Listener>,
    threads: Vec<JoinHandle<()>>,
    http: Option<Http>,
    instance: Instance,
}

impl Server {
    /// Checks that an instance has no server yet. For callers that do much before [`Server::start`], which asks again.
    ///
    /// # Errors
    /// [`Error::Running`].
    pub fn check_absent(folder: &Path) -> Result<(), Error> {
        let path = folder.join(socket::OF_INSTANCE);
        match socket::connect(&path) {
            Ok(Some(_)) => Err(Error::Running { path }),
            // What else is wrong with it, starting tells.
            Ok(None) | Err(_) => Ok(()),
        }
    }

    /// Starts to listen for clients of an instance that has a folder.
    ///
    /// # Errors
    /// An address or socket that cannot be used, a certificate that cannot be read, and an instance that has a
    /// server already.
    pub fn start(instance: Instance, options: Options) -> Result<Self, Error> {
        let folder = instance.folder().unwrap_or(Path::new(".")).to_owned();
        if options.protection == Protection::Offered
            && let Some(address) = options.tds.iter().find(|tds| !tds.ip().is_loopback())
        {
            return Err(Error::Unprotected { address: *address });
        }
        let files = match &options.certificate {
            Some((certificate, key)) => Files {
                certificate: certificate.clone(),
                key: key.clone(),
            },
            None => certificate::made(&folder)?,
        };
        let certificate = Certificate::read(&files)?;
        let socket = folder.join(socket::OF_INSTANCE);
        let (listener, made) = listen_locally(&socket)?;
        let local = Arc::new(Listener::Local(listener));
        let mut listeners = vec![Arc::clone(&local)];
        let mut addresses = Addresses {
            tds: Vec::new(),
            http: Vec::new(),
            socket,
        };
        for address in &options.tds {
            let fails = |source| Error::Listen {
                address: *address,
                source,
            };
            let listener = TcpListener::bind(address).map_err(fails)?;
            addresses.tds.push(listener.local_addr().map_err(fails)?);
            listeners.push(Arc::new(Listener::Tcp(listener)));
        }
        instance.sessions().serve();
        let shared = Arc::new(Shared::new(options, instance.share(), certificate));
        let http = match &shared.options.http {
            Some(options) => Some(Http::start(&shared, options)?),
            None => None,
        };
        addresses.http = http
            .iter()
            .flat_map(|http| http.addresses.clone())
            .collect();
        let mut threads = Vec::new();
        for listener in listeners {
            let shared = Arc::clone(&shared);
            let started = std::thread::Builder::new()
                .name("accept".to_owned())
                .spawn(move || accept(&listener, &shared));
            threads.push(started.map_err(|source| Error::File {
                path: folder.clone(),
                source,
            })?);
        }
        Ok(Self {
            shared,
            files,
            folder,
            addresses,
            socket: made,
            local,
            threads,
            http,
            instance,
        })
    }

    pub fn addresses(&self) -> &Addresses {
        &self.addresses
    }

    /// The instance that is served.
    pub fn instance(&self) -> &Instance {
        &self.instance
    }

    /// The number of connected clients.
    pub fn connections(&self) -> usize {
        self.shared.connections()
    }

    /// Replaces the settings of the sessions.
    pub fn set_settings(&self, settings: Settings) {
        self.instance.share().set_settings(settings);
    }

    /// Reads the certificate again, for the connections that come; makes a new one if it is due.
    ///
    /// # Errors
    /// A certificate that cannot be read: the old one stays.
    pub fn reload(&self) -> Result<(), Error> {
        if self.shared.options.certificate.is_none() {
            certificate::made(&self.folder)?;
        }
        self.shared.set_certificate(Certificate::read(&self.files)?);
        Ok(())
    }

    /// From now on no client comes in; those who are there go on.
    pub fn refuse_clients(&self) {
        self.shared.stop();
        self.wake();
    }

    /// Ends the server: no new clients, the sessions end, and the databases close. Sessions that run a request may
    /// end it for as long as `is_patient` says; then they are cancelled.
    pub fn stop(self, mut is_patient: impl FnMut() -> bool) -> Stopped {
        self.refuse_clients();
        let sessions = self.instance.sessions().clone();
        let mut cancelled = 0;
        let mut lasts = true;
        loop {
            let listed = sessions.list();
            if listed.is_empty() || self.shared.connections() == 0 {
                break;
            }
            lasts = lasts && is_patient();
            for session in listed {
                if session.is_killed() {
                    continue;
                }
                let is_running = session.activity().is_running;
                if is_running && lasts {
                    continue;
                }
                cancelled += usize::from(is_running);
                session.kill();
            }
            std::thread::sleep(BETWEEN_LOOKS);
        }
        if let Some(http) = self.http {
            http.stop();
        }
        for thread in self.threads {
            // It logs what went wrong by itself.
            let _ended = thread.join();
        }
        self.socket.remove();
        Stopped {
            cancelled,
            not_closed: self.instance.close_engine_databases(),
        }
    }

    /// Wakes up the threads that wait for clients.
    fn wake(&self) {
        for address in &self.addresses.tds {
            let mut address = *address;
            if address.ip().is_unspecified() {
                address.set_ip(match address {
                    SocketAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
                    SocketAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
                });
            }
            drop(TcpStream::connect_timeout(&address, Duration::from_secs(1)));
        }
        if UnixStream::connect(&self.addresses.socket).is_err() {
            // Its name is gone: nobody comes in that way any more, and this one neither.
            self.local.shut_down();
        }
    }
}

fn listen_locally(path: &Path) -> Result<(UnixListener, socket::Made), Error> {
    socket::listen(path).map_err(|source| match source.kind() {
        std::io::ErrorKind::AddrInUse => Error::Running {
            path: path.to_owned(),
        },
        _ => Error::Socket {
            path: path.to_owned(),
            source,
        },
    })
}
