//! Files that a killed creation, import or export has left under a temporary name.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use windlass_catalog::Catalog;
use windlass_device::DeviceAddress;
use windlass_io::own;
use windlass_media::{FIRST_BYTES, begins_medium};

/// The files in the folders of the instance's databases that nobody is making any more, and their lengths.
pub(super) fn find(
    instance: &Path,
    catalog: &Catalog,
) -> Result<Vec<(PathBuf, u64)>, windlass_catalog::Error> {
    let mut folders = BTreeSet::from([instance.join("data")]);
    for record in catalog.databases()? {
        let files = catalog.files(record.database_id)?;
        let paths = files.into_iter().map(|file| file.path);
        let paths = paths.chain([record.path]).chain(record.log_path);
        folders.extend(paths.filter_map(|path| path.parent().map(Path::to_owned)));
    }
    let mut found = Vec::new();
    for folder in folders {
        let Ok(entries) = std::fs::read_dir(folder) else {
            continue;
        };
        for entry in entries.flatten() {
            let is_unnamed = entry
                .file_name()
                .to_string_lossy()
                .ends_with(own::UNNAMED_SUFFIX);
            let metadata = entry.metadata().ok().filter(std::fs::Metadata::is_file);
            if let Some(metadata) = metadata.filter(|_| is_unnamed) {
                let path = entry.path();
                if own::maker(&path).is_none() && !is_medium(&path) {
                    found.push((path, metadata.len()));
                }
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Whether it is of a backup that was interrupted while its media were given their names.
fn is_medium(path: &Path) -> bool {
    begins_medium(&DeviceAddress::disk(path).begin(FIRST_BYTES))
}
