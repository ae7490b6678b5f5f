//! Completions that look at what there is: names of databases of the instance, and the sets on the media of the command
//! line. The shell's script asks the program for them (`WINDLASS_COMPLETE`); nothing is changed or created. Words of
//! options are added of which the parser has no list, because a level or a number is possible as well.

mod plain;

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};

use clap::{Arg, Command};
use clap_complete::CompleteEnv;
use clap_complete::engine::{
    ArgValueCandidates, ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter as _,
};
use windlass_base::word::{Algorithm, Level, Word as _};
use windlass_catalog::FILE_NAME;
use windlass_instance::{Instance, Session};
use windlass_pipeline::MediaSet;

use crate::args;
use crate::url::TAKE_URLS;

/// The variable by which the shell's script asks.
const VARIABLE: &str = "WINDLASS_COMPLETE";

/// Arguments whose values are names of databases, by command and name; with files, if a file is meant as well.
const DATABASES: &[(&str, &str, bool)] = &[
    ("backup", "database", true),
    ("check", "database", false),
    ("drill", "databases", false),
    ("expire", "database", false),
    ("export", "database", false),
    ("history", "database", false),
    ("report", "database", false),
    ("restore", "database", false),
    ("restore", "of", false),
    ("sql", "database", false),
    ("tune", "database", true),
];

/// Commands whose `--set` is a position on the media that are named.
const SETS: &[&str] = &[
    "extract", "files", "header", "rekey", "restore", "unpack", "verify",
];

/// What the help calls the value of an option for a compression.
const COMPRESSION: &str = "ALGORITHM";

/// Commands that can leave the compression to the backup.
const ADAPTIVE: &[&str] = &["backup", "repack"];

/// Answers the shell, if it asks; then the program has done its work.
pub(crate) fn answer() -> bool {
    if std::env::var_os(VARIABLE).is_none() {
        return false;
    }
    let completed = CompleteEnv::with_factory(command)
        .var(VARIABLE)
        .shells(plain::shells())
        .try_complete(std::env::args_os(), std::env::current_dir().ok().as_deref());
    // The shell shows no messages while it completes.
    completed.unwrap_or(true)
}

/// The script that makes a shell ask.
pub(crate) fn script(shell: &str) -> io::Result<Vec<u8>> {
    let shells = plain::shells();
    let unknown = || io::Error::other(format!("no completions for {shell}"));
    let completer = shells.completer(shell).ok_or_else(unknown)?;
    let mut script = Vec::new();
    completer.write_registration(VARIABLE, "windlass", "windlass", "windlass", &mut script)?;
    Ok(script)
}

fn command() -> Command {
    let mut command = args::command();
    for (name, argument, is_file_too) in DATABASES {
        command = command.mut_subcommand(name, |known| {
            known.mut_arg(argument, |argument| match is_file_too {
                true => argument.add(ArgValueCompleter::new(databases_and_files)),
                false => argument.add(ArgValueCandidates::new(databases)),
            })
        });
    }
    for (name, arguments) in TAKE_URLS {
        command = command.mut_subcommand(name, |known| {
            arguments.iter().fold(known, |known, argument| {
                known.mut_arg(argument, |argument| {
                    argument.add(ArgValueCompleter::new(PathCompleter::any()))
                })
            })
        });
    }
    for name in SETS {
        command = command.mut_subcommand(name, |known| {
            known.mut_arg("set", |set| set.add(ArgValueCandidates::new(sets)))
        });
    }
    with_words(command)
}

/// Adds the words of options, here and in the subcommands: the compressions, and what the help separates by `|`.
fn with_words(command: Command) -> Command {
    let is_adaptive = ADAPTIVE.contains(&command.get_name());
    let command = command.mut_args(|argument| match argument.get_value_names() {
        Some([name]) if name.as_str() == COMPRESSION => {
            argument.add(ArgValueCandidates::new(move || compressions(is_adaptive)))
        }
        Some([name]) if name.contains('|') => {
            let words: Vec<String> = choices(name).map(str::to_owned).collect();
            match words.is_empty() || has_words(&argument) {
                true => argument,
                false => argument.add(ArgValueCandidates::new(move || {
                    words.iter().map(CompletionCandidate::new).collect()
                })),
            }
        }
        _ => argument,
    });
    command.mut_subcommands(with_words)
}

/// Whether the parser itself lists the values.
fn has_words(argument: &Arg) -> bool {
    !argument.get_possible_values().is_empty()
}

/// The words among the choices that a help names; what is to be replaced has capital letters there.
fn choices(name: &str) -> impl Iterator<Item = &str> {
    let is_word = |choice: &&str| {
        choice
            .chars()
            .all(|letter| letter.is_ascii_lowercase() || letter == '_')
    };
    name.split('|').filter(is_word)
}

