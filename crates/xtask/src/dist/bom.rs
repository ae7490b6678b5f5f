//! The bill of materials: every package that is linked, in `CycloneDX`'s JSON.

use std::fs;

use serde_json::json;

use super::Release;
use crate::supply;

/// Writes `windlass-VERSION.cdx.json`.
pub(super) fn make(release: &Release) -> Result<(), String> {
    let packages = supply::linked()?;
    let components: Vec<_> = packages
        .iter()
        .map(|package| {
            let url = format!("pkg:cargo/{}@{}", package.name, package.version);
            json!({
                "type": "library",
                "bom-ref": url,
                "name": package.name,
                "version": package.version,
                "purl": url,
                // The old form has a slash between alternatives, which is none of SPDX.
                "licenses": [{"expression": package.license.as_deref().unwrap_or("NOASSERTION").replace('/', " OR ")}],
            })
        })
        .collect();
    let document = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "name": "windlass",
                "version": release.version,
                "licenses": [{"expression": "MIT OR Apache-2.0"}],
            }
        },
        "components": components,
    });
    let path = release
        .out
        .join(format!("windlass-{}.cdx.json", release.version));
    let text = serde_json::to_string_pretty(&document).map_err(|error| error.to_string())?;
    fs::write(&path, text + "\n").map_err(|error| format!("{}: {error}", path.display()))
}
