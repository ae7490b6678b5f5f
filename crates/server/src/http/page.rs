//! The page: everything at one look, complete without its script.
//!
//! The script keeps the progress of what runs up to date, and replaces the page's content when something has begun
//! or ended. Style and script are inline and carry the nonce of the page's policy, which allows nothing else.

use maud::{DOCTYPE, Markup, PreEscaped, html};
use serde_json::Value as Json;
use windlass_base::Moment;
use windlass_catalog::Error;
use windlass_instance::overview::jobs::JobState;
use windlass_instance::overview::{Subjects, charts, figures, jobs, media, tables};
use windlass_instance::presence::Looker;
use windlass_instance::{Instance, agent};
use windlass_report::{Cell, Column, Fact, Row, Section, Table, html as parts};

use super::route::with_subjects;
use super::{engine, running};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// Days that the timeline shows.
const DAYS: u32 = 14;
/// Backups in the table of the newest.
const NEWEST_MAX: usize = 30;
/// Sessions in their table.
const SESSIONS_MAX: usize = 200;

/// The policy of the page: its own style and script, and requests to where it came from.
pub(super) fn policy(nonce: &str) -> String {
    format!(
        "default-src 'none'; style-src 'nonce-{nonce}'; script-src 'nonce-{nonce}'; connect-src 'self'; \
         img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
}

/// The page of an instance.
pub(super) fn of(instance: &Instance, rpo_minutes: i64, nonce: &str) -> Result<String, Error> {
    let mut sections = Vec::new();
    let (figures, objective, now) =
        with_subjects(instance, (rpo_minutes, Some(DAYS)), |subjects, looker| {
            sections.extend(databases(subjects));
            sections.push(newest(subjects));
            sections.push(media_of(subjects, looker));
            let objective = tables::objective(subjects.rpo_minutes);
            (figures::of(subjects), objective, subjects.now)
        })?;
    // Where they are looked for: after the databases, before their media.
    let engines = engine::section(&instance.engines_now());
    let before_media = sections.len().saturating_sub(1);
    sections.splice(before_media..before_media, engines);
    sections.push(jobs_of(instance)?);
    sections.push(sessions(&instance.sessions_now()));
    let content = html! {
        header {
            h1 { "Windlass" }
            p class="subtitle" { (instance.identity().server) ", " (now.to_string().get(..19).unwrap_or_default()) }
        }
        (parts::figures(&figures))
        (parts::facts(&facts(instance, objective)?))
        (running::section(&instance.requests_now()))
        @for (index, section) in sections.iter().enumerate() { (parts::section(section, index)) }
        (foot())
    };
    Ok(parts::harmless(whole(&content, nonce)))
}

fn whole(content: &Markup, nonce: &str) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                link rel="icon" href="data:,";
                title { "Windlass" }
                noscript { meta http-equiv="refresh" content="30"; }
                style nonce=(nonce) { (PreEscaped(parts::STYLE)) (PreEscaped(STYLE)) }
            }
            body {
                main id="content" { (content) }
                script nonce=(nonce) { (PreEscaped(SCRIPT)) }
            }
        }
    }
}

fn facts(instance: &Instance, objective: String) -> Result<Vec<Fact>, Error> {
    let folder = instance.folder().map(|folder| folder.display().to_string());
    let retained = match instance.backup_defaults()?.retain_days {
        0 => "as each backup says".to_owned(),
        days => format!("{days} days, or as each backup says"),
    };
    let mut facts = vec![
        Fact::new("instance", folder.unwrap_or_default()),
        Fact::new("objective", objective),
        Fact::new("media are kept", retained),
    ];
    let copies = instance.catalog().queued_copies()?;
    if !copies.is_empty() {
        let failing = copies.iter().filter(|copy| copy.attempts > 0).count();
        let text = format!("{} waiting, {failing} of them have failed", copies.len());
        facts.push(Fact::new("copies", text));
    }
    Ok(facts)
}

fn databases(subjects: &Subjects<'_>) -> Vec<Section> {
    let mut sections = vec![Section {
        heading: "Databases".to_owned(),
        charts: match subjects.all.is_empty() {
            true => Vec::new(),
            false => vec![charts::timeline(subjects)],
        },
        tables: vec![tables::databases(subjects).without_empty_columns()],
        ..Section::default()
    }];
    let gaps = tables::gaps(subjects);
    if !gaps.rows.is_empty() {
        sections.push(Section {
            heading: format!("Gaps in the last {DAYS} days"),
            tables: vec![gaps.without_empty_columns()],
            ..Section::default()
        });
    }
    sections
}

