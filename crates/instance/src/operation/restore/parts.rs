//! Restores parts of a page engine database: what single pages and data files have in common.

use windlass_base::message::table;
use windlass_base::{FileId, FilePage, Guid, Message};
use windlass_catalog::{DatabaseRecord, DatabaseState};
use windlass_engine::EngineError;
use windlass_media::{SetConfiguration, SetType, SourceKind};
use windlass_pipeline::OnDamage;
use windlass_source::engine::StopAt;

use super::options::settle;
use super::reader::SetReader;
use super::{OPERATION, RestoreOptions, check_session};
use crate::message_of::engine_message;
use crate::operation::history;
use crate::{Failure, Session, Sink};

/// Maximum number of pages listed in a message.
const PAGES_REPORTED: usize = 10;

/// The parts of a database to restore.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RestorePart {
    /// Single pages.
    Pages(Vec<FilePage>),
    /// Data files, by their logical names.
    Files(Vec<String>),
}

impl RestorePart {
    fn first_page(&self) -> FilePage {
        let of_file_one = FilePage {
            file_id: FileId::PRIMARY,
            page: 0,
        };
        match self {
            Self::Pages(pages) => pages.first().copied().unwrap_or(of_file_one),
            Self::Files(_) => of_file_one,
        }
    }
}

/// Restores parts of a database.
pub(crate) fn run(
    session: &mut Session,
    name: &str,
    part: &RestorePart,
    options: &RestoreOptions,
    sink: &mut dyn Sink,
) -> Result<(), Failure> {
    let mut attempt = || {
        if session.is_rehearsal() {
            return Err(table::statement_not_supported(
                "A dry run of a restore of single pages or files",
                "What it writes shows only in the open database. VERIFYONLY says whether the set can be read.",
            )
            .into());
        }
        check_session(session, name)?;
        let settled = settle(options)?;
        check_options(options)?;
        let record = engine_database(session, name)?;
        session.instance.refuse_copy(OPERATION, name)?;
        let devices = options.media.addresses(session, Some(name))?;
        let reader = SetReader::open(session, name, devices, options, settled)?;
        check_set(&reader.opened.set, &record, part.first_page())?;
        let operation = PartRestore {
            session: &mut *session,
            record,
            reader,
        };
        match part {
            RestorePart::Pages(pages) => operation.run_pages(pages, sink),
            RestorePart::Files(names) => operation.run_files(names, sink),
        }
    };
    attempt().map_err(|failure| failure.then(table::terminating_abnormally(OPERATION)))
}

/// Refuses options that apply only to whole databases.
fn check_options(options: &RestoreOptions) -> Result<(), Failure> {
    let refused = [
        (
            options.standby.is_some(),
            "STANDBY",
            "The rest of the database is not restored.",
        ),
        (
            options.stop != StopAt::End,
            "STOPAT, STOPATMARK or STOPBEFOREMARK",
            "They get the content of the last commit.",
        ),
        (
            !options.moves.is_empty(),
            "MOVE",
            "They are restored to their original place.",
        ),
        (options.replaces, "REPLACE", "Nothing else is overwritten."),
        (
            options.restarts,
            "RESTART",
            "Run the statement again: it starts from the beginning.",
        ),
        (
            options.on_damage == OnDamage::Continue,
            "CONTINUE_AFTER_ERROR",
            "Only verified pages are written to a database.",
        ),
        (
            options.buffer_count.is_some(),
            "BUFFERCOUNT",
            "Only the chunks that are needed are read, one after another.",
        ),
        (
            options.transfer_bytes.is_some(),
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

/// Refuses what a restore of parts that wait for log backups does not have.
pub(super) fn check_waiting_part(options: &RestoreOptions, parts: &str) -> Result<(), Failure> {
    let ends_at_last_commit = options.stop == StopAt::End && options.standby.is_none();
    if ends_at_last_commit && options.moves.is_empty() {
        return Ok(());
    }
    let what = format!("STOPAT, STANDBY or MOVE in a restore of {parts}");
    let hint = format!("The database is in use: its {parts} get the content of the last commit.");
    Err(table::statement_not_supported(what, hint).into())
}

/// The catalog entry of the database, which must be online and of the page engine.
fn engine_database(session: &Session, name: &str) -> Result<DatabaseRecord, Failure> {
    let known = session.instance.database(name)?;
    let record = known.ok_or_else(|| Failure::from(table::database_does_not_exist(name)))?;
    if record.log_path.is_none() {
        return Err(table::restore_of_sqlite_parts(name).into());
    }
    if record.state != DatabaseState::Online {
        return Err(table::database_restoring(name).into());
    }
    Ok(record)
}

/// Checks the set: only a full backup of the database contains every page.
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

/// A restore of parts whose set is open.
pub(super) struct PartRestore<'a> {
    pub(super) session: &'a mut Session,
    pub(super) record: DatabaseRecord,
    pub(super) reader: SetReader<'a>,
}

impl PartRestore<'_> {
    /// Sends the messages before the closing one: each file with its pages. Returns the operation's name
    /// for it.
    pub(super) fn close(&self, parts: &[(String, u64)], sink: &mut dyn Sink) -> String {
        let (name, position) = (self.reader.name, self.reader.opened.position);
        let mut files = Vec::new();
        for (logical, pages) in parts {
            sink.message(table::processed_pages(pages, name, logical, position));
            files.push(format!("FILE=<{logical}>"));
        }
        format!("{OPERATION} ... {}", files.join(", "))
    }

    /// The failure for an engine error, with what the user can do about it.
    pub(super) fn refusal(&self, error: &EngineError) -> Failure {
        let failure = Failure::from(engine_message(error));
        match error {
            EngineError::PagesChanged { pages, .. } => failure.then(changed(pages)),
            EngineError::NotTheBase { base, .. } => failure.then(self.which_base(*base)),
            _ => failure,
        }
    }

    /// Says which set would do.
    fn which_base(&self, base: Guid) -> Message {
        let set = &self.reader.opened.set;
        let kind = if set.is_copy_only {
            "a COPY_ONLY backup, which is not a differential base"
        } else {
            "not the differential base of the database"
        };
        let would_do = if base.is_nil() {
            "There is none: make a full backup, which can be used for pages damaged later."
                .to_owned()
        } else {
            format!("Use {}.", history::name_of_full(self.session, base))
        };
        table::set_is_no_base(kind, would_do)
    }
}

fn changed(pages: &[FilePage]) -> Message {
    let reported: Vec<String> = pages
        .iter()
        .take(PAGES_REPORTED)
        .map(FilePage::to_string)
        .collect();
    let more = match pages.len().saturating_sub(PAGES_REPORTED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    table::pages_changed_since(reported.join(", "), more)
}
