//! Statements as people write them, through the program: scripts, messages, results, exit codes.

mod accelerator;
mod articles;
mod commands;
mod devices;
mod encryption;
mod engine;
mod history;
mod instance;
mod measuring;
mod messages;
mod operating;
mod options;
mod prompt;
mod restoring;
mod scripting;
mod server_options;
mod sqlbackup;
mod support;
