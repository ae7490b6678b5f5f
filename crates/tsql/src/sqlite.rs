//! Adapts pass-through SQL to `SQLite`.
//!
//! T-SQL's lexical syntax differs slightly from `SQLite`'s. Differences with a counterpart in
//! `SQLite` are rewritten; everything else stays byte for byte:
//!
//! | T-SQL | becomes |
//! |---|---|
//! | `N'text'` | `'text'` |
//! | `[a]]b]` | `"a]b"` (only if it contains `]]`, which `SQLite` does not support) |
//! | `/* a /* b */ c */` | the same length without the inner marks (`SQLite` does not nest comments) |
//! | `msdb.dbo.x`, `master.dbo.x`, `master..x` | `msdb.x`, `sys.x` |
//! | `master.sys.x` | `sys.x` |
//! | `@@x`, `@a#b` | a placeholder supported by `SQLite`, see [`Parameter`] |
//! | white space that is not ASCII | a space |
//!
//! Neighbours: the parser finds [`crate::ast::Sql`]; the `instance` crate runs the result.

use std::collections::HashMap;

use crate::ast::Variable;
use crate::lexer::{Lexer, Token, TokenKind, unquoted};

/// The databases whose objects are named with a schema in T-SQL and without one in `SQLite`.
const SYSTEM_DATABASES: &[&str] = &["master", "msdb"];

/// SQL for `SQLite` and the variables that are bound to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqliteText {
    /// The SQL.
    pub text: String,
    /// Its variables, each once, in the order of their first use.
    pub parameters: Vec<Parameter>,
}

/// A variable in pass-through SQL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter {
    /// The variable in its first spelling.
    pub variable: Variable,
    /// Its name in the SQL: usually the same; `$p1` and so on for names that `SQLite` does not
    /// support.
    pub placeholder: String,
}

/// Rewrites one statement.
///
/// ```
/// let sql = windlass_tsql::sqlite::rewrite("SELECT N'x', @id FROM msdb.dbo.backupset");
/// assert_eq!(sql.text, "SELECT 'x', @id FROM msdb.backupset");
/// assert_eq!(sql.parameters[0].variable.name, "@id");
/// ```
pub fn rewrite(sql: &str) -> SqliteText {
    let mut output = Rewriter {
        text: String::with_capacity(sql.len()),
        parameters: Vec::new(),
        indexes: HashMap::new(),
    };
    let tokens: Vec<Token> = Lexer::new(sql).collect();
    let mut index = 0;
    while let Some(token) = tokens.get(index) {
        let rest = tokens.get(index..).unwrap_or(&[]);
        let follows_dot = index.checked_sub(1).and_then(|before| tokens.get(before));
        let follows_dot = follows_dot.is_some_and(|before| before.span.text(sql) == ".");
        match system_name(sql, rest).filter(|_| !follows_dot) {
            Some((text, length)) => {
                output.text.push_str(&text);
                index += length;
            }
            None => {
                output.push(sql, token);
                index += 1;
            }
        }
    }
    SqliteText {
        text: output.text,
        parameters: output.parameters,
    }
}

/// The text encoding requested by a statement, if it is `PRAGMA encoding = ...` with one that
/// `SQLite` supports.
///
/// ```
/// let asked = windlass_tsql::sqlite::encoding_asked("PRAGMA encoding = 'UTF-16le'");
/// assert_eq!(asked.as_deref(), Some("UTF-16le"));
/// ```
pub fn encoding_asked(sql: &str) -> Option<String> {
    const ENCODINGS: &[&str] = &[
        "UTF8", "UTF-8", "UTF16", "UTF-16", "UTF16le", "UTF-16le", "UTF16be", "UTF-16be",
    ];
    let tokens: Vec<Token> = Lexer::new(sql).filter(|token| !token.is_trivia()).collect();
    let texts: Vec<String> = tokens.iter().map(|token| unquoted(token, sql)).collect();
    let mut texts = texts.iter().map(String::as_str);
    if !texts.next()?.eq_ignore_ascii_case("PRAGMA") {
        return None;
    }
    let mut name = texts.next()?;
    if name.eq_ignore_ascii_case("main") {
        texts.next().filter(|dot| *dot == ".")?;
        name = texts.next()?;
    }
    if !name.eq_ignore_ascii_case("encoding") {
        return None;
    }
    texts.next().filter(|sign| matches!(*sign, "=" | "("))?;
    let encoding = texts.next()?;
    ENCODINGS
        .iter()
        .any(|known| known.eq_ignore_ascii_case(encoding))
        .then(|| encoding.to_owned())
}

