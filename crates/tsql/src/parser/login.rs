//! `CREATE`, `ALTER` and `DROP LOGIN`, `ALTER SERVER ROLE`.

use super::cursor::Parser;
use crate::ast::{
    AlterLogin, AlterLoginAction, AlterServerRole, CreateLogin, LoginOption, Membership, Secret,
    Statement,
};
use crate::error::ParseError;
use crate::lexer::TokenKind;

const LANGUAGE: &str = "us_english";

impl Parser<'_> {
    pub(super) fn create_login(&mut self) -> Result<Statement, ParseError> {
        self.expect_words(&["CREATE", "LOGIN"])?;
        let name = self.spanned(Self::identifier)?;
        if self.is_word("FROM") {
            let what = "CREATE LOGIN ... FROM WINDOWS, a certificate or a key";
            let hint = "Logins have passwords: write WITH PASSWORD = '...'. On this machine, whoever may read the \
                        instance's files needs no login.";
            return Err(self.not_supported(what, hint));
        }
        self.expect_words(&["WITH", "PASSWORD"])?;
        self.expect_symbol("=")?;
        let password = self.password()?;
        let mut options = Vec::new();
        while self.accept_symbol(",") {
            options.push(self.login_option(false)?);
        }
        Ok(Statement::CreateLogin(Box::new(CreateLogin {
            name,
            password,
            options,
        })))
    }

    pub(super) fn alter_login(&mut self) -> Result<Statement, ParseError> {
        self.expect_words(&["ALTER", "LOGIN"])?;
        let name = self.spanned(Self::identifier)?;
        let action = if self.accept_word("ENABLE") {
            AlterLoginAction::Enable
        } else if self.accept_word("DISABLE") {
            AlterLoginAction::Disable
        } else {
            self.expect_word("WITH")?;
            let options = self.comma_list(|parser| parser.login_option(true))?;
            AlterLoginAction::With(options)
        };
        Ok(Statement::AlterLogin(Box::new(AlterLogin { name, action })))
    }

    pub(super) fn drop_login(&mut self) -> Result<Statement, ParseError> {
        self.expect_words(&["DROP", "LOGIN"])?;
        self.spanned(Self::identifier).map(Statement::DropLogin)
    }

    pub(super) fn alter_server_role(&mut self) -> Result<Statement, ParseError> {
        self.expect_words(&["ALTER", "SERVER", "ROLE"])?;
        let role = self.spanned(Self::identifier)?;
        if self.is_word("WITH") {
            let hint = "The roles and their names are fixed.";
            return Err(self.not_supported("ALTER SERVER ROLE ... WITH NAME", hint));
        }
        let change = self.one_of(&[("ADD", Membership::Add), ("DROP", Membership::Drop)])?;
        self.expect_word("MEMBER")?;
        let member = self.spanned(Self::identifier)?;
        Ok(Statement::AlterServerRole(AlterServerRole {
            role,
            change,
            member,
        }))
    }

    /// `CREATE | DROP SERVER ROLE`
    pub(super) fn refused_server_role(&self) -> ParseError {
        let what = format!("{} SERVER ROLE", self.text_at(0).to_ascii_uppercase());
        let hint = "The roles are fixed: sysadmin, dbcreator, backup_operator, history_reader.";
        self.not_supported(&what, hint)
    }

    fn login_option(&mut self, is_of_alter: bool) -> Result<LoginOption, ParseError> {
        if is_of_alter && self.accept_word("PASSWORD") {
            self.expect_symbol("=")?;
            let new = self.password()?;
            let mut old = None;
            if self.accept_word("OLD_PASSWORD") {
                self.expect_symbol("=")?;
                old = Some(self.text().map(Secret::new)?);
            }
            return Ok(LoginOption::Password { new, old });
        }
        if is_of_alter && self.accept_word("NAME") {
            self.expect_symbol("=")?;
            return self.spanned(Self::identifier).map(LoginOption::Name);
        }
        if self.accept_word("DEFAULT_DATABASE") {
            self.expect_symbol("=")?;
            let name = self.spanned(Self::identifier)?;
            return Ok(LoginOption::DefaultDatabase(name));
        }
        if self.accept_word("DEFAULT_LANGUAGE") {
            self.expect_symbol("=")?;
            if !self.identifier()?.is(LANGUAGE) {
                let hint = format!("Messages are in English: omit it, or write {LANGUAGE}.");
                return Err(self.not_supported("Another DEFAULT_LANGUAGE", &hint));
            }
            return Ok(LoginOption::DefaultLanguage);
        }
        if self.accept_word("CHECK_POLICY") {
            let hint = "There is no policy of the system to check passwords against.";
            return self.off("CHECK_POLICY", hint, LoginOption::NoPolicy);
        }
        if self.accept_word("CHECK_EXPIRATION") {
            let hint = "Passwords do not expire.";
            return self.off("CHECK_EXPIRATION", hint, LoginOption::NoExpiration);
        }
        for word in ["SID", "CREDENTIAL", "NO", "ADD", "DROP"] {
            if self.is_word(word) {
                let hint = "Omit it: a login has a name, a password and a default database.";
                return Err(self.not_supported(&format!("{word} of a login"), hint));
            }
        }
        Err(self.unexpected())
    }

    /// `= OFF`
    fn off(
        &mut self,
        word: &str,
        hint: &str,
        option: LoginOption,
    ) -> Result<LoginOption, ParseError> {
        self.expect_symbol("=")?;
        if self.is_word("ON") {
            let hint = format!("{hint} Omit it, or write OFF.");
            return Err(self.not_supported(&format!("{word} = ON"), &hint));
        }
        self.expect_word("OFF")?;
        Ok(option)
    }

    /// `'...'`, without the words that SQL Server knows after it.
    fn password(&mut self) -> Result<Secret, ParseError> {
        let is_hash = self.kind() == Some(TokenKind::Hexadecimal);
        let password = match is_hash {
            true => Secret::new(String::new()),
            false => self.text().map(Secret::new)?,
        };
        if is_hash || self.is_word("HASHED") {
            let hint = "Hashes of SQL Server are of another kind than those here (Argon2id). Write the password itself.";
            return Err(self.not_supported("A HASHED password", hint));
        }
        for (word, hint) in [
            (
                "MUST_CHANGE",
                "Passwords do not expire. Give the login a password that its user keeps.",
            ),
            ("UNLOCK", "Logins are not locked: omit it."),
        ] {
            if self.is_word(word) {
                return Err(self.not_supported(word, hint));
            }
        }
        Ok(password)
    }
}

