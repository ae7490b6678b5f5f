//! Runs other programs, one step at a time, and reports which one failed.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

/// Runs a program in the repository's root as a named step.
pub(crate) fn step(name: &str, program: &str, arguments: &[&str]) -> Result<(), String> {
    execute(name, Command::new(program).args(arguments))
}

/// Builds the documentation; warnings are errors.
pub(crate) fn documentation() -> Result<(), String> {
    let mut command = Command::new("cargo");
    command.args(["doc", "--workspace", "--no-deps", "--quiet"]);
    execute("documentation", command.env("RUSTDOCFLAGS", "-D warnings"))
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

/// Runs the benchmark programs on one database.
pub(crate) fn bench(database: Option<&Path>) -> Result<(), String> {
    let built;
    let database = if let Some(path) = database {
        path
    } else {
        built = stackoverflow_like()?;
        &built
    };
    let database = database.display().to_string();
    for program in ["codec", "end-to-end"] {
        let arguments = [
            "run",
            "--release",
            "--package",
            "windlass-bench",
            "--bin",
            program,
            "--",
            &database,
        ];
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

/// Builds the large realistic database with the script in the shared data.
fn stackoverflow_like() -> Result<std::path::PathBuf, String> {
    let shared = std::env::var("WINDLASS_SHARED").unwrap_or_else(|_| "../shared".to_owned());
    let script = Path::new(&shared).join("data/build_big.py");
    if !script.exists() {
        return Err(format!(
            "{} is absent: name a database, or set WINDLASS_SHARED",
            script.display()
        ));
    }
    let path = Path::new("target").join("stackoverflow-1000.db");
    if !path.exists() {
        let (script, out) = (script.display().to_string(), path.display().to_string());
        step(
            "building a database",
            "python3",
            &[&script, "--out", &out, "--size-mb", "1000", "--quiet"],
        )?;
    }
    Ok(path)
}
