//! `CREATE`, `ALTER` and `DROP LOGIN`, `ALTER SERVER ROLE` and its two procedures.
//!
//! Invariant: a password goes from the syntax tree into its hash and nowhere else: no message, log or row has
//! it.

use windlass_base::message::table;
use windlass_catalog::{LoginChange, LoginRecord, NewLogin};
use windlass_crypt::{Passphrase, PasswordHash};
use windlass_tsql::ast::{
    AlterLogin, AlterLoginAction, AlterServerRole, CreateLogin, LoginOption, Membership, Secret,
};

use crate::instance::is_system_database;
use crate::login::Role;
use crate::{Failure, Session};

/// The shortest password, in characters: shorter ones are guessed, however costly each guess is.
const PASSWORD_CHARACTERS_MIN: usize = 8;

/// SQL Server's limit.
const PASSWORD_CHARACTERS_MAX: usize = 128;

/// `CREATE LOGIN`
pub(super) fn create(session: &mut Session, create: &CreateLogin) -> Result<(), Failure> {
    let name = &create.name.node.text;
    check_name(session, name)?;
    let mut default_database = "master";
    for option in &create.options {
        if let LoginOption::DefaultDatabase(database) = option {
            default_database = &database.node.text;
        }
    }
    check_database(session, default_database)?;
    let hash = hashed(name, &create.password)?;
    let login = NewLogin {
        name,
        password_hash: hash.text(),
        default_database,
    };
    match session.instance.catalog_mut().add_login(login)? {
        true => Ok(()),
        false => Err(table::principal_exists(name).into()),
    }
}

/// `ALTER LOGIN`
pub(super) fn alter(session: &mut Session, alter: &AlterLogin) -> Result<(), Failure> {
    let name = &alter.name.node.text;
    let login = found(session, "alter", name)?;
    let options = match &alter.action {
        AlterLoginAction::Enable => return set_disabled(session, &login, false),
        AlterLoginAction::Disable => return set_disabled(session, &login, true),
        AlterLoginAction::With(options) => options,
    };
    let mut change = LoginChange::default();
    let mut hash = None;
    for option in options {
        match option {
            LoginOption::Password { new, old } => {
                if let Some(old) = old {
                    check_old(&login, old)?;
                }
                hash = Some(hashed(name, new)?);
            }
            LoginOption::Name(new) => {
                if new.node.text.to_lowercase() != login.name.to_lowercase() {
                    check_name(session, &new.node.text)?;
                }
                change.name = Some(&new.node.text);
            }
            LoginOption::DefaultDatabase(database) => {
                check_database(session, &database.node.text)?;
                change.default_database = Some(&database.node.text);
            }
            LoginOption::DefaultLanguage | LoginOption::NoPolicy | LoginOption::NoExpiration => {}
        }
    }
    change.password_hash = hash.as_ref().map(PasswordHash::text);
    let catalog = session.instance.catalog_mut();
    match (
        catalog.change_login(login.principal_id, change)?,
        change.name,
    ) {
        (true, _) => Ok(()),
        (false, Some(taken)) => Err(table::principal_exists(taken).into()),
        (false, None) => Err(table::cannot_find("alter", "login", name).into()),
    }
}

fn set_disabled(
    session: &mut Session,
    login: &LoginRecord,
    is_disabled: bool,
) -> Result<(), Failure> {
    let change = LoginChange {
        is_disabled: Some(is_disabled),
        ..LoginChange::default()
    };
    let catalog = session.instance.catalog_mut();
    match catalog.change_login(login.principal_id, change)? {
        true => Ok(()),
        false => Err(table::cannot_find("alter", "login", &login.name).into()),
    }
}

/// `DROP LOGIN`
pub(super) fn drop(session: &mut Session, name: &str) -> Result<(), Failure> {
    let owned = session.instance.catalog().agent().owned_by(name)?;
    if owned > 0 && session.instance.catalog().login(name)?.is_some() {
        return Err(table::login_owns_jobs(owned).into());
    }
    match session.instance.catalog_mut().drop_login(name)? {
        true => Ok(()),
        false => Err(table::cannot_find("drop", "login", name).into()),
    }
}

