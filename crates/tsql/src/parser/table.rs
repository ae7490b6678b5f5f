//! FROM: tables, derived tables, functions and joins.

use super::cursor::Parser;
use crate::ast::{Join, JoinKind, Joined, TableSource};
use crate::error::ParseError;
use crate::lexer::TokenKind;
use crate::span::Spanned;

/// Hints that may stand in parentheses after a table without WITH.
const HINTS: &[&str] = &[
    "NOLOCK",
    "READUNCOMMITTED",
    "READPAST",
    "ROWLOCK",
    "TABLOCK",
    "TABLOCKX",
    "UPDLOCK",
    "HOLDLOCK",
];

impl Parser<'_> {
    pub(super) fn from(&mut self) -> Result<Vec<Joined>, ParseError> {
        match self.accept_word("FROM") {
            true => self.comma_list(Self::joined_tables),
            false => Ok(Vec::new()),
        }
    }

    fn joined_tables(&mut self) -> Result<Joined, ParseError> {
        let table = self.spanned(Self::table_source)?;
        let mut joins = Vec::new();
        while let Some(kind) = self.join_kind()? {
            let table = self.spanned(Self::table_source)?;
            let is_conditional = matches!(
                kind,
                JoinKind::Inner | JoinKind::Left | JoinKind::Right | JoinKind::Full
            );
            let condition = if is_conditional {
                self.expect_word("ON")?;
                Some(self.condition()?)
            } else {
                None
            };
            joins.push(Join {
                kind,
                table,
                condition,
            });
        }
        Ok(Joined { table, joins })
    }

    fn join_kind(&mut self) -> Result<Option<JoinKind>, ParseError> {
        if self.accept_word("JOIN") {
            return Ok(Some(JoinKind::Inner));
        }
        if self.is_word("CROSS") || self.is_word("OUTER") && self.is_word_at(1, "APPLY") {
            let is_cross = self.is_word("CROSS");
            self.bump();
            if self.accept_word("APPLY") {
                return Ok(Some(match is_cross {
                    true => JoinKind::CrossApply,
                    false => JoinKind::OuterApply,
                }));
            }
            self.expect_word("JOIN")?;
            return Ok(Some(JoinKind::Cross));
        }
        let kinds = [
            ("INNER", JoinKind::Inner),
            ("LEFT", JoinKind::Left),
            ("RIGHT", JoinKind::Right),
            ("FULL", JoinKind::Full),
        ];
        let found = kinds.iter().find(|(word, _)| self.is_word(word));
        let Some((_, kind)) = found else {
            return Ok(None);
        };
        self.bump();
        self.accept_word("OUTER");
        for hint in ["HASH", "LOOP", "MERGE", "REMOTE"] {
            self.accept_word(hint);
        }
        self.expect_word("JOIN")?;
        Ok(Some(*kind))
    }

    fn table_source(&mut self) -> Result<TableSource, ParseError> {
        let source = self.plain_source()?;
        self.table_hints()?;
        if self.is_word("PIVOT") || self.is_word("UNPIVOT") {
            let what = self.text_at(0).to_ascii_uppercase();
            let hint = "Write MAX(CASE WHEN ... THEN ... END) with GROUP BY instead.";
            return Err(self.not_supported(&what, hint));
        }
        Ok(source)
    }

    fn plain_source(&mut self) -> Result<TableSource, ParseError> {
        if self.accept_symbol("(") {
            let query = Box::new(self.query()?);
            self.expect_symbol(")")?;
            self.accept_word("AS");
            let alias = self.identifier()?;
            let columns = self.column_names()?;
            return Ok(TableSource::Query {
                query,
                alias,
                columns,
            });
        }
        if self.kind() == Some(TokenKind::Variable) {
            let name = self.variable()?;
            let alias = self.table_alias()?;
            return Ok(TableSource::Variable { name, alias });
        }
        let name = self.object_name()?;
        let is_hint =
            HINTS.iter().any(|hint| self.is_word_at(1, hint)) && self.is_symbol_at(2, ")");
        if !self.is_symbol("(") || is_hint {
            self.table_hints()?;
            let alias = self.table_alias()?;
            return Ok(TableSource::Table { name, alias });
        }
        self.bump();
        let arguments = match self.is_symbol(")") {
            true => Vec::new(),
            false => self.comma_list(Self::expression)?,
        };
        self.expect_symbol(")")?;
        let alias = self.table_alias()?;
        let columns = match alias {
            Some(_) => self.column_names()?,
            None => Vec::new(),
        };
        Ok(TableSource::Function {
            name,
            arguments,
            alias,
            columns,
        })
    }

    fn table_alias(&mut self) -> Result<Option<crate::ast::Identifier>, ParseError> {
        if self.accept_word("AS") || self.is_at_alias() {
            return self.identifier().map(Some);
        }
        Ok(None)
    }

    /// `WITH (NOLOCK)` or `(NOLOCK)`: SQLite isolates every statement anyway.
    pub(super) fn table_hints(&mut self) -> Result<(), ParseError> {
        if self.is_word("WITH") && self.is_symbol_at(1, "(") {
            self.bump();
        } else if !(self.is_symbol("(")
            && HINTS.iter().any(|hint| self.is_word_at(1, hint))
            && self.is_symbol_at(2, ")"))
        {
            return Ok(());
        }
        self.expect_symbol("(")?;
        self.skip_to_closing_parenthesis()?;
        self.expect_symbol(")")
    }

    /// A name that is only a name, for positions in errors.
    pub(super) fn spanned_name(&mut self) -> Result<Spanned<crate::ast::ObjectName>, ParseError> {
        self.spanned(Self::object_name)
    }
}
