//! Tips for options of other programs, where the parser knows none or takes another option for what was meant.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use windlass_base::similar::{nearest, slips};

use crate::args;

/// Commands that are given media without an option.
const OF_MEDIA: &[&str] = &[
    "files", "header", "label", "rekey", "restore", "unpack", "verify",
];

/// Commands that write files which may exist.
const OF_FILES: &[&str] = &["export", "extract", "restore", "unpack"];

/// Options that say where something goes.
const TARGETS: &[&str] = &[
    "--dest",
    "--destination",
    "--into",
    "--out",
    "--output",
    "--target",
    "-o",
];

/// Options that allow to overwrite.
const FORCES: &[&str] = &["--clobber", "--force", "--overwrite", "-f"];

/// Options that destroy, weaken or leave out something: proposed only for a single slip.
const RISKY: &[&str] = &[
    "allow-unencrypted",
    "delete",
    "format",
    "init",
    "no-compress-write",
    "no-write",
    "replace",
    "skip",
];

/// Commands of other programs, and what does the same here.
const COMMANDS: &[(&[&str], &str)] = &[
    (
        &["delete", "forget", "prune", "purge", "retention"],
        "windlass expire deletes backups that are not needed any more",
    ),
    (
        &["backups", "list", "log", "ls", "snapshots"],
        "windlass history lists the backups of an instance, windlass header those on media",
    ),
    (
        &["exec", "execute", "query", "run"],
        "windlass sql runs T-SQL",
    ),
    (
        &["cron", "schedule"],
        "windlass serve runs the jobs that EXEC sp_add_job has planned, windlass jobs shows them",
    ),
    (
        &["health", "status"],
        "windlass check says whether all is well, windlass top what runs",
    ),
    (
        &["create", "init"],
        "an instance is made by the first command that names its folder with --instance",
    ),
    (&["info", "show"], "windlass header shows what is on media"),
    (&["version"], "windlass --version"),
];

/// Commands, options that they do not have, and what to say.
const TIPS: &[(&[&str], &[&str], &str)] = &[
    (
        OF_MEDIA,
        &["--backup", "--disk", "--from", "--input", "--media", "-i"],
        "backup files are named without an option, all stripes of one backup",
    ),
    (
        &["backup"],
        &["--database", "--db", "--from", "--input", "--source", "-d"],
        "the database is named without an option: windlass backup DATABASE --to FILE",
    ),
    (
        &["backup", "repack"],
        TARGETS,
        "the file to write is named with --to",
    ),
    (OF_FILES, TARGETS, "the file to write is named with --to"),
    (
        &["restore", "unpack"],
        FORCES,
        "--replace overwrites what is there",
    ),
    (
        &["export", "extract"],
        FORCES,
        "what exists is not overwritten: name another file",
    ),
    (
        &["backup", "repack"],
        FORCES,
        "--format overwrites a backup file, --init the backup sets in it; without them a backup is appended",
    ),
    (
        &["drill", "restore"],
        &[
            "--point-in-time",
            "--stop-at",
            "--stopat",
            "--time",
            "--timestamp",
        ],
        "the moment is given with --at",
    ),
    (
        &["backup"],
        &[
            "--append",
            "--no-format",
            "--no-init",
            "--noformat",
            "--noinit",
        ],
        "a backup is appended unless --init or --format is given",
    ),
    (
        &["backup", "repack"],
        &[
            "--no-compress",
            "--no-compression",
            "--nocompress",
            "--nocompression",
        ],
        "--compress none stores pages as they are",
    ),
    (
        &["backup", "repack"],
        &["--compression-level", "--level"],
        "the level belongs to the algorithm: --compress zstd:high",
    ),
    (
        &["backup", "repack"],
        &["--files", "--stripe", "--stripes"],
        "for a striped backup, --to is repeated",
    ),
    (
        &["restore"],
        &["--recovery", "--with-recovery"],
        "the database is opened unless --no-recovery is given",
    ),
    (
        &["restore"],
        &["--standby"],
        "a database that is read between restores is one of T-SQL: windlass sql -Q \"RESTORE ... WITH STANDBY = 'FILE'\"",
    ),
    (
        &["drill"],
        &["--all"],
        "without names, all databases of the instance are proved",
    ),
    (
        &["backup"],
        &["--full"],
        "a backup is full unless --differential or --log is given",
    ),
    (
        &["backup"],
        &["--diff", "--incr", "--incremental"],
        "--differential stores what has changed since the last full backup",
    ),
    (
        &["backup", "repack", "restore", "rekey", "unpack", "verify"],
        &["--pass", "--passphrase", "--password", "-p"],
        "a passphrase is read from a file, which others cannot read: --passphrase-file FILE",
    ),
    (
        &["expire"],
        &["--keep", "--keep-last"],
        "--last N keeps the last N; --within, --daily, --weekly, --monthly and --yearly keep more",
    ),
    (
        &["expire"],
        &["--apply", "--execute", "--force", "--yes", "-y"],
        "without --delete, the verdicts are listed only",
    ),
];

