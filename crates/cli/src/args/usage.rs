//! Usage lines of commands that need one option or another: the parser shows only what is always required.
//!
//! Help and manual pages show them. Errors keep the parser's own line, which has what was written.

use clap::Command;

/// Commands by their words, and the ways to write each.
const USAGES: &[(&str, &[&str])] = &[
    (
        "backup",
        &[
            "backup [OPTIONS] --to <FILE> <DATABASE>",
            "backup [OPTIONS] --all --to <FOLDER> [FOLDER]",
            "backup [OPTIONS] --no-write <DATABASE>",
            "backup [OPTIONS] --no-compress-write <DATABASE>",
        ],
    ),
    (
        "restore",
        &[
            "restore [OPTIONS] --to <FILE> [MEDIA]...",
            "restore [OPTIONS] --move <LOGICAL=FILE> [MEDIA]...",
            "restore [OPTIONS] --database <NAME> [MEDIA]...",
        ],
    ),
    (
        "follow",
        &[
            "follow [OPTIONS] --to <DIR> <DATABASE>",
            "follow [OPTIONS] --show <DIR>",
        ],
    ),
    (
        "ship",
        &[
            "ship [OPTIONS] --to <FILE> <MEDIA>...",
            "ship [OPTIONS] --database <NAME> <MEDIA>...",
        ],
    ),
    (
        "rekey",
        &[
            "rekey [OPTIONS] --encrypt-to <CERTIFICATE> <MEDIA>...",
            "rekey [OPTIONS] --new-passphrase-file <FILE> <MEDIA>...",
        ],
    ),
    (
        "credential set",
        &[
            "credential set [OPTIONS] --key-file <FILE> <NAME>",
            "credential set [OPTIONS] --managed-identity <NAME>",
        ],
    ),
];

/// The ways to write a command, if they are not the parser's; each begins with the program.
pub(crate) fn usage(command: &str) -> Option<Vec<String>> {
    let (_, lines) = USAGES.iter().find(|(known, _)| *known == command)?;
    Some(
        lines
            .iter()
            .map(|line| format!("windlass {line}"))
            .collect(),
    )
}

/// The command line whose help shows these lines.
pub(super) fn shown(mut command: Command) -> Command {
    for (words, _) in USAGES {
        let lines = usage(words).unwrap_or_default().join("\n       ");
        let template = format!(
            "{{about-with-newline}}\n{{usage-heading}} {lines}\n\n{{all-args}}{{after-help}}"
        );
        let words: Vec<&str> = words.split(' ').collect();
        command = with_template(command, &words, template);
    }
    command
}

fn with_template(command: Command, words: &[&str], template: String) -> Command {
    match words {
        [] => command.help_template(template),
        [first, rest @ ..] => {
            command.mut_subcommand(first, |known| with_template(known, rest, template))
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::error::{ContextKind, ContextValue, ErrorKind};

    use super::*;
    use crate::args;

    /// The words of all commands without subcommands that the help shows.
    fn leaves(command: &Command, words: &str, found: &mut Vec<String>) {
        let children = command.get_subcommands();
        for child in children.filter(|known| !known.is_hide_set()) {
            let words = format!("{words} {}", child.get_name());
            match child.has_subcommands() {
                true => leaves(child, &words, found),
                false => found.push(words),
            }
        }
    }

    /// What the parser misses in a command line.
    fn missing(line: &str) -> Vec<String> {
        let Err(error) = args::command().try_get_matches_from(line.split(' ')) else {
            return Vec::new();
        };
        match (error.kind(), error.get(ContextKind::InvalidArg)) {
            (ErrorKind::MissingRequiredArgument, Some(ContextValue::Strings(missing))) => {
                missing.clone()
            }
            _ => Vec::new(),
        }
    }

    #[test]
    fn help_names_whatever_a_command_line_must_have() {
        let mut all = Vec::new();
        leaves(&args::command(), "windlass", &mut all);
        assert!(all.contains(&"windlass credential set".to_owned()));
        for words in all {
            let help = args::command().try_get_matches_from(format!("{words} --help").split(' '));
            let help = help.expect_err("help").render().to_string();
            let (_, usage) = help.split_once("Usage: ").expect("a usage");
            let (usage, _) = usage.split_once("\n\n").expect("an end");
            for missing in missing(&words) {
                assert!(usage.contains(&missing), "{missing} is not in: {usage}");
            }
        }
    }

    #[test]
    fn every_line_is_a_command_line() {
        for (words, _) in USAGES {
            for line in usage(words).expect("lines") {
                let written = line
                    .replace(" [OPTIONS]", "")
                    .replace("<LOGICAL=FILE>", "a=b")
                    .replace("...", "");
                let written = written
                    .split(' ')
                    .map(|word| match word.starts_with(['<', '[']) {
                        true => "x",
                        false => word,
                    });
                let parsed = args::command().try_get_matches_from(written);
                parsed.unwrap_or_else(|error| panic!("{line}: {error}"));
            }
        }
    }
}
