//! The dry run of a backup: everything that is decided before the first byte moves.
//!
//! It makes the same checks as the run itself if they need no lock and write nothing. Whether another
//! program has the database locked now is asked; whether one has it open then is found out only by the run.

use std::path::{Path, PathBuf};
use std::time::Duration;

use windlass_base::message::table;
use windlass_catalog::{DatabaseRecord, Origin};
use windlass_device::DeviceAddress;
use windlass_pipeline::{
    BackupKind, BackupRequest, MediaRequest, OnDamage, Overwrite, Plan, Rehearsed, SourceSize,
    rehearse,
};
use windlass_source::{Content, sqlite};

use super::{BackupOperation, BackupOutcome, base, offline, protection};
use crate::message_of::{not_a_database, unreadable_file};
use crate::rehearsal::{Estimate, Rehearsal, locked, sample};
use crate::{Completed, Failure, Session, Sink};

impl BackupOperation<'_> {
    /// Reports what the backup would do.
    pub(super) fn rehearse(
        &mut self,
        media: MediaRequest,
        sink: &mut dyn Sink,
    ) -> Result<BackupOutcome, Failure> {
        let files = database_files(self.session, &self.record)?;
        let mut base_guard = None;
        if self.options.is_differential {
            let wanted = base::Wanted {
                record: &self.record,
                own: None,
                target: &media.devices,
                options: self.options,
            };
            let base = base::rehearse(self.session, &wanted, sink)?;
            let encryption = super::encryption(self.session, self.options)?;
            protection::check(self.session, &wanted, base, encryption.as_ref(), sink)?;
            base_guard = Some(super::guard::of_base(base, &self.record.name));
        }
        let is_sqlite = self.record.log_path.is_none() && !self.is_of_sql_server();
        if is_sqlite && has_no_bytes(&self.record.path) {
            self.empty(&media, sink)?;
        }
        if is_sqlite {
            self.refuse_content()?;
        }
        if self.options.integrity.is_none() {
            self.is_known_damaged(None, sink)?;
        }
        let source = SourceSize {
            bytes: files.iter().map(|(_, bytes)| bytes).sum(),
            ranges: files.len() as u64,
        };
        let mut request = BackupRequest {
            encryption: super::encryption(self.session, self.options)?,
            ..self.request(media, BackupKind::Full)?
        };
        request.media.guards.extend(base_guard);
        let rehearsed = rehearse(&request, source)?;
        let (write_bytes, time) = self.estimates(&files, source.bytes, &rehearsed.plan);
        let rehearsal = Rehearsal {
            operation: self.options.operation().to_owned(),
            database: self.record.name.clone(),
            files: media_files(&request.media, &rehearsed),
            locked: locked(files.iter().map(|(path, _)| path.as_path()), false),
            read_bytes: source.bytes,
            write_bytes,
            time,
            plan: Some(rehearsed.plan),
        };
        sink.completed(Completed::Rehearsal(&rehearsal));
        Ok(BackupOutcome::Rehearsed(Box::new(rehearsal)))
    }

    /// Refuses a file that is no database, or has lost its end: as far as its header shows, without a lock.
    fn refuse_content(&self) -> Result<(), Failure> {
        let (path, options) = (&self.record.path, self.options);
        match sqlite::content(path)? {
            Content::Unknown if !options.is_as_is && !self.record.is_as_is => {
                Err(not_a_database(path).into())
            }
            Content::Cut {
                expected_bytes,
                found_bytes,
            } if options.on_damage == OnDamage::Stop && log_bytes(path) == 0 => {
                Err(table::database_cut(path.display(), expected_bytes, found_bytes).into())
            }
            _ => Ok(()),
        }
    }

    fn estimates(
        &self,
        files: &[(PathBuf, u64)],
        bytes: u64,
        plan: &Plan,
    ) -> (Option<Estimate<u64>>, Option<Estimate<Duration>>) {
        let Some(sampled) = sample(files, plan.compression) else {
            return (None, None);
        };
        let of = format!("{} samples of 1 MB, read and compressed", sampled.samples);
        let stored = (bytes as f64 * sampled.share) as u64;
        let write = match self.options.is_differential {
            false => Some(Estimate {
                value: stored,
                because: of.clone(),
            }),
            // How much has changed is not known before the comparison.
            true => self.last_differential(),
        };
        let by_threads = sampled.bytes_per_second * plan.threads.value as f64;
        let seconds = bytes as f64 / by_threads;
        let least = plan.limits.least_time(bytes, stored / plan.families as u64);
        let time = Estimate {
            value: Duration::try_from_secs_f64(seconds)
                .map_or(Duration::MAX, |time| time.max(least)),
            because: format!("{of} on one thread of {}", plan.threads.value),
        };
        (write, Some(time))
    }

    fn last_differential(&self) -> Option<Estimate<u64>> {
        let algorithm = self.settled.compression.algorithm.name();
        let catalog = self.session.instance.catalog();
        let last = catalog.last_sizes(&self.record.name, 'I', algorithm);
        let (_, stored) = last.ok().flatten()?;
        Some(Estimate {
            value: stored,
            because: "what the last differential took".to_owned(),
        })
    }
}

/// Whether a SQLite file and its write-ahead log hold nothing.
fn has_no_bytes(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|metadata| metadata.len() == 0) && log_bytes(path) == 0
}

/// The length of the write-ahead log.
fn log_bytes(path: &Path) -> u64 {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    std::fs::metadata(Path::new(&log)).map_or(0, |metadata| metadata.len())
}

/// The files of a database, and their lengths; for SQLite also the content of the write-ahead log.
fn database_files(
    session: &Session,
    record: &DatabaseRecord,
) -> Result<Vec<(PathBuf, u64)>, Failure> {
    let mut paths = vec![record.path.clone()];
    if record.origin == Origin::SqlServer {
        paths = offline::paths(session, record)?;
    } else if record.log_path.is_some() {
        let files = session.instance.catalog().files(record.database_id)?;
        let data = files.into_iter().filter(|file| !file.is_log);
        paths = data.map(|file| file.path).collect();
    }
    let length = |path: PathBuf| match std::fs::metadata(&path) {
        Ok(metadata) => Ok((path, metadata.len())),
        Err(error) => Err(Failure::from(unreadable_file(&path, &error))),
    };
    paths.into_iter().map(length).collect()
}

/// What would happen to each medium.
fn media_files(media: &MediaRequest, rehearsed: &Rehearsed) -> Vec<(PathBuf, String)> {
    let devices = media.devices.iter().chain(media.mirrors.iter().flatten());
    let how = |path: &Path| match (rehearsed.is_new, media.overwrite) {
        (true, _) if !path.exists() => "make".to_owned(),
        (true, Overwrite::Initialize) => "overwrite the sets in".to_owned(),
        (true, _) => "overwrite".to_owned(),
        (false, _) => format!("append set {} to", rehearsed.position),
    };
    devices
        .filter_map(DeviceAddress::file)
        .map(|file| (file.to_owned(), how(file)))
        .collect()
}
