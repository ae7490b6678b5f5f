//! `windlass top`: the backups and restores running on an instance, and what follows its SQLite files, updated
//! continuously.

use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::{Map, Value as Json, json};
use windlass_base::{Moment, json_time};
use windlass_instance::{BatchEnd, Collected, Session, json};

use super::TopArguments;
use crate::args::Common;
use crate::command::{Outcome, existing_session, misused};
use crate::output::{
    Console, Layout, Style, clear_screen, is_unread, result_json, result_line, terminal_width,
};

const QUERY: &str = "SELECT session_id, command, database_name, percent_complete, \
    total_elapsed_time / 1000 AS seconds, estimated_completion_time / 1000 AS seconds_left, \
    done_bytes * 1000 / max(total_elapsed_time, 1) / 1048576 AS mb_per_second, \
    round(done_bytes * 1.0 / max(stored_bytes, 1), 2) AS ratio \
    FROM sys.dm_exec_requests WHERE session_id <> @@SPID";

/// How the threads of each stage spend their time, in percent, and what they moved.
const STAGES: &str = "SELECT session_id, stage, threads, bytes_in / 1048576 AS mb_in, \
    bytes_out / 1048576 AS mb_out, bytes_per_call / 1024 AS kb_per_call, \
    mean_in_flight AS in_flight, \
    busy_time * 100 / max(busy_time + wait_input_time + wait_output_time, 1) AS busy_percent, \
    wait_input_time * 100 / max(busy_time + wait_input_time + wait_output_time, 1) \
        AS wait_input_percent, \
    wait_output_time * 100 / max(busy_time + wait_input_time + wait_output_time, 1) \
        AS wait_output_percent, \
    cpu_time / 1000.0 AS cpu_seconds \
    FROM sys.dm_exec_backup_stages";

/// The SQLite files whose log is kept, and their followers.
const FOLLOWERS: &str = "SELECT database_name, is_followed, held, commit_number, last_time, lag_ms, \
    lag_bytes / 1024 AS lag_kb, log_bytes / 1048576 AS log_mb, spool_bytes / 1048576 AS spool_mb, \
    let_goes, proofs, gaps, is_gap_open, error, cpu_ms / 1000.0 AS cpu_seconds \
    FROM sys.dm_db_log_followers";

/// Shows the state of one moment; for programs, as one object. False if that failed.
fn show(session: &mut Session, is_json: bool, console: &mut Console) -> bool {
    const PARTS: [(&str, &str); 3] = [
        ("requests", QUERY),
        ("stages", STAGES),
        ("followers", FOLLOWERS),
    ];
    let mut object = Map::new();
    object.insert(
        "at".to_owned(),
        json!(json_time(&Moment::now().0.to_string())),
    );
    for (name, query) in PARTS {
        let mut collected = Collected::default();
        let end = match is_json {
            true => session.execute_batch(query, 1, &mut collected),
            false => session.execute_batch(query, 1, console),
        };
        for message in collected.messages {
            console.message(message);
        }
        if end != BatchEnd::Clean {
            return false;
        }
        let rows = collected.results.iter().flat_map(json::rows).collect();
        object.insert(name.to_owned(), Json::Array(rows));
    }
    if is_json {
        result_json(&Json::Object(object).to_string());
    }
    true
}

/// Runs the command.
pub(super) fn run(arguments: &TopArguments, common: &Common) -> Outcome {
    if common.instance.is_none() {
        return misused("watching needs --instance");
    }
    let width = terminal_width().filter(|_| !arguments.once && !common.json);
    let style = Style {
        line_max: width,
        ..Style::default()
    };
    let mut console = Console::new(common.json, Layout::Table).with_style(style);
    let Some(mut session) = existing_session(common, &mut console) else {
        return Outcome::Failed;
    };
    let stop = session.cancel_flag();
    loop {
        if width.is_some() {
            clear_screen();
            let every = arguments.every;
            result_line(&format!(
                "{}  every {every} s, Ctrl-C ends",
                Moment::now().0
            ));
        }
        if !show(&mut session, common.json, &mut console) {
            return match stop.load(Ordering::Relaxed) {
                true => Outcome::Succeeded,
                false => Outcome::Failed,
            };
        }
        if arguments.once || is_unread() {
            return Outcome::Succeeded;
        }
        // A single long wait would delay the response to Ctrl-C.
        for _ in 0..arguments.every * 10 {
            if stop.load(Ordering::Relaxed) {
                return Outcome::Succeeded;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}
