//! Places where tests end the process, to see what a crash there leaves.

/// In a test process whose environment names `step`, ends it at once, as a power failure would.
#[cfg(test)]
pub(super) fn point(step: &str) {
    if std::env::var("WINDLASS_CRASH_AFTER").is_ok_and(|wanted| wanted == step) {
        std::process::abort();
    }
}

/// Nothing, outside of tests.
#[cfg(not(test))]
pub(super) const fn point(_step: &str) {}
