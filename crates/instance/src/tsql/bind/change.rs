//! INSERT, UPDATE, DELETE, and the assignments of SELECT.

use windlass_base::message::table as messages;
use windlass_tsql::ast::{
    AssignmentOperator, Change, Delete, Expr, Identifier, InfixOperator, Insert, InsertRows,
    Joined, TableSource, Target, Update,
};
use windlass_tsql::span::Spanned;

use super::operator::infix;
use super::query::BoundQuery;
use super::table::Table;
use super::{Binder, is_same, quoted};
use crate::tsql::expression::{Bound, StoredIn};
use crate::{DataType, Failure};

type Result<T> = std::result::Result<T, Failure>;

/// Columns that keep values, with their types.
type Kept = Vec<(StoredIn, DataType)>;

/// A statement that changes rows.
#[derive(Debug, Clone)]
pub(crate) struct Changed {
    pub(crate) sql: String,
    /// Whether it only changes temporary tables.
    pub(crate) is_temporary: bool,
}

/// SELECT @x = ...: a query whose rows are computed from, and the trees.
pub(crate) struct Assignments {
    pub(crate) sql: String,
    pub(crate) leaf_types: Vec<DataType>,
    pub(crate) variables: Vec<(String, Bound)>,
}

/// The leaves that trees use; numbers the trees by them.
pub(super) fn used_leaves(
    variables: &mut [(String, Bound)],
    leaves: &[(String, DataType)],
) -> Vec<(String, DataType)> {
    let mut used = Vec::new();
    for (_, tree) in variables {
        super::emit::number_leaves(tree, &mut used);
    }
    let used = used.into_iter();
    used.filter_map(|index| leaves.get(index).cloned())
        .collect()
}

