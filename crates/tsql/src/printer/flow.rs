//! Control flow, errors and cursors.

use std::fmt::{self, Display, Formatter};

use super::List;
use crate::ast::{Cursor, FetchDirection, If, RaiseError, Statement, Throw, TryCatch, While};
use crate::span::Spanned;

/// The statements of a block, each ended by `;` and a line end.
pub(super) struct Body<'a>(pub(super) &'a [Spanned<Statement>]);

impl Display for Body<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.0
            .iter()
            .try_for_each(|statement| writeln!(f, "{};", statement.node))
    }
}

impl Display for If {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "IF {}\n{}", self.condition.node, self.then.node)?;
        self.otherwise
            .as_ref()
            .map_or(Ok(()), |otherwise| write!(f, "\nELSE\n{}", otherwise.node))
    }
}

impl Display for While {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "WHILE {}\n{}", self.condition.node, self.body.node)
    }
}

impl Display for TryCatch {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (body, handler) = (Body(&self.body), Body(&self.handler));
        write!(
            f,
            "BEGIN TRY\n{body}END TRY\nBEGIN CATCH\n{handler}END CATCH"
        )
    }
}

impl Display for Throw {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "THROW {}, {}, {}", self.number, self.message, self.state)
    }
}

impl Display for RaiseError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "RAISERROR ({}, {}, {}",
            self.message, self.severity, self.state
        )?;
        self.arguments
            .iter()
            .try_for_each(|argument| write!(f, ", {argument}"))?;
        f.write_str(")")?;
        match self.options.is_empty() {
            true => Ok(()),
            false => write!(f, " WITH {}", self.options.join(", ")),
        }
    }
}

impl Display for Cursor {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Declare {
                name,
                text,
                options,
                ..
            } => {
                let options = options.iter().map(|option| format!(" {option}"));
                let options: String = options.collect();
                write!(f, "DECLARE {name} CURSOR{options} FOR {text}")
            }
            Self::Open(name) => write!(f, "OPEN {name}"),
            Self::Fetch {
                direction,
                name,
                into,
            } => {
                let direction = match direction {
                    FetchDirection::Next => "NEXT",
                    FetchDirection::Prior => "PRIOR",
                    FetchDirection::First => "FIRST",
                    FetchDirection::Last => "LAST",
                };
                write!(f, "FETCH {direction} FROM {name}")?;
                match into.is_empty() {
                    true => Ok(()),
                    false => write!(f, " INTO {}", List(into)),
                }
            }
            Self::Close(name) => write!(f, "CLOSE {name}"),
            Self::Deallocate(name) => write!(f, "DEALLOCATE {name}"),
        }
    }
}
