//! `xml` values: SQL Server's binary XML ([MS-BINXML]) as text.
//!
//! A document is a list of tokens: names and qualified names, which are numbered as they come, and the elements,
//! attributes and values that use the numbers. The text has every character of the content; what a parser would change
//! (line ends and tabs in attributes, carriage returns) is written as character references. A document is decoded
//! completely or not at all: the text is well-formed, except that the names of attributes are not compared.
//!
//! Invariant: time and memory are bounded by [`TEXT_BYTES_MAX`] per byte of the document.

mod atomic;
mod input;
mod names;

#[cfg(test)]
mod tests;

use std::rc::Rc;

use input::Input;
use names::{Names, Scopes};

/// Versions of the format: SQL Server 2005, and 2008 or newer.
const VERSIONS: [u8; 2] = [1, 2];

/// The code page of the texts: UTF-16.
const CODE_PAGE: u16 = 1200;

/// Levels of elements; SQL Server itself stores 128.
const LEVELS_MAX: usize = 1000;

/// Bytes of text for each byte of the document, beside [`TEXT_BYTES_MIN`]: an element takes three bytes and the number
/// of its name.
const TEXT_BYTES_MAX: usize = 256;
const TEXT_BYTES_MIN: usize = 1 << 16;

mod token {
    pub(super) const ELEMENT: u8 = 0xF8;
    pub(super) const END_ELEMENT: u8 = 0xF7;
    pub(super) const ATTRIBUTE: u8 = 0xF6;
    pub(super) const END_ATTRIBUTES: u8 = 0xF5;
    pub(super) const INSTRUCTION: u8 = 0xF4;
    pub(super) const COMMENT: u8 = 0xF3;
    pub(super) const CDATA: u8 = 0xF2;
    pub(super) const END_CDATA: u8 = 0xF1;
    pub(super) const NAME: u8 = 0xF0;
    pub(super) const QUALIFIED_NAME: u8 = 0xEF;
    pub(super) const EXTENSION: u8 = 0xEA;
    pub(super) const FLUSH_NAMES: u8 = 0xE9;
}

/// The text of a document; the error describes what is not understood.
pub(crate) fn decode(bytes: &[u8]) -> Result<String, String> {
    if bytes.is_empty() {
        return Ok(String::new());
    }
    let mut decoder = Decoder {
        input: Input::new(bytes),
        names: Names::default(),
        scopes: Scopes::default(),
        open: Vec::new(),
        text: String::new(),
        room: bytes
            .len()
            .saturating_mul(TEXT_BYTES_MAX)
            .saturating_add(TEXT_BYTES_MIN),
    };
    decoder.head()?;
    decoder.content()?;
    Ok(decoder.text)
}

/// Where a value is written: what must be escaped differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Content,
    Attribute,
}

struct Decoder<'b> {
    input: Input<'b>,
    names: Names,
    scopes: Scopes,
    /// The names of the elements that are open.
    open: Vec<String>,
    text: String,
    /// Bytes that the text may have.
    room: usize,
}

