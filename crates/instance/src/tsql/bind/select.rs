//! SELECT.

use windlass_base::message::table as messages;
use windlass_tsql::ast::{Case, Expr, Select, SelectItem};

use super::emit::collated;
use super::operator::collation_of;
use super::query::{BoundQuery, Tail};
use super::recursion::LEVEL;
use super::{Binder, Grouping, Output, Scope, is_same, quoted};
use crate::tsql::expression::{Bound, Collation, Node};
use crate::{DataType, Failure};

type Result<T> = std::result::Result<T, Failure>;

/// A column of the result before it is written.
struct Item {
    name: Option<String>,
    bound: Bound,
    collation: Collation,
}

/// What a SELECT without its list and its order is.
struct Frame {
    from: String,
    condition: String,
    groups: String,
    having: String,
}

impl Binder<'_> {
    pub(super) fn select(&mut self, select: &Select, tail: &Tail<'_>) -> Result<BoundQuery> {
        self.scopes.push(Scope::default());
        let bound = self.select_in_scope(select, tail);
        self.scopes.pop();
        bound
    }

    fn select_in_scope(&mut self, select: &Select, tail: &Tail<'_>) -> Result<BoundQuery> {
        let frame = self.frame(select)?;
        let items = self.items(select)?;
        let folds = select.distinct;
        let mut outputs = Vec::new();
        for item in &items {
            let sql = self.emit(&item.bound);
            outputs.push(Output {
                name: item.name.clone(),
                ty: item.bound.ty,
                collation: item.collation,
                sql,
            });
        }
        let mut list = Vec::new();
        for (index, output) in outputs.iter().enumerate() {
            let sql = match folds || output.collation != Collation::Default {
                true => collated(output.sql.clone(), output.ty, output.collation),
                false => output.sql.clone(),
            };
            list.push(format!("{sql} AS {}", quoted(&output.shown_name(index))));
        }
        let level = self.scopes.last().and_then(|scope| scope.level.clone());
        self.recursion.has_level = level.is_some();
        if let Some(level) = level {
            let most = self.recursion.defining.map_or(0, |defining| defining.most);
            list.push(format!("windlass_level({level}, {most}) AS {LEVEL}"));
        }
        let order = self.order(select, tail, &outputs)?;
        let distinct = if folds { "DISTINCT " } else { "" };
        let body = format!(
            "SELECT {distinct}{}{}{}{}{}",
            list.join(", "),
            frame.from,
            frame.condition,
            frame.groups,
            frame.having
        );
        let sql = match &select.top {
            None => format!("{body}{order}{}", tail.limit),
            Some(top) if top.percent => {
                let thousandths = (self.percent(&top.count)? * 1000.0).round() as i64;
                // The next whole number of rows.
                format!(
                    "{body}{order} LIMIT (SELECT (COUNT(*) * {thousandths} + 99999) / 100000 FROM ({body}))"
                )
            }
            Some(top) => {
                let count = self.row_count(&top.count)?;
                format!("{body}{order} LIMIT {count}{}", tail.limit)
            }
        };
        Ok(BoundQuery { sql, outputs })
    }

    fn percent(&mut self, written: &windlass_tsql::span::Spanned<Expr>) -> Result<f64> {
        let value = self.known_value(written)?;
        match crate::convert(&value, DataType::Float, None)? {
            crate::Value::Float(percent) if (0.0..=100.0).contains(&percent) => Ok(percent),
            _ => Err(messages::percent_invalid().into()),
        }
    }

    /// FROM, WHERE, GROUP BY and HAVING.
    fn frame(&mut self, select: &Select) -> Result<Frame> {
        let from = self.from(&select.from)?;
        let condition = self.where_clause(select.condition.as_ref())?;
        let mut keys = Vec::new();
        let mut grouping = Grouping::default();
        self.refuses_windows = true;
        self.refuses_aggregates = true;
        for group in &select.groups {
            let bound = self.expression(&group.node)?;
            keys.push(self.emit_key(&bound, collation_of(&group.node)));
            match &bound.node {
                Node::Leaf(_) => grouping.columns.push(self.emit(&bound)),
                _ => grouping.expressions.push(bound),
            }
        }
        self.refuses_aggregates = false;
        let groups = match keys.is_empty() {
            true => String::new(),
            false => format!(" GROUP BY {}", keys.join(", ")),
        };
        let is_grouped = !select.groups.is_empty()
            || select.having.is_some()
            || select.items.iter().any(|item| has_aggregate(&item.node));
        if is_grouped && let Some(scope) = self.scopes.last_mut() {
            scope.grouping = Some(grouping);
        }
        let having = match &select.having {
            Some(having) => {
                let bound = self.condition(&having.node)?;
                self.check_grouped(&bound)?;
                format!(" HAVING {}", self.emit_condition(&bound))
            }
            None => String::new(),
        };
        self.refuses_windows = false;
        Ok(Frame {
            from,
            condition,
            groups,
            having,
        })
    }

    pub(super) fn where_clause(
        &mut self,
        condition: Option<&windlass_tsql::span::Spanned<Expr>>,
    ) -> Result<String> {
        let Some(condition) = condition else {
            return Ok(String::new());
        };
        let flags = (self.refuses_aggregates, self.refuses_windows);
        (self.refuses_aggregates, self.refuses_windows) = (true, true);
        let bound = self.condition(&condition.node);
        (self.refuses_aggregates, self.refuses_windows) = flags;
        let bound = bound?;
        Ok(format!(" WHERE {}", self.emit_condition(&bound)))
    }

    fn items(&mut self, select: &Select) -> Result<Vec<Item>> {
        let mut items = Vec::new();
        for item in &select.items {
            match &item.node {
                SelectItem::All(table) => self.all_columns(table.as_ref(), &mut items)?,
                SelectItem::Value { value, name } => {
                    let bound = self.expression(&value.node)?;
                    self.check_grouped(&bound)?;
                    let name = match (name, &value.node) {
                        (Some(name), _) => Some(name.text.clone()),
                        (None, Expr::Column(column)) => Some(column.object.text.clone()),
                        _ => None,
                    };
                    items.push(Item {
                        name,
                        bound,
                        collation: collation_of(&value.node),
                    });
                }
                SelectItem::Assign { .. } => return Err(messages::assigns_and_returns().into()),
            }
        }
        Ok(items)
    }

    /// The columns of `*` or `t.*`.
    fn all_columns(
        &mut self,
        table: Option<&windlass_tsql::ast::ObjectName>,
        items: &mut Vec<Item>,
    ) -> Result<()> {
        let Some(scope) = self.scopes.last().cloned() else {
            return Ok(());
        };
        let mut found = false;
        for source in &scope.sources {
            if table.is_some_and(|table| !is_same(&table.object.text, &source.name)) {
                continue;
            }
            found = true;
            for column in &source.columns {
                let bound = self.leaf(column.sql.clone(), column.ty);
                self.check_grouped(&bound)?;
                items.push(Item {
                    name: Some(column.name.clone()),
                    bound,
                    collation: Collation::Default,
                });
            }
        }
        match (found, table) {
            (true, _) => Ok(()),
            (false, Some(table)) => Err(messages::multipart_unknown(format!("{table}.*")).into()),
            (false, None) => Err(messages::must_name_table().into()),
        }
    }

    /// Refuses columns that a SELECT with groups neither groups by nor aggregates.
    fn check_grouped(&self, bound: &Bound) -> Result<()> {
        let Some(scope) = self.scopes.last() else {
            return Ok(());
        };
        let Some(grouping) = &scope.grouping else {
            return Ok(());
        };
        if grouping.expressions.contains(bound) {
            return Ok(());
        }
        if let Node::Leaf(index) = bound.node {
            let Some(leaf) = self.leaves.get(index) else {
                return Ok(());
            };
            let mut columns = scope
                .sources
                .iter()
                .flat_map(|source| source.columns.iter().map(move |column| (source, column)));
            let found = columns.find(|(_, column)| column.sql == leaf.sql);
            return match found {
                Some((source, column)) if !grouping.columns.contains(&leaf.sql) => {
                    let name = format!("{}.{}", source.name, column.name);
                    Err(messages::column_not_grouped(name).into())
                }
                _ => Ok(()),
            };
        }
        super::emit::children(bound)
            .into_iter()
            .try_for_each(|child| self.check_grouped(child))
    }

    fn order(&mut self, select: &Select, tail: &Tail<'_>, outputs: &[Output]) -> Result<String> {
        let mut keys = Vec::new();
        for item in tail.order {
            let position = Self::output_position(&item.value.node, outputs)?;
            let key = match position
                .and_then(|position| outputs.get(position).map(|output| (position, output)))
            {
                Some((position, output)) => {
                    collated((position + 1).to_string(), output.ty, output.collation)
                }
                None => {
                    let bound = self.expression(&item.value.node)?;
                    self.check_grouped(&bound)?;
                    let key = self.emit_key(&bound, collation_of(&item.value.node));
                    let is_selected = matches!(bound.node, Node::Leaf(_))
                        && outputs.iter().any(|output| key.starts_with(&output.sql));
                    if select.distinct && !is_selected {
                        return Err(messages::order_not_selected().into());
                    }
                    key
                }
            };
            keys.push(key + if item.descending { " DESC" } else { "" });
        }
        Ok(match keys.is_empty() {
            true => String::new(),
            false => format!(" ORDER BY {}", keys.join(", ")),
        })
    }

    /// A SELECT that only sets variables: the SQL of what its values are computed from, and for every
    /// variable the tree.
    pub(crate) fn assignments(
        &mut self,
        query: &windlass_tsql::ast::Query,
        select: &Select,
    ) -> Result<super::change::Assignments> {
        self.limit_recursion(query)?;
        let with = self.common_tables(&query.tables)?;
        self.scopes.push(Scope::default());
        let frame = self.frame(select)?;
        let mut variables = Vec::new();
        for item in &select.items {
            if let SelectItem::Assign { variable, .. } = &item.node {
                self.live.push(variable.name.to_lowercase());
            }
        }
        for item in &select.items {
            let SelectItem::Assign {
                variable,
                operator,
                value,
            } = &item.node
            else {
                return Err(messages::assigns_and_returns().into());
            };
            let value = self.expression(&value.node)?;
            self.check_grouped(&value)?;
            let value = self.assigned(&variable.name, *operator, value)?;
            variables.push((variable.name.clone(), value));
        }
        let tail = Tail {
            order: &query.order,
            limit: String::new(),
        };
        let order = self.order(select, &tail, &[])?;
        let limit = match &select.top {
            Some(top) if top.percent => {
                let hint = "Write TOP (n).";
                return Err(
                    messages::statement_not_supported("TOP PERCENT with variables", hint).into(),
                );
            }
            Some(top) => format!(" LIMIT {}", self.row_count(&top.count)?),
            None => String::new(),
        };
        self.scopes.pop();
        let leaves = self.leaf_list();
        // Leaves of the condition and of subqueries are not visible here: only those that trees use.
        let used = super::change::used_leaves(&mut variables, &leaves);
        let list = match used.is_empty() {
            true => "NULL".to_owned(),
            false => {
                let columns: Vec<&str> = used.iter().map(|(sql, _)| sql.as_str()).collect();
                columns.join(", ")
            }
        };
        let distinct = if select.distinct { "DISTINCT " } else { "" };
        let sql = format!(
            "{with}SELECT {distinct}{list}{}{}{}{}{order}{limit}",
            frame.from, frame.condition, frame.groups, frame.having
        );
        Ok(super::change::Assignments {
            sql,
            leaf_types: used.into_iter().map(|(_, ty)| ty).collect(),
            variables,
        })
    }
}

