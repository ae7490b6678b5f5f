//! T-SQL text to statements and back: the language front of Windlass.
//!
//! Pure: no I/O and no semantics. A statement that parses may still be refused when executed; this
//! crate only decides whether the text *is* a statement, as SQL Server's own parser does.
//!
//! | step | where |
//! |---|---|
//! | script to batches (`GO`) | [`batch`] |
//! | batch to tokens | [`lexer`] |
//! | tokens to statements ([`ast`]) | [`parser`] |
//! | the `WITH` options of BACKUP and RESTORE | [`option`] |
//! | statements to canonical text | [`printer`] |
//! | commands of SQL Backup Pro | [`sqlbackup`] |
//! | the pragma that decides how a database is opened | [`pragma`] |
//!
//! Invariants:
//! * No input panics, recursion is bounded ([`NESTING_MAX`]), time is linear in the input.
//! * `parse(print(statement)) == statement`; positions do not take part in equality.
//! * Every node that an error message may name has a [`Span`].
//!
//! ```
//! use windlass_tsql::{ast::Statement, parse_batch};
//!
//! let statements = parse_batch("backup database x to disk = 'x.bak' with init")?;
//! assert!(matches!(statements[0].node, Statement::Backup(_)));
//! assert_eq!(statements[0].to_string(), "BACKUP DATABASE x TO DISK = 'x.bak' WITH INIT");
//! # Ok::<(), windlass_tsql::ParseError>(())
//! ```

#![forbid(unsafe_code)]

pub mod ast;
pub mod batch;
pub mod error;
mod fuzz;
pub mod keyword;
pub mod lexer;
pub mod option;
pub mod parser;
pub mod pragma;
pub mod printer;
pub mod span;
pub mod sqlbackup;

pub use error::ParseError;
pub use fuzz::fuzz_parse;
pub use parser::{NESTING_MAX, parse_batch};
pub use printer::print_batch;
pub use span::{Span, Spanned};
