//! Expressions outside of queries: bound as in a query, and computed at once.

use windlass_catalog::DatabaseState;
use windlass_source::RecoveryModel;
use windlass_tsql::ast::Expr;
use windlass_tsql::span::Spanned;

use super::bind::Binder;
use super::expression::eval::{Inputs, eval, holds};
use super::expression::{Bound, Facts, Known};
use super::program::decode;
use super::query::failed;
use crate::{DataType, Failure, Role, Session, Value};

/// The value of an expression, and its type.
pub(crate) fn evaluate(
    session: &mut Session,
    expression: &Spanned<Expr>,
) -> Result<(Value, DataType), Failure> {
    let (bound, leaves, facts) = prepared(session, expression)?;
    let inputs = Inputs {
        leaves: &leaves,
        facts: &facts,
        variables: Some(&session.variables),
    };
    Ok((eval(&bound, &inputs)?, bound.ty))
}

/// Whether a condition holds; unknown is not true.
pub(crate) fn condition(session: &mut Session, condition: &Spanned<Expr>) -> Result<bool, Failure> {
    let (bound, leaves, facts) = prepared(session, condition)?;
    let inputs = Inputs {
        leaves: &leaves,
        facts: &facts,
        variables: Some(&session.variables),
    };
    Ok(holds(&bound, &inputs)? == Some(true))
}

fn prepared(
    session: &mut Session,
    expression: &Spanned<Expr>,
) -> Result<(Bound, Vec<Value>, Facts), Failure> {
    let mut binder = Binder::new(session);
    let (bound, leaves) = binder.scalar(expression)?;
    let (trees, asks) = (std::mem::take(&mut binder.trees), binder.asks_databases);
    let facts = facts(session, asks)?;
    if leaves.is_empty() {
        return Ok((bound, Vec::new(), facts));
    }
    session.queries.program.load(trees, facts.clone());
    let list: Vec<&str> = leaves.iter().map(|(sql, _)| sql.as_str()).collect();
    let sql = format!("SELECT {}", list.join(", "));
    let program = session.queries.program.clone();
    let is_system = session.queries.is_system();
    let connection = session.queries.connection(session.instance.catalog())?;
    let read = || -> rusqlite::Result<Vec<Value>> {
        let mut statement = connection.prepare(&sql)?;
        statement.query_row([], |row| {
            let types = leaves.iter().enumerate();
            types
                .map(|(index, (_, ty))| Ok(decode(row.get_ref(index)?, *ty)))
                .collect()
        })
    };
    let values = read().map_err(|error| failed(&program, &error, is_system))?;
    Ok((bound, values, facts))
}

/// All logins, and the roles.
fn principals(session: &Session) -> Result<Vec<Known>, Failure> {
    let logins = session.instance.catalog().logins()?.into_iter();
    let logins = logins.map(|login| Known {
        id: login.principal_id,
        sid: login.sid,
        name: login.name,
        roles: login.roles,
    });
    let roles = Role::ALL.into_iter().map(|role| Known {
        id: role.id(),
        sid: u8::try_from(role.id()).into_iter().collect(),
        name: role.name().to_owned(),
        roles: Vec::new(),
    });
    Ok(logins.chain(roles).collect())
}

/// What a statement sees of its session; the databases and logins only if it asks for them.
pub(crate) fn facts(session: &Session, asks_databases: bool) -> Result<Facts, Failure> {
    let identity = session.instance.identity().clone();
    let principal = session.principal().clone();
    let mut facts = Facts::new(identity, principal, session.current_database().to_owned());
    facts.error = session.caught.last().cloned();
    facts.transaction_state = session.queries.transaction_state();
    if asks_databases {
        let system = crate::SYSTEM_DATABASES.iter();
        facts.databases = system.map(|(name, id)| (*id, (*name).to_owned())).collect();
        let own = session.instance.catalog().databases()?.into_iter();
        let own = own.inspect(|record| {
            if !matches!(record.state, DatabaseState::Online | DatabaseState::Standby) {
                facts.closed.push((record.database_id, record.state.name()));
            }
            if session.instance.recovery_model(record) == RecoveryModel::Full {
                facts.full.push(record.database_id);
            }
        });
        let own: Vec<_> = own.collect();
        facts.databases.extend(
            own.into_iter()
                .map(|record| (record.database_id, record.name)),
        );
        facts.principals = principals(session)?;
    }
    Ok(facts)
}
