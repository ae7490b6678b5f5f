//! Schedules, and the jobs that they start.

use super::{AgentTables, JobScheduleRecord, ScheduleRecord};
use crate::Error;

impl AgentTables<'_> {
    /// All schedules.
    ///
    /// # Errors
    /// [`Error::Sqlite`], as all of these.
    pub fn schedules(self) -> Result<Vec<ScheduleRecord>, Error> {
        self.rows("1 ORDER BY schedule_id", &[])
    }

    pub fn schedule(self, schedule_id: i64) -> Result<Option<ScheduleRecord>, Error> {
        self.row("schedule_id = ?1", &[&schedule_id.to_string()])
    }

    /// Several schedules may have one name.
    pub fn schedules_named(self, name: &str) -> Result<Vec<ScheduleRecord>, Error> {
        self.rows("name = ?1 ORDER BY schedule_id", &[name])
    }

    /// Adds a schedule under the next number, which it returns.
    pub fn add_schedule(self, schedule: &ScheduleRecord) -> Result<i64, Error> {
        self.add(schedule)
    }

    pub fn put_schedule(self, schedule: &ScheduleRecord) -> Result<(), Error> {
        self.put(schedule)
    }

    /// Deletes a schedule, which then starts no job.
    pub fn delete_schedule(self, schedule_id: i64) -> Result<(), Error> {
        let number = schedule_id.to_string();
        self.delete::<JobScheduleRecord>("schedule_id = ?1", &[&number])?;
        self.delete::<ScheduleRecord>("schedule_id = ?1", &[&number])?;
        Ok(())
    }

    /// Every schedule of every job.
    pub fn links(self) -> Result<Vec<JobScheduleRecord>, Error> {
        self.rows("1 ORDER BY job_id, schedule_id", &[])
    }

    pub fn links_of_job(self, job_id: &str) -> Result<Vec<JobScheduleRecord>, Error> {
        self.rows("job_id = ?1 ORDER BY schedule_id", &[job_id])
    }

    pub fn links_of_schedule(self, schedule_id: i64) -> Result<Vec<JobScheduleRecord>, Error> {
        self.rows("schedule_id = ?1", &[&schedule_id.to_string()])
    }

    pub fn put_link(self, link: &JobScheduleRecord) -> Result<(), Error> {
        self.put(link)
    }

    /// Whether there was one.
    pub fn delete_link(self, job_id: &str, schedule_id: i64) -> Result<bool, Error> {
        let number = schedule_id.to_string();
        let condition = "job_id = ?1 AND schedule_id = ?2";
        Ok(self.delete::<JobScheduleRecord>(condition, &[job_id, &number])? > 0)
    }
}
