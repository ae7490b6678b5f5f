//! Logins and server roles. Passwords are printed, because the text must be runnable: nobody logs it.

use std::fmt::{self, Display, Formatter};

use super::security::quoted;
use crate::ast::{
    AlterLogin, AlterLoginAction, AlterServerRole, CreateLogin, LoginOption, Membership,
};

impl Display for CreateLogin {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (name, password) = (&self.name.node, quoted(self.password.text()));
        write!(f, "CREATE LOGIN {name} WITH PASSWORD = {password}")?;
        self.options
            .iter()
            .try_for_each(|option| write!(f, ", {option}"))
    }
}

impl Display for AlterLogin {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "ALTER LOGIN {} ", self.name.node)?;
        match &self.action {
            AlterLoginAction::Enable => f.write_str("ENABLE"),
            AlterLoginAction::Disable => f.write_str("DISABLE"),
            AlterLoginAction::With(options) => {
                let mut joint = "WITH ";
                for option in options {
                    write!(f, "{joint}{option}")?;
                    joint = ", ";
                }
                Ok(())
            }
        }
    }
}

impl Display for LoginOption {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Password { new, old } => {
                write!(f, "PASSWORD = {}", quoted(new.text()))?;
                match old {
                    Some(old) => write!(f, " OLD_PASSWORD = {}", quoted(old.text())),
                    None => Ok(()),
                }
            }
            Self::Name(name) => write!(f, "NAME = {}", name.node),
            Self::DefaultDatabase(name) => write!(f, "DEFAULT_DATABASE = {}", name.node),
            Self::DefaultLanguage => f.write_str("DEFAULT_LANGUAGE = us_english"),
            Self::NoPolicy => f.write_str("CHECK_POLICY = OFF"),
            Self::NoExpiration => f.write_str("CHECK_EXPIRATION = OFF"),
        }
    }
}

impl Display for AlterServerRole {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let change = match self.change {
            Membership::Add => "ADD",
            Membership::Drop => "DROP",
        };
        let (role, member) = (&self.role.node, &self.member.node);
        write!(f, "ALTER SERVER ROLE {role} {change} MEMBER {member}")
    }
}
