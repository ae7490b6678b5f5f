//! Prints the option table of T-SQL as a page of the documentation.

use std::fmt::Write as _;

use windlass_tsql::option::{BACKUP, DefinedBy, OptionRow, RESTORE, StatementKind, Support};

const PAGE: &str = "docs/tsql-options.md";

const HEAD: &str = "# Options of BACKUP and RESTORE

Every option that parses, as `cargo xtask options` prints it from the table in `crates/tsql`. As on SQL Server, an
option parses in every statement of its verb; in a statement that does not have it, it is refused with message 3032.
An option with \"refused\" is refused with a message that says the same. *Windlass* marks options that SQL Server
does not have; their values are described in [tsql.md](tsql.md).
";

/// Writes the page; with `check`, fails if the page is out of date.
pub(crate) fn write(check: bool) -> Result<(), String> {
    let mut page = HEAD.to_owned();
    for (verb, rows) in [("BACKUP", BACKUP), ("RESTORE", RESTORE)] {
        write!(
            page,
            "\n## {verb}\n\n| option | statements | not with | effect |\n|---|---|---|---|\n"
        )
        .map_err(|error| error.to_string())?;
        for row in rows {
            page.push_str(&line(row));
        }
    }
    crate::page::write(PAGE, &page, "options", check)
}

fn line(row: &OptionRow) -> String {
    let ours = match row.defined_by {
        DefinedBy::SqlServer => "",
        DefinedBy::Windlass => " *Windlass*",
    };
    let statements: Vec<&str> = row.applies_to.iter().copied().map(short).collect();
    let conflicts: Vec<&str> = row.conflicts.iter().map(|word| word.spelling()).collect();
    let support = match row.support {
        Support::Acts => String::new(),
        Support::NoEffect => " **No effect.**".to_owned(),
        Support::Never(because) => format!(" **Refused:** {because}"),
    };
    let range = row.range.map_or_else(String::new, |range| {
        format!(" {} to {}.", range.least, range.most)
    });
    let synopsis = row.synopsis().replace('|', "\\|");
    format!(
        "| `{synopsis}`{ours} | {} | {} | {}{range}{support} |\n",
        statements.join(", "),
        conflicts.join(", "),
        row.doc
    )
}

/// A statement without its verb.
fn short(statement: StatementKind) -> &'static str {
    match statement {
        StatementKind::BackupDatabase | StatementKind::RestoreDatabase => "DATABASE",
        StatementKind::BackupLog | StatementKind::RestoreLog => "LOG",
        StatementKind::BackupGroup => "GROUP",
        StatementKind::BackupServer => "SERVER",
        StatementKind::HeaderOnly => "HEADERONLY",
        StatementKind::FileListOnly => "FILELISTONLY",
        StatementKind::LabelOnly => "LABELONLY",
        StatementKind::VerifyOnly => "VERIFYONLY",
        StatementKind::RewindOnly => "REWINDONLY",
    }
}
