//! `sqlbackup '-SQL "command" [--make-folders] [--trust-headers]' [, @exitcode OUTPUT [, @sqlerrorcode OUTPUT]]`.

use windlass_base::message::table;
use windlass_tsql::ast::{Argument, ArgumentDirection, ArgumentValue, Value as Written};
use windlass_tsql::span::Spanned;

use super::argument_value;
use crate::tsql::expression::text_of;
use crate::{Failure, Session, Sink, Value};

const PROCEDURE: &str = "sqlbackup";

/// Runs a command of SQL Backup Pro. Its result is in its result sets and in the two output arguments. It
/// fails for invalid arguments; and if the command failed and no variable takes the exit code, because
/// then nobody would notice.
pub(super) fn execute(
    session: &mut Session,
    arguments: &[Spanned<Argument>],
    sink: &mut dyn Sink,
) -> Result<(), Failure> {
    let [command, outputs @ ..] = arguments else {
        return Err(table::parameter_missing(PROCEDURE, "-SQL").into());
    };
    if outputs.len() > 2 {
        return Err(table::too_many_arguments(PROCEDURE).into());
    }
    let mut variables = Vec::new();
    for output in outputs {
        match (&output.direction, &output.value) {
            (ArgumentDirection::Output, ArgumentValue::Value(Written::Variable(variable))) => {
                variables.push(variable.name.clone());
            }
            _ => return Err(table::not_a_parameter("a value without OUTPUT", PROCEDURE).into()),
        }
    }
    let command = text_of(&argument_value(session, &command.value)?)?;
    let call =
        windlass_tsql::sqlbackup::call_of(&command).map_err(table::sqlbackup_call_not_supported)?;
    // The options are those of this call, not of the session.
    let (makes_folders, trust) = (session.makes_folders(), session.trust());
    session.make_folders(makes_folders || call.makes_folders);
    if call.trusts_headers {
        session.trust_headers();
    }
    let report = crate::sqlbackup::run(session, &call.command, sink);
    session.make_folders(makes_folders);
    session.set_trust(trust);
    report.send(sink);
    for (variable, code) in variables.iter().zip([report.exit_code, report.sql_error]) {
        session
            .variables
            .set(variable, &Value::Integer(code), crate::DataType::INT)?;
    }
    if variables.is_empty() && report.has_failed() {
        return Err(table::sqlbackup_failed(report.exit_code).into());
    }
    Ok(())
}
