//! Builds the part of ISA-L that deflates, from `isa-l/` (see its `README.md`), on x86-64 if `nasm` is installed.
//! Without it ISA-L is loaded at run time; its portable C would be no faster than libdeflate.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// In `isa-l/`, without their extension.
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
    println!("cargo:rerun-if-changed=isa-l");
    println!("cargo:rerun-if-env-changed=PATH");
    println!("cargo:rustc-check-cfg=cfg(isal)");
    let Some(objects) = assembled() else {
        return;
    };
    let built = cc::Build::new()
        .files(C.map(|file| format!("isa-l/{file}.c")))
        .includes(["isa-l/include", "isa-l/igzip", "isa-l/crc"])
        .opt_level(3)
        .warnings(false)
        .objects(objects)
        .try_compile("windlass_isal");
    match built {
        Ok(()) => println!("cargo:rustc-cfg=isal"),
        Err(error) => println!("cargo:warning=ISA-L is not built in: {error}"),
    }
}

/// The objects of the assembler; `None` without `nasm` and on other processors.
fn assembled() -> Option<Vec<PathBuf>> {
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
            .args(["-Iisa-l/include/", "-Iisa-l/igzip/", "-o"])
            .args([&object, Path::new(&format!("isa-l/igzip/{name}.asm"))])
            .status();
        status
            .is_ok_and(|status| status.success())
            .then_some(object)
    };
    ASSEMBLER.iter().map(assemble).collect()
}
