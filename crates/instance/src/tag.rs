//! Name tags in paths, such as `<DATABASE>` and `<DATETIME yyyymmdd>`, as in SQL Backup.
//!
//! The device list and `MOVE` expand the tags in their names. A tag's value is a single part of a file
//! name, so a database's name cannot lead to another folder.

use windlass_base::{Guid, Moment};

/// The pattern of a plain `<DATETIME>`, and of the date in `<AUTO>`.
const DEFAULT_PATTERN: &str = "yyyymmdd_hhnnss";

/// The values of tags for one statement. Created once, so that all stripes get the same time.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tags {
    /// `<SERVER>`: the machine.
    pub(crate) server: String,
    /// `<INSTANCE>`: the name of the instance's directory.
    pub(crate) instance: Option<String>,
    /// `<DATABASE>`, if the statement names one.
    pub(crate) database: Option<String>,
    /// `<TYPE>`: `FULL`, `DIFF` or `LOG`, in a backup.
    pub(crate) kind: Option<&'static str>,
    /// `<DATETIME>`, in a backup.
    pub(crate) moment: Option<Moment>,
    /// `<UTC>`: the same as `20261125T170509Z`.
    pub(crate) utc: Option<String>,
    /// `<GUID>`: one that each backup has for itself.
    pub(crate) guid: Option<Guid>,
}

/// Why a path with tags is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TagError {
    #[error(
        "<{0}> is not a tag; there are <AUTO>, <SERVER>, <INSTANCE>, <DATABASE>, <TYPE>, <DATETIME yyyymmdd_hhnnss>, <UTC> and <GUID>"
    )]
    Unknown(String),
    #[error("<{0}> has no value in this statement")]
    NoValue(&'static str),
    #[error(
        "'{0}' in <DATETIME> is not part of a date; there are yyyy, yy, mm, dd, hh, nn (minutes) and ss"
    )]
    Pattern(String),
}

/// Whether a path contains a tag.
pub(crate) fn has_tag(path: &str) -> bool {
    next_tag(path).is_some()
}

/// The folder in which the first tag is, as written; empty if that is not written.
pub(crate) fn folder_before_tags(path: &str) -> Option<&str> {
    let (before, ..) = next_tag(path)?;
    Some(before.rfind(['/', '\\']).map_or("", |at| &before[..=at]))
}

/// Splits a text into the part before the first tag, the content of the tag, and the rest.
fn next_tag(path: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = path.split_once('<')?;
    let (inside, after) = rest.split_once('>')?;
    let is_name = inside.starts_with(|first: char| first.is_ascii_alphabetic());
    is_name.then_some((before, inside, after))
}

impl Tags {
    pub(crate) fn expand(&self, path: &str) -> Result<String, TagError> {
        let mut expanded = String::with_capacity(path.len());
        let mut rest = path;
        while let Some((before, inside, after)) = next_tag(rest) {
            expanded.push_str(before);
            expanded.push_str(&safe(&self.value(inside)?));
            rest = after;
        }
        expanded.push_str(rest);
        Ok(expanded)
    }

    fn value(&self, tag: &str) -> Result<String, TagError> {
        let (name, pattern) = match tag.split_once(char::is_whitespace) {
            Some((name, pattern)) => (name, pattern.trim()),
            None => (tag, ""),
        };
        let name = name.to_ascii_uppercase();
        if !pattern.is_empty() && name != "DATETIME" {
            return Err(TagError::Unknown(tag.to_owned()));
        }
        let kind = || self.kind.ok_or(TagError::NoValue("TYPE"));
        let database = || {
            self.database
                .as_deref()
                .ok_or(TagError::NoValue("DATABASE"))
        };
        let moment = || self.moment.ok_or(TagError::NoValue("DATETIME"));
        Ok(match name.as_str() {
            "SERVER" => self.server.clone(),
            "INSTANCE" => self
                .instance
                .clone()
                .unwrap_or_else(|| "default".to_owned()),
            "DATABASE" => database()?.to_owned(),
            "TYPE" => kind()?.to_owned(),
            "DATETIME" if pattern.is_empty() => by_pattern(moment()?, DEFAULT_PATTERN)?,
            "DATETIME" => by_pattern(moment()?, pattern)?,
            "UTC" => self.utc.clone().ok_or(TagError::NoValue("UTC"))?,
            "GUID" => {
                let guid = self.guid.ok_or(TagError::NoValue("GUID"))?;
                guid.to_string().replace('-', "")
            }
            "AUTO" => {
                let server = match &self.instance {
                    Some(instance) => format!("{}_{instance}", self.server),
                    None => self.server.clone(),
                };
                let date = by_pattern(moment()?, DEFAULT_PATTERN)?;
                format!("{}_{server}_{}_{date}", kind()?, database()?)
            }
            _ => return Err(TagError::Unknown(tag.to_owned())),
        })
    }
}

