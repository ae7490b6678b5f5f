//! `SQLite` databases through both traits: pinned, read, written, compared.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![expect(clippy::print_stdout, reason = "what was skipped must be heard of")]

mod corpus;
mod support;
