//! Functions about logins and server roles.

use super::collation::compare;
use super::session::{Facts, Known};
use super::{integer, text_of};
use crate::login::Role;
use crate::{Failure, Value};

/// What SQL Server calls its first login; the administrator of the files has its number here.
const FIRST: (i64, &[u8], &str) = (1, &[1], "sa");

/// The value of one of these functions.
pub(super) fn of(function: &str, values: &[Value], facts: &Facts) -> Result<Value, Failure> {
    if function == "IS_SRVROLEMEMBER" {
        return is_member(values, facts);
    }
    let name = |known: &Known| Value::text(&known.name);
    let (id, sid) = (
        |known: &Known| Value::Integer(known.id),
        |known: &Known| Value::Binary(known.sid.clone()),
    );
    let Some(asked) = values.first() else {
        let own = named(facts, facts.principal.name());
        let own = own.filter(|_| facts.principal.is_remote());
        return Ok(match function {
            "SUSER_ID" => own.map_or(Value::Integer(FIRST.0), id),
            "SUSER_SID" => own.map_or_else(|| Value::Binary(FIRST.1.to_vec()), sid),
            _ => Value::text(&facts.identity.user),
        });
    };
    let is_first = |is: bool, value: Value| match is {
        true => value,
        false => Value::Null,
    };
    Ok(match (function, asked) {
        (_, Value::Null) => Value::Null,
        ("SUSER_ID" | "SUSER_SID", asked) => {
            let written = text_of(asked)?;
            let is_sa = compare(&written, FIRST.2).is_eq();
            match (named(facts, &written), function) {
                (Some(known), "SUSER_ID") => id(known),
                (Some(known), _) => sid(known),
                (None, "SUSER_ID") => is_first(is_sa, Value::Integer(FIRST.0)),
                (None, _) => is_first(is_sa, Value::Binary(FIRST.1.to_vec())),
            }
        }
        ("SUSER_SNAME", Value::Binary(asked)) => {
            let found = facts.principals.iter().find(|known| known.sid == *asked);
            let first = || is_first(asked == FIRST.1, Value::text(FIRST.2));
            found.map_or_else(first, name)
        }
        ("SUSER_NAME", asked) => {
            let asked = integer(asked)?;
            let found = facts.principals.iter().find(|known| known.id == asked);
            let first = || is_first(asked == FIRST.0, Value::text(FIRST.2));
            found.map_or_else(first, name)
        }
        _ => Value::Null,
    })
}

fn named<'a>(facts: &'a Facts, name: &str) -> Option<&'a Known> {
    let mut known = facts.principals.iter();
    known.find(|known| compare(&known.name, name).is_eq())
}

/// `IS_SRVROLEMEMBER('role' [, 'login'])`; NULL for a role or login that there is not.
fn is_member(values: &[Value], facts: &Facts) -> Result<Value, Failure> {
    let [role, login @ ..] = values else {
        return Ok(Value::Null);
    };
    if role.is_null() || login.first().is_some_and(Value::is_null) {
        return Ok(Value::Null);
    }
    let role = text_of(role)?;
    if !Role::is_name(&role) {
        return Ok(Value::Null);
    }
    let is_member = match login.first() {
        None => facts.principal.is_member(&role),
        Some(login) => {
            let login = text_of(login)?;
            match named(facts, &login) {
                Some(known) => {
                    let own = Role::named(&role).map(Role::id);
                    role.eq_ignore_ascii_case("public")
                        || known.roles.contains(&Role::SysAdmin.id())
                        || own.is_some_and(|own| known.roles.contains(&own))
                }
                None if compare(&login, facts.principal.name()).is_eq() => {
                    facts.principal.is_member(&role)
                }
                None => return Ok(Value::Null),
            }
        }
    };
    Ok(Value::Integer(i64::from(is_member)))
}
