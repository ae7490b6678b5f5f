//! `sp_windlass_remote_folder`: where remote sessions may name files, besides the mapped drives. A Windlass
//! extension.

use std::path::{Path, PathBuf};

use windlass_base::message::table;

use super::Arguments;
use crate::operation::check_url;
use crate::{Column, ColumnType, Failure, ResultSet, Session, Sink, Value};

/// `sp_windlass_remote_folder '/srv/backups'` lets remote sessions name files below that folder, and
/// `'s3://host.example/bucket'` objects below that URL. With `'drop'` as second argument it takes that back; without
/// arguments it lists both.
pub(super) fn remote_folder(
    session: &mut Session,
    arguments: &Arguments<'_>,
    sink: &mut dyn Sink,
) -> Result<(), Failure> {
    let drives = session.instance().drives().clone();
    let Some(written) = arguments.optional("@folder") else {
        let folders = session.instance().catalog().remote_folders()?.into_iter();
        let rows = folders.map(|folder| vec![Value::Text(folder)]).collect();
        let columns = vec![Column::new("folder", ColumnType::NVarChar(260))];
        ResultSet { columns, rows }.send(sink);
        return Ok(());
    };
    let invalid = |name| Failure::from(table::invalid_parameter(name));
    let is_url = crate::is_url(&written);
    let folder = match is_url {
        true => {
            // What is listed already can be taken back.
            if arguments.optional("@action").is_none() {
                check_url(session, &written)?;
            }
            written.trim().to_owned()
        }
        false => crate::absolute(&drives.based(PathBuf::from(&written)))
            .ok()
            .and_then(|folder| folder.to_str().map(str::to_owned))
            .ok_or_else(|| invalid("@folder"))?,
    };
    let catalog = session.instance_mut().catalog_mut();
    match arguments.optional("@action").as_deref() {
        None if is_url || Path::new(&folder).is_dir() => Ok(catalog.add_remote_folder(&folder)?),
        Some("drop") if catalog.remove_remote_folder(&folder)? => Ok(()),
        None | Some("drop") => Err(invalid("@folder")),
        Some(_) => Err(invalid("@action")),
    }
}
