//! A position in the history of a `SQLite` database in WAL mode: after one commit.
//!
//! The salts name a generation of the write-ahead log, the frame a place in it, and the checksum the content of
//! all frames up to there. A set has the position of its snapshot; a follower's spool has every position that it
//! has seen. That they are equal, and no clock, says where in the spool a backup belongs.

use std::fmt;
use std::str::FromStr;

use crate::record::Stored;

/// A position after a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct WalPosition {
    /// The two salts of the log, as in its header; all zero for a log to which nothing was written yet: then the
    /// state is that of the file alone.
    pub salt: [u8; 8],
    /// The last frame of the commit, from 1; 0 before the first frame of a generation.
    pub frame: u32,
    /// The checksum stored in that frame, which is one of all frames before it; for frame 0, that of the last frame of the
    /// generation before, if it is known. Without salts, a digest of what the
    /// file system says of the database file; zero if that says nothing.
    pub checksum: [u32; 2],
    /// `SQLite`'s counter of commits, which wraps around, and restarts when the index of the log is recovered.
    pub commits: u32,
}

impl WalPosition {
    /// Bytes in the stored form.
    pub const BYTES: usize = 24;

    /// The stored form: the fields in their order, little-endian.
    pub fn to_stored(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..8].copy_from_slice(&self.salt);
        let numbers = [self.frame, self.checksum[0], self.checksum[1], self.commits];
        for (place, number) in bytes[8..].chunks_exact_mut(4).zip(numbers) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        bytes
    }

    pub fn from_stored(bytes: [u8; Self::BYTES]) -> Self {
        let [
            salt @ ..,
            f0,
            f1,
            f2,
            f3,
            a0,
            a1,
            a2,
            a3,
            b0,
            b1,
            b2,
            b3,
            c0,
            c1,
            c2,
            c3,
        ] = bytes;
        let number = u32::from_le_bytes;
        Self {
            salt,
            frame: number([f0, f1, f2, f3]),
            checksum: [number([a0, a1, a2, a3]), number([b0, b1, b2, b3])],
            commits: number([c0, c1, c2, c3]),
        }
    }

    /// Whether both are the same state. Where the frames are the same, the counter of commits does not matter: it restarts.
    pub fn is_same_state(&self, other: &Self) -> bool {
        let is_same_checksum =
            self.frame == 0 && !self.is_before_all() || self.checksum == other.checksum;
        let is_same_frame = self.salt == other.salt && self.frame == other.frame;
        is_same_frame && is_same_checksum || self.is_begun_again(other)
    }

    /// Whether the log has only been begun again in between. Before the first frame of a generation, the checksum and the
    /// counter are still those of the last commit of the generation before, in the index of the log; both are zero after
    /// the index was recovered.
    fn is_begun_again(&self, other: &Self) -> bool {
        let is_begin = |position: &Self| position.frame == 0 && !position.is_before_all();
        let is_known = self.checksum != [0; 2] && self.commits != 0;
        let is_same_commit = self.checksum == other.checksum && self.commits == other.commits;
        is_begin(self) && is_begin(other) && is_known && is_same_commit
    }

    /// Whether both are the same state of the database: also if the log was begun again in between, once or more often, and
    /// nothing was committed since.
    pub fn is_same_content(&self, other: &Self) -> bool {
        let is_same_count =
            self.commits == other.commits || self.commits == 0 || other.commits == 0;
        self.is_same_state(other)
            || is_same_count && (self.keeps(other.checksum) || other.keeps(self.checksum))
    }

    /// Whether it is before the first frame of a generation, and the last commit before that has this checksum. The salts
    /// of its own generation are in the checksum, so that it is the only one that has it.
    pub fn keeps(&self, checksum: [u32; 2]) -> bool {
        let is_begin = self.frame == 0 && !self.is_before_all();
        is_begin && self.checksum == checksum && checksum != [0; 2]
    }

    /// Whether nothing was written to the log yet.
    pub fn is_before_all(&self) -> bool {
        self.salt == [0; 8]
    }

    /// Whether it does not tell one state from another.
    pub fn is_unknown(&self) -> bool {
        self.is_before_all() && self.checksum == [0; 2]
    }
}

