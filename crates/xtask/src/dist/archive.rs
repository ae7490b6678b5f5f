//! Archives, written so that the same files give the same bytes.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::Release;
use super::build::{Built, Target, build_id, debug_of};
use super::tree::Tree;
use crate::run::output;

/// `windlass-VERSION-TARGET.tar.gz`, to be unpacked over `/` or anywhere.
pub(super) fn archive(release: &Release, target: Target, tree: &Tree) -> Result<(), String> {
    let name = format!("windlass-{}-{}-linux", release.version, target.name());
    let path = release.out.join(format!("{name}.tar.gz"));
    let below = format!("--transform=s,^\\.,{name},");
    let gzip = format!("gzip -{}n", release.level(9));
    tar(release, &tree.0, &path, &gzip, &[&below, "."])
}

/// The debug information of the program and the extension where `gdb` and `perf` look for it: below
/// `usr/lib/debug/.build-id`, by the id that the linker gave each.
pub(super) fn debug(release: &Release, target: Target, built: &Built) -> Result<(), String> {
    let name = format!("windlass-{}-{}-linux-debug", release.version, target.name());
    let folder = built.program.with_file_name("debug");
    for file in [&built.program, &built.extension] {
        let id = build_id(file)?;
        let (first, rest) = id.split_at(2);
        let place = folder.join("usr/lib/debug/.build-id").join(first);
        let to = place.join(format!("{rest}.debug"));
        fs::create_dir_all(&place)
            .and_then(|()| fs::copy(debug_of(file), &to))
            .map_err(|error| format!("{}: {error}", to.display()))?;
    }
    let path = release.out.join(format!("{name}.tar.xz"));
    tar(release, &folder, &path, "xz -3 -T1", &["."])
}

/// Writes `what` of a folder to an archive, owned by root and with one time for all.
pub(super) fn tar(
    release: &Release,
    folder: &Path,
    archive: &Path,
    compressor: &str,
    what: &[&str],
) -> Result<(), String> {
    let mut command = Command::new("tar");
    command
        .args([
            "--create",
            "--format=ustar",
            "--sort=name",
            "--numeric-owner",
        ])
        .args(["--owner=0", "--group=0", "--mode=u=rwX,go=rX"])
        .arg(format!("--mtime=@{}", release.epoch))
        .arg(format!("--use-compress-program={compressor}"))
        .arg("--file")
        .arg(archive)
        .args(what);
    output(command.current_dir(folder)).map(drop)
}
