//! Profiles of Amazon's own programs: files with keys, by name.
//!
//! The keys of a profile that are in its files are read. One that leads elsewhere (`role_arn`, `sso_session`,
//! `credential_process`) has none.

use std::path::{Path, PathBuf};

/// The longest file.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// What a profile says.
#[derive(PartialEq, Eq)]
pub(super) struct Profile {
    pub(super) id: String,
    pub(super) secret: String,
    pub(super) token: Option<String>,
    pub(super) region: Option<String>,
}

/// The profile that `AWS_PROFILE` names, or `default`; `None` if it has no key.
pub(super) fn read(variable: &dyn Fn(&str) -> Option<String>) -> Option<Profile> {
    let filled = |name: &str| variable(name).filter(|value| !value.is_empty());
    let name = filled("AWS_PROFILE").unwrap_or_else(|| "default".to_owned());
    let path = |from: &str, file: &str| {
        let named = filled(from).map(PathBuf::from);
        named.or_else(|| Some(Path::new(&filled("HOME")?).join(".aws").join(file)))
    };
    let text = |path: Option<PathBuf>| path.and_then(|path| contents(&path)).unwrap_or_default();
    let keys = text(path("AWS_SHARED_CREDENTIALS_FILE", "credentials"));
    let config = text(path("AWS_CONFIG_FILE", "config"));
    let section = match name.as_str() {
        "default" => name.clone(),
        name => format!("profile {name}"),
    };
    let said = |word: &str| {
        let found = value(&keys, &name, word);
        found.or_else(|| value(&config, &section, word))
    };
    Some(Profile {
        id: said("aws_access_key_id")?,
        secret: said("aws_secret_access_key")?,
        token: said("aws_session_token"),
        region: said("region"),
    })
}

fn contents(path: &Path) -> Option<String> {
    let length = path.metadata().ok()?.len();
    (length <= FILE_BYTES_MAX)
        .then(|| std::fs::read_to_string(path).ok())
        .flatten()
}

/// The value of a word in a section: `[section]`, `word = value`.
fn value(text: &str, section: &str, word: &str) -> Option<String> {
    let mut is_in = false;
    for line in text.lines().map(str::trim) {
        if let Some(header) = line.strip_prefix('[') {
            let name = header.split(']').next().unwrap_or_default();
            is_in = name.split_whitespace().eq(section.split_whitespace());
        }
        let pair = line.split_once('=').filter(|_| is_in);
        let value = pair.filter(|(name, _)| name.trim().eq_ignore_ascii_case(word));
        if let Some((_, value)) = value.filter(|(_, value)| !value.trim().is_empty()) {
            return Some(value.trim().to_owned());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_has_its_keys_in_one_file_and_its_region_in_the_other() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join(".aws")).unwrap();
        let write =
            |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        write(
            ".aws/credentials",
            "# keys\n[default]\naws_access_key_id = a\naws_secret_access_key=b=c\n\
             [ night ]\naws_access_key_id=d\naws_secret_access_key=e\naws_session_token = f\n",
        );
        write(
            ".aws/config",
            "[default]\nregion = r-1\n[profile night]\nregion=r-2\n[profile role]\nrole_arn = x\n",
        );
        let home = folder.path().display().to_string();
        let profile = |name: &str| {
            let found = read(&|variable| match variable {
                "HOME" => Some(home.clone()),
                "AWS_PROFILE" => Some(name.to_owned()),
                _ => None,
            })?;
            Some((found.id, found.secret, found.token, found.region))
        };
        let texts = |id: &str, secret: &str, token: Option<&str>, region: &str| {
            let token = token.map(str::to_owned);
            Some((
                id.to_owned(),
                secret.to_owned(),
                token,
                Some(region.to_owned()),
            ))
        };
        assert_eq!(profile(""), texts("a", "b=c", None, "r-1"));
        assert_eq!(profile("night"), texts("d", "e", Some("f"), "r-2"));
        assert_eq!(profile("role"), None);
        assert_eq!(profile("none"), None);
        assert!(read(&|_| None).is_none());
    }
}
