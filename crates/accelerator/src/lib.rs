//! DEFLATE implementations that are not bundled: the system's Intel ISA-L and, if there is a
//! device, Intel QAT.
//!
//! Both are shared libraries loaded at run time; without them `windlass-codec` uses the bundled
//! one. All write the same format. Neighbours: `windlass-codec` declares the traits that are
//! implemented here, `windlass-pipeline` passes the implementations on.
//!
//! Invariants:
//! 1. A library or device that is missing, fails its self-test or fails later never makes a backup fail.
//! 2. Nothing is expanded here: data from media go to the bundled library.
#![expect(
    unsafe_code,
    reason = "calls into C libraries that are loaded at run time"
)]

mod accelerator;
mod isal;
mod qatzip;
mod status;

pub use accelerator::{Accelerator, Offload};
pub use isal::{ISAL_LEVEL, ISAL_LEVEL_MAX, ISAL_LIBRARY, Isal, IsalUnavailable};
pub use qatzip::{QATZIP_LIBRARIES, QatProblem, QatVersions};
pub use status::Status;
