//! Finds the end of a statement in SQLite's own words (`PRAGMA`, `CREATE TRIGGER`).
//!
//! It is not parsed, so its end is found by its outline: parentheses, `CASE ... END`, trigger
//! bodies, and then a `;`, or a line whose first word starts a statement. T-SQL needs no `;`, so
//! the second rule lets a script contain `SELECT ...` and `BACKUP ...` on two lines. Words that
//! start a statement in one place and continue one in another (`SELECT` after `INSERT`, `SET` after
//! `UPDATE`, `DELETE` after `ON`) are distinguished by what the statement still lacks.
//!
//! Invariant: the end depends only on the statement's own text and on what follows it, so a
//! statement that is printed and parsed again ends at the same place.

use super::cursor::Parser;
use super::script::is_setting;
use crate::error::ParseError;
use crate::lexer::TokenKind;

/// First words of pass-through SQL.
pub(super) const STARTERS: &[&str] = &[
    "ALTER",
    "ANALYZE",
    "ATTACH",
    "CREATE",
    "DELETE",
    "DETACH",
    "DROP",
    "EXPLAIN",
    "INSERT",
    "MERGE",
    "PRAGMA",
    "REINDEX",
    "RELEASE",
    "REPLACE",
    "SAVEPOINT",
    "SELECT",
    "TRUNCATE",
    "UPDATE",
    "VACUUM",
    "VALUES",
    "WITH",
];

/// Words that only start a T-SQL statement of this parser, or one that is refused.
const OWNED: &[&str] = &[
    "BACKUP",
    "BEGIN",
    "BREAK",
    "CHECKPOINT",
    "CLOSE",
    "COMMIT",
    "CONTINUE",
    "DBCC",
    "DEALLOCATE",
    "DECLARE",
    "ELSE",
    "END",
    "EXEC",
    "EXECUTE",
    "FETCH",
    "GOTO",
    "IF",
    "OPEN",
    "PRINT",
    "RAISERROR",
    "RECONFIGURE",
    "RESTORE",
    "RETURN",
    "ROLLBACK",
    "SET",
    "THROW",
    "USE",
    "WAITFOR",
    "WHILE",
];

/// After these words a statement continues, whatever the first word of the next line.
const CONTINUED_AFTER: &[&str] = &[
    ",",
    ".",
    "=",
    "(",
    "+",
    "-",
    "/",
    "<",
    ">",
    "<=",
    ">=",
    "<>",
    "!=",
    "||",
    "AFTER",
    "ALL",
    "AND",
    "AS",
    "BEFORE",
    "BY",
    "CONFLICT",
    "DO",
    "ELSE",
    "EXCEPT",
    "EXPLAIN",
    "FROM",
    "IN",
    "INTERSECT",
    "INTO",
    "IS",
    "JOIN",
    "LIKE",
    "NOT",
    "OF",
    "ON",
    "OR",
    "PLAN",
    "SET",
    "THEN",
    "UNION",
    "WHEN",
    "WHERE",
    "WITH",
];

fn contains(words: &[&str], word: &str) -> bool {
    words
        .iter()
        .any(|candidate| candidate.eq_ignore_ascii_case(word))
}

/// Whether `word` starts pass-through SQL.
pub(crate) fn is_starter(word: &str) -> bool {
    contains(STARTERS, word)
}

/// Whether `word` starts a T-SQL statement of this parser.
pub(super) fn is_owned(word: &str) -> bool {
    contains(OWNED, word)
}

/// The state of a statement up to some token.
#[derive(Debug, Default)]
struct Outline {
    /// Open parentheses.
    parentheses: usize,
    /// Open `CASE`, and `BEGIN` of a trigger body.
    blocks: usize,
    /// `CREATE TRIGGER`, which ends with its body.
    trigger: TriggerPart,
    /// `ALTER ...`: DROP at the start of a line continues it.
    alters: bool,
    /// Whether a SELECT or VALUES must still come (`INSERT INTO t`, `WITH c AS (...)`).
    awaits_rows: bool,
    /// Whether an INSERT, UPDATE or DELETE must still come (`WITH c AS (...)`).
    awaits_change: bool,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum TriggerPart {
    #[default]
    NoTrigger,
    Head,
    Body,
    Complete,
}

impl Outline {
    fn is_open(&self) -> bool {
        self.parentheses > 0 || self.blocks > 0
    }

    /// Whether a `;` here ends a statement of a trigger's body rather than the trigger.
    fn is_between_trigger_statements(&self) -> bool {
        self.trigger == TriggerPart::Body && self.parentheses == 0 && self.blocks == 1
    }
}

impl<'a> Parser<'a> {
    /// Reads the statement that starts with the next token, verbatim; an error if there is none.
    pub(super) fn words_to_end(&mut self) -> Result<&'a str, ParseError> {
        if self.is_at_end() || self.is_symbol(";") {
            return Err(self.unexpected());
        }
        let start = self.place();
        let mut outline = self.begun_outline();
        self.take(&mut outline);
        self.skip_to_end(outline)?;
        Ok(self.text_since(start))
    }

