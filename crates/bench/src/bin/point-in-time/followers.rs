//! What follows a database: how each one is started, and restores.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use windlass_bench::cpu_of;

/// Backups that have gone to one file when the next one is begun.
const SETS_OF_A_FILE: usize = 60;

/// A first copy that has not grown for so long is complete.
const STILL: Duration = Duration::from_secs(3);

#[derive(Debug, Clone)]
pub(crate) enum Who {
    Nobody,
    Windlass(PathBuf),
    Litestream(PathBuf),
}

/// A follower at work.
#[derive(Debug)]
pub(crate) struct Running {
    child: Option<Child>,
    log_backups: Option<(Arc<AtomicBool>, JoinHandle<anyhow::Result<()>>)>,
}

impl Who {
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Nobody => "alone",
            Self::Windlass(_) => "Windlass",
            Self::Litestream(_) => "Litestream",
        }
    }

    /// Begins to follow `app.db` of a folder, and makes the first copy below `stored`.
    pub(crate) fn begin(&self, folder: &Path) -> anyhow::Result<Running> {
        std::fs::create_dir(folder.join("stored"))?;
        let mut running = Running {
            child: None,
            log_backups: None,
        };
        match self {
            Self::Nobody => {}
            Self::Windlass(program) => {
                let follow = ["follow", "app.db", "--to", "spool", "--every", "1s"];
                running.child = Some(silent(program, folder, &follow).spawn()?);
                std::thread::sleep(Duration::from_secs(1));
                let full = ["backup", "app.db", "--to", "stored/full.bak"];
                run(silent(program, folder, &full))?;
            }
            Self::Litestream(program) => {
                let settings = "dbs:\n  - path: app.db\n    replica:\n      path: stored\n";
                std::fs::write(folder.join("litestream.yml"), settings)?;
                let replicate = ["replicate", "-config", "litestream.yml"];
                running.child = Some(silent(program, folder, &replicate).spawn()?);
                wait_until_still(&folder.join("stored"))?;
            }
        }
        Ok(running)
    }

    /// Makes a log backup every so often.
    pub(crate) fn begin_logs(&self, folder: &Path, every: Duration, running: &mut Running) {
        let Self::Windlass(program) = self else {
            return;
        };
        let stop = Arc::new(AtomicBool::new(false));
        let (flag, program, folder) = (Arc::clone(&stop), program.clone(), folder.to_owned());
        let backups = std::thread::spawn(move || {
            let begun = Instant::now();
            for number in 0.. {
                let due = every.saturating_mul(u32::try_from(number + 1).unwrap_or(u32::MAX));
                std::thread::sleep(due.saturating_sub(begun.elapsed()));
                if flag.load(Ordering::Relaxed) {
                    break;
                }
                let to = format!("stored/{}.trn", number / SETS_OF_A_FILE);
                let log = [
                    "backup", "app.db", "--log", "--follow", "spool", "--to", &to,
                ];
                run(silent(&program, &folder, &log))?;
            }
            Ok(())
        });
        running.log_backups = Some((stop, backups));
    }

    /// Restores what is stored: to a time, or to the latest commit.
    pub(crate) fn restore(
        &self,
        folder: &Path,
        to: &str,
        time: Option<&str>,
    ) -> anyhow::Result<Duration> {
        let mut command = match self {
            Self::Nobody => return Ok(Duration::ZERO),
            Self::Windlass(program) => {
                let mut command = silent(program, folder, &["restore", "stored", "--to", to]);
                command.args(time.iter().flat_map(|time| ["--at", time]));
                command
            }
            Self::Litestream(program) => {
                let settings = ["restore", "-config", "litestream.yml", "-o", to];
                let mut command = silent(program, folder, &settings);
                command.args(time.iter().flat_map(|time| ["-timestamp", time]));
                command.arg("app.db");
                command
            }
        };
        let begun = Instant::now();
        let done = command.status()?;
        ensure!(done.success(), "{command:?}: {done}");
        Ok(begun.elapsed())
    }
}

impl Running {
    /// Kills it as a crash does.
    pub(crate) fn kill(self) -> anyhow::Result<()> {
        if let Some((stop, backups)) = self.log_backups {
            stop.store(true, Ordering::Relaxed);
            backups.join().ok().context("log backups")??;
        }
        if let Some(mut child) = self.child {
            ensure!(child.try_wait()?.is_none(), "the follower has ended");
            child.kill()?;
            child.wait()?;
        }
        Ok(())
    }

    /// The processor time of the follower so far.
    pub(crate) fn processor_seconds(&self) -> f64 {
        let child = self.child.as_ref();
        child.map_or(0.0, |child| cpu_of(child.id()).as_secs_f64())
    }
}

fn silent(program: &Path, folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command
        .args(arguments)
        .current_dir(folder)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

fn run(mut command: Command) -> anyhow::Result<()> {
    let done = command.status()?;
    ensure!(done.success(), "{command:?}: {done}");
    Ok(())
}

fn wait_until_still(folder: &Path) -> anyhow::Result<()> {
    let mut last = (0, Instant::now());
    while last.0 == 0 || last.1.elapsed() < STILL {
        std::thread::sleep(Duration::from_millis(200));
        let bytes = bytes_below(folder)?;
        if bytes != last.0 {
            last = (bytes, Instant::now());
        }
    }
    Ok(())
}

/// The length of all files in a folder and those below it.
pub(crate) fn bytes_below(folder: &Path) -> anyhow::Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        // A file can go between the two looks.
        bytes += match std::fs::metadata(&path) {
            Ok(found) if found.is_dir() => bytes_below(&path)?,
            Ok(found) => found.len(),
            Err(_) => 0,
        };
    }
    Ok(bytes)
}
