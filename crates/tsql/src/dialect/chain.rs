//! `+` and `-` where T-SQL concatenates strings or shifts dates, and `SQLite` would add numbers.
//!
//! Types are not known here. They are inferred from: a string, a function that returns strings, a
//! function that returns dates, a column of the history whose name ends in `_date`.

use super::Untranslatable;
use super::tree::{Node, next, previous, text};

const TEXT_FUNCTIONS: &[&str] = &[
    "CHAR",
    "CONCAT",
    "DATENAME",
    "DB_NAME",
    "LEFT",
    "LOWER",
    "LTRIM",
    "NCHAR",
    "QUOTENAME",
    "REPLACE",
    "REPLICATE",
    "REVERSE",
    "RIGHT",
    "RTRIM",
    "SPACE",
    "STR",
    "STUFF",
    "SUBSTRING",
    "TRIM",
    "TSQL_FORMAT",
    "UPPER",
];

const DATE_FUNCTIONS: &[&str] = &[
    "DATEADD",
    "EOMONTH",
    "GETDATE",
    "GETUTCDATE",
    "SYSDATETIME",
    "SYSUTCDATETIME",
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Date,
    Number,
    Unknown,
}

/// A `+` or `-` between two operands.
struct Joint {
    at: usize,
    left: Kind,
    right: Kind,
    /// The start of the left operand and the end of the right one.
    span: (usize, usize),
}

/// Translates the operators of one level.
pub(super) fn rewrite(nodes: &mut Vec<Node>) -> Result<(), Untranslatable> {
    let mut at = 0;
    while let Some(joint) = find(nodes, at) {
        at = joint.at + 1;
        match (joint.left, joint.right) {
            (Kind::Date, Kind::Number) => {
                at = move_date(nodes, &joint);
            }
            (Kind::Date, _) | (_, Kind::Date) => {
                return Err(Untranslatable::new(
                    "Adding or subtracting dates",
                    "Write DATEADD(day, n, date) or DATEDIFF(second, from, to).",
                ));
            }
            (Kind::Text, _) | (_, Kind::Text) if nodes[joint.at].is_symbol("+") => {
                nodes[joint.at] = Node::raw("||");
                join_neighbours(nodes, joint.at);
            }
            _ => {}
        }
    }
    Ok(())
}

fn find(nodes: &[Node], from: usize) -> Option<Joint> {
    (from..nodes.len()).find_map(|at| {
        if !nodes[at].is_symbol("+") && !nodes[at].is_symbol("-") {
            return None;
        }
        let last = previous(nodes, at)?;
        let first = next(nodes, at + 1)?;
        // After an operator or a keyword it is a sign.
        if matches!(nodes[last], Node::Symbol(_)) || is_keyword(&nodes[last]) {
            return None;
        }
        let begin = operand_start(nodes, last);
        let end = operand_end(nodes, first);
        Some(Joint {
            at,
            left: kind(nodes, begin, last),
            right: kind(nodes, first, end),
            span: (begin, end),
        })
    })
}

fn is_keyword(node: &Node) -> bool {
    [
        "SELECT", "WHERE", "AND", "OR", "WHEN", "THEN", "ELSE", "BY", "ON", "IN", "RETURN", "CASE",
    ]
    .iter()
    .any(|word| node.is_word(word))
}

/// The start of an operand that ends at `last`: `a.b.c`, `f(x)`.
fn operand_start(nodes: &[Node], last: usize) -> usize {
    let mut start = last;
    if matches!(nodes[start], Node::Group(_))
        && let Some(name) = previous(nodes, start)
        && matches!(nodes[name], Node::Word(_) | Node::Raw(_))
        && !is_keyword(&nodes[name])
    {
        start = name;
    }
    while let Some(dot) = previous(nodes, start)
        && nodes[dot].is_symbol(".")
        && let Some(name) = previous(nodes, dot)
    {
        start = name;
    }
    start
}

/// The end of an operand that starts at `first`.
fn operand_end(nodes: &[Node], first: usize) -> usize {
    let mut end = first;
    while let Some(dot) = next(nodes, end + 1)
        && nodes[dot].is_symbol(".")
        && let Some(name) = next(nodes, dot + 1)
    {
        end = name;
    }
    if matches!(nodes[end], Node::Word(_) | Node::Raw(_))
        && let Some(group) = next(nodes, end + 1)
        && matches!(nodes[group], Node::Group(_))
    {
        end = group;
    }
    end
}

fn kind(nodes: &[Node], begin: usize, end: usize) -> Kind {
    let name = match &nodes[begin] {
        Node::Word(name) | Node::Raw(name) => name.to_ascii_uppercase(),
        _ => String::new(),
    };
    match &nodes[end] {
        Node::Text(_) => Kind::Text,
        Node::Number(_) => Kind::Number,
        Node::Raw(raw) if raw == "GETDATE()" => Kind::Date,
        Node::Group(arguments) if begin < end => {
            let converted = arguments.iter().find_map(|node| match node {
                Node::Raw(raw) if name.starts_with("TSQL_") => Some(raw.to_ascii_lowercase()),
                _ => None,
            });
            match converted {
                Some(target) if target.contains("char") => Kind::Text,
                Some(target) if target.contains("date") => Kind::Date,
                _ if TEXT_FUNCTIONS.contains(&name.as_str()) => Kind::Text,
                _ if DATE_FUNCTIONS.contains(&name.as_str()) => Kind::Date,
                _ => Kind::Unknown,
            }
        }
        Node::Word(column) | Node::Quoted(column) => {
            let column = column.trim_matches(['[', ']', '"']).to_ascii_lowercase();
            if column.ends_with("_date") || column == "crdate" {
                Kind::Date
            } else {
                Kind::Unknown
            }
        }
        _ => Kind::Unknown,
    }
}

/// `date - 7` becomes `DATEADD('day', -7, date)`; returns where the search continues.
fn move_date(nodes: &mut Vec<Node>, joint: &Joint) -> usize {
    let (begin, end) = joint.span;
    let sign = if nodes[joint.at].is_symbol("-") {
        "-"
    } else {
        ""
    };
    let date = text(&nodes[begin..joint.at]);
    let number = text(&nodes[joint.at + 1..=end]);
    let moved = format!("DATEADD('day', {sign}{}, {})", number.trim(), date.trim());
    nodes.splice(
        begin..=end,
        [Node::Raw(moved), Node::Trivia(" ".to_owned())],
    );
    begin
}

/// The other `+` of a chain with a string concatenate too: `a + b + 'x' + c`.
fn join_neighbours(nodes: &mut [Node], at: usize) {
    let mut left = at;
    while let Some(last) = previous(nodes, left)
        && let start = operand_start(nodes, last)
        && let Some(operator) = previous(nodes, start)
        && nodes[operator].is_symbol("+")
        && previous(nodes, operator).is_some_and(|before| {
            !matches!(nodes[before], Node::Symbol(_)) && !is_keyword(&nodes[before])
        })
    {
        nodes[operator] = Node::raw("||");
        left = operator;
    }
    let mut right = at;
    while let Some(first) = next(nodes, right + 1)
        && let end = operand_end(nodes, first)
        && let Some(operator) = next(nodes, end + 1)
        && nodes[operator].is_symbol("+")
    {
        nodes[operator] = Node::raw("||");
        right = operator;
    }
}
