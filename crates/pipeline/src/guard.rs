//! What the caller does not let a backup overwrite.

use std::fmt;
use std::io::ErrorKind;
use std::sync::Arc;

use windlass_base::Message;

use crate::error::Error;
use crate::media_set::{MediaSet, SetEntry};
use crate::request::{MediaRequest, Overwrite};

type Rule = dyn Fn(&str, &[SetEntry]) -> Option<Message> + Send + Sync;

/// Says why the sets on a medium must stay; `None` if they may be overwritten.
#[derive(Clone)]
pub struct Guard(Arc<Rule>);

impl Guard {
    /// `rule` is asked with the name of each device and the sets on it.
    pub fn new(
        rule: impl Fn(&str, &[SetEntry]) -> Option<Message> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(rule))
    }
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Guard")
    }
}

/// Asks the guards about all media that would be overwritten.
///
/// # Errors
/// [`Error::Guarded`], with the first reason.
pub(crate) fn check(request: &MediaRequest) -> Result<(), Error> {
    if request.overwrite == Overwrite::Append || request.guards.is_empty() {
        return Ok(());
    }
    let copies = std::iter::once(&request.devices).chain(&request.mirrors);
    for device in copies.flatten().filter(|device| !device.discards()) {
        // Reading a pipe would take from it; there is nothing to overwrite.
        if !device.has_content()? {
            continue;
        }
        let held = match MediaSet::open_any(std::slice::from_ref(device)) {
            Ok(held) => held,
            Err(Error::Device(error)) if error.source.kind() != ErrorKind::NotFound => {
                return Err(error.into());
            }
            // What cannot be read as a medium holds no backup.
            Err(_) => continue,
        };
        let sets = held.sets();
        let reasons = request
            .guards
            .iter()
            .filter_map(|guard| (guard.0)(&device.name, &sets));
        if let Some(reason) = reasons.into_iter().next() {
            return Err(Error::Guarded(Box::new(reason)));
        }
    }
    Ok(())
}
