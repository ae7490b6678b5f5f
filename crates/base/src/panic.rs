//! Turns panics of a thread into ordinary errors.
//!
//! A thread that dies silently leaves work undone that other threads assume to be done, or makes them
//! wait forever. Therefore threads run their work through [`contained`].

use std::any::Any;
use std::fmt;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Panicked {
    /// What panicked, for example "the reader".
    pub worker: &'static str,
    /// The message of the panic.
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

/// Runs the work. A panic in it becomes an error that names `worker`.
///
/// Consider everything the work was changing as broken: discard it, or use only what a failure
/// cannot leave half done.
///
/// # Errors
/// If the work panicked.
pub fn contained<T>(worker: &'static str, work: impl FnOnce() -> T) -> Result<T, Panicked> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|payload| Panicked {
        worker,
        reason: reason_of(&*payload),
    })
}

/// The message passed to `panic!`.
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
