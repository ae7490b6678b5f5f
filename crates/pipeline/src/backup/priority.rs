//! Runs a backup at a lower priority, if its goal or its kind requests it.

use std::panic::resume_unwind;
use std::sync::{Mutex, PoisonError};
use std::thread::Builder;

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
    let work = |is_own: bool| {
        work(Some(match (is_own, is_own.then(lowered)) {
            (true, Some(Err(error))) => format!("the kernel refused part of it: {error}"),
            (true, _) => reported.to_owned(),
            (false, _) => "the usual one: the system has no thread of its own for it".to_owned(),
        }))
    };
    // Taken by the thread, or by the caller if there is none.
    let work = Mutex::new(Some(work));
    let take = || work.lock().unwrap_or_else(PoisonError::into_inner).take();
    std::thread::scope(|scope| {
        let started = Builder::new().spawn_scoped(scope, || take().map(|work| work(true)));
        let done = match started {
            Ok(thread) => thread.join().unwrap_or_else(|panic| resume_unwind(panic)),
            Err(_) => take().map(|work| work(false)),
        };
        done.unwrap_or_else(|| unreachable!("one of the two has the work"))
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
