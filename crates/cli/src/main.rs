//! The command line of Windlass: plain commands and T-SQL, both through the same sessions.
//!
//! | file | what |
//! |---|---|
//! | [`args`] | parsing of the command line |
//! | `complete` | completions for shells |
//! | `command/` | one file per command: turns its arguments into options and runs the operation |
//! | `output/` | tables, JSON, progress |
//! | `operate/` | commands for operators: history, retention, configuration, metrics, checks |
//! | `demo/` | the self-contained demo |
//! | `logging` | the log: start, end and errors of statements |
//! | `user` | where a user's settings and history are |
//! | `service` | notifications to a service manager |
//! | `cancel` | signals: the first cancels the statement, the second ends the program |
//!
//! Results go to standard output, messages to standard error; the exit code is 0 only on success.
#![forbid(unsafe_code)]

mod args;
mod cancel;
mod command;
mod complete;
mod demo;
mod logging;
mod operate;
mod output;
mod service;
mod tips;
mod url;
mod user;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{ArgMatches, FromArgMatches as _};
use windlass_base::visible;

use args::{Arguments, Command, Common};
use command::Outcome;
use operate::settings::Settings;

/// The exit code of `check` if nothing was checked.
const UNKNOWN: u8 = 3;

fn main() -> ExitCode {
    if complete::answer() {
        return ExitCode::SUCCESS;
    }
    // A sandbox that forbids it has other ways to prevent core files.
    let _kept = windlass_io::secret::keep_memory();
    // SQL Backup's own spelling has one dash, which would be parsed as single letters.
    let written = std::env::args_os().map(|argument| {
        if argument.eq_ignore_ascii_case("-SQL") {
            "--sql".into()
        } else {
            argument
        }
    });
    let written: Vec<OsString> = written.collect();
    // Before it is known what the command line says, its errors have to be objects.
    if written.iter().any(|word| word == "--json") {
        output::speak_json();
    }
    let (outcome, is_check) = match args::command().try_get_matches_from(&written) {
        Ok(matches) => {
            let is_check = matches.subcommand_name() == Some("check");
            (run(&matches), is_check)
        }
        Err(error) => {
            let is_check = written.iter().any(|word| word == "check");
            let mut error = visibly(&written).unwrap_or(error);
            tips::improve(&mut error, &written);
            (reported(&error), is_check)
        }
    };
    // A truncated result must not be mistaken for a complete one.
    let outcome = match output::finish() {
        Ok(()) => outcome,
        Err(error) => {
            output::error_line(&format!(
                "standard output: {error}; the output is incomplete"
            ));
            match outcome {
                Outcome::Misused | Outcome::Checked(1..) => outcome,
                Outcome::Succeeded | Outcome::Failed | Outcome::Checked(0) => Outcome::Failed,
            }
        }
    };
    // For monitoring systems 2 means CRITICAL, but what was not checked is UNKNOWN.
    ExitCode::from(match outcome {
        Outcome::Misused | Outcome::Failed if is_check => UNKNOWN,
        outcome => outcome.code(),
    })
}

/// The error for a command line, with its words escaped, because errors quote them.
fn visibly(written: &[OsString]) -> Option<clap::Error> {
    let words = written
        .iter()
        .map(|word| visible(&word.to_string_lossy()).into_owned());
    args::command().try_get_matches_from(words).err()
}

/// Prints help, the version, or the error in the command line.
fn reported(error: &clap::Error) -> Outcome {
    if error.use_stderr() && output::speaks_json() {
        let text = error.render().to_string();
        output::error_line(text.trim_start_matches("error: "));
        return Outcome::Misused;
    }
    let printed = error.print();
    if error.use_stderr() {
        // A failure to print could not be reported.
        return Outcome::Misused;
    }
    output::printed(printed);
    Outcome::Succeeded
}

