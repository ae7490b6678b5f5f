//! `TOP`, and column aliases with `=`.

use super::Untranslatable;
use super::tree::{Node, next, previous, text};

/// Words that end the list of columns.
const AFTER_LIST: &[&str] = &[
    "FROM",
    "INTO",
    "WHERE",
    "GROUP",
    "HAVING",
    "ORDER",
    "UNION",
    "EXCEPT",
    "INTERSECT",
    "LIMIT",
];

const SET_OPERATORS: &[&str] = &["UNION", "EXCEPT", "INTERSECT"];

fn is_one_of(node: &Node, words: &[&str]) -> bool {
    words.iter().any(|word| node.is_word(word))
}

/// Translates the SELECTs of one level.
pub(super) fn rewrite(nodes: &mut Vec<Node>) -> Result<(), Untranslatable> {
    let mut at = 0;
    while let Some(found) = nodes
        .iter()
        .skip(at)
        .position(|node| node.is_word("SELECT"))
    {
        let select = at + found;
        aliases(nodes, select);
        top(nodes, select)?;
        at = select + 1;
    }
    Ok(())
}

/// `SELECT [DISTINCT] TOP (n)` becomes `LIMIT n` at the end.
fn top(nodes: &mut Vec<Node>, select: usize) -> Result<(), Untranslatable> {
    let Some(mut at) = next(nodes, select + 1) else {
        return Ok(());
    };
    if is_one_of(&nodes[at], &["DISTINCT", "ALL"]) {
        let Some(after) = next(nodes, at + 1) else {
            return Ok(());
        };
        at = after;
    }
    if !nodes[at].is_word("TOP") {
        return Ok(());
    }
    let count = next(nodes, at + 1).filter(|count| {
        matches!(
            nodes[*count],
            Node::Group(_) | Node::Number(_) | Node::Variable(_)
        )
    });
    // A column may have that name.
    let Some(count) = count else {
        return Ok(());
    };
    let refuse = |what: &str| {
        Err(Untranslatable::new(
            what,
            "Write SELECT TOP (n) ... ORDER BY, in a subquery where it is one of several.",
        ))
    };
    if let Some(after) = next(nodes, count + 1) {
        if nodes[after].is_word("PERCENT") {
            return refuse("TOP with PERCENT");
        }
        let is_ties = next(nodes, after + 1).is_some_and(|ties| nodes[ties].is_word("TIES"));
        if nodes[after].is_word("WITH") && is_ties {
            return refuse("TOP WITH TIES");
        }
    }
    let others = nodes.iter().enumerate();
    let mut others = others.filter(|(_, node)| is_one_of(node, SET_OPERATORS));
    if others.any(|(other, _)| other != select) {
        return refuse("TOP in one SELECT of a UNION");
    }
    let number = text(std::slice::from_ref(&nodes[count]));
    let end = next(nodes, count + 1).unwrap_or(nodes.len());
    nodes.drain(at..end);
    let last = previous(nodes, nodes.len()).map_or(nodes.len(), |last| {
        if nodes[last].is_symbol(";") {
            last
        } else {
            last + 1
        }
    });
    nodes.insert(last, Node::raw(format!(" LIMIT {number}")));
    Ok(())
}

/// `SELECT a = b` becomes `SELECT b AS a`.
fn aliases(nodes: &mut Vec<Node>, select: usize) {
    let mut start = select + 1;
    loop {
        let end = (start..nodes.len())
            .find(|at| {
                let node = &nodes[*at];
                node.is_symbol(",") || node.is_symbol(";") || is_one_of(node, AFTER_LIST)
            })
            .unwrap_or(nodes.len());
        let end = alias(nodes, start, end);
        if !nodes.get(end).is_some_and(|node| node.is_symbol(",")) {
            return;
        }
        start = end + 1;
    }
}

/// Translates one column; returns its new end.
fn alias(nodes: &mut Vec<Node>, start: usize, end: usize) -> usize {
    let named = next(nodes, start).filter(|name| *name < end);
    let Some(mut name) = named else { return end };
    if is_one_of(&nodes[name], &["DISTINCT", "ALL"])
        && let Some(after) = next(nodes, name + 1)
    {
        name = after;
    }
    let is_name = matches!(nodes[name], Node::Word(_) | Node::Quoted(_));
    let equals = next(nodes, name + 1).filter(|equals| *equals < end);
    let Some(equals) = equals.filter(|equals| is_name && nodes[*equals].is_symbol("=")) else {
        return end;
    };
    let Some(value) = next(nodes, equals + 1).filter(|value| *value < end) else {
        return end;
    };
    let alias = nodes[name].clone();
    let last = previous(nodes, end).unwrap_or(value) + 1;
    let tail = [Node::raw(" AS "), alias];
    nodes.splice(last..last, tail);
    nodes.drain(name..value);
    end + 2 - (value - name)
}
