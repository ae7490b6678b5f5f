//! How many databases meet the objective.

use windlass_report::Figure;

use super::{Subjects, Verdict};

/// The most important numbers.
pub fn of(subjects: &Subjects<'_>) -> Vec<Figure> {
    let count = |wanted: &[Verdict]| {
        let all = subjects.all.iter();
        all.filter(|subject| wanted.contains(&subjects.verdict(subject)))
            .count()
    };
    let backups: usize = subjects
        .all
        .iter()
        .map(|subject| subjects.backups(subject).len())
        .sum();
    let figure = |label: &str, value: usize, detail: &str| Figure {
        label: label.to_owned(),
        value: value.to_string(),
        detail: detail.to_owned(),
    };
    vec![
        figure(
            "databases",
            subjects.all.len(),
            &format!("{backups} backups"),
        ),
        figure(
            "keep the objective",
            count(&[Verdict::Kept]),
            &match count(&[Verdict::Unknown]) {
                0 => String::new(),
                unknown => format!("{unknown} unknown: media cannot be examined"),
            },
        ),
        figure(
            "missed it",
            count(&[Verdict::Missed, Verdict::Exposed]),
            &format!("{} miss it now", count(&[Verdict::Exposed])),
        ),
        figure(
            "without a restorable backup",
            count(&[Verdict::Never, Verdict::Lost]),
            &format!("{} never backed up", count(&[Verdict::Never])),
        ),
    ]
}
