//! The source of the prompt's lines: an editor with history, or another program.
//!
//! The history is private: a file for its owner only, in the folder for program state. Lines are
//! stored when their batch is sent; those of a batch that names a secret never are.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustyline::config::{Behavior, CompletionType, Config};
use rustyline::error::ReadlineError;
use rustyline::history::{FileHistory, History as _};
use rustyline::{Editor, history::MemHistory};

use super::names::Names;
use crate::cancel::Waiting;

/// Number of stored lines.
const HISTORY_LINES: usize = 2000;

/// A batch with one of these words may contain a secret.
const SECRETS: [&str; 5] = ["PASSWORD", "PASSPHRASE", "SECRET", "CREDENTIAL", "PWD"];

/// The result of reading a line.
#[derive(Debug)]
pub(super) enum Line {
    Text(String),
    /// A line that was typed after an interrupt.
    After(String),
    /// Ctrl-C.
    Interrupted,
    /// Ctrl-D, or the end of the input.
    End,
    Failed(String),
}

/// The source of lines.
pub(super) enum Lines {
    Typed(Box<Typed>),
    Sent(std::io::Lines<std::io::StdinLock<'static>>),
}

/// Lines typed by a person.
pub(super) struct Typed {
    editor: Editor<Names, MemHistory>,
    interrupted: Arc<AtomicBool>,
    /// The history file, if the user has a folder for it.
    kept: Option<(FileHistory, PathBuf)>,
}

impl Lines {
    /// Starts reading. An interrupt that the terminal driver turns into a signal sets
    /// `interrupted`.
    pub(super) fn new(
        waiting: Waiting,
        interrupted: Arc<AtomicBool>,
        names: Names,
    ) -> Result<Self, String> {
        if waiting == Waiting::Pipe {
            return Ok(Self::Sent(std::io::stdin().lines()));
        }
        // Results may go to a file; the editor still uses the terminal.
        let config = Config::builder()
            .behavior(Behavior::PreferTerm)
            .completion_type(CompletionType::List)
            .auto_add_history(false)
            .max_history_size(HISTORY_LINES)
            .and_then(|config| config.history_ignore_dups(true))
            .map_err(|error| error.to_string())?
            .build();
        let mut editor = Editor::with_history(config.clone(), MemHistory::with_config(&config))
            .map_err(|error| error.to_string())?;
        editor.set_helper(Some(names));
        let kept = history_file().map(|path| (FileHistory::with_config(&config), path));
        if let Some((_, path)) = &kept {
            let mut before = FileHistory::with_config(&config);
            // The prompt works without a history.
            before.load(path).ok();
            for line in before.iter() {
                editor.add_history_entry(line).ok();
            }
        }
        Ok(Self::Typed(Box::new(Typed {
            editor,
            interrupted,
            kept,
        })))
    }

    /// The next line; `number` is shown in the prompt.
    pub(super) fn next(&mut self, number: usize) -> Line {
        match self {
            Self::Sent(lines) => match lines.next() {
                Some(Ok(line)) => Line::Text(line),
                Some(Err(error)) => Line::Failed(error.to_string()),
                None => Line::End,
            },
            Self::Typed(typed) => typed.next(number),
        }
    }

    /// Takes the names that Tab completes: a batch may have changed them.
    pub(super) fn set_names(&mut self, names: Names) {
        if let Self::Typed(typed) = self {
            typed.editor.set_helper(Some(names));
        }
    }

    /// Stores the lines of a batch that is sent.
    pub(super) fn remember(&mut self, batch: &str) {
        if let Self::Typed(typed) = self {
            typed.remember(batch);
        }
    }
}

impl Typed {
    fn next(&mut self, number: usize) -> Line {
        let read = self.editor.readline(&format!("{number}> "));
        let was_interrupted = self.interrupted.swap(false, Ordering::SeqCst);
        match read {
            Ok(line) => {
                self.editor.add_history_entry(&line).ok();
                match was_interrupted {
                    true => Line::After(line),
                    false => Line::Text(line),
                }
            }
            Err(ReadlineError::Interrupted) => Line::Interrupted,
            Err(ReadlineError::Eof) => Line::End,
            Err(error) => Line::Failed(error.to_string()),
        }
    }

    fn remember(&mut self, batch: &str) {
        let Some((history, path)) = &mut self.kept else {
            return;
        };
        if names_secret(batch) {
            return;
        }
        for line in batch.lines().filter(|line| !line.trim().is_empty()) {
            history.add(line).ok();
        }
        // A full disk disables the history, not the prompt.
        history.append(path).ok();
    }
}

/// Whether a batch may contain a secret.
fn names_secret(batch: &str) -> bool {
    let batch = batch.to_ascii_uppercase();
    SECRETS.iter().any(|word| batch.contains(word))
}

/// The history file; creates its folder. `None` if the user has no folder for it.
fn history_file() -> Option<PathBuf> {
    use std::os::unix::fs::DirBuilderExt as _;
    let folder = crate::user::state_folder()?.join("windlass");
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&folder)
        .ok()?;
    Some(folder.join("sql_history"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_with_a_secret_is_known_by_its_words() {
        assert!(names_secret(
            "CREATE CERTIFICATE c FROM FILE = 'c.p12'\nWITH PRIVATE KEY (DECRYPTION BY PASSWORD = 'x')"
        ));
        assert!(names_secret(
            "EXEC sqlbackup '-sql \"backup database a to disk = ''a'' with password = ''x''\"'"
        ));
        assert!(!names_secret("BACKUP DATABASE app TO DISK = 'a.bak'"));
    }
}
