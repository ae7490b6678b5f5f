//! One restore of a plan.

use windlass_media::{SetConfiguration, SourceKind};
use windlass_source::Recovery;
use windlass_source::engine::describe;

use super::{RestoreKind, RestoreOptions};
use crate::operation::DeviceName;
use crate::operation::media::MediaOptions;

/// A set to restore.
#[derive(Debug, Clone)]
pub struct Step {
    pub devices: Vec<DeviceName>,
    pub position: u16,
    pub set: SetConfiguration,
}

impl Step {
    /// Whether the set has a file of this logical name, as far as its description says.
    pub fn has_file(&self, logical: &str) -> bool {
        let described = (self.set.source_kind == SourceKind::Engine)
            .then(|| describe(&self.set.source_description).ok())
            .flatten();
        described.is_none_or(|described| {
            let log = std::iter::once(described.log_file());
            let mut files = described.data_files().iter().chain(log);
            files.any(|file| file.logical_name.eq_ignore_ascii_case(logical))
        })
    }

    /// Its restore WITH NORECOVERY, and for the rest as `others` say.
    pub fn restore(self, others: RestoreOptions) -> RestoreOptions {
        RestoreOptions {
            media: MediaOptions {
                devices: self.devices,
                position: Some(self.position.into()),
                ..others.media
            },
            wants: Some(RestoreKind::of(self.set.set_type)),
            recovery: Recovery::NoRecovery,
            ..others
        }
    }
}
