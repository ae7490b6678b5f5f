//! `windlass copies`: the copy queue.

use serde_json::{Value as Json, json};
use windlass_base::size::Bytes;
use windlass_base::{Moment, json_time};
use windlass_catalog::QueuedCopy;
use windlass_instance::sqlbackup::{due_copies, run_queue};

use super::{CopiesArguments, texts};
use crate::args::Common;
use crate::command::{Outcome, failed, is_there, misused, session_for};
use crate::output::{Console, Layout, error_line, message_line, result_json};

/// Runs the command.
pub(super) fn run(arguments: &CopiesArguments, common: &Common) -> Outcome {
    if common.instance.is_none() {
        return misused("the copy queue needs --instance");
    }
    let mut console = Console::new(common.json, Layout::Table);
    if !is_there(common, &mut console) {
        return Outcome::Failed;
    }
    let Some(mut session) = session_for(arguments.dry_run, common, &mut console) else {
        return Outcome::Failed;
    };
    let mut outcome = Outcome::Succeeded;
    if arguments.run {
        session.make_folders(arguments.make_folders);
        let now = Moment::now().0;
        // All pending copies are due within a year.
        let now = if arguments.now {
            now.plus_days(365)
        } else {
            now
        };
        if arguments.dry_run {
            for copy in due_copies(&session, now) {
                let bytes = std::fs::metadata(&copy.source).map_or(0, |source| source.len());
                message_line(&format!(
                    "would copy '{}' ({}) to '{}'",
                    copy.source.display(),
                    Bytes(bytes),
                    copy.target.display()
                ));
            }
            message_line("Dry run: nothing was changed.");
        }
        let copies = match arguments.dry_run {
            true => Vec::new(),
            false => run_queue(&mut session, now),
        };
        for copy in copies {
            match copy.error {
                None => message_line(&format!("copied to {}", copy.target.display())),
                Some(error) => {
                    outcome = Outcome::Failed;
                    error_line(&format!("{}: {error}", copy.target.display()));
                }
            }
        }
    }
    match session.instance().catalog().queued_copies() {
        Ok(queued) => {
            list(queued, common.json, &mut console);
            outcome
        }
        Err(error) => failed(&error, &mut console),
    }
}

/// Prints what waits in the queue.
fn list(queued: Vec<QueuedCopy>, is_json: bool, console: &mut Console) {
    if is_json {
        let copies = queued.iter().map(|copy| {
            json!({
                "source": copy.source.display().to_string(),
                "target": copy.target.display().to_string(),
                "attempts": copy.attempts,
                "next_attempt": copy.next_attempt.map(|next| json_time(&next.to_string())),
                "last_error": copy.last_error,
            })
        });
        let copies: Vec<_> = copies.collect();
        return result_json(&Json::Array(copies).to_string());
    }
    let rows = queued.into_iter().map(|copy| {
        vec![
            copy.source.display().to_string(),
            copy.target.display().to_string(),
            copy.attempts.to_string(),
            copy.next_attempt
                .map_or_else(String::new, |next| next.to_string()),
            copy.last_error.unwrap_or_default(),
        ]
    });
    let columns = ["source", "target", "attempts", "next attempt", "last error"];
    texts(&columns, rows.collect()).send(console);
}
