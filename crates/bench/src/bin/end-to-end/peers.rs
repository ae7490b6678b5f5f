//! Common tools on the same database, as far as they are installed.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::Variant;
use crate::ours::command;

/// What writes its result without a sync is followed by one, as Windlass's own runs are.
pub(crate) fn variants(database: &Path, folder: &Path) -> Vec<Variant> {
    let database = database.display().to_string();
    let mut variants = Vec::new();
    let has_zstd = is_installed("zstd", "--version");
    if is_installed("sqlite3", "--version") {
        variants.extend(by_sqlite(&database, folder, has_zstd));
    }
    if has_zstd {
        variants.extend([1, 3].map(|level| of_the_file(&database, folder, level)));
    }
    if is_installed("restic", "version") {
        variants.push(restic(&database, folder));
    }
    variants
}

fn by_sqlite(database: &str, folder: &Path, has_zstd: bool) -> Vec<Variant> {
    let copy = folder.join("peer.db");
    let path = copy.display().to_string();
    let remove = command("rm", "-f @", &[&path]);
    let backup = command("sqlite3", "@ @", &[database, &format!(".backup '{path}'")]);
    let vacuum = command(
        "sqlite3",
        "@ @",
        &[database, &format!("VACUUM INTO '{path}'")],
    );
    let mut variants = vec![
        Variant::new(
            "peer sqlite3 .backup",
            vec![backup.clone()],
            Some(copy.clone()),
        ),
        Variant::new("peer VACUUM INTO", vec![vacuum], Some(copy)),
    ];
    if has_zstd {
        variants.extend([1, 3].map(|level| {
            let packed = folder.join(format!("peer-{level}.db.zst"));
            let mut commands = vec![backup.clone()];
            commands.extend(compressed(&path, &packed, level));
            let name = format!("peer .backup + zstd -T0 -{level}");
            Variant::new(name, commands, Some(packed))
        }));
    }
    for variant in &mut variants {
        variant.before = vec![remove.clone()];
    }
    variants
}

/// A plain copy of the file, which is torn if somebody writes meanwhile.
fn of_the_file(database: &str, folder: &Path, level: u8) -> Variant {
    let packed = folder.join(format!("direct-{level}.zst"));
    let commands = compressed(database, &packed, level);
    let name = format!("peer zstd -T0 -{level} of the file");
    Variant::new(name, commands, Some(packed))
}

fn compressed(from: &str, to: &Path, level: u8) -> Vec<Vec<String>> {
    let to = to.display().to_string();
    let zstd = format!("-q -f -T0 -{level} @ -o @");
    vec![
        command("zstd", &zstd, &[from, &to]),
        command("sync", "@", &[&to]),
    ]
}

/// The first backup to an empty repository: deduplicated, compressed and encrypted.
fn restic(database: &str, folder: &Path) -> Variant {
    let repository = folder.join("restic");
    let path = repository.display().to_string();
    let restic = |text: &str, paths: &[&str]| {
        let mut words = command("env", "RESTIC_PASSWORD=benchmark restic -q -r @", &[&path]);
        words.extend(command("", text, paths).into_iter().skip(1));
        words
    };
    let backup = restic("backup --no-cache @", &[database]);
    let sync = command("sync", "-f @", &[&path]);
    let mut variant = Variant::new("peer restic", vec![backup, sync], Some(repository.clone()));
    variant.before = vec![command("rm", "-rf @", &[&path]), restic("init", &[])];
    variant
}

fn is_installed(program: &str, question: &str) -> bool {
    let mut version = Command::new(program);
    version
        .arg(question)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let found = version.status().is_ok_and(|status| status.success());
    if !found {
        println!("SKIPPED: {program} is not installed");
    }
    found
}
