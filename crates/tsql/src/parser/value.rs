//! Names, values, devices and files, which several statements share.

use super::cursor::{Parser, checked_identifier};
use crate::ast::{DataType, Device, DeviceKind, FileSpec, Identifier, Name, ObjectName};
use crate::ast::{Switch, TypeArgument, Value, Variable};
use crate::error::ParseError;
use crate::lexer::{TokenKind, unquoted};
use crate::span::Spanned;

/// Maximum number of parts of a name: server, database, schema, object.
const NAME_PARTS_MAX: usize = 4;

const DEVICE_KINDS: &[(&str, DeviceKind)] = &[
    ("DISK", DeviceKind::Disk),
    ("TAPE", DeviceKind::Tape),
    ("URL", DeviceKind::Url),
    ("VIRTUAL_DEVICE", DeviceKind::VirtualDevice),
];

impl Parser<'_> {
    pub(super) fn variable(&mut self) -> Result<Variable, ParseError> {
        if self.kind() != Some(TokenKind::Variable) {
            return Err(self.unexpected());
        }
        let name = self.text_at(0);
        if name.trim_start_matches('@').is_empty() {
            return Err(self.unexpected());
        }
        self.bump();
        Ok(Variable::new(name))
    }

    pub(super) fn name(&mut self) -> Result<Name, ParseError> {
        if self.kind() == Some(TokenKind::Variable) {
            return self.variable().map(Name::Variable);
        }
        self.identifier().map(Name::Identifier)
    }

    /// A name that may also be written as a string.
    pub(super) fn name_or_text(&mut self) -> Result<Name, ParseError> {
        if self.kind() == Some(TokenKind::Variable) {
            return self.variable().map(Name::Variable);
        }
        self.identifier_or_text().map(Name::Identifier)
    }

    pub(super) fn identifier_or_text(&mut self) -> Result<Identifier, ParseError> {
        match self.token() {
            Some(token) if matches!(token.kind, TokenKind::Text { .. }) => {
                let identifier = checked_identifier(unquoted(token, self.text), token.span)?;
                self.bump();
                Ok(identifier)
            }
            _ => self.identifier(),
        }
    }

    /// A string, an integer with its sign, or a variable.
    pub(super) fn value(&mut self) -> Result<Value, ParseError> {
        match self.kind() {
            Some(TokenKind::Text { .. } | TokenKind::Variable) => self.text_or_variable(),
            _ => self.signed_integer().map(Value::Number),
        }
    }

    pub(super) fn text_or_variable(&mut self) -> Result<Value, ParseError> {
        match self.token() {
            Some(token) if matches!(token.kind, TokenKind::Text { .. }) => {
                let national = token.kind == TokenKind::Text { national: true };
                self.bump();
                Ok(Value::Text {
                    text: unquoted(token, self.text),
                    national,
                })
            }
            _ => self.variable().map(Value::Variable),
        }
    }

    pub(super) fn number_or_variable(&mut self) -> Result<Value, ParseError> {
        if self.kind() == Some(TokenKind::Variable) {
            return self.variable().map(Value::Variable);
        }
        self.signed_integer().map(Value::Number)
    }

    fn signed_integer(&mut self) -> Result<i64, ParseError> {
        let sign = if self.accept_symbol("-") {
            "-"
        } else {
            self.accept_symbol("+");
            ""
        };
        self.integer(sign)
    }

    /// Digits as any integer type; `sign` precedes them.
    pub(super) fn integer<T: std::str::FromStr>(&mut self, sign: &str) -> Result<T, ParseError> {
        if self.kind() != Some(TokenKind::Integer) {
            return Err(self.unexpected());
        }
        let digits = self.text_at(0);
        let number = format!("{sign}{digits}")
            .parse()
            .map_err(|_| self.unexpected().with_hint("The number is too large."))?;
        self.bump();
        Ok(number)
    }

    pub(super) fn switch(&mut self) -> Result<Switch, ParseError> {
        self.one_of(&[("ON", Switch::On), ("OFF", Switch::Off)])
    }

    /// `[server.][database.][schema.]object`, where middle parts may be omitted.
    pub(super) fn object_name(&mut self) -> Result<ObjectName, ParseError> {
        let mut object = self.identifier()?;
        let mut qualifiers = Vec::new();
        while self.accept_symbol(".") {
            qualifiers.push(Some(object));
            while self.is_symbol(".") && qualifiers.len() + 1 < NAME_PARTS_MAX {
                self.bump();
                qualifiers.push(None);
            }
            if qualifiers.len() >= NAME_PARTS_MAX {
                return Err(self.unexpected());
            }
            object = self.identifier()?;
        }
        Ok(ObjectName { qualifiers, object })
    }

    pub(super) fn data_type(&mut self) -> Result<DataType, ParseError> {
        if self.is_word("TABLE") || self.is_word("CURSOR") {
            let what = self.text_at(0).to_ascii_uppercase();
            return Err(self.not_supported(&what, "A variable holds a single value."));
        }
        let name = self.object_name()?;
        let arguments = if self.accept_symbol("(") {
            let arguments = self.comma_list(Self::type_argument)?;
            self.expect_symbol(")")?;
            arguments
        } else {
            Vec::new()
        };
        Ok(DataType { name, arguments })
    }

    fn type_argument(&mut self) -> Result<TypeArgument, ParseError> {
        if self.accept_word("MAX") {
            return Ok(TypeArgument::Max);
        }
        self.integer("").map(TypeArgument::Number)
    }

    pub(super) fn devices(&mut self) -> Result<Vec<Spanned<Device>>, ParseError> {
        self.comma_list(|parser| parser.spanned(Self::device))
    }

    fn device(&mut self) -> Result<Device, ParseError> {
        if !self.is_symbol_at(1, "=") {
            return self.name().map(Device::Logical);
        }
        let kind = self.one_of(DEVICE_KINDS)?;
        self.expect_symbol("=")?;
        let path = self.text_or_variable()?;
        Ok(Device::Physical { kind, path })
    }

    /// The list of files, filegroups and (in RESTORE) pages after the name of a database; may be empty.
    pub(super) fn file_specs(
        &mut self,
        pages: Pages,
    ) -> Result<Vec<Spanned<FileSpec>>, ParseError> {
        if self.is_word("READ_WRITE_FILEGROUPS") || self.is_symbol_at(1, "=") {
            return self.comma_list(|parser| parser.spanned(|parser| parser.file_spec(pages)));
        }
        Ok(Vec::new())
    }

    fn file_spec(&mut self, pages: Pages) -> Result<FileSpec, ParseError> {
        if self.accept_word("READ_WRITE_FILEGROUPS") {
            return Ok(FileSpec::ReadWriteFilegroups);
        }
        if pages == Pages::Allowed && self.accept_word("PAGE") {
            self.expect_symbol("=")?;
            return self.spanned(Self::text_or_variable).map(FileSpec::Page);
        }
        if self.accept_word("FILEGROUP") {
            return self.file_names().map(FileSpec::Filegroup);
        }
        self.expect_word("FILE")?;
        self.file_names().map(FileSpec::File)
    }

    /// `= 'name'` or `= ('a', 'b')`
    fn file_names(&mut self) -> Result<Vec<Spanned<Value>>, ParseError> {
        self.expect_symbol("=")?;
        if !self.accept_symbol("(") {
            return Ok(vec![self.spanned(Self::text_or_variable)?]);
        }
        let names = self.comma_list(|parser| parser.spanned(Self::text_or_variable))?;
        self.expect_symbol(")")?;
        Ok(names)
    }
}

/// Whether a list of files may contain pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pages {
    /// For RESTORE.
    Allowed,
    /// For BACKUP.
    Refused,
}
