//! The prompt: lines become batches at `GO`, as in `sqlcmd`.
//!
//! Lines typed by a person are edited and remembered by [`Lines`]; lines from another program are
//! read unchanged.

mod lines;
mod names;

use std::sync::atomic::Ordering;

use windlass_instance::{BatchEnd, Session};
use windlass_tsql::batch;

use super::Outcome;
use super::sqlcmd::{Script, Words};
use crate::cancel::{self, Waiting};
use crate::output::{Console, error_line, message_line};
use lines::{Line, Lines};
use names::Names;

/// Reads lines until they end.
pub(crate) fn run(
    session: &mut Session,
    waiting: Waiting,
    words: &mut Words,
    console: &mut Console,
) -> Outcome {
    let mut lines = match Lines::new(waiting, session.cancel_flag(), Names::of(session)) {
        Ok(lines) => lines,
        Err(reason) => {
            error_line(&reason);
            return Outcome::Failed;
        }
    };
    if waiting == Waiting::Terminal {
        message_line("GO runs the input, Ctrl-C or :reset discards it, :quit exits.");
    }
    let mut prompt = Prompt {
        session,
        waiting,
        words,
        typed: Typed::default(),
        is_leaving: false,
    };
    loop {
        cancel::wait_for_input(waiting);
        let line = lines.next(prompt.typed.lines + 1);
        if let Some(outcome) = prompt.take(line, &mut lines, console) {
            return outcome;
        }
    }
}

/// State between the lines.
struct Prompt<'a> {
    session: &'a mut Session,
    waiting: Waiting,
    words: &'a mut Words,
    typed: Typed,
    /// Whether the input ended once with unsent text.
    is_leaving: bool,
}

impl Prompt<'_> {
    /// Handles a line; returns the outcome when reading should stop.
    fn take(&mut self, line: Line, lines: &mut Lines, console: &mut Console) -> Option<Outcome> {
        let was_leaving = std::mem::take(&mut self.is_leaving);
        let line = match line {
            Line::Text(line) => line,
            Line::After(line) => {
                self.forget("discarded");
                line
            }
            Line::Interrupted => {
                self.forget("discarded");
                return None;
            }
            Line::End => return self.end(was_leaving, lines, console),
            Line::Failed(reason) => {
                error_line(&reason);
                return Some(Outcome::Failed);
            }
        };
        match line.trim().to_ascii_lowercase().as_str() {
            ":quit" | ":exit" | "quit" | "exit" => return Some(Outcome::Succeeded),
            ":reset" => self.typed = Typed::default(),
            _ if self.typed.is_word(&line) => return self.follow(&line, console),
            _ => match self.words.filled(&line) {
                Ok(line) => self.typed.push(&line),
                Err(name) => {
                    error_line(&format!("the variable '{name}' is not defined."));
                    return self.unless_typed(Outcome::Misused);
                }
            },
        }
        match self.typed.is_complete() {
            true => self.send(lines, console),
            false => None,
        }
    }

    /// Follows one of sqlcmd's words. A person stays at the prompt after a mistake.
    fn follow(&mut self, line: &str, console: &mut Console) -> Option<Outcome> {
        let number = u32::try_from(self.typed.lines)
            .unwrap_or(0)
            .saturating_add(1);
        let mut script = Script::new(self.session, console, self.words);
        script.pending = std::mem::take(&mut self.typed.text);
        let outcome = script.word(line, number, 0);
        self.typed.text = script.pending;
        self.typed.lines = self.typed.text.lines().count();
        match outcome {
            Some(Outcome::Misused) => self.unless_typed(Outcome::Misused),
            outcome => outcome,
        }
    }

    fn unless_typed(&self, outcome: Outcome) -> Option<Outcome> {
        (self.waiting == Waiting::Pipe).then_some(outcome)
    }

    /// Discards the input and reports it.
    fn forget(&mut self, what: &str) {
        let typed = std::mem::take(&mut self.typed);
        if !typed.text.trim().is_empty() {
            let (count, noun) = (typed.lines, if typed.lines == 1 { "line" } else { "lines" });
            message_line(&format!("{count} {noun} {what}; nothing was run."));
        }
    }

    /// Handles the end of the input. Text from another program without a final GO runs; a person is
    /// asked.
    fn end(
        &mut self,
        was_leaving: bool,
        lines: &mut Lines,
        console: &mut Console,
    ) -> Option<Outcome> {
        if self.waiting == Waiting::Pipe {
            return Some(self.send(lines, console).unwrap_or(Outcome::Succeeded));
        }
        if self.typed.text.trim().is_empty() {
            return Some(Outcome::Succeeded);
        }
        if was_leaving {
            self.forget("typed without GO");
            return Some(Outcome::Failed);
        }
        self.is_leaving = true;
        message_line(
            "The input has not been run. GO runs it, Ctrl-C discards it; a second Ctrl-D exits \
             without running it.",
        );
        None
    }

    fn send(&mut self, lines: &mut Lines, console: &mut Console) -> Option<Outcome> {
        let typed = std::mem::take(&mut self.typed);
        lines.remember(&typed.text);
        let ran = typed.run(self.session, console);
        lines.set_names(Names::of(self.session));
        let is_over = cancel::is_terminated()
            || self.waiting == Waiting::Pipe && (ran.is_cancelled || ran.end == BatchEnd::Refused)
            || ran.end != BatchEnd::Clean && self.words.stops_on_error;
        is_over.then_some(Outcome::Failed)
    }
}

