//! Completions and manual pages, generated from the command line definition.

use std::path::Path;

use clap::CommandFactory as _;
use clap_complete::Shell;

use crate::args::Arguments;
use crate::command::Outcome;
use crate::output::{message_line, result_bytes};

/// `windlass completions SHELL`
pub(super) fn completions(shell: Shell) -> Outcome {
    let mut command = Arguments::command();
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, "windlass", &mut script);
    result_bytes(&script);
    Outcome::Succeeded
}

/// `windlass man FOLDER`
pub(super) fn man(folder: &Path) -> Outcome {
    let made = std::fs::create_dir_all(folder)
        .and_then(|()| clap_mangen::generate_to(Arguments::command(), folder));
    match made {
        Ok(()) => Outcome::Succeeded,
        Err(error) => {
            message_line(&format!("error: {}: {error}", folder.display()));
            Outcome::Failed
        }
    }
}