/// `ALTER SERVER ROLE`
pub(super) fn alter_role(session: &mut Session, alter: &AlterServerRole) -> Result<(), Failure> {
    let name = &alter.role.node.text;
    let Some(role) = Role::named(name) else {
        return Err(match Role::is_elsewhere(name) {
            true => without_members(name),
            false => table::cannot_find("alter", "server role", name).into(),
        });
    };
    let verb = match alter.change {
        Membership::Add => "add",
        Membership::Drop => "drop",
    };
    let member = &alter.member.node.text;
    let login = session.instance.catalog().login(member)?;
    let missing = || table::cannot_find(verb, "server principal", member);
    let login = login.ok_or_else(missing)?;
    match change(session, &login, role, alter.change)? {
        true => Ok(()),
        false => Err(missing().into()),
    }
}

/// `sp_addsrvrolemember`, `sp_dropsrvrolemember`
pub(super) fn change_membership(
    session: &mut Session,
    role: &str,
    membership: Membership,
    name: &str,
) -> Result<(), Failure> {
    let Some(found) = Role::named(role) else {
        return Err(match Role::is_elsewhere(role) {
            true => without_members(role),
            false => table::not_a_server_role(role).into(),
        });
    };
    let login = session.instance.catalog().login(name)?;
    let login = login.ok_or_else(|| Failure::from(table::login_unknown(name)))?;
    // To drop who is no member is no error here.
    change(session, &login, found, membership).map(|_| ())
}

/// Whether the membership was changed, or there already.
fn change(
    session: &mut Session,
    login: &LoginRecord,
    role: Role,
    membership: Membership,
) -> Result<bool, Failure> {
    let catalog = session.instance.catalog_mut();
    match membership {
        Membership::Add => catalog
            .add_role_member(login.principal_id, role.id())
            .map(|()| true),
        Membership::Drop => catalog.drop_role_member(login.principal_id, role.id()),
    }
    .map_err(Failure::from)
}

fn without_members(role: &str) -> Failure {
    let hint = "The server roles are sysadmin, dbcreator, backup_operator and history_reader.";
    table::statement_not_supported(format!("The server role {role}"), hint).into()
}

fn found(session: &Session, verb: &str, name: &str) -> Result<LoginRecord, Failure> {
    let login = session.instance.catalog().login(name)?;
    login.ok_or_else(|| table::cannot_find(verb, "login", name).into())
}

/// Refuses a name that a login cannot have, or that is taken.
fn check_name(session: &Session, name: &str) -> Result<(), Failure> {
    let is_invalid = |c: char| c == '\\' || c.is_control();
    if name.trim().is_empty() || name.contains(is_invalid) {
        return Err(table::name_invalid(name.escape_debug()).into());
    }
    if Role::is_name(name) || session.instance.catalog().login(name)?.is_some() {
        return Err(table::principal_exists(name).into());
    }
    Ok(())
}

fn check_database(session: &Session, name: &str) -> Result<(), Failure> {
    match is_system_database(name) || session.instance.database(name)?.is_some() {
        true => Ok(()),
        false => Err(table::database_not_found_for_procedure(name).into()),
    }
}

/// The hash of a password that is worth one.
fn hashed(login: &str, password: &Secret) -> Result<PasswordHash, Failure> {
    let text = password.text();
    let characters = text.chars().count();
    if characters < PASSWORD_CHARACTERS_MIN {
        return Err(table::password_too_short().into());
    }
    if characters > PASSWORD_CHARACTERS_MAX {
        return Err(table::password_too_long().into());
    }
    let mut others = text.chars().skip(1);
    let is_one_character = text
        .chars()
        .next()
        .is_some_and(|one| others.all(|c| c == one));
    if is_one_character || holds_name(text, login) {
        return Err(table::password_not_complex().into());
    }
    Ok(PasswordHash::of(&Passphrase::new(text.to_owned()))?)
}

/// Who changes the own password must know it.
fn check_old(login: &LoginRecord, old: &Secret) -> Result<(), Failure> {
    let hash = PasswordHash::from_text(login.password_hash.clone());
    match hash.is_of(&Passphrase::new(old.text().to_owned()))? {
        true => Ok(()),
        false => Err(table::cannot_find("alter", "login", &login.name).into()),
    }
}

/// Whether a password contains the name of its login; short names are in many texts.
fn holds_name(password: &str, login: &str) -> bool {
    login.chars().count() > 2 && password.to_lowercase().contains(&login.to_lowercase())
}
