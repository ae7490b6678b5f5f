//! Runs a backup at a lower priority, if its goal or its kind requests it.

use std::panic::resume_unwind;

use windlass_io::priority::{give_way, lower_priority};

use crate::request::{BackupKind, Goal};

/// How much a backup leaves to others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Priority {
    Usual,
    /// Others have a core first that both want.
    GivesWay,
    /// It gets what nobody else wants.
    Lowest,
}

impl Priority {
    /// Log backups are made all day, beside the commits whose log they take.
    fn of(goal: Goal, kind: Option<&BackupKind>) -> Self {
        match (goal, kind) {
            (Goal::Gentle, _) => Self::Lowest,
            (_, Some(BackupKind::Log)) => Self::GivesWay,
            _ => Self::Usual,
        }
    }
}

/// Does the work; at another than the usual priority on a separate thread, from which the threads that it starts
/// inherit it. The work receives a description of the priority for its plan.
pub(super) fn run<T: Send>(
    (goal, kind): (Goal, Option<&BackupKind>),
    work: impl FnOnce(Option<String>) -> T + Send,
) -> T {
    let (lowered, reported) = match Priority::of(goal, kind) {
        Priority::Usual => return work(None),
        Priority::GivesWay => (
            give_way as fn() -> _,
            "below that of other programs, for the commits beside it: BACKUP LOG",
        ),
        Priority::Lowest => (
            lower_priority as fn() -> _,
            "lowest CPU priority, idle I/O class: GENTLE",
        ),
    };
    std::thread::scope(|scope| {
        let lower = scope.spawn(|| {
            work(Some(match lowered() {
                Ok(()) => reported.to_owned(),
                Err(error) => format!("the kernel refused part of it: {error}"),
            }))
        });
        lower.join().unwrap_or_else(|panic| resume_unwind(panic))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_backups_give_way_and_others_keep_the_callers_thread() {
        let caller = std::thread::current().id();
        let here = |(goal, kind)| {
            run((goal, kind), |priority| {
                (priority, std::thread::current().id() == caller)
            })
        };
        assert_eq!(here((Goal::Fast, Some(&BackupKind::Full))), (None, true));
        let (priority, is_callers) = here((Goal::Fast, Some(&BackupKind::Log)));
        assert!(priority.unwrap().contains("below that of other programs"));
        assert!(!is_callers);
        let (priority, _) = here((Goal::Gentle, Some(&BackupKind::Log)));
        assert!(priority.unwrap().contains("GENTLE"));
    }
}
