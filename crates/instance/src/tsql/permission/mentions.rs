//! The tables that a statement reads and changes, wherever in it a query stands.
//!
//! Invariant: what could be a table counts as one. A name that a common table hides counts only where that is
//! certainly in scope: not in the first part of its own definition.

use windlass_tsql::ast::{
    Aggregate, Body, Case, CommonTable, CreateTable, Cursor, Delete, Expr, Insert, InsertRows,
    Joined, ObjectName, OrderItem, Query, Select, SelectItem, Statement, TableSource, Target,
    Update,
};
use windlass_tsql::span::Spanned;

/// What a statement mentions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mention<'a> {
    Reads(&'a ObjectName),
    /// The permission that the change needs.
    Changes(&'static str, &'a ObjectName),
    /// A function that looks into the definitions or files of the current database.
    Inspects(&'a ObjectName),
}

/// Functions that read tables, besides those that compute.
const INSPECTING: [&str; 3] = ["FILEPROPERTY", "OBJECT_DEFINITION", "OBJECT_NAME"];

/// Table functions that only compute.
const COMPUTING: [&str; 1] = ["STRING_SPLIT"];

#[derive(Debug, Default)]
pub(super) struct Mentions<'a> {
    found: Vec<Mention<'a>>,
    /// The common tables in scope.
    commons: Vec<&'a str>,
}

