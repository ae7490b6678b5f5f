//! Variables, settings, procedures, transactions.

use std::fmt::{self, Display, Formatter};

use super::List;
use super::value::Hexadecimal;
use crate::ast::{
    Argument, ArgumentDirection, ArgumentValue, AssignmentOperator, Dbcc, Declaration, Execute,
    InformationMessages, Name, Reconfigure, SetOption, SetOptionValue, SetVariable, Switch,
    TraceScope, Transaction,
};
use crate::span::Spanned;

impl Display for Declaration {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.variable, self.data_type)?;
        self.value
            .as_ref()
            .map_or(Ok(()), |value| write!(f, " = {}", value.node))
    }
}

impl Display for SetVariable {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let symbol = match self.operator {
            AssignmentOperator::Assign => "=",
            AssignmentOperator::Add => "+=",
            AssignmentOperator::Subtract => "-=",
            AssignmentOperator::Multiply => "*=",
            AssignmentOperator::Divide => "/=",
            AssignmentOperator::Modulo => "%=",
        };
        write!(f, "SET {} {symbol} {}", self.variable.node, self.value.node)
    }
}

impl Display for SetOption {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("SET ")?;
        for (index, name) in self.names.iter().enumerate() {
            if index == 0 {
                f.write_str(name)?;
            } else {
                // STATISTICS is printed once for all that follow it.
                write!(f, ", {}", name.strip_prefix("STATISTICS ").unwrap_or(name))?;
            }
        }
        write!(f, " {}", self.value)
    }
}

impl Display for SetOptionValue {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Switch(switch) => switch.fmt(f),
            Self::Value(value) => value.fmt(f),
            Self::Words(words) => f.write_str(words),
        }
    }
}

impl Display for Execute {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("EXECUTE ")?;
        if let Some(variable) = &self.return_code {
            write!(f, "{} = ", variable.node)?;
        }
        self.procedure.node.fmt(f)?;
        if self.arguments.is_empty() {
            Ok(())
        } else {
            write!(f, " {}", List(&self.arguments))
        }
    }
}

impl Display for Argument {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if let Some(name) = &self.name {
            write!(f, "{name} = ")?;
        }
        self.value.fmt(f)?;
        f.write_str(match self.direction {
            ArgumentDirection::Input => "",
            ArgumentDirection::Output => " OUTPUT",
        })
    }
}

impl Display for ArgumentValue {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("NULL"),
            Self::Default => f.write_str("DEFAULT"),
            Self::Value(value) => value.fmt(f),
            Self::Decimal(number) => f.write_str(number),
            Self::Binary(bytes) => Hexadecimal(bytes).fmt(f),
            Self::Word(word) => word.fmt(f),
        }
    }
}

impl Display for Reconfigure {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Checked => "RECONFIGURE",
            Self::Override => "RECONFIGURE WITH OVERRIDE",
        })
    }
}

fn information_messages(f: &mut Formatter<'_>, messages: InformationMessages) -> fmt::Result {
    f.write_str(match messages {
        InformationMessages::Shown => "",
        InformationMessages::Suppressed => " WITH NO_INFOMSGS",
    })
}

impl Display for Dbcc {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Trace {
                switch,
                flags,
                scope,
                messages,
            } => {
                let mut arguments: Vec<String> = flags.iter().map(u32::to_string).collect();
                if *scope == TraceScope::Global {
                    arguments.push("-1".to_owned());
                }
                let command = match switch {
                    Switch::On => "TRACEON",
                    Switch::Off => "TRACEOFF",
                };
                write!(f, "DBCC {command} ({})", arguments.join(", "))?;
                information_messages(f, *messages)
            }
            Self::LogSpace { messages } => {
                f.write_str("DBCC SQLPERF (LOGSPACE)")?;
                information_messages(f, *messages)
            }
            Self::CheckDatabase {
                database,
                is_physical_only,
                messages,
            } => {
                f.write_str("DBCC CHECKDB")?;
                if let Some(database) = database {
                    write!(f, " ({})", database.node)?;
                }
                let physical = is_physical_only.then_some("PHYSICAL_ONLY");
                let silent = *messages == InformationMessages::Suppressed;
                let options: Vec<&str> = physical
                    .into_iter()
                    .chain(silent.then_some("NO_INFOMSGS"))
                    .collect();
                match options.is_empty() {
                    true => Ok(()),
                    false => write!(f, " WITH {}", options.join(", ")),
                }
            }
            Self::Other { command, text } if text.is_empty() => write!(f, "DBCC {command}"),
            Self::Other { command, text } => write!(f, "DBCC {command} {text}"),
        }
    }
}

impl Display for Transaction {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (verb, name) = match self {
            Self::Begin { name, .. } => ("BEGIN", name),
            Self::Commit { name } => ("COMMIT", name),
            Self::Rollback { name } => ("ROLLBACK", name),
        };
        write!(f, "{verb} TRANSACTION{}", OptionalName(name.as_ref()))?;
        if let Self::Begin {
            mark: Some(mark), ..
        } = self
        {
            f.write_str(" WITH MARK")?;
            return mark
                .description
                .as_ref()
                .map_or(Ok(()), |text| write!(f, " {text}"));
        }
        Ok(())
    }
}

struct OptionalName<'a>(Option<&'a Spanned<Name>>);

impl Display for OptionalName<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |name| write!(f, " {}", name.node))
    }
}
