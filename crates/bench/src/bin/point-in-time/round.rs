//! One round: the program commits, its follower is killed, and what was stored is restored.

use std::io::Read as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use jiff::Timestamp;
use windlass_bench::{cpu_of_children, load};

use crate::followers::{Who, bytes_below};
use crate::{Options, Pace};

/// How often the length of the log is looked at.
const LOOK: Duration = Duration::from_millis(5);

/// So long before the program ends the follower is killed.
const BEFORE_END: Duration = Duration::from_millis(500);

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Round {
    pub(crate) commits_per_second: f64,
    pub(crate) p99_milliseconds: f64,
    pub(crate) log_bytes: f64,
    pub(crate) processor_seconds: f64,
    pub(crate) first_bytes: f64,
    pub(crate) stored_bytes: f64,
    pub(crate) lost_commits: f64,
    pub(crate) latest_seconds: f64,
    pub(crate) middle_seconds: f64,
    /// The commits in that copy, of those in the latest: near a half, if any moment can be restored.
    pub(crate) middle_share: f64,
}

pub(crate) fn run(
    options: &Options,
    pace: Pace,
    who: &Who,
    original: &Path,
) -> anyhow::Result<Round> {
    let folder = tempfile::tempdir_in(&options.folder)?;
    let (folder, database) = (folder.path(), folder.path().join("app.db"));
    std::fs::copy(original, &database)?;
    let mut running = who.begin(folder)?;
    let stored = folder.join("stored");
    let first_bytes = bytes_below(&stored)?;
    let before = running.processor_seconds();
    let of_others = cpu_of_children();
    let mut writer = start(options, pace, &database)?;
    let begun = Instant::now();
    who.begin_logs(
        folder,
        Duration::from_millis(options.log_every),
        &mut running,
    );
    let kill_at = Duration::from_secs(options.seconds).saturating_sub(BEFORE_END);
    let mut middle = None;
    let mut log_bytes = 0;
    while begun.elapsed() < kill_at {
        log_bytes = log_bytes.max(bytes_of_log(&database));
        if middle.is_none() && begun.elapsed() > kill_at / 2 {
            middle = Some(Timestamp::now());
        }
        std::thread::sleep(LOOK);
    }
    let committed = load::last_commit(&database)?;
    running.kill()?;
    let processor = cpu_of_children().saturating_sub(of_others).as_secs_f64();
    let stored_bytes = bytes_below(&stored)?.saturating_sub(first_bytes);
    let [commits_per_second, p99_milliseconds] = numbers(&mut writer)?;
    let mut round = Round {
        commits_per_second,
        p99_milliseconds,
        log_bytes: log_bytes as f64,
        first_bytes: first_bytes as f64,
        stored_bytes: stored_bytes as f64,
        processor_seconds: processor - before,
        ..Round::default()
    };
    if !matches!(who, Who::Nobody) {
        round.latest_seconds = who.restore(folder, "latest.db", None)?.as_secs_f64();
        let restored = load::last_commit(&folder.join("latest.db"))?;
        round.lost_commits = (committed - restored).max(0) as f64;
        let time = middle.context("a round of no time")?.to_string();
        round.middle_seconds = who.restore(folder, "middle.db", Some(&time))?.as_secs_f64();
        let at_middle = load::last_commit(&folder.join("middle.db"))?;
        round.middle_share = at_middle as f64 / restored as f64;
    }
    Ok(round)
}

fn bytes_of_log(database: &Path) -> u64 {
    let mut log = database.as_os_str().to_owned();
    log.push("-wal");
    std::fs::metadata(log).map_or(0, |log| log.len())
}

fn start(options: &Options, pace: Pace, database: &Path) -> anyhow::Result<Child> {
    let mut command = Command::new(std::env::current_exe()?);
    command
        .arg("--commits-to")
        .arg(database)
        .args(["--seconds", &options.seconds.to_string()])
        .args(["--pace", &options.pace.to_string()])
        .stdout(Stdio::piped());
    if pace == Pace::Paced {
        command.arg("--paced");
    }
    Ok(command.spawn()?)
}

/// What the program prints at its end.
fn numbers(writer: &mut Child) -> anyhow::Result<[f64; 2]> {
    let mut text = String::new();
    let mut output = writer.stdout.take().context("no output")?;
    output.read_to_string(&mut text)?;
    ensure!(writer.wait()?.success(), "the program has failed");
    let mut numbers = [0.0; 2];
    for (place, number) in numbers.iter_mut().zip(text.split_whitespace()) {
        *place = number.parse()?;
    }
    Ok(numbers)
}
