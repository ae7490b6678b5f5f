//! All output of the program: results to standard output, messages to standard error.

mod console;
mod door;
mod plain;
mod progress;
mod table;

pub(crate) use console::{Console, Layout};
pub(crate) use door::{
    clear_screen, error_line, finish, is_unread, message_json, message_line, message_text, printed,
    result_bytes, result_json, result_json_piece, result_line, result_text, speak_json,
    speaks_json, standard_error, terminal_width,
};
pub(crate) use table::{Style, Table};
