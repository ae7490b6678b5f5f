//! Measures backups and restores of one database: the experiments of the articles, one call each,
//! and the procedure that finds the best settings for a database.
//!
//! | module | what |
//! |---|---|
//! | `measure` | one run: a pipeline request, its report, its CPU time |
//! | `memory` | the memory that is free |
//! | `target` | the target of a measured restore |
//! | `raw` | the write ceiling of the devices |
//! | `sample` | a snapshot that is only partly read |
//! | `rounds` | repetitions with alternating variants; medians and spread |
//! | `article` | the figures published in the articles |
//! | [`experiment`] | compression, devices, stages, restore |
//! | [`advice`] | read ceiling, compression, devices: recommended settings and their expected result |
//! | `present` | results as a report, a text, JSON |
//!
//! Neighbours: `pipeline` below does the measured work; `report` below has the types of the
//! results; the command line above takes requests, prints and writes files.
//!
//! Invariants:
//! 1. The database is only read, as by a copy-only backup, so its differential base does not
//!    change. Everything that a measurement writes is in its own temporary folders and is removed,
//!    even after an error or Ctrl-C.
//! 2. All measurements are made in one place, `measure`, over the same interval: from opening the
//!    database or the media to the last sync.
//! 3. Compared variants alternate within each round, so that drift affects all alike.
#![forbid(unsafe_code)]

pub mod advice;
mod article;
mod database;
mod error;
pub mod experiment;
mod measure;
mod memory;
mod present;
mod raw;
mod rounds;
mod sample;
mod target;

pub use database::{CachePolicy, Database};
pub use error::Error;
pub use measure::{Measured, Scope};
pub use present::Outcome;
