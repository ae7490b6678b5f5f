-- The procedures of SQL Server Agent, with SQL Server's parameters. Those whose body is only RETURN run in Rust.
CREATE PROCEDURE sp_add_category @class varchar(8) = 'JOB', @type varchar(12) = 'LOCAL', @name sysname AS
RETURN
GO
CREATE PROCEDURE sp_add_job @job_name sysname, @enabled tinyint = 1, @description nvarchar(512) = NULL, @start_step_id int = 1,
    @category_name sysname = NULL, @category_id int = NULL, @owner_login_name sysname = NULL,
    @notify_level_eventlog int = 2, @notify_level_email int = 0, @notify_level_netsend int = 0,
    @notify_level_page int = 0, @notify_email_operator_name sysname = NULL,
    @notify_netsend_operator_name sysname = NULL, @notify_page_operator_name sysname = NULL,
    @delete_level int = 0, @job_id uniqueidentifier = NULL OUTPUT, @originating_server sysname = NULL AS
RETURN
GO
CREATE PROCEDURE sp_update_job @job_id uniqueidentifier = NULL, @job_name sysname = NULL, @new_name sysname = NULL, @enabled tinyint = NULL,
    @description nvarchar(512) = NULL, @start_step_id int = NULL, @category_name sysname = NULL,
    @owner_login_name sysname = NULL, @notify_level_eventlog int = NULL, @notify_level_email int = NULL,
    @notify_level_netsend int = NULL, @notify_level_page int = NULL,
    @notify_email_operator_name sysname = NULL,
    @notify_netsend_operator_name sysname = NULL, @notify_page_operator_name sysname = NULL,
    @delete_level int = NULL, @automatic_post bit = 1 AS
RETURN
GO
CREATE PROCEDURE sp_delete_job @job_id uniqueidentifier = NULL, @job_name sysname = NULL, @originating_server sysname = NULL, @delete_history bit = 1,
    @delete_unused_schedule bit = 1 AS
RETURN
GO
CREATE PROCEDURE sp_add_jobserver @job_id uniqueidentifier = NULL, @job_name sysname = NULL, @server_name nvarchar(128) = NULL, @automatic_post bit = 1 AS
RETURN
GO
CREATE PROCEDURE sp_delete_jobserver @job_id uniqueidentifier = NULL, @job_name sysname = NULL, @server_name nvarchar(128) AS
RETURN
GO
CREATE PROCEDURE sp_add_jobstep @job_id uniqueidentifier = NULL, @job_name sysname = NULL, @step_id int = NULL, @step_name sysname,
    @subsystem nvarchar(40) = N'TSQL', @command nvarchar(max) = NULL, @additional_parameters nvarchar(max) = NULL,
    @cmdexec_success_code int = 0, @on_success_action tinyint = 1, @on_success_step_id int = 0,
    @on_fail_action tinyint = 2, @on_fail_step_id int = 0, @server sysname = NULL, @database_name sysname = NULL,
    @database_user_name sysname = NULL, @retry_attempts int = 0, @retry_interval int = 0, @os_run_priority int = 0,
    @output_file_name nvarchar(200) = NULL, @flags int = 0, @proxy_id int = NULL, @proxy_name sysname = NULL,
    @step_uid uniqueidentifier = NULL OUTPUT AS
RETURN
GO
CREATE PROCEDURE sp_update_jobstep @job_id uniqueidentifier = NULL, @job_name sysname = NULL, @step_id int, @step_name sysname = NULL,
    @subsystem nvarchar(40) = NULL, @command nvarchar(max) = NULL, @additional_parameters nvarchar(max) = NULL,
    @cmdexec_success_code int = NULL, @on_success_action tinyint = NULL, @on_success_step_id int = NULL,
    @on_fail_action tinyint = NULL, @on_fail_step_id int = NULL, @server sysname = NULL, @database_name sysname = NULL,
    @database_user_name sysname = NULL, @retry_attempts int = NULL, @retry_interval int = NULL,
    @os_run_priority int = NULL, @output_file_name nvarchar(200) = NULL, @flags int = NULL, @proxy_id int = NULL,
    @proxy_name sysname = NULL AS
