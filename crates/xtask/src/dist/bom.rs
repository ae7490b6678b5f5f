//! The bill of materials: every package and library that is linked, in `CycloneDX`'s JSON.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write as _;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::Release;
use crate::run::output;
use crate::supply::native::{LIBRARIES, standard_library, zig_version};
use crate::supply::{self, Package};

/// The components, and what needs what.
#[derive(Default)]
struct Materials {
    components: Vec<Value>,
    /// References of components, by the one that needs them.
    needs: BTreeMap<String, BTreeSet<String>>,
    /// The reference of Windlass itself.
    root: String,
}

/// Writes `windlass-VERSION.cdx.json`.
pub(super) fn make(release: &Release) -> Result<(), String> {
    let mut materials = Materials {
        root: format!("pkg:generic/windlass@{}", release.version),
        ..Materials::default()
    };
    materials
        .needs
        .insert(materials.root.clone(), BTreeSet::new());
    materials.packages()?;
    materials.libraries()?;
    materials.compilers(release)?;
    materials.check()?;
    let path = release
        .out
        .join(format!("windlass-{}.cdx.json", release.version));
    let text = serde_json::to_string_pretty(&document(release, &materials)?)
        .map_err(|error| error.to_string())?;
    fs::write(&path, text + "\n").map_err(|error| format!("{}: {error}", path.display()))
}

impl Materials {
    fn add(&mut self, reference: &str, component: Value) {
        self.needs.entry(reference.to_owned()).or_default();
        self.components.push(component);
    }

    fn need(&mut self, user: &str, needed: &str) {
        let needs = self.needs.entry(user.to_owned()).or_default();
        needs.insert(needed.to_owned());
    }

    /// Each component is there once and needed by something, and nothing else is needed.
    fn check(&self) -> Result<(), String> {
        let mut named = BTreeSet::new();
        for component in &self.components {
            let name = component["bom-ref"].as_str().unwrap_or_default();
            if !named.insert(name) {
                return Err(format!("bill of materials: {name} is there twice"));
            }
        }
        let needed: BTreeSet<_> = self.needs.values().flatten().map(String::as_str).collect();
        if let Some(idle) = named.difference(&needed).next() {
            return Err(format!("bill of materials: nothing needs {idle}"));
        }
        match needed.difference(&named).next() {
            None => Ok(()),
            Some(absent) => Err(format!("bill of materials: {absent} is needed and absent")),
        }
    }

    /// The packages of the registry. What any of our own crates needs, Windlass needs.
    fn packages(&mut self) -> Result<(), String> {
        let linked = supply::linked()?;
        let sums = supply::checksums()?;
        for package in &linked {
            let reference = reference(package);
            let mut component = json!({
                "type": "library",
                "bom-ref": reference,
                "name": package.name,
                "version": package.version,
                "purl": reference,
                // The old form has a slash between alternatives, which is none of SPDX.
                "licenses": [{"expression": package.license.as_deref().unwrap_or("NOASSERTION").replace('/', " OR ")}],
            });
            if let Some(sum) = sums.get(&(package.name.clone(), package.version.clone())) {
                component["hashes"] = json!([{"alg": "SHA-256", "content": sum}]);
            }
            self.add(&reference, component);
        }
        let by_id: BTreeMap<&str, &Package> = linked
            .iter()
            .map(|package| (package.id.as_str(), package))
            .collect();
        for (user, needed) in supply::needs()? {
            let user = match by_id.get(user.as_str()) {
                Some(package) => reference(package),
                None if supply::is_own(&user) => self.root.clone(),
                None => continue,
            };
            for id in needed {
                if let Some(package) = by_id.get(id.as_str()) {
                    self.need(&user, &reference(package));
                }
            }
        }
        Ok(())
    }

    /// The libraries in C that the packages bring along, with versions of their own.
    fn libraries(&mut self) -> Result<(), String> {
        let all = supply::all_packages()?;
        for library in &LIBRARIES {
            let package = library.package(&all)?;
            let version = library.version(package)?;
            let purl = format!("{}{version}", library.purl);
            let mut component = json!({
                "type": "library",
                "bom-ref": purl,
                "name": library.name,
                "version": version,
                "purl": purl,
                "licenses": [{"expression": library.spdx}],
                "description": format!("sources: {}", package.spec()),
            });
            if let Some(product) = library.cpe {
                component["cpe"] = json!(format!("cpe:2.3:a:{product}:{version}:*:*:*:*:*:*:*"));
            }
            self.add(&purl, component);
            let user = match self.needs.contains_key(&reference(package)) {
                true => reference(package),
                // Compiled by a crate of ours.
                false => self.root.clone(),
            };
            self.need(&user, &purl);
        }
        Ok(())
    }