struct Rewriter {
    text: String,
    parameters: Vec<Parameter>,
    /// Index of each variable in `parameters`, by its name in lower case.
    indexes: HashMap<String, usize>,
}

impl Rewriter {
    fn push(&mut self, sql: &str, token: &Token) {
        let text = token.span.text(sql);
        match token.kind {
            TokenKind::Text { national: true } => self.text.push_str(text.get(1..).unwrap_or("")),
            TokenKind::BracketedIdentifier if text.contains("]]") => {
                let name = unquoted(token, sql).replace('"', "\"\"");
                self.text.push('"');
                self.text.push_str(&name);
                self.text.push('"');
            }
            TokenKind::BlockComment { nested: true } => self.push_flat_comment(text),
            TokenKind::Space if !text.is_ascii() => {
                self.text.extend(
                    text.chars()
                        .map(|space| if space.is_ascii() { space } else { ' ' }),
                );
            }
            TokenKind::Variable => {
                let placeholder = self.placeholder(text);
                self.text.push_str(&placeholder);
            }
            _ => self.text.push_str(text),
        }
    }

    /// The comment with blanks in place of all inner marks.
    fn push_flat_comment(&mut self, text: &str) {
        let inner = text.get(2..text.len().saturating_sub(2)).unwrap_or("");
        self.text.push_str("/*");
        self.text
            .push_str(&inner.replace("/*", "  ").replace("*/", "  "));
        self.text.push_str("*/");
    }

    /// The placeholder of a variable, which is added to the list if new. T-SQL names are
    /// case-insensitive and `SQLite`'s are not, so all spellings share the placeholder of the
    /// first.
    fn placeholder(&mut self, name: &str) -> String {
        let index = self
            .indexes
            .entry(name.to_lowercase())
            .or_insert(self.parameters.len());
        if let Some(parameter) = self.parameters.get(*index) {
            return parameter.placeholder.clone();
        }
        let readable = name
            .get(1..)
            .is_some_and(|rest| !rest.is_empty() && !rest.contains(['@', '#']) && rest.is_ascii());
        let placeholder = if readable {
            name.to_owned()
        } else {
            format!("$p{}", self.parameters.len() + 1)
        };
        let variable = Variable::new(name);
        self.parameters.push(Parameter {
            variable,
            placeholder: placeholder.clone(),
        });
        placeholder
    }
}

/// `master.dbo.x` and the like at the start of `tokens`: the replacement and the number of tokens
/// replaced. The caller handles the object itself.
fn system_name(sql: &str, tokens: &[Token]) -> Option<(String, usize)> {
    let database = name_of(sql, tokens.first()?)?;
    let database = SYSTEM_DATABASES
        .iter()
        .find(|name| database.eq_ignore_ascii_case(name))?;
    let is_dot = |index: usize| {
        tokens
            .get(index)
            .is_some_and(|token| token.span.text(sql) == ".")
    };
    if !is_dot(1) {
        return None;
    }
    if is_dot(2) {
        name_of(sql, tokens.get(3)?)?;
        return Some((format!("{}.", attached(database)), 3));
    }
    let schema = name_of(sql, tokens.get(2)?)?;
    if !is_dot(3) {
        return None;
    }
    name_of(sql, tokens.get(4)?)?;
    if schema.eq_ignore_ascii_case("dbo") {
        Some((format!("{}.", attached(database)), 4))
    } else if schema.eq_ignore_ascii_case("sys") && *database == "master" {
        Some(("sys.".to_owned(), 4))
    } else {
        None
    }
}

