//! EXEC of the supported procedures.

mod configure;
mod databases;
mod device;
mod drive;
mod dynamic;
mod export;
mod files;
mod past;
mod remote_folder;
mod restore_folder;
mod sqlbackup;
pub(crate) mod stored;

use windlass_base::message::table;
use windlass_base::similar::did_you_mean;
use windlass_tsql::ast::{Argument, ArgumentDirection, ArgumentValue, Execute, Membership};
use windlass_tsql::error::STATEMENTS;
use windlass_tsql::span::Spanned;

use super::{database, login};
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
        let spelt = &execute.procedure.object.text;
        call(session, (&procedure, spelt), &execute.arguments, sink)
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
pub(super) fn is_built_in(procedure: &str) -> bool {
    procedure == "sqlbackup" || procedure.starts_with("xp_") || parameters_of(procedure).is_some()
}

/// The procedures here, with their parameters. Those without any here read their arguments themselves.
#[rustfmt::skip]
const BUILT_IN: &[(&str, &[&str])] = &[
    ("sp_addsrvrolemember", &["@loginame", "@rolename"]),
    ("sp_addumpdevice", &["@devtype", "@logicalname", "@physicalname", "@cntrltype", "@devstatus"]),
    ("sp_attach_db", &["@dbname", "@filename1", "@filename2"]),
    ("sp_attach_single_file_db", &["@dbname", "@physname"]),
    ("sp_configure", &["@configname", "@configvalue"]),
    ("sp_delete_backuphistory", &["@oldest_date"]),
    ("sp_delete_database_backuphistory", &["@database_name"]),
    ("sp_detach_db", &["@dbname", "@skipchecks", "@keepfulltextindexfile"]),
    ("sp_dropdevice", &["@logicalname", "@delfile"]),
    ("sp_dropsrvrolemember", &["@loginame", "@rolename"]),
    ("sp_executesql", &[]),
    ("sp_helpdb", &["@dbname"]),
    ("sp_helpfile", &["@filename"]),
    ("sp_helptext", &["@objname", "@columnname"]),
    ("sp_windlass_drive", &["@letter", "@folder"]),
    ("sp_windlass_export", &["@database", "@file"]),
    ("sp_windlass_remote_folder", &["@folder", "@action"]),
    ("sp_windlass_restore_folder", &["@folder", "@action"]),
    ("xp_create_subdir", &["@directory"]),
    ("xp_delete_file", &["@filetype", "@folderpath", "@extension", "@cutoff", "@subfolder"]),
    ("xp_dirtree", &["@directory", "@depth", "@file"]),
    ("xp_fileexist", &[]),
    ("xp_fixeddrives", &[]),
];

/// The names of the procedures here.
#[cfg(test)]
pub(super) fn built_in_names() -> impl Iterator<Item = &'static str> {
    let names = BUILT_IN.iter().map(|(name, _)| *name);
    names.chain(["sqlbackup"])
}

/// Whether a procedure does more than to run T-SQL.
pub(super) fn touches_files(procedure: &str) -> bool {
    let procedure = procedure.to_ascii_lowercase();
    is_built_in(&procedure) && procedure != "sp_executesql" && procedure != "sp_helptext"
}

fn parameters_of(procedure: &str) -> Option<&'static [&'static str]> {
    let found = BUILT_IN.iter().find(|(name, _)| *name == procedure);
    found.map(|(_, parameters)| *parameters)
}

fn call(
    session: &mut Session,
    (procedure, spelt): (&str, &str),
    written: &[Spanned<Argument>],
    sink: &mut dyn Sink,
) -> Result<(), Failure> {
    match procedure {
        "sp_executesql" => return dynamic::execute(session, written, sink),
        "xp_fileexist" => return files::file_exists(session, written, sink),
        _ => {}
    }
    let known = parameters_of(procedure).ok_or_else(|| unknown(procedure, spelt))?;
    let arguments = Arguments::read(session, procedure, known, written)?;
    match procedure {
        "sp_attach_db" | "sp_attach_single_file_db" => databases::attach(session, &arguments, sink),
        "sp_detach_db" => {
            let name = arguments.required("@dbname")?;
            database::detach(session, &name)?;
            sink.message(table::database_detached(&name));
            Ok(())
        }
        "sp_helpdb" => {
            let name = arguments.optional("@dbname");
            databases::help_database(session, name.as_deref(), sink)
        }
        "sp_helpfile" => {
            let name = arguments.optional("@filename");
            databases::help_file(session, name.as_deref(), sink)
        }
        "sp_helptext" => stored::help_text(session, &arguments.required("@objname")?, sink),
        "sp_windlass_drive" => drive::drive(session, &arguments, sink),
        "sp_windlass_export" => export::export(session, &arguments, sink),
        "sp_windlass_remote_folder" => remote_folder::remote_folder(session, &arguments, sink),
        "sp_addsrvrolemember" | "sp_dropsrvrolemember" => {
            let change = match procedure {
                "sp_addsrvrolemember" => Membership::Add,
                _ => Membership::Drop,
            };
            let name = arguments.required("@loginame")?;
            let role = arguments.required("@rolename")?;
            login::change_membership(session, &role, change, &name)
        }
        "sp_windlass_restore_folder" => restore_folder::restore_folder(session, &arguments, sink),
        "sp_configure" => configure::configure(session, &arguments, sink),
        "sp_addumpdevice" => device::add(session, &arguments),
        "sp_delete_backuphistory" => past::forget_old(session, &arguments),
        "sp_delete_database_backuphistory" => past::forget_database(session, &arguments),
        "sp_dropdevice" => device::drop(session, &arguments),
        "xp_dirtree" => files::tree(session, &arguments, sink),
        "xp_create_subdir" => files::create_folder(session, &arguments),
        "xp_delete_file" => files::delete(session, &arguments),
        "xp_fixeddrives" => {
            files::drives(session, sink);
            Ok(())
        }
        other => Err(unknown(other, spelt)),
    }
}

/// What a batch can begin with: a procedure that is here, or a statement that was meant.
fn callable() -> impl Iterator<Item = &'static str> {
    let names = BUILT_IN.iter().map(|(name, _)| *name);
    names.chain(STATEMENTS.iter().copied())
}

/// The message for an unknown procedure, or for one that only SQL Server has; `spelt` is as the user wrote it.
fn unknown(procedure: &str, spelt: &str) -> Failure {
    match procedure {
        "sp_rename" | "sp_renamedb" => table::renaming_not_supported(procedure).into(),
        _ => table::procedure_not_found(spelt)
            .with_advice(did_you_mean(procedure, callable()))
            .into(),
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
