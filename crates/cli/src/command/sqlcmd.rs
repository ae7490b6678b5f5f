//! sqlcmd's words in scripts: `:r`, `:setvar`, `$(name)`, `:on error`, `:exit(query)`.
//!
//! A word stands at the start of a line, outside of strings and comments. What it includes or sets
//! belongs to the batch around it, which GO ends.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::Ordering;

use windlass_instance::{BatchEnd, Event, Session, Sink, Value};
use windlass_tsql::batch::{self, Piece};

use super::sql::decode;
use super::{Outcome, misused};
use crate::output::{Console, message_line};

/// How deep files include files.
const INCLUDED_DEPTH_MAX: usize = 32;

/// How many files a script includes in all.
const INCLUDED_MAX: usize = 1000;

/// Words that sqlcmd has and this program does not, and what to do instead.
const REFUSED: &[(&str, &str)] = &[
    (
        "connect",
        "End the script, and name the other --instance in another run.",
    ),
    ("ed", "Edit the script with an editor, and run it with :r."),
    ("error", "Redirect standard error in the shell: 2> FILE."),
    ("out", "Redirect standard output in the shell: > FILE."),
    (
        "perftrace",
        "Redirect standard error in the shell: 2> FILE.",
    ),
    (
        "serverlist",
        "There are no servers: --instance names a folder.",
    ),
    ("xml", "--json gives results for programs."),
];

/// What holds for all scripts of a run.
#[derive(Debug, Default)]
pub(crate) struct Words {
    variables: BTreeMap<String, String>,
    /// `-x`: `$(name)` is text.
    pub(crate) keeps_references: bool,
    /// `-b`, `:on error exit`
    pub(crate) stops_on_error: bool,
    /// `-V`: errors below this severity neither stop nor fail.
    pub(crate) severity_min: Option<u8>,
    included: usize,
}

impl Words {
    pub(crate) fn set(&mut self, name: &str, value: &str) {
        self.variables.insert(name.to_lowercase(), value.to_owned());
    }

    /// A variable: that of `:setvar` or `-v`, else that of the environment.
    fn value(&self, name: &str) -> Option<String> {
        let own = self.variables.get(&name.to_lowercase()).cloned();
        own.or_else(|| std::env::var(name).ok())
    }

    /// The text with its variables replaced.
    pub(super) fn filled(&self, text: &str) -> Result<String, String> {
        if self.keeps_references {
            return Ok(text.to_owned());
        }
        let mut filled = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("$(") {
            filled.push_str(before);
            let is_part = |found: char| found.is_alphanumeric() || "_-.".contains(found);
            match after.split_once(')') {
                Some((name, behind)) if !name.is_empty() && name.chars().all(is_part) => {
                    filled.push_str(&self.value(name).ok_or_else(|| name.to_owned())?);
                    rest = behind;
                }
                _ => {
                    filled.push_str("$(");
                    rest = after;
                }
            }
        }
        filled.push_str(rest);
        Ok(filled)
    }

    /// How a run ends that an error stops.
    fn ended(&self, console: &Console) -> Outcome {
        match self.severity_min {
            Some(_) => Outcome::Checked(console.worst_severity()),
            None => Outcome::Failed,
        }
    }

    /// Whether the errors so far make the run fail.
    pub(crate) fn outcome(&self, console: &Console) -> Outcome {
        match self.severity_min {
            Some(least) if console.worst_severity() >= least => self.ended(console),
            None if console.has_failed() => Outcome::Failed,
            _ => Outcome::Succeeded,
        }
    }
}

/// A script that runs.
pub(crate) struct Script<'a> {
    pub(crate) session: &'a mut Session,
    pub(crate) console: &'a mut Console,
    pub(crate) words: &'a mut Words,
    /// The batch that no GO has ended yet, and the line on which it starts.
    pub(crate) pending: String,
    pub(crate) first_line: u32,
}

impl<'a> Script<'a> {
    pub(crate) fn new(
        session: &'a mut Session,
        console: &'a mut Console,
        words: &'a mut Words,
    ) -> Self {
        Self {
            session,
            console,
            words,
            pending: String::new(),
            first_line: 1,
        }
    }

    /// Runs a script to its end, with the batch that its last GO leaves open. Returns the outcome if the run
    /// must stop.
    pub(crate) fn run(&mut self, text: &str) -> Option<Outcome> {
        self.read(text, 0).or_else(|| self.send(1))
    }

