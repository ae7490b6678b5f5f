//! `sp_addumpdevice`, `sp_dropdevice`: names for backup files.

use windlass_base::message::table;
use windlass_catalog::BackupDevice;

use super::Arguments;
use crate::message_of::unreadable_file;
use crate::{Failure, Session};

const NAME_CHARACTERS_MAX: usize = 128;

/// `sp_addumpdevice 'disk', 'logical', 'path'`, or `'url', 'logical', 's3://...'`: an extension
pub(super) fn add(session: &mut Session, arguments: &Arguments<'_>) -> Result<(), Failure> {
    let device_type = arguments.required("@devtype")?;
    let name = arguments.required("@logicalname")?;
    let physical_name = arguments.required("@physicalname")?;
    let is_url = match device_type.to_ascii_lowercase().as_str() {
        "disk" => false,
        "url" => true,
        "tape" => {
            return Err(table::tape_device_not_supported().into());
        }
        _ => return Err(table::device_type_unknown(&device_type).into()),
    };
    if name.is_empty() || name.chars().count() > NAME_CHARACTERS_MAX {
        return Err(table::invalid_parameter("@logicalname").into());
    }
    for ignored in ["@cntrltype", "@devstatus"] {
        if arguments.value(ignored).is_some() {
            return Err(table::device_argument_not_supported(ignored).into());
        }
    }
    // Reports an invalid path or URL now rather than at the first backup.
    match is_url {
        true => {
            crate::operation::check_url(session, &physical_name)?;
        }
        false => {
            session.instance.drives().disk_device(&physical_name)?;
        }
    }
    let device = BackupDevice {
        name,
        physical_name,
    };
    match session.instance.catalog_mut().add_backup_device(&device)? {
        true => Ok(()),
        false => Err(table::device_exists(&device.name).into()),
    }
}

/// `sp_dropdevice 'logical' [, 'delfile']`
pub(super) fn drop(session: &mut Session, arguments: &Arguments<'_>) -> Result<(), Failure> {
    let name = arguments.required("@logicalname")?;
    let delete = match arguments.optional("@delfile").as_deref() {
        None | Some("") => false,
        Some(word) if word.eq_ignore_ascii_case("delfile") => true,
        Some(_) => return Err(table::invalid_parameter("@delfile").into()),
    };
    let catalog = session.instance.catalog();
    let Some(device) = catalog.backup_device(&name)? else {
        return Err(table::device_unknown(&name).into());
    };
    if delete {
        delete_file(session, &device)?;
    }
    session.instance.catalog_mut().drop_backup_device(&name)?;
    Ok(())
}

/// Deletes the file of a device if it is a backup: a mistyped device must not delete anything else.
fn delete_file(session: &Session, device: &BackupDevice) -> Result<(), Failure> {
    let address = session
        .instance
        .drives()
        .disk_device(&device.physical_name)?;
    let Some(file) = address.file().filter(|file| file.exists()) else {
        return Ok(());
    };
    windlass_pipeline::MediaSet::open_any(std::slice::from_ref(&address))?;
    std::fs::remove_file(file).map_err(|error| unreadable_file(file, &error).into())
}
