//! What the files of settings ask for where the command line is wrong, so that nothing else of them counts.

use std::ffi::OsString;
use std::path::PathBuf;

use super::Settings;

/// Whether the files ask for JSON, where the command line is wrong. What is wrong with a file is told when it is used.
pub(crate) fn ask_for_json(written: &[OsString]) -> bool {
    let of_environment = || std::env::var_os("WINDLASS_CONFIG").filter(|path| !path.is_empty());
    let config = config_in(written).or_else(|| of_environment().map(PathBuf::from));
    let mut settings = Settings::unset();
    settings.read_all(config.as_deref()).is_ok() && settings.json.value
}

/// The file that the command line names.
fn config_in(written: &[OsString]) -> Option<PathBuf> {
    let mut words = written.iter();
    while let Some(word) = words.next() {
        if word == "--config" {
            return words.next().map(PathBuf::from);
        }
        let named = word
            .to_str()
            .and_then(|word| word.strip_prefix("--config="));
        if let Some(path) = named {
            return Some(PathBuf::from(path));
        }
    }
    None
}