/// Whether a column of a result is computed over many rows.
pub(super) fn has_aggregate(item: &SelectItem) -> bool {
    match item {
        SelectItem::All(_) => false,
        SelectItem::Value { value, .. } | SelectItem::Assign { value, .. } => {
            aggregates(&value.node)
        }
    }
}

fn aggregates(expression: &Expr) -> bool {
    const NAMES: &[&str] = &[
        "AVG",
        "COUNT",
        "COUNT_BIG",
        "GROUP_CONCAT",
        "MAX",
        "MIN",
        "STRING_AGG",
        "SUM",
        "TOTAL",
    ];
    let case = |case: &Case| {
        let operand = case.operand.iter().chain(&case.otherwise);
        let branches = case.branches.iter();
        operand.map(|value| &value.node).any(aggregates)
            || branches
                .flat_map(|branch| [&branch.when.node, &branch.then.node])
                .any(aggregates)
    };
    match expression {
        Expr::Aggregate(aggregate) => {
            aggregate.over.is_none()
                || aggregate
                    .arguments
                    .iter()
                    .any(|value| aggregates(&value.node))
        }
        Expr::Call {
            function,
            arguments,
        } => {
            let is_one = arguments.len() == 1 || function.object.is("STRING_AGG");
            is_one && NAMES.iter().any(|name| function.object.is(name))
                || arguments.iter().any(|value| aggregates(&value.node))
        }
        Expr::Infix { left, right, .. }
        | Expr::Compare { left, right, .. }
        | Expr::Logic { left, right, .. } => aggregates(&left.node) || aggregates(&right.node),
        Expr::Unary { operand: value, .. }
        | Expr::Cast { value, .. }
        | Expr::Convert { value, .. }
        | Expr::Collate { value, .. }
        | Expr::IsNull { value, .. }
        | Expr::InList { value, .. }
        | Expr::Between { value, .. }
        | Expr::Like { value, .. }
        | Expr::InQuery { value, .. }
        | Expr::Not(value) => aggregates(&value.node),
        Expr::Case(inner) => case(inner),
        _ => false,
    }
}
