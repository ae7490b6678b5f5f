//! What a set of type log says of the `SQLite` log in it, besides what every set says; `docs/format/media.md`.

use windlass_base::Lsn;
use windlass_base::bytes::{Reader, Writer};
use windlass_media::WalPosition;

use super::spool::{Gap, Slice, State, lsn_of};

const VERSION: u16 = 1;

/// The description of a log backup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogDescription {
    /// The state with which it begins.
    pub(super) begin: State,
    /// The state at its end.
    pub(super) end: State,
    pub commits: u64,
    pub(super) log_bytes: u64,
    /// The gap that it begins behind.
    pub(super) gap: Option<Gap>,
}

impl LogDescription {
    pub(super) fn of(slice: &Slice) -> Self {
        Self {
            begin: slice.begin,
            end: slice.end,
            commits: slice.commits,
            log_bytes: slice.bytes,
            gap: slice.gap.clone(),
        }
    }

    pub(super) fn store(&self) -> Vec<u8> {
        let mut out = Writer::default();
        out.u16(VERSION);
        self.begin.store(&mut out);
        self.end.store(&mut out);
        out.u64(self.commits);
        out.u64(self.log_bytes);
        out.u8(u8::from(self.gap.is_some()));
        if let Some(gap) = &self.gap {
            out.bytes(&gap.store());
        }
        out.0
    }

    /// `None` if these bytes are none, or of another version.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(bytes);
        if reader.u16()? != VERSION {
            return None;
        }
        let (begin, end) = (State::read(&mut reader)?, State::read(&mut reader)?);
        let (commits, log_bytes) = (reader.u64()?, reader.u64()?);
        let gap = match reader.u8()? {
            0 if reader.is_empty() => None,
            1 => Some(Gap::parse(reader.rest())?),
            _ => return None,
        };
        let is_in_order = begin.time_us <= end.time_us;
        is_in_order.then_some(Self {
            begin,
            end,
            commits,
            log_bytes,
            gap,
        })
    }

    pub fn first_lsn(&self) -> Lsn {
        lsn_of(self.begin.time_us)
    }

    pub fn last_lsn(&self) -> Lsn {
        lsn_of(self.end.time_us)
    }

    /// The position of the state with which it begins.
    pub fn begin_position(&self) -> WalPosition {
        self.begin.position
    }

    /// The times of its first and last state, in microseconds since 1970, UTC.
    pub fn times_us(&self) -> (u64, u64) {
        (self.begin.time_us, self.end.time_us)
    }

    /// The first millisecond, since 1970, UTC, before which everything is in it or before it: the one in which it ends may
    /// have had commits behind its end.
    pub fn ended_ms(&self) -> u64 {
        self.end.time_us.div_ceil(1000)
    }

    /// The gap that it begins behind: two times, and a reason.
    pub fn gap(&self) -> Option<(u64, u64, &str)> {
        let gap = self.gap.as_ref()?;
        Some((gap.from_us, gap.to_us, &gap.reason))
    }
}

#[cfg(test)]
mod tests {
    use windlass_media::WalPosition;

    use super::*;

    fn state(time_us: u64) -> State {
        State {
            position: WalPosition {
                frame: 3,
                ..WalPosition::default()
            },
            time_us,
            commit_number: 9,
            inode: 5,
        }
    }

    /// A restore to a moment goes through all log backups that ended before it.
    #[test]
    fn the_millisecond_in_which_it_ends_is_behind_it() {
        for (end_us, expected_ms) in [(893_000, 893), (893_001, 894), (893_999, 894)] {
            let description = LogDescription {
                begin: state(7),
                end: state(end_us),
                commits: 4,
                log_bytes: 99,
                gap: None,
            };
            assert_eq!(description.ended_ms(), expected_ms, "{end_us}");
        }
    }

    #[test]
    fn what_was_stored_is_read_and_nothing_else() {
        let plain = LogDescription {
            begin: state(7),
            end: state(8),
            commits: 4,
            log_bytes: 99,
            gap: None,
        };
        let gap = Gap {
            from_us: 1,
            to_us: 7,
            from: WalPosition::default(),
            to: state(7).position,
            inode: 5,
            reason: "of this test".to_owned(),
        };
        let behind = LogDescription {
            gap: Some(gap),
            ..plain.clone()
        };
        for description in [plain, behind] {
            let stored = description.store();
            assert_eq!(LogDescription::parse(&stored), Some(description));
            for end in 0..stored.len() {
                assert_eq!(LogDescription::parse(&stored[..end]), None, "{end}");
            }
            assert_eq!(LogDescription::parse(&[&stored[..], &[0]].concat()), None);
        }
    }
}