    fn read(&mut self, text: &str, depth: usize) -> Option<Outcome> {
        for piece in batch::pieces(text) {
            let stopped = match piece {
                Piece::Text { text, first_line } => self.take(text, first_line),
                Piece::Word { line, number } => self.word(line, number, depth),
            };
            if stopped.is_some() {
                return stopped;
            }
        }
        None
    }

    /// Runs the batches that end in a text, and keeps the last.
    fn take(&mut self, text: &str, first_line: u32) -> Option<Outcome> {
        let (closed, open) = batch::split_closed(text);
        for part in closed {
            let line = part.line_in_script(1).saturating_add(first_line - 1);
            let stopped = self.keep(part.text, line).or_else(|| self.send(part.count));
            if stopped.is_some() {
                return stopped;
            }
        }
        let line = open.line_in_script(1).saturating_add(first_line - 1);
        self.keep(open.text, line)
    }

    fn keep(&mut self, text: &str, line: u32) -> Option<Outcome> {
        match self.words.filled(text) {
            Ok(filled) => {
                if self.pending.trim().is_empty() {
                    self.pending.clear();
                    self.first_line = line;
                }
                self.pending.push_str(&filled);
                None
            }
            Err(name) => Some(wrong(
                line,
                &format!(
                    "the variable '{name}' is not defined. Set it with -v {name}=VALUE, :setvar or in the \
                     environment; with -x, $({name}) is text"
                ),
            )),
        }
    }

    /// Runs the batch so far.
    fn send(&mut self, count: u32) -> Option<Outcome> {
        let text = std::mem::take(&mut self.pending);
        if text.trim().is_empty() {
            return None;
        }
        (0..count).find_map(|_| {
            let worst_before = self.console.forget_worst();
            let end = self
                .session
                .execute_batch(&text, self.first_line, self.console);
            let counts = match self.words.severity_min {
                Some(least) => self.console.worst_severity() >= least,
                None => end != BatchEnd::Clean,
            };
            self.console.note_severity(worst_before);
            let is_cancelled = self.session.cancel_flag().load(Ordering::Relaxed);
            (is_cancelled || end == BatchEnd::Refused || self.words.stops_on_error && counts)
                .then(|| self.words.ended(self.console))
        })
    }

    /// Follows a line that begins with `:` or `!!`.
    pub(crate) fn word(&mut self, line: &str, number: u32, depth: usize) -> Option<Outcome> {
        let written = line.trim();
        if written.starts_with("!!") {
            let hint = "!! is refused: a script runs no other programs. Run them in the shell";
            return Some(wrong(number, hint));
        }
        let line = match self.words.filled(written.trim_start_matches(':')) {
            Ok(line) => line,
            Err(name) => {
                return Some(wrong(
                    number,
                    &format!("the variable '{name}' is not defined"),
                ));
            }
        };
        let end = line.find(|found: char| !found.is_ascii_alphabetic());
        let (word, rest) = line.split_at(end.unwrap_or(line.len()));
        let word = word.to_ascii_lowercase();
        let rest = rest.trim();
        match word.as_str() {
            "r" => self.include(rest, number, depth),
            "setvar" => self.set_variable(rest, number),
            "on" => match rest
                .to_ascii_lowercase()
                .split_whitespace()
                .collect::<Vec<_>>()[..]
            {
                ["error", "exit"] => {
                    self.words.stops_on_error = true;
                    None
                }
                ["error", "ignore"] => {
                    self.words.stops_on_error = false;
                    None
                }
                _ => Some(wrong(number, "write :on error exit or :on error ignore")),
            },
            "quit" => Some(self.words.outcome(self.console)),
            "exit" => Some(self.exit(rest, number)),
            "reset" => {
                self.pending.clear();
                None
            }
            "list" => {
                message_line(self.pending.trim());
                None
            }
            "listvar" => {
                for (name, value) in &self.words.variables {
                    message_line(&format!("{name} = \"{value}\""));
                }
                None
            }
            "out" | "error" if is_own_stream(&word, rest) => None,
            _ => {
                let refused = REFUSED.iter().find(|(name, _)| *name == word);
                let hint = refused.map_or(
                    "There are :r, :setvar, :listvar, :on error, :list, :reset, :exit and :quit.",
                    |(_, hint)| hint,
                );
                Some(wrong(number, &format!(":{word} is not supported. {hint}")))
            }
        }
    }

