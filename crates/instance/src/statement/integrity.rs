//! SQLite's own check of a database: DBCC CHECKDB, and what a backup runs before its copy.
//!
//! Of a SQLite file exactly the pinned snapshot is checked that the backup goes on to read. A database of
//! the page engine becomes one state at the end of its copy only; there, the commit that was the newest when
//! the backup began is checked, and the pages that are copied are verified by their checksums.

use rusqlite::{Connection, OpenFlags};
use windlass_base::Message;
use windlass_base::message::table;
use windlass_catalog::DatabaseRecord;
use windlass_engine::BackupMode;
use windlass_pipeline::{Integrity, OnDamage};
use windlass_source::check::{self, FINDINGS_MAX};
use windlass_source::{Content, Depth, Opened, Snapshot};
use windlass_tsql::ast::{Dbcc, InformationMessages, Value as Written};

use super::database::{check_own, usable};
use crate::message_of::engine_message;
use crate::option::value_of;
use crate::{Environment as _, Failure, Session, Sink, Value, Which};

/// Maximum number of findings printed by a backup; DBCC CHECKDB prints all.
const FINDINGS_TOLD: usize = 10;

/// What a check said.
#[derive(Debug)]
pub(super) struct Checked {
    depth: Depth,
    findings: Vec<String>,
}

/// Rejects content that is not a database, unless it is accepted as it is; warns of a truncated
/// one.
pub(super) fn look_at(opened: &Opened, is_as_is: bool, sink: &mut dyn Sink) -> Result<(), Failure> {
    let file = opened.snapshot.files().first();
    let file = file.map_or("", |file| file.physical_name.as_str());
    match opened.content {
        Content::Unknown if !is_as_is => return Err(table::not_a_database(file).into()),
        Content::Cut {
            expected_bytes,
            found_bytes,
        } => sink.message(table::database_cut(file, expected_bytes, found_bytes)),
        _ => {}
    }
    Ok(())
}

/// Checks a database of the page engine; `None` of any other.
pub(super) fn of_engine(
    session: &mut Session,
    record: &DatabaseRecord,
    depth: Depth,
) -> Result<Option<Checked>, Failure> {
    if record.log_path.is_none() {
        return Ok(None);
    }
    session.instance.engines.database(record)?;
    let uri = session.instance.engines.uri(&record.name)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_URI
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(uri, flags)?;
    connection.pragma_update(None, "query_only", true)?;
    let findings = match check::findings(&mut connection, depth, &session.cancel_flag()) {
        Ok(findings) => findings,
        Err(error) => {
            // A page that does not match its checksum is for SQLite a read that failed.
            let open = session.instance.engines.open_databases();
            match open.take_damage(&record.name) {
                Some(damage) => vec![engine_message(&damage).text],
                None => return Err(error.into()),
            }
        }
    };
    Ok(Some(Checked { depth, findings }))
}

/// Checks a frozen snapshot, and gives it back.
pub(super) fn of_snapshot(
    session: &Session,
    snapshot: Box<dyn Snapshot>,
    depth: Depth,
) -> Result<(Box<dyn Snapshot>, Checked), Failure> {
    let (snapshot, findings) = check::check(snapshot, depth, &session.cancel_flag())?;
    Ok((snapshot, Checked { depth, findings }))
}

/// What a check means for a backup: findings end it, unless it was to go on.
pub(super) fn judge(
    checked: &Checked,
    on_damage: OnDamage,
    database: &str,
    sink: &mut dyn Sink,
) -> Result<Integrity, Failure> {
    let count = checked.findings.len();
    let mut told: Vec<Message> = checked
        .findings
        .iter()
        .take(FINDINGS_TOLD)
        .map(|finding| table::integrity_finding(database, finding))
        .collect();
    if count > FINDINGS_TOLD {
        let more = count - FINDINGS_TOLD;
        let or_more = if count == FINDINGS_MAX {
            " or more"
        } else {
            ""
        };
        told.push(table::more_findings(more, or_more));
    }
    if count > 0 && on_damage == OnDamage::Stop {
        told.push(table::integrity_failed(database, count));
        return Err(told.into());
    }
    let found = match (checked.depth, count) {
        (Depth::Quick, 0) => table::quick_check_passed(),
        (Depth::Full, 0) => table::integrity_check_passed(),
        _ => {
            for message in told {
                sink.message(table::finding(message.text));
            }
            table::damaged_backed_up(database)
        }
    };
    sink.message(found);
    Ok(Integrity {
        depth: checked.depth,
        findings: u32::try_from(count).unwrap_or(u32::MAX),
    })
}

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
    let record = usable(session, &name)?;
    let depth = match is_physical_only {
        true => Depth::Quick,
        false => Depth::Full,
    };
    let tells = *messages == InformationMessages::Shown;
    if tells {
        sink.message(table::dbcc_results(&record.name));
    }
    let findings = match of_engine(session, &record, depth)? {
        Some(checked) => checked.findings,
        None => of_file(session, &record, depth, sink)?,
    };
    let result = table::check_database_result(findings.len(), &record.name);
    if !findings.is_empty() {
        let told = findings
            .iter()
            .map(|finding| table::integrity_finding(&record.name, finding));
        let told: Vec<Message> = told.chain([result, table::dbcc_completed()]).collect();
        return Err(told.into());
    }
    if tells {
        sink.message(result);
        sink.message(table::dbcc_completed());
    }
    Ok(())
}

/// Checks a SQLite file as a backup would read it.
fn of_file(
    session: &mut Session,
    record: &DatabaseRecord,
    depth: Depth,
    sink: &mut dyn Sink,
) -> Result<Vec<String>, Failure> {
    let source = session.source_of(record)?;
    let opened = source.open(BackupMode::CopyOnly)?;
    look_at(&opened, false, sink)?;
    let (snapshot, checked) = of_snapshot(session, opened.snapshot, depth)?;
    snapshot.close()?;
    Ok(checked.findings)
}

/// The database that is meant: by name or number; the current one for 0 and for none.
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
