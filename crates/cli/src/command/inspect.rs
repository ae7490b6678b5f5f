//! `windlass header`, `windlass files` and `windlass label`

use windlass_instance::operation::{Inspect, MediaOptions};

use super::{Outcome, disks, ended, session};
use crate::args::{Common, FilesArguments, HeaderArguments, LabelArguments};
use crate::output::{Console, Layout};

/// `windlass header`
pub(crate) fn header(arguments: &HeaderArguments, common: &Common) -> Outcome {
    let layout = layout(arguments.table);
    let media = (&*arguments.media, arguments.set);
    run(Inspect::Headers, media, layout, common)
}

/// `windlass files`
pub(crate) fn files(arguments: &FilesArguments, common: &Common) -> Outcome {
    let layout = layout(arguments.table);
    let media = (&*arguments.media, Some(arguments.set));
    run(Inspect::Files, media, layout, common)
}

/// `windlass label`
pub(crate) fn label(arguments: &LabelArguments, common: &Common) -> Outcome {
    let layout = layout(arguments.table);
    let media = (std::slice::from_ref(&arguments.media), None);
    run(Inspect::Label, media, layout, common)
}

fn layout(is_table: bool) -> Layout {
    match is_table {
        true => Layout::Table,
        false => Layout::Vertical,
    }
}

fn run(
    what: Inspect,
    (media, position): (&[String], Option<u16>),
    layout: Layout,
    common: &Common,
) -> Outcome {
    let mut console = Console::new(common.json, layout);
    let Some(mut session) = session(common, &mut console) else {
        return Outcome::Failed;
    };
    let options = MediaOptions {
        devices: disks(media, common),
        position: position.map(i64::from),
        ..MediaOptions::default()
    };
    let result = session.inspect(what, &options, &mut console);
    ended(result, &mut console)
}
