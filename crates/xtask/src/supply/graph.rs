//! The packages that Cargo resolves, as `cargo metadata` and `cargo tree` tell.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

use crate::run::output;

/// The programs and libraries that are handed out.
const ARTEFACTS: [&str; 4] = ["--package", "windlass", "--package", "windlass-extension"];

/// A package of the graph.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Package {
    /// Cargo's own name for it.
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) license: Option<String>,
    /// `None` for our own.
    pub(crate) source: Option<String>,
    manifest_path: PathBuf,
}

impl Package {
    /// As `deny.toml` and `cargo` write it.
    pub(crate) fn spec(&self) -> String {
        format!("{}@{}", self.name, self.version)
    }

    pub(crate) fn folder(&self) -> &Path {
        self.manifest_path.parent().unwrap_or(&self.manifest_path)
    }
}

#[derive(Debug, Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    resolve: Resolve,
}

#[derive(Debug, Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

/// A package, and what it needs.
#[derive(Debug, Deserialize)]
struct Node {
    id: String,
    deps: Vec<Need>,
}

#[derive(Debug, Deserialize)]
struct Need {
    pkg: String,
    dep_kinds: Vec<Kind>,
}

/// `kind` is absent for what the package itself uses, in contrast to its tests and its build script.
#[derive(Debug, Deserialize)]
struct Kind {
    kind: Option<String>,
}

/// Which edges of the graph to follow.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Edges {
    /// What becomes part of the artefacts.
    Linked,
    /// Also what runs while they are built.
    Built,
}

/// All packages that the workspace of `manifest` needs on the targets. Fails if its lock file is not current.
pub(crate) fn packages(manifest: &str, targets: &[String]) -> Result<Vec<Package>, String> {
    metadata(manifest, targets).map(|metadata| metadata.packages)
}

/// The packages that each package itself needs on the targets, by their ids.
pub(crate) fn needs(
    manifest: &str,
    targets: &[String],
) -> Result<BTreeMap<String, BTreeSet<String>>, String> {
    let is_used = |need: &Need| need.dep_kinds.iter().any(|kind| kind.kind.is_none());
    let used = |node: Node| {
        let needs = node.deps.into_iter().filter(is_used).map(|need| need.pkg);
        (node.id, needs.collect())
    };
    let nodes = metadata(manifest, targets)?.resolve.nodes;
    Ok(nodes.into_iter().map(used).collect())
}

/// Whether an id is that of a crate of this repository.
pub(crate) fn is_own(id: &str) -> bool {
    id.starts_with("path+")
}

fn metadata(manifest: &str, targets: &[String]) -> Result<Metadata, String> {
    let mut command = Command::new("cargo");
    command.args(["metadata", "--format-version", "1", "--locked"]);
    command.args(["--manifest-path", manifest]);
    for target in targets {
        command.args(["--filter-platform", target]);
    }
    let text = output(&mut command)?;
    serde_json::from_str(&text).map_err(|error| format!("cargo metadata: {error}"))
}

/// The names and versions of the packages that the artefacts need on any of the targets.
pub(crate) fn of_artefacts(
    edges: Edges,
    targets: &[String],
) -> Result<BTreeSet<(String, String)>, String> {
    let edges = match edges {
        Edges::Linked => "normal,no-proc-macro",
        Edges::Built => "normal,build",
    };
    let mut found = BTreeSet::new();
    for target in targets {
        let mut command = Command::new("cargo");
        command.args(["tree", "--locked", "--prefix", "none", "--format", "{p}"]);
        command.args(ARTEFACTS);
        command.args(["--edges", edges, "--target", target]);
        found.extend(output(&mut command)?.lines().filter_map(tree_line));
    }
    Ok(found)
}

/// Name and version in a line of `cargo tree`: `libc v0.2.1 (*)`.
fn tree_line(line: &str) -> Option<(String, String)> {
    let mut words = line.split_whitespace();
    let name = words.next()?;
    let version = words.next()?.strip_prefix('v')?;
    Some((name.to_owned(), version.to_owned()))
}
