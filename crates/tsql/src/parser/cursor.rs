//! The parser's position in the tokens, and its basic steps.

use windlass_base::message::table;
use windlass_base::similar::did_you_mean;
use windlass_base::word::{Word, choices};

use crate::ast::Identifier;
use crate::error::ParseError;
use crate::keyword;
use crate::lexer::{Token, TokenKind, unquoted};
use crate::span::{Span, Spanned};

/// Maximum nesting of parentheses, signs and functions in an expression.
pub const NESTING_MAX: usize = 100;

/// Maximum length of an identifier, in characters.
const IDENTIFIER_CHARACTERS_MAX: usize = 128;

/// A position in the tokens of one batch.
pub(super) struct Parser<'a> {
    pub(super) text: &'a str,
    tokens: &'a [Token],
    position: usize,
    depth: usize,
    /// How many queries are open: only there a name is a column.
    pub(super) queries: usize,
    /// Whether the next `(` may begin a condition.
    pub(super) allows_condition: bool,
    /// The greatest height of an expression so far, within the innermost query.
    pub(super) tallest: usize,
}

/// A remembered position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place(usize);

impl<'a> Parser<'a> {
    pub(super) fn new(text: &'a str, tokens: &'a [Token]) -> Self {
        Self {
            text,
            tokens,
            position: 0,
            depth: 0,
            queries: 0,
            allows_condition: false,
            tallest: 0,
        }
    }

