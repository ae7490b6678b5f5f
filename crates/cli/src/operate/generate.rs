//! Completions and manual pages.

use std::path::Path;

use clap_complete::Shell;
use serde_json::json;

use super::man;
use crate::args::Common;
use crate::command::Outcome;
use crate::complete;
use crate::output::{error_line, result_bytes, result_json};

/// `windlass completions SHELL`
pub(super) fn completions(shell: Shell, common: &Common) -> Outcome {
    let script = match complete::script(&shell.to_string()) {
        Ok(script) => script,
        Err(error) => {
            error_line(&error.to_string());
            return Outcome::Failed;
        }
    };
    if common.json {
        let script = String::from_utf8_lossy(&script);
        let object = json!({ "shell": shell.to_string(), "script": script });
        result_json(&object.to_string());
    } else {
        result_bytes(&script);
    }
    Outcome::Succeeded
}

/// `windlass man FOLDER`
pub(super) fn man(folder: &Path, common: &Common) -> Outcome {
    match man::write(folder) {
        Ok(pages) => {
            if common.json {
                let pages: Vec<String> = pages
                    .iter()
                    .map(|page| page.display().to_string())
                    .collect();
                result_json(&json!({ "pages": pages }).to_string());
            }
            Outcome::Succeeded
        }
        Err(error) => {
            error_line(&format!("{}: {error}", folder.display()));
            Outcome::Failed
        }
    }
}
