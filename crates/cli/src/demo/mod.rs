//! `windlass demo`: backup, verification and restore of a database under write load, with proof.
//!
//! Everything happens in a temporary folder, in T-SQL that is printed before it runs, through the
//! same session as `windlass sql`.

mod database;
mod proof;
mod run;
mod text;
pub(crate) mod writer;

use std::path::{Path, PathBuf};
use std::time::Instant;

use windlass_base::Message;
use windlass_base::size::Bytes;
use windlass_codec::{Algorithm, Compression};
use windlass_instance::message_of::file_and_reason;

use crate::args::{Common, DemoArguments};
use crate::command::Outcome;
use crate::output::{Table, message_line, message_text, result_json, result_text};
use proof::Disproof;
use run::{Measured, Runner};
use writer::WriterProcess;

/// Why the demo failed.
#[derive(Debug, thiserror::Error)]
enum Error {
    /// A statement failed; its messages have the reason.
    #[error("the statement failed")]
    Statement(Vec<Message>),
    /// The copy is wrong.
    #[error("the restored copy is wrong: {0}")]
    Disproved(#[from] Disproof),
    /// The database could not be created or read.
    #[error("SQLite: {0}")]
    Sqlite(#[from] rusqlite::Error),
    /// The folder or the writer could not be created.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// The writer exited by itself.
    #[error("the writer failed")]
    Writer,
}

/// An error that names its file.
fn of_file(path: &Path, error: &std::io::Error) -> std::io::Error {
    std::io::Error::new(error.kind(), file_and_reason(path, error))
}

/// Runs the demonstration.
pub(crate) fn run(arguments: &DemoArguments, common: &Common) -> Outcome {
    let begun = Instant::now();
    match demonstrate(arguments, common.json) {
        Ok(()) => {
            announce(
                common.json,
                &format!(
                    "Done in {:.0} seconds; the folder is removed.",
                    begun.elapsed().as_secs_f64()
                ),
            );
            Outcome::Succeeded
        }
        Err(_) if crate::cancel::is_interrupted() => {
            message_line("Interrupted: nothing was proved.");
            Outcome::Failed
        }
        Err(error) => {
            let reason = error.to_string();
            let end = if reason.ends_with(['.', '?']) {
                ""
            } else {
                "."
            };
            message_line(&format!("The demonstration failed: {reason}{end}"));
            if let Error::Statement(messages) = error {
                for message in messages {
                    message_text(&message.to_string());
                }
            }
            Outcome::Failed
        }
    }
}

/// Progress goes to standard output for people, but not with JSON.
fn announce(is_json: bool, text: &str) {
    if is_json {
        message_text(text);
    } else {
        result_text(text);
    }
}

/// Where things are.
struct Places {
    database: PathBuf,
    copy: PathBuf,
    folder: PathBuf,
}

fn demonstrate(arguments: &DemoArguments, is_json: bool) -> Result<(), Error> {
    let folder = match &arguments.folder {
        Some(parent) => tempfile::Builder::new()
            .prefix("windlass-demo-")
            .tempdir_in(parent)
            .map_err(|error| of_file(parent, &error))?,
        None => tempfile::Builder::new()
            .prefix("windlass-demo-")
            .tempdir()?,
    };
    let places = Places {
        database: folder.path().join("demo.db"),
        copy: folder.path().join("copy.db"),
        folder: folder.path().to_owned(),
    };
    make_database(arguments, &places, is_json)?;
    let mut runner = Runner::new(&places.database, &places.folder, is_json)?;
    runner.title(
        "1. Back up to four stripes with each algorithm while another process keeps writing",
    );
    let writer = WriterProcess::start(&places.database)?;
    let busy = while_writing(&mut runner, &places);
    let ended = writer.stop()?;
    let busy = busy?;
    if !ended {
        return Err(Error::Writer);
    }
    runner.title("2. What the media contain");
    runner.show_header()?;
    runner.show_files()?;
    runner.title("3. The writer has stopped: each copy must equal the database, byte by byte");
    let quiet = at_rest(&mut runner, &places)?;
    runner.title("4. A differential");
    differential(&mut runner, &places)?;
    runner.title("5. Sizes and rates");
    report(&busy, &quiet, is_json);
    drop(runner);
    folder.close()?;
    Ok(())
}

fn make_database(arguments: &DemoArguments, places: &Places, is_json: bool) -> Result<(), Error> {
    let begun = Instant::now();
    match &arguments.database {
        Some(from) => {
            // SQLite would create an empty database under a name that does not exist.
            std::fs::metadata(from).map_err(|error| of_file(from, &error))?;
            announce(is_json, &format!("Taking a copy of {} ...", from.display()));
            database::copy(from, &places.database)?;
        }
        None => {
            let size = arguments.size;
            announce(
                is_json,
                &format!(
                    "Making a database of posts, comments and users, {} ...",
                    Bytes(size.cast_unsigned())
                ),
            );
            database::make(&places.database, size)?;
        }
    }
    let bytes = std::fs::metadata(&places.database)?.len();
    let seconds = begun.elapsed().as_secs_f64();
    announce(
        is_json,
        &format!(
            "{}: {} in {seconds:.1} s",
            places.database.display(),
            Bytes(bytes)
        ),
    );
    Ok(())
}

/// One backup and restore for each algorithm, under write load.
fn while_writing(runner: &mut Runner, places: &Places) -> Result<Vec<Measured>, Error> {
    let mut all = Vec::new();
    for compression in Compression::ALL {
        let before = proof::last_commit(&places.database)?;
        let mut measured = runner.backup(compression, 4)?;
        let after = proof::last_commit(&places.database)?;
        runner.restore(compression, &places.copy, &mut measured)?;
        let state = proof::is_committed_state(&places.copy, before, after)?;
        runner.say(&format!(
            "  the copy is intact and is at commit {state}: {before} before the backup, {after} \
             after it"
        ));
        all.push(measured);
        std::fs::remove_file(&places.copy)?;
    }
    Ok(all)
}

/// One backup and restore for each algorithm, without write load.
fn at_rest(runner: &mut Runner, places: &Places) -> Result<Vec<Measured>, Error> {
    // The last connection to a database in WAL mode folds the log into it.
    proof::last_commit(&places.database)?;
    let mut all = Vec::new();
    for compression in Compression::ALL {
        let mut measured = runner.backup(compression, 4)?;
        runner.restore(compression, &places.copy, &mut measured)?;
        let bytes = proof::is_identical(&places.database, &places.copy)?;
        runner.say(&format!("  all {bytes} bytes are identical"));
        all.push(measured);
        std::fs::remove_file(&places.copy)?;
    }
    Ok(all)
}

/// A full backup, some changes, a differential, and both restored.
fn differential(runner: &mut Runner, places: &Places) -> Result<(), Error> {
    let full = runner.backup(Compression::ZSTD_LOW, 1)?;
    let writer = WriterProcess::start(&places.database)?;
    std::thread::sleep(std::time::Duration::from_millis(150));
    if !writer.stop()? {
        return Err(Error::Writer);
    }
    let commit = proof::last_commit(&places.database)?;
    let changed = runner.differential()?;
    runner.restore_sequence(&places.copy)?;
    proof::is_committed_state(&places.copy, commit, commit)?;
    let bytes = proof::is_identical(&places.database, &places.copy)?;
    runner.say(&format!(
        "  {} for the full backup, {} for the differential; all {bytes} bytes are identical",
        Bytes(full.stored_bytes),
        Bytes(changed.stored_bytes)
    ));
    Ok(())
}

fn report(busy: &[Measured], quiet: &[Measured], is_json: bool) {
    let baseline = quiet
        .iter()
        .find(|run| run.compression == Compression::MS_XPRESS);
    if is_json {
        let rows: Vec<_> = quiet
            .iter()
            .zip(busy)
            .map(|(quiet, busy)| quiet.to_json(busy))
            .collect();
        result_json(&serde_json::Value::Array(rows).to_string());
        return;
    }
    let headings = [
        "algorithm",
        "stored",
        "ratio",
        "size",
        "backup",
        "MB/s",
        "speed",
        "restore",
        "MB/s",
        "backup, writing",
    ];
    let mut table = Table::of_texts(&headings, &[1, 2, 3, 4, 5, 6, 7, 8, 9]);
    for (quiet, busy) in quiet.iter().zip(busy) {
        table.texts(quiet.to_row(busy, baseline));
    }
    table.finish();
    result_text(
        "\nsize and speed are relative to MS_XPRESS; the last column is the rate with the writer at work.",
    );
}

/// The T-SQL syntax of an algorithm.
fn with_clause(compression: Compression) -> String {
    match (compression.algorithm, compression.level) {
        (Algorithm::None, _) => "NO_COMPRESSION".to_owned(),
        (algorithm, None) => format!("COMPRESSION (ALGORITHM = {algorithm})"),
        (algorithm, Some(level)) => {
            format!("COMPRESSION (ALGORITHM = {algorithm}, LEVEL = {level})")
        }
    }
}

/// The files of a striped backup.
fn stripes(folder: &Path, compression: Compression, count: usize) -> Vec<PathBuf> {
    let name = compression.to_string().to_lowercase().replace(':', "_");
    (1..=count)
        .map(|number| folder.join(format!("{name}_{number}.bak")))
        .collect()
}
