//! The numbered names of a document, and the namespaces in scope.

use std::rc::Rc;

/// Bytes of a name or namespace: SQL Server limits both to 4000 characters.
const NAME_BYTES_MAX: usize = 12_000;

/// Declarations in scope; real documents have some dozens.
const DECLARATIONS_MAX: usize = 1000;

/// The prefix that declares others.
const DECLARING: &str = "xmlns";

/// The names so far, by number. Number 0 is empty.
#[derive(Debug)]
pub(super) struct Names {
    names: Vec<Rc<str>>,
    qualified: Vec<QualifiedName>,
}

/// A name with its prefix and its namespace, shared with the names that it is made of.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct QualifiedName {
    pub(super) prefix: Rc<str>,
    local: Rc<str>,
    pub(super) space: Rc<str>,
}

impl Default for Names {
    fn default() -> Self {
        Self {
            names: vec![Rc::from("")],
            qualified: vec![QualifiedName::default()],
        }
    }
}

impl Names {
    pub(super) fn add(&mut self, name: &str) -> Result<(), String> {
        if name.len() > NAME_BYTES_MAX {
            return Err(format!("a name of {} bytes", name.len()));
        }
        self.names.push(Rc::from(name));
        Ok(())
    }

    pub(super) fn flush(&mut self) {
        *self = Self::default();
    }

    pub(super) fn name(&self, number: usize) -> Result<&Rc<str>, String> {
        let name = self.names.get(number);
        name.ok_or_else(|| format!("the name {number} is not defined"))
    }

    /// Namespace, prefix and local name. A declaration has its whole name in the place of the prefix.
    pub(super) fn add_qualified(&mut self, numbers: [usize; 3]) -> Result<(), String> {
        let [space, prefix, local] = numbers;
        let (space, prefix, local) = (self.name(space)?, self.name(prefix)?, self.name(local)?);
        let mut name = QualifiedName {
            prefix: Rc::clone(prefix),
            local: Rc::clone(local),
            space: Rc::clone(space),
        };
        if local.is_empty() {
            match prefix.strip_prefix(DECLARING) {
                Some("") => (name.prefix, name.local) = (Rc::clone(local), Rc::clone(prefix)),
                Some(rest) => {
                    name.prefix = Rc::from(DECLARING);
                    name.local = Rc::from(rest.strip_prefix(':').unwrap_or_default());
                }
                None => {}
            }
        }
        // A server may define a name that is empty, and that nothing uses.
        let is_unused = name == QualifiedName::default();
        if !is_unused
            && (!is_name(&name.local) || !name.prefix.is_empty() && !is_name(&name.prefix))
        {
            return Err(format!("'{prefix}:{local}' is no name"));
        }
        self.qualified.push(name);
        Ok(())
    }

    pub(super) fn qualified(&self, number: usize) -> Result<&QualifiedName, String> {
        let name = self.qualified.get(number);
        name.filter(|name| !name.local.is_empty())
            .ok_or_else(|| format!("the qualified name {number} is not defined"))
    }
}

impl QualifiedName {
    /// The name as it is written.
    pub(super) fn label(&self) -> String {
        match &*self.prefix {
            "" => self.local.to_string(),
            prefix => format!("{prefix}:{}", self.local),
        }
    }

    /// The prefix that an attribute of this name declares.
    pub(super) fn declares(&self) -> Option<&str> {
        match (&*self.prefix, &*self.local) {
            ("", DECLARING) => Some(""),
            (DECLARING, prefix) => Some(prefix),
            _ => None,
        }
    }
}

/// Whether XML can have a name, or a part of one.
pub(super) fn is_name(name: &str) -> bool {
    let is_first = |letter: char| letter == '_' || letter.is_alphabetic();
    let is_next = |letter: char| {
        is_first(letter) || "-.\u{B7}".contains(letter) || letter.is_numeric() || letter > '\u{2FF}'
    };
    let barred = |letter: char| letter.is_whitespace() || letter.is_control();
    name.starts_with(is_first)
        && name
            .chars()
            .all(|letter| is_next(letter) && !barred(letter))
}

/// The declarations in scope.
#[derive(Debug, Default)]
pub(super) struct Scopes {
    declarations: Vec<(Rc<str>, Rc<str>)>,
    /// How many there were before each open element.
    marks: Vec<usize>,
}

impl Scopes {
    pub(super) fn enter(&mut self) {
        self.marks.push(self.declarations.len());
    }

    pub(super) fn leave(&mut self) {
        let mark = self.marks.pop().unwrap_or(0);
        self.declarations.truncate(mark);
    }

    pub(super) fn declare(&mut self, prefix: Rc<str>, space: Rc<str>) -> Result<(), String> {
        if self.declarations.len() == DECLARATIONS_MAX {
            return Err(format!("more than {DECLARATIONS_MAX} namespaces in scope"));
        }
        self.declarations.push((prefix, space));
        Ok(())
    }

    /// Declares a prefix, unless it means this already. Whether it had to be.
    pub(super) fn declare_unless_known(
        &mut self,
        prefix: &Rc<str>,
        space: &Rc<str>,
    ) -> Result<bool, String> {
        if &**prefix == "xml" {
            return Ok(false);
        }
        let mark = self.marks.last().copied().unwrap_or(0);
        let found = self
            .declarations
            .iter()
            .rposition(|(known, _)| known == prefix);
        let known = found.and_then(|at| self.declarations.get(at));
        match (known, found) {
            (None, _) if space.is_empty() && prefix.is_empty() => return Ok(false),
            (_, _) if space.is_empty() && !prefix.is_empty() => {
                return Err(format!("the prefix '{prefix}' without a namespace"));
            }
            (Some((_, known)), _) if known == space => return Ok(false),
            (Some(_), Some(at)) if at >= mark => {
                return Err(format!("the prefix '{prefix}' for two namespaces"));
            }
            _ => {}
        }
        self.declare(Rc::clone(prefix), Rc::clone(space))?;
        Ok(true)
    }
}
