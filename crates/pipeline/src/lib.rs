//! Moves a database to backup media and back.
//!
//! ```text
//! backup    source --read--> frames --transform--> chunks --write--> media families
//! restore   media families --read--> chunks --transform--> frames --write--> target
//! pages     media families --chunk index--> chunks --transform--> frames --> selection
//! verify    media families --read--> chunks --transform--> nothing
//! ```
//!
//! Each arrow is a stage with its own threads. Buffers are passed by ownership and return to their
//! pool when dropped, so memory is bounded by the [`Plan`], whatever the size of the database.
//! Nothing here depends on the kind of database or device, or on T-SQL.
//!
//! Invariants:
//! 1. The first error stops every stage and leaves no set that could be mistaken for a good one:
//!    the end of a set is written last, after everything before it is durable on every family.
//! 2. Chunks are independent of each other; whichever device is free takes the next one.
//! 3. Uncompressed chunks are written from the buffers into which they were read.
//! 4. A restore or verification succeeds only if every chunk of the set was seen exactly once with
//!    both its checksums right, and the chunks cover the database.
#![forbid(unsafe_code)]

mod adapt;
mod backup;
mod control;
mod coverage;
pub mod digests;
mod error;
mod fault;
mod guard;
mod half_named;
mod key_files;
mod limits;
mod live;
mod media_set;
mod plan;
mod rekey;
mod report;
mod request;
mod restore;
mod sealing;
mod signing;
mod throttle;
mod totals;
mod verdict;
mod window;

pub use backup::{NewBase, Rehearsed, backup, backup_undecided, probe, rehearse};
pub use coverage::{FileRange, FileRanges};
pub use digests::{DigestError, DigestFile};
pub use error::{Damage, Error, Holds};
#[doc(hidden)]
pub use fault::{Fault, FaultPoint};
pub use guard::Guard;
pub use key_files::{
    KEY_FILE_SUFFIX, UnusableKeyFile, key_file, key_file_for_copy, remove_key_file,
};
pub use limits::{Limit, Limits};
pub use media_set::{MediaSet, PartlyFinished, SetEntry, read_label};
pub use plan::{Chosen, ChosenIoMethod, Plan, SourceSize};
pub use rekey::{RekeyRequest, Rekeyed, rekey};
pub use report::{
    Adapted, BackupReport, DamagedChunks, DamagedPage, FilePages, LevelShare, Observer,
    ProbeReport, ReadReport, Stage, StageCounters, Stages, TimesIn, Unobserved, Way,
};
pub use request::{
    BackupKind, BackupRequest, DifferentialBase, Goal, Integrity, MediaRequest, OnDamage,
    Overwrite, Probe, ProbeRequest, ReadRequest, Requester, Tuning,
};
pub use restore::{
    Selection, check, extract_digests, plan_reading, restore, restore_selected, verify,
    verify_content,
};
pub use sealing::{Encryption, ReadKeys};
pub use signing::claimed_signer;
pub use windlass_source::TemporaryCopy;
