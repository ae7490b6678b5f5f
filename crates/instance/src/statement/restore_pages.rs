//! RESTORE DATABASE ... PAGE: single pages of a database of the page engine, which stays in use; and what
//! a restore of files has in common with it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use windlass_base::message::table;
use windlass_base::{FileId, Guid, Message, Moment, PAGE_BYTES};
use windlass_catalog::{DatabaseRecord, DatabaseState, RestoreFileRecord, RestoreType};
use windlass_engine::{Database, EngineError, FilePage, PageRestore};
use windlass_media::{SetConfiguration, SetType, SourceKind};
use windlass_pipeline::{OnDamage, Selection, restore_selected};
use windlass_source::{Error as SourceError, Recovery};
use windlass_tsql::ast::{FileSpec, RestoreStatement};
use windlass_tsql::option::StatementKind;
use windlass_tsql::span::Spanned;

use super::asked::Asked;
use super::observer::Watch;
use super::restore::{OPERATION, RestoreExtras, check_session};
use super::{page_list, restore_files, timing};
use crate::option::{self, RestoreChoices};
use crate::{Failure, Session, Sink};

/// Pages of one file that a statement may name, as on SQL Server.
const PAGES_MAX: usize = 1000;

/// How long to wait for another program's write transaction.
const WRITER_PATIENCE: Duration = Duration::from_secs(5);

/// Pages that a message lists.
const PAGES_TOLD: usize = 10;

/// The log's number within a database.
const LOG_FILE_ID: u16 = FileId::LOG.0;

/// What follows the name of the database decides what is restored.
pub(super) fn run(
    session: &mut Session,
    statement: &RestoreStatement,
    name: &str,
    parts: &[Spanned<FileSpec>],
    sink: &mut dyn Sink,
) -> Result<(), Failure> {
    if session.is_rehearsal() {
        return Err(table::statement_not_supported(
            "A dry run of a restore of single pages or files",
            "What it writes shows only in the open database. VERIFYONLY says whether the set can be read.",
        )
        .into());
    }
    let part = Part::of(session, parts)?;
    check_session(session, name)?;
    let kind = StatementKind::RestoreDatabase;
    let choices = option::choose_restore(&statement.options, kind, session)?;
    check_choices(&choices)?;
    let record = engine_database(session, name)?;
    let extras = RestoreExtras::default();
    let asked = Asked::open(session, statement, name, choices, &extras)?;
    check_set(&asked.set, &record, part.first_page())?;
    let work = Work {
        session,
        record,
        asked,
    };
    match part {
        Part::Pages(pages) => work.run(&pages, sink),
        Part::Files(names) => {
            let numbers = restore_files::numbers(&names, &work.asked.set)?;
            work.run_files(&numbers, sink)
        }
    }
}

/// The requested part of the database.
enum Part {
    Pages(Vec<FilePage>),
    /// Logical names.
    Files(Vec<String>),
}

impl Part {
    fn of(session: &mut Session, parts: &[Spanned<FileSpec>]) -> Result<Self, Failure> {
        if let [
            Spanned {
                node: FileSpec::Page(list),
                ..
            },
        ] = parts
        {
            let list = option::text(&list.node, session)?.unwrap_or_default();
            return Ok(Self::Pages(page_list::parse(&list)?));
        }
        let mut names = Vec::new();
        for part in parts {
            let FileSpec::File(list) = &part.node else {
                return Err(table::restore_of_parts_mixed().into());
            };
            for name in list {
                names.push(option::text(&name.node, session)?.unwrap_or_default());
            }
        }
        Ok(Self::Files(names))
    }

    fn first_page(&self) -> FilePage {
        let of_file_one = FilePage {
            file_id: 1,
            page: 0,
        };
        match self {
            Self::Pages(pages) => pages.first().copied().unwrap_or(of_file_one),
            Self::Files(_) => of_file_one,
        }
    }
}

