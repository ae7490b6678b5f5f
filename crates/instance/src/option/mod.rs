//! From options as they are written to typed choices: conflicts, ranges, values of variables.
//!
//! Which options exist, where they apply and what excludes what stands in one table in `tsql`; this
//! module applies it (messages 3031 and 3032) and reads the values.

mod backup;
mod restore;

pub(crate) use backup::{BackupChoices, choose as choose_backup};
pub(crate) use restore::{RestoreChoices, choose as choose_restore};

use windlass_base::message::table;
use windlass_tsql::ast::{Name, Value as Written};
use windlass_tsql::option::{OptionRow, OptionWord, StatementKind};

use crate::expression::{integer, text_of};
use crate::{Environment, Failure, Value};

/// The value of a constant or variable.
pub(crate) fn value_of(
    written: &Written,
    environment: &mut dyn Environment,
) -> Result<Value, Failure> {
    match written {
        Written::Text { text, .. } => Ok(Value::text(text)),
        Written::Number(number) => Ok(Value::Integer(*number)),
        Written::Variable(variable) => environment.variable(&variable.name),
    }
}

/// The text of a constant or variable; `None` for NULL.
pub(crate) fn text(
    written: &Written,
    environment: &mut dyn Environment,
) -> Result<Option<String>, Failure> {
    match value_of(written, environment)? {
        Value::Null => Ok(None),
        value => text_of(&value).map(Some),
    }
}

/// The name of a database or device.
pub(crate) fn name(name: &Name, environment: &mut dyn Environment) -> Result<String, Failure> {
    match name {
        Name::Identifier(identifier) => Ok(identifier.text.clone()),
        Name::Variable(variable) => match environment.variable(&variable.name)? {
            // SQL Server says the same of a variable without a value.
            Value::Null => Err(table::database_does_not_exist("").with_state(11).into()),
            value => text_of(&value),
        },
    }
}

/// A text of at most `limit` characters; NULL and nothing are the same.
fn limited_text(
    word: OptionWord,
    written: &Written,
    limit: usize,
    environment: &mut dyn Environment,
) -> Result<Option<String>, Failure> {
    let text = text(written, environment)?.filter(|text| !text.is_empty());
    match &text {
        Some(found) if found.chars().count() > limit => Err(invalid(word)),
        _ => Ok(text),
    }
}

/// The name of a file, which is not left empty.
fn file(
    word: OptionWord,
    written: &Written,
    environment: &mut dyn Environment,
) -> Result<String, Failure> {
    let text = text(written, environment)?.filter(|text| !text.is_empty());
    text.ok_or_else(|| invalid(word))
}

/// A number within a range: 3217 when it is none, 3250 when it is outside.
fn number(
    word: OptionWord,
    written: &Written,
    range: std::ops::RangeInclusive<i64>,
    environment: &mut dyn Environment,
) -> Result<u32, Failure> {
    let value = value_of(written, environment)?;
    if value.is_null() {
        return Err(invalid(word));
    }
    let number = integer(&value).map_err(|_| invalid(word))?;
    if !range.contains(&number) {
        return Err(table::out_of_range(number, word.spelling()).into());
    }
    u32::try_from(number).map_err(|_| invalid(word))
}

fn invalid(word: OptionWord) -> Failure {
    table::invalid_parameter(word.spelling()).into()
}

/// `BLOCKSIZE`: a power of two from 512 to 65536.
fn block_size(written: &Written, environment: &mut dyn Environment) -> Result<u32, Failure> {
    let bytes = number(OptionWord::BlockSize, written, 512..=65536, environment)?;
    if bytes.is_power_of_two() {
        Ok(bytes)
    } else {
        Err(table::block_size_power_of_two().into())
    }
}

/// The most transfers that may be in flight; with 4 MB each that is a quarter of a terabyte.
const BUFFER_COUNT_MAX: i64 = 65536;

