//! Takes back changes of jobs: T-SQL's transactions are on the connection of the session, not on the catalog's.
//!
//! Triggers of this connection write down the reverse of each change, until it is kept or taken back. Others see
//! the changes meanwhile.

use rusqlite::{Connection, OptionalExtension as _};

use super::DOING;
use crate::error::Doing;
use crate::{Catalog, Error};

/// The tables whose changes are taken back; those of running jobs are not.
const TABLES: [&str; 7] = [
    "own_job",
    "own_job_step",
    "own_schedule",
    "own_job_schedule",
    "own_job_server",
    "own_job_category",
    "own_job_history",
];

const KINDS: [&str; 3] = ["insert", "delete", "update"];

impl Catalog {
    /// From now on notes how to take back changes of jobs.
    ///
    /// # Errors
    /// [`Error::Sqlite`].
    pub fn note_agent_changes(&mut self) -> Result<(), Error> {
        if is_noting(self.connection())? {
            return Ok(());
        }
        let mut text = "BEGIN; CREATE TEMP TABLE agent_undo (step INTEGER PRIMARY KEY, reverse TEXT NOT NULL);"
            .to_owned();
        for table in TABLES {
            text.push_str(&triggers(table, &columns(self.connection(), table)?));
        }
        text.push_str("COMMIT;");
        self.connection().execute_batch(&text).doing(DOING)
    }

    /// Keeps the changes.
    ///
    /// # Errors
    /// [`Error::Sqlite`].
    pub fn keep_agent_changes(&mut self) -> Result<(), Error> {
        match is_noting(self.connection())? {
            true => self
                .connection()
                .execute_batch(&format!("BEGIN; {} COMMIT;", end()))
                .doing(DOING),
            false => Ok(()),
        }
    }

    /// Takes back the changes.
    ///
    /// # Errors
    /// [`Error::Sqlite`].
    pub fn take_back_agent_changes(&mut self) -> Result<(), Error> {
        if !is_noting(self.connection())? {
            return Ok(());
        }
        let transaction = self.write(DOING)?;
        let steps: Vec<String> = {
            let text = "SELECT reverse FROM agent_undo ORDER BY step DESC";
            let mut statement = transaction.prepare(text).doing(DOING)?;
            let rows = statement.query_map([], |row| row.get(0)).doing(DOING)?;
            rows.collect::<Result<_, _>>().doing(DOING)?
        };
        transaction.execute_batch(&end()).doing(DOING)?;
        for step in steps {
            transaction.execute_batch(&step).doing(DOING)?;
        }
        transaction.commit().doing(DOING)
    }
}

fn is_noting(connection: &Connection) -> Result<bool, Error> {
    let text = "SELECT 1 FROM temp.sqlite_schema WHERE name = 'agent_undo'";
    let found = connection.query_row(text, [], |_| Ok(())).optional();
    Ok(found.doing(DOING)?.is_some())
}

fn columns(connection: &Connection, table: &str) -> Result<Vec<String>, Error> {
    let text = "SELECT name FROM pragma_table_info(?1)";
    let mut statement = connection.prepare(text).doing(DOING)?;
    let rows = statement
        .query_map([table], |row| row.get(0))
        .doing(DOING)?;
    rows.collect::<Result<_, _>>().doing(DOING)
}

fn triggers(table: &str, columns: &[String]) -> String {
    let old: Vec<String> = columns
        .iter()
        .map(|column| format!("quote(old.{column})"))
        .collect();
    let assigned: Vec<String> = columns
        .iter()
        .map(|column| format!("'{column} = ' || quote(old.{column})"))
        .collect();
    let reverse = |kind: &str| match kind {
        "insert" => format!("'DELETE FROM main.{table} WHERE rowid = ' || new.rowid"),
        "delete" => format!(
            "'INSERT INTO main.{table} (rowid, {}) VALUES (' || old.rowid || ', ' || {} || ')'",
            columns.join(", "),
            old.join(" || ', ' || ")
        ),
        _ => format!(
            "'UPDATE main.{table} SET ' || {} || ' WHERE rowid = ' || new.rowid",
            assigned.join(" || ', ' || ")
        ),
    };
    let one = |kind: &str| {
        format!(
            "CREATE TEMP TRIGGER undo_{kind}_{table} AFTER {kind} ON main.{table} BEGIN \
             INSERT INTO agent_undo (reverse) VALUES ({}); END;",
            reverse(kind)
        )
    };
    KINDS.iter().map(|kind| one(kind)).collect()
}

/// What ends the notes.
fn end() -> String {
    let triggers = TABLES.iter().flat_map(|table| {
        KINDS
            .iter()
            .map(move |kind| format!("DROP TRIGGER temp.undo_{kind}_{table};"))
    });
    triggers.collect::<String>() + "DROP TABLE temp.agent_undo;"
}

impl Drop for Catalog {
    /// A session that ends within a transaction rolls back.
    fn drop(&mut self) {
        // Without the file there is nothing to take back.
        let _failed = self.take_back_agent_changes();
    }
}

#[cfg(test)]
mod tests {
    use crate::agent::{HistoryLimits, HistoryRecord, JobRecord, ScheduleRecord, ServerRecord};
    use crate::{Catalog, Error};

