//! What stays whatever the rules say: backups that wait to be copied, and those of damaged databases.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use windlass_catalog::QueuedCopy;
use windlass_io::FileIdentity;

use crate::damage::Damages;
use crate::retention::{Decision, FoundMedia};

/// What waits to be copied elsewhere exists here only.
pub(super) fn keep_waiting(
    media: &[FoundMedia],
    decisions: &mut [Decision],
    waiting: &[QueuedCopy],
) {
    let waiting: Vec<(Identity, &QueuedCopy)> = waiting
        .iter()
        .map(|copy| (Identity::of(&copy.source), copy))
        .collect();
    if waiting.is_empty() {
        return;
    }
    let going = media
        .iter()
        .zip(decisions)
        .filter(|(_, decision)| decision.goes);
    for (media, decision) in going {
        let files = media.files.iter().filter_map(|file| file.device.file());
        let own: Vec<Identity> = files.map(Identity::of).collect();
        let is_of =
            |(source, _): &&(Identity, &QueuedCopy)| own.iter().any(|own| own.is_same(source));
        if let Some((_, copy)) = waiting.iter().find(is_of) {
            decision.keep(format!(
                "it waits to be copied to '{}'",
                copy.target.display()
            ));
        }
    }
}

/// What a file is. Its name says little: the folder may be named relatively, through a link, or with `..`.
struct Identity {
    /// As it was named.
    name: PathBuf,
    /// The same without links.
    path: Option<PathBuf>,
    file: Option<FileIdentity>,
}

impl Identity {
    fn of(name: &Path) -> Self {
        Self {
            name: name.to_owned(),
            path: name.canonicalize().ok(),
            file: FileIdentity::at(name),
        }
    }

    /// Whether both are one file. Either sign will do: a share may have other numbers on each of its mounts.
    fn is_same(&self, other: &Self) -> bool {
        self.name == other.name
            || self.path.is_some() && self.path == other.path
            || self.file.is_some() && self.file == other.file
    }
}

/// Of a damaged database, nobody knows since when it is, and so which of its backups are intact: all stay. Adds the
/// databases that would lose one, by their paths.
pub(super) fn keep_ill(
    media: &[FoundMedia],
    decisions: &mut [Decision],
    damages: &Damages,
    ill: &mut BTreeSet<String>,
) {
    let going = media
        .iter()
        .zip(decisions)
        .filter(|(_, decision)| decision.goes);
    for (media, decision) in going {
        let mut known = media.sets.iter().filter_map(|set| damages.at(&set.of.path));
        if let Some(known) = known.next() {
            ill.insert(known.path.clone());
            decision
                .keep("its database is damaged: which backups are intact is not known".to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_file_is_the_same_by_all_its_names() {
        let place = tempfile::tempdir().expect("a folder");
        let at = |name: &str| place.path().join(name);
        fs::create_dir(at("a")).expect("a folder");
        for name in ["a/1", "a/2"] {
            fs::write(at(name), "1").expect("a file");
        }
        symlink("a", at("link")).expect("a link");
        symlink("a/1", at("1")).expect("a link");
        fs::hard_link(at("a/1"), at("other")).expect("a link");
        let first = Identity::of(&at("a/1"));
        for name in ["a/1", "link/1", "a/../a/1", "1", "other"] {
            let found = Identity::of(&at(name));
            assert!(first.is_same(&found) && found.is_same(&first), "{name}");
        }
        for name in ["a/2", "link/2", "a/3"] {
            assert!(!first.is_same(&Identity::of(&at(name))), "{name}");
        }
        // Of files that are not there, only the names are known.
        let missing = Identity::of(&at("a/3"));
        assert!(missing.is_same(&Identity::of(&at("a/3"))));
        assert!(!missing.is_same(&Identity::of(&at("a/4"))));
    }
}
