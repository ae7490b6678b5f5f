//! Builds the program and the extension for a target, against an old C library, and strips them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::Release;
use crate::run::output;

/// The oldest C library that the program runs with: that of Red Hat 7, Debian 8 and everything since. `zig` brings the
/// interfaces of each version, for each processor, as well as the C compiler for it.
pub(super) const GLIBC: &str = "2.17";

/// Apart from `target/release`: the options differ, and each would build everything again after the other.
const FOLDER: &str = "target/dist-build";

/// A stripped program that is larger is refused.
const PROGRAM_BYTES_MAX: u64 = 30_000_000;

/// A processor; the system is always Linux.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Target {
    #[value(name = "x86_64")]
    X86,
    #[value(name = "aarch64")]
    Arm,
}

impl Target {
    /// The one of this machine.
    pub(crate) fn host() -> Result<Self, String> {
        match std::env::consts::ARCH {
            "x86_64" => Ok(Self::X86),
            "aarch64" => Ok(Self::Arm),
            other => Err(format!("no artefacts are made on {other}")),
        }
    }

    /// As the kernel, Red Hat and Python call it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::X86 => "x86_64",
            Self::Arm => "aarch64",
        }
    }

    /// As Debian calls it.
    pub(crate) fn debian(self) -> &'static str {
        match self {
            Self::X86 => "amd64",
            Self::Arm => "arm64",
        }
    }

    fn triple(self) -> String {
        format!("{}-unknown-linux-gnu", self.name())
    }
}

/// Stripped files, and beside each one its debug information in `NAME.debug`.
pub(crate) struct Built {
    pub(crate) program: PathBuf,
    pub(crate) extension: PathBuf,
}

/// Builds both for a target.
pub(super) fn build(release: &Release, target: Target) -> Result<Built, String> {
    let folder = fs::create_dir_all(FOLDER)
        .and_then(|()| fs::canonicalize(FOLDER))
        .map_err(|error| format!("{FOLDER}: {error}"))?;
    compile(release, target, &folder)?;
    let from = folder.join(target.triple()).join("release");
    let to = release.work.join(target.name());
    fs::create_dir_all(&to).map_err(|error| format!("{}: {error}", to.display()))?;
    let program = strip(&from.join("windlass"), &to)?;
    let extension = strip(&from.join("libwindlass.so"), &to)?;
    check_size(&program)?;
    let folders = [source_folder()?, folder, cargo_home()?];
    check_paths(&program, &folders)?;
    check_paths(&extension, &folders)?;
    Ok(Built { program, extension })
}

/// Takes both from the build of the tests.
pub(super) fn of_tests(release: &Release, target: Target) -> Result<Built, String> {
    let arguments = ["test", "--workspace", "--no-run", "--quiet"];
    output(Command::new("cargo").args(arguments))?;
    let from = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from);
    let from = from.join("debug");
    let to = release.work.join(target.name());
    fs::create_dir_all(&to).map_err(|error| format!("{}: {error}", to.display()))?;
    Ok(Built {
        program: strip(&from.join("windlass"), &to)?,
        // Tests of the extension have it built there.
        extension: strip(&from.join("deps/libwindlass.so"), &to)?,
    })
}

fn compile(release: &Release, target: Target, folder: &Path) -> Result<(), String> {
    if !crate::tools::is_there("cargo-zigbuild") {
        return Err(
            "cargo-zigbuild is absent: pip install cargo-zigbuild ziglang, in the versions of docs/releases.md"
                .to_owned(),
        );
    }
    if target == Target::X86 && !crate::tools::is_there("nasm") {
        return Err("nasm is absent: apt-get install nasm".to_owned());
    }
    // The folders of this machine would be in the messages of panics and in the debug information.
    let mut renamed = vec![(cargo_home()?, "/cargo"), (source_folder()?, "/windlass")];
    let map = |option: &str, renamed: &[(PathBuf, &str)]| -> Vec<String> {
        renamed
            .iter()
            .map(|(from, to)| format!("{option}={}={to}", from.display()))
            .collect()
    };
    let mut rust = map("--remap-path-prefix", &renamed);
    // What debuggers find the debug information by.
    rust.push("-Clink-arg=-Wl,--build-id=sha1".to_owned());
    // C is compiled in the folders of build scripts, too.
    renamed.push((folder.to_owned(), "/target"));
    let c = map("-ffile-prefix-map", &renamed);
    // The sources of ISA-L, too, which are in a package that is not compiled.
    output(Command::new("cargo").args(["fetch", "--locked", "--quiet"]))?;
    let triple = format!("{}.{GLIBC}", target.triple());
    let mut command = Command::new("cargo");
    command
        .args(["zigbuild", "--locked", "--release", "--target", &triple])
        .args(["--package", "windlass", "--package", "windlass-extension"])
        .env("CARGO_TARGET_DIR", folder)
        .env("SOURCE_DATE_EPOCH", release.epoch.to_string())
        .env("CARGO_ENCODED_RUSTFLAGS", rust.join("\u{1f}"))
        .env("CFLAGS", c.join(" "))
        .env("CXXFLAGS", c.join(" "));
    crate::run::execute(&format!("building for {}", target.name()), &mut command)
}

