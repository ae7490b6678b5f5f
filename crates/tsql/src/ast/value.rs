//! Names and values: the leaves of every statement.

use crate::span::Spanned;

/// A name, without its brackets or quotation marks: `x`, `[x]` and `"x"` are the same identifier.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Identifier {
    /// The name itself, with `]]` and `""` unescaped.
    pub text: String,
}

impl Identifier {
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into() }
    }

    /// Whether the name equals `word` in SQL Server's default, case-insensitive collation (ASCII
    /// only).
    pub fn is(&self, word: &str) -> bool {
        self.text.eq_ignore_ascii_case(word)
    }
}

/// A local or global variable.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Variable {
    /// The name with its prefix: `@path`, `@@SERVERNAME`.
    pub name: String,
}

impl Variable {
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into() }
    }

    /// Whether this is a system function such as `@@SERVERNAME`.
    pub fn is_global(&self) -> bool {
        self.name.starts_with("@@")
    }
}

/// A database or logical device: a name, or a variable that contains it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Name {
    /// `x`, `[x]`, `"x"`
    Identifier(Identifier),
    /// `@x`
    Variable(Variable),
}

/// A constant or a variable: the possible values of options.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// `'text'` or `N'text'`
    Text {
        /// The characters, with `''` unescaped.
        text: String,
        /// Whether it was written with the `N` of national (UTF-16) strings.
        national: bool,
    },
    /// An integer, with its sign.
    Number(i64),
    /// `@x`
    Variable(Variable),
}

impl Value {
    /// `N'text'`
    pub fn national(text: impl Into<String>) -> Self {
        Self::Text {
            text: text.into(),
            national: true,
        }
    }
}

/// A name of up to four parts: `[server.][database.][schema.]object`.
///
/// An omitted middle part (`master..sp_who`) is `None`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectName {
    /// The qualifiers, outermost first.
    pub qualifiers: Vec<Option<Identifier>>,
    pub object: Identifier,
}

impl ObjectName {
    /// The schema part, when given.
    pub fn schema(&self) -> Option<&Identifier> {
        self.qualifiers.last().and_then(Option::as_ref)
    }

    /// The database part, when given.
    pub fn database(&self) -> Option<&Identifier> {
        self.qualifiers.iter().rev().nth(1).and_then(Option::as_ref)
    }
}

/// A data type as written: `nvarchar(260)`, `decimal(10, 2)`, `sysname`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataType {
    /// The name, with its schema when given (`sys.sysname`).
    pub name: ObjectName,
    /// The arguments in parentheses after the name.
    pub arguments: Vec<TypeArgument>,
}

/// A length, precision or scale of a data type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TypeArgument {
    Number(u32),
    /// `MAX`
    Max,
}

/// `ON` or `OFF`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Switch {
    /// `ON`
    On,
    /// `OFF`
    Off,
}

/// A backup device in a `TO` or `FROM` list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Device {
    /// A device registered with `sp_addumpdevice`, or a variable with its name.
    Logical(Name),
    /// `DISK = '...'` and the like.
    Physical {
        /// The word before `=`.
        kind: DeviceKind,
        /// The path, tape, URL or virtual device name.
        path: Value,
    },
}

/// The class of a physical backup device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeviceKind {
    /// `DISK`
    Disk,
    /// `TAPE`
    Tape,
    /// `URL`
    Url,
    /// `VIRTUAL_DEVICE`
    VirtualDevice,
}

/// The part of a database named in a BACKUP or RESTORE.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileSpec {
    /// `FILE = 'name'` or `FILE = ('a', 'b')`: strings and variables only.
    File(Vec<Spanned<Value>>),
    /// `FILEGROUP = 'name'` or `FILEGROUP = ('a', 'b')`: strings and variables only.
    Filegroup(Vec<Spanned<Value>>),
    /// `READ_WRITE_FILEGROUPS`
    ReadWriteFilegroups,
    /// `PAGE = 'file:page, ...'` (RESTORE only): a string or a variable.
    Page(Spanned<Value>),
}
