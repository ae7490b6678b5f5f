//! Which files a session may name. A remote one: those below mapped drives and listed folders, and objects below
//! listed URLs. A guest in somebody else's program: those that the program has not open.
//!
//! Neighbours: [`Drives`](crate::Drives) asks for each name that it resolves, so that no statement has a check
//! of its own; `sp_windlass_remote_folder` changes the list.
//!
//! Invariants:
//! 1. A path counts where it leads: links and `..` are followed first, and what cannot be followed is outside.
//! 2. The instance's own folder is outside, whatever is mapped: the hashes of passwords and the keys are in
//!    it. Only the folder of its databases is not, nor what is mapped or listed within it by name.
//! 3. No file that the program of a guest has open is opened for it: POSIX ends all locks of a process on a file when
//!    any of its descriptors of it is closed, those of the program's SQLite too.

use std::path::{Component, Path, PathBuf};

use windlass_catalog::Drive;
use windlass_io::FileIdentity;

/// What limits the files that a session may name.
#[derive(Debug, Clone)]
pub(crate) enum Limits {
    /// It is a remote one.
    Listed(Confinement),
    /// It is a guest in a program.
    NotOpen,
}

/// Whether this process has a file open.
pub(crate) fn is_open_here(path: &Path) -> bool {
    let Some(file) = FileIdentity::at(path) else {
        // It cannot be opened either.
        return false;
    };
    let Ok(open) = std::fs::read_dir("/proc/self/fd") else {
        return true;
    };
    open.flatten()
        .any(|entry| FileIdentity::at(&entry.path()) == Some(file))
}

/// The places besides the mapped drives.
#[derive(Debug, Clone, Default)]
pub(crate) struct Confinement {
    folders: Vec<PathBuf>,
    urls: Vec<String>,
    /// The instance's folder, and the folder of its databases.
    own: Option<(PathBuf, PathBuf)>,
}

impl Confinement {
    /// `listed` has folders and URLs; `own` is the folder of the instance.
    pub(crate) fn new(listed: Vec<String>, own: Option<&Path>, data: &str) -> Self {
        let (urls, folders): (Vec<_>, Vec<_>) =
            listed.into_iter().partition(|name| crate::is_url(name));
        Self {
            folders: folders.into_iter().map(PathBuf::from).collect(),
            urls,
            own: own.map(|own| (own.to_owned(), own.join(data))),
        }
    }

    /// Whether a path leads below one of the drives or folders.
    pub(crate) fn allows(&self, drives: &[Drive], path: &Path) -> bool {
        let Some(path) = resolved(path) else {
            return false;
        };
        let mapped = drives.iter().map(|drive| drive.folder.as_path());
        let mut folders = mapped.chain(self.folders.iter().map(PathBuf::as_path));
        match &self.own {
            Some((own, data)) if path.starts_with(own) => {
                path.starts_with(data)
                    || folders.any(|folder| {
                        leads_below(&path, folder)
                            && resolved(folder)
                                .is_some_and(|folder| folder.starts_with(own) && folder != *own)
                    })
            }
            _ => folders.any(|folder| leads_below(&path, folder)),
        }
    }

    /// Whether a URL is one of the listed ones, or below one.
    pub(crate) fn allows_url(&self, url: &str) -> bool {
        let climbs = url.split(['/', '\\']).any(|part| part == "..");
        self.urls.iter().any(|listed| {
            let rest = url.strip_prefix(listed.trim_end_matches('/'));
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        }) && !climbs
    }
}

fn leads_below(resolved_path: &Path, folder: &Path) -> bool {
    folder
        .canonicalize()
        .is_ok_and(|folder| resolved_path.starts_with(folder))
}

