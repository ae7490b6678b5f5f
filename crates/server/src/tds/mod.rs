//! A client's connection in TDS, from the first byte to the last.
//!
//! | module | what |
//! |---|---|
//! | `connection` | the connection's two threads, and its requests in turn |
//! | `greeting` | PRELOGIN and TLS |
//! | `login` | LOGIN7, and its answer |
//! | `note` | messages, as tokens |
//! | `reply` | what a session yields, as tokens |
//! | `column`, `parameter` | types and values, to and from the protocol |
//! | `call` | remote procedure calls |

mod call;
mod column;
pub(crate) mod connection;
mod greeting;
mod login;
mod note;
mod parameter;
mod reply;
