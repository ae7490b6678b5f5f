//! From a name and a password to a principal.

use windlass_catalog::Catalog;
use windlass_crypt::{Passphrase, PasswordHash};

use super::Principal;

/// Why a login was refused. Only the local log may tell: a client that learns it can find out names.
#[derive(Debug, thiserror::Error)]
pub enum LoginRefusal {
    #[error("Could not find a login matching the name provided.")]
    Unknown,
    #[error("The account is disabled.")]
    Disabled,
    #[error("Password did not match that for the login provided.")]
    WrongPassword,
    /// The catalog or the computation failed: nobody can log in.
    #[error("The password could not be checked: {0}.")]
    Unchecked(String),
}

impl LoginRefusal {
    /// The state of message 18456, as SQL Server logs it.
    pub fn state(&self) -> u8 {
        match self {
            Self::Unknown => 5,
            Self::Disabled => 7,
            Self::WrongPassword => 8,
            Self::Unchecked(_) => 1,
        }
    }
}

/// Checks a name and a password. Costs the same whether there is such a login or not, and waits for a turn:
/// each check takes 64 MiB, and only [`windlass_crypt::PARALLEL_MAX`] run at a time.
///
/// # Errors
/// [`LoginRefusal`].
pub fn authenticate(
    catalog: &Catalog,
    name: &str,
    password: &str,
) -> Result<Principal, LoginRefusal> {
    let unchecked = |error: &dyn std::fmt::Display| LoginRefusal::Unchecked(error.to_string());
    let password = Passphrase::new(password.to_owned());
    let Some(login) = catalog.login(name).map_err(|error| unchecked(&error))? else {
        PasswordHash::spend(&password).map_err(|error| unchecked(&error))?;
        return Err(LoginRefusal::Unknown);
    };
    let hash = PasswordHash::from_text(login.password_hash.clone());
    let is_right = hash.is_of(&password).map_err(|error| unchecked(&error))?;
    match (login.is_disabled, is_right) {
        (true, _) => Err(LoginRefusal::Disabled),
        (false, false) => Err(LoginRefusal::WrongPassword),
        (false, true) => Ok(Principal::of(&login)),
    }
}

#[cfg(test)]
mod tests {
    use windlass_catalog::{LoginChange, NewLogin};

    use super::*;

    #[test]
    fn the_reason_of_a_refusal_is_told_apart_for_the_log() {
        let mut catalog = Catalog::in_memory().unwrap();
        let hash = PasswordHash::of(&Passphrase::new("correct horse".to_owned())).unwrap();
        let login = NewLogin {
            name: "Ada",
            password_hash: hash.text(),
            default_database: "app",
        };
        catalog.add_login(login).unwrap();
        let state = |catalog: &Catalog, name: &str, password: &str| {
            authenticate(catalog, name, password).map_err(|refusal| refusal.state())
        };
        let ada = state(&catalog, "ADA", "correct horse").unwrap();
        assert_eq!((ada.name(), ada.default_database()), ("Ada", "app"));
        assert!(ada.is_remote() && ada.roles().is_empty());
        assert_eq!(state(&catalog, "bob", "correct horse"), Err(5));
        assert_eq!(state(&catalog, "ada", "Correct horse"), Err(8));
        assert_eq!(state(&catalog, "ada", ""), Err(8));
        let disabled = LoginChange {
            is_disabled: Some(true),
            ..LoginChange::default()
        };
        catalog.change_login(257, disabled).unwrap();
        assert_eq!(state(&catalog, "ada", "correct horse"), Err(7));
    }
}
