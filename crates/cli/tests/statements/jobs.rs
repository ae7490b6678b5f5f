//! Jobs: scripts as SSMS writes them, the procedures and views of msdb, `windlass jobs`.

use serde_json::{Value as Json, json};

use crate::support::{Place, ask, registered, sql, succeed, well};

/// A job as "Script Job as CREATE To" of SSMS writes it, with two steps and two schedules.
const SCRIPTED: &str = include_str!("jobs/scripted.sql");

/// What the New Job dialog of SSMS writes with "Script Action".
const DIALOG: &str = include_str!("jobs/dialog.sql");

/// The rows of a query.
#[track_caller]
fn rows(place: &Place, query: &str) -> Vec<Json> {
    ask(place, &place.text("instance"), query)
}

#[test]
fn a_job_scripted_by_ssms_is_created_as_it_is() {
    let place = registered();
    let run = succeed(&place, SCRIPTED);
    assert_eq!(run.numbers(), [0u64; 0], "{}", run.err);
    let job = &rows(
        &place,
        "SELECT * FROM msdb.dbo.sysjobs_view WHERE name = N'Nightly backups'",
    )[0];
    assert_eq!(job["enabled"], 1);
    assert_eq!(job["notify_level_eventlog"], 2);
    assert_eq!(job["start_step_id"], 1);
    let steps = rows(
        &place,
        "SELECT s.* FROM msdb.dbo.sysjobsteps AS s JOIN msdb.dbo.sysjobs AS j ON j.job_id = s.job_id ORDER BY step_id",
    );
    assert_eq!(steps.len(), 2);
    assert_eq!(steps[0]["step_name"], "Back up app");
    assert_eq!(steps[0]["on_success_action"], 3);
    assert_eq!(
        steps[1]["command"],
        "BACKUP DATABASE [other] TO DISK = N'd:\\other.bak' WITH INIT, CHECKSUM;\nPRINT 'it''s done'"
    );
    let schedules = rows(
        &place,
        "USE msdb SELECT s.name, s.freq_type, s.schedule_uid, l.next_run_date, l.next_run_time FROM dbo.sysschedules AS s \
         JOIN dbo.sysjobschedules AS l ON l.schedule_id = s.schedule_id ORDER BY s.schedule_id",
    );
    assert_eq!(
        schedules[0]["schedule_uid"],
        "3E6C5DC7-0F0B-4F3F-9C1B-6F2A1F0C9B77"
    );
    assert_eq!(
        (
            &schedules[0]["next_run_date"],
            &schedules[0]["next_run_time"]
        ),
        (&json!(20_990_101), &json!(13_000))
    );
    assert_eq!(schedules[1]["freq_type"], 32);
    let category = "SELECT c.name FROM msdb.dbo.syscategories AS c JOIN msdb.dbo.sysjobs AS j ON j.category_id = c.category_id";
    assert_eq!(rows(&place, category)[0]["name"], "Backups of ours");
    // A second time it exists, and nothing changes.
    let again = sql(&place, SCRIPTED);
    assert_eq!(again.numbers(), [14261], "{}", again.err);
    assert_eq!(rows(&place, "SELECT * FROM msdb.dbo.sysjobsteps").len(), 2);
    // What SSMS writes for DROP.
    succeed(
        &place,
        "IF EXISTS (SELECT job_id FROM msdb.dbo.sysjobs_view WHERE name = N'Nightly backups')\n\
         EXEC msdb.dbo.sp_delete_job @job_name=N'Nightly backups', @delete_unused_schedule=1",
    );
    for view in [
        "sysjobs",
        "sysjobsteps",
        "sysschedules",
        "sysjobschedules",
        "sysjobservers",
    ] {
        assert_eq!(
            rows(&place, &format!("SELECT * FROM msdb.dbo.{view}")),
            [0u8; 0],
            "{view}"
        );
    }
}

