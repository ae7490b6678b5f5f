//! Why the server cannot start.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// An error of the server itself, not of a client's request.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error("cannot listen on {address}: {source}")]
    Listen {
        address: SocketAddr,
        source: io::Error,
    },
    #[error("cannot listen on the socket '{}': {source}", path.display())]
    Socket { path: PathBuf, source: io::Error },
    #[error("a server of this instance is running already: '{}' answers", path.display())]
    Running { path: PathBuf },
    #[error("'{}': {reason}", path.display())]
    Certificate { path: PathBuf, reason: String },
    #[error("'{}': {source}", path.display())]
    File { path: PathBuf, source: io::Error },
    #[error(
        "without TLS only a loopback address is allowed, and {address} is none: everybody on the way could read the passwords"
    )]
    Unprotected { address: SocketAddr },
    #[error("the page cannot be served: {0}")]
    Runtime(io::Error),
}

/// Bytes of a client that the protocol does not allow.
pub(crate) fn invalid(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}
