//! Numbered messages: SQL Server's numbers, severities, states and wording.
//!
//! Users search the web for a message's number and text, so SQL Server's own wording is used where it
//! has a message for a situation. Windlass's own messages start at 50,000. [`table`] lists them all;
//! `docs/messages.md` is generated from it. Most crates return errors as values, which `instance` turns into
//! messages.

pub mod table;

use std::borrow::Cow;
use std::fmt;

use crate::visible::{visible, visible_lines};

/// How serious a message is, on SQL Server's scale: up to 10 is informational, 11 and above is an
/// error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Severity(pub u8);

impl Severity {
    /// The lowest severity that makes a script fail.
    pub const ERROR: Self = Self(11);
}

/// A message as a client receives it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// SQL Server's number, or a Windlass number from 50,000 on. 0 is the output of PRINT.
    pub number: u32,
    pub severity: Severity,
    /// Distinguishes places that raise the same number.
    pub state: u8,
    /// Line of the script it belongs to, from 1; 0 if it belongs to none.
    pub line: u32,
    /// The stored procedure that raised it, if one did.
    pub procedure: Option<Box<str>>,
    /// The text, with its parameters filled in.
    pub text: String,
}

impl Message {
    /// The output of `PRINT`: text without a number.
    pub fn print(text: impl Into<String>) -> Self {
        Self {
            number: 0,
            severity: Severity(0),
            state: 1,
            line: 0,
            procedure: None,
            text: text.into(),
        }
    }

    /// The same message, raised at `line` of a script.
    #[must_use]
    pub fn at_line(mut self, line: u32) -> Self {
        self.line = line;
        self
    }

    /// The same message with another state.
    #[must_use]
    pub fn with_state(mut self, state: u8) -> Self {
        self.state = state;
        self
    }

    /// The same message with advice behind its text, in whole sentences.
    #[must_use]
    pub fn with_advice(mut self, advice: Option<impl fmt::Display>) -> Self {
        if let Some(advice) = advice {
            self.text = format!("{} {advice}", self.text);
        }
        self
    }

    /// The text for display. Only the output of `PRINT` has several lines: elsewhere a line end
    /// comes from a name, and could forge a message.
    pub fn visible_text(&self) -> Cow<'_, str> {
        match self.number {
            0 => visible_lines(&self.text),
            _ => visible(&self.text),
        }
    }

    /// Whether the statement that raised it has failed.
    pub fn is_error(&self) -> bool {
        self.severity >= Severity::ERROR
    }
}

impl fmt::Display for Message {
    /// As `sqlcmd` prints it: errors have a heading, informational messages are bare text.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_error() {
            write!(
                f,
                "Msg {}, Level {}, State {}",
                self.number, self.severity.0, self.state
            )?;
            if let Some(procedure) = &self.procedure {
                write!(f, ", Procedure {}", visible(procedure))?;
            }
            if self.line > 0 {
                write!(f, ", Line {}", self.line)?;
            }
            writeln!(f)?;
        }
        f.write_str(&self.visible_text())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_filled_in() {
        let message = table::terminating_abnormally("BACKUP DATABASE");
        assert_eq!(message.number, 3013);
        assert_eq!(message.text, "BACKUP DATABASE is terminating abnormally.");
        assert!(message.is_error());
        assert_eq!(
            message.at_line(7).to_string(),
            "Msg 3013, Level 16, State 1, Line 7\nBACKUP DATABASE is terminating abnormally."
        );
    }

    #[test]
    fn a_name_cannot_forge_a_message_or_drive_the_terminal() {
        let message = table::database_does_not_exist("a\x1b[2J\nMsg 0, Level 0");
        let text = message.to_string();
        assert_eq!(text.lines().count(), 2, "{text}");
        assert!(text.contains("'a\\u{1b}[2J\\u{a}Msg 0, Level 0'"), "{text}");
        assert_eq!(Message::print("a\nb\x1b").to_string(), "a\nb\\u{1b}");
    }

    #[test]
    fn numbers_are_listed_once_and_in_order() {
        let numbers: Vec<u32> = table::ALL.iter().map(|entry| entry.number).collect();
        assert!(
            numbers.windows(2).all(|pair| pair[0] < pair[1]),
            "sorted, without repetition"
        );
    }

    #[test]
    fn texts_that_share_a_number_are_each_listed_once() {
        for texts in [table::NOTES, table::UNSUPPORTED, table::NOT_BUILT] {
            let number = texts[0].number;
            assert!(texts.iter().all(|entry| entry.number == number));
            assert!(table::ALL.iter().all(|entry| entry.number != number));
            let mut seen = std::collections::BTreeSet::new();
            let twice = texts.iter().find(|entry| !seen.insert(entry.template));
            // A constructor that only passes on a text has its own name.
            assert!(
                twice.is_none_or(|entry| entry.template.starts_with('{')),
                "{twice:?}"
            );
        }
    }
}