/// What the command line and the configuration files say. A server asks again.
fn configured(matches: &ArgMatches) -> Result<(Common, Settings), String> {
    let arguments = Arguments::from_arg_matches(matches).map_err(|error| error.to_string())?;
    let mut common = arguments.common;
    let settings = operate::settings::load(&common, matches).map_err(|error| error.to_string())?;
    settings.apply(&mut common);
    Ok((common, settings))
}

fn run(matches: &ArgMatches) -> Outcome {
    if let Some(refusal) = url::misplaced(matches) {
        output::error_line(&refusal.text);
        return Outcome::Misused;
    }
    let command = match Arguments::from_arg_matches(matches) {
        Ok(arguments) => arguments.command,
        Err(error) => return reported(&error),
    };
    let (common, settings) = match configured(matches) {
        Ok(configured) => configured,
        Err(error) => {
            output::error_line(&error);
            return Outcome::Misused;
        }
    };
    if common.json {
        output::speak_json();
    }
    let is_server = matches!(command, Command::Serve(_));
    if let Err(error) = settings.begin_log(is_server) {
        output::error_line(&error.to_string());
        return Outcome::Misused;
    }
    let name = matches.subcommand_name().unwrap_or_default().to_owned();
    let is_service = !matches!(command, Command::DemoWriter(_));
    // A server has started when it listens.
    if is_service && !is_server {
        service::begin(&name);
    }
    tracing::debug!(
        command = name,
        version = env!("CARGO_PKG_VERSION"),
        "program started"
    );
    let outcome = execute(command, &common, &settings, matches);
    let how = match outcome {
        Outcome::Succeeded => "succeeded",
        Outcome::Failed => "failed",
        Outcome::Misused => "was misused",
        Outcome::Checked(0) => "found no trouble",
        Outcome::Checked(_) => "found trouble",
    };
    if is_service {
        service::end(&name, how);
    }
    tracing::debug!(command = name, how, "program ended");
    outcome
}

/// Runs a command, and updates the metrics after one that changes them.
fn execute(
    command: Command,
    common: &Common,
    settings: &Settings,
    matches: &ArgMatches,
) -> Outcome {
    let is_dry_run = match &command {
        Command::Backup(arguments) => arguments.run.dry_run,
        Command::Restore(arguments) => arguments.run.dry_run,
        Command::Operate(operate::Command::Sqlbackup(arguments)) => arguments.dry_run,
        Command::Operate(operate::Command::Copies(arguments)) => arguments.dry_run,
        _ => false,
    };
    let renews_metrics = !is_dry_run
        && matches!(
            command,
            Command::Backup(_)
                | Command::Restore(_)
                | Command::Sql(_)
                | Command::Operate(operate::Command::Sqlbackup(_) | operate::Command::Copies(_))
        );
    let outcome = match command {
        Command::Backup(arguments) => command::backup::run(&arguments, common),
        Command::Restore(arguments) => command::restore::run(&arguments, common),
        Command::Follow(arguments) => command::follow::run(&arguments, common),
        Command::Verify(arguments) => command::verify::run(&arguments, common),
        Command::Header(arguments) => command::inspect::header(&arguments, common),
        Command::Files(arguments) => command::inspect::files(&arguments, common),
        Command::Label(arguments) => command::inspect::label(&arguments, common),
        Command::Inspect(arguments) => command::sqlserver::inspect(&arguments, common),
        Command::Extract(arguments) => command::extract::run(&arguments, common),
        Command::Repack(arguments) => command::repack::repack(&arguments, common),
        Command::Unpack(arguments) => command::repack::unpack(&arguments, common),
        Command::Rekey(arguments) => command::rekey::run(&arguments, common),
        Command::SigningKey(arguments) => command::signing_key::run(&arguments, common),
        Command::Import(arguments) => command::import_export::import(&arguments, common),
        Command::Export(arguments) => command::import_export::export(&arguments, common),
        Command::Sql(arguments) => command::sql::run(&arguments, common),
        Command::Serve(arguments) => {
            command::serve::run(&arguments, common, settings, &|| configured(matches))
        }
        Command::Install(arguments) => command::install::run(&arguments, common),
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
