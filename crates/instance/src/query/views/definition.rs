//! The definitions of the views of `sys`: one line per column, with the type that SQL Server gives it.
//!
//! ```text
//! view NAME          its rows come from the catalog's connection
//! own NAME           they come from the session's connection, which has the database itself
//! from SQL           further lines are indented
//! COLUMN TYPE = SQL  without `= SQL` it is NULL: what is not known here is not invented
//! ```

use std::fmt::Write as _;
use std::sync::OnceLock;

const TEXTS: [&str; 7] = [
    include_str!("databases.txt"),
    include_str!("files.txt"),
    include_str!("activity.txt"),
    include_str!("objects.txt"),
    include_str!("sessions.txt"),
    include_str!("principals.txt"),
    include_str!("jobs.txt"),
];

/// A view of `sys`.
#[derive(Debug, Default)]
pub(crate) struct View {
    pub(crate) name: &'static str,
    /// Whether the session's connection reads it.
    pub(crate) is_own: bool,
    pub(crate) columns: Vec<ViewColumn>,
    from: String,
}

#[derive(Debug)]
pub(crate) struct ViewColumn {
    pub(crate) name: &'static str,
    /// In T-SQL's words, in lower case.
    pub(crate) declared_type: &'static str,
    sql: &'static str,
}

impl View {
    /// The SQL for its rows.
    pub(crate) fn rows(&self) -> String {
        let mut sql = String::from("SELECT ");
        for (index, column) in self.columns.iter().enumerate() {
            let comma = if index > 0 { ", " } else { "" };
            // Writing to a String cannot fail.
            let _ = write!(sql, "{comma}{} AS \"{}\"", column.sql, column.name);
        }
        let _ = write!(sql, " FROM {}", self.from);
        sql
    }
}

/// All views.
pub(crate) fn views() -> &'static [View] {
    static VIEWS: OnceLock<Vec<View>> = OnceLock::new();
    VIEWS.get_or_init(|| TEXTS.iter().flat_map(|text| read(text)).collect())
}

fn read(text: &'static str) -> Vec<View> {
    let mut views: Vec<View> = Vec::new();
    let lines = text.lines();
    for line in lines.filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        if matches!(word, "view" | "own") {
            views.push(View {
                name: rest,
                is_own: word == "own",
                ..View::default()
            });
            continue;
        }
        let Some(view) = views.last_mut() else {
            continue;
        };
        match word {
            "from" => rest.clone_into(&mut view.from),
            "" => {
                view.from.push(' ');
                view.from.push_str(rest.trim_start());
            }
            name => {
                let (declared_type, sql) = rest.split_once(" = ").unwrap_or((rest, "NULL"));
                view.columns.push(ViewColumn {
                    name,
                    declared_type,
                    sql,
                });
            }
        }
    }
    views
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DataType;
    use crate::tsql::bind::own_type;

    #[test]
    fn every_column_has_a_type_of_tsql() {
        for view in views() {
            assert!(!view.from.is_empty(), "{}", view.name);
            for column in &view.columns {
                let ty = own_type(column.declared_type);
                let is_known = ty != DataType::Variant || column.declared_type == "sql_variant";
                assert!(
                    is_known,
                    "{}.{}: {}",
                    view.name, column.name, column.declared_type
                );
            }
        }
    }
}