/// What can be said of a whole restore and makes no sense here.
fn check_choices(choices: &RestoreChoices) -> Result<(), Failure> {
    let refused = [
        (
            choices.recovery == Recovery::NoRecovery,
            "NORECOVERY",
            "Restored pages are usable at once. Omit NORECOVERY.",
        ),
        (
            !choices.moves.is_empty(),
            "MOVE",
            "They are restored to their original place.",
        ),
        (choices.replace, "REPLACE", "Nothing else is overwritten."),
        (
            choices.restart,
            "RESTART",
            "Run the statement again: it starts from the beginning.",
        ),
        (
            choices.on_damage == Some(OnDamage::Continue),
            "CONTINUE_AFTER_ERROR",
            "Only verified pages are written to a database.",
        ),
        (
            choices.tuning.buffer_count.is_some(),
            "BUFFERCOUNT",
            "Only the chunks that are needed are read, one after another.",
        ),
        (
            choices.tuning.transfer_bytes.is_some(),
            "MAXTRANSFERSIZE",
            "Only the chunks that are needed are read, one after another.",
        ),
    ];
    match refused.into_iter().find(|(is_given, ..)| *is_given) {
        None => Ok(()),
        Some((_, option, hint)) => {
            let what = format!("{option} in a restore of pages or files");
            Err(table::statement_not_supported(what, hint).into())
        }
    }
}

/// The database, which must be online and the page engine's.
fn engine_database(session: &Session, name: &str) -> Result<DatabaseRecord, Failure> {
    let known = session.instance.database(name)?;
    let record = known.ok_or_else(|| Failure::from(table::database_does_not_exist(name)))?;
    if record.log_path.is_none() {
        return Err(table::restore_of_sqlite_parts(name).into());
    }
    if record.state == DatabaseState::Restoring {
        return Err(table::database_restoring(name).into());
    }
    Ok(record)
}

/// Only a full backup of the database holds every page.
fn check_set(
    set: &SetConfiguration,
    record: &DatabaseRecord,
    first: FilePage,
) -> Result<(), Failure> {
    let is_other = record
        .family_guid
        .is_some_and(|family| family != set.family_guid);
    if set.source_kind != SourceKind::Engine || is_other {
        return Err(table::other_database(&record.name).with_state(4).into());
    }
    if set.set_type == SetType::Full {
        return Ok(());
    }
    Err(Failure::from(vec![
        table::page_not_from_set(first),
        table::differential_serves_no_parts(),
    ]))
}

/// A restore whose statement has been understood.
pub(super) struct Work<'a> {
    pub(super) session: &'a mut Session,
    pub(super) record: DatabaseRecord,
    pub(super) asked: Asked<'a>,
}

impl Work<'_> {
    fn run(mut self, pages: &[FilePage], sink: &mut dyn Sink) -> Result<(), Failure> {
        let begun = Instant::now();
        let database = self.session.instance.engines.database(&self.record)?;
        check_count(&database, pages)?;
        let set = &self.asked.set;
        let description = windlass_source::engine::describe(&set.source_description)?;
        let mut restore = database
            .begin_page_restore(&description, set.set_guid, pages)
            .map_err(|error| self.refusal(&error))?;
        let keys = self.asked.unlock_part(self.session)?;
        let read = self.asked.read_request(keys);
        let stats = self.asked.choices.stats;
        let watch = Watch::new(self.session, OPERATION, self.asked.name, stats, sink);
        let (media, position) = (&self.asked.media, self.asked.position);
        restore_selected(media, position, &read, &mut Pages(&mut restore), &watch)?;
        let pages: Vec<FilePage> = restore.pages().collect();
        // SQLite keeps pages of its own; a connection that is closed has none.
        self.session.queries.leave(self.asked.name);
        let count = restore
            .finish(WRITER_PATIENCE)
            .map_err(|error| self.refusal(&error))?;
        watch.finish();
        let mut counts: BTreeMap<u32, u64> = BTreeMap::new();
        for page in &pages {
            *counts.entry(page.file_id).or_default() += 1;
        }
        let parts = counts.into_iter();
        let parts = parts.map(|(file_id, count)| (logical_name(&database, file_id), count));
        let operation = close_parts(&self.asked, &parts.collect::<Vec<_>>(), sink);
        self.remember(&database, &pages, sink);
        let bytes = count * PAGE_BYTES as u64;
        sink.message(timing::closing(&operation, count, bytes, begun.elapsed()));
        Ok(())
    }

    /// `suspect_pages` and the history. The pages are none the worse when they cannot be written.
    fn remember(&mut self, database: &Database, pages: &[FilePage], sink: &mut dyn Sink) {
        let now = Moment::now().0;
        let noted = pages.iter().try_for_each(|page| {
            self.session.instance.catalog_mut().page_restored(
                self.record.database_id,
                page.file_id,
                page.page,
                now,
            )
        });
        if noted.is_err() {
            sink.message(table::history_not_written());
        }
        let is_written = |file_id| pages.iter().any(|page| page.file_id == file_id);
        let files = database.files().into_iter();
        let files = files.filter(|file| is_written(file.file_id));
        let files = files.map(|file| RestoreFileRecord {
            file_number: file.file_id,
            path: file.spec.path.display().to_string(),
        });
        self.asked
            .remember(self.session, RestoreType::File, files.collect(), sink);
    }

    /// The engine's error, with instructions for the user.
    pub(super) fn refusal(&self, error: &EngineError) -> Failure {
        let failure = Failure::from(error);
        match error {
            EngineError::PagesChanged { pages, .. } => failure.then(changed(pages)),
            EngineError::NotTheBase { base, .. } => failure.then(self.which_base(*base)),
            _ => failure,
        }
    }

    /// Which set would do.
    fn which_base(&self, base: Guid) -> Message {
        let set = &self.asked.set;
        let kind = if set.is_copy_only {
            "a COPY_ONLY backup, which is not a differential base"
        } else {
            "not the differential base of the database"
        };
        let would_do = if base.is_nil() {
            "There is none: make a full backup, which can be used for pages damaged later."
                .to_owned()
        } else {
            match self.place_of(base) {
                Some(place) => format!("Use {place}."),
                None => format!("Use the backup set {base}."),
            }
        };
        table::set_is_no_base(kind, would_do)
    }

    /// Where the history says that a set is.
    fn place_of(&self, set: Guid) -> Option<String> {
        let past = self.session.instance.catalog().past_backups(None).ok()?;
        let found = past.into_iter().rev().find(|b| b.set_guid == Some(set))?;
        let finished = found.finished.map(|at| format!(" of {at}"));
        Some(format!(
            "the full backup{}: FILE = {} on {}",
            finished.unwrap_or_default(),
            found.position,
            found.devices.join(", ")
        ))
    }
}