impl Binder<'_> {
    /// The new value of a variable, with the operator of `+=` and the like.
    pub(super) fn assigned(
        &mut self,
        variable: &str,
        operator: AssignmentOperator,
        value: Bound,
    ) -> Result<Bound> {
        let Some(operator) = operator_of(operator) else {
            return Ok(value);
        };
        let before =
            self.expression(&Expr::Variable(windlass_tsql::ast::Variable::new(variable)))?;
        infix(operator, before, value)
    }

    fn target(&mut self, target: &Target) -> Result<Table> {
        let table = match target {
            Target::Table(name) => self.table(name)?,
            Target::Variable(name) => self.session.tables.variable(&name.name)?,
        };
        if matches!(table.schema.as_str(), "sys" | "msdb") {
            return Err(messages::catalog_read_only().into());
        }
        Ok(table)
    }

    /// INSERT of a query; the rows of EXECUTE are inserted by [`Binder::row_inserter`].
    pub(crate) fn insert(&mut self, insert: &Insert) -> Result<Changed> {
        if let InsertRows::Query(query) = &insert.rows {
            self.limit_recursion(query)?;
        }
        let with = self.common_tables(&insert.tables)?;
        let table = self.target(&insert.target.node)?;
        let chosen = chosen(&table, &insert.columns)?;
        let head = insert_head(&table, &chosen, &insert.columns);
        let sql = match &insert.rows {
            InsertRows::DefaultValues => format!("INSERT INTO {} DEFAULT VALUES", table.sql),
            InsertRows::Execute(_) => return Err(messages::internal_consistency().into()),
            InsertRows::Query(query) => {
                let bound = self.query(query)?;
                let rows = self.stored_rows(&bound, &chosen, &table)?;
                format!("{with}{head} {rows}")
            }
        };
        Ok(Changed {
            sql,
            is_temporary: table.is_temporary(),
        })
    }

    /// The SQL that inserts one row of `width` values, the types of its columns, and whether the table is temporary.
    pub(crate) fn row_inserter(
        &mut self,
        insert: &Insert,
        width: usize,
    ) -> Result<(String, Kept, bool)> {
        let table = self.target(&insert.target.node)?;
        let chosen = chosen(&table, &insert.columns)?;
        if chosen.len() != width {
            return Err(messages::values_do_not_match().into());
        }
        let head = insert_head(&table, &chosen, &insert.columns);
        let marks = vec!["?"; width].join(", ");
        let columns = chosen.into_iter();
        let types = columns
            .map(|(name, ty)| (StoredIn::new(&table.sql, &name), ty))
            .collect();
        let sql = format!("{head} VALUES ({marks})");
        Ok((sql, types, table.is_temporary()))
    }

    /// The query with its values as the columns store them.
    pub(super) fn stored_rows(
        &mut self,
        query: &BoundQuery,
        columns: &[(String, DataType)],
        table: &Table,
    ) -> Result<String> {
        if query.outputs.len() != columns.len() {
            return Err(messages::values_do_not_match().into());
        }
        let alias = quoted(&self.alias());
        let mut values = Vec::new();
        for (index, (output, (column, ty))) in query.outputs.iter().zip(columns).enumerate() {
            let name = quoted(&output.shown_name(index));
            let value = self.leaf(format!("{alias}.{name}"), output.ty);
            let value = value.stored_in(stored_type(*ty), &table.sql, column);
            values.push(self.emit_kept(&value, table.is_temporary()));
        }
        // The condition keeps SQLite from reading ON as the start of an upsert.
        Ok(format!(
            "SELECT {} FROM ({}) AS {alias} WHERE 1",
            values.join(", "),
            query.sql
        ))
    }

    pub(crate) fn update(&mut self, update: &Update) -> Result<Changed> {
        let with = self.common_tables(&update.tables)?;
        self.scoped(|binder| {
            let (table, from) = binder.changed_table(&update.target.node, &update.from)?;
            let condition = binder.where_clause(update.condition.as_ref())?;
            let mut columns = Vec::new();
            let mut values = Vec::new();
            for change in &update.changes {
                let (name, value) = binder.changed_value(&table, change)?;
                if columns.contains(&name) {
                    return Err(messages::column_set_twice(&change.column.node.text).into());
                }
                columns.push(name);
                values.push(value);
            }
            let set = columns.iter().zip(&values).map(|(name, value)| format!("{name} = {value}"));
            let set: Vec<String> = set.collect();
            let sql = if let Some(from) = from {
                let alias = quoted(&binder.alias());
                let own = quoted(&from.alias);
                let list = values
                    .iter()
                    .enumerate()
                    .map(|(index, value)| format!("{value} AS \"{index}\""));
                let list: Vec<String> = list.collect();
                let set = columns
                    .iter()
                    .enumerate()
                    .map(|(index, name)| format!("{name} = {alias}.\"{index}\""));
                let set: Vec<String> = set.collect();
                format!(
                    "{with}UPDATE {} SET {} FROM (SELECT {own}.rowid AS \"row\", {}{}{condition}) AS {alias} \
                     WHERE {}.rowid = {alias}.\"row\"",
                    table.sql,
                    set.join(", "),
                    list.join(", "),
                    from.sql,
                    quoted(&from.table)
                )
            } else {
                let own = own_alias(&update.target.node);
                format!("{with}UPDATE {} AS {own} SET {}{condition}", table.sql, set.join(", "))
            };
            Ok(Changed {
                sql,
                is_temporary: table.is_temporary(),
            })
        })
    }

    fn changed_value(&mut self, table: &Table, change: &Change) -> Result<(String, String)> {
        let name = &change.column.node.text;
        let columns = table.columns.iter();
        let found = columns.clone().find(|(column, _)| is_same(column, name));
        let Some((name, ty)) = found.cloned() else {
            return Err(messages::column_unknown(name).into());
        };
        let mut value = self.expression(&change.value.node)?;
        if let Some(operator) = operator_of(change.operator) {
            let column = Expr::Column(windlass_tsql::ast::ObjectName {
                qualifiers: Vec::new(),
                object: change.column.node.clone(),
            });
            let before = self.expression(&column)?;
            value = infix(operator, before, value)?;
        }
        let value = value.stored_in(stored_type(ty), &table.sql, &name);
        let value = self.emit_kept(&value, table.is_temporary());
        Ok((quoted(&name), value))
    }

    pub(crate) fn delete(&mut self, delete: &Delete) -> Result<Changed> {
        let with = self.common_tables(&delete.tables)?;
        self.scoped(|binder| {
            let (table, from) = binder.changed_table(&delete.target.node, &delete.from)?;
            let condition = binder.where_clause(delete.condition.as_ref())?;
            let sql = if let Some(from) = from {
                format!(
                    "{with}DELETE FROM {} WHERE rowid IN (SELECT {}.rowid{}{condition})",
                    table.sql,
                    quoted(&from.alias),
                    from.sql
                )
            } else {
                let own = own_alias(&delete.target.node);
                format!("{with}DELETE FROM {} AS {own}{condition}", table.sql)
            };
            Ok(Changed {
                sql,
                is_temporary: table.is_temporary(),
            })
        })
    }

    /// The table that is changed, and FROM if there is one. The target may be an alias in FROM.
    fn changed_table(&mut self, target: &Target, from: &[Joined]) -> Result<(Table, Option<From>)> {
        if from.is_empty() {
            let table = self.target(target)?;
            let name = match target {
                Target::Table(name) => &name.object.text,
                Target::Variable(name) => &name.name,
            };
            let source = self.rows_of(&table, name);
            if let Some(scope) = self.scopes.last_mut() {
                scope.sources.push(source);
            }
            return Ok((table, None));
        }
        let sql = self.from(from)?;
        let wanted = match target {
            Target::Table(name) => name.object.text.clone(),
            Target::Variable(name) => name.name.clone(),
        };
        let sources = from
            .iter()
            .flat_map(|joined| {
                std::iter::once(&joined.table).chain(joined.joins.iter().map(|join| &join.table))
            })
            .map(|source| &source.node);
        for source in sources {
            let (alias, actual) = match source {
                TableSource::Table { name, alias } => (alias.as_ref(), Target::Table(name.clone())),
                TableSource::Variable { name, alias } => {
                    (alias.as_ref(), Target::Variable(name.clone()))
                }
                _ => continue,
            };
            let own = match &actual {
                Target::Table(name) => &name.object.text,
                Target::Variable(name) => &name.name,
            };
            let shown = alias.map_or(own, |alias| &alias.text);
            if is_same(shown, &wanted) || is_same(own, &wanted) {
                let table = self.target(&actual)?;
                let (_, bare) = table.sql.rsplit_once('.').unwrap_or(("", &table.sql));
                let bare = bare.trim_matches('"').to_owned();
                let from = From {
                    sql,
                    alias: shown.clone(),
                    table: bare,
                };
                return Ok((table, Some(from)));
            }
        }
        Err(messages::object_unknown(&wanted).into())
    }
}

