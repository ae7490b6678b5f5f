//! Names, values, devices, files.

use std::fmt::{self, Display, Formatter};

use super::List;
use crate::ast::{
    DataType, Device, DeviceKind, FileSpec, Identifier, Name, ObjectName, Switch, TypeArgument,
    Value, Variable,
};
use crate::keyword::is_reserved;
use crate::lexer::is_regular_identifier;
use crate::parser::is_sql_starter;
use crate::span::Spanned;

impl Display for Identifier {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let text = &self.text;
        // Where a name may be omitted, a word that starts a statement would be taken for that start.
        if is_regular_identifier(text) && !is_reserved(text) && !is_sql_starter(text) {
            f.write_str(text)
        } else {
            write!(f, "[{}]", text.replace(']', "]]"))
        }
    }
}

impl Display for Variable {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl Display for Name {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Identifier(identifier) => identifier.fmt(f),
            Self::Variable(variable) => variable.fmt(f),
        }
    }
}

impl Display for Value {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text { text, national } => Quoted {
                text,
                national: *national,
            }
            .fmt(f),
            Self::Number(number) => number.fmt(f),
            Self::Variable(variable) => variable.fmt(f),
        }
    }
}

/// A string in T-SQL syntax.
pub(super) struct Quoted<'a> {
    pub(super) text: &'a str,
    pub(super) national: bool,
}

impl Display for Quoted<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let prefix = if self.national { "N" } else { "" };
        write!(f, "{prefix}'{}'", self.text.replace('\'', "''"))
    }
}

/// Bytes in T-SQL syntax.
pub(super) struct Hexadecimal<'a>(pub(super) &'a [u8]);

impl Display for Hexadecimal<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("0x")?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02X}"))
    }
}

impl Display for ObjectName {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for qualifier in &self.qualifiers {
            match qualifier {
                Some(qualifier) => write!(f, "{qualifier}.")?,
                None => f.write_str(".")?,
            }
        }
        self.object.fmt(f)
    }
}

impl Display for DataType {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.name.fmt(f)?;
        for (index, argument) in self.arguments.iter().enumerate() {
            f.write_str(if index == 0 { "(" } else { ", " })?;
            match argument {
                TypeArgument::Number(number) => number.fmt(f)?,
                TypeArgument::Max => f.write_str("MAX")?,
            }
        }
        f.write_str(if self.arguments.is_empty() { "" } else { ")" })
    }
}

impl Display for Switch {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::On => "ON",
            Self::Off => "OFF",
        })
    }
}

impl Display for Device {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Logical(name) => name.fmt(f),
            Self::Physical { kind, path } => write!(f, "{kind} = {path}"),
        }
    }
}

impl Display for DeviceKind {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Disk => "DISK",
            Self::Tape => "TAPE",
            Self::Url => "URL",
            Self::VirtualDevice => "VIRTUAL_DEVICE",
        })
    }
}

impl Display for FileSpec {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(names) => write!(f, "FILE = {}", Names(names)),
            Self::Filegroup(names) => write!(f, "FILEGROUP = {}", Names(names)),
            Self::ReadWriteFilegroups => f.write_str("READ_WRITE_FILEGROUPS"),
            Self::Page(pages) => write!(f, "PAGE = {}", pages.node),
        }
    }
}

/// One name, or several in parentheses.
struct Names<'a>(&'a [Spanned<Value>]);

impl Display for Names<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0 {
            [name] => name.node.fmt(f),
            names => write!(f, "({})", List(names)),
        }
    }
}

/// Files with a space before them, or nothing.
pub(super) struct Files<'a>(pub(super) &'a [Spanned<FileSpec>]);

impl Display for Files<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            Ok(())
        } else {
            write!(f, " {}", List(self.0))
        }
    }
}
