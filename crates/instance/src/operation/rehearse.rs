//! The dry run of a restore or a verification.

use std::path::{Path, PathBuf};
use std::time::Duration;

use windlass_media::SetConfiguration;
use windlass_pipeline::Plan;

use crate::rehearsal::{Estimate, Rehearsal, locked};
use crate::{Completed, Sink};

/// Reports what a restore or verification of a set would do.
pub(crate) fn reading(
    operation: &str,
    database: &str,
    set: &SetConfiguration,
    plan: Plan,
    targets: &[PathBuf],
    sink: &mut dyn Sink,
) {
    let how = |path: &Path| match path.exists() {
        true => "replace",
        false => "make",
    };
    let files = targets
        .iter()
        .map(|path| (path.clone(), how(path).to_owned()));
    let written: u64 = match targets {
        [] => 0,
        _ => set.files.iter().map(|file| file.size_bytes).sum(),
    };
    let rehearsal = Rehearsal {
        operation: operation.to_owned(),
        database: database.to_owned(),
        files: files.collect(),
        locked: locked(targets.iter().map(PathBuf::as_path), true),
        read_bytes: set.stored_bytes,
        write_bytes: (written > 0).then(|| Estimate {
            value: written,
            because: format!("the length of the database in set {}", set.position),
        }),
        time: backup_time(set),
        plan: Some(plan),
    };
    sink.completed(Completed::Rehearsal(&rehearsal));
}

/// Estimates that a set is read as fast as it was written, on the same machine.
fn backup_time(set: &SetConfiguration) -> Option<Estimate<Duration>> {
    let (started, finished) = (set.started?.to_civil(), set.finished?.to_civil());
    let seconds = finished.duration_since(started).as_secs().max(0) + 1;
    Some(Estimate {
        value: Duration::from_secs(seconds.cast_unsigned()),
        because: "no longer than its backup took, in whole seconds".to_owned(),
    })
}