fn own_alias(target: &Target) -> String {
    quoted(match target {
        Target::Table(name) => &name.object.text,
        Target::Variable(name) => &name.name,
    })
}

/// FROM of a change.
struct From {
    sql: String,
    /// The alias of the changed table.
    alias: String,
    /// Its own name.
    table: String,
}

fn operator_of(operator: AssignmentOperator) -> Option<InfixOperator> {
    Some(match operator {
        AssignmentOperator::Assign => return None,
        AssignmentOperator::Add => InfixOperator::Add,
        AssignmentOperator::Subtract => InfixOperator::Subtract,
        AssignmentOperator::Multiply => InfixOperator::Multiply,
        AssignmentOperator::Divide => InfixOperator::Divide,
        AssignmentOperator::Modulo => InfixOperator::Modulo,
    })
}

/// The columns that are inserted, in the order of the values.
fn chosen(table: &Table, written: &[Spanned<Identifier>]) -> Result<Vec<(String, DataType)>> {
    if written.is_empty() {
        return Ok(table.columns.clone());
    }
    let mut chosen: Vec<(String, DataType)> = Vec::new();
    for name in written {
        let mut columns = table.columns.iter();
        let found = columns.find(|(column, _)| is_same(column, &name.node.text));
        let Some(column) = found else {
            return Err(messages::column_unknown(&name.node.text).into());
        };
        if chosen.contains(column) {
            return Err(messages::column_set_twice(&name.node.text).into());
        }
        chosen.push(column.clone());
    }
    Ok(chosen)
}

fn insert_head(
    table: &Table,
    chosen: &[(String, DataType)],
    written: &[Spanned<Identifier>],
) -> String {
    if written.is_empty() {
        return format!("INSERT INTO {}", table.sql);
    }
    let names: Vec<String> = chosen.iter().map(|(name, _)| quoted(name)).collect();
    format!("INSERT INTO {} ({})", table.sql, names.join(", "))
}

/// What a value becomes before it is stored: SQLite's own types take values as they are.
fn stored_type(ty: DataType) -> DataType {
    match ty {
        DataType::Text { limit: None, .. } | DataType::Binary { limit: None, .. } => {
            DataType::Variant
        }
        other => other,
    }
}
