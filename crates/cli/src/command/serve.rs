//! `windlass serve`: an instance as a server.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::json;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use windlass_base::message::table;
use windlass_instance::agent::{self, Agent};
use windlass_instance::followers::{self, Followers, FollowersOptions};
use windlass_instance::{Client, Failure, Instance, Session};
use windlass_server::{HttpOptions, Limits, Options, Protection, Server};

use super::{Outcome, instance_settings, misused, new_instance, open};
use crate::args::{Common, ServeArguments};
use crate::operate::settings::Settings;
use crate::output::{Console, Layout, error_line, message_line, result_json, result_line};

/// Pause while jobs end.
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);

/// Reads the settings again.
type Configured<'a> = dyn Fn() -> Result<(Common, Settings), String> + 'a;

/// The instance; reports that it is made, or why it cannot be used.
fn opened(common: &Common, console: &mut Console) -> Option<Instance> {
    let made = new_instance(common);
    let opened = open(common);
    if opened.is_ok()
        && let Some(message) = made
    {
        console.message(message);
    }
    let opened = opened.map_err(|messages| {
        for message in messages {
            console.message(message);
        }
    });
    opened.ok()
}

/// Runs the command.
pub(crate) fn run(
    arguments: &ServeArguments,
    common: &Common,
    settings: &Settings,
    configured: &Configured<'_>,
) -> Outcome {
    let Some(folder) = &common.instance else {
        return misused("serve needs --instance DIR: the folder of the instance to serve");
    };
    if let Err(error) = Server::check_absent(folder) {
        return failed(&error);
    }
    let mut console = Console::new(common.json, Layout::Table);
    let Some(instance) = opened(common, &mut console) else {
        return Outcome::Failed;
    };
    // Each client takes two.
    if let Err(error) = windlass_io::limits::raise_open_files() {
        tracing::warn!(%error, "the limit of open files stays");
    }
    // Before the first client, so that no signal ends the server without its databases being closed.
    let mut signals = match Signals::new([SIGTERM, SIGINT, SIGHUP]) {
        Ok(signals) => signals,
        Err(error) => return failed(&error),
    };
    let instance = recovered(instance, &mut console);
    let server = match Server::start(instance, options(arguments)) {
        Ok(server) => server,
        Err(error) => return failed(&error),
    };
    let (agent, followers) = match workers(server.instance(), arguments) {
        Ok(workers) => workers,
        Err(failure) => {
            for message in failure.messages {
                console.message(message);
            }
            server.stop(|| false);
            return Outcome::Failed;
        }
    };
    announce(&server, common.json);
    // Programs that depend on it may start.
    crate::service::begin("serve");
    let sessions = server.instance().sessions().clone();
    crate::service::keep_alive(move || drop(sessions.list()));
    wait(&server, &mut signals, &mut |server| {
        reload(server, configured, (common, settings));
    });
    message_line("ending: no new clients; running requests may end");
    crate::service::end("serve", "is ending");
    let begun = Instant::now();
    let mut is_patient = move || {
        let is_asked_again = signals.pending().any(|signal| signal != SIGHUP);
        !is_asked_again && arguments.patience.lasts(begun.elapsed())
    };
    server.refuse_clients();
    let mut lasts = true;
    while agent.running() > 0 && lasts {
        std::thread::sleep(BETWEEN_LOOKS);
        lasts = is_patient();
    }
    agent.stop(true);
    followers.stop();
    let stopped = server.stop(move || lasts && is_patient());
    if stopped.cancelled > 0 {
        message_line(&format!(
            "{} running requests were cancelled",
            stopped.cancelled
        ));
    }
    ended(stopped.not_closed, &mut console)
}

/// Says how the databases ended.
fn ended(not_closed: Vec<(String, Failure)>, console: &mut Console) -> Outcome {
    if not_closed.is_empty() {
        message_line("ended: all databases are closed");
        return Outcome::Succeeded;
    }
    for (database, failure) in not_closed {
        console.message(table::database_not_closed(database));
        for message in failure.messages {
            console.message(message);
        }
    }
    Outcome::Failed
}

fn failed(error: &dyn std::error::Error) -> Outcome {
    error_line(&error.to_string());
    Outcome::Failed
}

