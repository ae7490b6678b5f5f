//! T-SQL text to statements and back: the language front of Windlass.
//!
//! Pure: no I/O and no meaning. A statement that parses may still be refused by whoever executes it;
//! this crate only decides whether the text *is* a statement, as SQL Server's own parser does.
//!
//! | step | where |
//! |---|---|
//!
//! Invariants:
//! * No input panics, recursion is bounded , time is linear in the input.
//! * `parse(print(statement)) == statement`; positions do not take part in equality.
//! * Every node that an error message may have to name carries a [`span::Span`].

#![forbid(unsafe_code)]

pub mod ast;
pub mod batch;
pub mod error;
pub mod keyword;
pub mod lexer;
pub mod option;
pub mod span;
