//! Shells that put a completion into the command line as it is.
//!
//! bash and PowerShell do not quote it: a file or database whose name has `$(...)` in it would be a command, which runs
//! when the line is entered, and one with a blank would be two words. Such names are not offered there. The other shells quote by
//! themselves.

use std::ffi::OsString;
use std::io;
use std::path::Path;

use clap::Command;
use clap_complete::env::{Bash, Elvish, EnvCompleter, Fish, Powershell, Shells, Zsh};

/// The shells for which there are completions.
pub(super) const fn shells() -> Shells<'static> {
    Shells(&[&Plain(&Bash), &Elvish, &Fish, &Plain(&Powershell), &Zsh])
}

/// Offers only what means itself in the command line of the shell.
struct Plain(&'static dyn Named);

/// A completer that threads can share.
trait Named: EnvCompleter + Sync {}

impl Named for Bash {}
impl Named for Powershell {}

impl EnvCompleter for Plain {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn is(&self, name: &str) -> bool {
        self.0.is(name)
    }

    fn write_registration(
        &self,
        variable: &str,
        name: &str,
        program: &str,
        completer: &str,
        script: &mut dyn io::Write,
    ) -> io::Result<()> {
        self.0
            .write_registration(variable, name, program, completer, script)
    }

    fn write_complete(
        &self,
        command: &mut Command,
        words: Vec<OsString>,
        folder: Option<&Path>,
        answer: &mut dyn io::Write,
    ) -> io::Result<()> {
        let mut all = Vec::new();
        self.0.write_complete(command, words, folder, &mut all)?;
        let separator = std::env::var("_CLAP_IFS").ok();
        let separator = separator.filter(|separator| !separator.is_empty());
        let separator = separator.as_deref().unwrap_or("\n");
        let all = String::from_utf8_lossy(&all);
        let kept: Vec<&str> = all
            .split(separator)
            .filter(|offered| means_itself(offered.split('\t').next().unwrap_or_default()))
            .collect();
        write!(answer, "{}", kept.join(separator))
    }
}

/// Whether a word needs no quotes in any shell.
fn means_itself(word: &str) -> bool {
    let word = word.strip_prefix("~/").unwrap_or(word);
    let is_plain = |letter: char| {
        letter.is_alphanumeric()
            || matches!(letter, '-' | '_' | '.' | '/' | ':' | '=' | '+' | '%' | ',')
    };
    !word.is_empty() && word.chars().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_a_shell_would_read_are_told() {
        for word in [
            "app",
            "--to=",
            "~/a/b.bak",
            "dir/",
            "größe.db",
            "s3://b/k",
            "2026-11-24T10:00",
        ] {
            assert!(means_itself(word), "{word}");
        }
        for word in [
            "",
            "a b",
            "$(touch x)",
            "`x`",
            "a;b",
            "a&b",
            "a|b",
            "a>b",
            "*",
            "[a]",
            "{a,b}",
            "~root",
            "it's",
            "\"",
            "\\",
            "!x",
            "#x",
            "a\nb",
            "@(a)",
            "a\u{b}b",
        ] {
            assert!(!means_itself(word), "{word}");
        }
    }
}
