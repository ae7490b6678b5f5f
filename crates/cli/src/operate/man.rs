//! The manual pages: one for each command, from its arguments, and two that no command describes: the options of BACKUP
//! and RESTORE in T-SQL (7), and the configuration file (5).

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Command;
use clap_mangen::Man;
use windlass_tsql::option::{BACKUP, OptionRow, RESTORE, Support};

use super::settings::KEYS;
use crate::args::{self, EXAMPLES, GROUPS, reflowed};

const EXIT_STATUS: &[(&str, &str)] = &[
    ("0", "All went well."),
    (
        "1",
        "Something failed: a message of severity 11 or more, or a result that could not be written.",
    ),
    ("2", "The command line is invalid. Nothing was done."),
];

const EXIT_STATUS_OF_CHECK: &[(&str, &str)] = &[
    ("0", "OK"),
    ("1", "WARNING"),
    ("2", "CRITICAL"),
    (
        "3",
        "UNKNOWN: also an invalid command line, or an instance that cannot be read.",
    ),
];

const FILES: &[(&str, &str)] = &[
    (
        "/etc/windlass/config.toml",
        "The system's settings: windlass-config(5).",
    ),
    (
        "~/.config/windlass/config.toml",
        "The user's settings. They override the system's.",
    ),
    (
        "DIR/windlass.catalog",
        "The state of the instance in DIR: databases, history, settings.",
    ),
    (
        "~/.local/state/windlass/sql_history",
        "The lines typed at the prompt of windlass sql, without batches that name a secret.",
    ),
    (
        "/usr/share/doc/windlass",
        "The documentation, if a package of the system has installed windlass.",
    ),
    (
        "NAME.keys",
        "The recipients that windlass rekey has added to the medium NAME. Keep both together.",
    ),
];

const ENVIRONMENT: &[(&str, &str)] = &[
    (
        "WINDLASS_INSTANCE",
        "The instance directory, as --instance.",
    ),
    ("WINDLASS_CONFIG", "The configuration file, as --config."),
    (
        "WINDLASS_MACHINE_NAME",
        "The name of this machine in backups and in @@SERVERNAME.",
    ),
    (
        "XDG_CONFIG_HOME, XDG_STATE_HOME",
        "Where the user's settings and the history of the prompt are, instead of ~/.config and ~/.local/state.",
    ),
    ("NO_COLOR", "If set, help and errors have no colours."),
    (
        "TMPDIR",
        "Where temporary files are: copies of databases that writers may go on with, and instances of commands without one. \
         /var/tmp and /tmp if it is not set.",
    ),
    (
        "TZ",
        "The zone of times without an offset, instead of the system's.",
    ),
    (
        "USER, LOGNAME",
        "The user that backups name as their maker.",
    ),
    (
        "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, AWS_REGION, AWS_PROFILE",
        "The key of s3:// URLs where the instance has no credential for them, and the region; AWS' files and roles as in its \
         own programs.",
    ),
    (
        "AZURE_STORAGE_KEY, AZURE_STORAGE_SAS_TOKEN, AZURE_TENANT_ID, AZURE_CLIENT_ID, AZURE_CLIENT_SECRET",
        "The same of Azure's URLs.",
    ),
    (
        "GOOGLE_APPLICATION_CREDENTIALS",
        "The same of gs:// URLs: a file.",
    ),
    (
        "SSL_CERT_FILE, SSL_CERT_DIR",
        "The certificates of authorities that stores are trusted by, instead of the system's.",
    ),
    (
        "HTTPS_PROXY, NO_PROXY",
        "The proxy to stores that speak TLS.",
    ),
    (
        "NOTIFY_SOCKET, WATCHDOG_USEC",
        "Where systemd is told that a server is ready, and that it lives.",
    ),
];

const EXIT_STATUS_OF_SQLBACKUP: &[(&str, &str)] = &[
    ("0", "All went well."),
    (
        "1",
        "Something failed: SQL Backup's number, such as 1100, is in the results and on the terminal.",
    ),
    ("2", "The command line is invalid. Nothing was done."),
];

/// Writes all pages to a folder; returns their names.
pub(super) fn write(folder: &Path) -> io::Result<Vec<PathBuf>> {
    std::fs::create_dir_all(folder)?;
    let mut command = args::command().disable_help_subcommand(true);
    command.build();
    let plain = args::without_examples();
    let mut written = Vec::new();
    pages(&command, &plain, folder, &mut written)?;
    for (name, text) in [
        ("windlass-config.5", configuration()),
        ("windlass-tsql.7", tsql()),
    ] {
        keep(folder.join(name), &text, &mut written)?;
    }
    Ok(written)
}

fn keep(path: PathBuf, text: &[u8], written: &mut Vec<PathBuf>) -> io::Result<()> {
    std::fs::write(&path, text)?;
    written.push(path);
    Ok(())
}

