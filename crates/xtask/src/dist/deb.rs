//! The package for Debian and what descends from it: an `ar` archive of two archives.

use std::fs;
use std::path::Path;

use super::archive::tar;
use super::build::{GLIBC, Target};
use super::tree::Tree;
use super::{Release, read};

/// Files that an administrator changes, and an upgrade keeps.
const CONFFILES: &str = "/etc/windlass/config.toml\n";

/// Scripts of the package, under the names that `dpkg` knows.
const SCRIPTS: [(&str, &str); 2] = [
    ("contrib/package/after-install.sh", "postinst"),
    ("contrib/package/before-removal.sh", "prerm"),
];

/// Writes `windlass_VERSION_ARCH.deb`.
pub(super) fn make(release: &Release, target: Target, tree: &Tree) -> Result<(), String> {
    let folder = tree.0.with_file_name("deb");
    let control = folder.join("control");
    fs::create_dir_all(&control).map_err(|error| format!("{}: {error}", control.display()))?;
    let write = |name: &str, text: &str| {
        let path = control.join(name);
        fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))
    };
    write("control", &description(release, target, tree)?)?;
    write("conffiles", CONFFILES)?;
    for (from, name) in SCRIPTS {
        write(name, &read(from)?)?;
        executable(&control.join(name))?;
    }
    let (meta, data) = (folder.join("control.tar.gz"), folder.join("data.tar.xz"));
    tar(release, &control, &meta, "gzip -9n", &["."])?;
    let xz = format!("xz -{} -T1", release.level(6));
    tar(release, &tree.0, &data, &xz, &["."])?;
    let bytes =
        |path: &Path| fs::read(path).map_err(|error| format!("{}: {error}", path.display()));
    let members = [
        ("debian-binary", b"2.0\n".to_vec()),
        ("control.tar.gz", bytes(&meta)?),
        ("data.tar.xz", bytes(&data)?),
    ];
    let name = format!("windlass_{}_{}.deb", release.version, target.debian());
    let path = release.out.join(name);
    fs::write(&path, ar(&members, release.epoch))
        .map_err(|error| format!("{}: {error}", path.display()))
}

fn executable(path: &Path) -> Result<(), String> {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))
        .map_err(|error| format!("{}: {error}", path.display()))
}

fn description(release: &Release, target: Target, tree: &Tree) -> Result<String, String> {
    let mut bytes = 0;
    for file in tree.files()? {
        let path = tree.0.join(&file);
        bytes += fs::metadata(&path)
            .map_err(|error| format!("{}: {error}", path.display()))?
            .len();
    }
    Ok(format!(
        "Package: windlass\n\
         Version: {}\n\
         Architecture: {}\n\
         Maintainer: the Windlass developers <windlass@example.org>\n\
         Installed-Size: {}\n\
         Depends: libc6 (>= {GLIBC})\n\
         Recommends: ca-certificates\n\
         Section: database\n\
         Priority: optional\n\
         Description: SQL Server's BACKUP and RESTORE for SQLite databases\n \
         Full, differential and log backups of databases in use, verified, compressed\n \
         and encrypted; restores to a moment; a reader for backups of SQL Server.\n",
        release.version,
        target.debian(),
        bytes.div_ceil(1024),
    ))
}

/// An `ar` archive: a line of 60 characters before each member, which begins at an even place.
fn ar(members: &[(&str, Vec<u8>)], epoch: u64) -> Vec<u8> {
    let mut archive = b"!<arch>\n".to_vec();
    for (name, content) in members {
        let head = format!(
            "{name:<16}{epoch:<12}{:<6}{:<6}{:<8}{:<10}`\n",
            0,
            0,
            100_644,
            content.len()
        );
        archive.extend(head.as_bytes());
        archive.extend(content);
        if content.len() % 2 == 1 {
            archive.push(b'\n');
        }
    }
    archive
}

#[cfg(test)]
mod tests {
    use super::ar;

    #[test]
    fn members_have_a_line_of_60_bytes_and_begin_at_even_places() {
        let archive = ar(&[("a", b"xyz".to_vec()), ("b", b"uv".to_vec())], 7);
        let (first, second) = (8, 8 + 60 + 4);
        assert_eq!(archive.len(), second + 60 + 2);
        assert_eq!(&archive[first + 58..first + 63], b"`\nxyz");
        assert_eq!(&archive[second..second + 2], b"b ");
        assert_eq!(&archive[second + 48..second + 60], b"2         `\n");
    }
}