    /// Reads the rest of a statement, verbatim; may be empty.
    pub(super) fn arguments_to_end(&mut self) -> Result<&'a str, ParseError> {
        let start = self.place();
        self.skip_to_end(Outline::default())?;
        Ok(if self.place() == start {
            ""
        } else {
            self.text_since(start)
        })
    }

    fn skip_to_end(&mut self, mut outline: Outline) -> Result<(), ParseError> {
        while !self.is_at_end() && outline.trigger != TriggerPart::Complete {
            if self.is_symbol(";") && !outline.is_between_trigger_statements() {
                break;
            }
            if !outline.is_open() && self.begins_next_statement(&outline) {
                break;
            }
            self.take(&mut outline);
        }
        if outline.is_open() {
            Err(self.unexpected())
        } else {
            Ok(())
        }
    }

    fn begun_outline(&self) -> Outline {
        let create = self.is_word("CREATE");
        let temporary = self.is_word_at(1, "TEMP") || self.is_word_at(1, "TEMPORARY");
        let is_trigger = create && self.is_word_at(1 + usize::from(temporary), "TRIGGER");
        let trigger = if is_trigger {
            TriggerPart::Head
        } else {
            TriggerPart::NoTrigger
        };
        let with = self.is_word("WITH");
        let alters = self.is_word("ALTER");
        Outline {
            trigger,
            alters,
            awaits_rows: with,
            awaits_change: with,
            ..Outline::default()
        }
    }

    /// Consumes the next token.
    fn take(&mut self, outline: &mut Outline) {
        match self.kind() {
            Some(TokenKind::Symbol) => match self.text_at(0) {
                "(" => outline.parentheses += 1,
                ")" => outline.parentheses = outline.parentheses.saturating_sub(1),
                _ => {}
            },
            Some(TokenKind::Word) => self.take_word(outline),
            _ => {}
        }
        self.bump();
    }

    fn take_word(&self, outline: &mut Outline) {
        match self.text_at(0).to_ascii_uppercase().as_str() {
            "CASE" => outline.blocks += 1,
            "END" => {
                let closes = outline.blocks == 1;
                outline.blocks = outline.blocks.saturating_sub(1);
                if closes && outline.trigger == TriggerPart::Body {
                    outline.trigger = TriggerPart::Complete;
                }
            }
            "BEGIN" if outline.trigger == TriggerPart::Head => {
                outline.trigger = TriggerPart::Body;
                outline.blocks += 1;
            }
            "WITH" if self.text_before().eq_ignore_ascii_case("AS") => {
                outline.awaits_rows = true;
                outline.awaits_change = true;
            }
            _ if outline.is_open() => {}
            "SELECT" | "VALUES" | "UPDATE" | "DELETE" | "DEFAULT" => {
                outline.awaits_rows = false;
                outline.awaits_change = false;
            }
            "INSERT" => {
                outline.awaits_rows = true;
                outline.awaits_change = false;
            }
            "REPLACE" if self.is_word_at(1, "INTO") => {
                outline.awaits_rows = true;
                outline.awaits_change = false;
            }
            _ => {}
        }
    }

    /// Whether the next token starts a new statement after one with a closed outline.
    fn begins_next_statement(&self, outline: &Outline) -> bool {
        if outline.trigger == TriggerPart::Head || !self.is_at_line_start() {
            return false;
        }
        let Some(word) = self.word() else {
            return false;
        };
        if contains(CONTINUED_AFTER, self.text_before()) {
            return false;
        }
        match word.to_ascii_uppercase().as_str() {
            "SELECT" | "VALUES" => !outline.awaits_rows,
            "INSERT" | "UPDATE" | "DELETE" | "MERGE" => !outline.awaits_change,
            "REPLACE" => self.is_word_at(1, "INTO") && !outline.awaits_change,
            "WITH" => false,
            "DROP" => !outline.alters,
            "SET" => {
                self.token_at(1)
                    .is_some_and(|token| token.kind == TokenKind::Variable)
                    || is_setting(self.text_at(1))
            }
            "IF" => !contains(&["TABLE", "VIEW", "INDEX", "TRIGGER"], self.text_before()),
            upper => OWNED.contains(&upper) || STARTERS.contains(&upper),
        }
    }

    /// Everything up to the closing parenthesis, verbatim.
    pub(super) fn skip_to_closing_parenthesis(&mut self) -> Result<&'a str, ParseError> {
        let start = self.place();
        let mut outline = Outline::default();
        while outline.parentheses > 0 || !self.is_symbol(")") {
            if self.is_at_end() || self.is_symbol(";") {
                return Err(self.unexpected());
            }
            self.take(&mut outline);
        }
        Ok(self.text_since(start))
    }
}
