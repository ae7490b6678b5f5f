//! EXEC of the procedures that are known here.

use std::path::PathBuf;

use windlass_base::message::table;
use windlass_catalog::{DatabaseRecord, Drive};
use windlass_tsql::ast::{Argument, ArgumentDirection, ArgumentValue, Execute};
use windlass_tsql::span::Spanned;

use super::database;
use crate::expression::text_of;
use crate::message_of::catalog_message;
use crate::option::value_of;
use crate::{Column, ColumnType, Failure, ResultSet, Session, Sink, Value};

/// `EXEC`
pub(super) fn execute(
    session: &mut Session,
    execute: &Execute,
    sink: &mut dyn Sink,
) -> Result<(), Failure> {
    let procedure = execute.procedure.object.text.to_ascii_lowercase();
    let result = call(session, &procedure, &execute.arguments, sink);
    if let Some(variable) = &execute.return_code {
        let code = i64::from(result.is_err());
        session
            .variables
            .set(&variable.name, &Value::Integer(code))?;
    }
    result
}

fn call(
    session: &mut Session,
    procedure: &str,
    written: &[Spanned<Argument>],
    sink: &mut dyn Sink,
) -> Result<(), Failure> {
    let mut arguments =
        |known: &'static [&'static str]| Arguments::read(session, procedure, known, written);
    match procedure {
        "sp_attach_db" | "sp_attach_single_file_db" => {
            let arguments = arguments(if procedure == "sp_attach_db" {
                &["@dbname", "@filename1", "@filename2"]
            } else {
                &["@dbname", "@physname"]
            })?;
            attach(session, &arguments, sink)
        }
        "sp_detach_db" => {
            let arguments = arguments(&["@dbname", "@skipchecks", "@keepfulltextindexfile"])?;
            let name = arguments.required("@dbname")?;
            database::detach(session, &name)?;
            sink.message(table::note(format!("The database '{name}' was detached.")));
            Ok(())
        }
        "sp_helpdb" => {
            let arguments = arguments(&["@dbname"])?;
            help(session, arguments.optional("@dbname").as_deref(), sink)
        }
        "sp_executesql" => {
            let arguments = arguments(&["@stmt"])?;
            let text = arguments.required("@stmt")?;
            session.execute_nested(&text, sink)
        }
        "sp_windlass_drive" => {
            let arguments = arguments(&["@letter", "@folder"])?;
            drive(session, &arguments, sink)
        }
        other => Err(unknown(other)),
    }
}

/// The refusal of a procedure that SQL Server has, or nobody has.
fn unknown(procedure: &str) -> Failure {
    let hint = match procedure {
        "sp_configure" => {
            "There are no server options yet; give each BACKUP the options it needs, such as COMPRESSION and CHECKSUM."
        }
        "sp_addumpdevice" | "sp_dropdevice" => {
            "Logical backup devices are not built yet; write DISK = 'path'."
        }
        "sp_delete_backuphistory" | "sp_delete_database_backuphistory" => {
            "The history is read-only for scripts; it may grow."
        }
        "sp_rename" | "sp_renamedb" => "Detach the database and attach it under its new name.",
        _ => return table::procedure_not_found(procedure).into(),
    };
    table::statement_not_supported(format!("EXEC {procedure}"), hint).into()
}

/// The arguments of a call, in the order of the procedure's parameters.
struct Arguments<'a> {
    procedure: &'a str,
    known: &'static [&'static str],
    values: Vec<Value>,
}

impl<'a> Arguments<'a> {
    fn read(
        session: &mut Session,
        procedure: &'a str,
        known: &'static [&'static str],
        written: &[Spanned<Argument>],
    ) -> Result<Self, Failure> {
        let mut values = vec![Value::Null; known.len()];
        for (index, argument) in written.iter().enumerate() {
            if argument.direction == ArgumentDirection::Output {
                let name = argument.name.as_ref().map_or("OUTPUT", |name| &name.name);
                return Err(table::not_a_parameter(name, procedure).into());
            }
            let place = match &argument.name {
                Some(name) => known
                    .iter()
                    .position(|known| known.eq_ignore_ascii_case(&name.name))
                    .ok_or_else(|| Failure::from(table::not_a_parameter(&name.name, procedure)))?,
                None => index,
            };
            let slot = values
                .get_mut(place)
                .ok_or_else(|| Failure::from(table::too_many_arguments(procedure)))?;
            *slot = argument_value(session, &argument.value)?;
        }
        Ok(Self {
            procedure,
            known,
            values,
        })
    }

    fn value(&self, name: &str) -> Option<&Value> {
        let place = self.known.iter().position(|known| *known == name)?;
        self.values.get(place).filter(|value| !value.is_null())
    }

    fn optional(&self, name: &str) -> Option<String> {
        self.value(name).and_then(|value| text_of(value).ok())
    }

    fn required(&self, name: &str) -> Result<String, Failure> {
        self.optional(name)
            .ok_or_else(|| table::parameter_missing(self.procedure, name).into())
    }
}

fn argument_value(session: &mut Session, written: &ArgumentValue) -> Result<Value, Failure> {
    Ok(match written {
        ArgumentValue::Null | ArgumentValue::Default => Value::Null,
        ArgumentValue::Value(value) => value_of(value, session)?,
        ArgumentValue::Decimal(text) => text.parse().map_or(Value::text(text), Value::Decimal),
        ArgumentValue::Binary(octets) => Value::Binary(octets.clone()),
        ArgumentValue::Word(word) => Value::text(&word.text),
    })
}

fn attach(
    session: &mut Session,
    arguments: &Arguments<'_>,
    sink: &mut dyn Sink,
) -> Result<(), Failure> {
    let name = arguments.required("@dbname")?;
    if arguments.value("@filename2").is_some() {
        return Err(table::statement_not_supported(
            "A database of two files",
            "A SQLite database is one file.",
        )
        .into());
    }
    let path = match arguments.optional("@physname") {
        Some(path) => path,
        None => arguments.required("@filename1")?,
    };
    database::attach(session, &name, &path, None)?;
    sink.message(table::note(format!("The database '{name}' was attached.")));
    Ok(())
}

/// `sp_windlass_drive 'd', '/srv/d'` maps a drive for good, with an empty folder it forgets one, and
/// without arguments it lists them. Ours.
fn drive(
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
        return session
            .instance_mut()
            .forget_drive(letter)
            .map_err(|error| catalog_message(&error));
    }
    let folder = crate::absolute(&PathBuf::from(&folder))
        .map_err(|_| Failure::from(table::invalid_parameter("@folder")))?;
    let drive = Drive {
        letter: letter.to_ascii_uppercase(),
        folder,
    };
    session
        .instance_mut()
        .keep_drive(drive)
        .map_err(|error| catalog_message(&error))
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

/// `sp_helpdb [name]`
fn help(session: &mut Session, name: Option<&str>, sink: &mut dyn Sink) -> Result<(), Failure> {
    let records = match name {
        Some(name) => {
            let found = session
                .instance
                .database(name)
                .map_err(|error| catalog_message(&error))?;
            vec![
                found
                    .ok_or_else(|| Failure::from(table::database_not_found_for_procedure(name)))?,
            ]
        }
        None => session
            .instance
            .catalog()
            .databases()
            .map_err(|error| catalog_message(&error))?,
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
