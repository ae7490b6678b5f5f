//! Statements as people write them, through the program: scripts, messages, results, exit codes.

mod articles;
mod commands;
mod devices;
mod instance;
mod messages;
mod options;
mod prompt;
mod restoring;
mod scripting;
mod server_options;
mod support;
