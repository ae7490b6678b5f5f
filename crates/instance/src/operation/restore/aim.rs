//! Where a restore that chooses its backups by itself is to lead.

use windlass_source::engine::StopAt;

use super::continuing::Reached;

/// The state to which backups are to lead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Aim {
    /// The newest that they hold.
    Newest,
    /// That at a point of the log.
    At(StopAt),
    /// The newest that ended before or at this time (milliseconds since 1970, UTC), to be rolled on from there.
    Before(u64),
    /// Any that they hold: a moment of the log, or the end of a set. Its number chooses one.
    Any(u64),
    /// The newest that ended before this time (milliseconds since 1970, UTC), from where a waiting restore stands.
    Onward(Option<Reached>, u64),
}

impl Aim {
    /// Whether the log alone says which sets lead there, whatever their dates.
    pub(super) fn is_by_log(&self) -> bool {
        match self {
            Self::At(stop) => !matches!(stop, StopAt::End | StopAt::Time(_)),
            Self::Onward(reached, _) => reached.is_some(),
            Self::Newest | Self::Before(_) | Self::Any(_) => false,
        }
    }
}
