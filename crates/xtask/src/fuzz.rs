//! Runs the fuzz targets with libFuzzer, coverage-guided, on the stable toolchain.
//!
//! The instrumentation is that of `cargo fuzz --sanitizer none`; nothing else of that program is needed.
//! Corpora grow in `fuzz/corpus` and are not committed.

use std::path::Path;
use std::process::Command;

use crate::run::execute;

const TARGETS: [&str; 13] = [
    "bak_data_file",
    "bak_file",
    "bak_xml",
    "tsql_parse",
    "tsql_flow",
    "tds_request",
    "media_family",
    "spool",
    "crypt_keys",
    "codec_decode",
    "codec_round_trip",
    "codec_widen",
    "codec_pages",
];

const INSTRUMENTATION: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1 --cfg fuzzing";

/// The target folder of fuzz builds, whatever the environment sets for others.
const TARGET_FOLDER: &str = "fuzz/target";

/// Builds all targets and runs each, or only `target`, for `seconds`.
pub(crate) fn run(seconds: u32, target: Option<&str>) -> Result<(), String> {
    if let Some(name) = target
        && !TARGETS.contains(&name)
    {
        return Err(format!(
            "there is no fuzz target '{name}', only {}",
            TARGETS.join(", ")
        ));
    }
    let host = host_triple()?;
    let mut build = Command::new("cargo");
    build.args([
        "build",
        "--quiet",
        "--release",
        "--manifest-path",
        "fuzz/Cargo.toml",
        "--target-dir",
        TARGET_FOLDER,
        "--target",
        &host,
    ]);
    execute("fuzz targets", build.env("RUSTFLAGS", INSTRUMENTATION))?;
    for name in TARGETS
        .into_iter()
        .filter(|name| target.is_none_or(|wanted| wanted == *name))
    {
        run_target(name, &host, seconds)?;
    }
    Ok(())
}

fn run_target(name: &str, host: &str, seconds: u32) -> Result<(), String> {
    let corpus = Path::new("fuzz/corpus").join(name);
    let artifacts = Path::new("fuzz/artifacts").join(name);
    for folder in [&corpus, &artifacts] {
        std::fs::create_dir_all(folder)
            .map_err(|error| format!("{}: {error}", folder.display()))?;
    }
    if name == "bak_file" {
        backup_seeds(&corpus)?;
    }
    let mut command = Command::new(format!("{TARGET_FOLDER}/{host}/release/{name}"));
    command.arg(&corpus).args(
        SEEDS
            .iter()
            .filter(|seeds| seeds.0 == name)
            .map(|seeds| seeds.1),
    );
    command.args([
        format!("-max_total_time={seconds}"),
        format!("-artifact_prefix={}/", artifacts.display()),
    ]);
    let budget = BUDGETS.iter().find(|budget| budget.target == name);
    command.args(budget.unwrap_or(&BUDGET).arguments());
    command.args(["-verbosity=0", "-print_final_stats=1"]);
    let output = command
        .output()
        .map_err(|error| format!("fuzz {name}: {error}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return Err(format!("fuzz {name}: {}\n{said}", output.status));
    }
    let runs = said
        .lines()
        .find_map(|line| line.strip_prefix("stat::number_of_executed_units: "));
    println!(
        "== fuzz {name}: ok, {} runs in {seconds} s",
        runs.unwrap_or("0")
    );
    Ok(())
}

/// Puts the starts of real SQL Server backups into a corpus, in each of the ways that `bak_file` reads: its first byte
/// says which. They are not in the repository: without them the fuzzer begins with nothing, and says so.
fn backup_seeds(corpus: &Path) -> Result<(), String> {
    /// Longer inputs make a fuzzer slow.
    const SEED_BYTES: usize = 48 << 10;
    let shared = std::env::var_os("WINDLASS_SHARED").unwrap_or_else(|| "../shared".into());
    let folder = Path::new(&shared).join("data/bak");
    let Ok(entries) = std::fs::read_dir(&folder) else {
        println!("== fuzz bak_file: no real backups in {}", folder.display());
        return Ok(());
    };
    for (number, entry) in entries.flatten().enumerate() {
        let bytes = std::fs::read(entry.path()).map_err(|error| error.to_string())?;
        let log = bytes.windows(4).position(|found| found == b"MQTL");
        let starts = [
            (vec![0], Some(0)),
            (vec![1], Some(0)),
            (vec![2], Some(0)),
            // The length of the pieces that the log is read in.
            (vec![5, 0, 8], log.map(|at| at + 24)),
        ];
        for (mode, at) in starts {
            let Some(rest) = at.and_then(|at| bytes.get(at..)) else {
                continue;
            };
            let path = corpus.join(format!("seed-{}-{number}", mode.first().unwrap_or(&0)));
            let seed = [&mode[..], rest.get(..SEED_BYTES).unwrap_or(rest)].concat();
            std::fs::write(&path, seed).map_err(|error| format!("{}: {error}", path.display()))?;
        }
    }
    Ok(())
}

/// Limits for one input; exceeding one is a finding.
struct Budget {
    target: &'static str,
    seconds: u32,
    /// Memory of the whole process, and of one allocation.
    memory_mb: [u32; 2],
}

impl Budget {
    fn arguments(&self) -> [String; 3] {
        let [process, allocation] = self.memory_mb;
        [
            format!("-timeout={}", self.seconds),
            format!("-rss_limit_mb={process}"),
            format!("-malloc_limit_mb={allocation}"),
        ]
    }
}

const BUDGET: Budget = Budget {
    target: "",
    seconds: 20,
    memory_mb: [2048, 512],
};

/// Targets with lower limits. `media_family` itself counts the bytes read.
const BUDGETS: [Budget; 2] = [
    Budget {
        target: "media_family",
        seconds: 5,
        memory_mb: [512, 32],
    },
    Budget {
        target: "spool",
        seconds: 5,
        memory_mb: [512, 32],
    },
];

/// Folders with initial input.
const SEEDS: [(&str, &str); 5] = [
    ("tsql_flow", "crates/instance/src/tsql/fuzz_seeds"),
    ("media_family", "crates/media/tests/golden"),
    ("media_family", "crates/media/tests/seeds"),
    ("spool", "crates/source/src/sqlite/spool/golden"),
    ("crypt_keys", "crates/crypt/src/testdata"),
];

fn host_triple() -> Result<String, String> {
    let output = Command::new("rustc")
        .arg("-vV")
        .output()
        .map_err(|error| format!("rustc: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().find_map(|line| line.strip_prefix("host: "));
    line.map(str::to_owned)
        .ok_or_else(|| "rustc -vV names no host".to_owned())
}
