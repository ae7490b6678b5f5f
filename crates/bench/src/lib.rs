//! Shared by the benchmark programs: medians, the CPU time of child processes, the load of the
//! machine, the pages of databases, a program that commits, and the measured program.
#![forbid(unsafe_code)]

pub mod floor;
pub mod load;
pub mod pages;
pub mod usage;

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

/// The median; 0 if there are no values.
pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut sorted: Vec<f64> = values.into_iter().collect();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(0.0)
}

/// CPU time, user and system, of all child processes that have been waited for; zero on other systems than Linux.
pub fn cpu_of_children() -> Duration {
    cpu("self", 16)
}

/// The same of a process that runs.
pub fn cpu_of(process: u32) -> Duration {
    cpu(&process.to_string(), 14)
}

/// Two fields of `/proc/PROCESS/stat`, numbered from 1, in ticks of a hundredth of a second.
fn cpu(process: &str, field: usize) -> Duration {
    const TICKS_PER_SECOND: u64 = 100;
    /// The first field behind the name, which may have spaces.
    const STATE: usize = 3;
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let fields = after_name.split_whitespace().skip(field - STATE).take(2);
    let ticks: u64 = fields.filter_map(|field| field.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 1000 / TICKS_PER_SECOND)
}

/// The current `windlass` program, built into the folder of the running benchmark.
///
/// # Errors
/// A message with the reason if there is none.
pub fn windlass_program() -> Result<PathBuf, String> {
    let this = std::env::current_exe().map_err(|error| error.to_string())?;
    let target = this.ancestors().nth(2).ok_or("no target folder")?;
    let mut build = Command::new("cargo");
    build
        .args(["build", "--release", "--quiet", "--package", "windlass"])
        .arg("--target-dir")
        .arg(target)
        .current_dir(env!("CARGO_MANIFEST_DIR"));
    if !build.status().is_ok_and(|status| status.success()) {
        return Err("cargo build --release --package windlass failed".to_owned());
    }
    Ok(target.join("release/windlass"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_ignores_an_outlier() {
        assert!((median([3.0, 1.0, 900.0]) - 3.0).abs() < f64::EPSILON);
        assert!(median([]).abs() < f64::EPSILON);
    }
}
