//! Whole queries: common tables, sets, limits, subqueries.

use windlass_base::message::table as messages;
use windlass_tsql::ast::{Body, CommonTable, Expr, OrderItem, Query, SetOperator};
use windlass_tsql::span::Spanned;

use super::emit::collated;
use super::recursion::{Defining, LEVEL};
use super::{Binder, Common, Output, is_same, quoted};
use crate::tsql::expression::{Bound, Collation, Facts, Node, eval, integer};
use crate::{DataType, Failure};

type Result<T> = std::result::Result<T, Failure>;

/// A query as SQLite runs it.
#[derive(Debug, Clone)]
pub(crate) struct BoundQuery {
    pub(crate) sql: String,
    pub(crate) outputs: Vec<Output>,
}

/// What follows the rows of a query.
pub(super) struct Tail<'a> {
    pub(super) order: &'a [OrderItem],
    /// ` LIMIT n OFFSET m`, or nothing.
    pub(super) limit: String,
}

impl Binder<'_> {
    pub(crate) fn query(&mut self, query: &Query) -> Result<BoundQuery> {
        self.limit_recursion(query)?;
        let outer = self.commons.len();
        let with = self.common_tables(&query.tables)?;
        let limit = self.limit(query)?;
        let tail = Tail {
            order: &query.order,
            limit,
        };
        let mut bound = self.body(&query.body, &tail)?;
        self.commons.truncate(outer);
        bound.sql = with + &bound.sql;
        Ok(bound)
    }

    /// A query within an expression: it sees the tables around it.
    pub(super) fn subquery(&mut self, query: &Query) -> Result<BoundQuery> {
        let flags = (self.refuses_aggregates, self.refuses_windows);
        (self.refuses_aggregates, self.refuses_windows) = (false, false);
        let bound = self.query(query);
        (self.refuses_aggregates, self.refuses_windows) = flags;
        bound
    }

    /// A subquery as a value: the SQL and its type.
    pub(super) fn single_column(&mut self, query: &Query) -> Result<(String, DataType)> {
        let bound = self.subquery(query)?;
        let [output] = bound.outputs.as_slice() else {
            return Err(messages::several_columns().into());
        };
        if yields_one_row(query) {
            return Ok((format!("({})", bound.sql), output.ty));
        }
        let alias = quoted(&self.alias());
        let column = format!("{alias}.{}", quoted(&output.shown_name(0)));
        // The count tells a second row, which SQLite would pass over.
        let sql = format!(
            "(SELECT windlass_single({column}, COUNT(*) OVER ()) FROM ({}) AS {alias})",
            bound.sql
        );
        Ok((sql, output.ty))
    }

    pub(super) fn common_tables(&mut self, tables: &[CommonTable]) -> Result<String> {
        if tables.is_empty() {
            return Ok(String::new());
        }
        let mut parts = Vec::new();
        for table in tables {
            let name = &table.name.node.text;
            let before = self.commons.len();
            let outer = self.recursion.defining.take();
            if let Body::Sets { first, .. } = &table.query.body {
                // A recursive table has the columns of its first set.
                let tail = Tail {
                    order: &[],
                    limit: String::new(),
                };
                if let Ok(anchor) = self.body(first, &tail) {
                    let columns = Self::column_list(name, &table.columns, &anchor.outputs)?;
                    self.commons.push(Common {
                        name: name.clone(),
                        columns,
                    });
                    let most = if table.is_unlimited {
                        0
                    } else {
                        self.recursion.most
                    };
                    self.recursion.defining = Some(Defining {
                        index: before,
                        most,
                    });
                }
            }
            self.recursion.has_level = false;
            let bound = self.subquery(&table.query)?;
            self.commons.truncate(before);
            self.recursion.defining = outer;
            let columns = Self::column_list(name, &table.columns, &bound.outputs)?;
            let mut names: Vec<String> = columns.iter().map(|(name, _)| quoted(name)).collect();
            if std::mem::take(&mut self.recursion.has_level) {
                names.push(LEVEL.to_owned());
            }
            parts.push(format!(
                "{}({}) AS ({})",
                quoted(name),
                names.join(", "),
                bound.sql
            ));
            self.commons.push(Common {
                name: name.clone(),
                columns,
            });
        }
        Ok(format!("WITH RECURSIVE {} ", parts.join(", ")))
    }

    /// The columns of a table that a query makes.
    pub(super) fn column_list(
        table: &str,
        written: &[windlass_tsql::ast::Identifier],
        outputs: &[Output],
    ) -> Result<Vec<(String, DataType)>> {
        if !written.is_empty() && written.len() != outputs.len() {
            return Err(messages::more_columns(table).into());
        }
        let mut columns = Vec::new();
        for (index, output) in outputs.iter().enumerate() {
            let name = match written.get(index) {
                Some(name) => Some(name.text.clone()),
                None => output.name.clone(),
            };
            let name =
                name.ok_or_else(|| Failure::from(messages::column_without_name(index + 1, table)))?;
            columns.push((name, output.ty));
        }
        Ok(columns)
    }

    pub(super) fn common_table(&self, name: &str) -> Option<Vec<(String, DataType)>> {
        let mut commons = self.commons.iter().rev();
        let found = commons.find(|common| is_same(&common.name, name));
        found.map(|common| common.columns.clone())
    }

    fn body(&mut self, body: &Body, tail: &Tail<'_>) -> Result<BoundQuery> {
        match body {
            Body::Select(select) => self.select(select, tail),
            Body::Nested(query) if tail.order.is_empty() && tail.limit.is_empty() => {
                self.query(query)
            }
            Body::Nested(query) => {
                let inner = self.query(query)?;
                Self::around(inner, tail)
            }
            Body::Values(rows) => self.values(rows),
            Body::Sets { first, others } => self.sets(first, others, tail),
        }
    }

    fn values(&mut self, rows: &[Vec<Spanned<Expr>>]) -> Result<BoundQuery> {
        let mut bound: Vec<Vec<Bound>> = Vec::new();
        for row in rows {
            let row = self.expressions(row)?;
            if bound.first().is_some_and(|first| first.len() != row.len()) {
                return Err(messages::set_columns_differ().into());
            }
            bound.push(row);
        }
        let width = bound.first().map_or(0, Vec::len);
        let types: Vec<DataType> = (0..width)
            .map(|column| {
                let types = bound
                    .iter()
                    .filter_map(|row| row.get(column))
                    .map(|value| value.ty);
                types.fold(DataType::Null, DataType::common)
            })
            .collect();
        let mut lines = Vec::new();
        for row in bound {
            let mut values = Vec::new();
            for (value, ty) in row.into_iter().zip(&types) {
                values.push(self.emit(&value.converted(*ty)));
            }
            lines.push(format!("({})", values.join(", ")));
        }
        let outputs = types.iter().enumerate().map(|(index, ty)| Output {
            name: None,
            ty: *ty,
            collation: Collation::Default,
            sql: format!("column{}", index + 1),
        });
        Ok(BoundQuery {
            sql: format!("VALUES {}", lines.join(", ")),
            outputs: outputs.collect(),
        })
    }

    fn sets(
        &mut self,
        first: &Body,
        others: &[(SetOperator, Body)],
        tail: &Tail<'_>,
    ) -> Result<BoundQuery> {
        let none = Tail {
            order: &[],
            limit: String::new(),
        };
        let mut parts = vec![self.body(first, &none)?];
        let mut levels = vec![std::mem::take(&mut self.recursion.has_level)];
        for (_, body) in others {
            let part = self.body(body, &none)?;
            levels.push(std::mem::take(&mut self.recursion.has_level));
            if parts
                .first()
                .is_some_and(|first| first.outputs.len() != part.outputs.len())
            {
                return Err(messages::set_columns_differ().into());
            }
            parts.push(part);
        }
        let width = parts.first().map_or(0, |part| part.outputs.len());
        let types: Vec<DataType> = (0..width)
            .map(|column| {
                let outputs = parts.iter().filter_map(|part| part.outputs.get(column));
                outputs
                    .map(|output| output.ty)
                    .fold(DataType::Null, DataType::common)
            })
            .collect();
        let is_recursive = levels.contains(&true);
        if is_recursive {
            self.check_recursion(others, &parts, &levels, &types)?;
        }
        let mut sql = String::new();
        for (index, part) in parts.iter().enumerate() {
            if let Some((operator, _)) = index.checked_sub(1).and_then(|before| others.get(before))
            {
                sql.push_str(match operator {
                    SetOperator::Union => " UNION ",
                    SetOperator::UnionAll => " UNION ALL ",
                    SetOperator::Except => " EXCEPT ",
                    SetOperator::Intersect => " INTERSECT ",
                });
            }
            let folds = others
                .iter()
                .any(|(operator, _)| *operator != SetOperator::UnionAll);
            // SQLite reads the table that is being defined only in the FROM of the part itself.
            let part = match (is_recursive, levels[index]) {
                (true, true) => part.sql.clone(),
                (true, false) => format!("SELECT *, 0 FROM ({})", self.recast(part, &types)),
                (false, _) => self.recast(part, &types),
            };
            sql.push_str(&match folds {
                true => self.folded(&part, &parts[index].outputs, &types),
                false => part,
            });
        }
        self.recursion.has_level = is_recursive;
        let mut outputs = parts.swap_remove(0).outputs;
        for (output, ty) in outputs.iter_mut().zip(types) {
            output.ty = ty;
        }
        let bound = BoundQuery { sql, outputs };
        match tail.order.is_empty() && tail.limit.is_empty() {
            true => Ok(bound),
            false => Self::around(bound, tail),
        }
    }

    /// A query whose result is sorted and limited.
    fn around(inner: BoundQuery, tail: &Tail<'_>) -> Result<BoundQuery> {
        let order = Self::ordinals(tail.order, &inner.outputs)?;
        let sql = format!("SELECT * FROM ({}){order}{}", inner.sql, tail.limit);
        Ok(BoundQuery {
            sql,
            outputs: inner.outputs,
        })
    }

    /// ORDER BY over the columns of a result alone.
    fn ordinals(order: &[OrderItem], outputs: &[Output]) -> Result<String> {
        let mut keys = Vec::new();
        for item in order {
            // Of UNION, a qualified name means the column of the result that has its last part.
            let position = match &item.value.node {
                Expr::Column(name) => Self::output_named(&name.object.text, outputs),
                other => Self::output_position(other, outputs)?,
            };
            let Some(position) = position else {
                return Err(match &item.value.node {
                    Expr::Column(name) => messages::column_unknown(&name.object.text).into(),
                    _ => messages::order_not_selected().into(),
                });
            };
            let output = &outputs[position];
            let key = collated((position + 1).to_string(), output.ty, output.collation);
            keys.push(key + if item.descending { " DESC" } else { "" });
        }
        Ok(match keys.is_empty() {
            true => String::new(),
            false => format!(" ORDER BY {}", keys.join(", ")),
        })
    }

    /// The column of the result that an item of ORDER BY names or numbers.
    pub(super) fn output_position(item: &Expr, outputs: &[Output]) -> Result<Option<usize>> {
        match item {
            Expr::Integer(number) => {
                let position = usize::try_from(*number)
                    .ok()
                    .and_then(|number| number.checked_sub(1));
                match position.filter(|position| *position < outputs.len()) {
                    Some(position) => Ok(Some(position)),
                    None => Err(messages::order_position(number).into()),
                }
            }
            Expr::Column(name) if name.qualifiers.is_empty() => {
                Ok(Self::output_named(&name.object.text, outputs))
            }
            _ => Ok(None),
        }
    }

    fn output_named(name: &str, outputs: &[Output]) -> Option<usize> {
        let named = |output: &Output| output.name.as_ref().is_some_and(|own| is_same(own, name));
        outputs.iter().position(named)
    }

    /// The query with its columns as other types, where they differ.
    pub(super) fn recast(&mut self, query: &BoundQuery, types: &[DataType]) -> String {
        let needs = |from: DataType, to: DataType| {
            let is_exact = matches!(
                to,
                DataType::Decimal { .. } | DataType::Money | DataType::SmallMoney
            );
            let alike = from.is_text() && to.is_text()
                || from.is_whole() && to.is_whole()
                || to == DataType::Variant
                || from == DataType::Null;
            is_exact && from != DataType::Null || from != to && !alike
        };
        let differs = query
            .outputs
            .iter()
            .zip(types)
            .any(|(output, ty)| needs(output.ty, *ty));
        let is_compound = [" LIMIT ", " UNION ", " EXCEPT ", " INTERSECT "]
            .iter()
            .any(|word| query.sql.contains(word));
        if !differs && !is_compound && !query.sql.starts_with("WITH ") {
            return query.sql.clone();
        }
        let alias = quoted(&self.alias());
        let mut columns = Vec::new();
        for (index, (output, ty)) in query.outputs.iter().zip(types).enumerate() {
            let name = quoted(&output.shown_name(index));
            let column = self.leaf(format!("{alias}.{name}"), output.ty);
            let value = match needs(output.ty, *ty) {
                true => Bound::new(
                    Node::Convert {
                        value: Box::new(column),
                        style: None,
                        on_failure: windlass_tsql::ast::OnConversionFailure::Error,
                        column: None,
                    },
                    *ty,
                ),
                false => column,
            };
            columns.push(format!("{} AS {name}", self.emit(&value)));
        }
        format!(
            "SELECT {} FROM ({}) AS {alias}",
            columns.join(", "),
            query.sql
        )
    }

    /// The query with its texts in their collation, so that equal ones fall together.
    fn folded(&mut self, sql: &str, outputs: &[Output], types: &[DataType]) -> String {
        let alias = quoted(&self.alias());
        let columns = outputs.iter().zip(types).enumerate();
        let columns = columns.map(|(index, (output, ty))| {
            let name = quoted(&output.shown_name(index));
            let column = collated(format!("{alias}.{name}"), *ty, output.collation);
            format!("{column} AS {name}")
        });
        let columns: Vec<String> = columns.collect();
        format!("SELECT {} FROM ({sql}) AS {alias}", columns.join(", "))
    }

    /// ` LIMIT n OFFSET m` of a query.
    fn limit(&mut self, query: &Query) -> Result<String> {
        if query.offset.is_none() && query.limit.is_none() {
            return Ok(String::new());
        }
        let limit = match &query.limit {
            Some(limit) => self.row_count(limit)?,
            None => -1,
        };
        let offset = match &query.offset {
            Some(offset) => self.row_count(offset)?,
            None => 0,
        };
        Ok(format!(" LIMIT {limit} OFFSET {offset}"))
    }

    /// A number of rows, which is known before the query runs.
    pub(super) fn row_count(&mut self, written: &Spanned<Expr>) -> Result<i64> {
        let value = self.known_value(written)?;
        let count = integer(&value).unwrap_or(-1);
        match value.is_null() || count < 0 {
            true => Err(messages::row_count_invalid().into()),
            false => Ok(count),
        }
    }

    /// The value of an expression that needs no rows.
    pub(super) fn known_value(&mut self, written: &Spanned<Expr>) -> Result<crate::Value> {
        let before = self.leaves.len();
        let bound = self.expression(&written.node)?;
        if self.leaves.len() > before {
            let hint = "Compute the number before, in a variable.";
            return Err(messages::statement_not_supported(
                "A number of rows that depends on rows",
                hint,
            )
            .into());
        }
        let database = self.session.current_database().to_owned();
        let identity = self.session.instance.identity().clone();
        let facts = Facts::new(identity, self.session.principal().clone(), database);
        let inputs = eval::Inputs {
            leaves: &[],
            facts: &facts,
            variables: Some(&self.session.variables),
        };
        eval::eval(&bound, &inputs)
    }
}

/// Whether a query cannot have a second row.
fn yields_one_row(query: &Query) -> bool {
    let is_one = |count: &Spanned<Expr>| count.node == Expr::Integer(1);
    if query.limit.as_ref().is_some_and(is_one) {
        return true;
    }
    match &query.body {
        Body::Select(select) => {
            let top = select
                .top
                .as_ref()
                .is_some_and(|top| !top.percent && is_one(&top.count));
            let bare = select.from.is_empty();
            let is_aggregate = select.groups.is_empty()
                && select
                    .items
                    .iter()
                    .any(|item| super::select::has_aggregate(&item.node));
            top || bare || is_aggregate
        }
        Body::Values(rows) => rows.len() == 1,
        Body::Nested(query) => yields_one_row(query),
        Body::Sets { .. } => false,
    }
}
