//! Logins, and the server roles of which they are members.
//!
//! Names do not distinguish case. The numbers of roles are the caller's; the hash of a password is opaque
//! here.

use rusqlite::{OptionalExtension as _, Row, params};
use windlass_base::{Guid, local_now};

use crate::error::Doing;
use crate::{Catalog, Error};

/// A login.
#[derive(Clone, PartialEq, Eq)]
pub struct LoginRecord {
    pub principal_id: i64,
    pub name: String,
    /// 16 bytes that no other login has had.
    pub sid: Vec<u8>,
    pub password_hash: String,
    pub is_disabled: bool,
    pub default_database: String,
    /// The numbers of its roles, in order.
    pub roles: Vec<i64>,
}

impl std::fmt::Debug for LoginRecord {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LoginRecord")
            .field("name", &self.name)
            .field("is_disabled", &self.is_disabled)
            .field("roles", &self.roles)
            .finish_non_exhaustive()
    }
}

/// What a new login needs.
#[derive(Clone, Copy)]
#[expect(
    missing_debug_implementations,
    reason = "it holds the hash of a password"
)]
pub struct NewLogin<'a> {
    pub name: &'a str,
    pub password_hash: &'a str,
    pub default_database: &'a str,
}

/// What changes of a login; the rest stays.
#[derive(Clone, Copy, Default)]
#[expect(
    missing_debug_implementations,
    reason = "it holds the hash of a password"
)]
pub struct LoginChange<'a> {
    pub name: Option<&'a str>,
    pub password_hash: Option<&'a str>,
    pub default_database: Option<&'a str>,
    pub is_disabled: Option<bool>,
}

const COLUMNS: &str = "principal_id, name, sid, password_hash, is_disabled, default_database,
    (SELECT group_concat(role_id) FROM (SELECT role_id FROM own_login_role AS r
     WHERE r.principal_id = own_login.principal_id ORDER BY role_id)) AS roles";

impl LoginRecord {
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        let roles: Option<String> = row.get("roles")?;
        let roles = roles.unwrap_or_default();
        Ok(Self {
            principal_id: row.get("principal_id")?,
            name: row.get("name")?,
            sid: row.get("sid")?,
            password_hash: row.get("password_hash")?,
            is_disabled: row.get("is_disabled")?,
            default_database: row.get("default_database")?,
            roles: roles.split(',').filter_map(|id| id.parse().ok()).collect(),
        })
    }
}

fn now() -> String {
    local_now().strftime("%Y-%m-%d %H:%M:%S").to_string()
}

impl Catalog {
    /// The login of that name.
    ///
    /// # Errors
    /// [`Error::Sqlite`].
    pub fn login(&self, name: &str) -> Result<Option<LoginRecord>, Error> {
        let doing = "looking up a login";
        let query = format!("SELECT {COLUMNS} FROM own_login WHERE name = ?1");
        let mut statement = self.connection().prepare_cached(&query).doing(doing)?;
        let found = statement.query_row([name], LoginRecord::read);
        found.optional().doing(doing)
    }

    /// The login of that number, whatever its name is by now.
    ///
    /// # Errors
    /// [`Error::Sqlite`].
    pub fn login_numbered(&self, principal_id: i64) -> Result<Option<LoginRecord>, Error> {
        let doing = "looking up a login";
        let query = format!("SELECT {COLUMNS} FROM own_login WHERE principal_id = ?1");
        let mut statement = self.connection().prepare_cached(&query).doing(doing)?;
        let found = statement.query_row([principal_id], LoginRecord::read);
        found.optional().doing(doing)
    }

    /// All logins, by name.
    ///
    /// # Errors
    /// [`Error::Sqlite`].
    pub fn logins(&self) -> Result<Vec<LoginRecord>, Error> {
        let doing = "listing logins";
        let query = format!("SELECT {COLUMNS} FROM own_login ORDER BY name");
        let mut statement = self.connection().prepare_cached(&query).doing(doing)?;
        let rows = statement.query_map([], LoginRecord::read).doing(doing)?;
        rows.collect::<Result<_, _>>().doing(doing)
    }

