//! What can go wrong with a device.

use std::io;

/// What was being done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Opening or creating it.
    Open,
    /// Reading.
    Read,
    /// Writing.
    Write,
    /// Waiting until written bytes are durable.
    Sync,
    /// Giving a finished file its name.
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
    /// What was being done.
    pub operation: Operation,
    /// The device's name as the user wrote it.
    pub device: String,
    /// What the operating system said.
    #[source]
    pub source: io::Error,
}

impl Error {
    /// Names the device and what was being done.
    pub fn new(operation: Operation, device: &str, source: io::Error) -> Self {
        Self {
            operation,
            device: device.to_owned(),
            source,
        }
    }
}

/// `number(text)`, the way SQL Server quotes operating system errors; a reason of our own as it is.
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
