//! Signals: the first ends the running statement cleanly, the second ends the program.
//!
//! A cancellation applies to what is running. At a prompt nothing runs: there an interrupt discards
//! the input, and a batch starts with a fresh flag, so that no batch is cancelled by an earlier
//! signal. A process has one set of signals, so their state is global.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

/// Exit code of a program killed by a signal, minus the signal's number.
const KILLED: i32 = 128;

/// The source of the awaited input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waiting {
    /// A person: an interrupt discards the input.
    Terminal,
    /// Another program: an interrupt ends this one.
    Pipe,
}

#[derive(Debug, Default)]
struct State {
    /// If set, the next interrupt or termination request ends the program at once.
    interrupt_ends: Arc<AtomicBool>,
    terminate_ends: Arc<AtomicBool>,
    is_terminated: Arc<AtomicBool>,
}

static STATE: LazyLock<State> = LazyLock::new(State::default);

/// Makes signals set `cancel`. Signals that cannot be caught end the program as usual.
pub(crate) fn watch(cancel: &Arc<AtomicBool>) {
    let ends = [
        (SIGINT, &STATE.interrupt_ends, None),
        (SIGTERM, &STATE.terminate_ends, Some(&STATE.is_terminated)),
        // The terminal was closed.
        (SIGHUP, &STATE.terminate_ends, Some(&STATE.is_terminated)),
    ];
    for (signal, end, also) in ends {
        // `nohup` wants the program to outlive its terminal.
        if signal == SIGHUP && is_ignored(signal) {
            continue;
        }
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
            crate::output::message_line(&format!("signal {signal} cannot be caught: {error}"));
        }
    }
}

/// The command writes no objects: the first signal also ends what it asks of a store that does not answer.
pub(crate) fn ends_reads(cancel: Arc<AtomicBool>) {
    windlass_device::give_up_when(cancel);
}

/// Called when nothing runs: the program waits for input.
pub(crate) fn wait_for_input(waiting: Waiting) {
    STATE
        .interrupt_ends
        .store(waiting == Waiting::Pipe, Ordering::SeqCst);
    STATE.terminate_ends.store(true, Ordering::SeqCst);
}

/// Starts a batch with a fresh cancellation flag: earlier signals do not apply to it.
pub(crate) fn begin_batch(cancel: &AtomicBool) {
    STATE.interrupt_ends.store(false, Ordering::SeqCst);
    STATE.terminate_ends.store(false, Ordering::SeqCst);
    cancel.store(false, Ordering::SeqCst);
}

/// Whether the program was asked to end, not only its statement.
pub(crate) fn is_terminated() -> bool {
    STATE.is_terminated.load(Ordering::SeqCst)
}

/// Whether a signal has come that ends what runs.
pub(crate) fn is_interrupted() -> bool {
    STATE.interrupt_ends.load(Ordering::SeqCst) || STATE.terminate_ends.load(Ordering::SeqCst)
}

/// Whether the parent process wants a signal to be ignored: proc(5), `SigIgn` of the status.
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| {
        let mask = line.strip_prefix("SigIgn:")?;
        u64::from_str_radix(mask.trim(), 16).ok()
    });
    mask.unwrap_or_default() & (1 << (signal - 1)) != 0
}