#[cfg(test)]
mod tests {
    use crate::parser::parse_batch;

    #[test]
    fn what_is_printed_is_the_same_statement() {
        for text in [
            "CREATE LOGIN ada WITH PASSWORD = 'it''s long'",
            "CREATE LOGIN [a b] WITH PASSWORD = N'\u{e4}', DEFAULT_DATABASE = app, DEFAULT_LANGUAGE = us_english, \
             CHECK_EXPIRATION = OFF, CHECK_POLICY = OFF",
            "ALTER LOGIN ada ENABLE",
            "ALTER LOGIN ada DISABLE",
            "ALTER LOGIN ada WITH PASSWORD = 'long' OLD_PASSWORD = 'y', NAME = bob, DEFAULT_DATABASE = master",
            "DROP LOGIN ada",
            "ALTER SERVER ROLE sysadmin ADD MEMBER ada",
            "ALTER SERVER ROLE backup_operator DROP MEMBER [a b]",
        ] {
            let parsed = parse_batch(text).unwrap();
            assert_eq!(parsed[0].node.to_string(), text);
            assert!(!format!("{parsed:?}").contains("long"), "{parsed:?}");
        }
    }

    #[test]
    fn what_sql_server_has_besides_is_refused_with_a_reason() {
        for (text, reason) in [
            ("CREATE LOGIN a WITH PASSWORD = 0x0200 HASHED", "Argon2id"),
            ("CREATE LOGIN a WITH PASSWORD = 'x' HASHED", "Argon2id"),
            ("CREATE LOGIN a WITH PASSWORD = 'x' MUST_CHANGE", "expire"),
            (
                "CREATE LOGIN a WITH PASSWORD = 'x', CHECK_POLICY = ON",
                "policy",
            ),
            (
                "CREATE LOGIN a WITH PASSWORD = 'x', CHECK_EXPIRATION = ON",
                "expire",
            ),
            ("CREATE LOGIN a WITH PASSWORD = 'x', SID = 0x01", "SID"),
            ("CREATE LOGIN a FROM WINDOWS", "passwords"),
            ("CREATE LOGIN a FROM CERTIFICATE c", "passwords"),
            ("ALTER LOGIN a WITH DEFAULT_LANGUAGE = French", "English"),
            ("CREATE SERVER ROLE r", "fixed"),
            ("DROP SERVER ROLE r", "fixed"),
            ("ALTER SERVER ROLE r WITH NAME = s", "fixed"),
        ] {
            let error = parse_batch(text).unwrap_err();
            assert_eq!(error.number, 50005, "{text}: {error}");
            assert!(error.to_string().contains(reason), "{text}: {error}");
        }
    }

    #[test]
    fn no_error_repeats_a_password() {
        for text in [
            "CREATE LOGIN a WITH PASSWORD 'hunter2'",
            "CREATE LOGIN a WITH PASSWORD hunter2",
            "CREATE LOGIN a WITH PASSWORD = hunter2",
            "CREATE LOGIN a WITH PASSWORD = 'x' 'hunter2'",
            "CREATE LOGIN a WITH PASSWORD = [hunter2]",
            "CREATE LOGIN a WITH PASSWORD = \"hunter2",
            "CREATE LOGIN a PASSWORD = 'x', 'hunter2'",
            "ALTER LOGIN a WITH PASSWORD = 'x' OLD_PASSWORD 'hunter2'",
            "ALTER LOGIN a WITH PASSWORD = 'x', OLD_PASSWORD = 'hunter2'",
            "ALTER LOGIN a WITH PASSWORD = 'x' OLD_PASSWORD = hunter2",
            "CREATE LOGIN a WITH PASSWORD = 'hunter2",
            "ALTER LOGIN a WITH PASSWORD='x' OLD_PASSWORD=N'hunter2",
            "CREATE MASTER KEY ENCRYPTION BY PASSWORD 'hunter2'",
        ] {
            let error = parse_batch(text).unwrap_err();
            assert!(!error.to_string().contains("hunter2"), "{text}: {error}");
            assert!([102, 105].contains(&error.number), "{text}: {error}");
        }
        let other = parse_batch("PRINT 'x' 'shown'").unwrap_err();
        assert!(other.to_string().contains("shown"), "{other}");
    }
}
