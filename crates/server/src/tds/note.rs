//! Messages as tokens.

use windlass_base::Message;
use windlass_tds::answer::{Answer, Note};

/// The most letters of a message: its length in the token has 16 bits.
const LETTERS_MAX: usize = 8000;

/// Writes a message.
pub(crate) fn note(answer: &mut Answer, message: &Message, server: &str) {
    let text: String = message.visible_text().chars().take(LETTERS_MAX).collect();
    answer.note(Note {
        number: i32::try_from(message.number).unwrap_or(i32::MAX),
        state: message.state,
        // SQL Server sends informational messages as severity 0.
        class: match message.severity.0 {
            10 => 0,
            severity => severity,
        },
        text: &text,
        server,
        procedure: message.procedure.as_deref().unwrap_or_default(),
        line: i32::try_from(message.line.max(1)).unwrap_or(1),
    });
}
