//! The prompt: lines become batches at `GO`, as in `sqlcmd`.

use std::io::BufRead as _;
use std::sync::atomic::Ordering;

use windlass_instance::{BatchEnd, Session};
use windlass_tsql::batch;

use super::Outcome;
use crate::output::{Console, message_line, prompt};

/// Who types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    /// A person: there are prompts, and errors do not count against the exit code.
    Terminal,
    /// Another program.
    Pipe,
}

/// Reads lines until they end.
pub(crate) fn run(
    session: &mut Session,
    style: Style,
    stops_on_error: bool,
    console: &mut Console,
) -> Outcome {
    if style == Style::Terminal {
        message_line("GO runs what was typed, :quit leaves, :reset forgets what was typed.");
    }
    let mut typed = Typed::default();
    let mut lines = std::io::stdin().lock().lines();
    loop {
        if style == Style::Terminal {
            prompt(&format!("{}> ", typed.lines + 1));
        }
        let line = match lines.next() {
            Some(Ok(line)) => line,
            Some(Err(error)) => {
                message_line(&format!("error: {error}"));
                return Outcome::Failed;
            }
            None => break,
        };
        match line.trim().to_ascii_lowercase().as_str() {
            ":quit" | ":exit" | "quit" | "exit" => return Outcome::Succeeded,
            ":reset" => {
                typed = Typed::default();
                continue;
            }
            _ => typed.push(&line),
        }
        if typed.is_complete() && typed.run(session, console) == BatchEnd::Failed && stops_on_error
        {
            return Outcome::Failed;
        }
    }
    // What was typed and not sent runs when another program ends its text without GO.
    if style == Style::Pipe && typed.run(session, console) == BatchEnd::Failed && stops_on_error {
        return Outcome::Failed;
    }
    Outcome::Succeeded
}

/// What was typed since the last `GO`.
#[derive(Debug, Default)]
struct Typed {
    text: String,
    lines: usize,
}

impl Typed {
    fn push(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
        self.lines += 1;
    }

    /// Whether the last line is a `GO` that counts: not one within a string or a comment.
    fn is_complete(&self) -> bool {
        let last = self.text.trim_end().lines().next_back().unwrap_or("");
        let mut words = last.split_whitespace();
        let is_go = words
            .next()
            .is_some_and(|word| word.eq_ignore_ascii_case("GO"));
        // A mark behind it tells whether the splitter takes it for the end of a batch.
        let with_mark = format!("{}x", self.text);
        is_go
            && batch::split(&with_mark)
                .last()
                .is_some_and(|batch| batch.text.trim() == "x")
    }

    fn run(&mut self, session: &mut Session, console: &mut Console) -> BatchEnd {
        let typed = std::mem::take(self);
        let mut end = BatchEnd::Clean;
        for batch in batch::split(&typed.text) {
            for _ in 0..batch.count {
                if session.execute_batch(batch.text, batch.first_line, console) == BatchEnd::Failed
                {
                    end = BatchEnd::Failed;
                }
            }
        }
        // Ctrl-C ended that batch; the next one may run.
        session.cancel_flag().store(false, Ordering::Relaxed);
        end
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
