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

use clap::error::ErrorKind;
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
            let outcome = run(&matches).unwrap_or_else(|refusal| misused(&refusal, is_check));
            (outcome, is_check)
        }
        Err(error) => {
            let is_check = tips::command_in(&written).as_deref() == Some("check");
            let mut error = visibly(&written).unwrap_or(error);
            let is_help = error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;
            if error.use_stderr() && !is_help && operate::settings::ask_for_json(&written) {
                output::speak_json();
            }
            tips::improve(&mut error, &written);
            (reported(&error, is_check), is_check)
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

/// Reports why the command line, or the settings, cannot be followed.
fn misused(reason: &str, is_check: bool) -> Outcome {
    output::error_line(reason);
    if is_check {
        operate::check::unknown(reason);
    }
    Outcome::Misused
}

/// Prints help, the version, or the error in the command line.
fn reported(error: &clap::Error, is_check: bool) -> Outcome {
    if !error.use_stderr() {
        output::printed(error.print());
        return Outcome::Succeeded;
    }
    let text = error.render().to_string();
    let text = text.trim_start_matches("error: ");
    if output::speaks_json() {
        output::error_line(text);
    } else {
        // A failure to print could not be reported.
        error.print().ok();
    }
    if is_check {
        // What follows is how the command is used.
        let (reason, _) = text.split_once("\n\n").unwrap_or((text, ""));
        operate::check::unknown(reason);
    }
    Outcome::Misused
}

/// What the command line and the configuration files say. A server asks again.
fn configured(matches: &ArgMatches) -> Result<(Common, Settings), String> {
    let arguments = Arguments::from_arg_matches(matches).map_err(|error| {
        let text = error.to_string();
        text.trim_start_matches("error: ").to_owned()
    })?;
    let mut common = arguments.common;
    let settings = operate::settings::load(&common, matches).map_err(|error| error.to_string())?;
    settings.apply(&mut common);
    Ok((common, settings))
}

/// Runs the command; or says why the command line, or the settings, cannot be followed.
fn run(matches: &ArgMatches) -> Result<Outcome, String> {
    let arguments = Arguments::from_arg_matches(matches).map_err(|error| {
        let text = error.to_string();
        text.trim_start_matches("error: ").to_owned()
    })?;
    let command = arguments.command;
    let configured = configured(matches);
    if matches!(&configured, Ok((common, _)) if common.json) {
        output::speak_json();
    }
    if let Some(refusal) = url::misplaced(matches) {
        return Err(refusal.text);
    }
    let (common, settings) = configured?;
    let is_server = matches!(command, Command::Serve(_));
    let log = settings.begin_log(is_server);
    log.map_err(|error| error.to_string())?;
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
    Ok(outcome)
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
