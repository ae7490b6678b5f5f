//! Prints the message table as a page of the documentation.

use std::fmt::Write as _;

use windlass_base::message::table;

const PAGE: &str = "docs/messages.md";

const HEAD: &str = "# Messages

Every numbered message, as `cargo xtask messages` prints it from the table in `crates/base`. Numbers
below 50,000 are SQL Server's, with its severity and wording; the others are ours. A severity of 11
or more means that the statement failed.

| number | severity | text |
|---|---|---|
";

/// Writes the page; with `check`, fails if the page is out of date.
pub(crate) fn write(check: bool) -> Result<(), String> {
    let mut page = HEAD.to_owned();
    let shared = [table::NOT_BUILT, table::UNSUPPORTED, table::NOTES];
    let mut entries: Vec<_> = table::ALL
        .iter()
        .chain(shared.into_iter().flatten())
        .collect();
    entries.sort_by_key(|entry| entry.number);
    for entry in entries {
        let text = entry.template.replace('|', "\\|").replace('<', "&lt;");
        writeln!(page, "| {} | {} | {text} |", entry.number, entry.severity)
            .map_err(|error| error.to_string())?;
    }
    crate::page::write(PAGE, &page, "messages", check)
}
