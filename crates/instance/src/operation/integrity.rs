//! SQLite's own check of a database: by itself, or before the copy of a backup.
//!
//! Of a SQLite file, the check reads the same pinned snapshot as the backup. A database of the page
//! engine reaches one state only at the end of its copy; there, the check reads the newest commit when
//! the backup began, and the copied pages are verified by their checksums.

use std::path::Path;

use rusqlite::{Connection, OpenFlags};
use windlass_base::Message;
use windlass_base::message::table;
use windlass_base::size::counted;
use windlass_catalog::DatabaseRecord;
use windlass_engine::BackupMode;
use windlass_pipeline::{Integrity, OnDamage};
use windlass_source::check::{self, FINDINGS_MAX};
use windlass_source::{Content, Depth, Opened, Snapshot};

use crate::message_of::{engine_message, not_a_database};
use crate::operation::backup;
use crate::{Failure, Session, Sink};

/// Maximum number of findings printed by a backup; DBCC CHECKDB prints all.
const FINDINGS_REPORTED: usize = 10;

/// The result of a check.
#[derive(Debug)]
pub(super) struct Checked {
    depth: Depth,
    findings: Vec<String>,
}

/// Rejects content that is not a database or has lost its end, unless the options accept it.
pub(super) fn look_at(
    opened: &Opened,
    is_as_is: bool,
    on_damage: OnDamage,
    sink: &mut dyn Sink,
) -> Result<(), Failure> {
    let file = opened.snapshot.files().first();
    let file = file.map_or("", |file| file.physical_name.as_str());
    match opened.content {
        Content::Unknown if !is_as_is => return Err(not_a_database(Path::new(file)).into()),
        Content::Cut {
            expected_bytes,
            found_bytes,
        } if on_damage == OnDamage::Stop => {
            return Err(table::database_cut(file, expected_bytes, found_bytes).into());
        }
        Content::Cut {
            expected_bytes,
            found_bytes,
        } => sink.message(table::cut_database_read(file, expected_bytes, found_bytes)),
        _ => {}
    }
    Ok(())
}

/// Checks a database of the page engine; `None` for a SQLite file.
pub(super) fn of_engine(
    session: &mut Session,
    record: &DatabaseRecord,
    depth: Depth,
) -> Result<Option<Checked>, Failure> {
    if record.log_path.is_none() {
        return Ok(None);
    }
    session.instance.engine(record)?;
    let uri = session.instance.engines.uri(&record.name)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_URI
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(uri, flags)?;
    connection.pragma_update(None, "query_only", true)?;
    let findings = match check::findings(&mut connection, depth, &session.cancel_flag()) {
        Ok(findings) => findings,
        Err(error) => {
            // SQLite reports a page with a wrong checksum as a failed read.
            let open = session.instance.engines.open_databases();
            match open.take_damage(&record.name) {
                Some(damage) => vec![engine_message(&damage).text],
                None => return Err(error.into()),
            }
        }
    };
    Ok(Some(Checked { depth, findings }))
}

/// Checks a frozen snapshot, and returns it.
pub(super) fn of_snapshot(
    session: &Session,
    snapshot: Box<dyn Snapshot>,
    depth: Depth,
) -> Result<(Box<dyn Snapshot>, Checked), Failure> {
    let (snapshot, findings) = check::check(snapshot, depth, &session.cancel_flag())?;
    Ok((snapshot, Checked { depth, findings }))
}

/// Records the result of a check before a backup.
pub(super) fn note(
    session: &mut Session,
    record: &DatabaseRecord,
    checked: &Checked,
    sink: &mut dyn Sink,
) {
    session.note_check(record, checked.depth, &checked.findings, sink);
}

/// Decides what a check means for a backup: findings end it, unless it continues after errors.
pub(super) fn judge(
    checked: &Checked,
    on_damage: OnDamage,
    database: &str,
    sink: &mut dyn Sink,
) -> Result<Integrity, Failure> {
    let count = checked.findings.len();
    let mut reported: Vec<Message> = checked
        .findings
        .iter()
        .take(FINDINGS_REPORTED)
        .map(|finding| table::integrity_finding(database, finding))
        .collect();
    if count > FINDINGS_REPORTED {
        let more = count - FINDINGS_REPORTED;
        let or_more = if count == FINDINGS_MAX {
            " or more"
        } else {
            ""
        };
        reported.push(table::more_findings(more, or_more));
    }
    if count > 0 && on_damage == OnDamage::Stop {
        reported.push(table::integrity_failed(database, counted(count, "problem")));
        return Err(reported.into());
    }
    let found = match (checked.depth, count) {
        (Depth::Quick, 0) => table::quick_check_passed(),
        (Depth::Full, 0) => table::integrity_check_passed(),
        _ => {
            for message in reported {
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

/// Checks a database; reads it as a backup would.
pub(crate) fn check_database(
    session: &mut Session,
    record: &DatabaseRecord,
    depth: Depth,
    sink: &mut dyn Sink,
) -> Result<Vec<String>, Failure> {
    let _in_use = session.use_beside(&record.name)?;
    let findings = match of_engine(session, record, depth)? {
        Some(checked) => checked.findings,
        None => of_file(session, record, depth, sink)?,
    };
    session.note_check(record, depth, &findings, sink);
    Ok(findings)
}

fn of_file(
    session: &mut Session,
    record: &DatabaseRecord,
    depth: Depth,
    sink: &mut dyn Sink,
) -> Result<Vec<String>, Failure> {
    let source = session.source_of(record)?;
    let opened = source.open(BackupMode::CopyOnly)?;
    look_at(&opened, false, OnDamage::Continue, sink)?;
    let content = opened.content;
    let (snapshot, mut checked) = of_snapshot(session, opened.snapshot, depth)?;
    snapshot.close()?;
    if content == Content::Empty
        && let Some(earlier) = backup::earlier(session, record, std::iter::empty())?
    {
        let warning = earlier.warning(&record.path.display().to_string());
        checked.findings.push(warning.text);
    }
    Ok(checked.findings)
}
