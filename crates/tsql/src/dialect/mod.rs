//! Differences between T-SQL and `SQLite`: the grammar part of pass-through SQL.
//!
//! Queries on the history are written for SQL Server. Constructs with a counterpart in `SQLite` are
//! translated, those that would silently mean something else are refused, and everything else is
//! unchanged:
//!
//! | T-SQL | becomes |
//! |---|---|
//! | `SELECT TOP (n) ...` | `... LIMIT n` |
//! | `CAST(x AS varchar(9))`, `CONVERT(type, x, style)`, `TRY_` | a call of `TSQL_CONVERT` |
//! | `DATEDIFF(hour, a, b)` and the like | the date part as a string |
//! | `ISNULL(a, b)`, `COUNT_BIG(x)` | `IFNULL`, `COUNT` |
//! | `DB_NAME(x)`, `DB_ID(x)` | a query on `sys.databases` |
//! | `FORMAT(x, y)` if x is not a string | `TSQL_FORMAT` |
//! | `'a' + b` | `'a' \|\| b` |
//! | `GETDATE() - 7`, `finish_date + 1` | `DATEADD` |
//! | `SELECT a = b` in a list | `b AS a` |
//! | `WITH (NOLOCK)`, `OPTION (...)` | nothing: `SQLite` isolates fully |
//! | `CURRENT_TIMESTAMP` | `GETDATE()`: local time |
//!
//! Neighbours: [`crate::sqlite`] then adapts the lexical syntax; `instance` registers the
//! functions.
//!
//! Invariant: brackets nest at most [`DEPTH_MAX`] levels deep, so that no text can exhaust the
//! stack.

mod chain;
mod select;
mod tree;

use tree::Node;

/// Maximum nesting of brackets in translated SQL.
pub const DEPTH_MAX: usize = 100;

/// Why a statement cannot be translated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Untranslatable {
    pub what: String,
    /// What to write instead.
    pub hint: &'static str,
}

impl Untranslatable {
    fn new(what: impl Into<String>, hint: &'static str) -> Self {
        Self {
            what: what.into(),
            hint,
        }
    }
}

/// Functions whose first argument is a part of a date.
const DATE_FUNCTIONS: &[&str] = &[
    "DATEADD",
    "DATEDIFF",
    "DATEDIFF_BIG",
    "DATENAME",
    "DATEPART",
];

/// Types that `CAST` converts alike in `SQLite` and T-SQL.
const SHARED_TYPES: &[&str] = &[
    "INT", "INTEGER", "BIGINT", "REAL", "TEXT", "BLOB", "NUMERIC",
];

/// Table hints accepted in `WITH (...)`. `SQLite`'s isolation satisfies them all.
const HINTS: &[&str] = &[
    "HOLDLOCK",
    "NOLOCK",
    "READCOMMITTED",
    "READPAST",
    "READUNCOMMITTED",
    "REPEATABLEREAD",
    "SERIALIZABLE",
    "TABLOCK",
];

/// Translates a statement that reads or changes rows. Others (`CREATE`, `PRAGMA`) are unchanged.
///
/// # Errors
/// [`Untranslatable`] for syntax that `SQLite` would misinterpret.
///
/// ```
/// let sql = "SELECT TOP 3 name, DATEDIFF(hh, a, GETDATE()) FROM t";
/// assert_eq!(
///     windlass_tsql::dialect::translate(sql).unwrap(),
///     "SELECT name, DATEDIFF('hh', a, GETDATE()) FROM t LIMIT 3",
/// );
/// ```
pub fn translate(sql: &str) -> Result<String, Untranslatable> {
    let mut nodes = tree::read(sql)?;
    let first = nodes.iter().find(|node| !node.is_trivia());
    let translated = ["SELECT", "WITH", "INSERT", "UPDATE", "DELETE"];
    if !first.is_some_and(|node| translated.iter().any(|word| node.is_word(word))) {
        return Ok(sql.to_owned());
    }
    statement(&mut nodes)?;
    Ok(tree::text(&nodes))
}

/// Translates the nodes of one level, after those of the levels below.
fn statement(nodes: &mut Vec<Node>) -> Result<(), Untranslatable> {
    for node in nodes.iter_mut() {
        if let Node::Group(inner) = node {
            statement(inner)?;
        }
    }
    drop_hints(nodes);
    calls(nodes)?;
    chain::rewrite(nodes)?;
    select::rewrite(nodes)
}

/// Drops `WITH (NOLOCK)`, `(NOLOCK)` after a name, and `OPTION (...)`.
fn drop_hints(nodes: &mut Vec<Node>) {
    let mut index = 0;
    while index < nodes.len() {
        let is_hint = |node: &Node| match node {
            Node::Group(inner) => {
                let mut words = inner.iter().filter(|node| !node.is_trivia()).peekable();
                words.peek().is_some()
                    && words.all(|node| {
                        node.is_symbol(",") || HINTS.iter().any(|hint| node.is_word(hint))
                    })
            }
            _ => false,
        };
        let next = tree::next(nodes, index + 1);
        let drops = |node: &Node| {
            (node.is_word("WITH") && next.is_some_and(|next| is_hint(&nodes[next])))
                || (node.is_word("OPTION")
                    && next.is_some_and(|next| matches!(nodes[next], Node::Group(_))))
        };
        match next {
            Some(next) if drops(&nodes[index]) => {
                nodes.drain(index..=next);
            }
            _ if is_hint(&nodes[index]) => {
                nodes.remove(index);
            }
            _ => index += 1,
        }
    }
}

