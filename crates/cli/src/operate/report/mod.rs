//! `windlass report`: the gaps on standard output, and the history as one HTML page.
//!
//! | file | what |
//! |---|---|
//! | `page` | the page, made of the parts of [`windlass_instance::overview`] |

mod page;

use std::path::Path;

use windlass_base::Moment;
use windlass_catalog::provenance::is_named;
use windlass_instance::overview::{Subjects, tables};
use windlass_instance::presence::Looker;
use windlass_instance::retention::Now;
use windlass_instance::standing::{in_zone_of_now, standings, tell_apart};
use windlass_instance::watched::{failures, kept_names};
use windlass_io::output;
use windlass_report::Table;

use super::ReportArguments;
use crate::args::Common;
use crate::command::{Outcome, existing_session, failed, misused};
use crate::output::{Console, Layout, error_line, result_json, result_line, result_text};

/// Runs the command.
pub(super) fn run(arguments: &ReportArguments, common: &Common) -> Outcome {
    let Some(instance) = &common.instance else {
        return misused("the report needs --instance");
    };
    let mut console = Console::new(common.json, Layout::Table);
    let Some(mut session) = existing_session(common, &mut console) else {
        return Outcome::Failed;
    };
    let catalog = session.instance().catalog();
    let database = arguments.database.as_deref();
    let machine = &session.instance().identity().machine;
    let known = catalog.databases().and_then(|registered| {
        let mut past = catalog.past_backups(database)?;
        tell_apart(&mut past, &registered, machine);
        let failures = failures(catalog, &past, &registered, machine)?;
        Ok((registered, past, failures, Looker::of(catalog)?))
    });
    let (registered, mut past, failures, mut looker) = match known {
        Ok(known) => known,
        Err(error) => return failed(&error, &mut console),
    };
    in_zone_of_now(&mut past);
    let now = Moment::now().0;
    let standings = standings(&past, Some(&mut looker), Now::here());
    let mut kept = kept_names(&registered, &standings, &failures);
    kept.retain(|name| database.is_none_or(|database| is_named(name, database)));
    if let Some(database) = database
        && kept.is_empty()
        && past.is_empty()
    {
        return misused(&format!("the instance knows no database '{database}'"));
    }
    let subjects = Subjects::new(standings, &kept, arguments.rpo, arguments.days, now);
    let (databases, gaps) = (tables::databases(&subjects), tables::gaps(&subjects));
    if common.json {
        result_json(&tables::json(&subjects, &[&databases, &gaps]).to_string());
    } else {
        result_text(&databases.to_text());
        result_line("");
        result_text(&text_of(&gaps));
    }
    let written = match &arguments.to {
        Some(path) => write(path, &page::of(&subjects, instance).to_html()),
        None => Outcome::Succeeded,
    };
    let outcome = match written {
        Outcome::Succeeded => super::met(&subjects),
        failed => failed,
    };
    looker.note(session.instance_mut().catalog_mut(), now);
    outcome
}

fn text_of(gaps: &Table) -> String {
    if gaps.rows.is_empty() {
        format!("{}: none", gaps.caption)
    } else {
        gaps.to_text()
    }
}

/// Replaces the file atomically, so that concurrent readers see the old one.
pub(super) fn write(path: &Path, text: &str) -> Outcome {
    match output::write(path, text.as_bytes(), output::MODE_PUBLIC) {
        Ok(()) => Outcome::Succeeded,
        Err(error) => {
            error_line(&format!("cannot write '{}': {error}", path.display()));
            Outcome::Failed
        }
    }
}
