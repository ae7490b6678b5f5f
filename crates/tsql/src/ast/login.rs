//! Logins and server roles: `CREATE`, `ALTER` and `DROP LOGIN`, `ALTER SERVER ROLE`.

use super::{Identifier, Secret};
use crate::span::Spanned;

/// `CREATE LOGIN name WITH PASSWORD = '...' [, option]...`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreateLogin {
    pub name: Spanned<Identifier>,
    pub password: Secret,
    /// The others, in source order.
    pub options: Vec<LoginOption>,
}

/// `ALTER LOGIN name action`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AlterLogin {
    pub name: Spanned<Identifier>,
    pub action: AlterLoginAction,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AlterLoginAction {
    Enable,
    Disable,
    /// `WITH option, ...`; never empty.
    With(Vec<LoginOption>),
}

/// An option of a login.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoginOption {
    /// `PASSWORD = '...' [OLD_PASSWORD = '...']`: only of ALTER LOGIN.
    Password { new: Secret, old: Option<Secret> },
    /// `NAME = x`: only of ALTER LOGIN.
    Name(Spanned<Identifier>),
    /// `DEFAULT_DATABASE = x`
    DefaultDatabase(Spanned<Identifier>),
    /// `DEFAULT_LANGUAGE = us_english`, the only one.
    DefaultLanguage,
    /// `CHECK_POLICY = OFF`: the operating system's rules do not hold for passwords.
    NoPolicy,
    /// `CHECK_EXPIRATION = OFF`: passwords do not expire.
    NoExpiration,
}

/// `ALTER SERVER ROLE role ADD | DROP MEMBER login`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AlterServerRole {
    pub role: Spanned<Identifier>,
    pub change: Membership,
    pub member: Spanned<Identifier>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Membership {
    Add,
    Drop,
}
