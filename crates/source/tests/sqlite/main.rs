//! `SQLite` databases through both traits: pinned, read, written, compared.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![expect(
    clippy::print_stdout,
    reason = "what was skipped must be heard of; helpers answer on it"
)]

mod aliased;
mod content;
mod corpus;
mod following;
mod locks;
mod media;
mod process;
mod restoring;
mod sequences;
mod support;
mod temporary_copy;
mod watched;
mod writers;
