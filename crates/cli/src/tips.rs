//! Tips for options of other programs, where the parser knows none or takes another option for what was meant.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};

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

/// Replaces what the parser proposes: a word that only looks alike, or to take an option for the name of a file.
pub(crate) fn improve(error: &mut clap::Error, written: &[OsString]) {
    if error.kind() != ErrorKind::UnknownArgument {
        return;
    }
    let Some(ContextValue::String(unknown)) = error.get(ContextKind::InvalidArg) else {
        return;
    };
    let tip = command_in(written).and_then(|command| tip(&command, unknown));
    let is_proposed = error.get(ContextKind::SuggestedArg).is_some();
    match tip {
        Some(tip) => {
            error.remove(ContextKind::SuggestedArg);
            let tips = ContextValue::StyledStrs(vec![tip.into()]);
            error.insert(ContextKind::Suggested, tips);
        }
        None if !is_proposed && unknown.starts_with('-') => {
            error.remove(ContextKind::Suggested);
        }
        None => {}
    }
}

/// The first word that is a command.
fn command_in(written: &[OsString]) -> Option<String> {
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

    #[test]
    fn the_tip_is_that_of_the_command() {
        let said = |words: &[&str]| {
            let words: Vec<OsString> = words.iter().map(OsString::from).collect();
            let parsed = args::command().try_get_matches_from(&words);
            let mut error = parsed.expect_err("an unknown option");
            improve(&mut error, &words);
            error.render().to_string()
        };
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
    }
}
