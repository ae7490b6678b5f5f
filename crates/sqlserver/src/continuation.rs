//! Applies differentials to the files of a full backup that was restored before.
//!
//! The files are changed in place, as by a server: between the first change and the last they are of no use. So
//! everything that can be checked is checked before, and whoever keeps account of the restore notes that it has begun.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use windlass_bak::{Finding, Target, Verifier};
use windlass_base::Guid;
use windlass_io::output;

use crate::restore::{check_differential, run};
use crate::{BackupInput, Error, Step};

/// Differentials that were checked, and the files that they are for.
#[derive(Debug)]
pub struct Continuation {
    steps: Vec<Step>,
    target: OpenFiles,
    /// The findings about the differentials, by step.
    pub findings: Vec<(usize, Finding)>,
}

impl Continuation {
    /// Verifies differentials of the set `base`, and opens the files of the database, by their number.
    ///
    /// # Errors
    /// A backup cannot be read, is damaged, or is none of these differentials; a file cannot be opened. Nothing was
    /// changed.
    pub fn prepare(
        steps: Vec<Step>,
        base: Guid,
        files: &BTreeMap<u16, PathBuf>,
        continue_after_error: bool,
    ) -> Result<Self, Error> {
        let mut findings = Vec::new();
        for (index, step) in steps.iter().enumerate() {
            check_differential(step, base, files)?;
            let found = verify(step)?;
            if !continue_after_error
                && let Some(error) = Error::of_findings(step.path(), &found, found.len())
            {
                return Err(error);
            }
            findings.extend(found.into_iter().map(|finding| (index, finding)));
        }
        Ok(Self {
            steps,
            target: OpenFiles::open(files)?,
            findings,
        })
    }

    /// Changes the files; returns the number of extents written.
    ///
    /// # Errors
    /// A backup cannot be read any more, or a file cannot be written: the files are of no use then.
    pub fn apply(mut self) -> Result<u64, Error> {
        let mut extents = 0;
        let paths = self.target.paths();
        for step in &self.steps {
            let rebuilt = run(step, &mut self.target, &paths)?;
            extents += rebuilt.extents.values().sum::<u64>();
        }
        self.target.sync()?;
        Ok(extents)
    }
}

fn verify(step: &Step) -> Result<Vec<Finding>, Error> {
    let mut verifier = Verifier::new(step.position);
    for device in &step.devices {
        let input = BackupInput::open(device).map_err(|error| Error::device(device, error))?;
        verifier
            .family(input)
            .map_err(|error| Error::backup(device, error))?;
    }
    let verified = verifier.finish();
    Ok(verified
        .findings
        .into_iter()
        .map(|found| found.finding)
        .collect())
}

/// The files of a database, by number.
#[derive(Debug)]
struct OpenFiles(BTreeMap<u16, (PathBuf, File)>);

impl OpenFiles {
    fn open(paths: &BTreeMap<u16, PathBuf>) -> Result<Self, Error> {
        let mut files = BTreeMap::new();
        for (&id, path) in paths {
            let file = open(path).map_err(|error| Error::target(path, error))?;
            files.insert(id, (path.clone(), file));
        }
        Ok(Self(files))
    }

    fn paths(&self) -> BTreeMap<u16, PathBuf> {
        let files = self.0.iter();
        files.map(|(id, (path, _))| (*id, path.clone())).collect()
    }

    fn file(&self, id: u16) -> io::Result<&File> {
        let found = self.0.get(&id).map(|(_, file)| file);
        let missing = || {
            io::Error::new(
                io::ErrorKind::NotFound,
                format!("the database has no file {id}"),
            )
        };
        found.ok_or_else(missing)
    }

    fn sync(&self) -> Result<(), Error> {
        for (path, file) in self.0.values() {
            file.sync_all()
                .map_err(|error| Error::target(path, error))?;
        }
        Ok(())
    }
}

fn open(path: &Path) -> io::Result<File> {
    output::refuse_link_of_others(path)?;
    OpenOptions::new().write(true).open(path)
}

impl Target for OpenFiles {
    fn write(&mut self, file: u16, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.file(file)?.write_all_at(bytes, offset)
    }

    fn set_length(&mut self, file: u16, bytes: u64) -> io::Result<()> {
        self.file(file)?.set_len(bytes)
    }
}
