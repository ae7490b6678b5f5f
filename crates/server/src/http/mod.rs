//! The page to look at, over HTTP: what is backed up, what runs, what happened. It changes nothing.
//!
//! | module | what |
//! |---|---|
//! | `serve` | sockets, connections, the end |
//! | `door` | which requests are answered, and the headers of every answer |
//! | `login` | who may look from elsewhere |
//! | `route` | the addresses, and what each one reads |
//! | `live` | the running requests as server-sent events |
//! | `page` | the page, `running` and `engine` its parts that are about now |
//!
//! Neighbours: [`windlass_instance::overview`] says what the page shows; `windlass-report` draws it.
//!
//! Invariants:
//! 1. The runtime is this module's own, and small. Nothing that may wait for a file, the catalog or a password
//!    runs on it: that is what `route::read` is for.
//! 2. Only GET and HEAD are answered. A page of another site cannot read an answer, not even by a name of its own
//!    for this address.
//! 3. On other addresses than loopback only TLS is spoken, and every request brings the password of a login that may
//!    read the history.

mod door;
mod engine;
mod live;
mod login;
mod page;
mod route;
mod running;
mod serve;

use std::net::SocketAddr;

pub(crate) use serve::Http;

/// How the page is served.
#[derive(Debug, Clone)]
pub struct HttpOptions {
    /// Port 0 lets the system choose one.
    pub addresses: Vec<SocketAddr>,
    /// The recovery point objective that the page judges by.
    pub rpo_minutes: i64,
}
