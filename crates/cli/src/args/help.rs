//! The parts of the help that no argument describes: commands in groups, and examples.
//!
//! The notes of a command are written in lines for the reader of the code; here their paragraphs become lines, which the
//! help breaks for the terminal.

use clap::{Command, CommandFactory as _};

use super::{Arguments, usage};

/// The commands, in the groups of the help.
pub(crate) const GROUPS: &[(&str, &[&str])] = &[
    (
        "Back up and restore",
        &["backup", "restore", "verify", "follow", "ship", "drill"],
    ),
    (
        "Look into backups",
        &["header", "files", "label", "rekey", "signing-key"],
    ),
    (
        "Backups of SQL Server",
        &["inspect", "extract", "repack", "unpack"],
    ),
    (
        "Databases and T-SQL",
        &[
            "sql",
            "import",
            "export",
            "serve",
            "install",
            "sqlbackup",
            "copies",
        ],
    ),
    (
        "Keep watch",
        &[
            "check", "history", "report", "jobs", "top", "fleet", "expire", "metrics", "doctor",
        ],
    ),
    ("Measure", &["tune", "bench", "demo"]),
    ("Set up", &["config", "credential", "completions", "man"]),
];

/// Three examples of each command.
#[rustfmt::skip]
pub(crate) const EXAMPLES: &[(&str, [&str; 3])] = &[
    ("backup", ["windlass backup app.db --to app.bak", "windlass backup app.db --to app.bak --differential", "windlass backup --all /srv/app --except 'test*' --to /srv/backup --parallel 4"]),
    ("restore", ["windlass restore app.bak --to copy.db", "windlass restore /srv/backup --of app --to app.db --replace", "windlass restore /srv/backup --to copy.db --at '2026-11-24 10:15:00'"]),
    ("follow", ["windlass follow app.db --to /srv/spool", "windlass follow app.db --to /srv/spool --every 200ms --spool-max 10G", "windlass follow --show /srv/spool"]),
    ("verify", ["windlass verify app.bak", "windlass verify 1.bak 2.bak --set 3", "windlass verify app.bak --signed-by backup.key.pub"]),
    ("header", ["windlass header app.bak", "windlass header app.bak --columns Position,DatabaseName,BackupFinishDate", "windlass header app.bak --set 2 --json"]),
    ("files", ["windlass files app.bak", "windlass files app.bak --set 2", "windlass files 1.bak 2.bak -o wide"]),
    ("label", ["windlass label app.bak", "windlass label 1.bak -o wide", "windlass label app.bak --json"]),
    ("inspect", ["windlass inspect sales.bak", "windlass inspect sales.bak --report sales.html", "windlass inspect - --json"]),
    ("extract", ["windlass extract sales.bak --to sales.db", "windlass extract sales.bak --to tables --format csv --table dbo.Orders", "windlass extract sales.bak --to files --format files"]),
    ("repack", ["windlass repack sales.bak --to sales.wl", "windlass repack sales.bak --to 1.wl --to 2.wl --compress zstd:medium", "windlass repack sales.bak --to sales.wl --passphrase-file secret.txt"]),
    ("unpack", ["windlass unpack sales.wl --to sales.bak", "windlass unpack 1.wl 2.wl --to sales.bak", "windlass unpack sales.wl --to sales.bak --passphrase-file secret.txt"]),
    ("rekey", ["windlass rekey app.bak --key old.pem --encrypt-to new.pem", "windlass rekey 1.bak 2.bak --key old.pem --encrypt-to new.pem --set 2", "windlass rekey app.bak --passphrase-file old.txt --new-passphrase-file new.txt"]),
    ("signing-key", ["windlass signing-key backup.key", "windlass signing-key /etc/windlass/backup.key", "windlass signing-key backup.key --json"]),
    ("import", ["windlass import app.db --into app --instance /srv/windlass", "windlass import app.db --into app --page-checksums", "windlass import app.db --into app --data /srv/d/app.mdf"]),
    ("export", ["windlass export app --to copy.db --instance /srv/windlass", "windlass export app --to /srv/out/app.db", "windlass export app --to copy.db --json"]),
    ("sql", ["windlass sql --instance /srv/windlass", "windlass sql -i nightly.sql --instance /srv/windlass --drive d=/srv/d -b", "windlass sql --attach app=app.db -d app -Q 'SELECT count(*) FROM posts'"]),
    ("serve", ["windlass serve --instance /srv/windlass", "windlass serve --tds 0.0.0.0:1433 --certificate server.pem --key server.key", "windlass serve --instance /srv/windlass --local-only"]),
    ("install", ["windlass install --instance /srv/windlass", "windlass install --instance /srv/windlass --user backup --writable /srv/backup", "windlass install --instance /srv/windlass -- --tds 0.0.0.0:1433"]),
    ("tune", ["windlass tune app.db --to /srv/backup", "windlass tune app.db --to /srv/backup --goal small --time 30", "windlass tune app.db --to /srv/backup --report tune.html"]),
    ("bench", ["windlass bench compression app.db", "windlass bench devices app.db --to /srv/backup --rounds 3", "windlass bench stages app.db --json"]),
    ("demo", ["windlass demo", "windlass demo --size 20", "windlass demo app.db"]),
    ("history", ["windlass history", "windlass history app --last 10", "windlass history --rpo 24h"]),
    ("report", ["windlass report", "windlass report --rpo 6h --to report.html", "windlass report app --days 30 --json"]),
    ("jobs", ["windlass jobs", "windlass jobs history", "windlass jobs --json"]),
    ("top", ["windlass top", "windlass top --every 5", "windlass top --once --json"]),
    ("expire", ["windlass expire /srv/backup --within 30 --last 2", "windlass expire /srv/backup --daily 7 --weekly 4 --monthly 12 --delete", "windlass expire s3://minio:9000/backups/ --last 3"]),
    ("sqlbackup", ["windlass sqlbackup --sql 'BACKUP DATABASES [*] TO DISK = [/srv/backup/<AUTO>]'", "windlass sqlbackup --attach app=app.db --sql 'BACKUP DATABASE app TO DISK = [app.sqb]'", "windlass sqlbackup --dry-run --sql 'RESTORE VERIFYONLY FROM DISK = [app.sqb]'"]),
    ("copies", ["windlass copies", "windlass copies --run", "windlass copies --run --now --make-folders"]),
    ("credential", ["windlass credential set s3://minio:9000/backups --key-file key.txt", "windlass credential list", "windlass credential drop s3://minio:9000/backups"]),
    ("config", ["windlass config", "windlass config --effective", "windlass config --effective --json"]),
    ("metrics", ["windlass metrics", "windlass metrics --output /var/lib/node_exporter/windlass.prom", "windlass metrics --json"]),
    ("fleet", ["windlass fleet s3://minio:9000/backups/", "windlass fleet s3://minio:9000/backups/ --rpo 6h", "windlass fleet s3://minio:9000/backups/ --to fleet.html"]),
    ("check", ["windlass check", "windlass check --database app", "windlass check --media /srv/backup"]),
    ("drill", ["windlass drill --scratch /var/tmp", "windlass drill app --scratch /var/tmp --at random", "windlass drill app --from /srv/backup --scratch /var/tmp"]),
    ("ship", ["windlass ship /srv/backup --of shop --to /standby/shop.db", "windlass ship /srv/backup --of shop --to /standby/shop.db --every 60s", "windlass ship /srv/backup --of shop --to /standby/shop.db --promote"]),
    ("doctor", ["windlass doctor", "windlass doctor --instance /srv/windlass", "windlass doctor --json"]),
    ("completions", ["windlass completions bash > /etc/bash_completion.d/windlass", "windlass completions zsh", "windlass completions fish"]),
    ("man", ["windlass man /tmp/man", "windlass man /usr/local/share/man/man1", "windlass man /tmp/man --json"]),
];

