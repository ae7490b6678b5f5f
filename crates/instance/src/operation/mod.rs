//! The operations of an instance: typed options in, a report or a [`Failure`](crate::Failure) out.
//!
//! Three translators convert their own syntax to options: T-SQL ([`crate::tsql`]), the dialect of SQL
//! Backup Pro ([`crate::sqlbackup`]), and the command line. What happens during a run (messages,
//! progress, plans, reports) goes to a [`Sink`](crate::Sink).
//!
//! | file | what |
//! |---|---|
//! | `backup/` | [`BackupOptions`]: a backup of one database |
//! | `restore/` | [`RestoreOptions`]: a restore of one set, whole or in part; the newest state of some media |
//! | `backup/repack`, `unpack`, `repacked` | SQL Server backups on Windlass media: there, back, and what is said of them |
//! | `verify` | [`VerifyOptions`]: reads a set entirely |
//! | `inspect` | [`Inspect`]: headers, files and label of media |
//! | `expire` | retention on folders |
//! | `drill/` | [`DrillOptions`]: proof by a restore |
//! | `ship` | [`ShipOptions`]: a copy that is kept current |
//! | `follow` | follows a SQLite database into a spool |
//! | `integrity` | SQLite's own check of a database |
//! | `media`, `sql_server` | media to read: those of Windlass and of SQL Server |
//! | `signing` | keys that sign backups, and signatures that backups must have |
//! | `device`, `number`, `database` | devices, numbers and databases in options |
//! | `reach` | devices by their names in the history, folders by their paths or URLs |
//! | `columns`, `media_rows`, `history` | the description of a set: columns declared once, for RESTORE HEADERONLY and for `msdb` |
//! | `observer`, `timing`, `trace`, `rehearse` | what runs report |
//!
//! Invariants:
//! 1. An option is declared once, in the options of its operation; what is absent comes from the
//!    settings of the instance, or from the plan.
//! 2. Ranges, lengths and combinations of options are checked here, for every translator. What only a
//!    language can get wrong (a word twice, a string for a number) is refused by its translator.
//! 3. Nothing here knows a syntax tree.

pub(crate) mod backup;
mod columns;
mod credential;
pub(crate) mod database;
mod device;
mod drill;
mod expire;
pub(crate) mod follow;
pub(crate) mod history;
pub(crate) mod inspect;
pub(crate) mod integrity;
mod log_within;
mod media;
mod media_rows;
mod number;
mod observer;
mod reach;
mod rehearse;
mod repacked;
pub(crate) mod restore;
mod ship;
mod signing;
mod sql_server;
#[cfg(test)]
mod sqlite_chains;
mod store;
mod timing;
mod trace;
mod unpack;
pub(crate) mod verify;
mod verify_part;

pub use windlass_source::engine::{StopAt, WantedMark};
pub use windlass_source::{Depth, Recovery};

pub(crate) use backup::recipients_of;
pub use backup::{
    BackupMade, BackupOptions, BackupOutcome, CompressionChoice, CopyChoice, LogChoice, MissingBase,
};
pub use credential::{CredentialChoice, CredentialOptions};
pub use device::{DeviceName, is_url, shown};
pub(crate) use device::{Store, addresses, check_url};
use device::{expand, resolve};
pub use drill::{DrillOptions, DrillOutcome, DrilledSet};
pub use expire::{
    ExpireError, ExpireOptions, ExpireReport, ExpiredMedia, Removal, Trust, VERIFIED_WITHIN_HOURS,
};
pub use follow::{
    FollowOptions, FollowStatus, Following, Listed, Spooled, Stop, WhenFull, spooled,
};
pub use inspect::{Inspect, Inspection};
pub(crate) use log_within::LogsWithin;
pub use media::MediaOptions;
pub use reach::Reach;
pub use restore::{
    Aim, Beyond, FollowedRestore, Newest, NewestRequest, Reached, RestoreKind, RestoreOptions,
    RestoreOutcome, RestorePart, Sequence, Step as RestoreStep,
};
pub use ship::{ShipOptions, Shipped};
pub use store::StoreOptions;
pub use unpack::{UnpackOptions, UnpackedFile};
pub use verify::{OPERATION as VERIFICATION, VerifyOptions, VerifyOutcome};
pub use verify_part::Part;
