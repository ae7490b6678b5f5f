//! DBCC CHECKDB.

use windlass_base::Message;
use windlass_base::message::table;
use windlass_source::Depth;
use windlass_tsql::ast::{Dbcc, InformationMessages, Value as Written};

use crate::operation::database::{check_own, readable};
use crate::operation::integrity;
use crate::tsql::option::value_of;
use crate::{Environment as _, Failure, Session, Sink, Value, Which};

/// `DBCC CHECKDB`
pub(super) fn check_database(
    session: &mut Session,
    statement: &Dbcc,
    sink: &mut dyn Sink,
) -> Result<(), Failure> {
    let Dbcc::CheckDatabase {
        database,
        is_physical_only,
        messages,
    } = statement
    else {
        return Err(table::internal_consistency().into());
    };
    let name = database_name(session, database.as_ref().map(|written| &written.node))?;
    let advice = "windlass doctor checks the instance's own catalog.";
    check_own(session, &name, "DBCC CHECKDB", advice)?;
    let record = readable(session, &name)?;
    let depth = match is_physical_only {
        true => Depth::Quick,
        false => Depth::Full,
    };
    let tells = *messages == InformationMessages::Shown;
    if tells {
        sink.message(table::dbcc_results(&record.name));
    }
    let findings = integrity::check_database(session, &record, depth, sink)?;
    let result = table::check_database_result(findings.len(), &record.name);
    if !findings.is_empty() {
        let reported = findings
            .iter()
            .map(|finding| table::integrity_finding(&record.name, finding));
        let reported: Vec<Message> = reported.chain([result, table::dbcc_completed()]).collect();
        return Err(reported.into());
    }
    if tells {
        sink.message(result);
        sink.message(table::dbcc_completed());
    }
    Ok(())
}

/// The database to check, by name or id; the current one if it is 0 or absent.
fn database_name(session: &mut Session, written: Option<&Written>) -> Result<String, Failure> {
    let current = session.current_database().to_owned();
    let Some(written) = written else {
        return Ok(current);
    };
    let number = match value_of(written, session)? {
        Value::Integer(0) => return Ok(current),
        Value::Integer(number) => number,
        name => return Ok(name.to_string()),
    };
    let found = session.database(Which::Numbered(number))?;
    let (_, name) = found.ok_or_else(|| table::database_does_not_exist(number.to_string()))?;
    Ok(name)
}