/// The messages before the closing one: each file with its pages; and what that calls the operation.
pub(super) fn close_parts(
    asked: &Asked<'_>,
    parts: &[(String, u64)],
    sink: &mut dyn Sink,
) -> String {
    let mut files = Vec::new();
    for (logical, pages) in parts {
        let (name, position) = (asked.name, asked.position);
        sink.message(table::processed_pages(pages, name, logical, position));
        files.push(format!("FILE=<{logical}>"));
    }
    format!("{OPERATION} ... {}", files.join(", "))
}

fn changed(pages: &[FilePage]) -> Message {
    let told: Vec<String> = pages
        .iter()
        .take(PAGES_TOLD)
        .map(FilePage::to_string)
        .collect();
    let more = match pages.len().saturating_sub(PAGES_TOLD) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    table::pages_changed_since(told.join(", "), more)
}

fn logical_name(database: &Database, file_id: u32) -> String {
    let files = database.files().into_iter();
    let mut found = files.filter(|file| file.file_id == file_id);
    found
        .next()
        .map_or_else(String::new, |file| file.spec.logical_name)
}

/// At most so many pages of a file.
fn check_count(database: &Arc<Database>, pages: &[FilePage]) -> Result<(), Failure> {
    let mut distinct = pages.to_vec();
    distinct.sort_unstable();
    distinct.dedup();
    for of_file in distinct.chunk_by(|one, other| one.file_id == other.file_id) {
        if of_file.len() > PAGES_MAX {
            let file = logical_name(database, of_file[0].file_id);
            return Err(table::too_many_pages(file, PAGES_MAX).into());
        }
    }
    Ok(())
}

/// Passes the content of the media to the engine's restore.
struct Pages<'a>(&'a mut PageRestore);

impl Selection for Pages<'_> {
    fn wants(&self, file_id: u16, offset: u64, bytes: u64) -> bool {
        self.0.wants(file_id.into(), offset, bytes)
    }

    fn take(&mut self, file_id: u16, offset: u64, bytes: &[u8]) -> Result<(), SourceError> {
        if file_id == LOG_FILE_ID {
            return self.0.apply_log(bytes).map_err(SourceError::Engine);
        }
        self.0.take(file_id.into(), offset, bytes);
        Ok(())
    }
}
