//! Jobs and procedures that remote sessions have made or changed.

use std::fmt::Write as _;

use super::*;

/// A session of the login Ops, a sysadmin from elsewhere.
fn remote(place: &Place) -> Session {
    place.well(
        "CREATE LOGIN Ops WITH PASSWORD = 'correct horse 1', CHECK_POLICY = OFF\nALTER SERVER ROLE sysadmin ADD MEMBER Ops",
    );
    let mut session = session(place.folder.path()).unwrap();
    let principal = crate::Principal::of_login(session.instance().catalog(), "Ops");
    session.act_as(principal.unwrap().unwrap()).unwrap();
    session
}

fn tell(session: &mut Session, text: &str) -> Vec<u32> {
    let mut sink = Collected::default();
    for batch in text.split("\nGO\n") {
        session.execute_batch(batch, 1, &mut sink);
    }
    let errors = sink.messages.iter().filter(|message| message.is_error());
    errors.map(|message| message.number).collect()
}

/// The numbers of the messages of each step in the history.
fn numbers(place: &Place) -> Vec<(String, i64)> {
    let history = place.history().into_iter();
    let steps = history.filter(|row| row.step_id > 0);
    steps
        .map(|row| (row.step_name, row.sql_message_id))
        .collect()
}

#[test]
fn a_job_of_a_remote_session_reaches_no_further_than_the_session() {
    let place = Place::new();
    let outside = tempfile::tempdir().unwrap();
    let file = outside.path().join("job.bak");
    let backup = format!("BACKUP DATABASE Shop TO DISK = ''{}''", file.display());
    assert_eq!(place.run("CREATE DATABASE Shop"), [50010]);
    let mut ops = remote(&place);
    let attach = format!(
        "EXEC sp_attach_db ''sec'', ''{}''",
        outside.path().join("secret.db").display()
    );
    std::fs::write(outside.path().join("secret.db"), "").unwrap();
    let mut text =
        "EXEC msdb.dbo.sp_add_job 'Escape'\nEXEC msdb.dbo.sp_add_jobserver @job_name = 'Escape'\n"
            .to_owned();
    for (name, command) in [
        ("backup", backup.as_str()),
        ("attach", attach.as_str()),
        ("folder", "EXEC sp_windlass_remote_folder ''/''"),
    ] {
        writeln!(
            text,
            "EXEC msdb.dbo.sp_add_jobstep @job_name = 'Escape', @step_name = '{name}', @command = N'{command}', \
             @on_success_action = 3, @on_fail_action = 3"
        )
        .unwrap();
    }
    assert_eq!(tell(&mut ops, &text), [0u32; 0]);
    let agent = place.start();
    place.well("EXEC sp_start_job 'Escape'");
    place.wait(|| numbers(&place).len() == 3);
    let ran = numbers(&place);
    assert_eq!(ran.len(), 3);
    assert!(
        ran.iter()
            .all(|(_, number)| [3013, 50210, 50211].contains(number)),
        "{ran:?}"
    );
    let history = place.history();
    let backup = history
        .iter()
        .find(|row| row.step_name == "backup")
        .unwrap();
    assert!(
        backup.message.contains("outside of the folders"),
        "{}",
        backup.message
    );
    assert!(!file.exists());
    let session = session(place.folder.path()).unwrap();
    assert!(
        session
            .instance()
            .catalog()
            .remote_folders()
            .unwrap()
            .is_empty()
    );
    agent.stop(false);
}

#[test]
fn a_local_job_that_a_remote_session_changed_is_confined_from_then_on() {
    let place = Place::new();
    place.job(
        "Nightly",
        &[("one", "EXEC sp_windlass_remote_folder '/srv'", "")],
    );
    let mut ops = remote(&place);
    let change = "EXEC msdb.dbo.sp_update_jobstep @job_name = 'Nightly', @step_id = 1, \
                  @command = 'EXEC sp_windlass_remote_folder ''/''''";
    let change = change.replace("''/''''", "''/'''");
    assert_eq!(tell(&mut ops, &change), [0u32; 0]);
    // A change by an administrator of another part does not lift it.
    place.well("EXEC sp_update_jobstep @job_name = 'Nightly', @step_id = 1, @retry_attempts = 0");
    let agent = place.start();
    place.well("EXEC sp_start_job 'Nightly'");
    place.wait(|| numbers(&place).len() == 1);
    assert_eq!(numbers(&place), [("one".to_owned(), 50211)]);
    agent.stop(false);
}

#[test]
fn a_procedure_of_a_remote_session_is_confined_whoever_calls_it() {
    let place = Place::new();
    let mut ops = remote(&place);
    let make = "CREATE PROCEDURE sp_wider AS EXEC sp_windlass_remote_folder '/'";
    assert_eq!(tell(&mut ops, make), [0u32; 0]);
    let mut local = session(place.folder.path()).unwrap();
    assert_eq!(tell(&mut local, "EXEC sp_wider"), [50211]);
    assert_eq!(
        tell(&mut local, "EXEC sp_windlass_remote_folder '/srv'"),
        [0u32; 0],
        "the administrator's own rights are back"
    );
    assert_eq!(
        tell(&mut local, &make.replace("CREATE", "ALTER")),
        [0u32; 0]
    );
    assert_eq!(tell(&mut local, "EXEC sp_wider"), [0u32; 0]);
}

#[test]
fn a_login_that_owns_a_job_is_not_dropped() {
    let place = Place::new();
    let mut ops = remote(&place);
    assert_eq!(tell(&mut ops, "EXEC msdb.dbo.sp_add_job 'Mine'"), [0u32; 0]);
    let mut local = session(place.folder.path()).unwrap();
    assert_eq!(tell(&mut local, "DROP LOGIN Ops"), [15170]);
    assert_eq!(
        tell(&mut local, "EXEC msdb.dbo.sp_delete_job @job_name = 'Mine'"),
        [0u32; 0]
    );
    assert_eq!(tell(&mut local, "DROP LOGIN Ops"), [0u32; 0]);
}
