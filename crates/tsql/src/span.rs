//! Positions in the source text.
//!
//! Neighbours: the lexer creates spans, the parser joins them, errors and the AST contain them.
//!
//! Invariant: equality of AST nodes ignores positions, so [`Spanned`] compares only its node. This
//! allows tests such as `parse(print(statement)) == statement`.

use std::ops::Deref;

/// A range of source text and its human-readable position.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Span {
    /// Byte offset of the first byte, from the start of the parsed text.
    pub start: usize,
    /// Byte offset one past the last byte.
    pub end: usize,
    /// Line of the first byte, counted from 1.
    pub line: u32,
    /// Column of the first byte in characters, counted from 1.
    pub column: u32,
}

impl Span {
    /// The span from the start of `self` to the end of `last`.
    #[must_use]
    pub fn to(self, last: Self) -> Self {
        Self {
            end: last.end.max(self.end),
            ..self
        }
    }

    /// The text of the span; empty if the span does not belong to `text`.
    pub fn text(self, text: &str) -> &str {
        text.get(self.start..self.end).unwrap_or("")
    }
}

/// A node and its position in the text.
#[derive(Debug, Clone, Copy, Default)]
pub struct Spanned<T> {
    pub node: T,
    pub span: Span,
}

impl<T> Spanned<T> {
    pub fn new(node: T, span: Span) -> Self {
        Self { node, span }
    }

    /// A node that was built by a program, not parsed.
    pub fn unplaced(node: T) -> Self {
        Self {
            node,
            span: Span::default(),
        }
    }
}

impl<T: PartialEq> PartialEq for Spanned<T> {
    fn eq(&self, other: &Self) -> bool {
        self.node == other.node
    }
}

impl<T: Eq> Eq for Spanned<T> {}

impl<T> Deref for Spanned<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.node
    }
}
