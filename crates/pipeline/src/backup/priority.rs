//! Runs a backup at low priority, if its goal requests it.

use std::panic::resume_unwind;

use windlass_io::priority::lower_priority;

use crate::request::Goal;

/// Does the work; for [`Goal::Gentle`] on a separate thread with low CPU and I/O priority,
/// inherited by the threads it starts. The work receives a description of the priority for its
/// plan.
pub(super) fn run<T: Send>(goal: Goal, work: impl FnOnce(Option<String>) -> T + Send) -> T {
    if goal != Goal::Gentle {
        return work(None);
    }
    std::thread::scope(|scope| {
        let gentle = scope.spawn(|| {
            let reported = match lower_priority() {
                Ok(()) => "lowest CPU priority, idle I/O class: GENTLE".to_owned(),
                Err(error) => format!("the kernel refused part of it: {error}"),
            };
            work(Some(reported))
        });
        gentle.join().unwrap_or_else(|panic| resume_unwind(panic))
    })
}
