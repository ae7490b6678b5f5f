//! Ctrl-C: the first ends the running statement cleanly, the second ends the program.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::{SIGINT, SIGTERM};

/// What the shell reports for a program that Ctrl-C ended.
const KILLED_BY_INTERRUPT: i32 = 130;

/// Lets signals set `flag`. Where signals cannot be caught, they end the program as ever.
pub(crate) fn watch(flag: &Arc<AtomicBool>) {
    for signal in [SIGINT, SIGTERM] {
        // In this order: the first signal finds the flag unset, the second one set.
        let end = Arc::clone(flag);
        let set = Arc::clone(flag);
        let registered =
            signal_hook::flag::register_conditional_shutdown(signal, KILLED_BY_INTERRUPT, end)
                .and_then(|_| signal_hook::flag::register(signal, set));
        if let Err(error) = registered {
            crate::output::message_line(&format!("Ctrl-C cannot be caught: {error}"));
        }
    }
}
