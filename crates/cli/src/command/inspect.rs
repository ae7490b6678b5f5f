//! `windlass header`, `windlass files` and `windlass label`

use windlass_tsql::ast::{
    RestoreAction, RestoreOption, RestoreSource, RestoreStatement, Statement, Value,
};

use super::{Outcome, disk, made, session};
use crate::args::{Common, FilesArguments, HeaderArguments, LabelArguments};
use crate::output::{Console, Layout};

/// `windlass header`
pub(crate) fn header(arguments: &HeaderArguments, common: &Common) -> Outcome {
    let options = arguments.set.map(file).into_iter().collect();
    run(
        RestoreAction::HeaderOnly,
        &arguments.media,
        options,
        arguments.table,
        common,
    )
}

/// `windlass files`
pub(crate) fn files(arguments: &FilesArguments, common: &Common) -> Outcome {
    let options = vec![file(arguments.set)];
    run(
        RestoreAction::FileListOnly,
        &arguments.media,
        options,
        arguments.table,
        common,
    )
}

/// `windlass label`
pub(crate) fn label(arguments: &LabelArguments, common: &Common) -> Outcome {
    let media = std::slice::from_ref(&arguments.media);
    run(
        RestoreAction::LabelOnly,
        media,
        Vec::new(),
        arguments.table,
        common,
    )
}

fn file(position: u16) -> RestoreOption {
    RestoreOption::File(Value::Number(i64::from(position)))
}

fn run(
    action: RestoreAction,
    media: &[String],
    options: Vec<RestoreOption>,
    is_table: bool,
    common: &Common,
) -> Outcome {
    let layout = if is_table {
        Layout::Table
    } else {
        Layout::Vertical
    };
    let mut console = Console::new(common.json, layout);
    let Some(mut session) = session(common, &mut console) else {
        return Outcome::Failed;
    };
    let statement = RestoreStatement {
        action,
        source: RestoreSource::Devices(media.iter().map(|path| disk(path, common)).collect()),
        options: options.into_iter().map(made).collect(),
    };
    let statement = made(Statement::Restore(Box::new(statement)));
    session
        .execute_statements(&[statement], 1, &mut console)
        .into()
}
