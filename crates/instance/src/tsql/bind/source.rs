//! FROM: tables, derived tables, functions, joins.

use windlass_base::message::table as messages;
use windlass_tsql::ast::{Expr, Identifier, JoinKind, Joined, ObjectName, Query, TableSource};
use windlass_tsql::span::Spanned;

use super::recursion::LEVEL;
use super::{Binder, Scope, Source, SourceColumn, is_same, quoted};
use crate::{DataType, Failure};

type Result<T> = std::result::Result<T, Failure>;

/// What NULL as an argument of a function of `sys` chooses.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OfNull {
    AllRows,
    NoRow,
}

/// The functions of `sys` whose arguments choose rows, and by which columns.
const KEYS: &[(&str, OfNull, &[&str])] = &[
    (
        "dm_io_virtual_file_stats",
        OfNull::AllRows,
        &["database_id", "file_id"],
    ),
    ("dm_exec_sql_text", OfNull::NoRow, &["sql_handle"]),
];

fn is_system(name: &ObjectName) -> bool {
    name.schema().is_some_and(|schema| schema.is("sys"))
}

impl Binder<'_> {
    /// ` FROM ...`, or nothing. Adds the tables to the innermost scope.
    pub(super) fn from(&mut self, from: &[Joined]) -> Result<String> {
        let mut parts = Vec::new();
        for joined in from {
            let mut sql = self.source(&joined.table.node)?;
            for join in &joined.joins {
                let (right, applied_on) = match join.kind {
                    JoinKind::CrossApply | JoinKind::OuterApply => {
                        self.applied(&join.table.node)?
                    }
                    _ => (self.source(&join.table.node)?, String::new()),
                };
                let word = match join.kind {
                    JoinKind::Inner => "JOIN",
                    JoinKind::Left | JoinKind::OuterApply => "LEFT JOIN",
                    JoinKind::Right => "RIGHT JOIN",
                    JoinKind::Full => "FULL JOIN",
                    JoinKind::Cross | JoinKind::CrossApply => "CROSS JOIN",
                };
                sql = format!("{sql} {word} {right}");
                if let Some(condition) = &join.condition {
                    let flags = (self.refuses_aggregates, self.refuses_windows);
                    (self.refuses_aggregates, self.refuses_windows) = (true, true);
                    let bound = self.condition(&condition.node);
                    (self.refuses_aggregates, self.refuses_windows) = flags;
                    let bound = bound?;
                    sql = format!("{sql} ON {}", self.emit_condition(&bound));
                } else if !applied_on.is_empty() {
                    sql = format!("{sql} ON {applied_on}");
                } else if join.kind == JoinKind::OuterApply {
                    sql.push_str(" ON 1");
                }
            }
            parts.push(sql);
        }
        Ok(match parts.is_empty() {
            true => String::new(),
            false => format!(" FROM {}", parts.join(", ")),
        })
    }

    fn add_source(&mut self, source: Source) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.sources.push(source);
        }
    }

    fn source(&mut self, source: &TableSource) -> Result<String> {
        match source {
            TableSource::Table { name, alias } => self.named_table(name, alias.as_ref()),
            TableSource::Variable { name, alias } => {
                let table = self.session.tables.variable(&name.name)?;
                let alias = alias
                    .as_ref()
                    .map_or(name.name.as_str(), |alias| &alias.text);
                Ok(self.physical(&table, alias))
            }
            TableSource::Query {
                query,
                alias,
                columns,
            } => self.derived(query, alias, columns),
            TableSource::Function {
                name,
                arguments,
                alias,
                columns,
            } => self.table_function(name, arguments, alias.as_ref(), columns),
        }
    }

    /// A derived table, which does not see the tables beside it.
    fn derived(
        &mut self,
        query: &Query,
        alias: &Identifier,
        columns: &[Identifier],
    ) -> Result<String> {
        let beside = self.scopes.pop();
        let bound = self.subquery(query);
        self.scopes.extend(beside);
        let bound = bound?;
        let listed = Self::column_list(&alias.text, columns, &bound.outputs)?;
        let own = quoted(&alias.text);
        let source = Source {
            name: alias.text.clone(),
            columns: listed
                .iter()
                .map(|(name, ty)| SourceColumn {
                    name: name.clone(),
                    ty: *ty,
                    sql: format!("{own}.{}", quoted(name)),
                })
                .collect(),
            is_table: false,
        };
        self.add_source(source);
        if columns.is_empty() {
            return Ok(format!("({}) AS {own}", bound.sql));
        }
        let names: Vec<String> = listed.iter().map(|(name, _)| quoted(name)).collect();
        let inner = quoted(&self.alias());
        Ok(format!(
            "(WITH {inner}({}) AS ({}) SELECT * FROM {inner}) AS {own}",
            names.join(", "),
            bound.sql
        ))
    }

    /// What APPLY applies, and the condition that makes it a join: SQLite can do it for functions only.
    fn applied(&mut self, source: &TableSource) -> Result<(String, String)> {
        match source {
            TableSource::Function {
                name,
                arguments,
                alias,
                ..
            } if is_system(name) => {
                let own = alias.as_ref().unwrap_or(&name.object).text.clone();
                let (table, condition) = self.system_function(name, arguments, &own)?;
                Ok((self.physical(&table, &own), condition))
            }
            TableSource::Function { .. } => Ok((self.source(source)?, String::new())),
            _ => {
                let hint = "Write a subquery in the select list, or join a derived table that numbers its \
                            rows with ROW_NUMBER() OVER (PARTITION BY ... ORDER BY ...).";
                Err(messages::statement_not_supported("APPLY of a query", hint).into())
            }
        }
    }

    fn named_table(&mut self, name: &ObjectName, alias: Option<&Identifier>) -> Result<String> {
        let own = alias.unwrap_or(&name.object);
        if name.qualifiers.is_empty()
            && let Some(columns) = self.common_table(&name.object.text)
        {
            let quoted_own = quoted(&own.text);
            let mut found = self.commons.iter();
            let found = found.rposition(|common| is_same(&common.name, &name.object.text));
            if found.is_some()
                && found == self.recursion.defining.map(|defining| defining.index)
                && let Some(scope) = self.scopes.last_mut()
            {
                scope.level = Some(format!("{quoted_own}.{LEVEL}"));
            }
            let source = Source {
                name: own.text.clone(),
                columns: columns
                    .into_iter()
                    .map(|(name, ty)| SourceColumn {
                        sql: format!("{quoted_own}.{}", quoted(&name)),
                        name,
                        ty,
                    })
                    .collect(),
                is_table: false,
            };
            self.add_source(source);
            return Ok(format!("{} AS {quoted_own}", quoted(&name.object.text)));
        }
        let table = self.table(name)?;
        Ok(self.physical(&table, &own.text))
    }

    fn physical(&mut self, table: &super::table::Table, alias: &str) -> String {
        let own = quoted(alias);
        let source = self.rows_of(table, alias);
        self.add_source(source);
        format!("{} AS {own}", table.sql)
    }

    /// A table as a source of rows.
    pub(super) fn rows_of(&mut self, table: &super::table::Table, alias: &str) -> Source {
        let own = quoted(alias);
        let is_temporary = table.is_temporary();
        let columns = table.columns.iter().map(|(name, ty)| SourceColumn {
            name: name.clone(),
            ty: *ty,
            sql: self.column_sql(format!("{own}.{}", quoted(name)), *ty, is_temporary),
        });
        Source {
            name: alias.to_owned(),
            columns: columns.collect(),
            is_table: true,
        }
    }

    fn table_function(
        &mut self,
        name: &ObjectName,
        arguments: &[Spanned<Expr>],
        alias: Option<&Identifier>,
        columns: &[Identifier],
    ) -> Result<String> {
        let own = alias.unwrap_or(&name.object).text.clone();
        if name.object.is("STRING_SPLIT") {
            return self.string_split(arguments, &own);
        }
        if is_system(name) {
            let (table, condition) = self.system_function(name, arguments, &own)?;
            let sql = match condition.is_empty() {
                true => table.sql,
                false => format!(
                    "(SELECT * FROM {} AS {} WHERE {condition})",
                    table.sql,
                    quoted(&own)
                ),
            };
            let table = super::table::Table { sql, ..table };
            return Ok(self.physical(&table, &own));
        }
        if !name.qualifiers.is_empty() || !columns.is_empty() {
            return Err(messages::object_unknown(name).into());
        }
        let table = self.function_columns(&name.object.text)?;
        let mut written = Vec::new();
        for argument in arguments {
            let bound = self.expression(&argument.node)?;
            written.push(self.emit_stored(&bound));
        }
        let call = format!("{}({})", quoted(&name.object.text), written.join(", "));
        let table = super::table::Table { sql: call, ..table };
        Ok(self.physical(&table, &own))
    }

    /// A function of `sys`: the view of all its rows, and which of them the arguments choose.
    fn system_function(
        &mut self,
        name: &ObjectName,
        arguments: &[Spanned<Expr>],
        alias: &str,
    ) -> Result<(super::table::Table, String)> {
        let table = self.table(name)?;
        let known = KEYS.iter().find(|(function, ..)| name.object.is(function));
        let (of_null, keys) = known.map_or((OfNull::AllRows, &[][..]), |(_, of_null, keys)| {
            (*of_null, *keys)
        });
        let mut conditions = Vec::new();
        for (index, argument) in arguments.iter().enumerate() {
            if matches!(argument.node, Expr::Null) && of_null == OfNull::AllRows {
                continue;
            }
            let Some(key) = keys.get(index) else {
                let hint = "Write NULL for every argument, and choose the rows with WHERE.";
                let what = "Arguments of a system view";
                return Err(messages::statement_not_supported(what, hint).into());
            };
            let mut columns = table.columns.iter();
            let column = columns.find(|(column, _)| column == key);
            let ty = column.map_or(DataType::INT, |(_, ty)| *ty);
            let bound = self.expression(&argument.node)?.converted(ty);
            let value = self.emit_stored(&bound);
            let column = format!("{}.{}", quoted(alias), quoted(key));
            conditions.push(match of_null {
                OfNull::AllRows => format!("({value} IS NULL OR {column} = {value})"),
                OfNull::NoRow => format!("{column} = {value}"),
            });
        }
        Ok((table, conditions.join(" AND ")))
    }

    /// `STRING_SPLIT(text, separator [, 1])`: SQLite reads the parts as JSON.
    fn string_split(&mut self, arguments: &[Spanned<Expr>], alias: &str) -> Result<String> {
        if !(2..=3).contains(&arguments.len()) {
            return Err(Failure::ending(messages::argument_count(
                "string_split",
                "2 to 3",
            )));
        }
        let text = self
            .expression(&arguments[0].node)?
            .converted(DataType::TEXT);
        let separator = self
            .expression(&arguments[1].node)?
            .converted(DataType::TEXT);
        let (text, separator) = (self.emit(&text), self.emit(&separator));
        let own = quoted(alias);
        let mut columns = vec![SourceColumn {
            name: "value".to_owned(),
            ty: DataType::TEXT,
            sql: format!("{own}.\"value\""),
        }];
        if arguments.len() == 3 {
            columns.push(SourceColumn {
                name: "ordinal".to_owned(),
                ty: DataType::BIGINT,
                sql: format!("({own}.\"key\" + 1)"),
            });
        }
        self.add_source(Source {
            name: alias.to_owned(),
            columns,
            is_table: false,
        });
        Ok(format!(
            "json_each(windlass_split({text}, {separator})) AS {own}"
        ))
    }

    /// Binds in a scope of its own.
    pub(super) fn scoped<T>(&mut self, bind: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.scopes.push(Scope::default());
        let bound = bind(self);
        self.scopes.pop();
        bound
    }
}