/// The compressions, each with its meaning.
fn compressions(is_adaptive: bool) -> Vec<CompletionCandidate> {
    let candidate = |word: String, meaning: &'static str| {
        CompletionCandidate::new(word.to_lowercase()).help(Some(meaning.into()))
    };
    let mut found = Vec::new();
    for algorithm in Algorithm::ALL {
        found.push(candidate(algorithm.name().to_owned(), algorithm.meaning()));
        if *algorithm == Algorithm::Zstd {
            let levels = Level::ALL.iter();
            found.extend(
                levels.map(|level| candidate(format!("{algorithm}:{level}"), level.meaning())),
            );
        }
    }
    if is_adaptive {
        let meaning = "ZSTD, at a level that is chosen while the backup runs.";
        found.push(candidate("auto".to_owned(), meaning));
    }
    found
}

/// The words of the command line that is being completed.
fn words() -> Vec<OsString> {
    let words = std::env::args_os().skip_while(|word| word != "--");
    words.skip(1).collect()
}

/// The instance of the command line, or of the environment, if there is one.
fn instance_folder(words: &[OsString]) -> Option<PathBuf> {
    let mut folder = std::env::var_os("WINDLASS_INSTANCE");
    for (index, word) in words.iter().enumerate() {
        if word == "--instance" {
            folder = words.get(index + 1).cloned();
        } else if let Some(named) = word
            .to_str()
            .and_then(|word| word.strip_prefix("--instance="))
        {
            folder = Some(named.into());
        }
    }
    let folder = PathBuf::from(folder?);
    folder.join(FILE_NAME).exists().then_some(folder)
}

fn databases() -> Vec<CompletionCandidate> {
    names(&words())
        .into_iter()
        .map(CompletionCandidate::new)
        .collect()
}

/// The databases that are registered, and those that only the history knows.
fn names(words: &[OsString]) -> Vec<String> {
    let Some(folder) = instance_folder(words) else {
        return Vec::new();
    };
    // A copy in memory: nothing is written.
    let Ok(instance) = Instance::rehearsal(Some(&folder)) else {
        return Vec::new();
    };
    let catalog = instance.catalog();
    let registered = catalog.databases().unwrap_or_default();
    let mut names: Vec<String> = registered.into_iter().map(|record| record.name).collect();
    let past = catalog.past_backups(None).unwrap_or_default();
    names.extend(past.into_iter().map(|backup| backup.of.name));
    names.sort();
    names.dedup();
    names
}

fn databases_and_files(current: &OsStr) -> Vec<CompletionCandidate> {
    let written = current.to_string_lossy();
    let names = names(&words())
        .into_iter()
        .filter(|name| name.starts_with(&*written));
    let mut found: Vec<CompletionCandidate> = names.map(CompletionCandidate::new).collect();
    found.extend(PathCompleter::file().complete(current));
    found
}

/// The sets on the first medium of the command line.
fn sets() -> Vec<CompletionCandidate> {
    let words = words();
    let files = words
        .iter()
        .skip(2)
        .filter(|word| Path::new(word).is_file());
    let mut found = files.filter_map(|file| sets_on(file.to_str()?));
    found.next().unwrap_or_default()
}

fn sets_on(file: &str) -> Option<Vec<CompletionCandidate>> {
    let session = Session::new(Instance::rehearsal(None).ok()?);
    let devices = session.devices(&[file.to_owned()]).ok()?;
    let media = MediaSet::open_any(&devices).ok()?;
    let sets = media.sets().into_iter().map(|entry| {
        let set = entry.configuration;
        let about = set.set_type.name();
        CompletionCandidate::new(set.position.to_string()).help(Some(about.into()))
    });
    let sets: Vec<CompletionCandidate> = sets.collect();
    (!sets.is_empty()).then_some(sets)
}

#[cfg(test)]
mod tests {
    use windlass_codec::Compression;
    use windlass_instance::operation::CompressionChoice;

    use super::*;

    #[test]
    fn every_argument_that_is_completed_exists() {
        command().debug_assert();
    }

    #[test]
    fn every_compression_that_is_offered_is_one() {
        for (is_adaptive, count) in [(true, 8), (false, 7)] {
            let offered = compressions(is_adaptive);
            assert_eq!(offered.len(), count);
            for word in offered {
                let word = word.get_value().to_str().unwrap().to_owned();
                let _: CompressionChoice = word.parse().unwrap();
                assert!(is_adaptive || word.parse::<Compression>().is_ok(), "{word}");
            }
        }
    }

    #[test]
    fn choices_are_words_and_not_what_stands_for_others() {
        let found = |name| choices(name).collect::<Vec<_>>();
        assert_eq!(
            found("auto|io_uring|threads"),
            ["auto", "io_uring", "threads"]
        );
        assert_eq!(found("N|auto"), ["auto"]);
        assert!(found("DIR|URL").is_empty());
        assert!(found("TIME|lsn:N").is_empty());
    }

    #[test]
    fn every_shell_has_a_script_that_asks_the_program() {
        for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
            let script = String::from_utf8(script(shell).unwrap()).unwrap();
            assert!(script.contains(VARIABLE), "{shell}: {script}");
        }
        assert!(script("sh").is_err());
    }
}
