//! `windlass bench`

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use windlass_tune::experiment::{self, CheckpointConditions, Conditions, Experiment};

use super::Outcome;
use super::measuring::{announce, check_files, publish, subject};
use crate::args::{BenchArguments, BenchCommand, BenchRun, Common};
use crate::output::error_line;

/// Runs the command.
pub(crate) fn run(arguments: &BenchArguments, common: &Common) -> Outcome {
    let Some((run, experiment)) = experiment(&arguments.experiment) else {
        return checkpoint(&arguments.experiment, common);
    };
    if let Err(outcome) = check_files(&run.files) {
        return outcome;
    }
    let Some(subject) = subject(&run.database, run.content.as_is, &run.to, common) else {
        return Outcome::Failed;
    };
    let folders = match subject.targets.is_empty() {
        true => vec![windlass_io::directory::parent(subject.database.path())],
        false => subject.targets.clone(),
    };
    let conditions = Conditions {
        rounds: run.rounds as usize,
        cache: run.cache.cache.into(),
        folders,
    };
    let measured = experiment::run(
        &experiment,
        &subject.database,
        &conditions,
        &subject.cancel,
        &announce(common),
    );
    match measured {
        Ok(measurements) => publish(&measurements, &run.files, common),
        Err(error) => {
            error_line(&error.to_string());
            Outcome::Failed
        }
    }
}

/// The experiment that creates its own databases.
fn checkpoint(command: &BenchCommand, common: &Common) -> Outcome {
    let BenchCommand::Checkpoint {
        to,
        pool_pages,
        size,
        rounds,
        short,
        files,
    } = command
    else {
        return Outcome::Misused;
    };
    if let Err(outcome) = check_files(files) {
        return outcome;
    }
    let conditions = match short {
        true => CheckpointConditions::short(to.clone()),
        false => CheckpointConditions {
            folder: to.clone(),
            pool_pages: *pool_pages,
            database_bytes: distinct(size.iter().copied()),
            rounds: *rounds as usize,
        },
    };
    let cancel = Arc::new(AtomicBool::new(false));
    crate::cancel::watch(&cancel);
    match experiment::run_checkpoint(&conditions, &cancel, &announce(common)) {
        Ok(measurements) => publish(&measurements, files, common),
        Err(error) => {
            error_line(&error.to_string());
            Outcome::Failed
        }
    }
}

/// An experiment on a database of the user; `None` for the one that creates its own.
fn experiment(command: &BenchCommand) -> Option<(&BenchRun, Experiment)> {
    Some(match command {
        BenchCommand::Checkpoint { .. } => return None,
        BenchCommand::Compression { run, compressions } => {
            let compressions = compressions.list(true);
            (run, Experiment::Compression { compressions })
        }
        BenchCommand::Devices {
            run,
            files,
            block_size,
            max_transfer_size,
            compress,
        } => {
            let experiment = Experiment::Devices {
                files: distinct(files.iter().map(|files| usize::from(*files))),
                block_bytes: distinct(block_size.iter().copied()),
                transfer_bytes: distinct(max_transfer_size.iter().copied()),
                compression: *compress,
            };
            (run, experiment)
        }
        BenchCommand::Stages {
            run,
            compressions,
            threads,
        } => {
            let threads = if threads.is_empty() {
                experiment::thread_counts()
            } else {
                distinct(threads.iter().copied())
            };
            let compressions = compressions.list(false);
            let experiment = Experiment::Stages {
                compressions,
                threads,
            };
            (run, experiment)
        }
        BenchCommand::Restore { run, compressions } => {
            let compressions = compressions.list(true);
            (run, Experiment::Restore { compressions })
        }
    })
}

/// Numbers in ascending order, each once.
fn distinct<T: Ord>(numbers: impl Iterator<Item = T>) -> Vec<T> {
    let mut numbers: Vec<T> = numbers.collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}