#[test]
fn a_scripted_job_with_an_error_leaves_nothing() {
    let place = registered();
    let broken = SCRIPTED.replace(
        "@subsystem=N'TSQL', \n\t\t@command=N'BACKUP DATABASE [other]",
        "@subsystem=N'CmdExec', \n\t\t@command=N'BACKUP DATABASE [other]",
    );
    assert_ne!(broken, SCRIPTED);
    let run = sql(&place, &broken);
    assert_eq!(run.numbers(), [50221], "{}", run.err);
    for view in [
        "sysjobs",
        "sysjobsteps",
        "sysschedules",
        "sysjobschedules",
        "sysjobservers",
    ] {
        assert_eq!(
            rows(&place, &format!("SELECT * FROM msdb.dbo.{view}")),
            [0u8; 0],
            "{view}"
        );
    }
    let category = "SELECT * FROM msdb.dbo.syscategories WHERE name = N'Backups of ours'";
    assert_eq!(rows(&place, category), [0u8; 0]);
    // A script that ends within its transaction leaves nothing either.
    let open = SCRIPTED.replace("COMMIT TRANSACTION", "PRINT 1");
    sql(&place, &open);
    assert_eq!(rows(&place, "SELECT * FROM msdb.dbo.sysjobs"), [0u8; 0]);
    succeed(&place, SCRIPTED);
    assert_eq!(rows(&place, "SELECT * FROM msdb.dbo.sysjobs").len(), 1);
}

#[test]
fn the_dialog_of_ssms_makes_a_job() {
    let place = registered();
    let server = rows(&place, "SELECT @@SERVERNAME AS s")[0]["s"]
        .as_str()
        .unwrap()
        .to_owned();
    let run = succeed(&place, &DIALOG.replace("THE_SERVER", &server));
    let results = run.results();
    let id = results[0][0]
        .as_object()
        .unwrap()
        .values()
        .next()
        .unwrap()
        .clone();
    assert!(id.as_str().unwrap().starts_with("0x"), "binary(16): {id}");
    assert_eq!(
        results[1][0].as_object().unwrap().values().next(),
        Some(&json!(1))
    );
    let help = succeed(
        &place,
        "EXEC msdb.dbo.sp_help_job @job_name = N'Log backup'",
    )
    .results();
    assert_eq!(help.len(), 4, "{help:?}");
    assert_eq!(help[0][0]["name"], "Log backup");
    assert_eq!(
        (
            &help[0][0]["has_step"],
            &help[0][0]["has_schedule"],
            &help[0][0]["has_target"]
        ),
        (&json!(1), &json!(1), &json!(1))
    );
    assert_eq!(help[0][0]["current_execution_status"], 4);
    assert_eq!(help[1][0]["database_name"], "app");
    assert_eq!(help[2][0]["freq_subday_interval"], 15);
    let all = succeed(&place, "EXEC msdb.dbo.sp_help_job").results();
    assert_eq!(all.len(), 1);
    let none = succeed(&place, "EXEC msdb.dbo.sp_help_job @enabled = 0").results();
    assert_eq!(none[0], json!([]));
}