fn source_folder() -> Result<PathBuf, String> {
    std::env::current_dir().map_err(|error| format!("the current folder: {error}"))
}

fn cargo_home() -> Result<PathBuf, String> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let default = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cargo"));
    home.or_else(default)
        .ok_or_else(|| "neither CARGO_HOME nor HOME is set".to_owned())
}

/// Writes a stripped copy of a file into a folder, and its debug information beside it.
fn strip(from: &Path, folder: &Path) -> Result<PathBuf, String> {
    let stripped = folder.join(from.file_name().unwrap_or_default());
    let debug = debug_of(&stripped);
    objcopy(&["--only-keep-debug"], from, &debug)?;
    let link = format!("--add-gnu-debuglink={}", debug.display());
    objcopy(&["--strip-all", &link], from, &stripped)?;
    Ok(stripped)
}

/// Where `strip` puts the debug information of a file.
pub(super) fn debug_of(stripped: &Path) -> PathBuf {
    let mut name = stripped.as_os_str().to_owned();
    name.push(".debug");
    PathBuf::from(name)
}

/// The id that the linker gave a file, in hexadecimal digits.
pub(super) fn build_id(file: &Path) -> Result<String, String> {
    let bytes = fs::read(file).map_err(|error| format!("{}: {error}", file.display()))?;
    note_of_build_id(&bytes).ok_or_else(|| format!("{} has no build id", file.display()))
}

/// The 20 bytes after the head of a note of that kind: the lengths of its name and its content, its type, its name.
fn note_of_build_id(bytes: &[u8]) -> Option<String> {
    const HEAD: &[u8] = b"\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0";
    let at = bytes
        .windows(HEAD.len())
        .position(|window| window == HEAD)?;
    let start = at + HEAD.len();
    let id = bytes.get(start..start + 20)?;
    let digits: Vec<_> = id.iter().map(|byte| format!("{byte:02x}")).collect();
    Some(digits.concat())
}

/// The compiler's own `objcopy` knows every processor.
fn objcopy(options: &[&str], from: &Path, to: &Path) -> Result<(), String> {
    let sysroot = output(Command::new("rustc").args(["--print", "sysroot"]))?;
    let sysroot = Path::new(sysroot.trim());
    let host = Target::host()?.triple();
    let program = sysroot
        .join("lib/rustlib")
        .join(host)
        .join("bin/rust-objcopy");
    let mut command = Command::new(program);
    command.env("LD_LIBRARY_PATH", sysroot.join("lib"));
    output(command.args(options).arg(from).arg(to)).map(drop)
}

fn check_size(program: &Path) -> Result<(), String> {
    let bytes = fs::metadata(program)
        .map_err(|error| format!("{}: {error}", program.display()))?
        .len();
    if bytes > PROGRAM_BYTES_MAX {
        return Err(format!(
            "{} has {bytes} bytes, more than {PROGRAM_BYTES_MAX}",
            program.display()
        ));
    }
    println!("== {}: {bytes} bytes", program.display());
    Ok(())
}

/// A file that names a folder of this machine cannot be built again elsewhere.
fn check_paths(file: &Path, folders: &[PathBuf]) -> Result<(), String> {
    let bytes = fs::read(file).map_err(|error| format!("{}: {error}", file.display()))?;
    for folder in folders {
        let name = folder.display().to_string();
        let found = bytes
            .windows(name.len())
            .position(|window| window == name.as_bytes());
        if let Some(at) = found {
            let end = bytes.len().min(at + 120);
            return Err(format!(
                "{} has a path of this machine in it, at {at}: {}",
                file.display(),
                String::from_utf8_lossy(&bytes[at..end])
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_id_is_found() {
        let mut file = b"\x7fELF\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0".to_vec();
        assert_eq!(note_of_build_id(&file), None);
        file.extend((0..21).map(|byte| byte + 0xa0));
        let id = note_of_build_id(&file).unwrap();
        assert_eq!(id, "a0a1a2a3a4a5a6a7a8a9aaabacadaeafb0b1b2b3");
    }

    #[test]
    fn a_path_of_the_machine_in_a_file_is_found() {
        let file = std::env::temp_dir().join(format!("xtask-dist-{}", std::process::id()));
        fs::write(&file, b"\0\x01/builder/home/.cargo/registry/x.rs\0").unwrap();
        let found = |folder: &str| check_paths(&file, &[PathBuf::from(folder)]);
        assert!(found("/builder/home/.cargo").unwrap_err().contains("at 2"));
        assert_eq!(found("/builder/else"), Ok(()));
        fs::remove_file(&file).unwrap();
    }
}
