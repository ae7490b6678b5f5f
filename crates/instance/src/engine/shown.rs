//! What views show of a database of the page engine, as JSON.

use std::time::Duration;

use serde_json::json;
use windlass_base::page::pages_of;
use windlass_engine::{Database, FileDescription, Growth};

/// Sizes are in pages. What is counted for the whole database is shown if it has only one data file.
pub(super) fn described_file(file: &FileDescription, open: Option<&Database>) -> serde_json::Value {
    let (growth, is_percent) = match file.spec.growth {
        Growth::Fixed => (0, 0),
        Growth::Bytes(bytes) => (pages_of(bytes), 0),
        Growth::Percent(percent) => (u64::from(percent), 1),
    };
    let mut described = json!({
        "file_id": file.file_id.0,
        "size": pages_of(file.spec.size),
        "max_size": file.spec.max_size.map_or(-1, |bytes| i64::try_from(pages_of(bytes)).unwrap_or(i64::MAX)),
        "growth": growth,
        "is_percent_growth": is_percent,
    });
    let Some(open) = open else {
        return described;
    };
    let counters = open.counters();
    if file.is_log {
        described["used_bytes"] = counters.log_used.into();
        described["log_bytes"] = counters.log_size.into();
        return described;
    }
    let used = open.pages_used();
    let own = used.iter().find(|(file_id, _)| *file_id == file.file_id);
    described["used"] = own.map(|(_, pages)| *pages).into();
    if used.len() == 1 {
        described["reads"] = counters.pages_read.into();
        described["writes"] = counters.write_requests.into();
        described["pages_written"] = counters.pages_written.into();
    }
    described
}

pub(super) fn figures(database: &Database) -> serde_json::Value {
    let counters = database.counters();
    let milliseconds = |duration: Duration| duration.as_micros() as f64 / 1e3;
    json!({
        "database_name": database.name(),
        "target_recovery_time_in_seconds":
            database.target_recovery_time().map_or(0, |target| target.as_secs().max(1)),
        "dirty_page_count": counters.dirty_pages,
        "oldest_dirty_lsn": counters.oldest_dirty_lsn.to_string(),
        "redo_start_lsn": counters.redo_start_lsn.to_string(),
        "estimated_recovery_ms": milliseconds(counters.estimated_recovery),
        "last_recovery_ms": milliseconds(counters.last_recovery),
        "commit_count": counters.commits,
        "log_sync_count": counters.log_syncs,
        "log_used_bytes": counters.log_used,
        "log_size_bytes": counters.log_size,
        "pages_read": counters.pages_read,
        "pages_written": counters.pages_written,
        "write_request_count": counters.write_requests,
        "checkpoint_count": counters.checkpoints,
        "last_checkpoint_ms": milliseconds(counters.checkpoint_duration),
        "last_checkpoint_buffers_visited": counters.checkpoint_visited,
        "buffers_visited": counters.buffers_visited,
        "version_bytes": counters.version_bytes,
        "changed_extent_count": counters.changed_extents,
    })
}
