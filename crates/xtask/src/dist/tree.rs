//! The files of an installation, with their places and modes: every kind of package is made from this one tree.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::Release;
use super::build::Built;
use crate::run::output;

/// The folder of the tree, laid out as `/`.
pub(crate) struct Tree(pub(crate) PathBuf);

/// Files of the repository, and their places.
const FILES: [(&str, &str); 15] = [
    ("contrib/config.toml", "etc/windlass/config.toml"),
    (
        "contrib/windlass-backup.service",
        "usr/lib/systemd/system/windlass-backup.service",
    ),
    (
        "contrib/windlass-backup.timer",
        "usr/lib/systemd/system/windlass-backup.timer",
    ),
    (
        "contrib/windlass-copies.service",
        "usr/lib/systemd/system/windlass-copies.service",
    ),
    (
        "contrib/windlass-copies.timer",
        "usr/lib/systemd/system/windlass-copies.timer",
    ),
    (
        "contrib/package/sysusers.conf",
        "usr/lib/sysusers.d/windlass.conf",
    ),
    ("README.md", "usr/share/doc/windlass/README.md"),
    ("ARCHITECTURE.md", "usr/share/doc/windlass/ARCHITECTURE.md"),
    ("CHANGELOG.md", "usr/share/doc/windlass/CHANGELOG.md"),
    ("CONTRIBUTING.md", "usr/share/doc/windlass/CONTRIBUTING.md"),
    ("SECURITY.md", "usr/share/doc/windlass/SECURITY.md"),
    ("LICENSE-MIT", "usr/share/doc/windlass/LICENSE-MIT"),
    ("LICENSE-APACHE", "usr/share/doc/windlass/LICENSE-APACHE"),
    ("THIRD-PARTY.md", "usr/share/doc/windlass/THIRD-PARTY.md"),
    (
        "contrib/package/copyright",
        "usr/share/doc/windlass/copyright",
    ),
];

/// Each shell, and where it looks for completions.
const COMPLETIONS: [(&str, &str); 4] = [
    ("bash", "usr/share/bash-completion/completions/windlass"),
    ("zsh", "usr/share/zsh/site-functions/_windlass"),
    // Debian's zsh looks here.
    ("zsh", "usr/share/zsh/vendor-completions/_windlass"),
    ("fish", "usr/share/fish/vendor_completions.d/windlass.fish"),
];

pub(super) const EXTENSION: &str = "usr/lib/windlass/libwindlass.so";
pub(super) const PROGRAM: &str = "usr/bin/windlass";
pub(super) const LICENCES: &str = "usr/share/doc/windlass/THIRD-PARTY-LICENSES.txt";

/// Lays out the tree; `printer` is a program that can run here.
pub(super) fn make(release: &Release, built: &Built, printer: &Path) -> Result<Tree, String> {
    let folder = built.program.with_file_name("tree");
    let tree = Tree(folder);
    for (from, to) in FILES {
        tree.add(Path::new(from), to, 0o644)?;
    }
    for page in output(Command::new("find").args(["docs", "-type", "f"]))?.lines() {
        tree.add(
            Path::new(page),
            &format!("usr/share/doc/windlass/{page}"),
            0o644,
        )?;
    }
    tree.add(&built.program, PROGRAM, 0o755)?;
    tree.add(&built.extension, EXTENSION, 0o644)?;
    // The tests' programs are linked by the system's own linker.
    let licences = crate::supply::notices::texts(!release.is_rehearsal)?;
    tree.write(LICENCES, licences.as_bytes())?;
    for (shell, to) in COMPLETIONS {
        let script = output(Command::new(printer).args(["completions", shell]))?;
        tree.write(to, script.as_bytes())?;
    }
    let man = tree.place("usr/share/man/man1")?;
    fs::create_dir_all(&man).map_err(|error| format!("{}: {error}", man.display()))?;
    output(Command::new(printer).arg("man").arg(&man))?;
    tree.settle(release)?;
    Ok(tree)
}

impl Tree {
    fn place(&self, to: &str) -> Result<PathBuf, String> {
        let path = self.0.join(to);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(|error| format!("{}: {error}", parent.display()))?;
        }
        Ok(path)
    }

    fn add(&self, from: &Path, to: &str, mode: u32) -> Result<(), String> {
        let place = self.place(to)?;
        fs::copy(from, &place)
            .and_then(|_| fs::set_permissions(&place, fs::Permissions::from_mode(mode)))
            .map_err(|error| format!("{} to {}: {error}", from.display(), place.display()))
    }

    fn write(&self, to: &str, bytes: &[u8]) -> Result<(), String> {
        let place = self.place(to)?;
        fs::write(&place, bytes).map_err(|error| format!("{}: {error}", place.display()))
    }

    /// Compresses the manual pages, each in the folder of its section, and gives everything the same time and its mode,
    /// whatever the umask.
    fn settle(&self, release: &Release) -> Result<(), String> {
        let man = self.0.join("usr/share/man");
        let script = "mkdir -p \"$1\"/man5 \"$1\"/man7 \
            && mv \"$1\"/man1/*.5 \"$1\"/man5 && mv \"$1\"/man1/*.7 \"$1\"/man7 \
            && gzip -9n \"$1\"/man?/*.[157] && find \"$2\" -type d -exec chmod 755 {} + \
            && find \"$2\" -type f ! -perm -100 -exec chmod 644 {} + \
            && find \"$2\" -exec touch --no-dereference --date=@\"$3\" {} +";
        let mut command = Command::new("sh");
        command.args(["-ec", script, "sh"]).arg(&man).arg(&self.0);
        output(command.arg(release.epoch.to_string())).map(drop)
    }

    /// The files below a folder of the tree, relative to the tree, in order.
    pub(super) fn files(&self) -> Result<Vec<String>, String> {
        let mut command = Command::new("find");
        command.args([".", "-type", "f", "-printf", "%P\\n"]);
        let list = output(command.current_dir(&self.0))?;
        let mut files: Vec<_> = list.lines().map(str::to_owned).collect();
        files.sort();
        Ok(files)
    }
}
