//! Code in other languages that is linked: what packages bring along, and what the compilers add.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::Package;
use crate::run::output;

/// A C library in a package of the registry.
pub(crate) struct Library {
    pub(crate) name: &'static str,
    /// The package that has its sources.
    pub(crate) package: &'static str,
    /// For readers.
    pub(crate) licence: &'static str,
    /// For programs, as SPDX writes it.
    pub(crate) spdx: &'static str,
    /// The text of the licence, if it needs one.
    pub(crate) text: Option<&'static str>,
    /// The file that has the version, and what stands before each part of it.
    version: (&'static str, &'static [&'static str]),
    /// The package URL without the version.
    pub(crate) purl: &'static str,
    /// Vendor and product in the database of vulnerabilities, where it has the library.
    pub(crate) cpe: Option<&'static str>,
}

/// `accelerator/build.rs` builds it from a package that is itself not compiled.
const SOURCES_ONLY: &str = "isal-sys";

pub(crate) const LIBRARIES: [Library; 5] = [
    Library {
        name: "SQLite",
        package: "libsqlite3-sys",
        licence: "public domain",
        spdx: "blessing",
        text: None,
        version: ("sqlite3/sqlite3.h", &["#define SQLITE_VERSION        \""]),
        purl: "pkg:generic/sqlite@",
        cpe: Some("sqlite:sqlite"),
    },
    Library {
        name: "Zstandard",
        package: "zstd-sys",
        licence: "BSD-3-Clause",
        spdx: "BSD-3-Clause",
        text: Some("zstd/LICENSE"),
        version: (
            "zstd/lib/zstd.h",
            &[
                "#define ZSTD_VERSION_MAJOR",
                "#define ZSTD_VERSION_MINOR",
                "#define ZSTD_VERSION_RELEASE",
            ],
        ),
        purl: "pkg:github/facebook/zstd@v",
        cpe: Some("facebook:zstandard"),
    },
    Library {
        name: "libdeflate",
        package: "libdeflate-sys",
        licence: "MIT",
        spdx: "MIT",
        text: Some("libdeflate/COPYING"),
        version: (
            "libdeflate/libdeflate.h",
            &["#define LIBDEFLATE_VERSION_STRING\t\""],
        ),
        purl: "pkg:github/ebiggers/libdeflate@v",
        cpe: None,
    },
    Library {
        name: "AWS-LC",
        package: "aws-lc-sys",
        licence: "ISC, Apache-2.0, MIT, BSD-3-Clause",
        spdx: "ISC AND Apache-2.0 AND MIT AND BSD-3-Clause",
        text: Some("aws-lc/LICENSE"),
        version: (
            "aws-lc/include/openssl/base.h",
            &["#define AWSLC_VERSION_NUMBER_STRING \""],
        ),
        purl: "pkg:github/aws/aws-lc@v",
        cpe: None,
    },
    Library {
        name: "ISA-L",
        package: SOURCES_ONLY,
        licence: "BSD-3-Clause",
        spdx: "BSD-3-Clause",
        text: Some("isa-l/LICENSE"),
        version: ("isa-l/configure.ac", &["AC_INIT([libisal],\n        ["]),
        purl: "pkg:github/intel/isa-l@v",
        cpe: None,
    },
];

impl Library {
    /// The package, among all that Cargo has unpacked.
    pub(crate) fn package<'a>(&self, packages: &'a [Package]) -> Result<&'a Package, String> {
        packages
            .iter()
            .find(|package| package.name == self.package)
            .ok_or_else(|| format!("{}, with {}, is not in Cargo.lock", self.package, self.name))
    }

    /// As the library's own sources say.
    pub(crate) fn version(&self, package: &Package) -> Result<String, String> {
        let (file, heads) = self.version;
        let path = package.folder().join(file);
        let text = std::fs::read_to_string(&path)
            .map_err(|error| format!("{}: {error}", path.display()))?;
        version_in(&text, heads)
            .ok_or_else(|| format!("{}: no version of {}", path.display(), self.name))
    }

    /// Only where the assembler for it is installed.
    pub(crate) fn is_optional(&self) -> bool {
        self.package == SOURCES_ONLY
    }
}

/// What follows each of `heads` up to a character that no version has, joined by points.
fn version_in(text: &str, heads: &[&str]) -> Option<String> {
    let part = |head: &&str| {
        let (_, rest) = text.split_once(*head)?;
        let rest = rest.trim_start_matches([' ', '\t']);
        let end = rest.find(|character: char| !character.is_ascii_digit() && character != '.')?;
        rest.get(..end).filter(|part| !part.is_empty())
    };
    let parts: Option<Vec<_>> = heads.iter().map(part).collect();
    parts.map(|parts| parts.join("."))
}

/// Rust's standard library: the release of the compiler that brings it.
pub(crate) fn standard_library() -> Result<String, String> {
    let words = output(Command::new("rustc").arg("-vV"))?;
    let release = words
        .lines()
        .find_map(|line| line.strip_prefix("release: "));
    release
        .map(str::to_owned)
        .ok_or_else(|| "rustc -vV names no release".to_owned())
}

/// The notices of the standard library and of what it contains, which every toolchain has; and the texts of its licences.
pub(crate) fn standard_library_notices() -> Result<[PathBuf; 4], String> {
    let sysroot = output(Command::new("rustc").args(["--print", "sysroot"]))?;
    let folder = Path::new(sysroot.trim()).join("share/doc/rust");
    Ok([
        "COPYRIGHT-library.html",
        "licenses/Apache-2.0.txt",
        "licenses/MIT.txt",
        "licenses/Unicode-3.0.txt",
    ]
    .map(|file| folder.join(file)))
}

/// The folder of Zig, whose unwinder and functions of the compiler are linked into what is handed out.
pub(crate) fn zig() -> Result<PathBuf, String> {
    let script = "import ziglang, os; print(os.path.dirname(ziglang.__file__))";
    let folder = output(Command::new("python3").args(["-c", script]))?;
    Ok(PathBuf::from(folder.trim()))
}

/// Zig's release.
pub(crate) fn zig_version() -> Result<String, String> {
    let words = output(Command::new("python3").args(["-m", "ziglang", "version"]))?;
    Ok(words.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_found_whole_or_in_parts() {
        let text = "#define V_MAJOR    1\n#define V_MINOR\t5\n#define V \"2.31.0\"\n";
        let found = |heads: &[&str]| version_in(text, heads);
        assert_eq!(found(&["#define V \""]).as_deref(), Some("2.31.0"));
        assert_eq!(found(&["V_MAJOR", "V_MINOR"]).as_deref(), Some("1.5"));
        assert_eq!(found(&["V_MAJOR", "V_PATCH"]), None);
        assert_eq!(found(&["#define V "]), None);
    }
}
