//! The server: owns an instance's databases for as long as it runs, and lets clients use them.
//!
//! ```text
//! listen  -->  connection (a thread)  -->  tds: prelogin, TLS, login  -->  Session
//!                 |  reader (a thread): messages of the client, cancels
//!                 '- requests in turn  -->  tds::reply: results as tokens  -->  packets
//! ```
//!
//! - `listen`: sockets, and how many connections there may be.
//! - `wire`: bytes to and from a client, plain or in TLS.
//! - `certificate`: the certificate that the server shows, made if there is none.
//! - `tds`: what a client says, and what it is answered.
//! - `http`: a page to look at, and the same for programs.
//!
//! Neighbours: `windlass-tds` knows the bytes of the protocol, `windlass-local` speaks with Windlass' own commands,
//! `windlass-instance` executes what they ask for.
//!
//! Invariants:
//! 1. A client costs at most [`Limits`] before it has logged in, and nothing it sends is kept longer than its
//!    request runs.
//! 2. A client that is gone cancels what it was running.
//! 3. No password is accepted over a connection that others could read, unless the server was told to.
#![forbid(unsafe_code)]

mod certificate;
mod error;
mod http;
mod limits;
mod listen;
mod server;
mod tds;
mod throttle;
mod wire;

pub use error::Error;
pub use http::HttpOptions;
pub use limits::Limits;
pub use server::{Addresses, Options, Server, Stopped};
pub use wire::Protection;
