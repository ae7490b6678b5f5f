//! `cargo xtask dist`: what is handed out for each target: an archive, packages for Debian and Red Hat, a Python wheel,
//! and, beside them, debug information, a bill of materials and checksums.
//!
//! | module | what |
//! |---|---|
//! | `build` | the program and the extension, stripped, with paths of the machine replaced |
//! | `tree` | the files of an installation, once for all kinds of packages |
//! | `archive`, `deb`, `rpm`, `wheel` | each kind of package from that tree |
//! | `bom` | the bill of materials (`CycloneDX`) |
//! | `check` | installs each package in a clean root and makes a backup there |
//!
//! Everything is reproducible: the same commit gives the same bytes in any folder, with the same compiler and the same
//! versions of the tools. docs/releases.md says how to compare.

mod archive;
mod bom;
mod build;
mod check;
mod deb;
mod rpm;
mod tree;
mod wheel;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

pub(crate) use self::build::Target;
use crate::run::output;

/// What is made, and where.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Processors; the one of this machine by default.
    #[arg(long, value_enum)]
    target: Vec<Target>,
    /// The folder for the artefacts.
    #[arg(long, default_value = "target/dist")]
    out: PathBuf,
    /// Installs each artefact in a clean root, and backs up, verifies and restores there.
    #[arg(long)]
    check: bool,
    /// Makes everything a second time from a copy of the last commit in another folder, and compares.
    #[arg(long)]
    twice: bool,
    /// Packs the programs of the tests, which are large and of this machine alone, and packs them quickly: to try everything
    /// but the build.
    #[arg(long, conflicts_with_all = ["target", "twice"])]
    rehearse: bool,
}

/// Packs and tries the programs of the tests. Where a tool is absent, says so instead.
pub(crate) fn rehearse() -> Result<(), String> {
    let mut tools = ["rpmbuild", "xz", "gzip", "python3", "unshare"].into_iter();
    if let Some(tool) = tools.find(|tool| !crate::tools::is_there(tool)) {
        println!("== WARNING: THE PACKAGES WERE NOT TRIED: {tool} is absent");
        return Ok(());
    }
    let begun = Instant::now();
    run(&Options {
        target: Vec::new(),
        out: PathBuf::from("target/dist-rehearsal"),
        check: true,
        twice: false,
        rehearse: true,
    })?;
    println!("== packages: ok, {:.1} s", begun.elapsed().as_secs_f64());
    Ok(())
}

/// What all artefacts of one run have in common.
pub(crate) struct Release {
    pub(crate) version: String,
    /// Seconds since 1970 that stand for the time of every file.
    pub(crate) epoch: u64,
    /// Absolute.
    pub(crate) out: PathBuf,
    /// For files on the way.
    pub(crate) work: PathBuf,
    /// Whether nothing of it is handed out.
    pub(crate) is_rehearsal: bool,
}

impl Release {
    /// A compressor's level: the best one for what is handed out.
    fn level(&self, best: u32) -> u32 {
        if self.is_rehearsal { 1 } else { best }
    }
}

/// Makes the artefacts.
pub(crate) fn run(options: &Options) -> Result<(), String> {
    let host = Target::host()?;
    let mut targets = options.target.clone();
    if targets.is_empty() {
        targets.push(host);
    }
    // Manual pages and completions are printed by a program that runs here.
    targets.sort_by_key(|target| *target != host);
    let release = release(&options.out, options.rehearse)?;
    make(&release, &targets)?;
    if options.twice {
        make_again(&release, &targets)?;
    }
    if options.check {
        check::run(&release, host)?;
    }
    println!("== dist: {}", release.out.display());
    Ok(())
}

fn make(release: &Release, targets: &[Target]) -> Result<(), String> {
    let mut printer = None;
    for target in targets {
        let built = match release.is_rehearsal {
            true => build::of_tests(release, *target)?,
            false => build::build(release, *target)?,
        };
        let printer = printer.get_or_insert_with(|| built.program.clone());
        let tree = tree::make(release, &built, printer)?;
        archive::archive(release, *target, &tree)?;
        if !release.is_rehearsal {
            archive::debug(release, *target, &built)?;
        }
        deb::make(release, *target, &tree)?;
        rpm::make(release, *target, &tree)?;
        wheel::make(release, *target, &tree)?;
    }
    bom::make(release)?;
    fs::copy("contrib/Containerfile", release.out.join("Containerfile"))
        .map_err(|error| format!("contrib/Containerfile: {error}"))?;
    checksums(&release.out)
}