impl<'a> Mentions<'a> {
    /// What `look` finds.
    pub(super) fn of(look: impl FnOnce(&mut Self)) -> Vec<Mention<'a>> {
        let mut mentions = Self::default();
        look(&mut mentions);
        mentions.found
    }

    /// A statement of a script: its expressions, not the statements within it.
    pub(super) fn script(&mut self, statement: &'a Statement) {
        match statement {
            Statement::Declare(declarations) => {
                for declaration in declarations {
                    self.optional(declaration.node.value.as_ref());
                }
            }
            Statement::DeclareTable { table, .. } => self.create_table(table),
            Statement::SetVariable(set) => self.expression(&set.value),
            Statement::If(choice) => self.expression(&choice.condition),
            Statement::While(repeated) => self.expression(&repeated.condition),
            Statement::Print(value)
            | Statement::Return(Some(value))
            | Statement::ExecuteText(value) => self.expression(value),
            Statement::Cursor(Cursor::Declare { query, .. }) => self.query(query),
            _ => {}
        }
    }

    pub(super) fn query(&mut self, query: &'a Query) {
        let outer = self.commons.len();
        self.common_tables(&query.tables);
        self.body(&query.body);
        self.order(&query.order);
        self.optional(query.offset.as_ref());
        self.optional(query.limit.as_ref());
        self.commons.truncate(outer);
    }

    fn common_tables(&mut self, tables: &'a [CommonTable]) {
        for table in tables {
            let name = table.name.node.text.as_str();
            match &table.query.body {
                // A recursive one sees itself after its first part.
                Body::Sets { first, others } if table.query.tables.is_empty() => {
                    self.body(first);
                    self.commons.push(name);
                    for (_, body) in others {
                        self.body(body);
                    }
                    self.order(&table.query.order);
                    self.optional(table.query.offset.as_ref());
                    self.optional(table.query.limit.as_ref());
                }
                _ => {
                    self.query(&table.query);
                    self.commons.push(name);
                }
            }
        }
    }

    fn body(&mut self, body: &'a Body) {
        match body {
            Body::Select(select) => self.select(select),
            Body::Values(rows) => rows.iter().for_each(|row| self.expressions(row)),
            Body::Nested(query) => self.query(query),
            Body::Sets { first, others } => {
                self.body(first);
                for (_, body) in others {
                    self.body(body);
                }
            }
        }
    }

    fn select(&mut self, select: &'a Select) {
        self.optional(select.top.as_ref().map(|top| &top.count));
        for item in &select.items {
            match &item.node {
                SelectItem::All(_) => {}
                SelectItem::Value { value, .. } | SelectItem::Assign { value, .. } => {
                    self.expression(value);
                }
            }
        }
        if let Some(into) = &select.into {
            self.found
                .push(Mention::Changes("CREATE TABLE", &into.node));
        }
        self.from(&select.from);
        self.optional(select.condition.as_ref());
        self.expressions(&select.groups);
        self.optional(select.having.as_ref());
    }

    fn from(&mut self, from: &'a [Joined]) {
        for joined in from {
            self.source(&joined.table.node);
            for join in &joined.joins {
                self.source(&join.table.node);
                self.optional(join.condition.as_ref());
            }
        }
    }

    fn source(&mut self, source: &'a TableSource) {
        match source {
            TableSource::Table { name, .. } => self.reads(name),
            TableSource::Variable { .. } => {}
            TableSource::Query { query, .. } => self.query(query),
            TableSource::Function {
                name, arguments, ..
            } => {
                self.expressions(arguments);
                let computes = COMPUTING.iter().any(|known| name.object.is(known));
                if !computes || !name.qualifiers.is_empty() {
                    self.found.push(Mention::Reads(name));
                }
            }
        }
    }

    fn reads(&mut self, name: &'a ObjectName) {
        let is_same = |common: &&str| name.object.text.to_lowercase() == common.to_lowercase();
        let is_common = name.qualifiers.is_empty() && self.commons.iter().any(is_same);
        if !is_common {
            self.found.push(Mention::Reads(name));
        }
    }

    pub(super) fn insert(&mut self, insert: &'a Insert) {
        self.common_tables(&insert.tables);
        self.target("INSERT", &insert.target.node, &[]);
        match &insert.rows {
            InsertRows::Query(query) => self.query(query),
            // The statement has needs of its own.
            InsertRows::Execute(_) | InsertRows::DefaultValues => {}
        }
    }

    pub(super) fn update(&mut self, update: &'a Update) {
        self.common_tables(&update.tables);
        self.target("UPDATE", &update.target.node, &update.from);
        for change in &update.changes {
            self.expression(&change.value);
        }
        self.from(&update.from);
        self.optional(update.condition.as_ref());
    }

    pub(super) fn delete(&mut self, delete: &'a Delete) {
        self.common_tables(&delete.tables);
        self.target("DELETE", &delete.target.node, &delete.from);
        self.from(&delete.from);
        self.optional(delete.condition.as_ref());
    }

    pub(super) fn create_table(&mut self, create: &'a CreateTable) {
        self.target("CREATE TABLE", &create.target.node, &[]);
        for column in &create.columns {
            self.optional(column.default.as_ref());
        }
    }

    /// What is changed: a table, or the one that an alias of FROM stands for.
    fn target(&mut self, permission: &'static str, target: &'a Target, from: &'a [Joined]) {
        let Target::Table(name) = target else {
            return;
        };
        let joins = |joined: &'a Joined| joined.joins.iter().map(|join| &join.table.node);
        let mut sources = from
            .iter()
            .flat_map(|joined| std::iter::once(&joined.table.node).chain(joins(joined)));
        let aliased = sources.find_map(|source| match source {
            TableSource::Table {
                name: table,
                alias: Some(alias),
            } if name.qualifiers.is_empty() && name.object.is(&alias.text) => Some(table),
            _ => None,
        });
        let table = aliased.unwrap_or(name);
        self.found.push(Mention::Changes(permission, table));
    }

    fn order(&mut self, order: &'a [OrderItem]) {
        for item in order {
            self.expression(&item.value);
        }
    }

    fn optional(&mut self, expression: Option<&'a Spanned<Expr>>) {
        if let Some(expression) = expression {
            self.expression(expression);
        }
    }

    fn expressions(&mut self, expressions: &'a [Spanned<Expr>]) {
        for one in expressions {
            self.expression(one);
        }
    }

    pub(super) fn expression(&mut self, expression: &'a Spanned<Expr>) {
        match &expression.node {
            Expr::Null
            | Expr::Text { .. }
            | Expr::Integer(_)
            | Expr::Decimal(_)
            | Expr::Binary(_)
            | Expr::Variable(_)
            | Expr::Column(_) => {}
            Expr::Unary { operand, .. } => self.expression(operand),
            Expr::Infix { left, right, .. }
            | Expr::Compare { left, right, .. }
            | Expr::Logic { left, right, .. } => {
                self.expression(left);
                self.expression(right);
            }
            Expr::Call {
                function,
                arguments,
            } => {
                if INSPECTING.iter().any(|known| function.object.is(known)) {
                    self.found.push(Mention::Inspects(function));
                }
                self.expressions(arguments);
            }
            Expr::Cast { value, .. } | Expr::Collate { value, .. } | Expr::Not(value) => {
                self.expression(value);
            }
            Expr::Convert { value, style, .. } => {
                self.expression(value);
                self.optional(style.as_deref());
            }
            Expr::Subquery(inner) | Expr::Exists(inner) => self.query(&inner.query),
            Expr::Aggregate(aggregate) => self.aggregate(aggregate),
            Expr::Case(case) => self.case(case),
            Expr::IsNull { value, .. } => self.expression(value),
            Expr::Between {
                value, low, high, ..
            } => {
                self.expression(value);
                self.expression(low);
                self.expression(high);
            }
            Expr::InList { value, list, .. } => {
                self.expression(value);
                self.expressions(list);
            }
            Expr::InQuery { value, query, .. } => {
                self.expression(value);
                self.query(&query.query);
            }
            Expr::Like {
                value,
                pattern,
                escape,
                ..
            } => {
                self.expression(value);
                self.expression(pattern);
                self.optional(escape.as_deref());
            }
        }
    }

    fn aggregate(&mut self, aggregate: &'a Aggregate) {
        self.expressions(&aggregate.arguments);
        self.order(&aggregate.within);
        if let Some(over) = &aggregate.over {
            self.expressions(&over.partition);
            self.order(&over.order);
        }
    }

    fn case(&mut self, case: &'a Case) {
        self.optional(case.operand.as_ref());
        for branch in &case.branches {
            self.expression(&branch.when);
            self.expression(&branch.then);
        }
        self.optional(case.otherwise.as_ref());
    }
}