/// Writes the page of a command and those of its subcommands.
fn pages(
    command: &Command,
    plain: &Command,
    folder: &Path,
    written: &mut Vec<PathBuf>,
) -> io::Result<()> {
    for child in command
        .get_subcommands()
        .filter(|known| !known.is_hide_set())
    {
        let plain = plain.find_subcommand(child.get_name()).unwrap_or(plain);
        pages(child, plain, folder, written)?;
    }
    let man = Man::new(command.clone());
    let mut text = Vec::new();
    man.render_title(&mut text)?;
    man.render_name_section(&mut text)?;
    section(&mut text, "SYNOPSIS");
    for line in synopsis(command) {
        writeln!(text, "{}\n.br", escaped(&line))?;
    }
    man.render_description_section(&mut text)?;
    man.render_options_section(&mut text)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut text)?;
    }
    let name = command.get_name();
    let is_top = name == "windlass";
    if let Some(notes) = plain.get_after_help().filter(|_| !is_top) {
        section(&mut text, "NOTES");
        paragraphs(&mut text, &reflowed(&notes.to_string()));
    }
    if let Some((_, examples)) = EXAMPLES.iter().find(|(known, _)| *known == name) {
        section(&mut text, "EXAMPLES");
        for example in examples {
            writeln!(text, ".P\n.EX\n{}\n.EE", escaped(example))?;
        }
    }
    section(&mut text, "EXIT STATUS");
    terms(
        &mut text,
        match name {
            "check" => EXIT_STATUS_OF_CHECK,
            "sqlbackup" => EXIT_STATUS_OF_SQLBACKUP,
            _ => EXIT_STATUS,
        },
    );
    section(&mut text, "FILES");
    terms(&mut text, FILES);
    section(&mut text, "ENVIRONMENT");
    terms(&mut text, ENVIRONMENT);
    section(&mut text, "SEE ALSO");
    writeln!(text, "{}", escaped(&neighbours(name)))?;
    let page = command.get_display_name().unwrap_or(name);
    keep(folder.join(format!("{page}.1")), &text, written)
}

/// The ways to write a command, as its help has them.
fn synopsis(command: &Command) -> Vec<String> {
    let words = command.get_bin_name().unwrap_or_default();
    let own = words.strip_prefix("windlass ").and_then(args::usage);
    own.unwrap_or_else(|| {
        let usage = command.clone().render_usage().to_string();
        let lines = usage.lines();
        lines
            .map(|line| line.trim().trim_start_matches("Usage:").trim().to_owned())
            .collect()
    })
}

/// The pages of the same group, and those that all commands need.
fn neighbours(name: &str) -> String {
    let mut pages = vec!["windlass(1)".to_owned()];
    let group = GROUPS.iter().find(|(_, names)| names.contains(&name));
    let names = match name {
        "windlass" => GROUPS.iter().flat_map(|(_, names)| *names).collect(),
        _ => group.map_or_else(Vec::new, |(_, names)| names.iter().collect()),
    };
    let others = names.into_iter().filter(|other| **other != name);
    pages.extend(others.map(|other: &&str| format!("windlass-{other}(1)")));
    pages.extend(["windlass-config(5)", "windlass-tsql(7)"].map(str::to_owned));
    pages.retain(|page| name != "windlass" || page != "windlass(1)");
    pages.join(", ")
}

fn title(text: &mut Vec<u8>, name: &str, number: u8, about: &str) {
    let version = env!("CARGO_PKG_VERSION");
    let head = format!(
        ".ie \\n(.g .ds Aq \\(aq\n.el .ds Aq '\n.TH {name} {number} \"\" \"windlass {version}\"\n.SH NAME\n{name} \\- {about}\n"
    );
    text.extend_from_slice(head.as_bytes());
}

fn section(text: &mut Vec<u8>, heading: &str) {
    text.extend_from_slice(format!(".SH \"{heading}\"\n").as_bytes());
}

fn terms(text: &mut Vec<u8>, terms: &[(&str, &str)]) {
    for (term, meaning) in terms {
        term_of(text, term, meaning);
    }
}

fn term_of(text: &mut Vec<u8>, term: &str, meaning: &str) {
    let entry = format!(".TP\n\\fB{}\\fR\n{}\n", escaped(term), escaped(meaning));
    text.extend_from_slice(entry.as_bytes());
}

fn paragraphs(text: &mut Vec<u8>, notes: &str) {
    for line in notes.lines() {
        let line = match (line.is_empty(), line.starts_with(' ')) {
            (true, _) => ".P\n".to_owned(),
            (false, true) => format!(".br\n{}\n", escaped(line.trim_start())),
            (false, false) => format!("{}\n", escaped(line)),
        };
        text.extend_from_slice(line.as_bytes());
    }
}

/// Text as roff has it.
fn escaped(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-");
    match text.starts_with(['.', '\'']) {
        true => format!("\\&{text}"),
        false => text,
    }
}