RETURN
GO
CREATE PROCEDURE sp_delete_jobstep @job_id uniqueidentifier = NULL, @job_name sysname = NULL, @step_id int AS
RETURN
GO
CREATE PROCEDURE sp_add_schedule @schedule_name sysname, @enabled tinyint = 1, @freq_type int = 0, @freq_interval int = 0,
    @freq_subday_type int = 0, @freq_subday_interval int = 0, @freq_relative_interval int = 0,
    @freq_recurrence_factor int = 0, @active_start_date int = NULL, @active_end_date int = 99991231,
    @active_start_time int = 0, @active_end_time int = 235959,
    @owner_login_name sysname = NULL, @schedule_uid uniqueidentifier = NULL OUTPUT, @schedule_id int = NULL OUTPUT,
    @originating_server sysname = NULL AS
RETURN
GO
CREATE PROCEDURE sp_add_jobschedule @job_id uniqueidentifier = NULL, @job_name sysname = NULL, @name sysname, @enabled tinyint = 1,
    @freq_type int = 1, @freq_interval int = 0,
    @freq_subday_type int = 0, @freq_subday_interval int = 0, @freq_relative_interval int = 0,
    @freq_recurrence_factor int = 0, @active_start_date int = NULL, @active_end_date int = 99991231,
    @active_start_time int = 0, @active_end_time int = 235959,
    @schedule_id int = NULL OUTPUT, @automatic_post bit = 1, @schedule_uid uniqueidentifier = NULL OUTPUT AS
RETURN
GO
CREATE PROCEDURE sp_update_schedule @schedule_id int = NULL, @name sysname = NULL, @new_name sysname = NULL,
    @enabled tinyint = NULL, @freq_type int = NULL, @freq_interval int = NULL,
    @freq_subday_type int = NULL, @freq_subday_interval int = NULL, @freq_relative_interval int = NULL,
    @freq_recurrence_factor int = NULL, @active_start_date int = NULL, @active_end_date int = NULL,
    @active_start_time int = NULL, @active_end_time int = NULL,
    @owner_login_name sysname = NULL, @automatic_post bit = 1 AS
RETURN
GO
CREATE PROCEDURE sp_delete_schedule @schedule_id int = NULL, @schedule_name sysname = NULL, @force_delete bit = 0, @automatic_post bit = 1 AS
RETURN
GO
CREATE PROCEDURE sp_attach_schedule @job_id uniqueidentifier = NULL, @job_name sysname = NULL, @schedule_id int = NULL, @schedule_name sysname = NULL,
    @automatic_post bit = 1 AS
RETURN
GO
CREATE PROCEDURE sp_detach_schedule @job_id uniqueidentifier = NULL, @job_name sysname = NULL, @schedule_id int = NULL, @schedule_name sysname = NULL,
    @delete_unused_schedule bit = 0, @automatic_post bit = 1 AS
RETURN
GO
CREATE PROCEDURE sp_delete_jobschedule @job_id uniqueidentifier = NULL, @job_name sysname = NULL, @name sysname, @keep_schedule bit = 0, @automatic_post bit = 1 AS
RETURN
GO
CREATE PROCEDURE sp_start_job @job_name sysname = NULL, @job_id uniqueidentifier = NULL, @error_flag int = 1,
    @server_name sysname = NULL, @step_name sysname = NULL, @output_flag int = 1 AS
RETURN
GO
CREATE PROCEDURE sp_stop_job @job_name sysname = NULL, @job_id uniqueidentifier = NULL, @originating_server sysname = NULL,
    @server_name sysname = NULL AS
RETURN
GO
CREATE PROCEDURE sp_purge_jobhistory @job_name sysname = NULL, @job_id uniqueidentifier = NULL, @oldest_date datetime = NULL AS
RETURN
GO
CREATE PROCEDURE sp_help_job @job_id uniqueidentifier = NULL, @job_name sysname = NULL, @job_aspect varchar(9) = NULL,
    @job_type varchar(12) = NULL, @owner_login_name sysname = NULL, @subsystem nvarchar(40) = NULL,
    @category_name sysname = NULL, @enabled tinyint = NULL, @execution_status int = NULL AS
SET NOCOUNT ON
IF @job_name IS NOT NULL AND NOT EXISTS (SELECT * FROM msdb.dbo.sysjobs WHERE name = @job_name)
BEGIN
    RAISERROR (14262, 16, 1, '@job_name', @job_name)
    RETURN 1
