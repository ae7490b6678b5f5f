//! Builds the part of ISA-L that deflates, on x86-64 if `nasm` is installed and `cargo fetch` has brought the sources: the
//! package `isal-sys` has them, unchanged, and is not compiled itself, because it needs autotools. Otherwise ISA-L is
//! loaded at run time; its portable C would be no faster than libdeflate.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The package with the sources, as `Cargo.lock` has it.
const PACKAGE: &str = "isal-sys-0.5.3+496255c";

/// In `isa-l/` of the package, without their extension.
const C: [&str; 12] = [
    "igzip/igzip",
    "igzip/hufftables_c",
    "igzip/igzip_base",
    "igzip/igzip_icf_base",
    "igzip/adler32_base",
    "igzip/flatten_ll",
    "igzip/encode_df",
    "igzip/igzip_icf_body",
    "igzip/huff_codes",
    "crc/crc_base",
    "crc/crc_base_aliases",
    "crc/crc64_base",
];

const ASSEMBLER: [&str; 18] = [
    "igzip_body",
    "igzip_finish",
    "igzip_icf_body_h1_gr_bt",
    "igzip_icf_finish",
    "rfc1951_lookup",
    "adler32_sse",
    "adler32_avx2_4",
    "igzip_multibinary",
    "igzip_update_histogram_01",
    "igzip_update_histogram_04",
    "encode_df_04",
    "encode_df_06",
    "proc_heap",
    "igzip_deflate_hash",
    "igzip_gen_icf_map_lh1_06",
    "igzip_gen_icf_map_lh1_04",
    "igzip_set_long_icf_fg_04",
    "igzip_set_long_icf_fg_06",
];

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=CARGO_HOME");
    println!("cargo:rerun-if-env-changed=PATH");
    println!("cargo:rustc-check-cfg=cfg(isal)");
    watch_assembler();
    let Some(sources) = sources() else {
        return;
    };
    let Some(objects) = assembled(&sources) else {
        return;
    };
    let built = cc::Build::new()
        .files(C.map(|file| sources.join(file).with_extension("c")))
        .includes(["include", "igzip", "crc"].map(|folder| sources.join(folder)))
        .opt_level(3)
        .warnings(false)
        .objects(objects)
        .try_compile("windlass_isal");
    match built {
        Ok(()) => println!("cargo:rustc-cfg=isal"),
        Err(error) => println!("cargo:warning=ISA-L is not built in: {error}"),
    }
}

/// Runs this script again when `nasm` changes or, where it is absent, when something is installed in a folder of the path.
fn watch_assembler() {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = env::split_paths(&path)
        .filter(|folder| folder.is_absolute() && folder.is_dir())
        .collect();
    let mut programs = folders.iter().map(|folder| folder.join("nasm"));
    let watched = match programs.find(|program| program.is_file()) {
        Some(program) => vec![program],
        None => folders,
    };
    for place in watched {
        println!("cargo:rerun-if-changed={}", place.display());
    }
}

/// ISA-L's folder of the package, among those that Cargo has unpacked.
fn sources() -> Option<PathBuf> {
    let home = env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".cargo")))?;
    let registries = std::fs::read_dir(home.join("registry/src")).ok()?;
    let mut packages = registries
        .filter_map(Result::ok)
        .map(|registry| registry.path().join(PACKAGE).join("isa-l"));
    packages.find(|folder| folder.join("igzip/igzip.c").is_file())
}

/// The objects of the assembler; `None` without `nasm` and on other processors.
fn assembled(sources: &Path) -> Option<Vec<PathBuf>> {
    let is_x86 = env::var("CARGO_CFG_TARGET_ARCH").is_ok_and(|arch| arch == "x86_64");
    let is_linux = env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux");
    if !is_x86 || !is_linux {
        return None;
    }
    let out = PathBuf::from(env::var_os("OUT_DIR")?);
    let assemble = |name: &&str| -> Option<PathBuf> {
        let object = out.join(format!("{name}.o"));
        let status = Command::new("nasm")
            .args([
                "-f",
                "elf64",
                "-DAS_FEATURE_LEVEL=10",
                "-DHAVE_AS_KNOWS_AVX512",
            ])
            // Its includes are relative to the folder of the package.
            .current_dir(sources)
            .args(["-Iinclude/", "-Iigzip/", "-o"])
            .args([&object, Path::new(&format!("igzip/{name}.asm"))])
            .status();
        status
            .is_ok_and(|status| status.success())
            .then_some(object)
    };
    ASSEMBLER.iter().map(assemble).collect()
}