    fn job(name: &str) -> JobRecord {
        JobRecord {
            job_id: format!("id of {name}"),
            name: name.to_owned(),
            enabled: true,
            description: Some("It's".to_owned()),
            start_step_id: 1,
            category_id: 0,
            owner_login_name: "sa".to_owned(),
            notify_level_eventlog: 0,
            notify_level_email: 0,
            notify_level_netsend: 0,
            notify_level_page: 0,
            delete_level: 0,
            date_created: "2026-11-23 10:00:00".to_owned(),
            date_modified: "2026-11-23 10:00:00".to_owned(),
            version_number: 1,
        }
    }

    fn server(name: &str) -> ServerRecord {
        ServerRecord {
            job_id: format!("id of {name}"),
            last_run_outcome: 5,
            last_outcome_message: None,
            last_run_date: 0,
            last_run_time: 0,
            last_run_duration: 0,
        }
    }

    fn change(catalog: &mut Catalog) {
        catalog
            .change_agent::<_, Error>(|tables| {
                tables.put_job(&job("b"))?;
                tables.put_server(&server("b"))?;
                tables.put_job(&JobRecord {
                    description: None,
                    ..job("a")
                })?;
                tables.put_job(&JobRecord {
                    description: Some("again".to_owned()),
                    ..job("a")
                })?;
                tables.delete_job("id of c", true)
            })
            .unwrap();
    }

    #[test]
    fn changes_are_taken_back_or_kept() {
        let folder = tempfile::tempdir().unwrap();
        let open = || Catalog::open(folder.path()).unwrap();
        let mut catalog = open();
        let first = |tables: crate::AgentTables<'_>| {
            tables.put_job(&job("a"))?;
            tables.put_job(&job("c"))?;
            tables.put_server(&server("c"))
        };
        catalog.change_agent::<_, Error>(first).unwrap();
        let before = catalog.agent().jobs().unwrap();
        catalog.note_agent_changes().unwrap();
        catalog.note_agent_changes().unwrap();
        change(&mut catalog);
        assert_eq!(catalog.agent().jobs().unwrap().len(), 2);
        catalog.take_back_agent_changes().unwrap();
        assert_eq!(catalog.agent().jobs().unwrap(), before);
        assert!(catalog.agent().server("id of b").unwrap().is_none());
        assert!(catalog.agent().server("id of c").unwrap().is_some());
        // Whoever goes away takes back.
        catalog.note_agent_changes().unwrap();
        change(&mut catalog);
        drop(catalog);
        let mut catalog = open();
        assert_eq!(catalog.agent().jobs().unwrap(), before);
        catalog.note_agent_changes().unwrap();
        change(&mut catalog);
        catalog.keep_agent_changes().unwrap();
        catalog.take_back_agent_changes().unwrap();
        let names: Vec<String> = catalog
            .agent()
            .jobs()
            .unwrap()
            .into_iter()
            .map(|job| job.name)
            .collect();
        assert_eq!(names, ["a", "b"]);
    }

    #[test]
    fn a_change_that_fails_changes_nothing() {
        let mut catalog = Catalog::in_memory().unwrap();
        let failed = catalog.change_agent(|tables| {
            tables.put_job(&job("a"))?;
            Err::<(), _>(Error::Stored {
                found: String::new(),
                expected: "",
            })
        });
        assert!(failed.is_err());
        assert_eq!(catalog.agent().jobs().unwrap(), []);
    }

    #[test]
    fn the_history_keeps_the_newest_rows_of_each_job_and_of_all() {
        let mut catalog = Catalog::in_memory().unwrap();
        let limits = HistoryLimits {
            rows: 5,
            rows_of_job: 3,
        };
        for number in 0..12 {
            let record = HistoryRecord {
                instance_id: 0,
                job_id: ["a", "b"][number % 2].to_owned(),
                step_id: 0,
                step_name: String::new(),
                sql_message_id: 0,
                sql_severity: 0,
                message: number.to_string(),
                run_status: 1,
                run_date: 20_261_123,
                run_time: 0,
                run_duration: 0,
                retries_attempted: 0,
                server: String::new(),
            };
            catalog
                .change_agent::<_, Error>(|tables| tables.add_history(&record, limits))
                .unwrap();
        }
        let kept = |job: Option<&str>| -> Vec<String> {
            let rows = catalog.agent().history(job).unwrap();
            rows.into_iter().map(|row| row.message).collect()
        };
        assert_eq!(kept(None), ["11", "10", "9", "8", "7"]);
        assert_eq!(kept(Some("b")), ["11", "9", "7"]);
    }

    #[test]
    fn a_schedule_gets_the_next_number_and_never_one_again() {
        let mut catalog = Catalog::in_memory().unwrap();
        let record = ScheduleRecord {
            schedule_id: 0,
            schedule_uid: String::new(),
            name: "daily".to_owned(),
            owner_login_name: String::new(),
            enabled: true,
            freq_type: 4,
            freq_interval: 1,
            freq_subday_type: 1,
            freq_subday_interval: 0,
            freq_relative_interval: 0,
            freq_recurrence_factor: 0,
            active_start_date: 20_261_123,
            active_end_date: 99_991_231,
            active_start_time: 0,
            active_end_time: 235_959,
            date_created: String::new(),
            date_modified: String::new(),
            version_number: 1,
        };
        let mut numbers = Vec::new();
        for _ in 0..2 {
            let number = catalog
                .change_agent::<_, Error>(|tables| {
                    let number = tables.add_schedule(&record)?;
                    tables.delete_schedule(number)?;
                    Ok(number)
                })
                .unwrap();
            numbers.push(number);
        }
        assert_eq!(numbers, [1, 2]);
    }
}
