//! `sp_delete_backuphistory`, `sp_delete_database_backuphistory`: delete history, but no backups.

use windlass_base::message::table;
use windlass_catalog::Forgotten;

use super::Arguments;
use crate::{DataType, Failure, Session, Value, convert};

/// `sp_delete_backuphistory 'date'`
pub(super) fn forget_old(session: &mut Session, arguments: &Arguments<'_>) -> Result<(), Failure> {
    let written = match arguments.value("@oldest_date") {
        Some(value) => value.clone(),
        None => Value::Text(arguments.required("@oldest_date")?),
    };
    let Value::DateTime(oldest) = convert(&written, DataType::DateTime, None)? else {
        return Err(table::invalid_parameter("@oldest_date").into());
    };
    let oldest = windlass_base::Moment::new(oldest);
    forget(session, Forgotten::Before(oldest))
}

/// `sp_delete_database_backuphistory 'name'`
pub(super) fn forget_database(
    session: &mut Session,
    arguments: &Arguments<'_>,
) -> Result<(), Failure> {
    let name = arguments.required("@database_name")?;
    forget(session, Forgotten::Database(&name))
}

fn forget(session: &mut Session, which: Forgotten<'_>) -> Result<(), Failure> {
    session.instance.catalog_mut().forget_history(which)?;
    Ok(())
}
