//! The server roles, and the rights of each.

/// A server role of which logins can be members. All of them are fixed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    SysAdmin,
    DbCreator,
    /// Makes and verifies backups, and sees the history; Windlass's own.
    BackupOperator,
    /// Sees the history; Windlass's own.
    HistoryReader,
}

/// What a statement needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Right {
    /// The history in `msdb`, and the views of `sys`.
    History,
    /// BACKUP, and the statements that read media.
    Backup,
    /// To create, alter, restore and drop databases, and their data.
    Databases,
    /// Everything else.
    Server,
    /// What decides which files remote sessions reach: not for these themselves.
    Machine,
}

/// SQL Server's roles that have no members here.
const OTHERS: [&str; 6] = [
    "bulkadmin",
    "diskadmin",
    "processadmin",
    "securityadmin",
    "serveradmin",
    "setupadmin",
];

impl Role {
    pub const ALL: [Self; 4] = [
        Self::SysAdmin,
        Self::DbCreator,
        Self::BackupOperator,
        Self::HistoryReader,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::SysAdmin => "sysadmin",
            Self::DbCreator => "dbcreator",
            Self::BackupOperator => "backup_operator",
            Self::HistoryReader => "history_reader",
        }
    }

    /// Its `principal_id`; SQL Server's for its own roles.
    pub fn id(self) -> i64 {
        match self {
            Self::SysAdmin => 3,
            Self::DbCreator => 9,
            Self::BackupOperator => 201,
            Self::HistoryReader => 202,
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|role| role.name().eq_ignore_ascii_case(name))
    }

    pub(crate) fn of_id(id: i64) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.id() == id)
    }

    /// Whether no login can have the name: it is that of a role, here or on SQL Server.
    pub(crate) fn is_name(name: &str) -> bool {
        Self::named(name).is_some()
            || Self::is_elsewhere(name)
            || name.eq_ignore_ascii_case("public")
    }

    /// Whether SQL Server has a role of that name that has no members here.
    pub(crate) fn is_elsewhere(name: &str) -> bool {
        OTHERS.iter().any(|other| other.eq_ignore_ascii_case(name))
    }

    /// Whether its members have a right, apart from where they are.
    pub(crate) fn grants(self, right: Right) -> bool {
        let most = match self {
            Self::SysAdmin => Right::Machine,
            Self::DbCreator => Right::Databases,
            Self::BackupOperator => Right::Backup,
            Self::HistoryReader => Right::History,
        };
        right <= most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_role_has_the_rights_of_the_lesser_ones_and_no_more() {
        let rights = [
            Right::History,
            Right::Backup,
            Right::Databases,
            Right::Server,
            Right::Machine,
        ];
        let granted = |role: Role| rights.iter().filter(|right| role.grants(**right)).count();
        assert_eq!(Role::ALL.map(granted), [5, 3, 2, 1]);
        for role in Role::ALL {
            assert_eq!(Role::of_id(role.id()), Some(role));
            assert_eq!(Role::named(&role.name().to_uppercase()), Some(role));
            assert!(role.id() < 257, "the number of a login");
        }
        assert!(Role::is_name("Public") && Role::is_name("securityadmin"));
    }
}
