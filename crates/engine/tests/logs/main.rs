//! Log backups: random histories, of which random moments are restored through random chains and compared with a
//! model; and chains that must be refused.
#![expect(clippy::unwrap_used, reason = "a test ends at the first failure")]

mod chains;
mod files;
mod histories;
mod pages;
mod space;
mod world;
