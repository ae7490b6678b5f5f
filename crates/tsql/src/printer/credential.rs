//! Keys of object storage. Secrets are printed, because the text must be runnable: nobody logs it.

use std::fmt::{self, Display, Formatter};

use super::security::quoted;
use crate::ast::SetCredential;

impl Display for SetCredential {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (name, identity) = (&self.name.node, quoted(&self.identity));
        let statement = self.statement();
        write!(f, "{statement} {name} WITH IDENTITY = {identity}")?;
        match &self.secret {
            Some(secret) => write!(f, ", SECRET = {}", quoted(secret.text())),
            None => Ok(()),
        }
    }
}
