//! Statements as people write them, through the program: scripts, messages, results, exit codes.

mod articles;
mod commands;
mod instance;
mod measuring;
mod messages;
mod options;
mod prompt;
mod restoring;
mod scripting;
mod support;
