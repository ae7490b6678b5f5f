//! What written options need from their session.

use crate::{Failure, Value};

/// The names that a statement can refer to.
pub trait Environment {
    /// The value of `@x` or `@@x`.
    fn variable(&mut self, name: &str) -> Result<Value, Failure>;

    /// The id and name of a database.
    fn database(&mut self, which: Which<'_>) -> Result<Option<(i64, String)>, Failure>;

    fn identity(&self) -> &crate::Identity;
}

#[derive(Debug, Clone, Copy)]
pub enum Which<'a> {
    /// The current one.
    Current,
    /// The one with this id.
    Numbered(i64),
    /// The one with this name.
    Named(&'a str),
}
