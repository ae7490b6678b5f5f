//! Deterministic simulation of the page engine: a disk that crashes, tears, reorders, fails and
//! fills, and a driver that checks after each crash that exactly the acknowledged commits exist,
//! plus at most the one in flight.
//!
//! A run is determined by its seed: `windlass-sim --seed 17` repeats one, `--seeds 100000` runs
//! many. The engine runs in one thread without background work; the driver steps the recovery
//! writer.
#![forbid(unsafe_code)]

mod copy;
pub mod disk;
mod log;
pub mod outcome;
mod page;
pub mod rng;
mod stale;
pub mod world;

pub use outcome::Outcome;
pub use world::{Steps, run};

/// Prints a step of a single run.
#[expect(clippy::print_stdout, reason = "asked for by --seed")]
pub(crate) fn say(what: &str) {
    println!("{what}");
}
