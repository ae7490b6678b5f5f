//! What a backup contains, and restores of a database that is not open. [`crate::database::backup`]
//! makes backups; [`crate::database::page_restore`] restores pages of a database in use.

pub(crate) mod description;
pub(crate) mod file_restore;
pub(crate) mod file_roll;
pub(crate) mod follow;
pub(crate) mod log_check;
pub(crate) mod offline;
pub(crate) mod page_roll;
pub(crate) mod restore;
pub(crate) mod roll_forward;
pub(crate) mod roll_state;
mod scan;
pub(crate) mod staged;
pub(crate) mod stop;

pub use description::{BackupDescription, BackupMode, BackupRange};
