//! Checks the crates without system calls for other systems, as far as Rust's standard library for them is installed.

use std::path::Path;
use std::process::Command;

const SYSTEMS: [&str; 2] = ["aarch64-apple-darwin", "x86_64-pc-windows-gnu"];

/// The crates that are meant to compile there; see docs/platforms.md. Those with C in them are left out: a C compiler for
/// another system cannot be assumed.
const CRATES: [&str; 5] = [
    "windlass-base",
    "windlass-tsql",
    "windlass-tds",
    "windlass-media",
    "windlass-report",
];

/// Checks each system; one without a standard library is skipped, loudly.
pub(crate) fn check() -> Result<(), String> {
    for target in SYSTEMS {
        if !is_installed(target)? {
            println!("== WARNING: {target} WAS NOT CHECKED: rustup target add {target}");
            continue;
        }
        let mut arguments = vec!["check", "--quiet", "--locked", "--target", target];
        for name in CRATES {
            arguments.extend(["--package", name]);
        }
        crate::run::step(&format!("check for {target}"), "cargo", &arguments)?;
    }
    Ok(())
}

fn is_installed(target: &str) -> Result<bool, String> {
    let mut command = Command::new("rustc");
    command.args(["--print", "target-libdir", "--target", target]);
    let folder = crate::run::output(&mut command)?;
    Ok(Path::new(folder.trim()).is_dir())
}
