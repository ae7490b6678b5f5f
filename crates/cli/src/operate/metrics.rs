//! Metrics for Prometheus: a text file for the textfile collector of `node_exporter`.
//!
//! [`windlass_instance::overview::metrics`] has the values. The file is replaced atomically.

use std::io;
use std::path::Path;

use windlass_catalog::Catalog;
use windlass_instance::Identity;
use windlass_instance::overview::metrics::metrics;

use super::MetricsArguments;
use super::settings::Settings;
use crate::args::Common;
use crate::command::{Outcome, existing_session, failed, misused};
use crate::output::{Console, Layout, error_line, message_line, result_json, result_text};

/// Runs the command.
pub(super) fn run(arguments: &MetricsArguments, common: &Common) -> Outcome {
    if common.instance.is_none() {
        return misused("the metrics need --instance");
    }
    let mut console = Console::new(common.json, Layout::Table);
    let Some(session) = existing_session(common, &mut console) else {
        return Outcome::Failed;
    };
    let machine = &session.instance().identity().machine;
    let metrics = match metrics(session.instance().catalog(), machine) {
        Ok(metrics) => metrics,
        Err(error) => return failed(&error, &mut console),
    };
    let Some(output) = &arguments.output else {
        match common.json {
            true => result_json(&metrics.json().to_string()),
            false => result_text(metrics.text().trim_end()),
        }
        return Outcome::Succeeded;
    };
    match write(output, &metrics.text()) {
        Ok(()) => Outcome::Succeeded,
        Err(error) => {
            error_line(&format!("{}: {error}", output.display()));
            Outcome::Failed
        }
    }
}

/// Updates the metrics file named in the settings. Failures are only reported, because the backup
/// succeeded.
pub(crate) fn renew(common: &Common, settings: &Settings) {
    let (Some(path), Some(instance)) = (settings.metrics(), &common.instance) else {
        return;
    };
    let folder = instance.canonicalize().ok();
    let named = common.machine_name.clone();
    let machine = named.unwrap_or_else(|| Identity::of_instance(folder.as_deref()).machine);
    let result = Catalog::open(instance)
        .and_then(|catalog| metrics(&catalog, &machine))
        .map_err(io::Error::other)
        .and_then(|metrics| write(path, &metrics.text()));
    if let Err(error) = result {
        message_line(&format!("warning: the metrics were not written: {error}"));
    }
}

/// Writes the file; a device or link under its name is kept. It is world-readable, because the
/// collector runs as another user.
fn write(path: &Path, text: &str) -> io::Result<()> {
    windlass_io::output::write(path, text.as_bytes(), windlass_io::output::MODE_PUBLIC)
}
