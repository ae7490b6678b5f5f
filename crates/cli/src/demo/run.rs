//! Runs and times the statements of the demo.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::json;
use windlass_base::size::{Bytes, megabytes_per_second};
use windlass_codec::Compression;
use windlass_instance::{Collected, Completed, Event, Failure, Instance, Session, Sink};

use super::{Error, announce, stripes, with_clause};
use crate::output::Table;

/// One backup and its restore.
#[derive(Debug, Clone)]
pub(super) struct Measured {
    pub(super) compression: Compression,
    pub(super) database_bytes: u64,
    pub(super) stored_bytes: u64,
    backup: Duration,
    restore: Duration,
}

impl Measured {
    fn ratio(&self) -> f64 {
        self.database_bytes as f64 / self.stored_bytes.max(1) as f64
    }

    fn rate(&self) -> f64 {
        megabytes_per_second(self.database_bytes, self.backup)
    }

    fn restore_rate(&self) -> f64 {
        megabytes_per_second(self.database_bytes, self.restore)
    }

    /// A row of the closing table; `busy` is the same measurement under write load.
    pub(super) fn to_row(&self, busy: &Self, baseline: Option<&Self>) -> Vec<String> {
        let relative = |value: f64, base: Option<f64>| match base {
            Some(base) if base > 0.0 => format!("{:.2}", value / base),
            _ => String::new(),
        };
        vec![
            self.compression.to_string(),
            Bytes(self.stored_bytes).to_string(),
            format!("{:.2}", self.ratio()),
            relative(
                self.stored_bytes as f64,
                baseline.map(|base| base.stored_bytes as f64),
            ),
            format!("{:.2} s", self.backup.as_secs_f64()),
            format!("{:.0}", self.rate()),
            relative(self.rate(), baseline.map(Self::rate)),
            format!("{:.2} s", self.restore.as_secs_f64()),
            format!("{:.0}", self.restore_rate()),
            format!("{:.0} MB/s", busy.rate()),
        ]
    }

    /// The same row as a JSON object.
    pub(super) fn to_json(&self, busy: &Self) -> serde_json::Value {
        json!({
            "algorithm": self.compression.algorithm.name(),
            "level": self.compression.level.map(windlass_codec::Level::name),
            "database_bytes": self.database_bytes,
            "stored_bytes": self.stored_bytes,
            "ratio": self.ratio(),
            "backup_seconds": self.backup.as_secs_f64(),
            "backup_megabytes_per_second": self.rate(),
            "restore_seconds": self.restore.as_secs_f64(),
            "restore_megabytes_per_second": self.restore_rate(),
            "backup_while_writing_megabytes_per_second": busy.rate(),
        })
    }
}

/// A session on the demo's database.
pub(super) struct Runner {
    session: Session,
    folder: PathBuf,
    is_json: bool,
}

/// Collects results and numbers, prints nothing.
#[derive(Debug, Default)]
struct Quiet {
    collected: Collected,
    numbers: Option<(u64, u64, Duration)>,
}

impl Sink for Quiet {
    fn event(&mut self, event: Event<'_>) {
        if let Event::Completed(completed) = &event {
            self.numbers = numbers(completed).or(self.numbers);
        }
        self.collected.event(event);
    }
}

/// The size of the database, its size on media, and the time. The demo has no dry runs.
fn numbers(completed: &Completed<'_>) -> Option<(u64, u64, Duration)> {
    match completed {
        Completed::Rehearsal(_) => None,
        Completed::Backup { report, .. } => Some((
            report.processed_bytes,
            report.set.stored_bytes,
            report.elapsed,
        )),
        Completed::Probe { report, .. } => {
            Some((report.processed_bytes, report.stored_bytes, report.elapsed))
        }
        Completed::Restore { report, .. } | Completed::Verify { report, .. } => {
            Some((report.processed_bytes, report.stored_bytes, report.elapsed))
        }
    }
}

impl Runner {
    /// Creates a session that knows the database as `demo`.
    pub(super) fn new(database: &Path, folder: &Path, is_json: bool) -> Result<Self, Error> {
        let failed = |error| Error::Statement(Failure::from(error).messages);
        let mut instance = Instance::open(None).map_err(failed)?;
        instance.pass_as("demo", database).map_err(failed)?;
        let session = Session::new(instance);
        crate::cancel::watch(&session.cancel_flag());
        Ok(Self {
            session,
            folder: folder.to_owned(),
            is_json,
        })
    }

    pub(super) fn say(&self, text: &str) {
        announce(self.is_json, text);
    }

    pub(super) fn title(&self, text: &str) {
        self.say(&format!("\n{text}\n"));
    }

    /// Prints a statement without its folder, and runs it.
    fn run(&mut self, text: &str) -> Result<Quiet, Error> {
        let folder = format!("{}/", self.folder.display());
        self.say(&shortened(&text.replace(&folder, "")));
        let mut sink = Quiet::default();
        self.session.execute_batch(text, 1, &mut sink);
        if sink.collected.has_failed() {
            return Err(Error::Statement(sink.collected.messages));
        }
        Ok(sink)
    }

