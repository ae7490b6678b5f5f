//! The socket beside each open database: `windlass backup app.db` asks the program that has it open.
//!
//! A thread listens for each open database, and one serves each command, so the program's own threads do nothing for
//! it. The database stays open until the command is done. A socket that cannot be made leaves everything else as it
//! is; SQLite's log says why.

use std::collections::HashMap;
use std::io::{self, Read as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use windlass_instance::{Instance, Principal, logical_name};
use windlass_local::serving::{Hello, Host, refuse, serve};
use windlass_local::socket::Made;
use windlass_local::{GREETING, socket};
use windlass_vfs::{Held, Library, PathDatabases, Watch};

/// Commands that may be served at once, for all databases.
const CLIENTS_MAX: usize = 16;
/// How long a command may take to say what it wants.
const GREETING_TIME: Duration = Duration::from_secs(15);
/// The longest batch.
const REQUEST_BYTES_MAX: usize = 16 << 20;

/// Listens beside each database from when it opens until it closes.
pub(crate) fn listen(databases: &Arc<PathDatabases>, library: Library) {
    databases.watch(Box::new(Sockets {
        databases: Arc::downgrade(databases),
        library,
        open: Mutex::default(),
        clients: Arc::default(),
    }));
}

#[derive(Debug)]
struct Sockets {
    databases: Weak<PathDatabases>,
    library: Library,
    open: Mutex<HashMap<PathBuf, Listening>>,
    clients: Arc<AtomicUsize>,
}

/// The socket of an open database.
#[derive(Debug)]
struct Listening {
    socket: Made,
    /// Set when the database closes.
    is_closed: Arc<AtomicBool>,
}

impl Sockets {
    fn begin(&self, path: &Path) -> io::Result<()> {
        let Some(databases) = self.databases.upgrade() else {
            return Ok(());
        };
        // The files are locked by this process: who left a socket here is gone.
        let (listener, socket) = socket::listen(&socket::beside(path))?;
        let is_closed = Arc::new(AtomicBool::new(false));
        let beside = Beside {
            databases,
            path: path.to_owned(),
            is_closed: Arc::clone(&is_closed),
            clients: Arc::clone(&self.clients),
        };
        let thread = std::thread::Builder::new().name("windlass-socket".to_owned());
        thread.spawn(move || beside.accept(&listener))?;
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.insert(path.to_owned(), Listening { socket, is_closed });
        Ok(())
    }
}

impl Watch for Sockets {
    fn opened(&self, path: &Path) {
        if let Err(error) = self.begin(path) {
            let name = socket::beside(path);
            let text = format!(
                "'{}' cannot be made, so commands cannot back the database up while it is open: {error}",
                name.display()
            );
            self.library.note(&text);
        }
    }

    fn closed(&self, path: &Path) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(listening) = open.remove(path) {
            listening.is_closed.store(true, Ordering::SeqCst);
            // Wakes the thread that listens; nobody else may come.
            let _woken = socket::connect(listening.socket.path());
            listening.socket.remove();
        }
    }
}

/// The socket of one database.
#[derive(Debug, Clone)]
struct Beside {
    databases: Arc<PathDatabases>,
    path: PathBuf,
    is_closed: Arc<AtomicBool>,
    clients: Arc<AtomicUsize>,
}

impl Beside {
    fn accept(&self, listener: &UnixListener) {
        while !self.is_closed.load(Ordering::SeqCst) {
            match listener.accept() {
                Ok((stream, _)) if !self.is_closed.load(Ordering::SeqCst) => self.begin(stream),
                Ok(_) => {}
                // No descriptors are left, for now.
                Err(_) => std::thread::sleep(Duration::from_millis(100)),
            }
        }
    }

    fn begin(&self, stream: UnixStream) {
        if self.clients.fetch_add(1, Ordering::SeqCst) >= CLIENTS_MAX {
            self.clients.fetch_sub(1, Ordering::SeqCst);
            let reason = format!("the program serves {CLIENTS_MAX} commands at once already");
            // The command sees at least that its connection ends.
            let _told = refuse(&stream, &reason);
            return;
        }
        let beside = self.clone();
        let thread = std::thread::Builder::new().name("windlass-client".to_owned());
        let started = thread.spawn(move || {
            let clients = Arc::clone(&beside.clients);
            let serving = std::panic::AssertUnwindSafe(|| beside.serve(&stream));
            // The command sees that its connection ends.
            let _served = std::panic::catch_unwind(serving);
            let _ended = stream.shutdown(std::net::Shutdown::Both);
            clients.fetch_sub(1, Ordering::SeqCst);
        });
        if started.is_err() {
            self.clients.fetch_sub(1, Ordering::SeqCst);
        }
    }

    fn serve(self, stream: &UnixStream) -> io::Result<()> {
        stream.set_read_timeout(Some(GREETING_TIME))?;
        let mut first = [0];
        { stream }.read_exact(&mut first)?;
        if first != [GREETING] {
            return Ok(());
        }
        let client = Client {
            beside: self,
            held: Mutex::default(),
        };
        serve(stream, socket::is_own_user(stream), &client)
    }
}

/// A command that is served. The database stays open for as long as it lives.
#[derive(Debug)]
struct Client {
    beside: Beside,
    held: Mutex<Option<Held>>,
}

impl Host for Client {
    fn instance(&self, hello: &Hello) -> io::Result<Instance> {
        let path = &self.beside.path;
        let held = self
            .beside
            .databases
            .hold(path)
            .ok_or_else(|| io::Error::other("the database is being closed"))?;
        // The name may lead to another file by now, and the socket may lie beside another database.
        if hello.file().is_none() || hello.file() != held.database().first_file() {
            return Err(io::Error::other(
                "the file of that name is not the database that this program has open",
            ));
        }
        let folder = hello.instance().map(Path::new);
        let mut instance = Instance::open(folder).map_err(io::Error::other)?;
        let own = logical_name(path);
        let name = hello.database().or(held.name()).unwrap_or(&own);
        instance
            .lend(name, path, held.database())
            .map_err(io::Error::other)?;
        *self.held.lock().unwrap_or_else(PoisonError::into_inner) = Some(held);
        Ok(instance)
    }

    fn principal(&self, hello: &Hello) -> Option<Principal> {
        Some(Principal::guest(hello.user()))
    }

    fn is_stopping(&self) -> bool {
        self.beside.is_closed.load(Ordering::SeqCst)
    }

    fn request_bytes_max(&self) -> usize {
        REQUEST_BYTES_MAX
    }
}