    /// Stores a new login; false if its name is taken.
    ///
    /// # Errors
    /// [`Error::Sqlite`].
    pub fn add_login(&mut self, login: NewLogin<'_>) -> Result<bool, Error> {
        let sid = Guid::random();
        let added = self
            .connection()
            .execute(
                "INSERT INTO own_login (name, sid, password_hash, is_disabled, default_database,
                     create_date, modify_date)
                 VALUES (?1, ?2, ?3, 0, ?4, ?5, ?5) ON CONFLICT (name) DO NOTHING",
                params![
                    login.name,
                    sid.to_stored().as_slice(),
                    login.password_hash,
                    login.default_database,
                    now()
                ],
            )
            .doing("adding a login")?;
        Ok(added > 0)
    }

    /// Changes a login; false if there is none of that number, or another one has the new name.
    ///
    /// # Errors
    /// [`Error::Sqlite`].
    pub fn change_login(&mut self, id: i64, change: LoginChange<'_>) -> Result<bool, Error> {
        let changed = self
            .connection()
            .execute(
                "UPDATE OR IGNORE own_login SET name = coalesce(?2, name),
                     password_hash = coalesce(?3, password_hash),
                     default_database = coalesce(?4, default_database),
                     is_disabled = coalesce(?5, is_disabled), modify_date = ?6
                 WHERE principal_id = ?1",
                params![
                    id,
                    change.name,
                    change.password_hash,
                    change.default_database,
                    change.is_disabled,
                    now()
                ],
            )
            .doing("changing a login")?;
        Ok(changed > 0)
    }

    /// Drops a login and its memberships; false if there is none of that name.
    ///
    /// # Errors
    /// [`Error::Sqlite`].
    pub fn drop_login(&mut self, name: &str) -> Result<bool, Error> {
        let doing = "dropping a login";
        let transaction = self.write(doing)?;
        transaction
            .execute(
                "DELETE FROM own_login_role WHERE principal_id =
                     (SELECT principal_id FROM own_login WHERE name = ?1)",
                [name],
            )
            .doing(doing)?;
        let dropped = transaction
            .execute("DELETE FROM own_login WHERE name = ?1", [name])
            .doing(doing)?;
        transaction.commit().doing(doing)?;
        Ok(dropped > 0)
    }

    /// Makes a login a member of a role; a member stays one.
    ///
    /// # Errors
    /// [`Error::Sqlite`].
    pub fn add_role_member(&mut self, principal_id: i64, role_id: i64) -> Result<(), Error> {
        self.connection()
            .execute(
                "INSERT OR IGNORE INTO own_login_role VALUES (?1, ?2)",
                [principal_id, role_id],
            )
            .map(|_| ())
            .doing("adding a member of a role")
    }

    /// Ends the membership; false if it was no member.
    ///
    /// # Errors
    /// [`Error::Sqlite`].
    pub fn drop_role_member(&mut self, principal_id: i64, role_id: i64) -> Result<bool, Error> {
        self.connection()
            .execute(
                "DELETE FROM own_login_role WHERE principal_id = ?1 AND role_id = ?2",
                [principal_id, role_id],
            )
            .map(|rows| rows > 0)
            .doing("ending a membership")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new(name: &str) -> NewLogin<'_> {
        NewLogin {
            name,
            password_hash: "$argon2id$secret",
            default_database: "master",
        }
    }

    #[test]
    fn a_login_is_found_in_any_case_until_it_is_dropped_and_its_number_is_not_used_again() {
        let mut catalog = Catalog::in_memory().unwrap();
        assert!(catalog.add_login(new("Ada")).unwrap());
        assert!(!catalog.add_login(new("ADA")).unwrap());
        let ada = catalog.login("aDa").unwrap().unwrap();
        assert_eq!((ada.name.as_str(), ada.principal_id), ("Ada", 257));
        assert_eq!((ada.sid.len(), ada.is_disabled), (16, false));
        assert!(!format!("{ada:?}").contains("secret"));
        catalog.add_role_member(257, 9).unwrap();
        catalog.add_role_member(257, 3).unwrap();
        catalog.add_role_member(257, 9).unwrap();
        assert_eq!(catalog.logins().unwrap()[0].roles, [3, 9]);
        assert!(catalog.drop_role_member(257, 9).unwrap());
        assert!(!catalog.drop_role_member(257, 9).unwrap());
        assert!(catalog.drop_login("ada").unwrap());
        assert!(!catalog.drop_login("ada").unwrap());
        assert!(catalog.add_login(new("Ada")).unwrap());
        let again = catalog.login("Ada").unwrap().unwrap();
        assert!(again.principal_id > 257);
        assert!(again.roles.is_empty() && again.sid != ada.sid);
    }

    #[test]
    fn a_change_keeps_the_rest_and_takes_no_name_of_another() {
        let mut catalog = Catalog::in_memory().unwrap();
        catalog.add_login(new("a")).unwrap();
        catalog.add_login(new("b")).unwrap();
        let id = catalog.login("a").unwrap().unwrap().principal_id;
        let mut change = |change| catalog.change_login(id, change).unwrap();
        assert!(change(LoginChange {
            is_disabled: Some(true),
            ..LoginChange::default()
        }));
        assert!(!change(LoginChange {
            name: Some("B"),
            ..LoginChange::default()
        }));
        assert!(change(LoginChange {
            name: Some("c"),
            password_hash: Some("other"),
            ..LoginChange::default()
        }));
        let changed = catalog.login_numbered(id).unwrap().unwrap();
        assert_eq!(changed.name, "c");
        assert_eq!(changed.password_hash, "other");
        assert_eq!(changed.default_database, "master");
        assert!(changed.is_disabled);
    }
}