    fn disks(&self, compression: Compression, count: usize) -> String {
        let disks: Vec<String> = stripes(&self.folder, compression, count)
            .iter()
            .map(|path| {
                format!(
                    "DISK = '{}'",
                    path.display().to_string().replace('\'', "''")
                )
            })
            .collect();
        disks.join(", ")
    }

    /// Backs up the database to new media.
    pub(super) fn backup(
        &mut self,
        compression: Compression,
        count: usize,
    ) -> Result<Measured, Error> {
        let disks = self.disks(compression, count);
        let text = format!(
            "BACKUP DATABASE demo TO {disks} WITH FORMAT, {};",
            with_clause(compression)
        );
        let sink = self.run(&text)?;
        Ok(measured(compression, &sink))
    }

    /// Appends a differential to the media of the full backup.
    pub(super) fn differential(&mut self) -> Result<Measured, Error> {
        let compression = Compression::ZSTD_LOW;
        let disks = self.disks(compression, 1);
        let text = format!(
            "BACKUP DATABASE demo TO {disks} WITH DIFFERENTIAL, {};",
            with_clause(compression)
        );
        let sink = self.run(&text)?;
        Ok(measured(compression, &sink))
    }

    /// Verifies and restores a backup.
    pub(super) fn restore(
        &mut self,
        compression: Compression,
        copy: &Path,
        measured: &mut Measured,
    ) -> Result<(), Error> {
        let disks = self.disks(compression, 4);
        self.run(&format!("RESTORE VERIFYONLY FROM {disks};"))?;
        let sink = self.run(&format!(
            "RESTORE DATABASE copy FROM {disks} WITH MOVE 'demo' TO '{}', REPLACE;",
            copy.display().to_string().replace('\'', "''")
        ))?;
        measured.restore = sink
            .numbers
            .map(|(.., elapsed)| elapsed)
            .unwrap_or_default();
        Ok(())
    }

    /// Restores the full backup and the differential that follows it.
    pub(super) fn restore_sequence(&mut self, copy: &Path) -> Result<(), Error> {
        let disks = self.disks(Compression::ZSTD_LOW, 1);
        let path = copy.display().to_string().replace('\'', "''");
        self.run(&format!(
            "RESTORE DATABASE copy FROM {disks} WITH MOVE 'demo' TO '{path}', REPLACE, NORECOVERY;"
        ))?;
        self.run(&format!(
            "RESTORE DATABASE copy FROM {disks} WITH FILE = 2, RECOVERY;"
        ))?;
        Ok(())
    }

    /// Shows the columns of HEADERONLY that distinguish the algorithms.
    pub(super) fn show_header(&mut self) -> Result<(), Error> {
        let columns = [
            "Position",
            "DatabaseName",
            "BackupTypeDescription",
            "BackupSize",
            "CompressedBackupSize",
            "CompressionAlgorithm",
            "CompressionLevel",
        ];
        let mut sets = Vec::new();
        for compression in Compression::ALL {
            let disks = self.disks(compression, 1);
            let sink = self.run(&format!("RESTORE HEADERONLY FROM {disks};"))?;
            sets.extend(sink.collected.results);
        }
        self.show(&columns, &[0, 3, 4], &sets);
        Ok(())
    }

    /// Shows the most important columns of FILELISTONLY.
    pub(super) fn show_files(&mut self) -> Result<(), Error> {
        let columns = [
            "LogicalName",
            "PhysicalName",
            "Type",
            "Size",
            "BackupSizeInBytes",
        ];
        let disks = self.disks(Compression::ZSTD_LOW, 4);
        let sink = self.run(&format!("RESTORE FILELISTONLY FROM {disks};"))?;
        self.show(&columns, &[3, 4], &sink.collected.results);
        Ok(())
    }

    fn show(&self, columns: &[&str], numbers: &[usize], results: &[windlass_instance::ResultSet]) {
        if self.is_json {
            return;
        }
        let mut table = Table::of_texts(columns, numbers);
        for result in results {
            for row in 0..result.rows.len() {
                let cell = |column: &&str| {
                    result
                        .value(row, column)
                        .map(ToString::to_string)
                        .unwrap_or_default()
                };
                table.texts(columns.iter().map(cell).collect());
            }
        }
        table.finish();
        self.say("");
    }
}

fn measured(compression: Compression, sink: &Quiet) -> Measured {
    let (database_bytes, stored_bytes, backup) = sink.numbers.unwrap_or_default();
    Measured {
        compression,
        database_bytes,
        stored_bytes,
        backup,
        restore: Duration::ZERO,
    }
}

/// A statement with the middle of its device list omitted.
fn shortened(text: &str) -> String {
    let (first, last) = ("_1.bak', ", "DISK = '");
    match (text.find(first), text.rfind(last)) {
        (Some(from), Some(to)) if from < to => {
            let head = text.get(..from + first.len()).unwrap_or(text);
            let tail = text.get(to..).unwrap_or("");
            format!("{head}... {tail}")
        }
        _ => text.to_owned(),
    }
}
