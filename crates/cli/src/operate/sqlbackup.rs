//! `windlass sqlbackup`: a command of SQL Backup Pro, and hooks after it.
//!
//! If the instance has a server, that runs the command, because it has the databases open. The hooks run here.

mod served;

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use windlass_base::Message;
use windlass_instance::sqlbackup::{Report, run as run_command};
use windlass_instance::{Failure, Session};

use super::SqlbackupArguments;
use super::settings::Settings;
use crate::args::Common;
use crate::command::{Outcome, new_instance, through_server, try_session};
use crate::output::{Console, Layout, error_line};

/// Runs the command.
pub(super) fn run(arguments: &SqlbackupArguments, common: &Common, settings: &Settings) -> Outcome {
    let mut console = Console::new(common.json, Layout::Table).with_messages_as_they_come();
    let made = new_instance(common).filter(|_| !arguments.dry_run);
    let report = match begin(arguments, common) {
        Ok(mut session) => {
            if let Some(message) = made {
                console.message(message);
            }
            let report = in_session(&mut session, arguments, &mut console);
            session.close(&mut console);
            report
        }
        Err(messages) => {
            let report = Report::of_unopened(&messages);
            for message in messages {
                console.message(message);
            }
            report
        }
    };
    if arguments.dry_run {
        return match report.has_failed() {
            true => Outcome::Failed,
            false => Outcome::Succeeded,
        };
    }
    let succeeded = report.exit_code == 0;
    let written = if succeeded {
        arguments.on_success.as_deref()
    } else {
        arguments.on_failure.as_deref()
    };
    let hooked = match written.or_else(|| settings.hook(succeeded)) {
        Some(hook) => run_hook(hook, &report),
        None => true,
    };
    // A warning is something that was not done: a copy that was not made, a file that was not deleted.
    if !succeeded || console.has_failed() || !hooked {
        Outcome::Failed
    } else {
        Outcome::Succeeded
    }
}

/// Runs the command, in the server of the instance if there is one. Files that are attached for one run are this process's
/// own, and a dry run is on a copy of the instance.
fn in_session(
    session: &mut Session,
    arguments: &SqlbackupArguments,
    console: &mut Console,
) -> Report {
    let is_own = arguments.dry_run || !arguments.attach.is_empty();
    if !is_own && !through_server(session, "windlass sqlbackup") {
        return Report::of_unopened(&[]);
    }
    if session.is_elsewhere() {
        if let Some(refusal) = session.differing_drive(&arguments.sql) {
            console.message(refusal);
            return Report::of_unopened(&[]);
        }
        return served::run(session, arguments, console);
    }
    let report = run_command(session, &arguments.sql, console);
    report.send(console);
    report
}

/// A session for the command, or why there is none.
fn begin(arguments: &SqlbackupArguments, common: &Common) -> Result<Session, Vec<Message>> {
    let mut session = try_session(arguments.dry_run, common)?;
    for (name, path) in &arguments.attach {
        let attached = session.instance_mut().pass_as(name, Path::new(path));
        attached.map_err(|error| Failure::from(error).messages)?;
    }
    session.make_folders(arguments.make_folders);
    if arguments.trust_headers {
        session.trust_headers();
    }
    Ok(session)
}

/// Runs a hook with the report as its input and the codes in its environment; returns whether it
/// succeeded.
fn run_hook(hook: &str, report: &Report) -> bool {
    let result = Command::new("/bin/sh")
        .args(["-c", hook])
        .env("WINDLASS_EXIT_CODE", report.exit_code.to_string())
        .env("WINDLASS_SQL_ERROR_CODE", report.sql_error.to_string())
        // A hook must not send messages in the name of the service.
        .env_remove("NOTIFY_SOCKET")
        .stdin(Stdio::piped())
        .spawn()
        .and_then(|mut child| {
            if let Some(mut input) = child.stdin.take() {
                // A hook that does not read its input is not an error.
                for line in &report.lines {
                    if writeln!(input, "{line}").is_err() {
                        break;
                    }
                }
            }
            child.wait()
        });
    match result {
        Ok(status) if status.success() => true,
        Ok(status) => {
            error_line(&format!("the hook '{hook}' ended with {status}"));
            false
        }
        Err(error) => {
            error_line(&format!("the hook '{hook}' did not run: {error}"));
            false
        }
    }
}
