//! `windlass header`, `windlass files` and `windlass label`

use windlass_instance::operation::{Inspect, MediaOptions};

use super::{Outcome, disks, ended, existing_session};
use crate::args::{
    Common, FilesArguments, HeaderArguments, LabelArguments, LayoutArguments, Output,
};
use crate::output::Console;

/// `windlass header`
pub(crate) fn header(arguments: &HeaderArguments, common: &Common) -> Outcome {
    let media = (&*arguments.media, arguments.set);
    run(
        Inspect::Headers,
        media,
        (&arguments.layout, arguments.table),
        common,
    )
}

/// `windlass files`
pub(crate) fn files(arguments: &FilesArguments, common: &Common) -> Outcome {
    let media = (&*arguments.media, Some(arguments.set));
    run(
        Inspect::Files,
        media,
        (&arguments.layout, arguments.table),
        common,
    )
}

/// `windlass label`
pub(crate) fn label(arguments: &LabelArguments, common: &Common) -> Outcome {
    let media = (std::slice::from_ref(&arguments.media), None);
    run(
        Inspect::Label,
        media,
        (&arguments.layout, arguments.table),
        common,
    )
}

fn run(
    what: Inspect,
    (media, position): (&[String], Option<u16>),
    (layout, is_table): (&LayoutArguments, bool),
    common: &Common,
) -> Outcome {
    // Few columns are a table; all of them need a line each.
    let usual = match (is_table, layout.columns.is_empty()) {
        (true, _) => Output::Wide,
        (false, true) => Output::Vertical,
        (false, false) => Output::Auto,
    };
    let console = Console::new(common.json, layout.layout(usual));
    let mut console = console.with_columns(&layout.columns);
    let Some(mut session) = existing_session(common, &mut console) else {
        return Outcome::Failed;
    };
    crate::cancel::ends_reads(session.cancel_flag());
    let options = MediaOptions {
        devices: disks(media),
        position: position.map(i64::from),
        ..MediaOptions::default()
    };
    let result = session.inspect(what, &options, &mut console);
    match ended(result, &mut console) {
        Outcome::Succeeded if console.has_failed() => Outcome::Failed,
        outcome => outcome,
    }
}
