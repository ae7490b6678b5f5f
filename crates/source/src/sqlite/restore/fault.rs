//! Points at which tests kill the process, to check what a crash there leaves.

/// Exits a test process whose environment names `step` at once, like a power failure.
#[cfg(test)]
pub(super) fn point(step: &str) {
    if std::env::var("WINDLASS_CRASH_AFTER").is_ok_and(|wanted| wanted == step) {
        std::process::abort();
    }
}

/// No faults outside of tests.
#[cfg(not(test))]
pub(super) const fn point(_step: &str) {}