#[test]
fn mistakes_have_the_numbers_of_sql_server() {
    let place = registered();
    succeed(&place, SCRIPTED);
    let known = "@job_name = 'nightly BACKUPS'";
    for (call, number) in [
        ("sp_add_job 'nightly backups'".to_owned(), 14261),
        ("sp_add_job ''".to_owned(), 14200),
        ("sp_add_job 'x', @category_name = 'no such'".to_owned(), 14234),
        ("sp_add_job 'x', @notify_email_operator_name = 'bob'".to_owned(), 14234),
        ("sp_add_job 'x', @enabled = 2".to_owned(), 14266),
        ("sp_add_job 'x', @nosuch = 2".to_owned(), 8145),
        ("sp_add_job".to_owned(), 201),
        ("sp_delete_job @job_name = 'no such'".to_owned(), 14262),
        ("sp_delete_job @job_id = '00000000-0000-0000-0000-000000000000'".to_owned(), 14262),
        ("sp_delete_job".to_owned(), 14294),
        (format!("sp_update_job {known}, @notify_level_email = 4"), 14266),
        (format!("sp_add_jobstep {known}, @step_name = 'back up APP'"), 14261),
        (format!("sp_add_jobstep {known}, @step_name = 'x', @step_id = 9"), 14266),
        (format!("sp_add_jobstep {known}, @step_name = 'x', @subsystem = 'PowerShell'"), 50221),
        (format!("sp_add_jobstep {known}, @step_name = 'x', @output_file_name = 'd:\\x.txt'"), 50222),
        (format!("sp_add_jobstep {known}, @step_name = 'x', @on_success_action = 5"), 14266),
        (format!("sp_delete_jobstep {known}, @step_id = 3"), 14262),
        (format!("sp_add_jobserver {known}"), 14269),
        (format!("sp_add_jobserver {known}, @server_name = 'OTHER'"), 14262),
        (format!("sp_start_job {known}"), 22022),
        (format!("sp_start_job {known}, @step_name = 'no such'"), 14262),
        ("sp_add_schedule 'x', @freq_type = 3".to_owned(), 14266),
        ("sp_add_schedule 'x', @freq_type = 2".to_owned(), 14295),
        ("sp_add_schedule 'x', @freq_type = 128".to_owned(), 50222),
        ("sp_add_schedule 'x', @freq_type = 4".to_owned(), 14278),
        ("sp_add_schedule 'x', @freq_type = 8, @freq_interval = 1".to_owned(), 14278),
        ("sp_add_schedule 'x', @freq_type = 4, @freq_interval = 1, @freq_subday_type = 2, @freq_subday_interval = 9".to_owned(), 14278),
        ("sp_add_schedule 'x', @freq_type = 1, @active_start_date = 20261301".to_owned(), 14287),
        ("sp_add_schedule 'x', @freq_type = 1, @active_start_time = 240000".to_owned(), 14287),
        ("sp_add_schedule 'x', @freq_type = 1, @active_start_date = 20261212, @active_end_date = 20261211".to_owned(), 14288),
        ("sp_delete_schedule @schedule_name = 'Every night'".to_owned(), 14372),
        ("sp_delete_schedule @schedule_id = 99".to_owned(), 14262),
        ("sp_delete_schedule".to_owned(), 14373),
        (format!("sp_delete_jobschedule {known}, @name = 'x'"), 14374),
        ("sp_add_category 'JOB', 'LOCAL', 'Log Shipping'".to_owned(), 14261),
        ("sp_help_job 'x', 'y', 'z'".to_owned(), 8114),
        ("sp_help_job @job_name = 'no such'".to_owned(), 14262),
        ("sp_help_jobhistory @job_name = 'no such'".to_owned(), 14262),
    ] {
        let run = sql(&place, &format!("EXEC msdb.dbo.{call}"));
        assert_eq!(run.numbers(), [number], "{call}\n{}", run.err);
        assert_ne!(run.code, Some(0), "{call}");
    }
    // The procedures are those of msdb.
    assert_eq!(sql(&place, "EXEC sp_add_job 'x'").numbers(), [2812]);
    assert_eq!(rows(&place, "SELECT * FROM msdb.dbo.sysjobs").len(), 1);
}

#[test]
fn an_error_gives_a_return_code_and_can_be_caught() {
    let place = registered();
    let run = sql(
        &place,
        "DECLARE @rc int, @error int\n\
         EXEC @rc = msdb.dbo.sp_delete_job @job_name = 'none'\n\
         SELECT @error = @@ERROR\n\
         SELECT @rc AS rc, @error AS error\n\
         BEGIN TRY EXEC msdb.dbo.sp_delete_job @job_name = 'none' END TRY\n\
         BEGIN CATCH SELECT ERROR_NUMBER() AS number, ERROR_PROCEDURE() AS proc_name END CATCH",
    );
    assert_eq!(
        run.results(),
        [
            json!([{"rc": 1, "error": 14262}]),
            json!([{"number": 14262, "proc_name": "sp_delete_job"}]),
        ]
    );
}

#[test]
fn steps_move_when_one_is_added_or_deleted() {
    let place = registered();
    let order = "USE msdb SELECT step_id, step_name, on_success_step_id AS target FROM sysjobsteps ORDER BY step_id";
    succeed(
        &place,
        "USE msdb\nEXEC sp_add_job 'j'\n\
         EXEC sp_add_jobstep @job_name = 'j', @step_name = 'a', @on_success_action = 4, @on_success_step_id = 2\n\
         EXEC sp_add_jobstep @job_name = 'j', @step_name = 'c'\n\
         EXEC sp_add_jobstep @job_name = 'j', @step_name = 'b', @step_id = 2",
    );
    let names = |rows: &[Json]| -> Vec<String> {
        rows.iter()
            .map(|row| row["step_name"].as_str().unwrap().to_owned())
            .collect()
    };
    let found = rows(&place, order);
    assert_eq!(names(&found), ["a", "b", "c"]);
    assert_eq!(found[0]["target"], 3, "it still goes to c");
    succeed(
        &place,
        "USE msdb\nEXEC sp_delete_jobstep @job_name = 'j', @step_id = 2\n\
         EXEC sp_update_jobstep @job_name = 'j', @step_id = 2, @step_name = 'C', @command = 'PRINT 1'",
    );
    let found = rows(&place, order);
    assert_eq!(names(&found), ["a", "C"]);
    assert_eq!(found[0]["target"], 2);
    succeed(
        &place,
        "EXEC msdb.dbo.sp_delete_jobstep @job_name = 'j', @step_id = 0",
    );
    assert_eq!(rows(&place, order), [0u8; 0]);
}

