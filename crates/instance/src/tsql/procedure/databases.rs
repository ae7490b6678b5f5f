//! `sp_attach_db`, `sp_attach_single_file_db`, `sp_helpdb`, `sp_helpfile`.

use std::path::PathBuf;

use windlass_base::message::table;
use windlass_catalog::{DatabaseRecord, DatabaseState, FileRecord};
use windlass_engine::{FileSpec, Growth};

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
pub(super) fn help_database(
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
    // Only one database is opened for its sizes.
    let shown = match (name, records.as_slice()) {
        (Some(_), [record]) => files(session, record)?,
        _ => Vec::new(),
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
            .map(|record| database_row(session, record, &shown))
            .collect::<Result<_, _>>()?,
    };
    databases.send(sink);
    if name.is_some() {
        shown_files(&shown).send(sink);
    }
    Ok(())
}

/// `sp_helpfile [name]`: the files of the current database.
pub(super) fn help_file(
    session: &mut Session,
    name: Option<&str>,
    sink: &mut dyn Sink,
) -> Result<(), Failure> {
    let current = session.current_database().to_owned();
    let Some(record) = session.instance.database(&current)? else {
        let hint = "USE a database first; the system databases have no files.";
        let what = format!("sp_helpfile in {current}");
        return Err(table::statement_not_supported(what, hint).into());
    };
    let mut files = files(session, &record)?;
    if let Some(name) = name {
        files.retain(|file| file.name.eq_ignore_ascii_case(name));
        if files.is_empty() {
            return Err(table::logical_file_unknown(name, &record.name).into());
        }
    }
    shown_files(&files).send(sink);
    Ok(())
}

/// A file of a database.
struct HelpedFile {
    id: i64,
    is_log: bool,
    name: String,
    path: PathBuf,
    /// How a database of the page engine, if it could be opened, describes the file.
    spec: Option<FileSpec>,
}

impl HelpedFile {
    /// A new file has its size before it has its bytes.
    fn bytes(&self) -> Option<u64> {
        let own = std::fs::metadata(&self.path).ok();
        let described = self.spec.as_ref().map(|spec| spec.size);
        own.map(|own| own.len()).max(described)
    }
}

fn files(session: &mut Session, record: &DatabaseRecord) -> Result<Vec<HelpedFile>, Failure> {
    let listed = session.instance.catalog().files(record.database_id)?;
    if listed.is_empty() {
        return Ok(vec![HelpedFile {
            id: 1,
            is_log: false,
            name: record.logical_name.clone(),
            path: record.path.clone(),
            spec: None,
        }]);
    }
    let open = match record.state {
        DatabaseState::Online => session.instance.engine(record).ok(),
        DatabaseState::Restoring | DatabaseState::Standby | DatabaseState::Offline => None,
    };
    let specs = open.map(|database| database.files()).unwrap_or_default();
    let file = |file: FileRecord| HelpedFile {
        id: i64::from(file.file_id),
        is_log: file.is_log,
        spec: specs
            .iter()
            .find(|found| found.spec.path == file.path)
            .map(|found| found.spec.clone()),
        name: file.logical_name,
        path: file.path,
    };
    Ok(listed.into_iter().map(file).collect())
}

fn shown_files(files: &[HelpedFile]) -> ResultSet {
    let text = |name: &str, length| Column::new(name, ColumnType::NVarChar(length));
    let kilobytes = |bytes: u64| format!("{} KB", bytes.div_ceil(1024));
    let row = |file: &HelpedFile| {
        let limit = file.spec.as_ref().map(|spec| match spec.max_size {
            Some(bytes) => kilobytes(bytes),
            None => "Unlimited".to_owned(),
        });
        let growth = file.spec.as_ref().map(|spec| match spec.growth {
            Growth::Fixed => "0 KB".to_owned(),
            Growth::Bytes(bytes) => kilobytes(bytes),
            Growth::Percent(percent) => format!("{percent}%"),
        });
        let text = |text: Option<String>| text.map_or(Value::Null, Value::Text);
        vec![
            Value::text(&file.name),
            Value::Integer(file.id),
            Value::Text(file.path.display().to_string()),
            match file.is_log {
                true => Value::Null,
                false => Value::text("PRIMARY"),
            },
            text(file.bytes().map(kilobytes)),
            text(limit),
            text(growth),
            Value::text(if file.is_log { "log only" } else { "data only" }),
        ]
    };
    ResultSet {
        columns: vec![
            text("name", 128),
            Column::new("fileid", ColumnType::SmallInt),
            text("filename", 260),
            text("filegroup", 128),
            text("size", 18),
            text("maxsize", 18),
            text("growth", 18),
            text("usage", 9),
        ],
        rows: files.iter().map(row).collect(),
    }
}

/// The size of all files of a database.
fn database_bytes(
    session: &Session,
    record: &DatabaseRecord,
    shown: &[HelpedFile],
) -> Result<Option<u64>, Failure> {
    if !shown.is_empty() {
        return Ok(shown.iter().map(HelpedFile::bytes).sum());
    }
    let listed = session.instance.catalog().files(record.database_id)?;
    let mut paths: Vec<PathBuf> = listed.into_iter().map(|file| file.path).collect();
    if paths.is_empty() {
        paths = vec![record.path.clone()];
    }
    let sizes = paths.iter().map(|path| std::fs::metadata(path).ok());
    Ok(sizes.map(|size| Some(size?.len())).sum())
}

fn database_row(
    session: &Session,
    record: &DatabaseRecord,
    shown: &[HelpedFile],
) -> Result<Vec<Value>, Failure> {
    let bytes = database_bytes(session, record, shown)?;
    let size = bytes.map(|bytes| format!("{:.2} MB", bytes as f64 / f64::from(1 << 20)));
    let status = format!(
        "Status={}, Updateability=READ_WRITE, Recovery={}",
        record.state.name(),
        session.instance.recovery_model(record)
    );
    Ok(vec![
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
    ])
}
