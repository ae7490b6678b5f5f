//! DBCC SQLPERF (LOGSPACE): how large each log is, and how full.

use windlass_base::message::table;
use windlass_catalog::{DatabaseRecord, DatabaseState};
use windlass_tsql::ast::InformationMessages;

use crate::{Column, ColumnType, Failure, ResultSet, Session, Sink, Value};

const MB: f64 = (1 << 20) as f64;

pub(super) fn show(
    session: &mut Session,
    messages: InformationMessages,
    sink: &mut dyn Sink,
) -> Result<(), Failure> {
    let records = session.instance.catalog().databases()?;
    let online = records
        .iter()
        .filter(|record| record.state == DatabaseState::Online);
    let rows = online.map(|record| row(session, record)).collect();
    ResultSet {
        columns: vec![
            Column::new("Database Name", ColumnType::NVarChar(128)),
            Column::new("Log Size (MB)", ColumnType::Float),
            Column::new("Log Space Used (%)", ColumnType::Float),
            Column::new("Status", ColumnType::Int),
        ],
        rows,
    }
    .send(sink);
    if messages == InformationMessages::Shown {
        sink.message(table::dbcc_completed());
    }
    Ok(())
}

/// NULL for what cannot be known now: a database that another program has open tells only its size.
fn row(session: &mut Session, record: &DatabaseRecord) -> Vec<Value> {
    let (size, used) = match &record.log_path {
        // The log of a SQLite file is its write-ahead log, whose use only its readers know.
        None => {
            let mut log = record.path.clone().into_os_string();
            log.push("-wal");
            (
                Some(std::fs::metadata(log).map_or(0, |log| log.len())),
                None,
            )
        }
        Some(log) => match session.instance.engine(record) {
            Ok(database) => {
                let counters = database.counters();
                (Some(counters.log_size), Some(counters.log_used))
            }
            Err(_) => (std::fs::metadata(log).ok().map(|log| log.len()), None),
        },
    };
    let megabytes = |bytes: u64| Value::Float(bytes as f64 / MB);
    let percent = size
        .zip(used)
        .map(|(size, used)| Value::Float(used as f64 * 100.0 / size.max(1) as f64));
    vec![
        Value::text(&record.name),
        size.map_or(Value::Null, megabytes),
        percent.unwrap_or(Value::Null),
        Value::Integer(0),
    ]
}
