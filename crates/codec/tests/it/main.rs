//! What the codecs promise, tested through the public interface.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test stops at the first surprise and says what it skips"
)]

mod contents;
mod hostile;
mod independent;
mod round_trip;
mod sql_server;
