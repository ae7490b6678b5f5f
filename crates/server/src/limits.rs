//! How much clients may take.

use std::time::Duration;

/// Bounds for all clients, and for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Connections at once, logged in or not.
    pub connections: usize,
    /// Connections at once that have not logged in, from one address.
    pub logins_per_address: usize,
    /// Time from the first byte to the login.
    pub login_time: Duration,
    /// Length of a message before the login, in bytes.
    pub login_bytes: usize,
    /// Length of a batch or call, in bytes.
    pub request_bytes: usize,
    /// Prepared statements of a session.
    pub prepared: usize,
    /// Tokens of an answer that wait for the client, in bytes.
    pub answer_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 512,
            logins_per_address: 64,
            login_time: Duration::from_secs(15),
            login_bytes: 64 << 10,
            request_bytes: 16 << 20,
            prepared: 1000,
            answer_bytes: 64 << 10,
        }
    }
}
