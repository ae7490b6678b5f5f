//! `sp_windlass_drive`: maps drive letters to folders. A Windlass extension.

use windlass_base::message::table;
use windlass_catalog::Drive;

use super::Arguments;
use crate::message_of::unreadable_file;
use crate::{Column, ColumnType, Failure, ResultSet, Session, Sink, Value};

/// `sp_windlass_drive 'd', '/srv/d'` maps a drive permanently; an empty folder removes the mapping;
/// without arguments it lists all mappings.
pub(super) fn drive(
    session: &mut Session,
    arguments: &Arguments<'_>,
    sink: &mut dyn Sink,
) -> Result<(), Failure> {
    let Some(letter) = arguments.optional("@letter") else {
        list_drives(session, sink);
        return Ok(());
    };
    let mut characters = letter.trim_end_matches(['\\', '/', ':']).chars();
    let letter = match (characters.next(), characters.next()) {
        (Some(letter), None) if letter.is_ascii_alphabetic() => letter,
        _ => return Err(table::invalid_parameter("@letter").into()),
    };
    let folder = arguments.required("@folder")?;
    if folder.is_empty() {
        return Ok(session.instance_mut().forget_drive(letter)?);
    }
    let folder = session.instance().drives().based(folder.into());
    let folder =
        crate::absolute(&folder).map_err(|_| Failure::from(table::invalid_parameter("@folder")))?;
    let found = std::fs::metadata(&folder).and_then(|found| match found.is_dir() {
        true => Ok(()),
        false => Err(std::io::Error::other("it is no folder")),
    });
    found.map_err(|error| unreadable_file(&folder, &error))?;
    let drive = Drive {
        letter: letter.to_ascii_uppercase(),
        folder,
    };
    let letter = drive.letter;
    session.instance_mut().keep_drive(drive)?;
    if session.instance().folder().is_none() {
        sink.message(table::drive_of_this_run(letter));
    }
    Ok(())
}

fn list_drives(session: &Session, sink: &mut dyn Sink) {
    let rows = session.instance().drives().list().iter();
    let result = ResultSet {
        columns: vec![
            Column::new("letter", ColumnType::NChar(1)),
            Column::new("folder", ColumnType::NVarChar(260)),
        ],
        rows: rows
            .map(|drive| {
                vec![
                    Value::text(drive.letter),
                    Value::Text(drive.folder.display().to_string()),
                ]
            })
            .collect(),
    };
    result.send(sink);
}
