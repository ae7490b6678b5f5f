-- The tables of jobs, behind the views of msdb in instance/src/query/views/jobs.txt.
CREATE TABLE own_job (
    job_id TEXT PRIMARY KEY,
    name TEXT NOT NULL UNIQUE COLLATE NOCASE,
    enabled INTEGER NOT NULL,
    description TEXT,
    start_step_id INTEGER NOT NULL,
    category_id INTEGER NOT NULL,
    owner_login_name TEXT NOT NULL,
    notify_level_eventlog INTEGER NOT NULL,
    notify_level_email INTEGER NOT NULL,
    notify_level_netsend INTEGER NOT NULL,
    notify_level_page INTEGER NOT NULL,
    delete_level INTEGER NOT NULL,
    date_created TEXT NOT NULL,
    date_modified TEXT NOT NULL,
    version_number INTEGER NOT NULL
);
CREATE TABLE own_job_step (
    job_id TEXT NOT NULL,
    step_id INTEGER NOT NULL,
    step_uid TEXT NOT NULL,
    step_name TEXT NOT NULL COLLATE NOCASE,
    command TEXT NOT NULL,
    flags INTEGER NOT NULL,
    cmdexec_success_code INTEGER NOT NULL,
    on_success_action INTEGER NOT NULL,
    on_success_step_id INTEGER NOT NULL,
    on_fail_action INTEGER NOT NULL,
    on_fail_step_id INTEGER NOT NULL,
    database_name TEXT NOT NULL,
    retry_attempts INTEGER NOT NULL,
    retry_interval INTEGER NOT NULL,
    os_run_priority INTEGER NOT NULL,
    last_run_outcome INTEGER NOT NULL,
    last_run_duration INTEGER NOT NULL,
    last_run_retries INTEGER NOT NULL,
    last_run_date INTEGER NOT NULL,
    last_run_time INTEGER NOT NULL,
    PRIMARY KEY (job_id, step_id)
);
CREATE TABLE own_schedule (
    schedule_id INTEGER PRIMARY KEY AUTOINCREMENT,
    schedule_uid TEXT NOT NULL,
    name TEXT NOT NULL COLLATE NOCASE,
    owner_login_name TEXT NOT NULL,
    enabled INTEGER NOT NULL,
    freq_type INTEGER NOT NULL,
    freq_interval INTEGER NOT NULL,
    freq_subday_type INTEGER NOT NULL,
    freq_subday_interval INTEGER NOT NULL,
    freq_relative_interval INTEGER NOT NULL,
    freq_recurrence_factor INTEGER NOT NULL,
    active_start_date INTEGER NOT NULL,
    active_end_date INTEGER NOT NULL,
    active_start_time INTEGER NOT NULL,
    active_end_time INTEGER NOT NULL,
    date_created TEXT NOT NULL,
    date_modified TEXT NOT NULL,
    version_number INTEGER NOT NULL
);
-- `next_run` is in seconds since 1970, UTC; the other two are the same in local time, 0 without one.
CREATE TABLE own_job_schedule (
    job_id TEXT NOT NULL,
    schedule_id INTEGER NOT NULL,
    next_run INTEGER,
    next_run_date INTEGER NOT NULL,
    next_run_time INTEGER NOT NULL,
    PRIMARY KEY (job_id, schedule_id)
);
-- The jobs that run on this server, and how each ran last.
CREATE TABLE own_job_server (
    job_id TEXT PRIMARY KEY,
    last_run_outcome INTEGER NOT NULL,
    last_outcome_message TEXT,
    last_run_date INTEGER NOT NULL,
    last_run_time INTEGER NOT NULL,
    last_run_duration INTEGER NOT NULL
);
CREATE TABLE own_job_category (
    category_id INTEGER PRIMARY KEY,
    category_class INTEGER NOT NULL,
    category_type INTEGER NOT NULL,
    name TEXT NOT NULL COLLATE NOCASE,
    UNIQUE (category_class, name)
);
INSERT INTO own_job_category VALUES
    (0, 1, 1, '[Uncategorized (Local)]'), (1, 1, 1, 'Jobs from MSX'),
    (2, 1, 2, '[Uncategorized (Multi-Server)]'), (3, 1, 1, 'Database Maintenance'),
    (4, 1, 1, 'Web Assistant'), (5, 1, 1, 'Full-Text'), (6, 1, 1, 'Log Shipping'),
    (7, 1, 1, 'Database Engine Tuning Advisor'), (8, 1, 1, 'Data Collector'),
    (98, 2, 3, '[Uncategorized]'), (99, 3, 3, '[Uncategorized]');
CREATE TABLE own_job_history (
    instance_id INTEGER PRIMARY KEY AUTOINCREMENT,
    job_id TEXT NOT NULL,
    step_id INTEGER NOT NULL,
    step_name TEXT NOT NULL,
    sql_message_id INTEGER NOT NULL,
    sql_severity INTEGER NOT NULL,
    message TEXT NOT NULL,
    run_status INTEGER NOT NULL,
    run_date INTEGER NOT NULL,
    run_time INTEGER NOT NULL,
    run_duration INTEGER NOT NULL,
    retries_attempted INTEGER NOT NULL,
    server TEXT NOT NULL
);
CREATE INDEX history_of_job ON own_job_history (job_id, instance_id);
-- One row for each start of an agent.
CREATE TABLE own_agent_session (
    session_id INTEGER PRIMARY KEY AUTOINCREMENT,
    agent_start_date TEXT NOT NULL
);
CREATE TABLE own_job_activity (
    session_id INTEGER NOT NULL,
    job_id TEXT NOT NULL,
    run_requested_date TEXT,
    run_requested_source TEXT,
    start_execution_date TEXT,
    last_executed_step_id INTEGER,
    last_executed_step_date TEXT,
    stop_execution_date TEXT,
    job_history_id INTEGER,
    next_scheduled_run_date TEXT,
    PRIMARY KEY (session_id, job_id)
);
-- What sessions ask of the running agent: to start a job, at a step if one is named, or to stop it.
CREATE TABLE own_job_request (
    request_id INTEGER PRIMARY KEY AUTOINCREMENT,
    job_id TEXT NOT NULL,
    is_stop INTEGER NOT NULL,
    start_step_id INTEGER,
    user_name TEXT NOT NULL
);
