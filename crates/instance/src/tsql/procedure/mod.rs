//! EXEC of the supported procedures.

mod configure;
mod databases;
mod device;
mod drive;
mod dynamic;
mod files;
mod past;
mod restore_folder;
mod sqlbackup;
pub(crate) mod stored;

use windlass_base::message::table;
use windlass_tsql::ast::{Argument, ArgumentDirection, ArgumentValue, Execute};
use windlass_tsql::span::Spanned;

use super::database;
use crate::tsql::expression::text_of;
use crate::tsql::option::value_of;
use crate::{Failure, Session, Sink, Value};

/// `EXEC`
pub(super) fn execute(
    session: &mut Session,
    execute: &Execute,
    sink: &mut dyn Sink,
) -> Result<(), Failure> {
    let procedure = execute.procedure.object.text.to_ascii_lowercase();
    if !is_built_in(&procedure)
        && let Some(code) = stored::call(session, execute, sink)?
    {
        return match &execute.return_code {
            Some(variable) => {
                session
                    .variables
                    .set(&variable.name, &Value::Integer(code), crate::DataType::INT)
            }
            None => Ok(()),
        };
    }
    let result = if procedure == "sqlbackup" {
        sqlbackup::execute(session, &execute.arguments, sink)
    } else {
        call(session, &procedure, &execute.arguments, sink)
    };
    if let Some(variable) = &execute.return_code {
        let code = i64::from(result.is_err());
        session
            .variables
            .set(&variable.name, &Value::Integer(code), crate::DataType::INT)?;
    }
    result
}

/// Whether the name is that of one of the procedures here, which come before stored ones.
fn is_built_in(procedure: &str) -> bool {
    procedure == "sqlbackup" || procedure.starts_with("xp_") || BUILT_IN.contains(&procedure)
}

const BUILT_IN: &[&str] = &[
    "sp_addumpdevice",
    "sp_attach_db",
    "sp_attach_single_file_db",
    "sp_configure",
    "sp_delete_backuphistory",
    "sp_delete_database_backuphistory",
    "sp_detach_db",
    "sp_dropdevice",
    "sp_executesql",
    "sp_helpdb",
    "sp_helpfile",
    "sp_helptext",
    "sp_windlass_drive",
    "sp_windlass_restore_folder",
];

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
            databases::attach(session, &arguments, sink)
        }
        "sp_detach_db" => {
            let arguments = arguments(&["@dbname", "@skipchecks", "@keepfulltextindexfile"])?;
            let name = arguments.required("@dbname")?;
            database::detach(session, &name)?;
            sink.message(table::database_detached(&name));
            Ok(())
        }
        "sp_helpdb" | "sp_helpfile" => databases::help(session, procedure, written, sink),
        "sp_helptext" => {
            let arguments = arguments(&["@objname", "@columnname"])?;
            let name = arguments.required("@objname")?;
            stored::help_text(session, &name, sink)
        }
        "sp_executesql" => dynamic::execute(session, written, sink),
        "sp_windlass_drive" => {
            let arguments = arguments(&["@letter", "@folder"])?;
            drive::drive(session, &arguments, sink)
        }
        "sp_windlass_restore_folder" => {
            let arguments = arguments(&["@folder", "@action"])?;
            restore_folder::restore_folder(session, &arguments, sink)
        }
        "sp_configure" => {
            let arguments = arguments(&["@configname", "@configvalue"])?;
            configure::configure(session, &arguments, sink)
        }
        "sp_addumpdevice" => {
            let arguments = arguments(&[
                "@devtype",
                "@logicalname",
                "@physicalname",
                "@cntrltype",
                "@devstatus",
            ])?;
            device::add(session, &arguments)
        }
        "sp_delete_backuphistory" => {
            let arguments = arguments(&["@oldest_date"])?;
            past::forget_old(session, &arguments)
        }
        "sp_delete_database_backuphistory" => {
            let arguments = arguments(&["@database_name"])?;
            past::forget_database(session, &arguments)
        }
        "sp_dropdevice" => {
            let arguments = arguments(&["@logicalname", "@delfile"])?;
            device::drop(session, &arguments)
        }
        other if other.starts_with("xp_") => files::execute(session, other, written, sink),
        other => Err(unknown(other)),
    }
}

/// The message for an unknown procedure, or for one that only SQL Server has.
fn unknown(procedure: &str) -> Failure {
    match procedure {
        "sp_rename" | "sp_renamedb" => table::renaming_not_supported(procedure).into(),
        _ => table::procedure_not_found(procedure).into(),
    }
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
        ArgumentValue::Binary(bytes) => Value::Binary(bytes.clone()),
        ArgumentValue::Word(word) => Value::text(&word.text),
    })
}
