//! A database of 2 MB: the cost of a backup before the first page is read and after the last.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use windlass_bench::median;

const BYTES: u64 = 2 << 20;

/// Backs it up and copies it alternately, timing whole processes, and prints the medians.
pub(crate) fn measure(windlass: &Path, folder: &Path, rounds: usize) -> Result<(), String> {
    let database = folder.join("small.db");
    make(&database).map_err(|error| error.to_string())?;
    let text = |name: &str| folder.join(name).display().to_string();
    let (source, backup, copy) = (text("small.db"), text("small.bak"), text("small.copy"));
    let quoted = |path: &str| path.replace('\'', "'\\''");
    let script = format!(
        "cp '{0}' '{1}' && sync '{1}'",
        quoted(&source),
        quoted(&copy)
    );
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        for file in [&backup, &copy] {
            drop(std::fs::remove_file(file));
        }
        let words = ["backup", &source, "--to", &backup];
        ours.push(seconds(Command::new(windlass).args(words))?);
        theirs.push(seconds(Command::new("sh").args(["-c", &script]))?);
    }
    let (ours, theirs) = (median(ours) * 1e3, median(theirs) * 1e3);
    println!("\n| 2 MB, {rounds} rounds | bound | measured |\n|---|---|---|");
    println!("| backup, ms | < 30 | {ours:.1} |");
    println!("| cp and sync, ms | | {theirs:.1} |");
    println!("| backup / cp and sync | or <= 2 | {:.2} |", ours / theirs);
    Ok(())
}

fn make(path: &Path) -> rusqlite::Result<()> {
    let database = rusqlite::Connection::open(path)?;
    database.execute_batch("CREATE TABLE t (id INTEGER PRIMARY KEY, text TEXT)")?;
    let mut insert = database.prepare(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000)
         INSERT INTO t (text) SELECT printf('row %d of a small database, %s', i, hex(randomblob(20))) FROM n",
    )?;
    while std::fs::metadata(path).map_or(0, |metadata| metadata.len()) < BYTES {
        insert.execute([])?;
    }
    Ok(())
}

fn seconds(command: &mut Command) -> Result<f64, String> {
    let begun = Instant::now();
    let output = command.output().map_err(|error| error.to_string())?;
    let elapsed = begun.elapsed().as_secs_f64();
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    Ok(elapsed)
}
