//! The writing side: a database being restored.

use std::fmt;

use crate::Error;

/// The state in which a restore leaves the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recovery {
    /// `RECOVERY`: the database can be opened; the sequence of restores is over.
    Recovery,
    /// `NORECOVERY`: the database cannot be opened until the next backup of the sequence is
    /// restored.
    NoRecovery,
}

/// A database being restored. Nothing changes under the target's name until
/// [`RestoreTarget::finish`] returns.
///
/// Callers must:
/// - write every range of the backup set once, in any order, from any number of threads; ranges
///   must not overlap. Aligned memory and offsets are written directly, others through the page
///   cache;
/// - call [`RestoreTarget::finish`] only after everything that was read has been verified;
/// - on any failure call [`RestoreTarget::abandon`], or drop the target: both remove temporary
///   files, but only `abandon` reports errors.
///
/// Bytes that are not written are zero after a full restore, and unchanged from the base after a
/// differential.
pub trait RestoreTarget: Send + Sync + fmt::Debug {
    /// Writes `bytes` at `offset` of a file.
    fn write(&self, file_id: u16, offset: u64, bytes: &[u8]) -> Result<(), Error>;

    /// Makes everything durable and, with [`Recovery::Recovery`], moves it to the target's name in
    /// one step. On error nothing has changed under that name.
    fn finish(self: Box<Self>, recovery: Recovery) -> Result<(), Error>;

    /// Removes the temporary files.
    fn abandon(self: Box<Self>) -> Result<(), Error>;
}
