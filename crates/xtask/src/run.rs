//! Runs other programs, one step at a time, and reports which one failed.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// Runs a program in the repository's root as a named step.
pub(crate) fn step(name: &str, program: &str, arguments: &[&str]) -> Result<(), String> {
    execute(name, Command::new(program).args(arguments))
}

/// Builds the documentation; warnings are errors.
pub(crate) fn documentation() -> Result<(), String> {
    // The program and the library of the extension have one name, and would replace each other's pages at the same time.
    for what in [
        ["--workspace", "--exclude=windlass-extension"],
        ["--package", "windlass-extension"],
    ] {
        let mut command = Command::new("cargo");
        command.args(["doc", "--no-deps", "--quiet"]).args(what);
        execute("documentation", command.env("RUSTDOCFLAGS", "-D warnings"))?;
    }
    Ok(())
}

/// Runs all tests, two for each core: most of them wait for programs, servers and locks.
pub(crate) fn tests() -> Result<(), String> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut command = Command::new("cargo");
    command.args(["test", "--workspace", "--no-fail-fast"]);
    if std::env::var_os("RUST_TEST_THREADS").is_none() {
        command.env("RUST_TEST_THREADS", (2 * cores).to_string());
    }
    execute("tests", &mut command)
}

/// Runs a prepared command as a named step.
pub(crate) fn execute(name: &str, command: &mut Command) -> Result<(), String> {
    println!("== {name}");
    let begun = Instant::now();
    let status = command
        .status()
        .map_err(|error| format!("{name}: cannot start: {error}"))?;
    if !status.success() {
        return Err(format!("{name}: {status}"));
    }
    println!("== {name}: ok, {:.1} s", begun.elapsed().as_secs_f64());
    Ok(())
}

/// Prints how much disk is left: tests fail in many ways without it.
pub(crate) fn tell_free_space(when: &str) {
    for folder in [Path::new("."), &std::env::temp_dir()] {
        if let Ok(Some(free)) = windlass_io::directory::free_bytes(folder) {
            println!(
                "== {when}: {} GB are free in {}",
                free >> 30,
                folder.display()
            );
        }
    }
}

/// What a command prints; an error with its words if it fails.
pub(crate) fn output(command: &mut Command) -> Result<String, String> {
    let output = command
        .output()
        .map_err(|error| format!("{command:?}: cannot start: {error}"))?;
    if !output.status.success() {
        return Err(format!(
            "{command:?}: {}\n{}{}",
            output.status,
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        ));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Runs the benchmark programs: on one database, or on a large one with UTF-16 text, the codecs also on one
/// with UTF-8 text and on the small databases of the shared data.
pub(crate) fn bench(database: Option<&Path>) -> Result<(), String> {
    let (database, others) = match database {
        Some(path) => (path.to_owned(), Vec::new()),
        None => {
            let others = vec![stackoverflow_like("utf8")?, shared()?.join("data/sqlite")];
            (stackoverflow_like("utf16le")?, others)
        }
    };
    let database = database.display().to_string();
    let others: Vec<_> = others
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    let databases = others.get(..1).unwrap_or_default().to_vec();
    for (program, others) in [("codec", others), ("end-to-end", databases)] {
        let mut arguments = vec![
            "run",
            "--release",
            "--package",
            "windlass-bench",
            "--bin",
            program,
            "--",
            &database,
        ];
        arguments.extend(others.iter().map(String::as_str));
        step(program, "cargo", &arguments)?;
    }
    Ok(())
}

/// Model checks: the engine's locks and lists under thousands of thread schedules.
pub(crate) const MODEL_CHECKS: [&str; 8] = [
    "test",
    "--package",
    "windlass-engine",
    "--features",
    "model",
    "--lib",
    "--quiet",
    "model::",
];

/// The folder of real databases that are not part of the repository.
fn shared() -> Result<PathBuf, String> {
    let shared = std::env::var("WINDLASS_SHARED").unwrap_or_else(|_| "../shared".to_owned());
    let shared = PathBuf::from(shared);
    match shared.is_dir() {
        true => Ok(shared),
        false => Err(format!(
            "{} is absent: name a database, or set WINDLASS_SHARED",
            shared.display()
        )),
    }
}

/// Builds a large realistic database with the script in the shared data.
fn stackoverflow_like(encoding: &str) -> Result<PathBuf, String> {
    let script = shared()?.join("data/build_big.py");
    let path = Path::new("target").join(format!("stackoverflow-1000-{encoding}.db"));
    if !path.exists() {
        let (script, out) = (script.display().to_string(), path.display().to_string());
        let arguments = [
            &script,
            "--out",
            &out,
            "--size-mb",
            "1000",
            "--quiet",
            "--encoding",
            encoding,
        ];
        step("building a database", "python3", &arguments)?;
    }
    Ok(path)
}
