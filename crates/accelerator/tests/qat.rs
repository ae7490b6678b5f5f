//! The device code, tested with a stand-in library with the binary interface of `libqatzip`.
//!
//! Environment variables select the stand-in's failures, so every case is a separate process: the
//! test runs itself again with one case.
#![expect(clippy::unwrap_used, reason = "what cannot be set up fails its test")]

use std::path::PathBuf;
use std::process::Command;
use std::sync::{Arc, OnceLock};

use windlass_accelerator::{Accelerator, Offload, QatProblem, Status};
use windlass_codec::{Compression, Decoder, Encoder, Stored};

/// The stand-in, built once.
fn stand_in() -> &'static PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/stand-in/lib.rs");
        let name = format!("libqatzip-stand-in-{}.so", std::process::id());
        let library = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        let compiler = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        let built = Command::new(compiler)
            .args([
                "--edition",
                "2024",
                "--crate-type",
                "cdylib",
                "--crate-name",
                "qatzip",
            ])
            .args(["-Copt-level=1", "-Anon_snake_case", "-o"])
            .args([library.as_os_str(), source.as_ref()])
            .status();
        assert!(built.unwrap().success(), "the stand-in does not compile");
        library
    })
}

/// Runs `case` of this program in a separate process, with the requested failures.
fn run(case: &str, asked: &str) {
    let ran = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            &format!("case::{case}"),
            "--ignored",
            "--nocapture",
        ])
        .env("WINDLASS_STAND_IN", asked)
        .env("STAND_IN_LIBRARY", stand_in())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&ran.stdout);
    assert!(
        ran.status.success(),
        "{text}{}",
        String::from_utf8_lossy(&ran.stderr)
    );
    assert!(text.contains("1 passed"), "{case} did not run: {text}");
}

#[test]
fn a_device_compresses_and_the_status_says_so() {
    let count = tempfile::NamedTempFile::new().unwrap();
    run("hardware", &format!("count={}", count.path().display()));
    let chunks = std::fs::read_to_string(count.path()).unwrap();
    assert_eq!(chunks.lines().filter(|line| *line == "300000").count(), 5);
}

#[test]
fn a_device_that_fails_in_the_middle_is_replaced_by_software() {
    run("failing", "fail_after=3");
    run("failing_without_isal", "fail_after=3");
}

#[test]
fn a_device_that_writes_nonsense_is_not_used() {
    run("incompatible", "garbage_after=0");
}

#[test]
fn without_a_device_software_does_it_and_the_status_tells_why() {
    run("no_device", "init=-101");
    run("not_started", "init=-104");
    run("no_session", "setup=-2");
}

#[test]
fn without_the_library_software_does_it() {
    let accelerator = Arc::new(Accelerator::detect(Some(
        "/nonexistent/libqatzip.so".as_ref(),
    )));
    assert_eq!(accelerator.problem(), Some(QatProblem::LibraryNotFound));
    compresses(&accelerator, 3);
    assert_eq!(
        reason(&accelerator),
        ("SOFTWARE", "SOFTWARE_MODE_ACCELERATOR_HARDWARE_NOT_FOUND")
    );
}

fn reason(accelerator: &Accelerator) -> (&'static str, &'static str) {
    let status = Status::of(accelerator, Offload::Automatic);
    (status.mode_desc, status.mode_reason_desc)
}

/// Compresses chunks of 300,000 bytes and expands each again.
fn compresses(accelerator: &Arc<Accelerator>, chunks: usize) {
    let provider = accelerator.provider(Offload::Automatic);
    let mut encoder =
        Encoder::with_provider(Compression::QAT_DEFLATE, 1 << 20, Some(&*provider)).unwrap();
    let mut decoder = Decoder::new();
    for chunk in 0..chunks {
        let input: Vec<u8> = (0..300_000)
            .map(|at| (at / 50 * (chunk + 1)) as u8)
            .collect();
        let mut output = vec![0; input.len()];
        let Stored::Compressed { bytes, filter } = encoder.encode(&input, &mut output).unwrap()
        else {
            panic!("chunk {chunk} did not shrink");
        };
        let mut expanded = vec![0; input.len()];
        let algorithm = Compression::QAT_DEFLATE.algorithm;
        decoder
            .decode(algorithm, filter, &output[..bytes], &mut expanded)
            .unwrap();
        assert!(expanded == input, "chunk {chunk}");
    }
}

/// What runs in a separate process.
mod case {
    use super::*;

    fn detect() -> Arc<Accelerator> {
        let library = std::env::var_os("STAND_IN_LIBRARY").expect("run by another test");
        Arc::new(Accelerator::detect(Some(library.as_ref())))
    }

    #[test]
    #[ignore = "run by another test"]
    fn hardware() {
        let accelerator = detect();
        compresses(&accelerator, 5);
        assert_eq!(
            reason(&accelerator),
            ("HARDWARE", "HARDWARE_MODE_ENTERPRISE_SKU")
        );
        let status = Status::of(&accelerator, Offload::Automatic);
        assert_eq!(status.accelerator_hardware_detected, 1);
        assert_eq!(status.accelerator_library_version.as_deref(), Some("1.3.2"));
        assert_eq!(status.accelerator_driver_version.as_deref(), Some("4.3.2"));
        let forced = Status::of(&accelerator, Offload::SoftwareOnly);
        assert_eq!(
            forced.mode_reason_desc,
            "SOFTWARE_MODE_SOFTWARE_FORCE_OVERRIDE"
        );
    }

    #[test]
    #[ignore = "run by another test"]
    fn failing() {
        let accelerator = detect();
        compresses(&accelerator, 6);
        assert_eq!(
            accelerator.failure(),
            Some((QatProblem::DeviceFailed(-2), 1))
        );
        assert_eq!(
            reason(&accelerator),
            ("SOFTWARE", "SOFTWARE_MODE_ACCELERATOR_SESSION_FAILED")
        );
    }

    #[test]
    #[ignore = "run by another test"]
    fn failing_without_isal() {
        let library = std::env::var_os("STAND_IN_LIBRARY").expect("run by another test");
        let accelerator = Arc::new(Accelerator::detect_without_isal(Some(library.as_ref())));
        compresses(&accelerator, 6);
        assert_eq!(accelerator.software(), "libdeflate");
        assert_eq!(
            accelerator.failure(),
            Some((QatProblem::DeviceFailed(-2), 1))
        );
    }

    #[test]
    #[ignore = "run by another test"]
    fn incompatible() {
        let accelerator = detect();
        assert_eq!(accelerator.problem(), Some(QatProblem::Incompatible));
        compresses(&accelerator, 3);
    }

    #[test]
    #[ignore = "run by another test"]
    fn no_device() {
        let accelerator = detect();
        assert_eq!(accelerator.problem(), Some(QatProblem::NoDevice));
        compresses(&accelerator, 3);
    }

    #[test]
    #[ignore = "run by another test"]
    fn not_started() {
        assert_eq!(detect().problem(), Some(QatProblem::StartFailed(-104)));
        assert_eq!(
            reason(&detect()).1,
            "SOFTWARE_MODE_ACCELERATOR_INITIALIZATION_FAILED"
        );
    }

    #[test]
    #[ignore = "run by another test"]
    fn no_session() {
        assert_eq!(detect().problem(), Some(QatProblem::SessionFailed(-2)));
    }
}