    /// What the compilers link in.
    fn compilers(&mut self, release: &Release) -> Result<(), String> {
        let rust = (
            "Rust's standard library",
            "rust",
            standard_library()?,
            "MIT OR Apache-2.0",
        );
        let mut found = vec![rust];
        if !release.is_rehearsal {
            let licence = "MIT AND Apache-2.0 WITH LLVM-exception";
            found.push((
                "Zig's compiler-rt and LLVM's libunwind",
                "zig",
                zig_version()?,
                licence,
            ));
        }
        for (name, short, version, licence) in found {
            let purl = format!("pkg:generic/{short}@{version}");
            let component = json!({
                "type": "library",
                "bom-ref": purl,
                "name": name,
                "version": version,
                "purl": purl,
                "licenses": [{"expression": licence}],
            });
            self.add(&purl, component);
            let root = self.root.clone();
            self.need(&root, &purl);
        }
        Ok(())
    }
}

/// The package's URL, in which a plus would be a space.
fn reference(package: &Package) -> String {
    let version = package.version.replace('+', "%2B");
    format!("pkg:cargo/{}@{version}", package.name)
}

fn document(release: &Release, materials: &Materials) -> Result<Value, String> {
    let needs: Vec<_> = materials
        .needs
        .iter()
        .map(|(user, needed)| json!({"ref": user, "dependsOn": needed}))
        .collect();
    let components = json!(materials.components);
    let seconds = format!("@{}", release.epoch);
    let moment = output(Command::new("date").args(["-u", "-d", &seconds, "+%Y-%m-%dT%H:%M:%SZ"]))?;
    Ok(json!({
        "$schema": "http://cyclonedx.org/schema/bom-1.5.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": serial(&format!("{}{components}{needs:?}", release.version))?,
        "version": 1,
        "metadata": {
            "timestamp": moment.trim(),
            "lifecycles": [{"phase": "build"}],
            "tools": {"components": [{
                "type": "application",
                "name": "cargo xtask dist",
                "version": release.version,
            }]},
            "component": {
                "type": "application",
                "bom-ref": materials.root,
                "name": "windlass",
                "version": release.version,
                "purl": materials.root,
                "licenses": [{"expression": "MIT OR Apache-2.0"}],
            }
        },
        "components": components,
        "dependencies": needs,
    }))
}

/// A UUID of version 8 from the content: the same materials have the same one.
fn serial(content: &str) -> Result<String, String> {
    let failed = |error: std::io::Error| format!("sha256sum: {error}");
    let mut child = Command::new("sha256sum")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    if let Some(mut input) = child.stdin.take() {
        input.write_all(content.as_bytes()).map_err(failed)?;
    }
    let answer = child.wait_with_output().map_err(failed)?;
    let sum = String::from_utf8_lossy(&answer.stdout).into_owned();
    uuid(&sum).ok_or_else(|| format!("sha256sum printed '{sum}'"))
}

fn uuid(sum: &str) -> Option<String> {
    let part = |from, to| sum.get(from..to);
    Some(format!(
        "urn:uuid:{}-{}-8{}-8{}-{}",
        part(0, 8)?,
        part(8, 12)?,
        part(12, 15)?,
        part(15, 18)?,
        part(18, 30)?
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_serial_number_follows_the_content() {
        let one = serial("one").unwrap();
        assert_eq!(one, "urn:uuid:7692c3ad-3540-8bb8-803c-020b3aee66cd");
        assert_ne!(one, serial("two").unwrap());
    }

    #[test]
    fn every_material_is_needed_and_every_need_is_a_material() {
        let mut materials = Materials {
            root: "root".to_owned(),
            ..Materials::default()
        };
        let complaint = |materials: &Materials| materials.check().unwrap_err();
        materials.components.push(json!({"bom-ref": "a"}));
        materials.add("a", json!({"bom-ref": "a"}));
        assert!(complaint(&materials).contains("a is there twice"));
        materials.components.pop();
        assert!(complaint(&materials).contains("nothing needs a"));
        materials.need("root", "a");
        assert_eq!(materials.check(), Ok(()));
        materials.need("a", "b");
        assert!(complaint(&materials).contains("b is needed and absent"));
    }
}