/// The input since the last `GO`.
#[derive(Debug, Default)]
struct Typed {
    text: String,
    lines: usize,
}

/// The result of running the input.
struct Ran {
    end: BatchEnd,
    is_cancelled: bool,
}

impl Typed {
    fn push(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
        self.lines += 1;
    }

    /// Whether the next line is one of sqlcmd's words.
    fn is_word(&self, line: &str) -> bool {
        let with_line = format!("{}{line}", self.text);
        line.trim_start().starts_with([':', '!'])
            && matches!(
                batch::pieces(&with_line).last(),
                Some(batch::Piece::Word { .. })
            )
    }

    /// Whether the last line is a real `GO`, not one within a string or a comment.
    fn is_complete(&self) -> bool {
        let last = self.text.trim_end().lines().next_back().unwrap_or("");
        let mut words = last.split_whitespace();
        let is_go = words
            .next()
            .is_some_and(|word| word.eq_ignore_ascii_case("GO"));
        // An appended letter shows whether the splitter sees the end of a batch before it.
        let with_mark = format!("{}x", self.text);
        is_go
            && batch::split(&with_mark)
                .last()
                .is_some_and(|batch| batch.text.trim() == "x")
    }

    /// Runs the batches. A cancellation ends the rest of them, but not the prompt.
    fn run(&self, session: &mut Session, console: &mut Console) -> Ran {
        let cancel = session.cancel_flag();
        cancel::begin_batch(&cancel);
        let mut ran = Ran {
            end: BatchEnd::Clean,
            is_cancelled: false,
        };
        for batch in batch::split(&self.text) {
            for _ in 0..batch.count {
                match session.execute_batch(batch.text, batch.first_line, console) {
                    BatchEnd::Clean => {}
                    BatchEnd::Failed => ran.end = BatchEnd::Failed,
                    BatchEnd::Refused => {
                        ran.end = BatchEnd::Refused;
                        return ran;
                    }
                }
                if cancel.load(Ordering::Relaxed) {
                    ran.is_cancelled = true;
                    return ran;
                }
            }
        }
        ran
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(text: &str) -> Typed {
        let mut typed = Typed::default();
        text.lines().for_each(|line| typed.push(line));
        typed
    }

    #[test]
    fn go_ends_what_was_typed_unless_it_is_quoted() {
        assert!(typed("PRINT 1\ngo").is_complete());
        assert!(typed("PRINT 1\nGO 3").is_complete());
        assert!(!typed("PRINT 1").is_complete());
        assert!(!typed("PRINT '\nGO").is_complete());
        assert!(!typed("/*\nGO").is_complete());
    }
}
