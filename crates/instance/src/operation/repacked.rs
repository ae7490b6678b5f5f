//! Rows about sets that were copied from SQL Server's: what SQL Server says of the original, and what
//! the media say of the copy.

use windlass_bak::{Original, columns};

use super::media_rows;
use super::sql_server::value;
use crate::{ResultSet, Value};

/// The columns of HEADERONLY that are about the copy.
const OF_COPY: [&str; 13] = [
    "BackupName",
    "BackupDescription",
    "ExpirationDate",
    "Compressed",
    "Position",
    "DeviceType",
    "BackupSize",
    "IsDamaged",
    "CompressedBackupSize",
    "KeyAlgorithm",
    "EncryptorThumbprint",
    "EncryptorType",
    "CompressionAlgorithm",
];

/// Writes what SQL Server says of the original to a row of HEADERONLY.
pub(super) fn header(row: &mut [Value], original: &Original) {
    let columns = media_rows::header_columns();
    for (name, cell) in columns::header(&original.listing, None) {
        let index = columns.iter().position(|column| column.name == name);
        let of_copy = OF_COPY.contains(&name);
        if let Some(slot) = index
            .filter(|_| !of_copy)
            .and_then(|index| row.get_mut(index))
        {
            *slot = value(cell);
        }
    }
}

/// The rows of FILELISTONLY: the files of the database.
pub(super) fn file_list(original: &Original) -> ResultSet {
    let rows = columns::file_list(&original.listing);
    let values = |row: columns::Row| row.into_iter().map(|(_, cell)| value(cell)).collect();
    ResultSet {
        columns: super::columns::headings(&media_rows::file_columns()),
        rows: rows.into_iter().map(values).collect(),
    }
}
