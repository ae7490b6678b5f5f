//! Fast DEFLATE implementations: Intel ISA-L and, if there is a device, Intel QAT.
//!
//! ISA-L is built in where there are a C compiler and `nasm` (`build.rs`); else the system's is loaded at run
//! time. QAT's library is always loaded at run time. Without any of them `windlass-codec` uses libdeflate. All write the same format. Neighbours: `windlass-codec` declares the traits that are
//! implemented here, `windlass-pipeline` passes the implementations on.
//!
//! Invariants:
//! 1. A library or device that is missing, fails its self-test or fails later never makes a backup fail.
//! 2. Nothing is expanded here: data from media go to the bundled library.
#![expect(
    unsafe_code,
    reason = "calls into C libraries, built in or loaded at run time"
)]

mod accelerator;
mod isal;
mod qatzip;
mod status;

pub use accelerator::{Accelerator, Offload};
pub use isal::{ISAL_LEVEL, ISAL_LEVEL_MAX, ISAL_LIBRARY, Isal, IsalOrigin, IsalUnavailable};
pub use qatzip::{QATZIP_LIBRARIES, QatProblem, QatVersions};
pub use status::Status;
