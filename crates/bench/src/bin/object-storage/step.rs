//! What is measured of whom.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::ensure;

use crate::server::{BUCKET, KEY, SECRET};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    Write,
    Verify,
    Restore,
}

impl Step {
    pub(crate) const ALL: [Self; 3] = [Self::Write, Self::Verify, Self::Restore];
}

#[derive(Debug, Clone)]
pub(crate) enum Who {
    /// With so many objects at once.
    Plain(usize),
    /// The program, its stripes, and whether nothing is compressed.
    Windlass(PathBuf, usize, bool),
    Restic(PathBuf),
    Rclone(PathBuf),
    Litestream(PathBuf),
}

impl Who {
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Plain(objects) => format!("plain client, {objects} object(s)"),
            Self::Windlass(_, stripes, true) => format!("Windlass, {stripes}, uncompressed"),
            Self::Windlass(_, stripes, false) => format!("Windlass, {stripes}, compressed"),
            Self::Restic(_) => "restic".to_owned(),
            Self::Rclone(_) => "rclone".to_owned(),
            Self::Litestream(_) => "Litestream".to_owned(),
        }
    }

    /// Seconds that the step takes; `None` if there is no such step.
    pub(crate) fn run(
        &self,
        step: Step,
        folder: &Path,
        endpoint: &str,
    ) -> anyhow::Result<Option<f64>> {
        let Some(mut command) = self.command(step, folder, endpoint)? else {
            return Ok(None);
        };
        command
            .current_dir(folder)
            .env("AWS_ENDPOINT_URL", endpoint)
            .env("AWS_ACCESS_KEY_ID", KEY)
            .env("AWS_SECRET_ACCESS_KEY", SECRET)
            .env("AWS_REGION", "us-east-1")
            .env("NO_PROXY", "127.0.0.1")
            // The store speaks plain HTTP, and Litestream does not start with this.
            .env_remove("AWS_CA_BUNDLE")
            .stdin(Stdio::null());
        let begun = Instant::now();
        let output = command.output()?;
        let seconds = begun.elapsed().as_secs_f64();
        ensure!(
            output.status.success(),
            "{} {step:?}: {}",
            self.name(),
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(Some(seconds))
    }

    fn command(
        &self,
        step: Step,
        folder: &Path,
        endpoint: &str,
    ) -> anyhow::Result<Option<Command>> {
        Ok(match self {
            Self::Plain(objects) => plain(*objects, step, endpoint)?,
            Self::Windlass(program, stripes, is_plain) => {
                Some(windlass(program, *stripes, *is_plain, step, endpoint))
            }
            Self::Restic(program) => restic(program, step, endpoint)?,
            Self::Rclone(program) => rclone(program, step, endpoint),
            Self::Litestream(program) => litestream(program, step, folder, endpoint)?,
        })
    }
}

/// Makes places for the steps of one, without what others have left.
pub(crate) fn clean(folder: &Path) -> anyhow::Result<()> {
    let bucket = folder.join("store").join(BUCKET);
    for place in [folder.join("restored"), bucket.clone()] {
        if place.exists() {
            std::fs::remove_dir_all(&place)?;
        }
    }
    std::fs::create_dir(&bucket)?;
    std::fs::create_dir(folder.join("restored"))?;
    Ok(())
}

fn plain(objects: usize, step: Step, endpoint: &str) -> anyhow::Result<Option<Command>> {
    let work = match step {
        Step::Write => "put",
        Step::Verify => "get",
        Step::Restore => return Ok(None),
    };
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["--plain", work, "--endpoint", endpoint, "--file", "app.db"]);
    command.args(["--objects", &objects.to_string()]);
    Ok(Some(command))
}

fn windlass(program: &Path, stripes: usize, is_plain: bool, step: Step, endpoint: &str) -> Command {
    let store = endpoint.trim_start_matches("http://");
    let urls = (1..=stripes).map(|stripe| format!("s3://{store}/{BUCKET}/{stripe}.bak"));
    let mut command = Command::new(program);
    match step {
        Step::Write => {
            command.args(["backup", "app.db"]);
            for url in urls {
                command.args(["--to", &url]);
            }
            if is_plain {
                command.args(["--compress", "none"]);
            }
        }
        Step::Verify => {
            command.arg("verify").args(urls);
        }
        Step::Restore => {
            command.arg("restore").args(urls);
            command.args(["--to", "restored/app.db"]);
        }
    }
    command
}

fn restic(program: &Path, step: Step, endpoint: &str) -> anyhow::Result<Option<Command>> {
    let prepared = |arguments: &[&str]| {
        let mut command = Command::new(program);
        command
            .args(arguments)
            .env(
                "RESTIC_REPOSITORY",
                format!("s3:{endpoint}/{BUCKET}/restic"),
            )
            .env("RESTIC_PASSWORD", "bench")
            .env("AWS_ACCESS_KEY_ID", KEY)
            .env("AWS_SECRET_ACCESS_KEY", SECRET);
        command
    };
    Ok(match step {
        Step::Write => {
            let made = prepared(&["init", "--quiet", "--no-cache"]).output()?;
            ensure!(made.status.success(), "restic init: {made:?}");
            Some(prepared(&["backup", "--quiet", "--no-cache", "app.db"]))
        }
        Step::Verify => Some(prepared(&["check", "--quiet", "--no-cache", "--read-data"])),
        Step::Restore => {
            let arguments = [
                "restore",
                "--quiet",
                "--no-cache",
                "latest",
                "--target",
                "restored",
            ];
            Some(prepared(&arguments))
        }
    })
}

fn rclone(program: &Path, step: Step, endpoint: &str) -> Option<Command> {
    let remote = format!(
        ":s3,provider=Other,endpoint='{endpoint}',access_key_id={KEY},secret_access_key={SECRET},\
         no_check_bucket=true,chunk_size=10Mi,upload_concurrency=4:{BUCKET}/app.db"
    );
    let mut command = Command::new(program);
    let [from, to] = match step {
        Step::Write => ["app.db", remote.as_str()],
        Step::Verify => return None,
        Step::Restore => [remote.as_str(), "restored/app.db"],
    };
    command.args(["copyto", "--config", "/dev/null", "--quiet", from, to]);
    command.args([
        "--multi-thread-streams",
        "4",
        "--multi-thread-cutoff",
        "16M",
    ]);
    Some(command)
}

fn litestream(
    program: &Path,
    step: Step,
    folder: &Path,
    endpoint: &str,
) -> anyhow::Result<Option<Command>> {
    let settings = format!(
        "dbs:\n  - path: app.db\n    replica:\n      type: s3\n      bucket: {BUCKET}\n      path: litestream\n      \
         endpoint: {endpoint}\n      region: us-east-1\n      access-key-id: {KEY}\n      \
         secret-access-key: {SECRET}\n      force-path-style: true\n"
    );
    std::fs::write(folder.join("litestream.yml"), settings)?;
    let mut command = Command::new(program);
    match step {
        Step::Write => {
            // What it keeps beside the database says that it was sent.
            let kept = folder.join(".app.db-litestream");
            if kept.exists() {
                std::fs::remove_dir_all(kept)?;
            }
            command.args(["replicate", "-config", "litestream.yml", "-once"]);
        }
        Step::Verify => return Ok(None),
        Step::Restore => {
            command.args([
                "restore",
                "-config",
                "litestream.yml",
                "-o",
                "restored/app.db",
                "app.db",
            ]);
        }
    }
    Ok(Some(command))
}