/// The attached name of a system database: the objects of `master` are the views of `sys`.
fn attached(database: &str) -> &str {
    if database == "master" {
        "sys"
    } else {
        database
    }
}

fn name_of(sql: &str, token: &Token) -> Option<String> {
    match token.kind {
        TokenKind::Word | TokenKind::BracketedIdentifier | TokenKind::QuotedIdentifier => {
            Some(unquoted(token, sql))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(sql: &str) -> String {
        rewrite(sql).text
    }

    #[test]
    fn what_sqlite_understands_stays_byte_for_byte() {
        let sql = "select x'00ff', `a`, \"b\", [c] -- N'x'\n from main.t where a -> '$.x' == ?1 /* N'' */";
        assert_eq!(text(sql), sql);
    }

    #[test]
    fn national_strings_lose_their_n_and_keep_their_quotes() {
        assert_eq!(text("SELECT N'it''s', n'x', Nx"), "SELECT 'it''s', 'x', Nx");
    }

    #[test]
    fn names_in_system_databases_lose_their_schema() {
        assert_eq!(
            text("SELECT * FROM msdb.dbo.backupset"),
            "SELECT * FROM msdb.backupset"
        );
        assert_eq!(text("FROM [MSDB].[dbo].[x] y"), "FROM msdb.[x] y");
        assert_eq!(text("FROM master..sysdatabases"), "FROM sys.sysdatabases");
        assert_eq!(text("FROM master.sys.databases"), "FROM sys.databases");
        assert_eq!(
            text("SELECT msdb.x.y, a.master.dbo.b"),
            "SELECT msdb.x.y, a.master.dbo.b"
        );
        assert_eq!(text("FROM msdb.dbo"), "FROM msdb.dbo");
        assert_eq!(text("FROM msdb.backupset"), "FROM msdb.backupset");
    }

    #[test]
    fn variables_are_listed_once_whatever_their_case() {
        let sql = rewrite("SELECT @a, @A, @b, @@SERVERNAME, @a#b, '@c', @@servername");
        assert_eq!(sql.text, "SELECT @a, @a, @b, $p3, $p4, '@c', $p3");
        let names: Vec<_> = sql
            .parameters
            .iter()
            .map(|p| p.variable.name.as_str())
            .collect();
        assert_eq!(names, ["@a", "@b", "@@SERVERNAME", "@a#b"]);
    }

    #[test]
    fn a_text_encoding_is_asked_for_by_its_pragma_alone() {
        for asking in [
            "PRAGMA encoding='UTF-16be'",
            "pragma main . encoding (\"utf-16be\") -- so",
            "PRAGMA [encoding] = 'UTF-16BE';",
        ] {
            let asked = encoding_asked(asking).unwrap_or_default();
            assert!(asked.eq_ignore_ascii_case("UTF-16be"), "{asking}");
        }
        for other in [
            "PRAGMA encoding",
            "PRAGMA encoding = 'latin1'",
            "PRAGMA temp.encoding = 'UTF-8'",
            "SELECT encoding = 'UTF-8'",
        ] {
            assert_eq!(encoding_asked(other), None, "{other}");
        }
    }

    #[test]
    fn lexis_that_sqlite_lacks_is_replaced() {
        assert_eq!(text("SELECT [a]]\"b]"), "SELECT \"a]\"\"b\"");
        assert_eq!(text("/* a /* b */ c */1"), "/* a    b    c */1");
        assert_eq!(text("SELECT\u{a0}1"), "SELECT 1");
    }
}
