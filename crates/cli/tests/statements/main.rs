//! Statements as people write them, through the program: scripts, messages, results, exit codes.

mod accelerator;
mod articles;
mod commands;
mod devices;
mod encryption;
mod instance;
mod messages;
mod options;
mod prompt;
mod restoring;
mod scripting;
mod server_options;
mod support;
