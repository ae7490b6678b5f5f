//! The row of `sys.dm_server_accelerator_status`.

use crate::accelerator::{Accelerator, Offload};
use crate::qatzip::QatProblem;

/// The row; field names are column names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// NONE, SOFTWARE or HARDWARE.
    pub mode_desc: &'static str,
    /// The reason, in SQL Server's words if it has some.
    pub mode_reason_desc: &'static str,
    /// 1 if a device was found.
    pub accelerator_hardware_detected: u8,
    /// Of `libqatzip`, if it works and reports it.
    pub accelerator_library_version: Option<String>,
    /// Of the device's kernel driver, if `libqatzip` reports it.
    pub accelerator_driver_version: Option<String>,
    /// A Windlass column: what compresses if no device does.
    pub software_desc: &'static str,
    /// A Windlass column: the problem, in a sentence.
    pub problem_desc: Option<String>,
}

impl Status {
    /// The state of `accelerator` under these options.
    pub fn of(accelerator: &Accelerator, offload: Offload) -> Self {
        let (mode_desc, mode_reason_desc) = mode(offload, accelerator.problem());
        let versions = accelerator.versions();
        let problem = accelerator.problem();
        Self {
            mode_desc,
            mode_reason_desc,
            accelerator_hardware_detected: u8::from(accelerator.is_hardware_detected()),
            accelerator_library_version: versions.library,
            accelerator_driver_version: versions.driver,
            software_desc: accelerator.software(),
            problem_desc: problem.map(|problem| problem.to_string()),
        }
    }
}

fn mode(offload: Offload, problem: Option<QatProblem>) -> (&'static str, &'static str) {
    match (offload, problem) {
        (Offload::NotEnabled, _) => ("NONE", "NONE_HARDWARE_OFFLOAD_NOT_ENABLED"),
        (Offload::NotConfigured, _) => ("NONE", "NONE_ACCELERATOR_CONFIG_NOT_ENABLED"),
        (Offload::SoftwareOnly, _) => ("SOFTWARE", "SOFTWARE_MODE_SOFTWARE_FORCE_OVERRIDE"),
        (Offload::Automatic, None) => ("HARDWARE", "HARDWARE_MODE_ENTERPRISE_SKU"),
        (Offload::Automatic, Some(problem)) => ("SOFTWARE", reason(problem)),
    }
}

/// SQL Server has no software mode without the vendor's library; Windlass always has one.
fn reason(problem: QatProblem) -> &'static str {
    match problem {
        QatProblem::LibraryNotFound | QatProblem::NoDevice => {
            "SOFTWARE_MODE_ACCELERATOR_HARDWARE_NOT_FOUND"
        }
        QatProblem::Incompatible => "SOFTWARE_MODE_ACCELERATOR_VERSION_NOT_COMPATIBLE",
        QatProblem::StartFailed(_) => "SOFTWARE_MODE_ACCELERATOR_INITIALIZATION_FAILED",
        QatProblem::SessionFailed(_) | QatProblem::DeviceFailed(_) => {
            "SOFTWARE_MODE_ACCELERATOR_SESSION_FAILED"
        }
    }
}