impl Stored for Option<WalPosition> {
    fn store(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.unwrap_or_default().to_stored());
    }

    fn load(bytes: &[u8]) -> Option<Self> {
        Some(Some(WalPosition::from_stored(bytes.try_into().ok()?)))
    }

    fn is_left_out(&self) -> bool {
        self.is_none()
    }
}

impl fmt::Display for WalPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [first, second] = self.checksum;
        write!(
            f,
            "{:016x}:{}:{first:08x}{second:08x}:{}",
            u64::from_be_bytes(self.salt),
            self.frame,
            self.commits
        )
    }
}

impl FromStr for WalPosition {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parsed = || {
            let mut parts = text.split(':');
            let salt = u64::from_str_radix(parts.next()?, 16).ok()?.to_be_bytes();
            let frame = parts.next()?.parse().ok()?;
            let checksum = u64::from_str_radix(parts.next()?, 16).ok()?;
            let commits = parts.next()?.parse().ok()?;
            let position = Self {
                salt,
                frame,
                checksum: [(checksum >> 32) as u32, checksum as u32],
                commits,
            };
            parts.next().is_none().then_some(position)
        };
        parsed().ok_or_else(|| format!("'{text}' is not a position in a write-ahead log"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_survives_both_of_its_forms() {
        let position = WalPosition {
            salt: [1, 2, 3, 4, 5, 6, 7, 0xF8],
            frame: 77,
            checksum: [0xFFFF_FFFE, 3],
            commits: u32::MAX,
        };
        assert_eq!(WalPosition::from_stored(position.to_stored()), position);
        assert_eq!(position.to_string().parse(), Ok(position));
        assert!("1:2:3".parse::<WalPosition>().is_err());
        assert!("1:2:3:4:5".parse::<WalPosition>().is_err());
    }

    #[test]
    fn a_state_is_the_content_of_the_frames_and_not_their_count() {
        let one = WalPosition {
            salt: [9; 8],
            frame: 5,
            checksum: [1, 2],
            commits: 5,
        };
        assert!(one.is_same_state(&WalPosition { commits: 0, ..one }));
        let other = WalPosition {
            checksum: [1, 3],
            ..one
        };
        assert!(!one.is_same_state(&other));
        let begin = WalPosition { frame: 0, ..one };
        assert!(begin.is_same_state(&WalPosition { frame: 0, ..other }));
        let again = WalPosition {
            salt: [8; 8],
            ..begin
        };
        assert!(begin.is_same_state(&again), "no commit in between");
        for changed in [
            WalPosition {
                checksum: [1, 3],
                ..again
            },
            WalPosition {
                commits: 6,
                ..again
            },
            WalPosition { frame: 5, ..again },
        ] {
            assert!(!begin.is_same_state(&changed), "{changed}");
            assert!(!changed.is_same_state(&begin), "{changed}");
        }
        let earlier = WalPosition { frame: 5, ..again };
        for counted in [5, 0] {
            let earlier = WalPosition {
                commits: counted,
                ..earlier
            };
            assert!(begin.is_same_content(&earlier) && earlier.is_same_content(&begin));
        }
        for changed in [
            WalPosition {
                checksum: [1, 3],
                ..earlier
            },
            WalPosition {
                commits: 6,
                ..earlier
            },
        ] {
            assert!(!begin.is_same_content(&changed), "{changed}");
            assert!(!changed.is_same_content(&begin), "{changed}");
        }
        assert!(!one.is_same_content(&earlier), "both have frames");
        let unknown = |salt| WalPosition {
            salt: [salt; 8],
            checksum: [0; 2],
            ..begin
        };
        assert!(!unknown(1).is_same_state(&unknown(2)));
        assert!(!unknown(1).is_same_content(&unknown(2)));
        let file = WalPosition {
            salt: [0; 8],
            frame: 0,
            ..one
        };
        assert!(!file.is_same_state(&WalPosition {
            checksum: [1, 3],
            ..file
        }));
        assert!(!file.is_unknown() && WalPosition::default().is_unknown());
    }
}
