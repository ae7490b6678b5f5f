//! Refuses names that would be taken for files of odd names: URLs and names of Windows where only files are understood, and
//! `-`.

use clap::ArgMatches;
use windlass_base::Message;
use windlass_base::message::table;
use windlass_instance::{is_of_windows, is_url, shown};

/// The arguments that name media, of the commands that reach object storage.
pub(crate) const TAKE_URLS: &[(&str, &[&str])] = &[
    ("backup", &["base", "mirror", "to"]),
    ("check", &["media"]),
    ("doctor", &["store", "uploads"]),
    ("drill", &["from"]),
    ("expire", &["folders", "gone"]),
    ("extract", &["files"]),
    ("files", &["media"]),
    ("fleet", &["folder"]),
    ("header", &["media"]),
    ("inspect", &["file"]),
    ("label", &["media"]),
    ("rekey", &["media"]),
    ("repack", &["files", "mirror", "to"]),
    ("restore", &["media"]),
    ("ship", &["media"]),
    ("sql", &["on"]),
    ("unpack", &["media"]),
    ("verify", &["media"]),
];

/// Arguments whose text is for people, for the instance, or a command of its own.
const TEXTS: &[&str] = &[
    "description",
    "media_description",
    "media_name",
    "name",
    "query",
];

/// The arguments among these whose names are resolved as those of T-SQL are, with drives.
const TAKE_DRIVES: &[(&str, &[&str])] = &[
    ("backup", &["mirror", "to"]),
    ("check", &["media"]),
    ("compression", &["to"]),
    ("devices", &["to"]),
    ("drill", &["from"]),
    ("expire", &["folders", "gone"]),
    ("extract", &["files"]),
    ("files", &["media"]),
    ("header", &["media"]),
    ("inspect", &["file"]),
    ("label", &["media"]),
    ("rekey", &["media"]),
    ("repack", &["files", "mirror", "to"]),
    ("restore", &["media", "to"]),
    ("ship", &["media", "to"]),
    ("sql", &["on"]),
    ("stages", &["to"]),
    ("tune", &["to"]),
    ("unpack", &["media", "to"]),
    ("verify", &["media"]),
];

/// Arguments that read standard input.
const TAKE_DASHES: &[&str] = &["file", "key_file", "input"];

/// Why a name on the command line would be taken for another thing than it says.
pub(crate) fn misplaced(matches: &ArgMatches) -> Option<Message> {
    let (command, arguments) = matches.subcommand()?;
    let names = arguments.ids().map(clap::Id::as_str);
    let mut names = names.filter(|name| !TEXTS.contains(name));
    let here = names.find_map(|name| {
        // Groups have names too, but no values.
        let mut values = arguments.try_get_raw(name).ok()??;
        values.find_map(|value| refusal(command, name, &value.to_string_lossy()))
    });
    here.or_else(|| misplaced(arguments))
}

fn refusal(command: &str, argument: &str, value: &str) -> Option<Message> {
    let takes = |table: &[(&str, &[&str])]| {
        let known = table.iter().find(|(known, _)| *known == command);
        known.is_some_and(|(_, taken)| taken.contains(&argument))
    };
    if is_url(value) && !takes(TAKE_URLS) {
        return Some(table::url_instead_of_file(shown(value)));
    }
    if is_of_windows(value) && !takes(TAKE_DRIVES) {
        return Some(table::name_of_windows(value));
    }
    (value == "-" && takes(TAKE_URLS) && !TAKE_DASHES.contains(&argument))
        .then(table::dash_is_no_file)
}
