//! The way of Windlass' own commands through the local socket: batches there, events back.
//!
//! A client says `W`, then one JSON object per line; so does the server. Unlike TDS this brings everything that a
//! command shows: progress, plans and reports. Version [`VERSION`] of both sides must be the same: they are the
//! same program.
//!
//! | from the client | |
//! |---|---|
//! | `{"hello": 2, "program": "windlass sql", "host": "...", "process": 1, "folder": "/home/me"}` | first |
//! | `{"batch": "SELECT 1", "first_line": 1}` | a batch, after the end of the one before |
//! | `{"cancel": true}` | cancels the running batch |
//!
//! | from the server | |
//! |---|---|
//! | `{"ready": 2, "session_id": 51, "database": "master"}` | the answer to the first line |
//! | `{"message": ...}`, `{"columns": ...}`, `{"row": ...}`, `{"rows_end": 1}`, `{"rows_affected": 1}`, `{"progress": ...}`, `{"plan": "..."}`, `{"report": ...}` | what the batch yields |
//! | `{"end": "clean", "database": "master", "in_transaction": false}` | its end |
//!
//! - `event`: events as JSON, and back.
//! - `serving`: the server's side.
//! - [`client`]: the client's side.

pub(crate) mod client;
mod event;
pub(crate) mod serving;

pub use event::{Render, Rendered};

/// Changes with every change of the lines.
pub(crate) const VERSION: u64 = 2;

/// The first byte of such a connection.
pub(crate) const GREETING: u8 = b'W';
