//! The Python wheel: the program, the extension, and `windlass.connect`.

use std::process::Command;

use super::Release;
use super::build::{GLIBC, Target};
use super::tree::{EXTENSION, LICENCES, PROGRAM, Tree};
use crate::run::output;

/// Writes `windlass-VERSION-py3-none-PLATFORM.whl`.
pub(super) fn make(release: &Release, target: Target, tree: &Tree) -> Result<(), String> {
    let platform = format!("manylinux_{}_{}", GLIBC.replace('.', "_"), target.name());
    let mut command = Command::new("python3");
    command
        .args(["contrib/python/wheel.py", &release.version, &platform])
        .arg(release.epoch.to_string())
        .arg(&release.out)
        .args([PROGRAM, EXTENSION, LICENCES].map(|file| tree.0.join(file)));
    output(&mut command).map(drop)
}
