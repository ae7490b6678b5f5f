//! `sp_windlass_restore_folder`: the folders to which restores are confined. A Windlass extension.

use windlass_base::message::table;

use super::Arguments;
use crate::{Column, ColumnType, Failure, ResultSet, Session, Sink, Value};

/// `sp_windlass_restore_folder '/srv/restores'` allows restores to that folder; as soon as one
/// folder is listed, they cannot go anywhere else. With `'drop'` as second argument it removes the
/// folder from the list; without arguments it lists the folders.
pub(super) fn restore_folder(
    session: &mut Session,
    arguments: &Arguments<'_>,
    sink: &mut dyn Sink,
) -> Result<(), Failure> {
    let drives = session.instance().drives().clone();
    let catalog = session.instance_mut().catalog_mut();
    let Some(folder) = arguments.optional("@folder") else {
        let folders = catalog.restore_folders()?;
        let row = |folder: &std::path::PathBuf| vec![Value::Text(folder.display().to_string())];
        let rows = folders.iter().map(row).collect();
        let columns = vec![Column::new("folder", ColumnType::NVarChar(260))];
        ResultSet { columns, rows }.send(sink);
        return Ok(());
    };
    let folder = crate::absolute(&drives.based(folder.into()))
        .map_err(|_| Failure::from(table::invalid_parameter("@folder")))?;
    match arguments.optional("@action").as_deref() {
        None => match folder.is_dir() {
            true => Ok(catalog.add_restore_folder(&folder)?),
            false => Err(table::invalid_parameter("@folder").into()),
        },
        Some("drop") if catalog.remove_restore_folder(&folder)? => Ok(()),
        Some("drop") => Err(table::invalid_parameter("@folder").into()),
        Some(_) => Err(table::invalid_parameter("@action").into()),
    }
}
