//! Files in a folder that are no media, and whether they may have been some.

use std::collections::BTreeSet;
use std::path::Path;

use windlass_device::DeviceAddress;
use windlass_media::MediaError;
use windlass_pipeline::Error as PipelineError;

use crate::names::is_own_side_file;

/// Why a file is no medium yet.
const UNFINISHED: &str =
    "unfinished, by its name: a backup or restore writes it now, or was killed";

/// Why a link is no medium.
const LINK: &str =
    "it is a link to another folder, and links are not followed; name what it leads to";

/// Why a file that begins as a medium is none.
const WITHOUT_SETS: &str =
    "it begins as a medium, but no backup set can be found on it: it has lost a part";

/// Bytes at the start of a file in which blocks of a medium are searched.
const START_BYTES: usize = 64 << 10;

/// The smallest block of a medium.
const BLOCK_BYTES: usize = 512;

/// Extensions that backups usually have.
pub(super) const EXTENSIONS: [&str; 5] = ["bak", "sqb", "dif", "diff", "trn"];

pub(super) fn has_usual_extension(device: &DeviceAddress) -> bool {
    extension(device).is_some_and(|own| EXTENSIONS.contains(&own.as_str()))
}

pub(super) fn extension(device: &DeviceAddress) -> Option<String> {
    let path = match device.file() {
        Some(path) => path,
        None => Path::new(device.url()?.key()),
    };
    Some(path.extension()?.to_str()?.to_lowercase())
}

/// What a file is that is not taken for media.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Is {
    /// It could not be read, so that nobody knows.
    Unknown,
    /// A whole medium of another program.
    Foreign,
    /// What is left of a medium.
    Remnant,
    /// Without a byte, as files are after a crash.
    Empty,
    /// All zeros, as files are after a crash.
    Blank,
    Other,
}

/// Why a file is not taken for media.
pub(super) struct NotMedia {
    pub(super) reason: String,
    is: Is,
}

impl NotMedia {
    fn new(reason: &str, is: Is) -> Self {
        let reason = reason.to_owned();
        Self { reason, is }
    }

    /// A file under the name that it has until it is complete.
    pub(super) fn unfinished() -> Self {
        Self::new(UNFINISHED, Is::Other)
    }

    /// A link to another place, which may not be mounted.
    pub(super) fn link() -> Self {
        Self::new(LINK, Is::Unknown)
    }

    /// A medium of which only the beginning is left: every backup puts a set on it before it has its name.
    pub(super) fn without_sets() -> Self {
        Self::new(WITHOUT_SETS, Is::Remnant)
    }

    pub(super) fn of(error: &PipelineError) -> Self {
        // The reports of it name the file.
        let reason = match error {
            PipelineError::Media { source, .. } => source.to_string(),
            other => other.to_string(),
        };
        let is = match error {
            PipelineError::Device(_) => Is::Unknown,
            PipelineError::VolumeEmpty { .. } => Is::Empty,
            PipelineError::Media { source, .. } => match source {
                MediaError::SqlServerMedia { .. } | MediaError::ForeignMtf { .. } => Is::Foreign,
                MediaError::NotMtf { found } if found.iter().all(|byte| *byte == 0) => Is::Blank,
                _ => Is::Other,
            },
            _ => Is::Other,
        };
        Self { reason, is }
    }

    /// Whether it could not be read.
    pub(super) fn is_unknown(&self) -> bool {
        self.is == Is::Unknown
    }

    /// Whether backup sets were on the file, or may be, that nobody can see. `extensions` are those of media.
    pub(super) fn may_hide_sets(
        &self,
        device: &DeviceAddress,
        extensions: &BTreeSet<String>,
    ) -> bool {
        let own = extension(device);
        let is_named_so = own.as_ref().is_some_and(|own| extensions.contains(own));
        match self.is {
            Is::Remnant => true,
            // No store shows half an object: this is what its console makes of a folder.
            Is::Empty if device.is_object() => is_named_so,
            Is::Unknown | Is::Empty | Is::Blank => is_named_so || own.is_none(),
            Is::Foreign | Is::Other => false,
        }
    }

    /// Whether the file may have been a medium: nobody can read it, it has the extension of one, or it begins
    /// like one.
    pub(super) fn may_be_medium(
        &self,
        device: &DeviceAddress,
        extensions: &BTreeSet<String>,
    ) -> bool {
        match self.is {
            Is::Unknown => return true,
            Is::Foreign => return false,
            Is::Remnant | Is::Empty | Is::Blank | Is::Other => {}
        }
        if device.file().is_some_and(is_own_side_file) {
            return false;
        }
        let mut start = vec![0; START_BYTES];
        let reader = device.clone().beside_writers().open_reader();
        match reader.and_then(|reader| reader.read_at(&mut start, 0)) {
            Ok(count) => start.truncate(count),
            Err(_) => return true,
        }
        if windlass_source::part_of_database(&start).is_some() {
            return false;
        }
        let begins = |block: &[u8]| {
            let names = [&b"TAPE"[..], b"SFMB", b"SSET"];
            names.iter().any(|name| block.starts_with(name))
        };
        extension(device).is_some_and(|own| extensions.contains(&own))
            || start.chunks(BLOCK_BYTES).any(begins)
    }
}
