//! Programs of others that Windlass is tested with, drivers and object stores: installed by their package managers below
//! `target/clients`, once for each version.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::run;

const PYMSSQL: &str = "pymssql==2.4.6";
const MSSQL_PYTHON: &str = "mssql-python==1.16.0";
/// Not a driver: it reads the Parquet files of the tests.
const PYARROW: &str = "pyarrow==26.0.1";
const TEDIOUS: &str = "tedious@19.2.2";
const JDBC: &str = "mssql-jdbc-13.6.2.jre11.jar";
const JDBC_ARTIFACT: &str = "com.microsoft.sqlserver:mssql-jdbc:13.6.2.jre11";
/// A store of Azure's kind.
const AZURITE: &str = "azurite@3.35.0";
/// A store of the S3 kind.
const VERSITYGW: &str = "github.com/versity/versitygw/cmd/versitygw@v1.8.0";
/// A bad network.
const TOXIPROXY: &str = "github.com/Shopify/toxiproxy/v2/cmd/server@v2.12.0";
const GO_SOURCE: &str = "crates/cli/tests/clients/go";
const RUST_SOURCE: &str = "crates/cli/tests/clients/tiberius";

/// Installs the drivers of a language.
type Install = fn() -> Result<(), String>;

/// Installs what is missing. What cannot be installed is named: its test then fails under `CI`, and is skipped
/// elsewhere.
pub(crate) fn install() {
    let folder = Path::new("target/clients");
    if let Err(error) = fs::create_dir_all(folder) {
        println!("== {}: {error}", folder.display());
        return;
    }
    // What is compiled here is compiled again when it changes.
    let source = |path: String| fs::read_to_string(path).unwrap_or_default();
    let (go_source, rust_source) = (
        source(format!("{GO_SOURCE}/client.go")),
        source(format!("{RUST_SOURCE}/src/main.rs")),
    );
    let python_packages = [PYMSSQL, MSSQL_PYTHON, PYARROW].join(" ");
    let steps: [(&str, &str, Install); 8] = [
        ("python", &python_packages, python),
        ("node", TEDIOUS, node),
        ("java", JDBC, java),
        ("go", &go_source, go),
        ("rust", &rust_source, rust),
        ("versitygw", VERSITYGW, versitygw),
        ("toxiproxy", TOXIPROXY, toxiproxy),
        ("azurite", AZURITE, azurite),
    ];
    for (name, version, install) in steps {
        let mark = folder.join(format!("{name}.installed"));
        let is_there = fs::read_to_string(&mark).is_ok_and(|found| found == version);
        if is_there {
            continue;
        }
        let outcome = install().and_then(|()| {
            fs::write(&mark, version).map_err(|error| format!("{}: {error}", mark.display()))
        });
        if let Err(error) = outcome {
            println!("== {name} could not be installed: {error}");
        }
    }
}

fn python() -> Result<(), String> {
    let (place, pip) = ("target/clients/python", "target/clients/python/bin/pip");
    run::step("python", "python3", &["-m", "venv", place])?;
    run::step(
        "drivers for Python",
        pip,
        &["install", "--quiet", PYMSSQL, MSSQL_PYTHON, PYARROW],
    )
}

fn node() -> Result<(), String> {
    npm("driver for Node.js", "target/clients/node", TEDIOUS)
}

fn azurite() -> Result<(), String> {
    npm("Azurite", "target/clients/azurite", AZURITE)
}

fn npm(step: &str, folder: &str, package: &str) -> Result<(), String> {
    let arguments = ["install", "--silent", "--no-save", "--prefix"];
    run::step(step, "npm", &[&arguments[..], &[folder, package]].concat())
}

fn java() -> Result<(), String> {
    let artifact = format!("-Dartifact={JDBC_ARTIFACT}");
    let arguments = [
        "--quiet",
        "--batch-mode",
        "dependency:copy",
        &artifact,
        "-DoutputDirectory=target/clients",
    ];
    run::step("driver for Java", "mvn", &arguments)
}

fn go() -> Result<(), String> {
    let mut build = Command::new("go");
    build
        .args([
            "build",
            "-o",
            "../../../../../target/clients/go-client",
            ".",
        ])
        .current_dir(GO_SOURCE);
    run::execute("driver for Go", &mut build)
}

fn versitygw() -> Result<(), String> {
    go_install("versitygw", VERSITYGW, Path::new("target/clients"))
}

/// The program is called `server`, as its folder is.
fn toxiproxy() -> Result<(), String> {
    let folder = Path::new("target/clients/toxiproxy-go");
    go_install("toxiproxy", TOXIPROXY, folder)?;
    let renamed = fs::rename(folder.join("server"), "target/clients/toxiproxy");
    renamed.map_err(|error| format!("{}: {error}", folder.display()))
}

fn go_install(step: &str, package: &str, folder: &Path) -> Result<(), String> {
    let folder = std::path::absolute(folder).map_err(|error| error.to_string())?;
    let mut install = Command::new("go");
    install.args(["install", package]).env("GOBIN", folder);
    run::execute(step, &mut install)
}

/// A project of its own, because a development dependency would be in Windlass' own lock file.
fn rust() -> Result<(), String> {
    let mut build = Command::new("cargo");
    build
        .args([
            "build",
            "--locked",
            "--quiet",
            "--target-dir",
            "../../../../../target/clients/rust",
        ])
        .current_dir(RUST_SOURCE);
    run::execute("driver for Rust", &mut build)
}