/// Translates the function calls on one level.
fn calls(nodes: &mut [Node]) -> Result<(), Untranslatable> {
    for index in 0..nodes.len() {
        let Some(name) = nodes[index].word().map(str::to_ascii_uppercase) else {
            continue;
        };
        if name == "CURRENT_TIMESTAMP" {
            nodes[index] = Node::raw("GETDATE()");
            continue;
        }
        let Some(next) = tree::next(nodes, index + 1) else {
            continue;
        };
        let Node::Group(arguments) = &mut nodes[next] else {
            continue;
        };
        let replacement = call(&name, arguments)?;
        if let Some(function) = replacement {
            nodes[index] = Node::raw(function);
        }
    }
    Ok(())
}

/// Translates one call: changes its arguments and returns its new name, if any.
fn call(name: &str, arguments: &mut Vec<Node>) -> Result<Option<&'static str>, Untranslatable> {
    match name {
        "ISNULL" => return Ok(Some("IFNULL")),
        "COUNT_BIG" => return Ok(Some("COUNT")),
        "CAST" | "TRY_CAST" => return cast(name, arguments),
        "CONVERT" | "TRY_CONVERT" => return convert(name, arguments).map(Some),
        "FORMAT" => {
            let first = tree::next(arguments, 0).map(|first| &arguments[first]);
            let is_text = first.is_some_and(Node::is_text);
            return Ok((!is_text).then_some("TSQL_FORMAT"));
        }
        "DB_NAME" | "DB_ID" if tree::next(arguments, 0).is_some() => {
            let (wanted, known) = if name == "DB_NAME" {
                ("name", "database_id")
            } else {
                ("database_id", "name")
            };
            let argument = std::mem::take(arguments);
            arguments.push(Node::raw(format!(
                "SELECT {wanted} FROM sys.databases WHERE {known} = "
            )));
            arguments.push(Node::Group(argument));
            return Ok(Some(""));
        }
        _ => {}
    }
    if DATE_FUNCTIONS.contains(&name)
        && let Some(first) = tree::next(arguments, 0)
        && let Some(part) = arguments[first].word()
    {
        let part = Node::raw(format!("'{part}'"));
        arguments[first] = part;
    }
    Ok(None)
}

/// `CAST(x AS type)`, for types that T-SQL converts differently.
fn cast(name: &str, arguments: &mut Vec<Node>) -> Result<Option<&'static str>, Untranslatable> {
    let Some(at) = arguments.iter().rposition(|node| node.is_word("AS")) else {
        return Ok(None);
    };
    let data_type = tree::text(&arguments[at + 1..]).trim().to_owned();
    if name == "CAST"
        && SHARED_TYPES
            .iter()
            .any(|known| data_type.eq_ignore_ascii_case(known))
    {
        return Ok(None);
    }
    arguments.truncate(at);
    let value = std::mem::take(arguments);
    arguments.push(Node::raw(format!("{}, ", quoted(&data_type)?)));
    arguments.push(Node::Group(value));
    Ok(Some(if name == "CAST" {
        "TSQL_CONVERT"
    } else {
        "TSQL_TRY_CONVERT"
    }))
}

/// `CONVERT(type, x [, style])`
fn convert(name: &str, arguments: &mut Vec<Node>) -> Result<&'static str, Untranslatable> {
    let comma = arguments
        .iter()
        .position(|node| node.is_symbol(","))
        .unwrap_or(arguments.len());
    let data_type = tree::text(&arguments[..comma]).trim().to_owned();
    let data_type = Node::raw(quoted(&data_type)?);
    arguments.splice(..comma, [data_type]);
    Ok(if name == "CONVERT" {
        "TSQL_CONVERT"
    } else {
        "TSQL_TRY_CONVERT"
    })
}

/// A type as a string. Types consist of letters, digits and brackets, so they cannot end the
/// string.
fn quoted(data_type: &str) -> Result<String, Untranslatable> {
    let harmless = |character: char| {
        character.is_ascii_alphanumeric()
            || matches!(character, '(' | ')' | ',' | ' ' | '_' | '[' | ']')
    };
    if data_type.is_empty() || !data_type.chars().all(harmless) {
        return Err(Untranslatable::new(
            format!("A conversion to '{data_type}'"),
            "Write a type such as varchar(20), decimal(18,2) or datetime.",
        ));
    }
    Ok(format!("'{data_type}'"))
}

#[cfg(test)]
mod tests;
