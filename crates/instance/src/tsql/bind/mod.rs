//! Binds queries and expressions: resolves names, gives every node its type, and writes the SQL that
//! SQLite runs.
//!
//! SQLite reads tables, joins, groups and sorts. What T-SQL computes differently is a [`Bound`] tree that
//! SQLite calls through `windlass_eval`, see [`program`](crate::tsql::program). A tree's leaves are what
//! SQLite computes: columns, aggregates, subqueries.

mod aggregate;
mod change;
mod condition;
mod emit;
mod expression;
mod operator;
mod query;
mod recursion;
mod select;
mod source;
mod table;

use std::sync::Arc;

use windlass_tsql::ast::Expr;
use windlass_tsql::span::Spanned;

use self::recursion::Recursion;
use crate::tsql::expression::{Bound, Collation};
use crate::tsql::program::Compiled;
use crate::{DataType, Failure, Session};

pub(crate) use change::{Assignments, Changed};
pub(crate) use query::BoundQuery;
#[cfg(test)]
pub(crate) use table::own_type;
pub(crate) use table::{TEMPORARY, Table};

/// A column of a result.
#[derive(Debug, Clone)]
pub(crate) struct Output {
    pub(crate) name: Option<String>,
    pub(crate) ty: DataType,
    pub(super) collation: Collation,
    /// What SQLite computes for it.
    pub(super) sql: String,
}

impl Output {
    fn shown_name(&self, index: usize) -> String {
        self.name
            .clone()
            .unwrap_or_else(|| format!("column{}", index + 1))
    }
}

/// A table in FROM.
#[derive(Debug, Clone)]
struct Source {
    /// Its alias, or its own name.
    name: String,
    columns: Vec<SourceColumn>,
    /// Whether it has SQLite's `rowid`.
    is_table: bool,
}

#[derive(Debug, Clone)]
struct SourceColumn {
    name: String,
    ty: DataType,
    /// What SQLite computes for it.
    sql: String,
}

/// The tables that one SELECT sees.
#[derive(Debug, Clone, Default)]
struct Scope {
    sources: Vec<Source>,
    grouping: Option<Grouping>,
    /// The depth of a row of the recursive table that it reads, in SQL.
    level: Option<String>,
}

/// By what a SELECT groups.
#[derive(Debug, Clone, Default)]
struct Grouping {
    /// The SQL of the columns it groups by.
    columns: Vec<String>,
    /// The other expressions it groups by.
    expressions: Vec<Bound>,
}

/// A common table expression in scope.
#[derive(Debug, Clone)]
struct Common {
    name: String,
    columns: Vec<(String, DataType)>,
}

/// What a leaf of a tree is in SQL.
#[derive(Debug, Clone)]
struct Leaf {
    sql: String,
    ty: DataType,
}

/// Binds one statement.
pub(crate) struct Binder<'s> {
    pub(crate) session: &'s mut Session,
    scopes: Vec<Scope>,
    commons: Vec<Common>,
    leaves: Vec<Leaf>,
    pub(crate) trees: Vec<Arc<Compiled>>,
    /// Whether a function asks for the lists of databases and logins.
    pub(crate) asks_databases: bool,
    /// Variables that the statement sets while it runs, in lower case.
    live: Vec<String>,
    recursion: Recursion,
    /// Where an aggregate may not stand.
    refuses_aggregates: bool,
    /// Whether a clause other than SELECT and ORDER BY is bound.
    refuses_windows: bool,
    aliases: usize,
}

impl<'s> Binder<'s> {
    pub(crate) fn new(session: &'s mut Session) -> Self {
        Self {
            session,
            scopes: Vec::new(),
            commons: Vec::new(),
            leaves: Vec::new(),
            trees: Vec::new(),
            asks_databases: false,
            live: Vec::new(),
            recursion: Recursion::default(),
            refuses_aggregates: false,
            refuses_windows: false,
            aliases: 0,
        }
    }

    /// A name for a derived table that no script uses.
    fn alias(&mut self) -> String {
        self.aliases += 1;
        format!("windlass {}", self.aliases)
    }

    fn leaf(&mut self, sql: String, ty: DataType) -> Bound {
        let known = self
            .leaves
            .iter()
            .position(|leaf| leaf.sql == sql && leaf.ty == ty);
        let index = known.unwrap_or_else(|| {
            self.leaves.push(Leaf { sql, ty });
            self.leaves.len() - 1
        });
        Bound::new(crate::tsql::expression::Node::Leaf(index), ty)
    }

    /// Binds an expression outside of any query, for a tree that is evaluated at once. Returns the SQL of
    /// its leaves with their types.
    pub(crate) fn scalar(
        &mut self,
        expression: &Spanned<Expr>,
    ) -> Result<(Bound, Vec<(String, DataType)>), Failure> {
        let mut bound = match expression.node.is_condition() {
            true => self.condition(&expression.node)?,
            false => self.expression(&expression.node)?,
        };
        // The leaves of subqueries are only seen within them.
        let mut used = Vec::new();
        emit::number_leaves(&mut bound, &mut used);
        let all = self.leaf_list();
        let leaves = used.into_iter().filter_map(|index| all.get(index).cloned());
        let leaves = leaves.collect();
        Ok((bound, leaves))
    }

    fn leaf_list(&self) -> Vec<(String, DataType)> {
        let leaves = self.leaves.iter();
        leaves.map(|leaf| (leaf.sql.clone(), leaf.ty)).collect()
    }
}

/// A name in SQLite's quotes.
pub(crate) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Whether two names are the same to the default collation.
pub(crate) fn is_same(left: &str, right: &str) -> bool {
    left.eq_ignore_ascii_case(right) || left.to_lowercase() == right.to_lowercase()
}