/// What the parser's libraries say of a value, and what a user is told.
const WORDS: &[(&str, &str)] = &[
    ("cannot parse integer from empty string", "it is empty"),
    ("invalid digit found in string", "it is not a whole number"),
    (
        "invalid socket address syntax",
        "it is not an address and a port, such as 127.0.0.1:1433 or [::1]:1433",
    ),
    (
        "number too large to fit in target type",
        "the number is too large",
    ),
];

/// What is wrong with a value, without the words of a library; `None` if the error has none of them.
fn reworded(error: &clap::Error) -> Option<clap::Error> {
    use std::error::Error as _;
    let cause = error.source()?.to_string();
    let known = WORDS.iter().find(|(known, _)| *known == cause);
    let words = match known {
        Some((_, words)) => (*words).to_owned(),
        None => {
            let (_, range) = cause.split_once(" is not in ")?;
            let (least, most) = range.split_once("..=")?;
            format!("it is not a whole number from {least} to {most}")
        }
    };
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    let (option, value) = (
        text(ContextKind::InvalidArg)?,
        text(ContextKind::InvalidValue)?,
    );
    let said = format!(
        "invalid value '{value}' for '{option}': {words}\n\nFor more information, try '--help'.\n"
    );
    Some(clap::Error::raw(error.kind(), said))
}

/// Replaces what the parser proposes: a word that only looks alike, or to take an option for the name of a file.
pub(crate) fn improve(error: &mut clap::Error, written: &[OsString]) {
    match error.kind() {
        ErrorKind::InvalidSubcommand => return improve_command(error),
        ErrorKind::MissingSubcommand => return leave_out_hidden(error),
        ErrorKind::InvalidValue => return improve_layout(error),
        ErrorKind::ValueValidation => {
            if let Some(reworded) = reworded(error) {
                *error = reworded;
            }
            return;
        }
        ErrorKind::UnknownArgument => {
            if let Some(negative) = negative(error, written) {
                *error = negative;
                return;
            }
        }
        _ => return,
    }
    let Some(ContextValue::String(unknown)) = error.get(ContextKind::InvalidArg) else {
        return;
    };
    let tip = command_in(written).and_then(|command| tip(&command, unknown));
    let is_proposed = match error.get(ContextKind::SuggestedArg) {
        Some(ContextValue::String(proposed)) => is_near(unknown, proposed),
        _ => false,
    };
    match tip {
        Some(tip) => {
            error.remove(ContextKind::SuggestedArg);
            // It has the option that was proposed.
            error.remove(ContextKind::Usage);
            let tips = ContextValue::StyledStrs(vec![tip.into()]);
            error.insert(ContextKind::Suggested, tips);
        }
        None if !is_proposed && unknown.starts_with('-') => {
            error.remove(ContextKind::SuggestedArg);
            error.remove(ContextKind::Suggested);
            error.remove(ContextKind::Usage);
        }
        None => {}
    }
}

/// That the value of an option is negative, if it was taken for an option because it has a unit: `-4K`.
fn negative(error: &clap::Error, written: &[OsString]) -> Option<clap::Error> {
    let Some(ContextValue::String(unknown)) = error.get(ContextKind::InvalidArg) else {
        return None;
    };
    if !unknown
        .strip_prefix('-')?
        .starts_with(|first: char| first.is_ascii_digit())
    {
        return None;
    }
    let command = args::command();
    let found = written.windows(2).find_map(|words| {
        let [option, value] = words else {
            return None;
        };
        let (option, value) = (option.to_str()?, value.to_str()?);
        let name = option.strip_prefix("--")?;
        (value.starts_with(unknown.as_str()) && takes_value(&command, name))
            .then_some((option, value))
    });
    let (option, value) = found?;
    let said = format!(
        "invalid value '{value}' for '{option}': it is negative\n\nFor more information, try '--help'.\n"
    );
    Some(clap::Error::raw(ErrorKind::ValueValidation, said))
}

/// Whether an option of this name has a value, in a command or one of its own commands.
fn takes_value(command: &clap::Command, name: &str) -> bool {
    let mut known = command.get_arguments();
    known.any(|known| known.get_long() == Some(name) && known.get_action().takes_values())
        || command
            .get_subcommands()
            .any(|command| takes_value(command, name))
}

