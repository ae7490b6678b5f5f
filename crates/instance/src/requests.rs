//! What the sessions of an instance are doing: published by each, readable by all.
//!
//! A running BACKUP, RESTORE or verification keeps one small file in the instance's folder `requests`,
//! locked while it runs. A file without a lock was left by a process that died; the next reader removes
//! it. Nothing here can make a request fail: an instance that cannot be written to has no list of
//! requests.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::fs::FlockOperation;
use serde_json::{Value as Json, json};
use windlass_base::Moment;
use windlass_pipeline::{StageCounters, Stages, TimesIn};

use crate::Progress;
use crate::sessions::Sessions;

/// Folder within the instance's folder.
const FOLDER: &str = "requests";

/// Time between two updates of a request's file.
const INTERVAL: Duration = Duration::from_millis(200);

/// Size of a request's file, enough for all its data.
const WRITTEN_BYTES: usize = 3584;

/// A running request; its file is removed on drop.
#[derive(Debug)]
pub(crate) struct Announced {
    file: File,
    path: PathBuf,
    head: Json,
    reported: Option<Instant>,
}

impl Announced {
    /// Announces that `command` starts on `database`.
    pub(crate) fn begin(
        folder: Option<&Path>,
        session: u32,
        command: &str,
        database: &str,
    ) -> Option<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(1);
        let folder = folder?.join(FOLDER);
        windlass_io::directory::create(&folder).ok()?;
        let process = std::process::id();
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = folder.join(format!("{process}-{number}.json"));
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(0o600);
        let file = options.open(&path).ok()?;
        rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).ok()?;
        let announced = Self {
            file,
            path,
            head: json!({
                "session_id": session,
                "request_id": number - 1,
                "start_time": Moment::now().0.to_string(),
                "status": "running",
                "command": command,
                "database_name": database,
            }),
            reported: None,
        };
        announced.write(&json!({ "percent_complete": 0.0 }));
        Some(announced)
    }

    /// Publishes the progress and the counters of the stages, at most once per interval.
    pub(crate) fn announce(&mut self, progress: &Progress, stages: &Stages) {
        if self
            .reported
            .is_some_and(|reported| reported.elapsed() < INTERVAL)
        {
            return;
        }
        self.reported = Some(Instant::now());
        let elapsed = progress.elapsed.as_secs_f64();
        let share = progress.done_bytes as f64 / progress.total_bytes.max(1) as f64;
        let left = if share > 0.0 {
            elapsed / share - elapsed
        } else {
            0.0
        };
        let stage = |counters: &StageCounters| counters.to_json(TimesIn::Milliseconds);
        self.write(&json!({
            "percent_complete": share * 100.0,
            "estimated_completion_time": (left * 1000.0) as u64,
            "total_elapsed_time": (elapsed * 1000.0) as u64,
            "done_bytes": progress.done_bytes,
            "total_bytes": progress.total_bytes,
            "stored_bytes": progress.stored_bytes,
            "stages": {
                "read": stage(&stages.read),
                "transform": stage(&stages.transform),
                "write": stage(&stages.write),
            },
        }));
    }

    fn write(&self, numbers: &Json) {
        let mut request = self.head.clone();
        if let (Some(request), Some(numbers)) = (request.as_object_mut(), numbers.as_object()) {
            request.extend(numbers.clone());
        }
        // A single write of less than a page, padded to full length, is seen whole or not at all.
        let text = format!("{:<WRITTEN_BYTES$}\n", request.to_string());
        drop(self.file.write_all_at(text.as_bytes(), 0));
    }
}

impl Drop for Announced {
    fn drop(&mut self) {
        drop(std::fs::remove_file(&self.path));
    }
}

