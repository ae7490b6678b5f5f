//! Programs that tests need and Cargo cannot provide: installed from their package if missing.

use std::os::unix::fs::MetadataExt as _;
use std::process::{Command, Stdio};

/// A program, and the Debian package that contains it.
const TOOLS: [(&str, &str); 11] = [
    ("chromium", "chromium"),
    ("curl", "curl"),
    ("nasm", "nasm"),
    ("rpmbuild", "rpm"),
    ("sqlite3", "sqlite3"),
    ("tsql", "freetds-bin"),
    ("pip3", "python3-venv"),
    ("npm", "npm"),
    ("java", "default-jdk-headless"),
    ("mvn", "maven"),
    ("go", "golang-go"),
];

/// Installs missing programs. If that is not possible, prints a message: the tests that need them
/// then fail under `CI`, and are skipped elsewhere.
pub(crate) fn install_missing() {
    for (program, package) in TOOLS {
        if is_there(program) {
            continue;
        }
        println!("== installing {package}");
        if !(apt(&["update", "-qq"])
            && apt(&["install", "-y", "-qq", "--no-install-recommends", package]))
        {
            println!(
                "== {program} is absent and could not be installed: apt-get install {package}"
            );
        }
    }
}

/// Installs a Cargo subcommand from its package if it is missing.
pub(crate) fn install_with_cargo(program: &str) -> Result<(), String> {
    if is_there(program) {
        return Ok(());
    }
    let arguments = ["install", program, "--locked"];
    crate::run::step(&format!("installing {program}"), "cargo", &arguments)
}

/// Whether a program is in a folder of the path.
pub(crate) fn is_there(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// Runs apt-get as root, or through sudo if sudo needs no password.
fn apt(arguments: &[&str]) -> bool {
    // The owner of a process's folder is its effective user.
    let is_root = std::fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0);
    let mut command = if is_root {
        Command::new("apt-get")
    } else {
        let mut sudo = Command::new("sudo");
        sudo.args(["-n", "apt-get"]);
        sudo
    };
    let status = command
        .args(arguments)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdin(Stdio::null())
        .status();
    status.is_ok_and(|status| status.success())
}
