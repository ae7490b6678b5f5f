//! The records of jobs. Identities are upper-case text, dates and times as in the catalog; the numbers of dates
//! and times that SQL Server keeps (`20261123`, `93000`) stay numbers.

use rusqlite::types::Value;
use rusqlite::{Result, Row};

/// A record and its table.
pub(super) trait AgentRow: Sized {
    const TABLE: &str;
    const KEY: &str;
    const COLUMNS: &[&str];

    fn read(row: &Row<'_>) -> Result<Self>;

    /// In the order of the columns.
    fn values(&self) -> Vec<Value>;
}

macro_rules! records {
    ($($(#[$meta:meta])* $record:ident, $table:literal, $key:literal { $($(#[$doc:meta])* $column:ident: $ty:ty,)* })*) => {
        $(
            $(#[$meta])*
            #[derive(Debug, Clone, PartialEq, Eq)]
            pub struct $record {
                $($(#[$doc])* pub $column: $ty,)*
            }

            impl AgentRow for $record {
                const TABLE: &str = $table;
                const KEY: &str = $key;
                const COLUMNS: &[&str] = &[$(stringify!($column)),*];

                fn read(row: &Row<'_>) -> Result<Self> {
                    Ok(Self { $($column: row.get(stringify!($column))?,)* })
                }

                fn values(&self) -> Vec<Value> {
                    vec![$(Value::from(self.$column.clone())),*]
                }
            }
        )*
    };
}

records! {
    /// A job.
    JobRecord, "own_job", "job_id" {
        job_id: String,
        name: String,
        enabled: bool,
        description: Option<String>,
        start_step_id: i64,
        category_id: i64,
        owner_login_name: String,
        /// When a run is logged: 0 never, 1 on success, 2 on failure, 3 always.
        notify_level_eventlog: i64,
        notify_level_email: i64,
        notify_level_netsend: i64,
        notify_level_page: i64,
        /// After which outcome the job is deleted, as above.
        delete_level: i64,
        date_created: String,
        date_modified: String,
        version_number: i64,
    }

    /// A step of a job, in T-SQL.
    StepRecord, "own_job_step", "job_id, step_id" {
        job_id: String,
        /// From 1, without gaps.
        step_id: i64,
        step_uid: String,
        step_name: String,
        command: String,
        flags: i64,
        cmdexec_success_code: i64,
        /// 1 ends with success, 2 with failure, 3 goes to the next step, 4 to another.
        on_success_action: i64,
        on_success_step_id: i64,
        on_fail_action: i64,
        on_fail_step_id: i64,
        database_name: String,
        retry_attempts: i64,
        /// In minutes.
        retry_interval: i64,
        os_run_priority: i64,
        last_run_outcome: i64,
        last_run_duration: i64,
        last_run_retries: i64,
        last_run_date: i64,
        last_run_time: i64,
    }

    /// A schedule.
    ScheduleRecord, "own_schedule", "schedule_id" {
        schedule_id: i64,
        schedule_uid: String,
        name: String,
        owner_login_name: String,
        enabled: bool,
        freq_type: i64,
        freq_interval: i64,
        freq_subday_type: i64,
        freq_subday_interval: i64,
        freq_relative_interval: i64,
        freq_recurrence_factor: i64,
        active_start_date: i64,
        active_end_date: i64,
        active_start_time: i64,
        active_end_time: i64,
        date_created: String,
        date_modified: String,
        version_number: i64,
    }

    /// A schedule that starts a job.
    JobScheduleRecord, "own_job_schedule", "job_id, schedule_id" {
        job_id: String,
        schedule_id: i64,
        /// In seconds since 1970, UTC; `None` if it starts the job no more.
        next_run: Option<i64>,
        next_run_date: i64,
        next_run_time: i64,
    }

    /// That a job runs on this server, and how it ran last.
    ServerRecord, "own_job_server", "job_id" {
        job_id: String,
        /// 0 failed, 1 succeeded, 3 cancelled, 5 unknown.
        last_run_outcome: i64,
        last_outcome_message: Option<String>,
        last_run_date: i64,
        last_run_time: i64,
        last_run_duration: i64,
    }

    /// A category.
    CategoryRecord, "own_job_category", "category_id" {
        category_id: i64,
        /// 1 of jobs, 2 of alerts, 3 of operators.
        category_class: i64,
        /// 1 local, 2 of several servers, 3 none.
        category_type: i64,
        name: String,
    }

    /// A run of a step, or as step 0 of a whole job.
    HistoryRecord, "own_job_history", "instance_id" {
        instance_id: i64,
        job_id: String,
        step_id: i64,
        step_name: String,
        sql_message_id: i64,
        sql_severity: i64,
        message: String,
        /// 0 failed, 1 succeeded, 2 is tried again, 3 cancelled.
        run_status: i64,
        run_date: i64,
        run_time: i64,
        run_duration: i64,
        retries_attempted: i64,
        server: String,
    }

    /// What a job does or did last under an agent.
    ActivityRecord, "own_job_activity", "session_id, job_id" {
        session_id: i64,
        job_id: String,
        run_requested_date: Option<String>,
        run_requested_source: Option<String>,
        start_execution_date: Option<String>,
        last_executed_step_id: Option<i64>,
        last_executed_step_date: Option<String>,
        stop_execution_date: Option<String>,
        job_history_id: Option<i64>,
        next_scheduled_run_date: Option<String>,
    }

    /// A request to the agent.
    RequestRecord, "own_job_request", "request_id" {
        request_id: i64,
        job_id: String,
        is_stop: bool,
        start_step_id: Option<i64>,
        user_name: String,
    }
}
