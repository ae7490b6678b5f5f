//! The options of RESTORE, for all its statements.

use windlass_base::message::table;
use windlass_base::{Lsn, Message, unix_ms_of_local};
use windlass_pipeline::OnDamage;
use windlass_source::Recovery;
use windlass_tsql::ast::{RestoreOption, RestoreSource, RestoreStatement, StopMark};
use windlass_tsql::option::{OptionWord, RESTORE, StatementKind};

use super::{check, credential, devices, file, invalid, number, stats, text, unused};
use crate::operation::{
    MediaOptions, RestoreKind, RestoreOptions, StopAt, StoreOptions, VerifyOptions, WantedMark,
};
use crate::{Environment, Failure};

/// The options of a RESTORE. Each statement uses some of them.
#[derive(Debug, Default)]
struct Said {
    restore: RestoreOptions,
    /// As written; each statement has its own default.
    on_damage: Option<OnDamage>,
    loads_history: bool,
    is_without_key: bool,
    /// What the options may not mean.
    notes: Vec<Message>,
}

/// Reads the devices and options of a RESTORE DATABASE or RESTORE LOG, with notes on what they may not mean.
///
/// # Errors
/// 3031, 3032, 3217, and unsupported options.
pub(crate) fn read_restore(
    statement: &RestoreStatement,
    kind: RestoreKind,
    environment: &mut dyn Environment,
) -> Result<(RestoreOptions, Vec<Message>), Failure> {
    let statement_kind = match kind {
        RestoreKind::Database => StatementKind::RestoreDatabase,
        RestoreKind::Log => StatementKind::RestoreLog,
    };
    let said = read(statement, statement_kind, environment)?;
    let options = RestoreOptions {
        wants: Some(kind),
        on_damage: said.on_damage.unwrap_or(OnDamage::Stop),
        ..said.restore
    };
    Ok((options, said.notes))
}

/// Reads the devices and options of a RESTORE VERIFYONLY.
pub(crate) fn read_verify(
    statement: &RestoreStatement,
    environment: &mut dyn Environment,
) -> Result<VerifyOptions, Failure> {
    let said = read(statement, StatementKind::VerifyOnly, environment)?;
    Ok(VerifyOptions {
        media: said.restore.media,
        moves: said.restore.moves,
        signed_by: said.restore.signed_by,
        on_damage: said.on_damage.unwrap_or(OnDamage::Continue),
        is_without_key: said.is_without_key,
        loads_history: said.loads_history,
        stats: said.restore.stats,
        ..VerifyOptions::default()
    })
}

/// Reads the devices and options of a statement that describes media.
pub(crate) fn read_media(
    statement: &RestoreStatement,
    kind: StatementKind,
    environment: &mut dyn Environment,
) -> Result<MediaOptions, Failure> {
    read(statement, kind, environment).map(|said| said.restore.media)
}

fn read(
    statement: &RestoreStatement,
    kind: StatementKind,
    environment: &mut dyn Environment,
) -> Result<Said, Failure> {
    let written = &statement.options;
    let words: Vec<OptionWord> = written.iter().map(|option| option.word()).collect();
    check(&words, RESTORE, kind)?;
    let mut said = Said::default();
    for option in written {
        apply(&option.node, &mut said, environment)?;
    }
    match &statement.source {
        RestoreSource::None => {}
        RestoreSource::Devices(written) => {
            said.restore.media.devices = devices(written, environment)?;
        }
        RestoreSource::DatabaseSnapshot(_) => {
            return Err(table::from_snapshot_not_supported().into());
        }
    }
    Ok(said)
}

