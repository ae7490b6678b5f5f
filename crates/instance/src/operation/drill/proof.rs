//! The check of a restored database, and the question that it must answer, in an instance in memory.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use windlass_base::message::table;
use windlass_base::size::counted;
use windlass_base::word::Depth;
use windlass_catalog::Origin;
use windlass_engine::OpenDatabase;

use crate::instance::new_record;
use crate::operation::integrity;
use crate::{Collected, Failure, Instance, Session, Silent, Value, tsql};

/// Maximum number of findings that are reported.
const FINDINGS_REPORTED: usize = 5;

/// The files of a restored database.
#[derive(Debug)]
pub(super) struct Restored {
    pub(super) data: Vec<PathBuf>,
    /// That of the log; `None` for a SQLite file.
    pub(super) log: Option<PathBuf>,
}

/// A restored database, open in an instance of its own.
#[derive(Debug)]
pub(super) struct Proof {
    session: Session,
    name: String,
}

impl Proof {
    /// Opens the database. The proof ends when the session is cancelled.
    pub(super) fn open(of: &Session, name: &str, files: Restored) -> Result<Self, Failure> {
        let mut session = of.beside(Instance::open(None)?);
        match files.log {
            Some(log) => {
                let request = OpenDatabase {
                    data_paths: files.data,
                    ..OpenDatabase::new(name, log)
                };
                let database = session.instance.engines.open(&request)?;
                tsql::engine::register(&mut session, name, &database, Origin::Attached)?;
            }
            None => {
                let path = files.data.into_iter().next().unwrap_or_default();
                let record = new_record(name, &path, Origin::Attached);
                session.instance.register(&record)?;
            }
        }
        Ok(Self {
            session,
            name: name.to_owned(),
        })
    }

    /// Runs SQLite's check; findings are a failure.
    pub(super) fn check(&mut self, depth: Depth) -> Result<Duration, Failure> {
        let begun = Instant::now();
        let record = self.session.instance.database(&self.name)?;
        let record = record.ok_or_else(|| table::database_not_found_for_procedure(&self.name))?;
        let mut quiet = Collected::default();
        let found = integrity::check_database(&mut self.session, &record, depth, &mut quiet)?;
        if found.is_empty() {
            return Ok(begun.elapsed());
        }
        let findings = found.iter().take(FINDINGS_REPORTED);
        let mut messages: Vec<_> = findings
            .map(|finding| table::integrity_finding(&self.name, finding))
            .collect();
        messages.push(table::integrity_failed(
            &self.name,
            counted(found.len(), "problem"),
        ));
        Err(messages.into())
    }

    /// Asks the question; returns what it was answered with. It reaches no other file than those of the database.
    pub(super) fn ask(&mut self, query: &str) -> Result<String, Failure> {
        let name = self.name.clone();
        let collected = self.session.within_remote_limits(|session| {
            session.use_database(&name, &mut Silent)?;
            let mut collected = Collected::default();
            session.execute_batch(query, 1, &mut collected);
            session.use_database("master", &mut Silent)?;
            Ok(collected)
        })?;
        if collected.has_failed() {
            let errors = collected.messages.into_iter();
            return Err(errors
                .filter(windlass_base::Message::is_error)
                .collect::<Vec<_>>()
                .into());
        }
        let first = collected
            .results
            .iter()
            .find_map(|result| result.rows.first());
        let value = first.and_then(|row| row.first());
        let answer = value.map_or_else(|| "no row".to_owned(), Value::to_string);
        match value {
            Some(value) if is_yes(value) => Ok(answer),
            _ => Err(table::drill_answered_no(answer).into()),
        }
    }

    /// Closes the database.
    pub(super) fn close(mut self) -> Result<(), Failure> {
        self.session.use_database("master", &mut Silent)?;
        let failed = self.session.instance.close_engine_databases();
        match failed.into_iter().next() {
            Some((_, failure)) => Err(failure),
            None => Ok(()),
        }
    }
}

/// Whether an answer is neither NULL, 0 nor empty.
fn is_yes(value: &Value) -> bool {
    !matches!(value.to_string().trim(), "" | "0" | "NULL" | "0.0")
}
