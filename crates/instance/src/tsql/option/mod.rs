//! Converts T-SQL's written options and devices to those of operations.
//!
//! One table in `tsql` lists the options of the language, where they apply and what they exclude; this
//! module applies it (messages 3031 and 3032) and evaluates constants and variables. Operations check
//! the values.

mod backup;
mod restore;

pub(crate) use backup::read as read_backup;
pub(crate) use restore::{read_media, read_restore, read_verify};

use windlass_base::message::table;
use windlass_tsql::ast::{Credential, Device, DeviceKind, Name, Value as Written};
use windlass_tsql::option::{OptionRow, OptionWord, StatementKind, Support};
use windlass_tsql::span::Spanned;

use crate::operation::{CredentialChoice, DeviceName};
use crate::tsql::expression::{integer, text_of};
use crate::{Environment, Failure, Value};

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
            // SQL Server sends the same message for a variable without a value.
            Value::Null => Err(table::database_does_not_exist("").with_state(11).into()),
            value => text_of(&value),
        },
    }
}

/// A text; `None` if it is NULL or empty.
fn filled_text(
    written: &Written,
    environment: &mut dyn Environment,
) -> Result<Option<String>, Failure> {
    Ok(text(written, environment)?.filter(|text| !text.is_empty()))
}

/// The name of a file, which must not be empty.
fn file(
    word: OptionWord,
    written: &Written,
    environment: &mut dyn Environment,
) -> Result<String, Failure> {
    filled_text(written, environment)?.ok_or_else(|| invalid(word))
}

/// A number; otherwise 3217.
fn number(
    word: OptionWord,
    written: &Written,
    environment: &mut dyn Environment,
) -> Result<i64, Failure> {
    match value_of(written, environment)? {
        Value::Null => Err(invalid(word)),
        value => integer(&value).map_err(|_| invalid(word)),
    }
}

/// The devices of a `TO`, `MIRROR TO` or `FROM` list.
fn devices(
    written: &[Spanned<Device>],
    environment: &mut dyn Environment,
) -> Result<Vec<DeviceName>, Failure> {
    let mut devices = Vec::with_capacity(written.len());
    for device in written {
        devices.push(match &device.node {
            Device::Logical(written) => DeviceName::Logical(name(written, environment)?),
            Device::Physical { kind, path } => match kind {
                DeviceKind::Disk => DeviceName::Disk(text(path, environment)?.unwrap_or_default()),
                DeviceKind::Tape => DeviceName::Tape,
                DeviceKind::Url => DeviceName::Url(text(path, environment)?.unwrap_or_default()),
                DeviceKind::VirtualDevice => DeviceName::VirtualDevice,
            },
        });
    }
    Ok(devices)
}

/// `CREDENTIAL [= name]`
fn credential(
    written: Option<&Credential>,
    environment: &mut dyn Environment,
) -> Result<CredentialChoice, Failure> {
    Ok(match written {
        None => CredentialChoice::Matching,
        Some(Credential::Identifier(name)) => CredentialChoice::Named(name.text.clone()),
        Some(Credential::Value(value)) => {
            CredentialChoice::Named(file(OptionWord::Credential, value, environment)?)
        }
    })
}

fn invalid(word: OptionWord) -> Failure {
    table::invalid_parameter(word.spelling()).into()
}

/// `STATS [= n]`
fn stats(written: Option<&Written>, environment: &mut dyn Environment) -> Result<i64, Failure> {
    match written {
        Some(written) => number(OptionWord::Stats, written, environment),
        None => Ok(10),
    }
}

/// Refuses options that exclude each other, are repeated, or do not belong to the statement.
pub(crate) fn check(
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

/// Handles an option that no operation uses: it has no effect, or is refused.
fn unused(word: OptionWord, rows: &[OptionRow]) -> Result<(), Failure> {
    let row = rows.iter().find(|row| row.word == word);
    let spelling = word.spelling();
    match row.map(|row| row.support) {
        Some(Support::NoEffect) => Ok(()),
        Some(Support::Never(because)) => {
            Err(table::statement_not_supported(spelling, because).into())
        }
        Some(Support::Acts) | None => Err(table::option_not_supported(spelling).into()),
    }
}

#[cfg(test)]
mod tests;
