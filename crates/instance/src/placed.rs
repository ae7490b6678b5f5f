//! The line and procedure of messages.

use windlass_tsql::error::ParseError;

use crate::failure::place;
use crate::{Event, Sink};

/// Adjusts a syntax error of a batch that starts on `first_line` of its script.
///
/// If the text itself contains the line number, as for invisible characters, it is adjusted too.
pub(crate) fn located(error: ParseError, first_line: u32) -> ParseError {
    let in_batch = format!("at line {},", error.line);
    let mut error = error.moved_down(first_line.saturating_sub(1));
    let in_script = format!("at line {},", error.line);
    error.text = error.text.replace(&in_batch, &in_script);
    error
}

/// A sink that sets the line of messages to that of their statement.
pub(crate) struct Placed<'a> {
    pub(crate) sink: &'a mut dyn Sink,
    pub(crate) line: u32,
    pub(crate) procedure: Option<Box<str>>,
}

impl Sink for Placed<'_> {
    fn event(&mut self, event: Event<'_>) {
        self.sink.event(match event {
            Event::Message(message) => {
                Event::Message(place(message, self.line, self.procedure.as_deref()))
            }
            other => other,
        });
    }
}
