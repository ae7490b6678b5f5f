//! The tables of jobs: definitions, schedules, history, and what sessions ask of the agent.
//!
//! | file | what |
//! |---|---|
//! | `rows` | the records, and how they are read and stored |
//! | `job` | jobs, steps, categories, servers |
//! | `schedule` | schedules and the jobs that they start |
//! | `run` | history, activity, requests |
//! | `undo` | takes back the changes of a transaction that was rolled back |
//!
//! Invariant: a change is one transaction of [`Catalog::change_agent`], so that a job is seen before or after it.

mod job;
mod rows;
mod run;
mod schedule;
mod undo;

use rusqlite::{Connection, params_from_iter};

use self::rows::AgentRow;
pub use self::rows::{
    ActivityRecord, CategoryRecord, HistoryRecord, JobRecord, JobScheduleRecord, RequestRecord,
    ScheduleRecord, ServerRecord, StepRecord,
};
pub use self::run::{HistoryLimits, HistoryPurge};
use crate::error::Doing;
use crate::{Catalog, Error};

const DOING: &str = "reading or changing its jobs";

/// The tables of the catalog behind the jobs' views.
#[derive(Debug, Clone, Copy)]
pub struct AgentTables<'a>(&'a Connection);

impl Catalog {
    /// The jobs, for reading.
    pub fn agent(&self) -> AgentTables<'_> {
        AgentTables(self.connection())
    }

    /// Changes the jobs in one transaction. An error of `change` takes it back.
    ///
    /// # Errors
    /// Those of `change`, [`Error::Sqlite`].
    pub fn change_agent<T, E: From<Error>>(
        &mut self,
        change: impl FnOnce(AgentTables<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        let transaction = self.write(DOING)?;
        let changed = change(AgentTables(&transaction))?;
        transaction.commit().doing(DOING)?;
        Ok(changed)
    }

    /// A number that changes when another connection has changed the catalog.
    ///
    /// # Errors
    /// [`Error::Sqlite`].
    pub fn data_version(&self) -> Result<i64, Error> {
        self.connection()
            .pragma_query_value(None, "data_version", |row| row.get(0))
            .doing(DOING)
    }
}

impl AgentTables<'_> {
    /// The rows that meet a condition with `?1`, `?2` for its values.
    fn rows<R: AgentRow>(self, condition: &str, values: &[&str]) -> Result<Vec<R>, Error> {
        let text = format!("SELECT * FROM {} WHERE {condition}", R::TABLE);
        let mut statement = self.0.prepare_cached(&text).doing(DOING)?;
        let rows = statement
            .query_map(params_from_iter(values), R::read)
            .doing(DOING)?;
        rows.collect::<Result<_, _>>().doing(DOING)
    }

    fn row<R: AgentRow>(self, condition: &str, values: &[&str]) -> Result<Option<R>, Error> {
        Ok(self.rows(condition, values)?.into_iter().next())
    }

    /// Adds a row, or replaces the one with its key.
    fn put<R: AgentRow>(self, row: &R) -> Result<(), Error> {
        let columns = R::COLUMNS.join(", ");
        let places = vec!["?"; R::COLUMNS.len()].join(", ");
        let changes: Vec<String> = R::COLUMNS
            .iter()
            .map(|column| format!("{column} = excluded.{column}"))
            .collect();
        let text = format!(
            "INSERT INTO {} ({columns}) VALUES ({places}) ON CONFLICT ({}) DO UPDATE SET {}",
            R::TABLE,
            R::KEY,
            changes.join(", ")
        );
        let mut statement = self.0.prepare_cached(&text).doing(DOING)?;
        statement
            .execute(params_from_iter(row.values()))
            .doing(DOING)?;
        Ok(())
    }

    /// Adds a row whose key, its first column, is the next number; returns that.
    fn add<R: AgentRow>(self, row: &R) -> Result<i64, Error> {
        let columns = R::COLUMNS.get(1..).unwrap_or_default();
        let text = format!(
            "INSERT INTO {} ({}) VALUES ({})",
            R::TABLE,
            columns.join(", "),
            vec!["?"; columns.len()].join(", ")
        );
        let mut statement = self.0.prepare_cached(&text).doing(DOING)?;
        statement
            .execute(params_from_iter(row.values().into_iter().skip(1)))
            .doing(DOING)?;
        Ok(self.0.last_insert_rowid())
    }

    /// Deletes the rows that meet a condition; returns how many.
    fn delete<R: AgentRow>(self, condition: &str, values: &[&str]) -> Result<usize, Error> {
        let text = format!("DELETE FROM {} WHERE {condition}", R::TABLE);
        self.0.execute(&text, params_from_iter(values)).doing(DOING)
    }
}
