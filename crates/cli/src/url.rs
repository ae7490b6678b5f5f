//! Refuses URLs where only files are understood: they would be taken for files of odd names.

use clap::ArgMatches;
use windlass_instance::is_url;

/// The arguments that name media, of the commands that reach object storage.
const TAKE_URLS: &[(&str, &[&str])] = &[
    ("backup", &["base", "mirror", "to"]),
    ("check", &["media"]),
    ("doctor", &["uploads"]),
    ("expire", &["folders"]),
    ("files", &["media"]),
    ("fleet", &["folder"]),
    ("header", &["media"]),
    ("label", &["media"]),
    ("restore", &["media"]),
    ("ship", &["media"]),
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

/// The first URL where none is understood.
pub(crate) fn misplaced(matches: &ArgMatches) -> Option<String> {
    let (command, arguments) = matches.subcommand()?;
    let taken = TAKE_URLS.iter().find(|(known, _)| *known == command);
    let taken = taken.map_or(&[][..], |(_, taken)| taken);
    let names = arguments.ids().map(clap::Id::as_str);
    let mut names = names.filter(|name| !taken.contains(name) && !TEXTS.contains(name));
    let here = names.find_map(|name| {
        // Groups have names too, but no values.
        let mut values = arguments.try_get_raw(name).ok()??;
        let value = values.find(|value| is_url(&value.to_string_lossy()))?;
        Some(value.to_string_lossy().into_owned())
    });
    here.or_else(|| misplaced(arguments))
}
