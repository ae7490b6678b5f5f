//! `sp_attach_db`, `sp_attach_single_file_db`, `sp_helpdb`.

use windlass_base::message::table;
use windlass_catalog::DatabaseRecord;

use super::Arguments;
use crate::tsql::database;
use crate::{Column, ColumnType, Failure, ResultSet, Session, Sink, Value};

/// `sp_attach_db`
pub(super) fn attach(
    session: &mut Session,
    arguments: &Arguments<'_>,
    sink: &mut dyn Sink,
) -> Result<(), Failure> {
    let name = arguments.required("@dbname")?;
    if arguments.value("@filename2").is_some() {
        return Err(table::two_files_not_supported().into());
    }
    let path = match arguments.optional("@physname") {
        Some(path) => path,
        None => arguments.required("@filename1")?,
    };
    database::attach(session, &name, &path, None, false)?;
    sink.message(table::database_attached(&name));
    Ok(())
}

/// `sp_helpdb [name]`
pub(super) fn help(
    session: &mut Session,
    name: Option<&str>,
    sink: &mut dyn Sink,
) -> Result<(), Failure> {
    let records = match name {
        Some(name) => {
            let found = session.instance.database(name)?;
            vec![
                found
                    .ok_or_else(|| Failure::from(table::database_not_found_for_procedure(name)))?,
            ]
        }
        None => session.instance.catalog().databases()?,
    };
    let text = |name: &str, length| Column::new(name, ColumnType::NVarChar(length));
    let databases = ResultSet {
        columns: vec![
            text("name", 128),
            text("db_size", 13),
            text("owner", 128),
            Column::new("dbid", ColumnType::SmallInt),
            text("created", 11),
            text("status", 600),
            Column::new("compatibility_level", ColumnType::TinyInt),
        ],
        rows: records
            .iter()
            .map(|record| database_row(session, record))
            .collect(),
    };
    databases.send(sink);
    if name.is_some() {
        let files = ResultSet {
            columns: vec![
                text("name", 128),
                Column::new("fileid", ColumnType::SmallInt),
                text("filename", 260),
                text("filegroup", 128),
                text("size", 18),
                text("usage", 9),
            ],
            rows: records.iter().map(file_row).collect(),
        };
        files.send(sink);
    }
    Ok(())
}

fn file_bytes(record: &DatabaseRecord) -> Option<u64> {
    std::fs::metadata(&record.path)
        .ok()
        .map(|metadata| metadata.len())
}

fn database_row(session: &Session, record: &DatabaseRecord) -> Vec<Value> {
    let size =
        file_bytes(record).map(|bytes| format!("{:.2} MB", bytes as f64 / f64::from(1 << 20)));
    let status = format!(
        "Status={}, Updateability=READ_WRITE, Recovery=SIMPLE",
        record.state.name()
    );
    vec![
        Value::text(&record.name),
        Value::optional_text(size.as_deref()),
        Value::text(&session.instance.identity().user),
        Value::Integer(record.database_id),
        Value::Text(
            record
                .create_date
                .to_civil()
                .strftime("%b %e %Y")
                .to_string(),
        ),
        Value::Text(status),
        Value::Integer(170),
    ]
}

fn file_row(record: &DatabaseRecord) -> Vec<Value> {
    let size = file_bytes(record).map(|bytes| format!("{} KB", bytes.div_ceil(1024)));
    vec![
        Value::text(&record.logical_name),
        Value::Integer(1),
        Value::Text(record.path.display().to_string()),
        Value::text("PRIMARY"),
        Value::optional_text(size.as_deref()),
        Value::text("data only"),
    ]
}
