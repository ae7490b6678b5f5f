//! Which databases an operation may touch.

use windlass_base::Message;
use windlass_base::message::table;
use windlass_base::similar::did_you_mean;
use windlass_catalog::{DatabaseRecord, DatabaseState, Origin};

use crate::instance::is_system_database;
use crate::{Failure, Session};

/// Refuses system databases and open transactions.
pub(crate) fn check_own(
    session: &Session,
    name: &str,
    operation: &str,
    advice: &str,
) -> Result<(), Failure> {
    if name.eq_ignore_ascii_case("tempdb") {
        return Err(table::tempdb_not_allowed().into());
    }
    if session.queries.is_in_transaction() {
        return Err(table::within_transaction().into());
    }
    if is_system_database(name) {
        let what = format!("{operation} of {name}");
        return Err(table::statement_not_supported(what, advice).into());
    }
    Ok(())
}

/// The catalog entry of a database that is online, and can be changed.
pub(crate) fn usable(session: &Session, name: &str) -> Result<DatabaseRecord, Failure> {
    let record = readable(session, name)?;
    match record.state {
        DatabaseState::Standby => Err(table::database_read_only(&record.name).into()),
        DatabaseState::Online | DatabaseState::Restoring | DatabaseState::Offline => Ok(record),
    }
}

/// The catalog entry of a database that is online, at least for readers.
pub(crate) fn readable(session: &Session, name: &str) -> Result<DatabaseRecord, Failure> {
    let record = known(session, name)?;
    match record.state {
        DatabaseState::Online | DatabaseState::Standby => Ok(record),
        DatabaseState::Restoring => Err(table::database_restoring(&record.name).into()),
        DatabaseState::Offline => Err(table::database_of_sql_server(&record.name).into()),
    }
}

/// The catalog entry of a database in any state.
pub(crate) fn known(session: &Session, name: &str) -> Result<DatabaseRecord, Failure> {
    match session.instance.database(name)? {
        Some(record) => Ok(record),
        None => Err(unknown(session, name).into()),
    }
}

/// That there is no such database, and which one may be meant.
fn unknown(session: &Session, name: &str) -> Message {
    let registered = session.instance.catalog().databases().unwrap_or_default();
    let registered = registered.iter().map(|record| record.name.as_str());
    table::database_does_not_exist(name)
        .with_state(11)
        .with_advice(did_you_mean(name, registered))
}

/// Refuses a log backup of a database without a log that is kept: 4208, or that the database does not exist.
pub(crate) fn refuse_log(session: &Session, name: &str) -> Result<(), Failure> {
    if name.eq_ignore_ascii_case("tempdb") {
        return Err(table::tempdb_not_allowed().into());
    }
    let has_log = |record: &DatabaseRecord| {
        record.log_path.is_some() || session.instance.kept_log(record).is_some()
    };
    let simple = || Err(table::not_in_simple_recovery("BACKUP LOG").into());
    if is_system_database(name) {
        return simple();
    }
    let record = known(session, name)?;
    match (record.origin, record.state) {
        (Origin::SqlServer, DatabaseState::Offline) => {
            Err(table::sql_server_full_only(&record.name).into())
        }
        _ if has_log(&record) => Ok(()),
        _ => simple(),
    }
}
