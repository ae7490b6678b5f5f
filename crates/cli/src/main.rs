//! The command line of Windlass: plain commands and T-SQL, both through the same sessions.
//!
//! | file | what |
//! |---|---|
//! | [`args`] | the command line as it is written |
//! | `command/` | one file per command: builds the statement that says the same, and runs it |
//! | `output/` | tables, JSON, progress |
//! | `operate/` | commands for operators: history, retention, configuration, metrics, checks |
//! | `demo/` | the self-contained demonstration |
//! | `journal` | the log: statements begun, ended, failed |
//! | `service` | what a service manager is told |
//!
//! Results go to standard output, messages to standard error; the exit code is 0 only on success.
#![forbid(unsafe_code)]

mod args;
mod cancel;
mod command;
mod demo;
mod journal;
mod operate;
mod output;
mod service;

use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _};

use args::{Arguments, Command, Common};
use command::Outcome;
use operate::settings::Settings;

fn main() -> ExitCode {
    // SQL Backup's own spelling has one dash, which would be read as single letters.
    let written = std::env::args_os().map(|argument| {
        if argument.eq_ignore_ascii_case("-SQL") {
            "--sql".into()
        } else {
            argument
        }
    });
    let matches = Arguments::command().get_matches_from(written);
    let Arguments {
        command,
        mut common,
    } = match Arguments::from_arg_matches(&matches) {
        Ok(arguments) => arguments,
        Err(error) => error.exit(),
    };
    let settings = match operate::settings::load(&common, &matches) {
        Ok(settings) => settings,
        Err(error) => {
            output::message_line(&format!("error: {error}"));
            return ExitCode::from(2);
        }
    };
    settings.apply(&mut common);
    if let Err(error) = settings.begin_log() {
        output::message_line(&format!("error: {error}"));
        return ExitCode::from(2);
    }
    let name = matches.subcommand_name().unwrap_or_default().to_owned();
    let is_service = !matches!(command, Command::DemoWriter(_));
    if is_service {
        service::begin(&name);
    }
    tracing::debug!(
        command = name,
        version = env!("CARGO_PKG_VERSION"),
        "program started"
    );
    let outcome = execute(command, &common, &settings);
    let (how, code) = match outcome {
        Outcome::Succeeded => ("succeeded", ExitCode::SUCCESS),
        Outcome::Failed => ("failed", ExitCode::FAILURE),
        Outcome::Misused => ("was misused", ExitCode::from(2)),
    };
    if is_service {
        service::end(&name, how);
    }
    tracing::debug!(command = name, how, "program ended");
    code
}

/// Runs a command, and renews the metrics after one that changes them.
fn execute(command: Command, common: &Common, settings: &Settings) -> Outcome {
    let renews_metrics = matches!(
        command,
        Command::Backup(_)
            | Command::Restore(_)
            | Command::Sql(_)
            | Command::Operate(operate::Command::Sqlbackup(_) | operate::Command::Copies(_))
    );
    let outcome = match command {
        Command::Backup(arguments) => command::backup::run(&arguments, common),
        Command::Restore(arguments) => command::restore::run(&arguments, common),
        Command::Verify(arguments) => command::verify::run(&arguments, common),
        Command::Header(arguments) => command::inspect::header(&arguments, common),
        Command::Files(arguments) => command::inspect::files(&arguments, common),
        Command::Label(arguments) => command::inspect::label(&arguments, common),
        Command::Inspect(arguments) => command::sqlserver::inspect(&arguments, common),
        Command::Rekey(arguments) => command::rekey::run(&arguments, common),
        Command::Import(arguments) => command::transfer::import(&arguments, common),
        Command::Export(arguments) => command::transfer::export(&arguments, common),
        Command::Sql(arguments) => command::sql::run(&arguments, common),
        Command::Tune(arguments) => command::tune::run(&arguments, common),
        Command::Bench(arguments) => command::bench::run(&arguments, common),
        Command::Demo(arguments) => demo::run(&arguments, common),
        Command::Operate(command) => operate::run(command, common, settings),
        Command::DemoWriter(arguments) => demo::writer::run(&arguments.database),
    };
    if renews_metrics {
        operate::metrics::renew(common, settings);
    }
    outcome
}
