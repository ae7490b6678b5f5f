//! Runs a backup behind everybody else, where its goal says so.

use std::panic::resume_unwind;

use windlass_io::priority::give_way;

use crate::request::Goal;

/// Does the work; for [`Goal::Gentle`] on a thread of its own that gives way, as do the threads that
/// the work starts. The work is told how, for its plan.
pub(super) fn run<T: Send>(goal: Goal, work: impl FnOnce(Option<String>) -> T + Send) -> T {
    if goal != Goal::Gentle {
        return work(None);
    }
    std::thread::scope(|scope| {
        let gentle = scope.spawn(|| {
            let told = match give_way() {
                Ok(()) => "least weight for processors, idle class for disks: GENTLE".to_owned(),
                Err(error) => format!("the kernel refused a part of it: {error}"),
            };
            work(Some(told))
        });
        gentle.join().unwrap_or_else(|panic| resume_unwind(panic))
    })
}