/// Makes a value safe as part of a file name: replaces folder separators and characters special to a
/// Windows shell.
pub(crate) fn safe(value: &str) -> String {
    let clean: String = value
        .chars()
        .map(|character| match character {
            '/' | '\\' | ':' | '*' | '?' | '"' | '<' | '>' | '|' => '_',
            control if control.is_control() => '_',
            other => other,
        })
        .collect();
    match clean.as_str() {
        "." | ".." => clean.replace('.', "_"),
        _ => clean,
    }
}

fn by_pattern(moment: Moment, pattern: &str) -> Result<String, TagError> {
    let at = moment.to_civil();
    let mut text = String::new();
    let lower = pattern.to_ascii_lowercase();
    let mut rest = lower.as_str();
    while let Some(first) = rest.chars().next() {
        if !first.is_alphabetic() {
            text.push(first);
            rest = &rest[first.len_utf8()..];
            continue;
        }
        let length = rest.find(|other| other != first).unwrap_or(rest.len());
        let (part, after) = rest.split_at(length);
        let value = match part {
            "yyyy" => format!("{:04}", at.year()),
            "yy" => format!("{:02}", at.year().rem_euclid(100)),
            "mm" => format!("{:02}", at.month()),
            "dd" => format!("{:02}", at.day()),
            "hh" => format!("{:02}", at.hour()),
            "nn" => format!("{:02}", at.minute()),
            "ss" => format!("{:02}", at.second()),
            other => return Err(TagError::Pattern(other.to_owned())),
        };
        text.push_str(&value);
        rest = after;
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tags() -> Tags {
        Tags {
            server: "host".to_owned(),
            instance: Some("main".to_owned()),
            database: Some("app".to_owned()),
            kind: Some("FULL"),
            moment: Some("2026-11-21 17:05:09".parse().unwrap()),
            utc: Some("20261121T160509Z".to_owned()),
            guid: Some(Guid::NIL),
        }
    }

    #[test]
    fn tags_become_what_they_stand_for_in_any_case() {
        for (path, expanded) in [
            ("/b/<DATABASE>/<type>.bak", "/b/app/FULL.bak"),
            ("<SERVER>-<INSTANCE>", "host-main"),
            ("<DATETIME yyyy-mm-dd hhnnss>", "2026-11-21 170509"),
            ("<DATETIME>", "20261121_170509"),
            ("<DATETIME yymmdd>x", "261121x"),
            ("<AUTO>.bak", "FULL_host_main_app_20261121_170509.bak"),
            (
                "<UTC>-<guid>",
                "20261121T160509Z-00000000000000000000000000000000",
            ),
            ("no tag at all", "no tag at all"),
            ("a < b > c", "a < b > c"),
        ] {
            assert_eq!(tags().expand(path).unwrap(), expanded, "{path}");
        }
        assert!(has_tag("x<AUTO>"));
        assert!(!has_tag("a < b > c"));
    }

    #[test]
    fn what_is_no_tag_is_refused() {
        assert_eq!(
            tags().expand("<WEEK>"),
            Err(TagError::Unknown("WEEK".to_owned()))
        );
        assert!(tags().expand("<SERVER x>").is_err());
        assert_eq!(
            tags().expand("<DATETIME qq>"),
            Err(TagError::Pattern("qq".to_owned()))
        );
        let header = Tags {
            server: "host".to_owned(),
            ..Tags::default()
        };
        assert_eq!(header.expand("<AUTO>"), Err(TagError::NoValue("DATETIME")));
        assert_eq!(
            header.expand("<DATABASE>"),
            Err(TagError::NoValue("DATABASE"))
        );
    }

    #[test]
    fn a_databases_name_cannot_leave_the_folder() {
        let mut tags = tags();
        for (name, expanded) in [
            ("../../etc", ".._.._etc"),
            ("..", "__"),
            ("a\\b:c", "a_b_c"),
            ("a\nb", "a_b"),
        ] {
            tags.database = Some(name.to_owned());
            assert_eq!(
                tags.expand("/b/<DATABASE>").unwrap(),
                format!("/b/{expanded}")
            );
        }
    }
}
