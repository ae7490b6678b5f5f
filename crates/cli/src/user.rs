//! Where the files of a user are. A variable that is empty or relative names no place: a file in the current folder could be
//! anybody's, and settings name commands to run.
//!
//! Source: XDG Base Directory Specification.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// `$XDG_CONFIG_HOME`, else `~/.config`.
pub(crate) fn settings_folder() -> Option<PathBuf> {
    folder("XDG_CONFIG_HOME", ".config", |name| std::env::var_os(name))
}

/// `$XDG_STATE_HOME`, else `~/.local/state`.
pub(crate) fn state_folder() -> Option<PathBuf> {
    folder("XDG_STATE_HOME", ".local/state", |name| {
        std::env::var_os(name)
    })
}

fn folder(
    variable: &str,
    below_home: &str,
    value: impl Fn(&str) -> Option<OsString>,
) -> Option<PathBuf> {
    let place = |name: &str| {
        let path = PathBuf::from(value(name)?);
        path.is_absolute().then_some(path)
    };
    place(variable).or_else(|| Some(place("HOME")?.join(Path::new(below_home))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_place_is_below_the_current_folder() {
        let found = |given: Option<&str>, home: Option<&str>| {
            let value = |name: &str| {
                let value = if name == "HOME" { home } else { given };
                value.map(OsString::from)
            };
            folder("XDG", ".config", value)
        };
        let home = Some(PathBuf::from("/home/a/.config"));
        assert_eq!(found(Some("/x"), Some("/home/a")), Some("/x".into()));
        for given in [None, Some(""), Some("x")] {
            assert_eq!(found(given, Some("/home/a")), home);
            for relative in [None, Some(""), Some("a"), Some(".")] {
                assert_eq!(found(given, relative), None);
            }
        }
    }
}
