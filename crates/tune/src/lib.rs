//! Measures backups and restores of one database: the experiments of the articles, one call each,
//! and the procedure that finds the settings which suit a database.
//!
//! | module | what |
//! |---|---|
//! | `measure` | one run: a pipeline request, its report, its processor time |
//! | `target` | where a restore that is measured goes |
//! | `sample` | a snapshot of which only pieces are read |
//! | `rounds` | repetitions, variants taking turns; medians and spread |
//! | `article` | the figures that the articles publish |
//! | [`experiment`] | compression, devices, stages, restore |
//! | [`advice`] | read ceiling, compression, devices: what to use, and what to expect of it |
//! | `present` | results as a report, a text, JSON |
//!
//! Neighbours: `pipeline` below does the work that is measured; `report` below holds what comes out;
//! the command line above asks, prints and writes files.
//!
//! Invariants:
//! 1. The database is only read, as a copy-only backup reads it: whatever counts from its last full
//!    backup still does. Everything that a measurement writes lies in temporary folders of its own
//!    and is removed, also after an error or Ctrl-C.
//! 2. All measurements come from one place, `measure`, and mean the same: from opening the database
//!    or the media to the last sync.
//! 3. Variants that are compared take turns within each round, so that drift hits all alike.
#![forbid(unsafe_code)]

pub mod advice;
mod article;
mod database;
mod error;
pub mod experiment;
mod measure;
mod present;
mod rounds;
mod sample;
mod target;

pub use database::{CachePolicy, Database};
pub use error::Error;
pub use measure::{Measured, Scope};
pub use present::Outcome;