END
IF @job_name IS NOT NULL SELECT @job_id = job_id FROM msdb.dbo.sysjobs WHERE name = @job_name
DECLARE @id varchar(36)
SET @id = CAST(@job_id AS varchar(36))
IF @job_id IS NOT NULL AND NOT EXISTS (SELECT * FROM msdb.dbo.sysjobs WHERE job_id = @job_id)
BEGIN
    RAISERROR (14262, 16, 1, '@job_id', @id)
    RETURN 1
END
IF @job_id IS NULL AND @job_aspect IS NOT NULL
BEGIN
    RAISERROR (14280, 16, 1)
    RETURN 1
END
SET @job_aspect = UPPER(ISNULL(@job_aspect, 'ALL'))
IF @job_aspect NOT IN ('ALL', 'JOB', 'STEPS', 'SCHEDULES', 'TARGETS')
BEGIN
    RAISERROR (14266, 16, 1, '@job_aspect', 'ALL, JOB, STEPS, SCHEDULES, TARGETS')
    RETURN 1
END
IF @job_type IS NOT NULL AND UPPER(@job_type) NOT IN ('LOCAL', 'MULTI-SERVER')
BEGIN
    RAISERROR (14266, 16, 1, '@job_type', 'LOCAL, MULTI-SERVER')
    RETURN 1
END
IF @job_aspect IN ('ALL', 'JOB')
SELECT h.job_id, h.originating_server, h.name, h.enabled, h.description, h.start_step_id, h.category, h.owner,
       h.notify_level_eventlog, h.notify_level_email, h.notify_level_netsend, h.notify_level_page,
       CAST('(unknown)' AS nvarchar(128)) AS notify_email_operator, CAST('(unknown)' AS nvarchar(128)) AS notify_netsend_operator,
       CAST('(unknown)' AS nvarchar(128)) AS notify_page_operator, h.delete_level, h.date_created, h.date_modified,
       h.version_number, h.last_run_date, h.last_run_time, h.last_run_outcome, h.next_run_date, h.next_run_time,
       h.next_run_schedule_id, h.current_execution_status, h.current_execution_step,
       h.current_retry_attempt, h.has_step, h.has_schedule, h.has_target, h.type
FROM msdb.dbo.sysjobs_help AS h
WHERE (@job_id IS NULL OR h.job_id = @job_id) AND (@job_type IS NULL OR UPPER(@job_type) = 'LOCAL')
  AND (@owner_login_name IS NULL OR h.owner = @owner_login_name)
  AND (@category_name IS NULL OR h.category = @category_name)
  AND (@enabled IS NULL OR h.enabled = @enabled)
  AND (@execution_status IS NULL OR @execution_status = h.current_execution_status
       OR @execution_status = 0 AND h.current_execution_status NOT IN (4, 5))
  AND (@subsystem IS NULL OR UPPER(@subsystem) = 'TSQL' AND h.has_step > 0)
ORDER BY h.name
IF @job_id IS NOT NULL AND @job_aspect IN ('ALL', 'STEPS')
SELECT step_id, step_name, subsystem, command, flags, cmdexec_success_code, on_success_action, on_success_step_id,
       on_fail_action, on_fail_step_id, server, database_name, database_user_name, retry_attempts, retry_interval,
       os_run_priority, output_file_name, last_run_outcome, last_run_duration, last_run_retries, last_run_date,
       last_run_time, proxy_id
FROM msdb.dbo.sysjobsteps WHERE job_id = @job_id ORDER BY step_id
IF @job_id IS NOT NULL AND @job_aspect IN ('ALL', 'SCHEDULES')
SELECT s.schedule_id, s.name AS schedule_name, s.enabled, s.freq_type, s.freq_interval, s.freq_subday_type,
       s.freq_subday_interval, s.freq_relative_interval, s.freq_recurrence_factor, s.active_start_date,
       s.active_end_date, s.active_start_time, s.active_end_time, s.date_created, l.next_run_date, l.next_run_time,
       s.schedule_uid
FROM msdb.dbo.sysjobschedules AS l JOIN msdb.dbo.sysschedules AS s ON s.schedule_id = l.schedule_id
WHERE l.job_id = @job_id ORDER BY s.schedule_id
IF @job_id IS NOT NULL AND @job_aspect IN ('ALL', 'TARGETS')
SELECT server_id, @@SERVERNAME AS server_name, last_run_date, last_run_time, last_run_duration, last_run_outcome,
       last_outcome_message
