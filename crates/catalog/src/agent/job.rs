//! Jobs, their steps, their servers, and the categories of all.

use rusqlite::params;

use super::{
    ActivityRecord, AgentTables, CategoryRecord, DOING, HistoryRecord, JobRecord,
    JobScheduleRecord, RequestRecord, ServerRecord, StepRecord,
};
use crate::Error;
use crate::error::Doing;

impl AgentTables<'_> {
    /// All jobs, by name.
    ///
    /// # Errors
    /// [`Error::Sqlite`], as all of these.
    pub fn jobs(self) -> Result<Vec<JobRecord>, Error> {
        self.rows("1 ORDER BY name", &[])
    }

    pub fn job(self, job_id: &str) -> Result<Option<JobRecord>, Error> {
        self.row("job_id = ?1", &[job_id])
    }

    pub fn job_named(self, name: &str) -> Result<Option<JobRecord>, Error> {
        self.row("name = ?1", &[name])
    }

    /// Adds or changes a job.
    pub fn put_job(self, job: &JobRecord) -> Result<(), Error> {
        self.put(job)
    }

    /// Deletes a job and what belongs to it, but no schedule.
    pub fn delete_job(self, job_id: &str, with_history: bool) -> Result<(), Error> {
        let of_job = "job_id = ?1";
        self.delete::<StepRecord>(of_job, &[job_id])?;
        self.delete::<JobScheduleRecord>(of_job, &[job_id])?;
        self.delete::<ServerRecord>(of_job, &[job_id])?;
        self.delete::<RequestRecord>(of_job, &[job_id])?;
        self.delete::<ActivityRecord>(of_job, &[job_id])?;
        if with_history {
            self.delete::<HistoryRecord>(of_job, &[job_id])?;
        }
        self.delete::<JobRecord>(of_job, &[job_id])?;
        let text = "DELETE FROM own_remote_job WHERE job_id = ?1";
        self.0.execute(text, [job_id]).doing(DOING)?;
        Ok(())
    }

    /// How many jobs a login owns.
    pub fn owned_by(self, login: &str) -> Result<u64, Error> {
        let text = "SELECT count(*) FROM own_job WHERE owner_login_name = ?1 COLLATE NOCASE";
        let count: i64 = self
            .0
            .query_row(text, [login], |row| row.get(0))
            .doing(DOING)?;
        Ok(count.unsigned_abs())
    }

    /// Notes that a remote session has made the job, or changed its steps.
    pub fn mark_remote(self, job_id: &str) -> Result<(), Error> {
        let text = "INSERT OR IGNORE INTO own_remote_job (job_id) VALUES (?1)";
        self.0.execute(text, [job_id]).doing(DOING)?;
        Ok(())
    }

    /// Whether a remote session has made the job, or changed its steps.
    pub fn is_remote(self, job_id: &str) -> Result<bool, Error> {
        let text = "SELECT EXISTS (SELECT 1 FROM own_remote_job WHERE job_id = ?1)";
        self.0
            .query_row(text, [job_id], |row| row.get(0))
            .doing(DOING)
    }

    /// The steps of a job, in order.
    pub fn steps(self, job_id: &str) -> Result<Vec<StepRecord>, Error> {
        self.rows("job_id = ?1 ORDER BY step_id", &[job_id])
    }

    /// Replaces the steps of a job.
    pub fn set_steps(self, job_id: &str, steps: &[StepRecord]) -> Result<(), Error> {
        self.delete::<StepRecord>("job_id = ?1", &[job_id])?;
        steps.iter().try_for_each(|step| self.put(step))
    }

    /// Notes how a step ran last; it may have been moved or deleted meanwhile.
    pub fn step_ran(self, ran: &StepRecord) -> Result<(), Error> {
        let text = "UPDATE own_job_step SET last_run_outcome = ?2, last_run_duration = ?3, last_run_retries = ?4, \
             last_run_date = ?5, last_run_time = ?6 WHERE step_uid = ?1";
        let values = params![
            ran.step_uid,
            ran.last_run_outcome,
            ran.last_run_duration,
            ran.last_run_retries,
            ran.last_run_date,
            ran.last_run_time
        ];
        self.0.execute(text, values).doing(DOING)?;
        Ok(())
    }

    /// That a job runs here; `None` if it does not.
    pub fn server(self, job_id: &str) -> Result<Option<ServerRecord>, Error> {
        self.row("job_id = ?1", &[job_id])
    }

    pub fn put_server(self, server: &ServerRecord) -> Result<(), Error> {
        self.put(server)
    }

    /// Whether the job ran here.
    pub fn delete_server(self, job_id: &str) -> Result<bool, Error> {
        Ok(self.delete::<ServerRecord>("job_id = ?1", &[job_id])? > 0)
    }

    pub fn category(self, class: i64, name: &str) -> Result<Option<CategoryRecord>, Error> {
        let class = class.to_string();
        self.row("category_class = ?1 AND name = ?2", &[&class, name])
    }

    pub fn category_of(self, job: &JobRecord) -> Result<Option<CategoryRecord>, Error> {
        self.row("category_id = ?1", &[&job.category_id.to_string()])
    }

    /// Adds a category, with a number as SQL Server gives it: from 100.
    pub fn add_category(self, class: i64, kind: i64, name: &str) -> Result<(), Error> {
        let known: Vec<CategoryRecord> = self.rows("1", &[])?;
        let last = known.iter().map(|category| category.category_id).max();
        self.put(&CategoryRecord {
            category_id: last.unwrap_or(0).max(99) + 1,
            category_class: class,
            category_type: kind,
            name: name.to_owned(),
        })
    }
}
