//! The way of Windlass' own commands into the process that has a database open: through a local socket, batches
//! there, events back. The process is a server, or a program with the loadable extension.
//!
//! A client says `W`, then one JSON object per line; so does the server. Unlike TDS this brings everything that a
//! command shows: progress, plans and reports. Version `VERSION` of both sides must be the same: they are the
//! same program.
//!
//! | from the client | |
//! |---|---|
//! | `{"hello": 5, "program": "windlass sql", "host": "...", "process": 1, "folder": "/home/me"}` | first; beside a database also `"database": "app"`, the name it is to have, `"file": [2049, 131]`, device and inode of the file that is meant, and `"instance": "/srv/instance"`, whose history it is for |
//! | `{"batch": "SELECT 1", "first_line": 1}` | a batch, after the end of the one before |
//! | `{"cancel": true}` | cancels the running batch |
//!
//! | from the server | |
//! |---|---|
//! | `{"heard": 5}` | at once, after the first line |
//! | `{"ready": 5, "session_id": 51, "database": "master"}` | when the session has begun |
//! | `{"refused": "..."}` | instead of either: why there is no session |
//! | `{"message": ...}`, `{"columns": ...}`, `{"row": ...}`, `{"rows_end": 1}`, `{"rows_affected": 1}`, `{"progress": ...}`, `{"plan": "..."}`, `{"report": ...}` | what the batch yields |
//! | `{"end": "clean", "database": "master", "in_transaction": false}` | its end |
//!
//! - [`completed`]: reports as a line and as JSON.
//! - `event`: events as JSON, and back.
//! - [`serving`]: the side of the process that has the database.
//! - [`client`]: the command's side.
//! - [`socket`]: the socket, and who may use it.
//!
//! Neighbours: `windlass-instance` runs the batches; the server and the extension listen, the command line asks.
//!
//! Invariants:
//! 1. Only the user of the process, or root, is served.
//! 2. A client that is gone cancels what it was running.
#![forbid(unsafe_code)]

pub mod client;
pub mod completed;
mod event;
pub mod serving;
pub mod socket;

/// Changes with every change of the lines.
pub(crate) const VERSION: u64 = 5;

/// The first byte of such a connection.
pub const GREETING: u8 = b'W';