/// The same, and the sessions of this process that run something else.
pub(crate) fn with_sessions(folder: Option<&Path>, sessions: &Sessions) -> String {
    let mut requests = announced(folder);
    let own: Vec<Json> = sessions
        .list()
        .into_iter()
        .filter(|listed| {
            let number = u64::from(listed.number);
            let is_announced = requests
                .iter()
                .any(|request| request["session_id"].as_u64() == Some(number));
            listed.activity().is_running && !is_announced
        })
        .map(|listed| {
            let activity = listed.activity();
            json!({
                "session_id": listed.number,
                "request_id": 0,
                "start_time": activity.request_at.to_string(),
                "status": "running",
                "command": "EXECUTE",
                "database_name": activity.database,
            })
        })
        .collect();
    requests.extend(own);
    Json::Array(requests).to_string()
}

/// The sessions of this process, and those of other processes that have announced a request, as a JSON array.
pub(crate) fn sessions(folder: Option<&Path>, sessions: &Sessions) -> String {
    let mut rows = sessions.rows();
    for request in announced(folder) {
        let number = &request["session_id"];
        if rows.iter().any(|row| row["session_id"] == *number) {
            continue;
        }
        rows.push(json!({
            "session_id": number,
            "login_time": request["start_time"],
            "login_name": "",
            "host_name": "",
            "program_name": "",
            "status": "running",
            "last_request_start_time": request["start_time"],
            "open_transaction_count": 0,
            "database_name": request["database_name"],
            "net_transport": "",
        }));
    }
    Json::Array(rows).to_string()
}

/// The requests that programs have announced on an instance, as a JSON array ordered by session.
#[cfg(test)]
pub(crate) fn running(folder: Option<&Path>) -> String {
    Json::Array(announced(folder)).to_string()
}

fn announced(folder: Option<&Path>) -> Vec<Json> {
    let entries = folder.and_then(|folder| std::fs::read_dir(folder.join(FOLDER)).ok());
    let mut requests: Vec<Json> = entries
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| read(&entry.path()))
        .collect();
    requests.sort_by_key(|request| {
        (
            request["session_id"].as_u64(),
            request["request_id"].as_u64(),
        )
    });
    requests
}

fn read(path: &Path) -> Option<Json> {
    let file = File::open(path).ok()?;
    if rustix::fs::flock(&file, FlockOperation::NonBlockingLockShared).is_ok() {
        drop(std::fs::remove_file(path));
        return None;
    }
    let text = std::fs::read_to_string(path).ok()?;
    serde_json::from_str(&text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_running_request_is_seen_and_a_dead_one_is_cleared_away() {
        let folder = tempfile::tempdir().unwrap();
        let mut request =
            Announced::begin(Some(folder.path()), 51, "BACKUP DATABASE", "app").unwrap();
        let progress = Progress {
            database: "app".into(),
            operation: "BACKUP DATABASE",
            done_bytes: 50,
            total_bytes: 200,
            stored_bytes: 10,
            elapsed: Duration::from_secs(2),
        };
        let counters = |bytes_in| StageCounters {
            bytes_in,
            bytes_out: u64::MAX,
            busy: Duration::from_secs(u64::from(u32::MAX)),
            ..StageCounters::default()
        };
        let stages = Stages {
            read: counters(1),
            transform: counters(2),
            write: counters(3),
        };
        request.announce(&progress, &stages);
        let written = std::fs::metadata(&request.path).unwrap().len();
        assert_eq!(written, WRITTEN_BYTES as u64 + 1, "it fits");
        let dead = folder.path().join(FOLDER).join("1-1.json");
        std::fs::write(&dead, "{}").unwrap();
        let seen: Json = serde_json::from_str(&running(Some(folder.path()))).unwrap();
        assert_eq!(seen.as_array().unwrap().len(), 1);
        assert_eq!(seen[0]["percent_complete"], 25.0);
        assert_eq!(seen[0]["estimated_completion_time"], 6000);
        assert_eq!(seen[0]["database_name"], "app");
        assert_eq!(seen[0]["stages"]["write"]["bytes_in"], 3);
        assert_eq!(
            seen[0]["stages"]["read"]["busy_time"],
            u64::from(u32::MAX) * 1000
        );
        assert!(!dead.exists());
        drop(request);
        assert_eq!(running(Some(folder.path())), "[]");
        assert_eq!(running(None), "[]");
    }
}