impl Decoder<'_> {
    fn head(&mut self) -> Result<(), String> {
        let (mark, version) = (self.input.array::<2>()?, self.input.byte()?);
        let page = u16::from_le_bytes(self.input.array()?);
        if mark != [0xDF, 0xFF] || !VERSIONS.contains(&version) || page != CODE_PAGE {
            return Err(format!(
                "it begins with {mark:02x?}, version {version}, code page {page}, which is no binary XML that is known"
            ));
        }
        Ok(())
    }

    fn content(&mut self) -> Result<(), String> {
        let mut was_value = false;
        while let Some(token) = self.next_token()? {
            let is_value = token < token::FLUSH_NAMES;
            match token {
                token::ELEMENT => self.element()?,
                token::END_ELEMENT => {
                    let name = self.open.pop().ok_or("an end of no element")?;
                    self.scopes.leave();
                    self.put(&["</", &name, ">"])?;
                }
                token::INSTRUCTION => self.instruction()?,
                token::COMMENT => {
                    let comment = self.input.text()?;
                    if comment.contains("--") || comment.ends_with('-') {
                        return Err("a comment with '--'".to_owned());
                    }
                    self.put(&["<!--", checked(&comment)?, "-->"])?;
                }
                token::CDATA => self.cdata()?,
                _ if is_value && was_value => return Err("a list of values".to_owned()),
                _ if is_value => self.value(token, Place::Content)?,
                _ => return Err(self.unknown(token)),
            }
            was_value = is_value;
        }
        match self.open.last() {
            None => Ok(()),
            Some(name) => Err(format!("the element '{name}' has no end")),
        }
    }

    /// The next token that is no definition; `None` at the end.
    fn next_token(&mut self) -> Result<Option<u8>, String> {
        while !self.input.is_at_end() {
            match self.input.byte()? {
                token::NAME => self.names.add(&self.input.text()?)?,
                token::QUALIFIED_NAME => {
                    let mut number = || self.input.number();
                    let numbers = [number()?, number()?, number()?];
                    self.names.add_qualified(numbers)?;
                }
                token::EXTENSION => {
                    let length = self.input.number()?;
                    self.input.take(length)?;
                }
                token::FLUSH_NAMES => self.names.flush(),
                token => return Ok(Some(token)),
            }
        }
        Ok(None)
    }

    fn peek_token(&mut self) -> Result<Option<u8>, String> {
        let token = self.next_token()?;
        if token.is_some() {
            self.input.step_back();
        }
        Ok(token)
    }

    fn element(&mut self) -> Result<(), String> {
        if self.open.len() == LEVELS_MAX {
            return Err(format!("more than {LEVELS_MAX} levels"));
        }
        let name = self.names.qualified(self.input.number()?)?.clone();
        let label = name.label();
        if name.declares().is_some() {
            return Err(format!("an element with the name '{label}'"));
        }
        self.put(&["<", &label])?;
        self.scopes.enter();
        let mut used = vec![(name.prefix, name.space)];
        if self.peek_token()? == Some(token::ATTRIBUTE) {
            self.attributes(&mut used)?;
        }
        // A name's namespace counts even if no attribute declares it.
        for (prefix, space) in used {
            if self.scopes.declare_unless_known(&prefix, &space)? {
                self.declaration(&prefix, &space)?;
            }
        }
        if self.peek_token()? == Some(token::END_ELEMENT) {
            self.next_token()?;
            self.scopes.leave();
            return self.put(&["/>"]);
        }
        self.open.push(label);
        self.put(&[">"])
    }

    /// The attributes of an element; what their names need is added to `used`.
    fn attributes(&mut self, used: &mut Vec<(Rc<str>, Rc<str>)>) -> Result<(), String> {
        let mut is_open = false;
        let mut has_value = false;
        // The prefix that the attribute declares, and where its value begins.
        let mut declared: Option<(Rc<str>, usize)> = None;
        loop {
            let token = self.next_token()?.ok_or("attributes without an end")?;
            match token {
                token::ATTRIBUTE | token::END_ATTRIBUTES => {
                    if let Some((prefix, at)) = declared.take() {
                        let space = unescaped(self.text.get(at..).unwrap_or_default());
                        self.scopes.declare(prefix, Rc::from(space))?;
                    }
                    if is_open {
                        self.put(&["\""])?;
                    }
                    if token == token::END_ATTRIBUTES {
                        return Ok(());
                    }
                    let name = self.names.qualified(self.input.number()?)?.clone();
                    self.put(&[" ", &name.label(), "=\""])?;
                    match name.declares() {
                        Some(prefix) => declared = Some((Rc::from(prefix), self.text.len())),
                        None if name.prefix.is_empty() && !name.space.is_empty() => {
                            return Err("an attribute in a namespace without a prefix".to_owned());
                        }
                        None if name.prefix.is_empty() => {}
                        None => used.push((name.prefix, name.space)),
                    }
                    (is_open, has_value) = (true, false);
                }
                _ if token >= token::FLUSH_NAMES => return Err(self.unknown(token)),
                _ if has_value => return Err("a list of values".to_owned()),
                _ => {
                    self.value(token, Place::Attribute)?;
                    has_value = true;
                }
            }
        }
    }

    fn declaration(&mut self, prefix: &str, space: &str) -> Result<(), String> {
        let colon = if prefix.is_empty() { "" } else { ":" };
        self.put(&[" xmlns", colon, prefix, "=\""])?;
        self.escaped(space, Place::Attribute)?;
        self.put(&["\""])
    }

    fn instruction(&mut self) -> Result<(), String> {
        let target = Rc::clone(self.names.name(self.input.number()?)?);
        let data = self.input.text()?;
        if data.contains("?>") || target.eq_ignore_ascii_case("xml") || !names::is_name(&target) {
            return Err(format!("an instruction '{target}' that cannot be written"));
        }
        let space = if data.is_empty() { "" } else { " " };
        self.put(&["<?", &target, space, checked(&data)?, "?>"])
    }

    fn cdata(&mut self) -> Result<(), String> {
        let mut text = self.input.text()?;
        loop {
            match self.input.byte()? {
                token::CDATA => text.push_str(&self.input.text()?),
                token::END_CDATA => break,
                _ => return Err("a CDATA section without an end".to_owned()),
            }
        }
        if text.contains("]]>") {
            return Err("a CDATA section with ']]>'".to_owned());
        }
        self.put(&["<![CDATA[", checked(&text)?, "]]>"])
    }

    fn value(&mut self, token: u8, place: Place) -> Result<(), String> {
        let text = atomic::text(token, &mut self.input, &self.names)?;
        let text = text.ok_or_else(|| self.unknown(token))?;
        self.escaped(&text, place)
    }

    /// Writes a text so that a parser gives it back.
    fn escaped(&mut self, text: &str, place: Place) -> Result<(), String> {
        let is_attribute = place == Place::Attribute;
        let mut begin = 0;
        for (at, letter) in checked(text)?.char_indices() {
            let reference = match letter {
                '&' => "&amp;",
                '<' => "&lt;",
                '>' => "&gt;",
                '\r' => "&#x0D;",
                '"' if is_attribute => "&quot;",
                '\t' if is_attribute => "&#x09;",
                '\n' if is_attribute => "&#x0A;",
                _ => continue,
            };
            self.put(&[text.get(begin..at).unwrap_or_default(), reference])?;
            begin = at + letter.len_utf8();
        }
        self.put(&[text.get(begin..).unwrap_or_default()])
    }

    fn put(&mut self, parts: &[&str]) -> Result<(), String> {
        for part in parts {
            self.room = self
                .room
                .checked_sub(part.len())
                .ok_or("its text is longer than that of any document of its length")?;
            self.text.push_str(part);
        }
        Ok(())
    }

    fn unknown(&self, token: u8) -> String {
        let at = self.input.at().saturating_sub(1);
        format!("the token {token:#04x} at byte {at} is not expected there")
    }
}

/// The namespace in an attribute that was escaped.
fn unescaped(text: &str) -> String {
    let references = [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&#x0D;", "\r"),
        ("&#x09;", "\t"),
        ("&#x0A;", "\n"),
        ("&amp;", "&"),
    ];
    let replace = |text: String, (from, to): (&str, &str)| text.replace(from, to);
    references.into_iter().fold(text.to_owned(), replace)
}

/// A text, if XML can have its characters.
fn checked(text: &str) -> Result<&str, String> {
    let is_barred = |letter: &char| matches!(letter, '\0'..='\x08' | '\x0B' | '\x0C' | '\x0E'..='\x1F' | '\u{FFFE}' | '\u{FFFF}');
    match text.chars().find(is_barred) {
        None => Ok(text),
        Some(letter) => Err(format!(
            "the character U+{:04X}, which XML does not have",
            u32::from(letter)
        )),
    }
}