FROM msdb.dbo.sysjobservers WHERE job_id = @job_id
RETURN 0
GO
CREATE PROCEDURE sp_help_jobhistory @job_id uniqueidentifier = NULL, @job_name sysname = NULL, @step_id int = NULL,
    @sql_message_id int = NULL, @sql_severity int = NULL, @start_run_date int = NULL, @end_run_date int = NULL,
    @start_run_time int = NULL, @end_run_time int = NULL, @minimum_run_duration int = NULL, @run_status int = NULL,
    @minimum_retries int = NULL, @oldest_first int = 0, @server sysname = NULL, @mode varchar(7) = 'SUMMARY' AS
SET NOCOUNT ON
IF @job_name IS NOT NULL AND NOT EXISTS (SELECT * FROM msdb.dbo.sysjobs WHERE name = @job_name)
BEGIN
    RAISERROR (14262, 16, 1, '@job_name', @job_name)
    RETURN 1
END
IF @job_name IS NOT NULL SELECT @job_id = job_id FROM msdb.dbo.sysjobs WHERE name = @job_name
IF UPPER(@mode) NOT IN ('SUMMARY', 'FULL')
BEGIN
    RAISERROR (14266, 16, 1, '@mode', 'SUMMARY, FULL')
    RETURN 1
END
IF UPPER(@mode) = 'FULL'
SELECT h.instance_id, h.job_id, j.name AS job_name, h.step_id, h.step_name, h.sql_message_id, h.sql_severity, h.message,
       h.run_status, h.run_date, h.run_time, h.run_duration, CAST(NULL AS nvarchar(128)) AS operator_emailed,
       CAST(NULL AS nvarchar(128)) AS operator_netsent, CAST(NULL AS nvarchar(128)) AS operator_paged,
       h.retries_attempted, h.server
FROM msdb.dbo.sysjobhistory AS h JOIN msdb.dbo.sysjobs AS j ON j.job_id = h.job_id
WHERE (@job_id IS NULL OR h.job_id = @job_id) AND (@step_id IS NULL OR h.step_id = @step_id)
  AND (@sql_message_id IS NULL OR h.sql_message_id = @sql_message_id)
  AND (@sql_severity IS NULL OR h.sql_severity = @sql_severity)
  AND (@start_run_date IS NULL OR h.run_date >= @start_run_date) AND (@end_run_date IS NULL OR h.run_date <= @end_run_date)
  AND (@start_run_time IS NULL OR h.run_time >= @start_run_time) AND (@end_run_time IS NULL OR h.run_time <= @end_run_time)
  AND (@minimum_run_duration IS NULL OR h.run_duration >= @minimum_run_duration)
  AND (@run_status IS NULL OR h.run_status = @run_status)
  AND (@minimum_retries IS NULL OR h.retries_attempted >= @minimum_retries)
  AND (@server IS NULL OR h.server = @server)
ORDER BY CASE WHEN @oldest_first = 1 THEN h.instance_id ELSE -h.instance_id END
ELSE
SELECT j.job_id, j.name AS job_name, h.run_status, h.run_date, h.run_time, h.run_duration,
       CAST(NULL AS nvarchar(20)) AS operator_emailed, CAST(NULL AS nvarchar(20)) AS operator_netsent,
       CAST(NULL AS nvarchar(20)) AS operator_paged, h.retries_attempted, h.server
FROM msdb.dbo.sysjobhistory AS h JOIN msdb.dbo.sysjobs AS j ON j.job_id = h.job_id
WHERE (@job_id IS NULL OR h.job_id = @job_id) AND (@step_id IS NULL OR h.step_id = @step_id)
  AND (@sql_message_id IS NULL OR h.sql_message_id = @sql_message_id)
  AND (@sql_severity IS NULL OR h.sql_severity = @sql_severity)
  AND (@start_run_date IS NULL OR h.run_date >= @start_run_date) AND (@end_run_date IS NULL OR h.run_date <= @end_run_date)
  AND (@start_run_time IS NULL OR h.run_time >= @start_run_time) AND (@end_run_time IS NULL OR h.run_time <= @end_run_time)
  AND (@minimum_run_duration IS NULL OR h.run_duration >= @minimum_run_duration)
  AND (@run_status IS NULL OR h.run_status = @run_status)
  AND (@minimum_retries IS NULL OR h.retries_attempted >= @minimum_retries)
  AND (@server IS NULL OR h.server = @server)
ORDER BY CASE WHEN @oldest_first = 1 THEN h.instance_id ELSE -h.instance_id END
RETURN 0
GO