/// The newest backups of all databases.
fn newest(subjects: &Subjects<'_>) -> Section {
    let all = subjects.all.iter();
    let mut backups: Vec<_> = all.flat_map(|one| subjects.backups(one)).collect();
    backups.sort_by_key(|backup| (backup.finished, backup.id));
    let newest = backups.split_off(backups.len().saturating_sub(NEWEST_MAX));
    let mut table = tables::backups(&newest);
    "The newest backups".clone_into(&mut table.caption);
    table
        .columns
        .insert(1, Column::text("database", "Database"));
    for (row, backup) in table.rows.iter_mut().zip(newest.iter().rev()) {
        row.cells.insert(1, backup.database.as_str().into());
    }
    let text = match newest.is_empty() {
        true => vec![format!("There is no backup in the last {DAYS} days.")],
        false => Vec::new(),
    };
    Section {
        heading: "History".to_owned(),
        tables: match newest.is_empty() {
            true => Vec::new(),
            false => vec![table.without_empty_columns()],
        },
        text,
        ..Section::default()
    }
}

fn media_of(subjects: &Subjects<'_>, looker: &mut Looker) -> Section {
    let all = subjects.all.iter();
    let held = all.flat_map(|one| one.exposure.iter().flat_map(|judged| &judged.backups));
    let held: Vec<_> = held.copied().cloned().collect();
    let table = media::table(&held, looker, subjects.now);
    Section {
        heading: "Media and retention".to_owned(),
        text: match table.rows.is_empty() {
            true => vec!["The history names no media.".to_owned()],
            false => Vec::new(),
        },
        tables: match table.rows.is_empty() {
            true => Vec::new(),
            false => vec![table.without_empty_columns()],
        },
        ..Section::default()
    }
}

fn jobs_of(instance: &Instance) -> Result<Section, Error> {
    let listed = jobs_now(instance)?;
    let runs = match instance.folder().is_some_and(agent::is_running) {
        true => Vec::new(),
        false => vec!["No server runs the jobs of this instance now.".to_owned()],
    };
    Ok(Section {
        heading: "Jobs".to_owned(),
        text: match listed.is_empty() {
            true => vec!["There is no job: sp_add_job makes one.".to_owned()],
            false => runs,
        },
        tables: match listed.is_empty() {
            true => Vec::new(),
            false => vec![jobs::table(&listed).without_empty_columns()],
        },
        ..Section::default()
    })
}

/// The jobs of an instance.
pub(super) fn jobs_now(instance: &Instance) -> Result<Vec<JobState>, Error> {
    let agent_runs = instance.folder().is_some_and(agent::is_running);
    jobs::list(instance.catalog().agent(), agent_runs)
}

fn sessions(sessions: &Json) -> Section {
    let all = sessions.as_array().map(Vec::as_slice).unwrap_or_default();
    let row = |session: &Json| {
        let text = |key: &str| match session[key].as_str() {
            None | Some("") => Cell::Missing,
            Some(text) => text.into(),
        };
        let at = session["last_request_start_time"].as_str();
        let at = at.and_then(|at| at.parse::<Moment>().ok());
        Row::new(vec![
            session["session_id"].to_string().into(),
            text("login_name"),
            text("program_name"),
            text("host_name"),
            text("database_name"),
            text("status"),
            at.map_or(Cell::Missing, |at| at.to_string().into()),
        ])
    };
    let table = Table {
        key: "sessions",
        caption: match all.len() {
            0..=SESSIONS_MAX => "Clients that are connected".to_owned(),
            count => format!("The first {SESSIONS_MAX} of {count} clients that are connected"),
        },
        columns: vec![
            Column::text("session", "Session"),
            Column::text("login", "Login"),
            Column::text("program", "Program"),
            Column::text("host", "Machine"),
            Column::text("database", "Database"),
            Column::text("status", "State"),
            Column::moment("request", "Last request"),
        ],
        rows: all.iter().take(SESSIONS_MAX).map(row).collect(),
    };
    Section {
        heading: "Sessions".to_owned(),
        text: match all.is_empty() {
            true => vec!["No client is connected.".to_owned()],
            false => Vec::new(),
        },
        tables: match all.is_empty() {
            true => Vec::new(),
            false => vec![table.without_empty_columns()],
        },
        ..Section::default()
    }
}

fn foot() -> Markup {
    let addresses = [
        "metrics",
        "healthz",
        "events",
        "api/databases",
        "api/requests",
        "api/history?last=100",
        "api/jobs",
        "api/sessions",
    ];
    html! {
        footer {
            h2 { "For programs" }
            ul class="addresses" {
                @for address in addresses { li { a href=(address) { "/" (address) } } }
            }
        }
    }
}
