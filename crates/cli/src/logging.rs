//! The program's log: its destination, format and level.
//!
//! Lines are appended one at a time, so several programs may share a file, and after log rotation
//! the next program creates a new file. The file is private to its owner.

use std::fmt;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::ValueEnum;
use serde::Deserialize;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::FormatTime;
use tracing_subscriber::fmt::writer::BoxMakeWriter;
use windlass_base::visible::{json_escaped, visible_lines};

use crate::output;

/// Log format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Format {
    /// One line of text per entry
    Text,
    /// One JSON object per line
    Json,
}

/// Log level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Level {
    /// Failed statements
    Error,
    /// Also warnings after a successful backup
    Warn,
    /// Also start and end of each important statement
    Info,
    /// Every statement and message
    Debug,
}

pub(crate) fn name(value: &impl ValueEnum) -> String {
    let value = value.to_possible_value();
    value.map_or_else(String::new, |value| value.get_name().to_owned())
}

/// Starts the log, to a file or to standard error.
///
/// # Errors
/// If the file cannot be opened.
pub(crate) fn begin(file: Option<&Path>, format: Format, level: Level) -> std::io::Result<()> {
    let writer = match file {
        Some(path) => {
            let file = LogFile {
                file: windlass_io::output::append(path, 0o600)?,
                path: path.to_owned(),
            };
            BoxMakeWriter::new(Mutex::new(Visible(file, format)))
        }
        None => BoxMakeWriter::new(Mutex::new(Visible(output::standard_error(), format))),
    };
    let level = match level {
        Level::Error => tracing::Level::ERROR,
        Level::Warn => tracing::Level::WARN,
        Level::Info => tracing::Level::INFO,
        Level::Debug => tracing::Level::DEBUG,
    };
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_timer(LocalTime)
        .with_target(false)
        .with_ansi(false)
        // A full disk must not disturb the output of the command.
        .log_internal_errors(false)
        .with_writer(writer);
    let result = match format {
        Format::Text => subscriber.try_init(),
        Format::Json => subscriber
            .json()
            .flatten_event(true)
            .with_current_span(false)
            .with_span_list(false)
            .try_init(),
    };
    result.map_err(std::io::Error::other)
}

/// The log's file has been rotated: the next line goes to the one that has its name.
pub(crate) fn reopen() {
    IS_ROTATED.store(true, Ordering::Relaxed);
}

static IS_ROTATED: AtomicBool = AtomicBool::new(false);

struct LogFile {
    file: std::fs::File,
    path: PathBuf,
}

impl Write for LogFile {
    fn write(&mut self, line: &[u8]) -> std::io::Result<usize> {
        if IS_ROTATED.swap(false, Ordering::Relaxed)
            && let Ok(file) = windlass_io::output::append(&self.path, 0o600)
        {
            self.file = file;
        }
        self.file.write(line)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.file.flush()
    }
}

/// A log writer that escapes control characters, so that no name can act on the reader's terminal.
/// Writes each line in one piece.
struct Visible<W>(W, Format);

impl<W: Write> Write for Visible<W> {
    fn write(&mut self, line: &[u8]) -> std::io::Result<usize> {
        let text = String::from_utf8_lossy(line);
        let text = match self.1 {
            Format::Text => visible_lines(&text),
            Format::Json => json_escaped(&text),
        };
        self.0.write_all(text.as_bytes())?;
        Ok(line.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.flush()
    }
}

/// Local time with its offset.
struct LocalTime;

impl FormatTime for LocalTime {
    fn format_time(&self, writer: &mut Writer<'_>) -> fmt::Result {
        let now = windlass_base::local_now();
        write!(writer, "{}", now.strftime("%Y-%m-%dT%H:%M:%S%.3f%:z"))
    }
}
