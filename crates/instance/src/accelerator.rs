//! The accelerator as the server options allow it, and as `sys.dm_server_accelerator_status` shows it.
//!
//! Libraries are searched for once per process, on first use.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use serde_json::json;
use windlass_accelerator::{Accelerator, Offload, Status};
use windlass_base::message::table;
use windlass_catalog::{Error, ServerOption};
use windlass_codec::DeflateProvider;

use crate::{Failure, Instance};

/// The bit of Intel QAT in `hardware offload config` and `hardware offload mode`.
pub(crate) const QAT: i64 = 1;

/// Environment variable with the path of a `libqatzip` outside the system's library folders.
const LIBRARY_VARIABLE: &str = "WINDLASS_QATZIP";

/// The steps that allow `QAT_DEFLATE`, in order.
const ENABLE: &str =
    "EXEC sp_configure 'hardware offload enabled', 1 and RECONFIGURE (an advanced option)";
const CONFIGURE: &str = "ALTER SERVER CONFIGURATION SET HARDWARE_OFFLOAD = ON (ACCELERATOR = QAT)";

static DETECTED: OnceLock<Arc<Accelerator>> = OnceLock::new();

fn detected() -> &'static Arc<Accelerator> {
    DETECTED.get_or_init(|| {
        let library = std::env::var_os(LIBRARY_VARIABLE).map(PathBuf::from);
        Arc::new(Accelerator::detect(library.as_deref()))
    })
}

fn offload(enabled: i64, config: i64, mode: i64) -> Offload {
    match (enabled != 0, config & QAT != 0, mode & QAT != 0) {
        (false, ..) => Offload::NotEnabled,
        (true, false, _) => Offload::NotConfigured,
        (true, true, true) => Offload::SoftwareOnly,
        (true, true, false) => Offload::Automatic,
    }
}

/// The columns of the status view that depend on what is installed, as JSON.
pub(crate) fn status(enabled: i64, config: i64, mode: i64) -> String {
    let status = Status::of(detected(), offload(enabled, config, mode));
    json!({
        "mode_desc": status.mode_desc,
        "mode_reason_desc": status.mode_reason_desc,
        "accelerator_hardware_detected": status.accelerator_hardware_detected,
        "accelerator_library_version": status.accelerator_library_version,
        "accelerator_driver_version": status.accelerator_driver_version,
        "software_desc": status.software_desc,
        "problem_desc": status.problem_desc,
    })
    .to_string()
}

/// What compresses `QAT_DEFLATE` where no device does.
pub fn qat_deflate_software() -> &'static str {
    detected().software()
}

impl Instance {
    /// The provider for `QAT_DEFLATE`, chosen by the server options. Software compresses without an instance,
    /// which has no server options.
    ///
    /// # Errors
    /// 17441 if the server options do not allow `QAT_DEFLATE`.
    pub(crate) fn deflate_provider(&self) -> Result<Arc<dyn DeflateProvider>, Failure> {
        let offload = self.offload()?;
        let needed = match offload {
            Offload::NotEnabled => ENABLE,
            Offload::NotConfigured => CONFIGURE,
            Offload::SoftwareOnly | Offload::Automatic => return Ok(detected().provider(offload)),
        };
        Err(Failure::from(table::qat_not_loaded()).then(table::offload_needed(needed)))
    }

    /// What the server options allow; only software without an instance.
    fn offload(&self) -> Result<Offload, Error> {
        if self.folder().is_none() {
            return Ok(Offload::SoftwareOnly);
        }
        let in_use = |option| self.catalog().option_in_use(option);
        Ok(offload(
            in_use(ServerOption::HardwareOffloadEnabled)?,
            in_use(ServerOption::HardwareOffloadConfig)?,
            in_use(ServerOption::HardwareOffloadMode)?,
        ))
    }

    /// Whether the server options allow `QAT_DEFLATE`.
    pub fn allows_qat_deflate(&self) -> bool {
        let allowed = [Offload::SoftwareOnly, Offload::Automatic];
        self.offload()
            .is_ok_and(|offload| allowed.contains(&offload))
    }

    /// Describes the last device failure, if there was one since `since` failures.
    pub(crate) fn device_failure(since: u64) -> Option<impl std::fmt::Display> {
        let (problem, count) = DETECTED.get()?.failure()?;
        (count > since).then_some(problem)
    }

    /// Number of device failures in this process.
    pub(crate) fn device_failures() -> u64 {
        let failure = DETECTED.get().and_then(|accelerator| accelerator.failure());
        failure.map_or(0, |(_, count)| count)
    }
}