/// `windlass-config(5)`
fn configuration() -> Vec<u8> {
    let mut text = Vec::new();
    let page = &mut text;
    title(page, "windlass-config", 5, "settings of windlass");
    section(page, "DESCRIPTION");
    paragraphs(
        page,
        "The command line overrides the environment, which overrides the user's file, which overrides the system's file. \
         --config names one file instead of both. The files are TOML. Paths are relative to the file. An unknown key is an \
         error, and so is a file that somebody else could have written. windlass config --effective shows all settings, and \
         where each comes from.",
    );
    section(page, "KEYS");
    for (key, meaning) in KEYS {
        term_of(page, key, meaning);
    }
    section(page, "EXAMPLE");
    for line in [
        "instance = \"/srv/windlass\"",
        "log_file = \"/var/log/windlass.log\"",
        "[drives]",
        "d = \"/srv/d\"",
    ] {
        page.extend_from_slice(format!("{}\n.br\n", escaped(line)).as_bytes());
    }
    section(page, "FILES");
    terms(page, &FILES[..2]);
    section(page, "SEE ALSO");
    paragraphs(page, "windlass(1), windlass-tsql(7)");
    text
}

/// `windlass-tsql(7)`
fn tsql() -> Vec<u8> {
    let mut text = Vec::new();
    let page = &mut text;
    title(
        page,
        "windlass-tsql",
        7,
        "BACKUP and RESTORE of windlass in T-SQL",
    );
    section(page, "SYNOPSIS");
    for line in [
        "BACKUP DATABASE name TO DISK = 'file' [, ...] [MIRROR TO ...] [WITH option [, ...]]",
        "BACKUP LOG name TO DISK = 'file' [, ...] [WITH option [, ...]]",
        "RESTORE DATABASE | LOG name FROM DISK = 'file' [, ...] [WITH option [, ...]]",
        "RESTORE HEADERONLY | FILELISTONLY | LABELONLY | VERIFYONLY FROM DISK = 'file' [, ...]",
    ] {
        page.extend_from_slice(format!("{}\n.br\n", escaped(line)).as_bytes());
    }
    for (heading, rows) in [
        ("OPTIONS OF BACKUP", BACKUP),
        ("OPTIONS OF RESTORE", RESTORE),
    ] {
        section(page, heading);
        for row in rows.iter().filter(|row| is_supported(row)) {
            term_of(page, &row.synopsis(), row.doc);
        }
    }
    section(page, "NOTES");
    paragraphs(
        page,
        "Options of SQL Server that are not listed are accepted without effect, which a message says, or refused with the \
         reason. Other SQL runs on the current database through SQLite.",
    );
    section(page, "SEE ALSO");
    paragraphs(page, "windlass(1), windlass-sql(1), windlass-config(5)");
    text
}

fn is_supported(row: &OptionRow) -> bool {
    matches!(row.support, Support::Acts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_has_the_sections_that_readers_look_for() {
        let folder = tempfile::tempdir().unwrap();
        let written = write(folder.path()).unwrap();
        let names: Vec<_> = written
            .iter()
            .filter_map(|path| path.file_name()?.to_str())
            .collect();
        for name in [
            "windlass.1",
            "windlass-backup.1",
            "windlass-config.5",
            "windlass-tsql.7",
        ] {
            assert!(names.contains(&name), "{name}: {names:?}");
        }
        for path in &written {
            let page = std::fs::read_to_string(path).unwrap();
            let wanted = match path.extension().and_then(|end| end.to_str()) {
                Some("1") => &[
                    "SYNOPSIS",
                    "\"EXIT STATUS\"",
                    "FILES",
                    "ENVIRONMENT",
                    "\"SEE ALSO\"",
                ][..],
                _ => &["\"SEE ALSO\""],
            };
            for heading in wanted {
                let heading = heading.trim_matches('"');
                assert!(
                    page.contains(&format!(".SH \"{heading}\"")),
                    "{}: {heading}",
                    path.display()
                );
            }
            assert!(!page.contains(".SH EXTRA"), "{}", path.display());
        }
        let backup = std::fs::read_to_string(folder.path().join("windlass-backup.1")).unwrap();
        assert!(
            backup.contains("windlass backup [OPTIONS] \\-\\-to <FILE> <DATABASE>\n"),
            "{backup}"
        );
        let set = std::fs::read_to_string(folder.path().join("windlass-credential-set.1")).unwrap();
        assert!(
            set.contains("windlass credential set [OPTIONS] \\-\\-key\\-file <FILE> <NAME>\n"),
            "{set}"
        );
        assert!(backup.contains(".SH \"EXAMPLES\""));
        let tsql = std::fs::read_to_string(folder.path().join("windlass-tsql.7")).unwrap();
        assert!(tsql.contains("COPY_ONLY") && tsql.contains("NORECOVERY"));
    }
}
