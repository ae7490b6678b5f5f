//! Tabular Data Stream (MS-TDS 7.4 and 8.0), the server's side: bytes to requests, answers to bytes.
//!
//! No I/O, no threads, no SQL. A listener reads a socket, pushes the bytes into an
//! [`Assembler`](packet::Assembler) and gets whole messages; it parses them by kind, and writes an
//! [`Answer`](answer::Answer), which is divided into packets.
//!
//! - [`packet`]: headers, packets to messages, messages to packets.
//! - [`prelogin`]: versions, and whether the connection is encrypted.
//! - [`login`]: the user who logs in, and the driver.
//! - [`request`]: batches, remote procedure calls, transactions.
//! - [`answer`]: the tokens of an answer.
//! - [`data_type`], [`value`]: types and values, as columns and as parameters.
//! - [`collation`]: the code page of a client's `varchar`.
//!
//! Neighbours: the server owns the sockets, TLS and the sessions.
//!
//! Invariants:
//! 1. Whatever a client sends, nothing panics, and nothing is allocated before the bytes that fill
//!    it have arrived: lengths are compared with the available bytes.
//! 2. A message is never longer than the limit its [`Assembler`](packet::Assembler) was given.
//! 3. Passwords appear in no error and no `Debug` output.
#![forbid(unsafe_code)]

pub mod answer;
pub mod collation;
mod cursor;
pub mod data_type;
mod error;
pub mod login;
pub mod packet;
pub mod prelogin;
pub mod request;
pub mod value;

pub use error::Error;
