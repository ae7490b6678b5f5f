//! What an instance does: typed options in, a report or a [`Failure`](crate::Failure) out.
//!
//! Three translators stand before it, each no more than from its own words to options: T-SQL
//! ([`crate::tsql`]), the dialect of SQL Backup Pro ([`crate::sqlbackup`]), and the command line. What happens on
//! the way (messages, progress, plans, reports) goes to a [`Sink`](crate::Sink).
//!
//! | file | what |
//! |---|---|
//! | `backup/` | [`BackupOptions`]: a backup of one database |
//! | `restore/` | [`RestoreOptions`]: a restore of one set, whole or in part; the newest state of some media |
//! | `verify` | [`VerifyOptions`]: a set read entirely |
//! | `inspect` | [`Inspect`]: headers, files and label of media |
//! | `expire` | retention on folders |
//! | `integrity` | SQLite's own check of a database |
//! | `media`, `sql_server` | media that are read: ours and SQL Server's |
//! | `signing` | who signs backups, and whose signature they must have |
//! | `device`, `number`, `database` | devices, numbers and databases as options name them |
//! | `columns`, `media_rows`, `history` | what a set says: columns declared once, for RESTORE HEADERONLY and for `msdb` |
//! | `observer`, `timing`, `trace`, `rehearse` | what runs tell |
//!
//! Invariants:
//! 1. An option is declared once, in the options of its operation; what is absent is for the settings of the
//!    instance, or for the plan.
//! 2. Ranges, lengths and what options mean together are checked here, whoever gives them. What only a
//!    language can get wrong (a word twice, a string for a number) its translator refuses.
//! 3. Nothing here knows a syntax tree.

pub(crate) mod backup;
mod columns;
pub(crate) mod database;
mod device;
mod expire;
pub(crate) mod history;
pub(crate) mod inspect;
pub(crate) mod integrity;
mod media;
mod media_rows;
mod number;
mod observer;
mod rehearse;
pub(crate) mod restore;
mod signing;
mod sql_server;
mod timing;
mod trace;
pub(crate) mod verify;

pub use windlass_source::{Depth, Recovery};

pub use backup::{
    BackupMade, BackupOptions, BackupOutcome, CompressionChoice, CopyChoice, MissingBase,
};
pub use device::DeviceName;
use device::{expand, resolve};
pub use expire::{ExpireError, ExpireOptions, ExpireReport, ExpiredMedia, Removal};
pub use inspect::{Inspect, Inspection};
pub use media::MediaOptions;
pub use restore::{
    Newest, NewestRequest, RestoreOptions, RestoreOutcome, RestorePart, Sequence,
    Step as RestoreStep,
};
pub use verify::{OPERATION as VERIFICATION, VerifyOptions, VerifyOutcome};
