//! Metrics for Prometheus: a text file for the textfile collector of `node_exporter`.
//!
//! [`windlass_instance::overview::metrics`] makes the text. The file is replaced atomically.

use std::io;
use std::path::Path;

use serde_json::{Map, Value as Json, json};
use windlass_catalog::Catalog;
use windlass_instance::Identity;
use windlass_instance::overview::metrics::text;

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
    let text = match text(session.instance().catalog(), machine) {
        Ok(text) => text,
        Err(error) => return failed(&error, &mut console),
    };
    let Some(output) = &arguments.output else {
        match common.json {
            true => result_json(&samples(&text).to_string()),
            false => result_text(text.trim_end()),
        }
        return Outcome::Succeeded;
    };
    match write(output, &text) {
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
        .and_then(|catalog| text(&catalog, &machine))
        .map_err(io::Error::other)
        .and_then(|text| write(path, &text));
    if let Err(error) = result {
        message_line(&format!("warning: the metrics were not written: {error}"));
    }
}

/// Writes the file; a device or link under its name is kept. It is world-readable, because the
/// collector runs as another user.
fn write(path: &Path, text: &str) -> io::Result<()> {
    windlass_io::output::write(path, text.as_bytes(), windlass_io::output::MODE_PUBLIC)
}

/// The samples of the text as objects: name, labels and value.
fn samples(text: &str) -> Json {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(sample).collect()
}

/// `name{label="value",...} number`
fn sample(line: &str) -> Option<Json> {
    let (series, value) = line.rsplit_once(' ')?;
    let (name, mut rest) = series.split_once('{').unwrap_or((series, ""));
    let mut labels = Map::new();
    while let Some((label, after)) = rest.split_once("=\"") {
        let mut content = String::new();
        let mut letters = after.char_indices();
        let end = loop {
            match letters.next()? {
                (at, '"') => break at,
                (_, '\\') => content.push(match letters.next()?.1 {
                    'n' => '\n',
                    other => other,
                }),
                (_, letter) => content.push(letter),
            }
        };
        labels.insert(label.trim_start_matches(',').to_owned(), content.into());
        rest = after.get(end + 1..)?;
    }
    let value = value.parse::<f64>().ok()?;
    Some(json!({ "name": name, "labels": labels, "value": value }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_become_objects() {
        let text =
            "# HELP a b\n# TYPE a gauge\na 1.5\nb{database=\"x, \\\"y\\\"\",kind=\"full\"} 3\n";
        assert_eq!(
            samples(text),
            json!([
                { "name": "a", "labels": {}, "value": 1.5 },
                { "name": "b", "labels": { "database": "x, \"y\"", "kind": "full" }, "value": 3.0 },
            ])
        );
    }
}
