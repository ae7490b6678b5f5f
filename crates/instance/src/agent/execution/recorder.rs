//! What a step prints, as its row of the history keeps it.

use std::fmt::Write as _;

use windlass_base::Message;

use crate::{Event, Failure, Sink};

/// The most characters of what is printed, and of errors: both fit a row of the history.
const PRINTED_CHARACTERS_MAX: usize = 1500;

const ERROR_CHARACTERS_MAX: usize = 2000;

/// That the database has changed is not worth telling.
const CONTEXT_CHANGED: u32 = 5701;

/// Collects messages, and rows if the step wants them.
#[derive(Debug, Default)]
pub(super) struct Recorder {
    keeps_rows: bool,
    printed: String,
    errors: String,
    /// Number and severity of the last error.
    pub(super) error: Option<(u32, u8)>,
}

impl Recorder {
    pub(super) fn new(keeps_rows: bool) -> Self {
        Self {
            keeps_rows,
            ..Self::default()
        }
    }

    pub(super) fn has_failed(&self) -> bool {
        self.error.is_some()
    }

    /// No session could be opened.
    pub(super) fn refused(&mut self, failure: Failure) {
        for message in failure.messages {
            self.note(&message);
        }
        // Whatever it said, there is none.
        self.error.get_or_insert((50_000, 16));
    }

    /// Everything, errors last if there was too much.
    pub(super) fn text(&self) -> String {
        match (self.printed.is_empty(), self.errors.is_empty()) {
            (false, false) => format!("{}  {}", self.printed, self.errors),
            (true, _) => self.errors.clone(),
            (_, true) => self.printed.clone(),
        }
    }

    fn note(&mut self, message: &Message) {
        if message.number == CONTEXT_CHANGED {
            return;
        }
        let text = message.text.trim_end();
        if message.is_error() {
            self.error = Some((message.number, message.severity.0));
            let text = format!("{text} [SQLSTATE 42000] (Error {})", message.number);
            append(&mut self.errors, "  ", &text, ERROR_CHARACTERS_MAX);
        } else {
            let text = format!("{text} [SQLSTATE 01000] (Message {})", message.number);
            append(&mut self.printed, "  ", &text, PRINTED_CHARACTERS_MAX);
        }
    }

    fn line(&mut self, parts: impl Iterator<Item = String>) {
        let mut line = String::new();
        for part in parts {
            let bar = if line.is_empty() { "" } else { " | " };
            let _ = write!(line, "{bar}{part}");
            if line.len() > PRINTED_CHARACTERS_MAX {
                break;
            }
        }
        append(&mut self.printed, "\r\n", &line, PRINTED_CHARACTERS_MAX);
    }
}

/// Appends as much as there is room for.
fn append(kept: &mut String, between: &str, text: &str, most: usize) {
    let room = most.saturating_sub(kept.chars().count());
    if room <= between.len() {
        return;
    }
    if !kept.is_empty() {
        kept.push_str(between);
    }
    kept.extend(text.chars().take(room - between.len()));
}

impl Sink for Recorder {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Message(message) => self.note(&message),
            Event::Columns(columns) if self.keeps_rows => {
                self.line(columns.iter().map(|column| column.name.clone()));
            }
            Event::Row(row) if self.keeps_rows => {
                self.line(row.iter().map(ToString::to_string));
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use windlass_base::message::table;

    use super::*;

    #[test]
    fn an_error_is_kept_after_whatever_was_printed() {
        let mut recorder = Recorder::new(false);
        for _ in 0..1000 {
            recorder.event(Event::Message(table::database_detached("ä")));
        }
        assert!(!recorder.has_failed());
        recorder.event(Event::Message(table::object_unknown("nosuch")));
        assert_eq!(recorder.error, Some((208, 16)));
        let text = recorder.text();
        assert!(text.ends_with("Invalid object name 'nosuch'. [SQLSTATE 42000] (Error 208)"));
        assert!(text.chars().count() < 4000);
    }
}