/// Whether an option is probably what was meant: its opposite never is, and one that destroys something hardly.
fn is_near(unknown: &str, proposed: &str) -> bool {
    let name = |option: &str| option.trim_start_matches('-').to_owned();
    let (unknown, proposed) = (name(unknown), name(proposed));
    let is_risky = RISKY.contains(&proposed.as_str());
    let is_opposite = unknown.starts_with("no") != proposed.starts_with("no");
    nearest(&unknown, [proposed.as_str()]).is_some()
        && !is_opposite
        && (!is_risky || slips(&unknown, &proposed) <= 1)
}

/// Proposes the command that was meant, and no other that only looks alike.
fn improve_command(error: &mut clap::Error) {
    let Some(ContextValue::String(unknown)) = error.get(ContextKind::InvalidSubcommand) else {
        return;
    };
    let unknown = unknown.to_lowercase();
    let all = args::command();
    let names: Vec<&str> = all.get_subcommands().map(clap::Command::get_name).collect();
    let mut known = COMMANDS.iter();
    let tip = known.find(|(words, _)| words.contains(&unknown.as_str()));
    let same = names.iter().copied().find(|name| *name == unknown);
    let meant = same.or_else(|| nearest(&unknown, names.iter().copied()));
    error.remove(ContextKind::SuggestedSubcommand);
    match (tip, meant) {
        (Some((_, tip)), _) => {
            let tips = ContextValue::StyledStrs(vec![(*tip).into()]);
            error.insert(ContextKind::Suggested, tips);
        }
        (None, Some(meant)) => {
            let meant = ContextValue::Strings(vec![meant.to_owned()]);
            error.insert(ContextKind::SuggestedSubcommand, meant);
        }
        (None, None) => {}
    }
}

/// Says how results get into a file, where a file is named by the option that says it in sqlcmd.
fn improve_layout(error: &mut clap::Error) {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => text.as_str(),
        _ => "",
    };
    let (option, value) = (
        text(ContextKind::InvalidArg),
        text(ContextKind::InvalidValue),
    );
    if option != "--output <LAYOUT>" || value.is_empty() {
        return;
    }
    let tip = format!(
        "-o says how results look; to write them to a file, as sqlcmd does with -o: > {}",
        shell_words::quote(value)
    );
    error.insert(
        ContextKind::Suggested,
        ContextValue::StyledStrs(vec![tip.into()]),
    );
}

/// Leaves commands out of the list that the help does not show either.
fn leave_out_hidden(error: &mut clap::Error) {
    let Some(ContextValue::Strings(listed)) = error.get(ContextKind::ValidSubcommand) else {
        return;
    };
    let all = args::command();
    let is_shown = |name: &&String| {
        let known = all.find_subcommand(name.as_str());
        !known.is_some_and(clap::Command::is_hide_set)
    };
    let shown: Vec<String> = listed.iter().filter(is_shown).cloned().collect();
    error.insert(ContextKind::ValidSubcommand, ContextValue::Strings(shown));
}

/// The first word that is a command.
pub(crate) fn command_in(written: &[OsString]) -> Option<String> {
    let all = args::command();
    let mut words = written.iter().skip(1).map(|word| word.to_string_lossy());
    let found = words.find(|word| all.find_subcommand(word.as_ref()).is_some());
    found.map(std::borrow::Cow::into_owned)
}