fn release(out: &Path, is_rehearsal: bool) -> Result<Release, String> {
    let manifest = read("Cargo.toml")?;
    let version = manifest
        .lines()
        .find_map(|line| line.strip_prefix("version = \""))
        .and_then(|rest| rest.strip_suffix('"'))
        .ok_or("Cargo.toml: no version of the workspace")?
        .to_owned();
    if out.exists() {
        fs::remove_dir_all(out).map_err(|error| format!("{}: {error}", out.display()))?;
    }
    let work = out.join("work");
    fs::create_dir_all(&work).map_err(|error| format!("{}: {error}", work.display()))?;
    let absolute = |path: &Path| {
        fs::canonicalize(path).map_err(|error| format!("{}: {error}", path.display()))
    };
    Ok(Release {
        version,
        epoch: epoch()?,
        out: absolute(out)?,
        work: absolute(&work)?,
        is_rehearsal,
    })
}

/// `SOURCE_DATE_EPOCH`, or the time of the commit.
fn epoch() -> Result<u64, String> {
    let text = match std::env::var("SOURCE_DATE_EPOCH") {
        Ok(text) => text,
        Err(_) => output(Command::new("git").args(["log", "-1", "--format=%ct"]))?,
    };
    text.trim()
        .parse()
        .map_err(|_| format!("SOURCE_DATE_EPOCH is '{text}', not a number of seconds"))
}

/// Writes `SHA256SUMS` over all artefacts.
fn checksums(out: &Path) -> Result<(), String> {
    let names = artefacts(out)?;
    let sums = output(Command::new("sha256sum").args(&names).current_dir(out))?;
    fs::write(out.join("SHA256SUMS"), &sums).map_err(|error| format!("SHA256SUMS: {error}"))?;
    print!("{sums}");
    Ok(())
}

/// The names of the files in the folder, without the checksums.
fn artefacts(out: &Path) -> Result<Vec<String>, String> {
    let entries = fs::read_dir(out).map_err(|error| format!("{}: {error}", out.display()))?;
    let mut names: Vec<_> = entries
        .flatten()
        .filter(|entry| entry.path().is_file())
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| name != "SHA256SUMS")
        .collect();
    names.sort();
    Ok(names)
}

/// Makes the artefacts from a copy of the commit, and compares them with those of `release`.
fn make_again(release: &Release, targets: &[Target]) -> Result<(), String> {
    let (copy, out) = (release.work.join("copy"), release.work.join("again"));
    let script = "mkdir \"$1\" && git archive HEAD | tar -x -C \"$1\"";
    output(Command::new("sh").args(["-ec", script, "sh"]).arg(&copy))?;
    let mut command = Command::new("cargo");
    command
        .args(["xtask", "dist", "--out"])
        .arg(&out)
        .current_dir(&copy)
        .env("SOURCE_DATE_EPOCH", release.epoch.to_string());
    for target in targets {
        command.args(["--target", target.name()]);
    }
    crate::run::execute("the second build", &mut command)?;
    compare(&release.out, &out)
}

fn compare(first: &Path, second: &Path) -> Result<(), String> {
    let (one, other) = (
        read(first.join("SHA256SUMS"))?,
        read(second.join("SHA256SUMS"))?,
    );
    if one == other {
        println!("== dist: both builds have the same checksums");
        return Ok(());
    }
    let differing: Vec<_> = one
        .lines()
        .filter(|line| !other.lines().any(|second| second == *line))
        .collect();
    Err(format!(
        "two builds of one commit differ in:\n  {}",
        differing.join("\n  ")
    ))
}

pub(crate) fn read(path: impl AsRef<Path>) -> Result<String, String> {
    let path = path.as_ref();
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}
