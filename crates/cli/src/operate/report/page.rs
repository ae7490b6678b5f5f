//! The HTML page.

use std::path::Path;

use windlass_base::size::counted;
use windlass_instance::overview::{Subject, Subjects, Verdict, charts, figures, tables};
use windlass_report::{Fact, Report, Section};

/// Maximum number of databases with their own charts.
const SECTIONS_MAX: usize = 50;

/// The report on all databases.
pub(super) fn of(subjects: &Subjects<'_>, instance: &Path) -> Report {
    let mut sections = vec![overview(subjects), gaps(subjects)];
    sections.extend(unusable(subjects));
    let with_backups = subjects.all.iter();
    let with_backups = with_backups.filter(|subject| !subjects.backups(subject).is_empty());
    sections.extend(
        with_backups
            .take(SECTIONS_MAX)
            .map(|subject| database(subjects, subject)),
    );
    Report {
        title: "Backups".to_owned(),
        subtitle: format!(
            "{} to {}",
            subjects.moments.from.strftime("%Y-%m-%d %H:%M"),
            subjects.moments.to.strftime("%Y-%m-%d %H:%M")
        ),
        figures: figures::of(subjects),
        facts: vec![
            Fact::new("instance", instance.display().to_string()),
            Fact::new("objective", tables::objective(subjects.rpo_minutes)),
            Fact::new("made", subjects.now.to_string()),
        ],
        sections,
        notes: notes(),
    }
}

fn overview(subjects: &Subjects<'_>) -> Section {
    Section {
        heading: "Databases".to_owned(),
        charts: vec![charts::timeline(subjects)],
        tables: vec![tables::databases(subjects).without_empty_columns()],
        ..Section::default()
    }
}

fn gaps(subjects: &Subjects<'_>) -> Section {
    let table = tables::gaps(subjects);
    let heading = "Gaps".to_owned();
    if table.rows.is_empty() {
        let verdicts = subjects.all.iter().map(|subject| subjects.verdict(subject));
        let unknown = verdicts
            .filter(|verdict| *verdict == Verdict::Unknown)
            .count();
        return Section {
            heading,
            text: vec![match unknown {
                0 => "At no time would a failure have lost more than the objective allows."
                    .to_owned(),
                unknown => format!(
                    "None is known. Of {} it is unknown whether they can be restored now: their media cannot be examined.",
                    counted(unknown, "database")
                ),
            }],
            ..Section::default()
        };
    }
    Section {
        heading,
        tables: vec![table],
        ..Section::default()
    }
}

fn unusable(subjects: &Subjects<'_>) -> Option<Section> {
    let table = tables::unusable(subjects);
    (!table.rows.is_empty()).then(|| Section {
        heading: "Not restorable".to_owned(),
        tables: vec![table],
        ..Section::default()
    })
}

fn database(subjects: &Subjects<'_>, subject: &Subject<'_>) -> Section {
    let mut text = Vec::new();
    if !subject.is_kept {
        text.push(
            "This database is in the history, but neither registered with the instance nor backed up by its path.".to_owned(),
        );
    }
    Section {
        heading: subject.name.to_owned(),
        text,
        charts: charts::of_database(subjects, subject),
        tables: vec![tables::backups(&subjects.backups(subject)).without_empty_columns()],
        ..Section::default()
    }
}

fn notes() -> Vec<String> {
    let notes = [
        "The objective is the most that a failure may lose. A gap begins when the newest \
         restorable backup, counted from its start, is older than the objective, and ends when the \
         next one finishes.",
        "A backup counts as restorable if its database was not damaged and the history has what it \
         needs: the full backup of a differential, the unbroken log of a log backup. Only windlass \
         verify shows that its files are intact; this report checks that the files of the newest \
         state exist, have their recorded length and begin with their header. The files of older \
         backups may be missing.",
        "Dates are in the local time of the machine that made the backups. For backups made \
         elsewhere, only whole seconds are known.",
        "Long rows show every second, third ... backup and the last one; if there are more than \
         200 backups, the table lists the newest.",
        "Backups that are not in the history, such as those made without the instance or removed \
         by sp_delete_backuphistory, do not appear.",
    ];
    notes.map(str::to_owned).to_vec()
}