/// The command line with everything that its help says.
pub(crate) fn command() -> Command {
    let mut command = with_negative_numbers(Arguments::command());
    let names: Vec<String> = command
        .get_subcommands()
        .map(|known| known.get_name().to_owned())
        .collect();
    for name in names {
        command = command.mut_subcommand(&name, |known| {
            let mut after = examples_of(&name);
            if let Some(notes) = known.get_after_help() {
                after.push_str("\n\n");
                after.push_str(&reflowed(&notes.to_string()));
            }
            known.after_help(after)
        });
    }
    let groups = groups(&command);
    usage::shown(command).help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{groups}\nOptions:\n{{options}}\n\n{{after-help}}"
    ))
}

/// Lets values of options be negative numbers, so that each option says what is wrong with one.
fn with_negative_numbers(command: Command) -> Command {
    command
        .mut_args(|known| match known.get_action().takes_values() {
            true if !known.is_positional() => known.allow_negative_numbers(true),
            _ => known,
        })
        .mut_subcommands(with_negative_numbers)
}

/// The command line without examples: what remains are the notes of each command.
pub(crate) fn without_examples() -> Command {
    Arguments::command()
}

/// The examples of a command, as its help and its manual page have them.
fn examples_of(name: &str) -> String {
    let found = EXAMPLES.iter().find(|(known, _)| *known == name);
    let lines = found.map_or(&[][..], |(_, lines)| &lines[..]);
    if lines.is_empty() {
        return String::new();
    }
    format!("Examples:\n  {}", lines.join("\n  "))
}

