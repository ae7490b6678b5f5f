//! Claims to names of databases.

use std::collections::HashSet;
use std::sync::{Condvar, Mutex, PoisonError};

/// The databases that sessions are opening or closing, by name in lower case: one session at a time each.
#[derive(Debug, Default)]
pub(super) struct Claims {
    names: Mutex<HashSet<String>>,
    released: Condvar,
}

/// A claim to a name; released when dropped.
pub(super) struct Claim<'a> {
    claims: &'a Claims,
    name: String,
}

impl Claims {
    pub(super) fn claim(&self, name: &str) -> Claim<'_> {
        let name = name.to_lowercase();
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        while !names.insert(name.clone()) {
            names = self
                .released
                .wait(names)
                .unwrap_or_else(PoisonError::into_inner);
        }
        Claim { claims: self, name }
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        let names = self.claims.names.lock();
        names
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&self.name);
        self.claims.released.notify_all();
    }
}
