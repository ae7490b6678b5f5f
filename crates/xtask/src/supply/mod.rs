//! The supply chain: what the artefacts are made of, checked against `deny.toml`.
//!
//! `cargo deny` reads the same file. It takes longer to build than all of Windlass, and its advisories come from the
//! network, so that `test` runs the checks here, and `cargo deny` where it is installed.

mod graph;
mod licence;
pub(crate) mod native;
pub(crate) mod notices;

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use graph::Edges;
pub(crate) use graph::{Package, is_own};

const RULES: &str = "deny.toml";

/// The workspaces, each with a lock file of its own.
const MANIFESTS: [&str; 2] = ["Cargo.toml", "fuzz/Cargo.toml"];

/// The part of `deny.toml` that is checked here. `cargo deny` refuses words that it does not know.
#[derive(Debug, Deserialize)]
struct Rules {
    graph: GraphRules,
    licenses: LicenceRules,
    bans: BanRules,
}

#[derive(Debug, Deserialize)]
struct GraphRules {
    targets: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct LicenceRules {
    allow: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct BanRules {
    skip: Vec<Skipped>,
}

#[derive(Debug, Deserialize)]
struct Skipped {
    #[serde(rename = "crate")]
    spec: String,
    reason: String,
}

#[derive(Debug, Deserialize)]
struct Manifest {
    workspace: Workspace,
}

#[derive(Debug, Deserialize)]
struct Workspace {
    metadata: WorkspaceMetadata,
}

#[derive(Debug, Deserialize)]
struct WorkspaceMetadata {
    #[serde(rename = "pre-releases")]
    pre_releases: BTreeMap<String, String>,
}

#[derive(Debug, Deserialize)]
struct Lock {
    package: Vec<Locked>,
}

#[derive(Debug, Deserialize)]
struct Locked {
    name: String,
    version: String,
    checksum: Option<String>,
}

/// Checks lock files, sources, licences, duplicates, versions without a release and the notices; then advisories.
pub(crate) fn check() -> Result<(), String> {
    let rules = rules()?;
    let mut complaints = Vec::new();
    let mut packages = Vec::new();
    for manifest in MANIFESTS {
        packages.extend(graph::packages(manifest, &rules.graph.targets)?);
    }
    for package in &packages {
        check_package(package, &rules.licenses.allow, &mut complaints);
    }
    check_sources(&packages, &mut complaints);
    let built = graph::of_artefacts(Edges::Built, &rules.graph.targets)?;
    check_duplicates(&built, &rules.bans.skip, &mut complaints);
    check_pre_releases(&built, &pre_releases()?, &mut complaints);
    if !complaints.is_empty() {
        return Err(format!("supply:\n  {}", complaints.join("\n  ")));
    }
    notices::write(true)?;
    println!("== supply: ok");
    advisories()
}

/// The packages that are linked into the artefacts, without our own, by name and version.
pub(crate) fn linked() -> Result<Vec<Package>, String> {
    let targets = rules()?.graph.targets;
    let linked = graph::of_artefacts(Edges::Linked, &targets)?;
    let mut packages: Vec<_> = graph::packages(MANIFESTS[0], &targets)?
        .into_iter()
        .filter(|package| package.source.is_some())
        .filter(|package| linked.contains(&(package.name.clone(), package.version.clone())))
        .collect();
    packages.sort_by(|a, b| (&a.name, &a.version).cmp(&(&b.name, &b.version)));
    Ok(packages)
}

/// Every package of the lock file, also those that no target compiles.
pub(crate) fn all_packages() -> Result<Vec<Package>, String> {
    graph::packages(MANIFESTS[0], &[])
}

/// What each package itself needs in the artefacts, by Cargo's ids.
pub(crate) fn needs() -> Result<BTreeMap<String, BTreeSet<String>>, String> {
    graph::needs(MANIFESTS[0], &rules()?.graph.targets)
}

/// What the registry says of each package's archive: SHA-256 by name and version.
pub(crate) fn checksums() -> Result<BTreeMap<(String, String), String>, String> {
    let locked = parsed::<Lock>("Cargo.lock")?.package.into_iter();
    Ok(locked
        .filter_map(|package| Some(((package.name, package.version), package.checksum?)))
        .collect())
}

fn rules() -> Result<Rules, String> {
    parsed(RULES)
}

fn pre_releases() -> Result<BTreeMap<String, String>, String> {
    parsed::<Manifest>(MANIFESTS[0]).map(|manifest| manifest.workspace.metadata.pre_releases)
}

fn parsed<T: serde::de::DeserializeOwned>(path: &str) -> Result<T, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
    toml::from_str(&text).map_err(|error| format!("{path}: {error}"))
}

/// All packages come from one registry.
fn check_sources(packages: &[Package], complaints: &mut Vec<String>) {
    let sources = packages
        .iter()
        .filter_map(|package| Some((package.source.as_deref()?, package)));
    let first: BTreeMap<&str, &Package> = sources.collect();
    let is_registry = |source: &&str| source.starts_with("registry+");
    if first.len() > 1 || !first.keys().all(is_registry) {
        let of =
            |(source, package): (&&str, &&Package)| format!("{} from {source}", package.spec());
        let found: Vec<_> = first.iter().map(of).collect();
        complaints.push(format!(
            "packages come from elsewhere than one registry: {}",
            found.join(", ")
        ));
    }
}

/// A package has a licence that is accepted.
fn check_package(package: &Package, accepted: &[String], complaints: &mut Vec<String>) {
    if package.source.is_none() {
        return;
    }
    let spec = package.spec();
    match &package.license {
        None => complaints.push(format!("{spec} names no licence")),
        Some(expression) => match licence::is_met(expression, accepted) {
            Ok(true) => {}
            Ok(false) => complaints.push(format!("{spec}: {RULES} does not accept {expression}")),
            Err(error) => complaints.push(format!("{spec}: {error}")),
        },
    }
}

/// A crate has one version, except those that are listed with a reason.
fn check_duplicates(
    built: &BTreeSet<(String, String)>,
    skipped: &[Skipped],
    complaints: &mut Vec<String>,
) {
    let mut versions: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (name, version) in built {
        let spec = format!("{name}@{version}");
        versions.entry(name).or_default().push(spec);
    }
    let is_skipped = |spec: &String| skipped.iter().any(|skip| skip.spec == *spec);
    for specs in versions.values() {
        let counted: Vec<_> = specs.iter().filter(|spec| !is_skipped(spec)).collect();
        if counted.len() > 1 {
            complaints.push(format!(
                "{specs:?}: several versions, and {RULES} says no reason"
            ));
        }
    }
    for skip in skipped {
        let name = skip.spec.split('@').next().unwrap_or_default();
        let found = versions.get(name).is_some_and(|specs| {
            specs.len() > 1 && specs.contains(&skip.spec) && !skip.reason.is_empty()
        });
        if !found {
            complaints.push(format!(
                "{RULES}: {} is not there twice (or has no reason): remove the line",
                skip.spec
            ));
        }
    }
}

/// A version without a release is listed with a reason.
fn check_pre_releases(
    built: &BTreeSet<(String, String)>,
    explained: &BTreeMap<String, String>,
    complaints: &mut Vec<String>,
) {
    let is_unreleased = |version: &str| version.split('+').next().unwrap_or_default().contains('-');
    let found: BTreeSet<_> = built
        .iter()
        .filter(|(_, version)| is_unreleased(version))
        .map(|(name, _)| name)
        .collect();
    for name in &found {
        if !explained.contains_key(*name) {
            complaints.push(format!(
                "{name} has no release: say why in [workspace.metadata.pre-releases] of Cargo.toml"
            ));
        }
    }
    for name in explained.keys().filter(|name| !found.contains(name)) {
        complaints.push(format!(
            "Cargo.toml: {name} is no longer a pre-release: remove the line"
        ));
    }
}

/// Lets `cargo deny` compare with the advisories, if it is there.
fn advisories() -> Result<(), String> {
    if crate::tools::is_there("cargo-deny") {
        return crate::run::step("cargo deny", "cargo", &["deny", "--locked", "check"]);
    }
    println!(
        "== WARNING: ADVISORIES WERE NOT CHECKED: cargo-deny is absent (cargo install cargo-deny --locked); the release workflow runs it"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn built(packages: &[(&str, &str)]) -> BTreeSet<(String, String)> {
        let owned = |(name, version): &(&str, &str)| ((*name).to_owned(), (*version).to_owned());
        packages.iter().map(owned).collect()
    }

    fn skip(spec: &str, reason: &str) -> Skipped {
        Skipped {
            spec: spec.to_owned(),
            reason: reason.to_owned(),
        }
    }

    #[test]
    fn a_second_version_needs_a_reason_and_a_reason_a_second_version() {
        let twice = built(&[("libc", "1.0.0"), ("libc", "2.0.0"), ("zstd", "1.0.0")]);
        let complaints = |skipped: &[Skipped]| {
            let mut complaints = Vec::new();
            check_duplicates(&twice, skipped, &mut complaints);
            complaints
        };
        assert_eq!(complaints(&[]).len(), 1);
        assert_eq!(complaints(&[skip("libc@1.0.0", "of old")]), [""; 0]);
        assert_eq!(complaints(&[skip("libc@1.0.0", "")]).len(), 1);
        let idle = [skip("libc@1.0.0", "of old"), skip("zstd@1.0.0", "of old")];
        assert!(complaints(&idle)[0].contains("zstd@1.0.0 is not there twice"));
    }

    #[test]
    fn a_version_without_a_release_needs_a_reason() {
        let graph = built(&[("cms", "0.3.0-pre.1"), ("isal-sys", "0.5.3+496255c-x")]);
        let mut complaints = Vec::new();
        check_pre_releases(&graph, &BTreeMap::new(), &mut complaints);
        assert_eq!(complaints.len(), 1, "{complaints:?}");
        let explained = ["cms", "old"].map(|name| (name.to_owned(), "why".to_owned()));
        complaints.clear();
        check_pre_releases(&graph, &explained.into(), &mut complaints);
        assert!(complaints[0].contains("old is no longer a pre-release"));
    }

    fn package(source: &str, license: Option<&str>) -> Package {
        serde_json::from_value(serde_json::json!({
            "id": "x", "name": "x", "version": "1.0.0", "license": license, "source": source,
            "manifest_path": "x/Cargo.toml",
        }))
        .unwrap()
    }

    const REGISTRY: &str = "registry+https://example.org/index";

    #[test]
    fn a_package_of_another_licence_is_refused() {
        let complaints = |license: Option<&str>| {
            let mut complaints = Vec::new();
            check_package(
                &package(REGISTRY, license),
                &["MIT".to_owned()],
                &mut complaints,
            );
            complaints.len()
        };
        assert_eq!(complaints(Some("MIT")), 0);
        assert_eq!(complaints(Some("GPL-3.0")), 1);
        assert_eq!(complaints(None), 1);
    }

    #[test]
    fn packages_come_from_one_registry() {
        let complaints = |sources: &[&str]| {
            let packages: Vec<_> = sources.iter().map(|from| package(from, None)).collect();
            let mut complaints = Vec::new();
            check_sources(&packages, &mut complaints);
            complaints.len()
        };
        let git = "git+https://example.org/x";
        let other = "registry+https://example.com/index";
        assert_eq!(complaints(&[REGISTRY, REGISTRY]), 0);
        assert_eq!(complaints(&[REGISTRY, git]), 1);
        assert_eq!(complaints(&[git]), 1);
        assert_eq!(complaints(&[REGISTRY, other]), 1);
    }
}
