//! Checks the crates without system calls for other systems, as far as Rust's standard library for them is there or can be
//! installed.

use std::path::Path;
use std::process::Command;

const SYSTEMS: [&str; 2] = ["aarch64-apple-darwin", "x86_64-pc-windows-gnu"];

/// The crates that are meant to compile there; see docs/platforms.md.
const CRATES: [&str; 8] = [
    "windlass-bak",
    "windlass-base",
    "windlass-codec",
    "windlass-crypt",
    "windlass-media",
    "windlass-report",
    "windlass-tds",
    "windlass-tsql",
];

/// The tools of C. Their work is left out: a C compiler for another system cannot be assumed, and Rust is checked without
/// what it makes.
const TOOLS: [&str; 4] = ["AR", "CC", "CXX", "RANLIB"];

/// Checks each system; one without a standard library is skipped, loudly.
pub(crate) fn check() -> Result<(), String> {
    for target in SYSTEMS {
        if !is_installed(target)? && !install(target) {
            println!("== WARNING: {target} WAS NOT CHECKED: rustup target add {target}");
            continue;
        }
        let mut arguments = vec!["check", "--quiet", "--locked", "--target", target];
        for name in CRATES {
            arguments.extend(["--package", name]);
        }
        let mut check = Command::new("cargo");
        check.args(arguments);
        for tool in TOOLS {
            check.env(format!("{tool}_{}", target.replace('-', "_")), "true");
        }
        // Nor an assembler: of what aws-lc-sys has assembled for Windows, it brings the result.
        check.env("AWS_LC_SYS_PREBUILT_NASM", "1");
        crate::run::execute(&format!("check for {target}"), &mut check)?;
    }
    Ok(())
}

/// Whether the toolchain's manager has installed it.
fn install(target: &str) -> bool {
    let mut add = Command::new("rustup");
    add.args(["--quiet", "target", "add", target]);
    crate::run::execute(&format!("standard library for {target}"), &mut add).is_ok()
        && is_installed(target).unwrap_or(false)
}

fn is_installed(target: &str) -> Result<bool, String> {
    let mut command = Command::new("rustc");
    command.args(["--print", "target-libdir", "--target", target]);
    let folder = crate::run::output(&mut command)?;
    Ok(Path::new(folder.trim()).is_dir())
}
