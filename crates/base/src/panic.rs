//! Panics caught in the thread where they happen, so that they go up like any other error.
//!
//! A thread that dies without a word leaves work undone that others take for done, or lets them wait
//! for ever. Whoever gives work to a thread gives it through [`contained`].

use std::any::Any;
use std::fmt;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Work that ended in a panic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Panicked {
    /// What was at work, as in "the reader".
    pub worker: &'static str,
    /// What the panic said.
    pub reason: String,
}

impl fmt::Display for Panicked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { worker, reason } = self;
        write!(f, "a defect in Windlass stopped the {worker}: {reason}")
    }
}

impl std::error::Error for Panicked {}

impl From<Panicked> for io::Error {
    fn from(panicked: Panicked) -> Self {
        Self::other(panicked)
    }
}

/// Does the work. A panic in it becomes an error that names `worker`.
///
/// What the work had in its hands counts as broken: the caller gives it up, or uses only what a
/// failure cannot leave half done.
///
/// # Errors
/// When the work panicked.
pub fn contained<T>(worker: &'static str, work: impl FnOnce() -> T) -> Result<T, Panicked> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|payload| Panicked {
        worker,
        reason: reason_of(&*payload),
    })
}

/// What `panic!` was given.
fn reason_of(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("no reason was given").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_an_error_that_names_the_worker_and_the_reason() {
        let panicked = contained("reader", || -> u8 { panic!("page {}", 7) }).unwrap_err();
        assert_eq!(
            panicked.to_string(),
            "a defect in Windlass stopped the reader: page 7"
        );
        let panicked = contained("reader", || -> u8 { panic!("fixed") }).unwrap_err();
        assert_eq!(panicked.reason, "fixed");
        assert_eq!(contained("reader", || 7), Ok(7));
    }
}