#[test]
fn one_schedule_serves_several_jobs() {
    let place = registered();
    succeed(
        &place,
        "USE msdb\nDECLARE @id int\nEXEC sp_add_job 'a'\nEXEC sp_add_job 'b'\n\
         EXEC sp_add_schedule 'hourly', @freq_type = 4, @freq_interval = 1, @freq_subday_type = 8, \
              @freq_subday_interval = 1, @schedule_id = @id OUTPUT\n\
         EXEC sp_attach_schedule @job_name = 'a', @schedule_id = @id\n\
         EXEC sp_attach_schedule @job_name = 'b', @schedule_name = 'hourly'\n\
         EXEC sp_attach_schedule @job_name = 'b', @schedule_name = 'hourly'",
    );
    let count = "SELECT COUNT(*) AS n FROM msdb.dbo.sysjobschedules";
    assert_eq!(rows(&place, count)[0]["n"], 2);
    succeed(&place, "EXEC msdb.dbo.sp_delete_job @job_name = 'a'");
    assert_eq!(rows(&place, count)[0]["n"], 1);
    succeed(
        &place,
        "EXEC msdb.dbo.sp_detach_schedule @job_name = 'b', @schedule_name = 'hourly'",
    );
    assert_eq!(
        rows(&place, "SELECT name FROM msdb.dbo.sysschedules").len(),
        1,
        "it stays"
    );
    succeed(
        &place,
        "EXEC msdb.dbo.sp_delete_schedule @schedule_name = 'hourly'",
    );
    assert_eq!(
        rows(&place, "SELECT name FROM msdb.dbo.sysschedules"),
        [0u8; 0]
    );
}

#[test]
fn the_command_lists_jobs_and_their_history() {
    let place = registered();
    succeed(&place, SCRIPTED);
    let run = well(&place, &["jobs", "--json"]);
    let jobs: Json = serde_json::from_str(&run.out).unwrap();
    assert_eq!(jobs[0]["job"], "Nightly backups");
    assert_eq!(jobs[0]["last_run"], Json::Null);
    assert!(
        jobs[0]["next_run"]
            .as_str()
            .unwrap()
            .starts_with("2099-01-01"),
        "{jobs}"
    );
    let run = well(&place, &["jobs"]);
    assert!(run.out.contains("Nightly backups"), "{}", run.out);
    let run = well(&place, &["jobs", "history", "nightly backups", "--json"]);
    assert_eq!(serde_json::from_str::<Json>(&run.out).unwrap(), json!([]));
    let run = place.run(&["jobs", "history", "no such", "--instance", "instance"]);
    assert_eq!(run.code, Some(2), "{}", run.err);
    assert_eq!(place.run(&["jobs"]).code, Some(2));
}

#[test]
fn the_views_have_the_columns_of_sql_server() {
    let place = registered();
    for (view, columns, last) in [
        ("sysjobs", 19, "version_number"),
        ("sysjobs_view", 21, "master_server"),
        ("sysjobsteps", 26, "step_uid"),
        ("sysschedules", 19, "version_number"),
        ("sysjobschedules", 4, "next_run_time"),
        ("sysjobhistory", 16, "server"),
        ("sysjobactivity", 11, "next_scheduled_run_date"),
        ("syscategories", 4, "name"),
        ("sysjobservers", 7, "last_run_duration"),
        ("syssessions", 2, "agent_start_date"),
    ] {
        let instance = place.text("instance");
        let text = format!("SELECT TOP 0 * FROM msdb.dbo.{view}");
        let run = place.sql_with(&["--instance", &instance, "-s", "|", "-W"], &text);
        let names: Vec<&str> = run
            .out
            .lines()
            .find(|line| line.contains('|'))
            .unwrap()
            .split('|')
            .collect();
        assert_eq!(
            (names.len(), names.last()),
            (columns, Some(&last)),
            "{view}: {names:?}"
        );
    }
}
