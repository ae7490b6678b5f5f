//! Whether a process is still the one that opened something, or a child of its `fork`.
//!
//! Neither threads nor locks of byte ranges are in a child, so it may not use what its parent has open.

use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// How many forks lie between the first process that asked and this one.
static FORKS: AtomicU32 = AtomicU32::new(0);

/// The process that made the value.
#[derive(Debug, Clone, Copy)]
pub struct Owner {
    id: u32,
    forks: u32,
}

impl Owner {
    /// The process that runs.
    pub fn this() -> Self {
        count_forks();
        Self {
            id: std::process::id(),
            forks: FORKS.load(Ordering::Relaxed),
        }
    }

    /// Its number.
    pub fn id(self) -> u32 {
        self.id
    }

    /// Whether it is the process that runs: one system call.
    pub fn is_this(self) -> bool {
        self.id == std::process::id()
    }

    /// The same without a system call, for what is asked a million times in a second. A child made by a bare `clone`,
    /// which skips what `fork` runs, is taken for its parent: ask [`Owner::is_this`] where something begins.
    pub fn is_this_unless_cloned(self) -> bool {
        match COUNTS.load(Ordering::Relaxed) {
            true => self.forks == FORKS.load(Ordering::Relaxed),
            false => self.is_this(),
        }
    }
}

/// Whether each `fork` is counted.
static COUNTS: AtomicBool = AtomicBool::new(false);

#[cfg(unix)]
fn count_forks() {
    extern "C" fn one_more() {
        FORKS.fetch_add(1, Ordering::Relaxed);
    }
    static REGISTERED: Once = Once::new();
    REGISTERED.call_once(|| {
        #[expect(unsafe_code, reason = "std has no hook of fork")]
        // SAFETY: the handler adds to an atomic number, which a child may do between `fork` and `exec`.
        let failed = unsafe { libc::pthread_atfork(None, None, Some(one_more)) };
        COUNTS.store(failed == 0, Ordering::Relaxed);
    });
}

/// There is no fork.
#[cfg(not(unix))]
fn count_forks() {
    static REGISTERED: Once = Once::new();
    REGISTERED.call_once(|| COUNTS.store(true, Ordering::Relaxed));
}
