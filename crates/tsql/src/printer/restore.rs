//! `RESTORE`.

use std::fmt::{self, Display, Formatter};

use super::value::Files;
use super::{List, With};
use crate::ast::{RestoreAction, RestoreOption, RestoreSource, RestoreStatement, StopMark};

impl Display for RestoreStatement {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "RESTORE {}{}{}",
            self.action,
            self.source,
            With(&self.options)
        )
    }
}

impl Display for RestoreAction {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Database { name, files } => write!(f, "DATABASE {}{}", name.node, Files(files)),
            Self::Log { name, files } => write!(f, "LOG {}{}", name.node, Files(files)),
            Self::HeaderOnly => f.write_str("HEADERONLY"),
            Self::FileListOnly => f.write_str("FILELISTONLY"),
            Self::LabelOnly => f.write_str("LABELONLY"),
            Self::VerifyOnly => f.write_str("VERIFYONLY"),
            Self::RewindOnly => f.write_str("REWINDONLY"),
        }
    }
}

/// With a space before it, so that an absent `FROM` prints nothing.
impl Display for RestoreSource {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => Ok(()),
            Self::Devices(devices) => write!(f, " FROM {}", List(devices)),
            Self::DatabaseSnapshot(name) => write!(f, " FROM DATABASE_SNAPSHOT = {}", name.node),
        }
    }
}

impl Display for RestoreOption {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(self.word().spelling())?;
        match self {
            Self::Move { logical, path } => write!(f, " {} TO {}", logical.node, path.node),
            Self::Credential(Some(credential)) => write!(f, " = {credential}"),
            Self::Stats(Some(percent)) => write!(f, " = {percent}"),
            Self::Filestream { directory_name } => {
                write!(f, " (DIRECTORY_NAME = {directory_name})")
            }
            Self::DbName(name) => write!(f, " = {name}"),
            Self::StopAtMark(mark) | Self::StopBeforeMark(mark) => write!(f, " = {mark}"),
            Self::Valued(_, value) => write!(f, " = {value}"),
            _ => Ok(()),
        }
    }
}

impl Display for StopMark {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.mark.node.fmt(f)?;
        self.after
            .as_ref()
            .map_or(Ok(()), |after| write!(f, " AFTER {}", after.node))
    }
}
