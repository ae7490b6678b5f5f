//! Signals: the first ends the running statement cleanly, the second ends the program.
//!
//! A cancellation belongs to what runs. At a prompt nothing runs: there an interrupt discards what was
//! typed, and a batch begins with a fresh flag, so that none is ever cut by a signal that was sent before
//! it. A process has one set of signals, so their state is known to the whole program.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

/// What the shell reports for a program that a signal ended, less the signal's number.
const KILLED: i32 = 128;

/// Who sends the input that is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waiting {
    /// A person: an interrupt discards what was typed.
    Terminal,
    /// Another program: an interrupt ends this one.
    Pipe,
}

#[derive(Debug, Default)]
struct State {
    /// The next interrupt, or the next request to terminate, ends the program at once.
    interrupt_ends: Arc<AtomicBool>,
    terminate_ends: Arc<AtomicBool>,
    is_terminated: Arc<AtomicBool>,
}

static STATE: LazyLock<State> = LazyLock::new(State::default);

/// Lets signals set `cancel`. Where signals cannot be caught, they end the program as ever.
pub(crate) fn watch(cancel: &Arc<AtomicBool>) {
    let ends = [
        (SIGINT, &STATE.interrupt_ends, None),
        (SIGTERM, &STATE.terminate_ends, Some(&STATE.is_terminated)),
    ];
    for (signal, end, also) in ends {
        // In this order: the first signal finds the flag unset, the second one set.
        let registered =
            flag::register_conditional_shutdown(signal, KILLED + signal, Arc::clone(end))
                .and_then(|_| flag::register(signal, Arc::clone(cancel)))
                .and_then(|_| flag::register(signal, Arc::clone(end)))
                .and_then(|_| {
                    also.map_or(Ok(()), |also| {
                        flag::register(signal, Arc::clone(also)).map(drop)
                    })
                });
        if let Err(error) = registered {
            crate::output::message_line(&format!("Ctrl-C cannot be caught: {error}"));
        }
    }
}

/// Nothing runs from here on: the program waits for input.
pub(crate) fn wait_for_input(waiting: Waiting) {
    STATE
        .interrupt_ends
        .store(waiting == Waiting::Pipe, Ordering::SeqCst);
    STATE.terminate_ends.store(true, Ordering::SeqCst);
}

/// A batch begins, with a fresh cancellation: what was sent before is not meant for it.
pub(crate) fn begin_batch(cancel: &AtomicBool) {
    STATE.interrupt_ends.store(false, Ordering::SeqCst);
    STATE.terminate_ends.store(false, Ordering::SeqCst);
    cancel.store(false, Ordering::SeqCst);
}

/// Whether the program was asked to end, not only its statement.
pub(crate) fn is_terminated() -> bool {
    STATE.is_terminated.load(Ordering::SeqCst)
}