fn options(arguments: &ServeArguments) -> Options {
    Options {
        tds: match arguments.local_only {
            true => Vec::new(),
            false => arguments.tds.clone(),
        },
        protection: match arguments.plain {
            true => Protection::Offered,
            false => Protection::Required,
        },
        certificate: arguments.certificate.clone().zip(arguments.key.clone()),
        limits: Limits {
            connections: arguments.max_connections,
            ..Limits::default()
        },
        http: (!arguments.local_only && !arguments.no_http).then(|| HttpOptions {
            addresses: arguments.http.clone(),
            rpo_minutes: arguments.rpo,
        }),
    }
}

/// Opens all databases of the page engine, which recovers those that a crash left.
fn recovered(instance: Instance, console: &mut Console) -> Instance {
    let mut session = Session::new(instance);
    for (database, failure) in session.open_engine_databases() {
        console.message(table::database_not_opened(database));
        for message in failure.messages {
            console.message(message);
        }
    }
    session.into_instance()
}

/// Starts what works without clients.
fn workers(instance: &Instance, arguments: &ServeArguments) -> Result<(Agent, Followers), Failure> {
    Ok((jobs(instance, arguments)?, followers(instance, arguments)?))
}

/// Runs the jobs of the instance.
fn jobs(instance: &Instance, arguments: &ServeArguments) -> Result<Agent, Failure> {
    let folder = instance.folder().unwrap_or(Path::new(".")).to_owned();
    let sessions = sessions_of(instance, "SQLAgent - TSQL JobStep");
    let options = agent::Options {
        on_failure: arguments.on_job_failure.as_deref().map(agent::Hook::of),
        ..agent::Options::default()
    };
    agent::start(&folder, sessions, options)
}

/// Follows the SQLite files of the instance whose recovery model is FULL.
fn followers(instance: &Instance, arguments: &ServeArguments) -> Result<Followers, Failure> {
    let folder = instance.folder().unwrap_or(Path::new(".")).to_owned();
    let options = FollowersOptions {
        every: arguments.follow_every,
        spool_bytes_max: arguments.spool_max,
        when_full: arguments.when_full,
    };
    followers::start(
        &folder,
        sessions_of(instance, "Windlass - log follower"),
        options,
    )
}

/// Makes sessions of the server's own.
fn sessions_of(
    instance: &Instance,
    program: &'static str,
) -> impl Fn() -> Result<Session, Failure> + Send + Sync + 'static {
    let shared = instance.share();
    move || {
        let instance = shared.open()?;
        let client = Client {
            login: instance.identity().user.clone(),
            host: instance.identity().machine.clone(),
            program: program.to_owned(),
            process: std::process::id(),
            ..Client::default()
        };
        Ok(Session::of_client(instance, client))
    }
}

fn announce(server: &Server, is_json: bool) {
    let listening = |place: &str, what: &str| match is_json {
        true => result_json(&json!({ "listening": place, "for": what }).to_string()),
        false => result_line(&format!("listening on {place} ({what})")),
    };
    let addresses = server.addresses();
    for address in &addresses.tds {
        listening(&address.to_string(), "TDS");
    }
    for address in &addresses.http {
        let scheme = match address.ip().is_loopback() {
            true => "http",
            false => "https",
        };
        listening(&format!("{scheme}://{address}/"), "page");
    }
    let socket = addresses.socket.display().to_string();
    listening(&socket, "this user, without a password");
}

/// Waits for a signal to end.
fn wait(server: &Server, signals: &mut Signals, reload: &mut dyn FnMut(&Server)) {
    for signal in signals.forever() {
        if signal != SIGHUP {
            return;
        }
        reload(server);
    }
}

/// Reads the certificate and the settings again. What cannot be read leaves everything as it was.
fn reload(server: &Server, configured: &Configured<'_>, started: (&Common, &Settings)) {
    crate::logging::reopen();
    match server.reload() {
        Ok(()) => message_line("the certificate was read again"),
        Err(error) => error_line(&format!("{error}; the old certificate stays")),
    }
    let (common, settings) = match configured() {
        Ok(found) => found,
        Err(error) => {
            error_line(&format!("{error}; the old settings stay"));
            return;
        }
    };
    server.set_settings(instance_settings(&common));
    message_line("the settings were read again");
    let was = started.0;
    let needs_start = [
        ("instance", was.instance != common.instance),
        ("machine_name", was.machine_name != common.machine_name),
        ("log", started.1.log() != settings.log()),
    ];
    for (name, has_changed) in needs_start {
        if has_changed {
            message_line(&format!("{name}: the change needs a restart of the server"));
        }
    }
}