    /// `:r file`
    fn include(&mut self, name: &str, number: u32, depth: usize) -> Option<Outcome> {
        let name = unquoted(name).unwrap_or_else(|| name.to_owned());
        self.words.included += 1;
        if depth >= INCLUDED_DEPTH_MAX || self.words.included > INCLUDED_MAX {
            let limits = format!(
                ":r '{name}': files include files at most {INCLUDED_DEPTH_MAX} deep, and {INCLUDED_MAX} in all"
            );
            return Some(wrong(number, &limits));
        }
        let bytes = match std::fs::read(Path::new(&name)) {
            Ok(bytes) => bytes,
            Err(error) => return Some(wrong(number, &format!(":r '{name}': {error}"))),
        };
        match decode(&bytes) {
            Some(text) => {
                let stopped = self.read(&text, depth + 1);
                if !self.pending.is_empty() && !self.pending.ends_with('\n') {
                    self.pending.push('\n');
                }
                stopped
            }
            None => Some(wrong(
                number,
                &format!(":r '{name}': the script is neither UTF-8 nor UTF-16"),
            )),
        }
    }

    /// `:setvar name value`; without a value the variable is removed.
    fn set_variable(&mut self, rest: &str, number: u32) -> Option<Outcome> {
        let (name, value) = match rest.split_once(char::is_whitespace) {
            Some((name, value)) => (name, value.trim()),
            None => (rest, ""),
        };
        if name.is_empty() {
            return Some(wrong(number, "write :setvar NAME \"VALUE\""));
        }
        if value.is_empty() {
            self.words.variables.remove(&name.to_lowercase());
            return None;
        }
        match unquoted(value) {
            Some(text) => self.words.set(name, &text),
            None if !value.contains(char::is_whitespace) => self.words.set(name, value),
            None => {
                let hint = format!(":setvar {name}: a value with blanks stands in double quotes");
                return Some(wrong(number, &hint));
            }
        }
        None
    }

    /// `:exit`, `:exit()`, `:exit(query)`
    fn exit(&mut self, rest: &str, number: u32) -> Outcome {
        if rest.is_empty() {
            return self.words.outcome(self.console);
        }
        let Some(query) = rest
            .strip_prefix('(')
            .and_then(|rest| rest.strip_suffix(')'))
        else {
            return wrong(number, "write :exit, :exit() or :exit(query) on one line");
        };
        if query.trim().is_empty() {
            let stopped = self.send(1);
            return stopped.unwrap_or_else(|| self.words.outcome(self.console));
        }
        if self.pending.trim().is_empty() {
            self.first_line = number;
        }
        let text = format!("{}\n{query}", std::mem::take(&mut self.pending));
        let mut first = First {
            console: self.console,
            value: None,
        };
        let end = self
            .session
            .execute_batch(&text, self.first_line, &mut first);
        let code = match (end, first.value) {
            (BatchEnd::Failed | BatchEnd::Refused, None) => -100,
            (_, None) => -101,
            (_, Some(value)) => value.to_string().parse().unwrap_or(-102),
        };
        Outcome::Checked(exit_code(code))
    }
}

/// An exit code has eight bits. A number that is not 0 does not become success.
fn exit_code(number: i32) -> u8 {
    match (number & 0xFF) as u8 {
        0 if number != 0 => u8::MAX,
        low => low,
    }
}

fn wrong(line: u32, what: &str) -> Outcome {
    misused(&format!("line {line}: {what}"))
}

/// `"text"`, with `""` for `"`.
fn unquoted(text: &str) -> Option<String> {
    let inner = text.strip_prefix('"')?.strip_suffix('"')?;
    Some(inner.replace("\"\"", "\""))
}

fn is_own_stream(word: &str, target: &str) -> bool {
    let own = if word == "out" { "stdout" } else { "stderr" };
    target.eq_ignore_ascii_case(own)
}

/// Keeps the first value of the last result.
struct First<'a> {
    console: &'a mut Console,
    value: Option<Value>,
}

impl Sink for First<'_> {
    fn event(&mut self, event: Event<'_>) {
        match &event {
            Event::Columns(_) => self.value = None,
            Event::Row(row) if self.value.is_none() => self.value = row.first().cloned(),
            _ => {}
        }
        self.console.event(event);
    }
}
