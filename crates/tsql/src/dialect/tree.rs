//! The text of a statement as a tree: tokens, and groups in brackets.

use super::{DEPTH_MAX, Untranslatable};
use crate::lexer::{Lexer, TokenKind};

/// A token, or the content of a pair of brackets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Node {
    /// White space or a comment.
    Trivia(String),
    /// A keyword or a name without quotes.
    Word(String),
    /// A name in brackets or double quotes.
    Quoted(String),
    Text(String),
    Variable(String),
    Number(String),
    /// An operator, punctuation, or anything else.
    Symbol(String),
    /// Generated SQL, which is not translated again.
    Raw(String),
    /// `(...)`
    Group(Vec<Node>),
}

impl Node {
    pub(super) fn raw(text: impl Into<String>) -> Self {
        Self::Raw(text.into())
    }

    pub(super) fn is_trivia(&self) -> bool {
        matches!(self, Self::Trivia(_))
    }

    pub(super) fn is_text(&self) -> bool {
        matches!(self, Self::Text(_))
    }

    pub(super) fn word(&self) -> Option<&str> {
        match self {
            Self::Word(word) => Some(word),
            _ => None,
        }
    }

    pub(super) fn is_word(&self, word: &str) -> bool {
        self.word()
            .is_some_and(|own| own.eq_ignore_ascii_case(word))
    }

    pub(super) fn is_symbol(&self, symbol: &str) -> bool {
        matches!(self, Self::Symbol(own) if own == symbol)
    }
}

/// Parses a text. Unmatched brackets stay tokens, for `SQLite` to report.
pub(super) fn read(sql: &str) -> Result<Vec<Node>, Untranslatable> {
    let mut open: Vec<Vec<Node>> = vec![Vec::new()];
    for token in Lexer::new(sql) {
        let text = token.span.text(sql);
        if text == "(" {
            if open.len() > DEPTH_MAX {
                return Err(Untranslatable::new(
                    format!("A query with more than {DEPTH_MAX} nested brackets"),
                    "Split it.",
                ));
            }
            open.push(Vec::new());
            continue;
        }
        let node = if text == ")" && open.len() > 1 {
            Node::Group(open.pop().unwrap_or_default())
        } else {
            let text = text.to_owned();
            match token.kind {
                TokenKind::Space | TokenKind::LineComment | TokenKind::BlockComment { .. } => {
                    Node::Trivia(text)
                }
                TokenKind::Word => Node::Word(text),
                TokenKind::BracketedIdentifier | TokenKind::QuotedIdentifier => Node::Quoted(text),
                TokenKind::Text { .. } => Node::Text(text),
                TokenKind::Variable => Node::Variable(text),
                TokenKind::Integer | TokenKind::Decimal | TokenKind::Hexadecimal => {
                    Node::Number(text)
                }
                _ => Node::Symbol(text),
            }
        };
        if let Some(level) = open.last_mut() {
            level.push(node);
        }
    }
    let mut levels = open.into_iter();
    let mut nodes = levels.next().unwrap_or_default();
    for level in levels {
        nodes.push(Node::Symbol("(".to_owned()));
        nodes.extend(level);
    }
    Ok(nodes)
}

pub(super) fn text(nodes: &[Node]) -> String {
    let mut text = String::new();
    push(nodes, &mut text);
    text
}

fn push(nodes: &[Node], text: &mut String) {
    for node in nodes {
        match node {
            Node::Trivia(own)
            | Node::Word(own)
            | Node::Quoted(own)
            | Node::Text(own)
            | Node::Variable(own)
            | Node::Number(own)
            | Node::Symbol(own)
            | Node::Raw(own) => text.push_str(own),
            Node::Group(inner) => {
                text.push('(');
                push(inner, text);
                text.push(')');
            }
        }
    }
}

/// The first node from `from` on that is not trivia.
pub(super) fn next(nodes: &[Node], from: usize) -> Option<usize> {
    let found = nodes.get(from..)?.iter().position(|node| !node.is_trivia());
    found.map(|found| from + found)
}

/// The last node before `until` that is not trivia.
pub(super) fn previous(nodes: &[Node], until: usize) -> Option<usize> {
    nodes
        .get(..until)?
        .iter()
        .rposition(|node| !node.is_trivia())
}