/// The commands in their groups, each with the first line of its description.
fn groups(command: &Command) -> String {
    const WIDTH: usize = 12;
    let line = |name: &&str| {
        let about = command.find_subcommand(name).and_then(Command::get_about);
        let about = about.map(ToString::to_string).unwrap_or_default();
        format!("  {name:<WIDTH$} {about}\n")
    };
    let group = |(heading, names): &(&str, &[&str])| {
        let lines: String = names.iter().map(line).collect();
        format!("{heading}:\n{lines}\n")
    };
    GROUPS.iter().map(group).collect()
}

/// Each paragraph on one line; lines that are indented stay as they are.
pub(crate) fn reflowed(text: &str) -> String {
    let mut flowed = String::new();
    let mut was_text = false;
    for line in text.lines() {
        let is_text = !line.is_empty() && !line.starts_with(' ');
        if !flowed.is_empty() {
            flowed.push(if is_text && was_text { ' ' } else { '\n' });
        }
        flowed.push_str(line);
        was_text = is_text;
    }
    flowed
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// The commands that the help shows.
    fn shown() -> BTreeSet<String> {
        let command = Arguments::command();
        let shown = command
            .get_subcommands()
            .filter(|known| !known.is_hide_set());
        shown.map(|known| known.get_name().to_owned()).collect()
    }

    #[test]
    fn every_command_is_in_one_group_and_has_examples() {
        let grouped: Vec<&str> = GROUPS
            .iter()
            .flat_map(|(_, names)| *names)
            .copied()
            .collect();
        let once: BTreeSet<String> = grouped.iter().map(|name| (*name).to_owned()).collect();
        assert_eq!(once.len(), grouped.len());
        assert_eq!(once, shown());
        let with: BTreeSet<String> = EXAMPLES
            .iter()
            .map(|(name, _)| (*name).to_owned())
            .collect();
        assert_eq!(with, shown());
    }

    #[test]
    fn every_example_is_understood_and_fits_a_line() {
        /// The help is no wider than 100 columns, and indents examples.
        const LINE: usize = 98;

        for (name, examples) in EXAMPLES {
            for example in examples {
                // A drive is a folder that there is.
                let drive = format!("d={}", std::env::temp_dir().display());
                let words = shell_words::split(&example.replace("d=/srv/d", &drive)).unwrap();
                let words = words.iter().take_while(|word| *word != ">");
                let parsed = command().try_get_matches_from(words);
                if let Err(error) = parsed {
                    assert!(!error.use_stderr(), "{example}: {error}");
                }
                assert!(example.len() <= LINE, "{example}");
                let begins = format!("windlass {name} ");
                assert!(format!("{example} ").starts_with(&begins), "{example}");
            }
        }
    }

    #[test]
    fn paragraphs_are_joined_and_examples_are_not() {
        assert_eq!(reflowed("a\nb\n\nc\n  d\n  e\nf"), "a b\n\nc\n  d\n  e\nf");
    }
}
