//! `CREATE`, `ALTER` and `DROP CREDENTIAL`.

use super::cursor::Parser;
use crate::ast::{Secret, SetCredential, Statement};
use crate::error::ParseError;

impl Parser<'_> {
    /// `CREATE` and `ALTER CREDENTIAL`
    pub(super) fn set_credential(&mut self) -> Result<Statement, ParseError> {
        let is_change = self.is_word("ALTER");
        self.bump();
        self.expect_word("CREDENTIAL")?;
        let name = self.spanned(Self::identifier)?;
        self.expect_words(&["WITH", "IDENTITY"])?;
        self.expect_symbol("=")?;
        let identity = self.text()?;
        let mut secret = None;
        if self.accept_symbol(",") {
            self.expect_word("SECRET")?;
            self.expect_symbol("=")?;
            secret = Some(self.text().map(Secret::new)?);
        }
        if self.is_word("FOR") {
            let hint = "Keys of object storage need no provider of keys: omit it.";
            return Err(self.not_supported("FOR CRYPTOGRAPHIC PROVIDER", hint));
        }
        Ok(Statement::SetCredential(Box::new(SetCredential {
            name,
            is_change,
            identity,
            secret,
        })))
    }

    pub(super) fn drop_credential(&mut self) -> Result<Statement, ParseError> {
        self.expect_words(&["DROP", "CREDENTIAL"])?;
        self.spanned(Self::identifier)
            .map(Statement::DropCredential)
    }
}
