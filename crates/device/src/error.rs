//! Errors of devices.

use std::io;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    Open,
    Read,
    Write,
    /// Waiting until written bytes are durable.
    Sync,
    /// Renaming a finished file.
    Rename,
}

impl Operation {
    /// The word for messages: `open`, `read`, ...
    pub fn word(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Read => "read",
            Self::Write => "write",
            Self::Sync => "sync",
            Self::Rename => "rename",
        }
    }
}

/// An operating system error on a device.
#[derive(Debug, thiserror::Error)]
#[error("cannot {} backup device '{device}': {source}", operation.word())]
pub struct Error {
    pub operation: Operation,
    /// The device's name as the user wrote it.
    pub device: String,
    #[source]
    pub source: io::Error,
}

impl Error {
    pub fn new(operation: Operation, device: &str, source: io::Error) -> Self {
        Self {
            operation,
            device: device.to_owned(),
            source,
        }
    }
}

/// `number(text)`, as SQL Server quotes operating system errors; Windlass's own reasons unchanged.
pub fn system_text(error: &io::Error) -> String {
    let text = error.to_string();
    match error.raw_os_error() {
        Some(number) => {
            let text = text.split(" (os error").next().unwrap_or_default();
            format!("{number}({text}.)")
        }
        None => format!("{text}."),
    }
}
