//! One file of a database put back from an older copy, in a copy of the whole disk.
//!
//! Invariant: every opening ends with a checkpoint, so a database of several data files whose other
//! files are of a later opening must be refused. The exception is a log that waits for its backup and is too full for
//! the checkpoint: then it still has everything since the one before, and brings an older file forward.

use std::path::PathBuf;
use std::time::Duration;

use windlass_engine::{EngineError, Instance, InstanceOptions, OpenDatabase};

use crate::outcome::compare;
use crate::world::{World, log_path};

/// All files of a database, as they were at one moment.
pub(crate) type Kept = Vec<(PathBuf, Vec<u8>)>;

/// Puts back each file of the last call, one at a time, and keeps the present ones for the next.
/// The disk of the world does not change.
pub(crate) fn check(world: &mut World) -> Result<(), String> {
    let files = world.database()?.files().into_iter();
    let content = |path: PathBuf| Some((path.clone(), world.disk.content(&path)?));
    let present: Kept = files.filter_map(|file| content(file.spec.path)).collect();
    let older = std::mem::replace(&mut world.kept, present);
    // A database of one data file is a plain SQLite file, which others may change.
    if older.len() < 3 {
        return Ok(());
    }
    for (path, content) in older {
        let disk = world.disk.fork();
        disk.put(&path, &content);
        let options = InstanceOptions {
            pool_pages: 64,
            schedulers: 1,
            requests_in_flight: 4,
            background: false,
            version_bytes_max: 1 << 20,
            recovery_interval: Duration::from_secs(1),
        };
        let instance = Instance::new(options, std::sync::Arc::new(disk.clone()));
        let instance = instance.map_err(|error| error.to_string())?;
        let opened = instance.open_database(&OpenDatabase::new("a", log_path()));
        match opened {
            Err(EngineError::FilesDiffer { .. } | EngineError::FileTooShort { .. }) => {
                world.outcome.stale_refused += 1;
            }
            Err(other) => return Err(format!("an older {}: {other}", path.display())),
            Ok(opened) if opened.tail_start().is_some() => {
                compare(&opened.begin_read(), &world.acknowledged, &disk)
                    .map_err(|reason| format!("with an older {}: {reason}", path.display()))?;
            }
            Ok(_) => return Err(format!("an older {} was opened", path.display())),
        }
    }
    Ok(())
}
