//! Keys of object storage: `CREATE`, `ALTER` and `DROP CREDENTIAL`.

use super::{Identifier, Secret};
use crate::span::Spanned;

/// `CREATE` or `ALTER CREDENTIAL name WITH IDENTITY = '...' [, SECRET = '...']`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetCredential {
    /// The URL that it is for, or any name.
    pub name: Spanned<Identifier>,
    /// Whether it replaces the one of that name: ALTER.
    pub is_change: bool,
    pub identity: String,
    pub secret: Option<Secret>,
}

impl SetCredential {
    /// The words with which the statement begins.
    pub fn statement(&self) -> &'static str {
        match self.is_change {
            true => "ALTER CREDENTIAL",
            false => "CREATE CREDENTIAL",
        }
    }
}