fn apply(
    option: &RestoreOption,
    said: &mut Said,
    environment: &mut dyn Environment,
) -> Result<(), Failure> {
    use {OptionWord as W, RestoreOption as O};
    let word = option.word();
    let options = &mut said.restore;
    match option {
        O::Flag(W::Recovery) => options.recovery = Recovery::Recovery,
        O::Flag(W::NoRecovery) => options.recovery = Recovery::NoRecovery,
        O::Valued(W::Standby, value) => {
            options.recovery = Recovery::NoRecovery;
            options.standby = Some(file(word, value, environment)?);
        }
        O::Move { logical, path } => {
            let logical = text(&logical.node, environment)?.unwrap_or_default();
            let path = text(&path.node, environment)?.unwrap_or_default();
            options.moves.push((logical, path));
        }
        O::Flag(W::Replace) => options.replaces = true,
        O::Flag(W::Restart) => options.restarts = true,
        O::Valued(W::File, value) => {
            options.media.position = Some(number(word, value, environment)?);
        }
        O::Valued(W::MediaName, value) => options.media.media_name = text(value, environment)?,
        O::Valued(W::BlockSize, value) => {
            options.media.block_bytes = Some(number(word, value, environment)?);
        }
        O::Valued(W::BufferCount, value) => {
            options.buffer_count = Some(number(word, value, environment)?);
        }
        O::Valued(W::MaxTransferSize, value) => {
            options.transfer_bytes = Some(number(word, value, environment)?);
        }
        O::Flag(W::Checksum) => options.media.needs_checksums = true,
        O::Flag(W::StopOnError) => said.on_damage = Some(OnDamage::Stop),
        O::Flag(W::ContinueAfterError) => said.on_damage = Some(OnDamage::Continue),
        O::Stats(value) => options.stats = Some(stats(value.as_ref(), environment)?),
        O::Credential(_) | O::Valued(W::RestoreOptions, _) => {
            of_store(option, &mut options.media.store, environment)?;
        }
        O::Flag(W::LoadHistory) => said.loads_history = true,
        O::Flag(W::WithoutKey) => said.is_without_key = true,
        O::Flag(W::AsIs) => options.is_as_is = true,
        O::Valued(W::SignedBy, value) => options.signed_by.push(file(word, value, environment)?),
        O::Flag(W::AllowUnencrypted) => options.allows_unencrypted = true,
        O::Valued(W::StopAt, value) => {
            let text = text(value, environment)?.unwrap_or_default();
            options.stop = match lsn(&text)? {
                Some(lsn) => StopAt::Lsn(lsn),
                None => StopAt::Time(time(word, &text, &mut said.notes)?),
            };
        }
        O::StopAtMark(mark) => {
            options.stop = match marked(word, mark, environment, &mut said.notes)? {
                Marked::Lsn(lsn) => StopAt::Lsn(lsn),
                Marked::Named(mark) => StopAt::Mark(mark),
            };
        }
        O::StopBeforeMark(mark) => {
            options.stop = match marked(word, mark, environment, &mut said.notes)? {
                Marked::Lsn(lsn) => StopAt::BeforeLsn(lsn),
                Marked::Named(mark) => StopAt::BeforeMark(mark),
            };
        }
        other => return unused(other.word(), RESTORE),
    }
    Ok(())
}

/// Applies an option for the stores of URLs.
fn of_store(
    option: &RestoreOption,
    store: &mut StoreOptions,
    environment: &mut dyn Environment,
) -> Result<(), Failure> {
    match option {
        RestoreOption::Credential(written) => {
            store.credential = credential(written.as_ref(), environment)?;
        }
        RestoreOption::Valued(word, value) => {
            store.json = Some(file(*word, value, environment)?);
        }
        other => return unused(other.word(), RESTORE),
    }
    Ok(())
}

/// The LSN in `lsn:<number>`; `None` for another text.
fn lsn(text: &str) -> Result<Option<Lsn>, Failure> {
    let text = text.trim();
    match text.split_at_checked(LSN.len()) {
        Some((prefix, number)) if prefix.eq_ignore_ascii_case(LSN) => {
            let lsn = number.parse();
            lsn.map(Some).map_err(|_| table::mark_is_no_lsn().into())
        }
        _ => Ok(None),
    }
}

const LSN: &str = "lsn:";

/// What STOPATMARK and STOPBEFOREMARK name.
enum Marked {
    Lsn(Lsn),
    Named(WantedMark),
}

/// A time, in milliseconds since 1970. Of two, the first is taken; a note tells both.
fn time(word: OptionWord, text: &str, notes: &mut Vec<Message>) -> Result<u64, Failure> {
    let (unix_ms, twice) = unix_ms_of_local(text).map_err(|_| invalid(word))?;
    notes.extend(twice.map(|twice| table::time_comes_twice(text, twice.first, twice.second)));
    Ok(unix_ms)
}

fn marked(
    word: OptionWord,
    mark: &StopMark,
    environment: &mut dyn Environment,
    notes: &mut Vec<Message>,
) -> Result<Marked, Failure> {
    let name = text(&mark.mark.node, environment)?.unwrap_or_default();
    let after = match &mark.after {
        None => None,
        Some(after) => {
            let text = text(&after.node, environment)?.unwrap_or_default();
            Some(time(word, &text, notes)?)
        }
    };
    match (lsn(&name)?, after) {
        (Some(lsn), None) => Ok(Marked::Lsn(lsn)),
        // An LSN has one time only.
        (Some(_), Some(_)) => Err(invalid(word)),
        (None, _) if name.is_empty() => Err(invalid(word)),
        (None, after) => Ok(Marked::Named(WantedMark {
            name,
            after_ms: after.unwrap_or(0),
        })),
    }
}
