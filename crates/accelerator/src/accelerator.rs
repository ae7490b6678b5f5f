//! Selects what compresses `QAT_DEFLATE`, from what is installed and what the server options allow.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use windlass_codec::{DeflateFailed, DeflateProvider, RawDeflate};

use crate::isal::{Isal, IsalUnavailable};
use crate::qatzip::{Qat, QatProblem, QatSession, QatVersions};

/// The server options for the accelerator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offload {
    /// `hardware offload enabled` is 0.
    NotEnabled,
    /// `ALTER SERVER CONFIGURATION SET HARDWARE_OFFLOAD` has not named QAT.
    NotConfigured,
    /// `MODE = SOFTWARE`.
    SoftwareOnly,
    /// The device if there is one.
    Automatic,
}

/// The installed libraries: detected once, shared by all threads.
#[derive(Debug)]
pub struct Accelerator {
    isal: Result<Isal, IsalUnavailable>,
    qat: Result<Qat, QatProblem>,
    /// The last failure of a device that had worked, and the number of failures.
    failed: Mutex<Option<(QatProblem, u64)>>,
}

impl Accelerator {
    /// Finds both libraries and tests them. `libqatzip` is loaded from `qatzip` only, if given.
    pub fn detect(qatzip: Option<&Path>) -> Self {
        Self {
            isal: Isal::find(),
            qat: Qat::load(qatzip),
            failed: Mutex::new(None),
        }
    }

    /// As [`Accelerator::detect`], but as if ISA-L were not installed: for tests.
    #[doc(hidden)]
    pub fn detect_without_isal(qatzip: Option<&Path>) -> Self {
        Self {
            isal: Err(IsalUnavailable::NotFound),
            ..Self::detect(qatzip)
        }
    }

    /// The provider of compressors under these options.
    pub fn provider(self: &Arc<Self>, offload: Offload) -> Arc<dyn DeflateProvider> {
        Arc::new(Provider {
            accelerator: Arc::clone(self),
            uses_device: offload == Offload::Automatic,
        })
    }

    /// The software that compresses if no device does.
    pub fn software(&self) -> &'static str {
        match &self.isal {
            Ok(isal) => isal.origin().name(),
            Err(_) => "libdeflate",
        }
    }

    /// The versions reported by `libqatzip`, if it works.
    pub fn versions(&self) -> QatVersions {
        self.qat
            .as_ref()
            .map(|qat| qat.versions().clone())
            .unwrap_or_default()
    }

    /// Whether a device was detected at the start.
    pub fn is_hardware_detected(&self) -> bool {
        self.qat.is_ok()
    }

    /// What prevents a device from compressing, if anything.
    pub fn problem(&self) -> Option<QatProblem> {
        match &self.qat {
            Err(problem) => Some(*problem),
            Ok(_) => self.failure().map(|(problem, _)| problem),
        }
    }

    /// The last failure of a device that had worked, and the number of lost sessions.
    pub fn failure(&self) -> Option<(QatProblem, u64)> {
        *self.failed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn record(&self, problem: QatProblem) {
        let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        let count = failed.map_or(0, |(_, count)| count);
        *failed = Some((problem, count + 1));
    }
}

#[derive(Debug)]
struct Provider {
    accelerator: Arc<Accelerator>,
    uses_device: bool,
}

impl Provider {
    /// A session with the device; every backup tries again, so a recovered device is used again.
    fn session(&self) -> Option<QatSession> {
        let qat = self.accelerator.qat.as_ref().ok()?;
        if !self.uses_device {
            return None;
        }
        qat.open()
            .map_err(|problem| self.accelerator.record(problem))
            .ok()
    }
}

impl DeflateProvider for Provider {
    fn compressor(&self) -> Option<Box<dyn RawDeflate>> {
        let isal = self.accelerator.isal.as_ref().ok();
        match self.session() {
            Some(session) => Some(Box::new(Falling {
                accelerator: Arc::clone(&self.accelerator),
                session: Some(session),
                software: None,
            })),
            None => isal?.compressor(),
        }
    }
}

/// A session with the device, and its replacement after a failure.
#[derive(Debug)]
struct Falling {
    accelerator: Arc<Accelerator>,
    session: Option<QatSession>,
    software: Option<Box<dyn RawDeflate>>,
}

impl RawDeflate for Falling {
    fn deflate(&mut self, input: &[u8], output: &mut [u8]) -> Result<Option<usize>, DeflateFailed> {
        if let Some(session) = &mut self.session {
            match session.deflate(input, output) {
                Ok(length) => return Ok(length),
                Err(problem) => self.accelerator.record(problem),
            }
            self.session = None;
            let isal = self.accelerator.isal.as_ref().ok();
            self.software = isal.and_then(DeflateProvider::compressor);
        }
        match &mut self.software {
            Some(software) => software.deflate(input, output),
            None => Err(DeflateFailed),
        }
    }
}
