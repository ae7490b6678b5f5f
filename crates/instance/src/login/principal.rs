//! For whom a session acts.

use windlass_catalog::{Catalog, Error as CatalogError, LoginRecord};

use super::{Right, Role};

/// A login, or the administrator of the instance's files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Principal {
    name: String,
    /// The number of its login; `None` for the administrator.
    login: Option<i64>,
    roles: Vec<Role>,
    default_database: String,
    is_remote: bool,
}

impl Principal {
    /// Who may read and write the instance's files: everything is allowed, and no login is needed.
    pub fn administrator(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            login: None,
            roles: vec![Role::SysAdmin],
            default_database: "master".to_owned(),
            is_remote: false,
        }
    }

    /// Who runs what a remote session has made, where no login does: everything is allowed but what decides which files
    /// remote sessions reach, and files are theirs.
    pub(crate) fn confined(name: &str) -> Self {
        Self {
            is_remote: true,
            ..Self::administrator(name)
        }
    }

    /// Who asks a program for a backup of the databases that it has open. The program's other files are its own
    /// business: to open and close a SQLite file there would end the locks of the program's SQLite.
    pub fn guest(name: &str) -> Self {
        Self {
            roles: vec![Role::BackupOperator],
            ..Self::administrator(name)
        }
    }

    /// A login without a password, for what runs in its name; `None` if there is none, or it is disabled.
    ///
    /// # Errors
    /// Those of the catalog.
    pub fn of_login(catalog: &Catalog, name: &str) -> Result<Option<Self>, CatalogError> {
        let found = catalog.login(name)?;
        Ok(found
            .filter(|login| !login.is_disabled)
            .map(|login| Self::of(&login)))
    }

    /// A login is remote wherever it connects from: the files are not its own.
    pub(super) fn of(login: &LoginRecord) -> Self {
        let roles = login.roles.iter().copied();
        Self {
            name: login.name.clone(),
            login: Some(login.principal_id),
            roles: roles.filter_map(Role::of_id).collect(),
            default_database: login.default_database.clone(),
            is_remote: true,
        }
    }

    /// The same after changes of its login; without roles if that was dropped or disabled.
    pub(super) fn refreshed(&self, catalog: &Catalog) -> Result<Self, CatalogError> {
        let Some(id) = self.login else {
            return Ok(self.clone());
        };
        let found = catalog.login_numbered(id)?;
        Ok(match found.filter(|login| !login.is_disabled) {
            Some(login) => Self::of(&login),
            None => Self {
                roles: Vec::new(),
                ..self.clone()
            },
        })
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn roles(&self) -> &[Role] {
        &self.roles
    }

    /// The database in which its sessions start, if they may use it.
    pub fn default_database(&self) -> &str {
        &self.default_database
    }

    /// Whether its sessions are confined to mapped drives and listed folders.
    pub fn is_remote(&self) -> bool {
        self.is_remote
    }

    /// Whether nothing needs to be checked.
    pub(crate) fn is_unlimited(&self) -> bool {
        self.login.is_none() && !self.is_remote && self.roles.contains(&Role::SysAdmin)
    }

    /// Whether it reaches only databases that are open already.
    pub(crate) fn is_guest(&self) -> bool {
        self.login.is_none() && !self.is_unlimited()
    }

    /// Whether the history, and the catalog views, are shown to it.
    pub fn may_read_history(&self) -> bool {
        self.may(Right::History)
    }

    pub(crate) fn may(&self, right: Right) -> bool {
        let is_possible = right != Right::Machine || !self.is_remote;
        is_possible && self.roles.iter().any(|role| role.grants(right))
    }

    /// Whether it counts as a member of a role: administrators are members of all.
    pub(crate) fn is_member(&self, role: &str) -> bool {
        role.eq_ignore_ascii_case("public")
            || self.roles.contains(&Role::SysAdmin)
            || Role::named(role).is_some_and(|role| self.roles.contains(&role))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_remote_decides_which_files_are_reached() {
        let local = Principal::administrator("ada");
        assert!(local.may(Right::Machine) && local.is_unlimited());
        let mut catalog = Catalog::in_memory().unwrap();
        let login = windlass_catalog::NewLogin {
            name: "bob",
            password_hash: "",
            default_database: "master",
        };
        catalog.add_login(login).unwrap();
        let nobody = Principal::of_login(&catalog, "BOB").unwrap().unwrap();
        assert!(nobody.is_remote() && !nobody.may(Right::History));
        catalog.add_role_member(257, Role::SysAdmin.id()).unwrap();
        let remote = nobody.refreshed(&catalog).unwrap();
        assert!(remote.may(Right::Server) && !remote.may(Right::Machine));
        assert!(remote.is_member("DBCREATOR") && !nobody.is_member("dbcreator"));
        assert!(nobody.is_member("public"));
        let change = windlass_catalog::LoginChange {
            is_disabled: Some(true),
            ..windlass_catalog::LoginChange::default()
        };
        catalog.change_login(257, change).unwrap();
        assert!(!remote.refreshed(&catalog).unwrap().may(Right::History));
        assert_eq!(Principal::of_login(&catalog, "bob").unwrap(), None);
    }
}
