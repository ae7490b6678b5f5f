//! Statements as people write them, through the program: scripts, messages, results, exit codes.

mod accelerator;
mod articles;
mod commands;
mod devices;
mod encryption;
mod engine;
mod history;
mod import;
mod instance;
mod logging;
mod measuring;
mod measuring_engine;
mod messages;
mod operating;
mod options;
mod page_restore;
mod prompt;
mod report;
mod restoring;
mod sales;
mod scripting;
mod server_options;
mod service;
mod sqlbackup;
mod sqlbackup_options;
mod support;