/// Where a path leads, whether or not its last parts exist; `None` if that cannot be told: it climbs through
/// what does not exist, or a link leads nowhere.
pub(crate) fn resolved(path: &Path) -> Option<PathBuf> {
    let absolute = std::path::absolute(path).ok()?;
    let existing = absolute.ancestors().find_map(|part| {
        let there = part.canonicalize().ok()?;
        let rest = absolute.strip_prefix(part).ok()?;
        Some((there, rest))
    });
    let (mut walked, rest) = existing?;
    for part in rest.components() {
        let Component::Normal(name) = part else {
            return None;
        };
        walked.push(name);
        // It could not be followed: a link to nothing, or into itself.
        if walked.is_symlink() {
            return None;
        }
    }
    Some(walked)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn confined(
        folder: &Path,
        listed: &[&str],
        own: Option<&Path>,
    ) -> impl Fn(&Path) -> bool + use<> {
        let drive = Drive {
            letter: 'D',
            folder: folder.to_owned(),
        };
        let listed = listed.iter().map(|&name| name.to_owned()).collect();
        let confinement = Confinement::new(listed, own, "data");
        move |path: &Path| confinement.allows(std::slice::from_ref(&drive), path)
    }

    #[test]
    fn a_path_is_inside_or_outside_by_where_it_leads() {
        let place = tempfile::tempdir().unwrap();
        let place = place.path().canonicalize().unwrap();
        for folder in ["d/sub", "other", "d-beside"] {
            std::fs::create_dir_all(place.join(folder)).unwrap();
        }
        std::fs::write(place.join("other/secret"), "").unwrap();
        symlink(place.join("other"), place.join("d/out")).unwrap();
        symlink(place.join("other/secret"), place.join("d/file")).unwrap();
        symlink(place.join("other/new"), place.join("d/dangling")).unwrap();
        symlink(place.join("d/loop"), place.join("d/loop")).unwrap();
        symlink(place.join("d/sub"), place.join("into")).unwrap();
        let allows = confined(&place.join("d"), &[], None);
        for inside in [
            "d",
            "d/a.bak",
            "d/sub/x/y.bak",
            "d/sub/../a.bak",
            "into/a.bak",
        ] {
            assert!(allows(&place.join(inside)), "{inside}");
        }
        for outside in [
            "other/secret",
            "d-beside/a.bak",
            "d/../other/a.bak",
            "d/sub/../../other/a.bak",
            "d/out/a.bak",
            "d/out/secret",
            "d/file",
            "d/dangling",
            "d/loop",
            "d/nosuch/../../other/a.bak",
            "into/../../other/secret",
            "",
        ] {
            assert!(!allows(&place.join(outside)), "{outside}");
        }
        assert!(!allows(Path::new("a.bak")), "the program's own folder");
        assert!(!allows(Path::new("/etc/passwd")));
    }

    #[test]
    fn the_instance_is_outside_but_for_its_databases_and_what_is_listed_within() {
        let place = tempfile::tempdir().unwrap();
        let place = place.path().canonicalize().unwrap();
        let own = place.join("instance");
        std::fs::create_dir_all(own.join("backups")).unwrap();
        let allows = confined(&place, &[], Some(&own));
        assert!(allows(&place.join("a.bak")));
        assert!(allows(&own.join("data/x.mdf")));
        for outside in [
            "",
            "windlass.catalog",
            "service.key",
            "backups/a.bak",
            "data/../x",
        ] {
            assert!(!allows(&own.join(outside)), "{outside}");
        }
        let backups = own.join("backups").display().to_string();
        let allows = confined(&place, &[&backups], Some(&own));
        assert!(allows(&own.join("backups/a.bak")));
        assert!(!allows(&own.join("service.key")));
        let itself = own.display().to_string();
        let allows = confined(&own, &[&itself], Some(&own));
        assert!(!allows(&own.join("service.key")), "mapped as a whole");
    }

    #[test]
    fn an_open_file_is_known_by_any_of_its_names() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("a.db");
        let (link, name) = (place.path().join("link"), place.path().join("name"));
        let open = std::fs::File::create(&path).unwrap();
        symlink(&path, &link).unwrap();
        std::fs::hard_link(&path, &name).unwrap();
        for path in [&path, &link, &name] {
            assert!(is_open_here(path), "{}", path.display());
        }
        drop(open);
        for path in [&path, &link, &name, &place.path().join("nosuch")] {
            assert!(!is_open_here(path), "{}", path.display());
        }
    }

    #[test]
    fn a_url_is_below_a_listed_one_part_by_part() {
        let listed = vec!["s3://host/bucket/nightly/".to_owned()];
        let confinement = Confinement::new(listed, None, "data");
        assert!(confinement.allows_url("s3://host/bucket/nightly/a.bak"));
        for outside in [
            "s3://host/bucket/nightly-other/a.bak",
            "s3://host/bucket/nightly/../a.bak",
            "s3://host/bucket/a.bak",
            "s3://169.254.169.254/bucket/nightly/a.bak",
        ] {
            assert!(!confinement.allows_url(outside), "{outside}");
        }
    }
}