fn tip(command: &str, unknown: &str) -> Option<&'static str> {
    let mut tips = TIPS.iter();
    let found = tips
        .find(|(commands, options, _)| commands.contains(&command) && options.contains(&unknown));
    found.map(|(_, _, tip)| *tip)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tips_are_for_options_that_the_commands_do_not_have_and_name_those_that_they_have() {
        let all = args::command();
        for (commands, options, tip) in TIPS {
            for command in *commands {
                let command = all.find_subcommand(command).expect(command);
                let words = tip.split(|letter: char| !letter.is_alphanumeric() && letter != '-');
                for named in words.filter_map(|word| word.strip_prefix("--")) {
                    let has = command
                        .get_arguments()
                        .any(|argument| argument.get_long() == Some(named));
                    assert!(has, "{} has no --{named}: {tip}", command.get_name());
                }
                for option in *options {
                    let has = command.get_arguments().any(|argument| {
                        let long = option.strip_prefix("--");
                        let names = argument.get_long_and_visible_aliases().unwrap_or_default();
                        long.is_some_and(|long| names.contains(&long))
                    });
                    assert!(!has, "{} {option}: {tip}", command.get_name());
                }
            }
        }
    }

    /// What is said of a command line that is wrong.
    fn said(words: &[&str]) -> String {
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        let parsed = args::command().try_get_matches_from(&words);
        let mut error = parsed.expect_err("it is wrong");
        improve(&mut error, &words);
        error.render().to_string()
    }

    #[test]
    fn a_wrong_number_or_address_is_told_in_plain_words() {
        let expire = |last: &str| said(&["windlass", "expire", "folder", "--last", last]);
        let expected = "error: invalid value 'x' for '--last <N>': it is not a whole number\n\nFor more information, try '--help'.\n";
        assert_eq!(expire("x"), expected);
        assert!(expire("").contains("it is empty"));
        let parallel = said(&[
            "windlass",
            "backup",
            "--all",
            "x",
            "--to",
            "y",
            "--parallel",
            "0",
        ]);
        assert!(
            parallel.contains("it is not a whole number from 1 to 64"),
            "{parallel}"
        );
        let address = said(&["windlass", "serve", "--tds", "here"]);
        assert!(address.contains("such as 127.0.0.1:1433"), "{address}");
    }

    #[test]
    fn a_file_for_results_is_written_by_the_shell() {
        let of_sql = said(&["windlass", "sql", "-Q", "SELECT 1", "-o", "out.txt"]);
        assert!(of_sql.contains("with -o: > out.txt"), "{of_sql}");
        let of_nothing = said(&["windlass", "sql", "-Q", "SELECT 1", "-o"]);
        assert!(!of_nothing.contains("tip:"), "{of_nothing}");
    }

    #[test]
    fn a_negative_value_is_one_of_its_option() {
        for (line, expected) in [
            (
                "backup app.db --to x --max-rate -1",
                "invalid value '-1' for '--max-rate <MB>': it is not a whole number from",
            ),
            (
                "expire x --last -1",
                "'--last <N>': it is not a whole number from 0",
            ),
            ("check --rpo -5", "invalid value '-5' for '--rpo <TIME>'"),
            (
                "backup app.db --to x --lock-timeout -1",
                "'-1' for '--lock-timeout <SECONDS>': it is no number of seconds",
            ),
            (
                "bench devices app.db --block-size -4K",
                "invalid value '-4K' for '--block-size': it is negative",
            ),
        ] {
            let words = format!("windlass {line}");
            let found = said(&words.split(' ').collect::<Vec<_>>());
            assert!(found.contains(expected), "{line}: {found}");
        }
        let stray = said(&["windlass", "check", "--json", "-4K"]);
        assert!(stray.contains("unexpected argument '-4'"), "{stray}");
    }

    #[test]
    fn a_missing_command_is_not_one_that_the_help_hides() {
        let missing = said(&["windlass", "--json"]);
        assert!(missing.contains("backup"), "{missing}");
        assert!(!missing.contains("demo-writer"), "{missing}");
    }

    #[test]
    fn the_tip_is_that_of_the_command() {
        let of_restore = said(&["windlass", "restore", "--from", "x.bak", "--to", "y"]);
        assert!(
            of_restore.contains("without an option, all stripes"),
            "{of_restore}"
        );
        let of_backup = said(&["windlass", "backup", "app.db", "--to", "x", "--force"]);
        assert!(of_backup.contains("--format overwrites"), "{of_backup}");
        let unknown = said(&["windlass", "backup", "app.db", "--to", "x", "--zzz"]);
        assert!(!unknown.contains("tip:"), "{unknown}");
        let misspelt = said(&[
            "windlass",
            "backup",
            "app.db",
            "--to",
            "x",
            "--compres",
            "y",
        ]);
        assert!(misspelt.contains("'--compress'"), "{misspelt}");
        for wrong in ["--noskip", "--no-wait", "--no-encrypt", "--keep"] {
            let opposite = said(&["windlass", "backup", "app.db", "--to", "x", wrong]);
            assert!(!opposite.contains("tip:"), "{wrong}: {opposite}");
        }
        let slip = said(&["windlass", "backup", "app.db", "--to", "x", "--fromat"]);
        assert!(slip.contains("'--format'"), "{slip}");
        for (word, meant) in [
            ("restor", "'restore'"),
            ("RESTORE", "'restore'"),
            ("prune", "windlass expire"),
        ] {
            let of_command = said(&["windlass", word]);
            assert!(of_command.contains(meant), "{of_command}");
        }
        for word in ["list", "init", "frobnicate"] {
            let of_command = said(&["windlass", word]);
            assert!(!of_command.contains("install"), "{of_command}");
        }
    }
}
