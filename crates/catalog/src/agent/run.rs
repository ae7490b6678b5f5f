//! How jobs ran, what they do now, and what sessions ask of the agent.

use rusqlite::params;

use super::{ActivityRecord, AgentTables, DOING, HistoryRecord, RequestRecord};
use crate::Error;
use crate::error::Doing;

/// How many starts of the agent keep their activity.
const SESSIONS_KEPT: i64 = 10;

/// How many rows of history are kept; the oldest go first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HistoryLimits {
    pub rows: u32,
    pub rows_of_job: u32,
}

impl Default for HistoryLimits {
    /// Those of SQL Server Agent.
    fn default() -> Self {
        Self {
            rows: 1000,
            rows_of_job: 100,
        }
    }
}

/// Which history goes: of one job or of all, before a date or whenever.
#[derive(Debug, Clone, Copy, Default)]
pub struct HistoryPurge<'a> {
    pub job_id: Option<&'a str>,
    /// As numbers: date and time.
    pub before: Option<(i64, i64)>,
}

impl AgentTables<'_> {
    /// The history of a job or of all, the newest first.
    ///
    /// # Errors
    /// [`Error::Sqlite`], as all of these.
    pub fn history(self, job_id: Option<&str>) -> Result<Vec<HistoryRecord>, Error> {
        match job_id {
            Some(job_id) => self.rows("job_id = ?1 ORDER BY instance_id DESC", &[job_id]),
            None => self.rows("1 ORDER BY instance_id DESC", &[]),
        }
    }

    /// Adds a row under the next number, which it returns.
    pub fn add_history(self, record: &HistoryRecord, limits: HistoryLimits) -> Result<i64, Error> {
        let instance_id = self.add(record)?;
        let of_job = format!(
            "job_id = ?1 AND instance_id NOT IN (SELECT instance_id FROM own_job_history WHERE job_id = ?1 \
             ORDER BY instance_id DESC LIMIT {})",
            limits.rows_of_job.max(1)
        );
        self.delete::<HistoryRecord>(&of_job, &[&record.job_id])?;
        let of_all = format!(
            "instance_id NOT IN (SELECT instance_id FROM own_job_history ORDER BY instance_id DESC LIMIT {})",
            limits.rows.max(1)
        );
        self.delete::<HistoryRecord>(&of_all, &[])?;
        Ok(instance_id)
    }

    /// Deletes history; returns how many rows.
    pub fn purge_history(self, purge: HistoryPurge<'_>) -> Result<usize, Error> {
        let (date, time) = purge.before.unwrap_or((99_999_999, 0));
        let (date, time) = (date.to_string(), time.to_string());
        let condition = "(?1 = '' OR job_id = ?1) AND (run_date < CAST(?2 AS INTEGER) \
             OR run_date = CAST(?2 AS INTEGER) AND run_time < CAST(?3 AS INTEGER))";
        let job_id = purge.job_id.unwrap_or("");
        self.delete::<HistoryRecord>(condition, &[job_id, &date, &time])
    }

    /// Counts a start of the agent; returns its number.
    pub fn begin_session(self, now: &str) -> Result<i64, Error> {
        let text = "INSERT INTO own_agent_session (agent_start_date) VALUES (?1)";
        self.0.execute(text, [now]).doing(DOING)?;
        let session_id = self.0.last_insert_rowid();
        let oldest = session_id - SESSIONS_KEPT;
        for table in ["own_job_activity", "own_agent_session"] {
            let text = format!("DELETE FROM {table} WHERE session_id <= ?1");
            self.0.execute(&text, [oldest]).doing(DOING)?;
        }
        Ok(session_id)
    }

    /// The activity of all jobs under the last agent.
    pub fn activity(self) -> Result<Vec<ActivityRecord>, Error> {
        self.rows(
            "session_id = (SELECT max(session_id) FROM own_agent_session)",
            &[],
        )
    }

    pub fn put_activity(self, activity: &ActivityRecord) -> Result<(), Error> {
        self.put(activity)
    }

    /// That a job under an agent has come to a step.
    pub fn activity_at(
        self,
        session_id: i64,
        job_id: &str,
        step_id: i64,
        started: &str,
    ) -> Result<(), Error> {
        let text = "UPDATE own_job_activity SET last_executed_step_id = ?3, last_executed_step_date = ?4 \
             WHERE session_id = ?1 AND job_id = ?2";
        self.0
            .execute(text, params![session_id, job_id, step_id, started])
            .doing(DOING)?;
        Ok(())
    }

    /// That it has ended, with the number of its row of history.
    pub fn activity_ended(
        self,
        session_id: i64,
        job_id: &str,
        now: &str,
        history: i64,
        next: Option<&str>,
    ) -> Result<(), Error> {
        let text = "UPDATE own_job_activity SET stop_execution_date = ?3, job_history_id = ?4, \
             next_scheduled_run_date = ?5 WHERE session_id = ?1 AND job_id = ?2";
        self.0
            .execute(text, params![session_id, job_id, now, history, next])
            .doing(DOING)?;
        Ok(())
    }

    pub fn add_request(self, request: &RequestRecord) -> Result<i64, Error> {
        self.add(request)
    }

    /// All requests, in order.
    pub fn requests(self) -> Result<Vec<RequestRecord>, Error> {
        self.rows("1 ORDER BY request_id", &[])
    }

    /// Deletes the requests up to one of them.
    pub fn answered(self, request_id: i64) -> Result<(), Error> {
        let number = request_id.to_string();
        let condition = "request_id <= CAST(?1 AS INTEGER)";
        self.delete::<RequestRecord>(condition, &[&number])?;
        Ok(())
    }
}
