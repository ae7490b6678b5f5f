//! What is wrong with a file of settings, and where: in plain words, not in those of the parser.

use windlass_base::similar::nearest;

use super::KEYS;

/// How what the parser says begins, and what is said instead.
const WORDS: &[(&str, &str)] = &[
    ("duplicate key", "this setting was given before"),
    ("invalid basic string", NO_QUOTE),
    ("invalid boolean", "the value must be true or false"),
    ("invalid literal string", NO_QUOTE),
    (
        "key with no value",
        "a setting is written NAME = VALUE, and here is no equals sign",
    ),
    ("missing escaped value", ESCAPE),
    (
        "string values must be quoted",
        "the value must be true, false, or a text in quotation marks",
    ),
    ("too few unicode value digits", ESCAPE),
    (
        "unclosed array",
        "the bracket ] at the end of the list is missing",
    ),
    ("unclosed table", "the bracket ] behind the name is missing"),
    (
        "unquoted keys cannot be empty",
        "a setting is written NAME = VALUE, and here is no name",
    ),
];

const ESCAPE: &str =
    "in quotation marks, a backslash is written twice; or put the text in apostrophes";

const NO_QUOTE: &str = "the quotation mark at the end of the text is missing";

/// What the parser calls what it expects, and what that is in a file.
const EXPECTED: &[(&str, &str)] = &[
    ("a boolean", "true or false, without quotation marks"),
    ("a map", "a table: [drives], and below it d = \"/srv/d\""),
    ("a sequence", "a list, such as [\"/srv/a\", \"/srv/b\"]"),
    ("a string", "a text in quotation marks"),
    ("path string", "a text in quotation marks"),
];

/// What is wrong with a file, and where, in one line.
pub(super) fn fault(path: &str, text: &str, error: &toml::de::Error) -> String {
    let reason = in_plain_words(error.message());
    let Some(before) = error.span().and_then(|span| text.get(..span.start)) else {
        return format!("{path}: {reason}");
    };
    let line = before.matches('\n').count() + 1;
    let begun = before.rsplit('\n').next().unwrap_or_default();
    let column = begun.chars().count() + 1;
    format!("{path}, line {line}, column {column}: {reason}")
}

fn in_plain_words(message: &str) -> String {
    let (found, expected) = message.split_once(", expected ").unwrap_or((message, ""));
    let quoted = found.split('`').nth(1).unwrap_or_default();
    if found.starts_with("unknown field") {
        let meant = nearest(quoted, KEYS.iter().map(|(key, _)| *key));
        let meant = meant.map_or_else(String::new, |key| format!(" (is '{key}' meant?)"));
        return format!(
            "there is no setting '{quoted}'{meant}; windlass config --effective shows all"
        );
    }
    if found.starts_with("unknown variant") {
        return format!("'{quoted}' must be {}", expected.replace('`', ""));
    }
    if found.starts_with("invalid type") {
        let known = EXPECTED.iter().find(|(known, _)| *known == expected);
        let expected = known.map_or(expected, |(_, words)| *words);
        return format!("the value must be {expected}");
    }
    let known = WORDS.iter().find(|(known, _)| found.starts_with(*known));
    match known {
        Some((_, words)) => (*words).to_owned(),
        None => message.replace('\n', ", ").replace('`', "'"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Written;
    use super::*;

    fn told(text: &str) -> String {
        let error = toml::from_str::<Written>(text).expect_err("a fault");
        fault("x.toml", text, &error)
    }

    #[test]
    fn faults_are_told_with_their_place_and_without_words_of_the_parser() {
        for (text, expected) in [
            (
                "json = true\ninstnace = 'x'",
                "line 2, column 1: there is no setting 'instnace' (is 'instance' meant?)",
            ),
            (
                "instance = 1",
                "the value must be a text in quotation marks",
            ),
            ("json = 'yes'", "the value must be true or false, without"),
            ("json = True", "the value must be true or false"),
            ("instance = x", "the value must be true, false, or a text"),
            ("instance 'x'", "here is no equals sign"),
            ("instance = \"x\n", "the quotation mark at the end"),
            (
                "json = true\njson = true",
                "line 2, column 1: this setting was given",
            ),
            ("log_format = 'xml'", "'xml' must be text or json"),
            (
                "log_level = 'loud'",
                "'loud' must be one of error, warn, info, debug",
            ),
            ("restore_folders = 'x'", "the value must be a list, such as"),
            ("drives = 'x'", "the value must be a table"),
            (
                "[drives\nd = 'x'",
                "the bracket ] behind the name is missing",
            ),
            ("instance = \"C:\\Users\"", "a backslash is written twice"),
            ("= 5", "here is no name"),
        ] {
            let told = told(text);
            assert!(told.starts_with("x.toml, line "), "{text}: {told}");
            assert!(told.contains(expected), "{text}: {told}");
            assert!(!told.contains('`'), "{text}: {told}");
        }
    }
}
