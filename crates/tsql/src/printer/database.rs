//! `CREATE`, `ALTER` and `DROP DATABASE`, `ALTER SERVER CONFIGURATION`.

use std::fmt::{self, Display, Formatter};

use super::List;
use super::value::Quoted;
use crate::ast::{
    AcceleratorMode, AlterDatabase, AlterDatabaseAction, AlterServerConfiguration, AlteredDatabase,
    CreateDatabase, DatabaseOption, DatabaseOrigin, DropDatabase, FileDefinition, FileGrowth,
    FileSize, FileSizeLimit, RecoveryModel, SizeUnit, TimeUnit,
};

impl Display for CreateDatabase {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "CREATE DATABASE {}", self.name.node)?;
        if !self.primary_files.is_empty() {
            write!(f, " ON {}", List(&self.primary_files))?;
            for filegroup in &self.filegroups {
                write!(
                    f,
                    ", FILEGROUP {} {}",
                    filegroup.name.node,
                    List(&filegroup.files)
                )?;
            }
        }
        if !self.log_files.is_empty() {
            write!(f, " LOG ON {}", List(&self.log_files))?;
        }
        match &self.origin {
            DatabaseOrigin::New => Ok(()),
            DatabaseOrigin::Attach => f.write_str(" FOR ATTACH"),
            DatabaseOrigin::AttachAsIs => f.write_str(" FOR ATTACH WITH AS_IS"),
            DatabaseOrigin::AttachRebuildLog => f.write_str(" FOR ATTACH_REBUILD_LOG"),
            DatabaseOrigin::SnapshotOf(source) => write!(f, " AS SNAPSHOT OF {}", source.node),
        }
    }
}

impl Display for FileDefinition {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let filename = self.filename.as_ref();
        let properties = [
            self.name
                .as_ref()
                .map(|name| format!("NAME = {}", name.node)),
            filename.map(|path| {
                format!(
                    "FILENAME = {}",
                    Quoted {
                        text: path,
                        national: true
                    }
                )
            }),
            self.size.map(|size| format!("SIZE = {size}")),
            self.max_size.map(|size| format!("MAXSIZE = {size}")),
            self.growth.map(|growth| format!("FILEGROWTH = {growth}")),
        ];
        let given: Vec<String> = properties.into_iter().flatten().collect();
        write!(f, "({})", given.join(", "))
    }
}

impl Display for FileSize {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let unit = match self.unit {
            None => "",
            Some(SizeUnit::Kilobyte) => "KB",
            Some(SizeUnit::Megabyte) => "MB",
            Some(SizeUnit::Gigabyte) => "GB",
            Some(SizeUnit::Terabyte) => "TB",
        };
        write!(f, "{}{unit}", self.count)
    }
}

impl Display for FileSizeLimit {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Size(size) => size.fmt(f),
            Self::Unlimited => f.write_str("UNLIMITED"),
        }
    }
}

impl Display for FileGrowth {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Size(size) => size.fmt(f),
            Self::Percent(percent) => write!(f, "{percent}%"),
        }
    }
}

impl Display for DropDatabase {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let condition = if self.if_exists { "IF EXISTS " } else { "" };
        write!(f, "DROP DATABASE {condition}{}", List(&self.names))
    }
}

impl Display for AlterDatabase {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match &self.database {
            AlteredDatabase::Named(name) => write!(f, "ALTER DATABASE {} ", name.node)?,
            AlteredDatabase::Current => f.write_str("ALTER DATABASE CURRENT ")?,
        }
        match &self.action {
            AlterDatabaseAction::Set(options) => write!(f, "SET {}", List(options)),
            AlterDatabaseAction::AddFiles { files, filegroup } => {
                write!(f, "ADD FILE {}", List(files))?;
                let filegroup = filegroup.as_ref();
                filegroup.map_or(Ok(()), |name| write!(f, " TO FILEGROUP {}", name.node))
            }
            AlterDatabaseAction::AddLogFiles { files } => {
                write!(f, "ADD LOG FILE {}", List(files))
            }
            AlterDatabaseAction::Other { text } => f.write_str(text),
        }
    }
}

impl Display for DatabaseOption {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Recovery(model) => {
                let model = match model {
                    RecoveryModel::Full => "FULL",
                    RecoveryModel::BulkLogged => "BULK_LOGGED",
                    RecoveryModel::Simple => "SIMPLE",
                };
                write!(f, "RECOVERY {model}")
            }
            Self::TargetRecoveryTime { count, unit } => {
                let unit = match unit {
                    TimeUnit::Seconds => "SECONDS",
                    TimeUnit::Minutes => "MINUTES",
                };
                write!(f, "TARGET_RECOVERY_TIME = {count} {unit}")
            }
        }
    }
}

impl Display for AlterServerConfiguration {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "ALTER SERVER CONFIGURATION SET HARDWARE_OFFLOAD = {}",
            self.hardware_offload
        )?;
        match self
            .accelerator
            .as_ref()
            .map(|accelerator| accelerator.mode)
        {
            None => Ok(()),
            Some(AcceleratorMode::Automatic) => f.write_str(" (ACCELERATOR = QAT)"),
            Some(AcceleratorMode::Software) => f.write_str(" (ACCELERATOR = QAT, MODE = SOFTWARE)"),
        }
    }
}
