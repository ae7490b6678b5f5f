//! The product's own runs: each algorithm to `NUL` and to a file, its verification and its restore.

use std::path::Path;

use anyhow::Context;
use windlass_crypt::Identity;

use crate::Variant;

const ALGORITHMS: [&str; 6] = [
    "none",
    "ms_xpress",
    "zstd:low",
    "zstd:medium",
    "zstd:high",
    "qat_deflate",
];

pub(crate) fn variants(windlass: &Path, database: &Path, folder: &Path) -> Vec<Variant> {
    let windlass = windlass.display().to_string();
    let database = database.display().to_string();
    let restored = folder.join("restored.db").display().to_string();
    let mut variants = Vec::new();
    for algorithm in ALGORITHMS {
        let media = folder.join(format!("{}.bak", algorithm.replace(':', "-")));
        let to = media.display().to_string();
        let words = |text: &str, paths: &[&str]| command(&windlass, text, paths);
        let nul = format!("backup @ --to NUL --copy-only --compress {algorithm}");
        variants.push(Variant::new(
            format!("nul {algorithm}"),
            vec![words(&nul, &[&database])],
            None,
        ));
        let backup = format!("backup @ --to @ --format --compress {algorithm}");
        let mut backup = Variant::new(
            format!("backup {algorithm}"),
            vec![words(&backup, &[&database, &to])],
            Some(media.clone()),
        );
        backup.before = vec![command("rm", "-f @", &[&to])];
        variants.push(backup);
        variants.push(Variant::new(
            format!("verify {algorithm}"),
            vec![words("verify @", &[&to])],
            None,
        ));
        variants.push(Variant::new(
            format!("restore {algorithm}"),
            vec![words("restore @ --to @ --replace", &[&to, &restored])],
            None,
        ));
    }
    variants
}

/// What the temporary copy of a database in rollback mode costs; writers wait for the whole backup here.
pub(crate) fn without_temporary_copy(windlass: &Path, database: &Path, folder: &Path) -> Variant {
    let media = folder.join("no-temp-copy.bak");
    let paths = [database, &media].map(|path| path.display().to_string());
    let text = "backup @ --to @ --format --compress zstd:low --no-temp-copy";
    let windlass = windlass.display().to_string();
    let words = command(&windlass, text, &[&paths[0], &paths[1]]);
    let name = "backup zstd:low --no-temp-copy";
    let mut variant = Variant::new(name, vec![words], Some(media));
    variant.before = vec![command("rm", "-f @", &[&paths[1]])];
    variant
}

/// The cost of AES-256: compare with the same without encryption.
pub(crate) fn encrypted(
    windlass: &Path,
    database: &Path,
    folder: &Path,
) -> Result<Vec<Variant>, anyhow::Error> {
    let certificate = folder.join("certificate.pem");
    let pem = Identity::create("benchmark", 1)?.certificate().to_pem()?;
    std::fs::write(&certificate, pem).with_context(|| certificate.display().to_string())?;
    let paths = [database, &certificate].map(|path| path.display().to_string());
    let variant = |algorithm: &str| {
        let text = format!("backup @ --to NUL --copy-only --compress {algorithm} --encrypt-to @");
        let words = command(
            &windlass.display().to_string(),
            &text,
            &[&paths[0], &paths[1]],
        );
        Variant::new(format!("nul {algorithm}, encrypted"), vec![words], None)
    };
    Ok(["none", "zstd:low"].map(variant).into_iter().collect())
}

/// The words of a command; each `@` of the text is the next of the paths, which may have spaces.
pub(crate) fn command(program: &str, text: &str, paths: &[&str]) -> Vec<String> {
    let mut paths = paths.iter();
    let mut words = vec![program.to_owned()];
    words.extend(text.split(' ').map(|word| match word {
        "@" => paths.next().copied().unwrap_or_default().to_owned(),
        word => word.to_owned(),
    }));
    words
}