/// `BUFFERCOUNT`
fn buffer_count(written: &Written, environment: &mut dyn Environment) -> Result<u32, Failure> {
    number(
        OptionWord::BufferCount,
        written,
        1..=BUFFER_COUNT_MAX,
        environment,
    )
}

/// The unit of `MAXTRANSFERSIZE`, and its smallest value.
const TRANSFER_UNIT: u32 = 64 << 10;

/// `MAXTRANSFERSIZE`: a multiple of 64 KB up to 4 MB.
fn transfer_size(written: &Written, environment: &mut dyn Environment) -> Result<u32, Failure> {
    let range = i64::from(TRANSFER_UNIT)..=4 << 20;
    let bytes = number(OptionWord::MaxTransferSize, written, range, environment)?;
    if bytes % TRANSFER_UNIT == 0 {
        Ok(bytes)
    } else {
        Err(invalid(OptionWord::MaxTransferSize))
    }
}

/// `STATS [= n]`
fn stats(written: Option<&Written>, environment: &mut dyn Environment) -> Result<u32, Failure> {
    match written {
        Some(written) => number(OptionWord::Stats, written, 1..=100, environment),
        None => Ok(10),
    }
}

/// Refuses options that exclude each other, come twice, or do not belong to the statement.
fn check(
    words: &[OptionWord],
    rows: &[OptionRow],
    statement: StatementKind,
) -> Result<(), Failure> {
    let row = |word: OptionWord| rows.iter().find(|row| row.word == word);
    let misplaced: Vec<&str> = words
        .iter()
        .filter(|word| row(**word).is_none_or(|row| !row.applies(statement)))
        .map(|word| word.spelling())
        .collect();
    if !misplaced.is_empty() {
        return Err(table::option_not_supported(misplaced.join(", ")).into());
    }
    for (index, word) in words.iter().enumerate() {
        let earlier = words.get(..index).unwrap_or(&[]);
        let conflict = row(*word).and_then(|row| {
            let is_repeatable = matches!(word, OptionWord::Move | OptionWord::SignedBy);
            let repeated = !is_repeatable && earlier.contains(word);
            let excluded = earlier.iter().find(|other| row.conflicts.contains(other));
            excluded.or(repeated.then_some(word))
        });
        if let Some(other) = conflict {
            return Err(table::option_conflict(word.spelling(), other.spelling()).into());
        }
    }
    Ok(())
}

/// The refusal of an option that the engine does not have yet, or never will.
fn refused(word: OptionWord) -> Failure {
    use OptionWord as W;
    let spelling = word.spelling();
    let not_yet = |hint: &str| table::not_built_yet(spelling, hint).into();
    let unsupported = |hint: &str| table::statement_not_supported(spelling, hint).into();
    match word {
        W::Credential | W::BackupOptions | W::RestoreOptions => {
            not_yet("It applies to URL devices, which are not implemented either.")
        }
        W::NoWrite | W::NoCompressWrite => not_yet(
            "TO DISK = 'NUL' backs up without writing; NO_COMPRESSION turns compression off.",
        ),
        W::Standby => not_yet("Use NORECOVERY, or restore a copy under another name."),
        W::Partial => unsupported("A SQLite database has one file and one filegroup."),
        W::Password | W::MediaPassword => unsupported(
            "SQL Server has removed backup passwords, and Windlass media never have one.",
        ),
        W::FileSnapshot
        | W::MetadataOnly
        | W::Snapshot
        | W::DbName
        | W::SnapshotImport
        | W::SnapshotRestorePhase
        | W::CommitDifferentialBase => unsupported("Storage snapshots are not supported."),
        W::StopAt | W::StopAtMark | W::StopBeforeMark => {
            table::stop_at_in_simple_recovery(spelling).into()
        }
        W::RestrictedUser => unsupported("A SQLite database has no users."),
        _ => unsupported("This option has no equivalent here."),
    }
}
