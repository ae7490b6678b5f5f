//! Makers of DEFLATE that are not bundled: the system's Intel ISA-L and, when a device is there,
//! Intel QAT.
//!
//! Both are shared libraries that are looked for when the program runs; without them `windlass-codec`
//! uses the one it brings. All write the same format. Neighbours: `windlass-codec` declares the traits
//! that are implemented here, `windlass-pipeline` passes them on.
//!
//! Invariants:
//! 1. A library or a device that is missing, fails its trial or fails later never fails a backup.
//! 2. Nothing is expanded here: what comes from media goes to the bundled library.
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
