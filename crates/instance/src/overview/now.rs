//! What an instance does now, as JSON: for those who show it without a session.

use serde_json::{Value as Json, json};

use crate::Instance;

impl Instance {
    /// The running requests: those that programs have announced, and those of this process's sessions. The rows of
    /// `sys.dm_exec_requests`, with the counters of the stages.
    pub fn requests_now(&self) -> Json {
        parsed(&crate::requests::with_sessions(
            self.folder(),
            self.sessions(),
        ))
    }

    /// The sessions: the rows of `sys.dm_exec_sessions`.
    pub fn sessions_now(&self) -> Json {
        parsed(&crate::requests::sessions(self.folder(), self.sessions()))
    }

    /// The open databases of the page engine, by name: the rows of `sys.dm_db_checkpoint_stats`; and the pool that
    /// they share, `null` if none is open.
    pub fn engines_now(&self) -> Json {
        let mut databases = match parsed(&self.engines.figures()) {
            Json::Array(databases) => databases,
            _ => Vec::new(),
        };
        databases.sort_by_key(|one| one["database_name"].as_str().map(str::to_lowercase));
        json!({ "pool_pages": self.engines.pool_pages(), "databases": databases })
    }
}

/// These texts were just made.
fn parsed(text: &str) -> Json {
    serde_json::from_str(text).unwrap_or(Json::Null)
}
