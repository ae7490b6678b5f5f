//! The writing side: a database being put together again.

use std::fmt;

use crate::Error;

/// What a restore leaves behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recovery {
    /// `RECOVERY`: the database can be opened; the sequence of restores is over.
    Recovery,
    /// `NORECOVERY`: the database waits, unopenable, for the next backup of the sequence.
    NoRecovery,
}

/// A database being restored. Until [`RestoreTarget::finish`] returns, nothing has happened under
/// the target's name.
///
/// What callers owe:
/// - write every stretch of the backup set once, in any order, from any number of threads; stretches
///   must not overlap. Aligned memory and offsets are written directly, others through the page
///   cache;
/// - call [`RestoreTarget::finish`] only after everything that was read has been verified;
/// - on any failure call [`RestoreTarget::abandon`], or just drop the target: both remove what was
///   staged, `abandon` also tells when that did not work.
///
/// What is not written is zero after a full restore, and as the base left it after a differential.
pub trait RestoreTarget: Send + Sync + fmt::Debug {
    /// Puts `bytes` at `offset` of a file.
    fn write(&self, file_id: u16, offset: u64, bytes: &[u8]) -> Result<(), Error>;

    /// Makes everything durable and, with [`Recovery::Recovery`], puts it under the target's name in
    /// one step. On error nothing has changed under that name.
    fn finish(self: Box<Self>, recovery: Recovery) -> Result<(), Error>;

    /// Gives up and removes what was staged.
    fn abandon(self: Box<Self>) -> Result<(), Error>;
}