    pub(super) fn token_at(&self, ahead: usize) -> Option<&'a Token> {
        self.tokens.get(self.position.checked_add(ahead)?)
    }

    pub(super) fn token(&self) -> Option<&'a Token> {
        self.token_at(0)
    }

    pub(super) fn kind(&self) -> Option<TokenKind> {
        self.token().map(|token| token.kind)
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.token().is_none()
    }

    /// The text of the token `ahead` positions ahead; empty past the end.
    pub(super) fn text_at(&self, ahead: usize) -> &'a str {
        self.token_at(ahead)
            .map_or("", |token| token.span.text(self.text))
    }

    /// The span of the next token, or of the end of the text.
    pub(super) fn here(&self) -> Span {
        self.token()
            .map_or_else(|| self.previous_span(), |token| token.span)
    }

    /// The span of the previous token.
    pub(super) fn previous_span(&self) -> Span {
        let before = self
            .position
            .checked_sub(1)
            .and_then(|index| self.tokens.get(index));
        before.map_or_else(Span::default, |token| token.span)
    }

    /// The text of the previous token; empty at the start.
    pub(super) fn text_before(&self) -> &'a str {
        if self.position == 0 {
            ""
        } else {
            self.previous_span().text(self.text)
        }
    }

    /// Whether a line ends between the previous token and the next one.
    pub(super) fn is_at_line_start(&self) -> bool {
        let before = self.previous_span().end;
        let gap = self
            .token()
            .and_then(|token| self.text.get(before..token.span.start));
        self.position == 0 || gap.is_some_and(|gap| gap.contains('\n'))
    }

    /// The source from the token at `start` to the previous one.
    pub(super) fn text_since(&self, start: Place) -> &'a str {
        let first = self.tokens.get(start.0).map_or(0, |token| token.span.start);
        self.text.get(first..self.previous_span().end).unwrap_or("")
    }

    /// The current position, to return to.
    pub(super) fn place(&self) -> Place {
        Place(self.position)
    }

    pub(super) fn return_to(&mut self, place: Place) {
        self.position = place.0;
    }

    pub(super) fn bump(&mut self) {
        self.position = self.position.saturating_add(1).min(self.tokens.len());
    }

    /// The next token's text if it is a regular word.
    pub(super) fn word(&self) -> Option<&'a str> {
        (self.kind() == Some(TokenKind::Word)).then(|| self.text_at(0))
    }

    pub(super) fn is_word_at(&self, ahead: usize, word: &str) -> bool {
        self.token_at(ahead)
            .is_some_and(|token| token.is_word(self.text, word))
    }

    pub(super) fn is_word(&self, word: &str) -> bool {
        self.is_word_at(0, word)
    }

    pub(super) fn is_symbol_at(&self, ahead: usize, symbol: &str) -> bool {
        self.token_at(ahead)
            .is_some_and(|token| token.kind == TokenKind::Symbol)
            && self.text_at(ahead) == symbol
    }

    pub(super) fn is_symbol(&self, symbol: &str) -> bool {
        self.is_symbol_at(0, symbol)
    }

    pub(super) fn accept_word(&mut self, word: &str) -> bool {
        let found = self.is_word(word);
        if found {
            self.bump();
        }
        found
    }

    pub(super) fn accept_symbol(&mut self, symbol: &str) -> bool {
        let found = self.is_symbol(symbol);
        if found {
            self.bump();
        }
        found
    }

    pub(super) fn expect_word(&mut self, word: &str) -> Result<(), ParseError> {
        if self.accept_word(word) {
            Ok(())
        } else {
            Err(self.unexpected())
        }
    }

    pub(super) fn expect_words(&mut self, words: &[&str]) -> Result<(), ParseError> {
        words.iter().try_for_each(|word| self.expect_word(word))
    }

    pub(super) fn expect_symbol(&mut self, symbol: &str) -> Result<(), ParseError> {
        if self.accept_symbol(symbol) {
            Ok(())
        } else {
            Err(self.unexpected())
        }
    }

    /// The value of the next word in `choices`; an error if it is not among them.
    pub(super) fn one_of<T: Copy>(&mut self, choices: &[(&str, T)]) -> Result<T, ParseError> {
        let found = choices.iter().find(|(word, _)| self.is_word(word));
        let (_, value) = found.ok_or_else(|| {
            let words: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
            self.none_of(&words)
        })?;
        self.bump();
        Ok(*value)
    }

    /// One of the words that an option chooses among.
    pub(super) fn one_word<T: Word>(&mut self) -> Result<T, ParseError> {
        let found = T::WORDS.iter().find(|word| self.is_word(word.spelling()));
        let word = found.ok_or_else(|| {
            let words: Vec<&str> = T::WORDS.iter().map(|word| word.spelling()).collect();
            self.none_of(&words)
        })?;
        self.bump();
        Ok(*word)
    }

    /// The error where one of `words` should stand.
    fn none_of(&self, words: &[&str]) -> ParseError {
        let meant = did_you_mean(self.text_at(0), words.iter().copied());
        let listed = || format!("The choices are {}.", choices(words));
        self.unexpected().with_hint(meant.unwrap_or_else(listed))
    }

    /// `item {, item}`
    pub(super) fn comma_list<T>(
        &mut self,
        mut item: impl FnMut(&mut Self) -> Result<T, ParseError>,
    ) -> Result<Vec<T>, ParseError> {
        let mut items = vec![item(self)?];
        while self.accept_symbol(",") {
            items.push(item(self)?);
        }
        Ok(items)
    }

    /// Runs `read` and adds the position.
    pub(super) fn spanned<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, ParseError>,
    ) -> Result<Spanned<T>, ParseError> {
        let start = self.here();
        let node = read(self)?;
        Ok(Spanned::new(node, start.to(self.previous_span())))
    }

    /// Runs `read` one level deeper; refuses excessive nesting.
    pub(super) fn nested<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, ParseError>,
    ) -> Result<T, ParseError> {
        if self.depth >= NESTING_MAX {
            return Err(self.too_deep());
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    /// Whether the parser is within a statement.
    pub(super) fn is_nested(&self) -> bool {
        self.depth > 0
    }

    /// The error for excessive nesting.
    pub(super) fn too_deep(&self) -> ParseError {
        ParseError::new(self.here(), table::nested_too_deeply())
    }

    /// Whether the next token is an identifier: in brackets, quoted, or a word that is not reserved.
    pub(super) fn is_at_identifier(&self) -> bool {
        match self.kind() {
            Some(TokenKind::BracketedIdentifier | TokenKind::QuotedIdentifier) => true,
            Some(TokenKind::Word) => !keyword::is_reserved(self.text_at(0)),
            _ => false,
        }
    }

    pub(super) fn identifier(&mut self) -> Result<Identifier, ParseError> {
        let Some(token) = self.token().filter(|_| self.is_at_identifier()) else {
            return Err(self.unexpected());
        };
        let identifier = checked_identifier(unquoted(token, self.text), token.span)?;
        self.bump();
        Ok(identifier)
    }

    /// The error for an unexpected next token.
    pub(super) fn unexpected(&self) -> ParseError {
        match self.token() {
            Some(token) => ParseError::near(token.span, shown(token, self.text)),
            None => {
                ParseError::ends_early(self.previous_span(), self.previous_span().text(self.text))
            }
        }
    }

    /// The error for an unsupported construct at the next token.
    pub(super) fn not_supported(&self, what: &str, hint: &str) -> ParseError {
        ParseError::not_supported(self.here(), what, hint)
    }
}

/// How SQL Server shows a token in message 102: strings and names without their quotes.
fn shown<'a>(token: &Token, text: &'a str) -> &'a str {
    let found = token.span.text(text);
    let quotes = match token.kind {
        TokenKind::Text { national: true } => 2,
        TokenKind::Text { national: false }
        | TokenKind::BracketedIdentifier
        | TokenKind::QuotedIdentifier => 1,
        _ => return found,
    };
    found
        .get(quotes..found.len().saturating_sub(1))
        .unwrap_or(found)
}

/// `text` as an identifier, if it is neither empty nor too long.
pub(super) fn checked_identifier(text: String, span: Span) -> Result<Identifier, ParseError> {
    if text.is_empty() {
        return Err(ParseError::new(span, table::name_missing()));
    }
    if text.chars().count() > IDENTIFIER_CHARACTERS_MAX {
        let beginning: String = text.chars().take(IDENTIFIER_CHARACTERS_MAX).collect();
        let message = table::identifier_too_long(beginning, IDENTIFIER_CHARACTERS_MAX);
        return Err(ParseError::new(span, message));
    }
    Ok(Identifier { text })
}
