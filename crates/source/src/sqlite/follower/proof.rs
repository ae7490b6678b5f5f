//! Proves that no commit was missed while nothing, or only lock 0, was held.
//!
//! The follower has read up to a position in one generation of the log and finds another generation. The argument, with
//! the names of `wal.c`:
//!
//! 1. `walRestartHdr` adds one to the first salt. If it is greater by exactly one, there was one restart, and no
//!    generation in between. (Under lock 0 there was at most one restart of a log with frames, whatever the salts.)
//! 2. `walFrames` adds one to `iChange` with every commit, and `walRestartHdr` leaves it. So the difference of the
//!    counters is the number of commits since the position.
//! 3. The commits of the new generation are all in the log: it cannot be restarted again while the mark is held. They
//!    are counted.
//! 4. The other commits are those of the old generation behind the position. Their frames are still in the file unless
//!    new ones have been written over them; each continues the chain of checksums from the position on. If exactly
//!    as many commits are found there as are missing, they are these.
//!
//! 5. The counter restarts when the index is recovered, which needs a moment in which nobody has the log open (or a
//!    writer that dies while it writes the header). So if the follower did not run (`Cover::Absent`), the counter alone
//!    proves nothing: the tail must be there, and the file must show where it ends.
//!
//! A log whose index was recovered meanwhile has another counter; a tail that was cut off (TRUNCATE, a
//! `journal_size_limit`) or overwritten has too few commits; frames of a commit that failed have one too many. All
//! that is a doubt, and a doubt is a gap.
//!
//! Commits that repeat the frame before them are one more doubt: with `psow=0`, `SQLite` pads a commit with copies of
//! its last frame, which count as commits here, but not in `iChange`.

use windlass_media::WalPosition;

use super::hold::Tip;
use super::log::{Frame, Log, Shape};
use crate::Error;

/// Bytes of frames behind the position that are kept until they are proven; a follower lets go only when it is close
/// to the end of the log.
const TAIL_BYTES_MAX: usize = 16 << 20;

/// Why it is not known that no commit was missed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Doubt {
    #[error("the log was restarted more than once, or is another log")]
    OtherLog,
    #[error("the log ends before what was read from it")]
    WentBack,
    #[error("frame {frame} of the log does not continue what was read from it")]
    Broken { frame: u32 },
    #[error("the counter of commits and the commits found differ by {difference}")]
    Count { difference: i64 },
    #[error("the end of the old log is not in the file any more")]
    TailLost,
    #[error("the end of the old log is too long")]
    TailLong,
    #[error("commits repeat frames, and cannot be counted")]
    Repeats,
    #[error("the name of the database, its log or the log's index leads to another file")]
    OtherFile,
    #[error("the database file was changed by a program that does not use SQLite's locks")]
    FileChanged,
    #[error("the spool was full")]
    SpoolFull,
}

/// What was held since the position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cover {
    /// A lock, all the time.
    Lock,
    /// Nothing for a moment; but the index of the log stayed open, so that its counter of commits went on.
    None,
    /// Nothing, and nobody knows whether the index was recovered meanwhile, which restarts the counter.
    Absent,
}

/// Frames of the old generation behind the position.
#[derive(Debug, Default)]
pub(super) struct Tail {
    frames: Vec<TailFrame>,
    content: Vec<u8>,
    page_bytes: usize,
    commits: u32,
}

#[derive(Debug)]
struct TailFrame {
    number: u32,
    page: u32,
    commit_pages: u32,
    checksum: [u32; 2],
}

impl Tail {
    /// The frames, all of them committed.
    pub(super) fn frames(&self) -> impl Iterator<Item = Frame<'_>> {
        let content = self.content.chunks_exact(self.page_bytes.max(1));
        (self.frames.iter().zip(content)).map(|(frame, content)| Frame {
            number: frame.number,
            page: frame.page,
            commit_pages: frame.commit_pages,
            checksum: frame.checksum,
            content,
        })
    }

    fn push(&mut self, frame: &Frame<'_>) {
        self.page_bytes = frame.content.len();
        self.content.extend_from_slice(frame.content);
        self.commits += u32::from(frame.commit_pages > 0);
        self.frames.push(TailFrame {
            number: frame.number,
            page: frame.page,
            commit_pages: frame.commit_pages,
            checksum: frame.checksum,
        });
    }

    /// Drops frames whose transaction was not committed.
    fn cut(&mut self) {
        let committed = (self.frames.iter()).rposition(|frame| frame.commit_pages > 0);
        self.frames.truncate(committed.map_or(0, |last| last + 1));
    }
}

/// Counts commits, and notices those that only repeat the frame before them.
#[derive(Debug, Default)]
struct Counter {
    commits: u32,
    repeats: u32,
    last: Option<(u32, u32)>,
    content: Vec<u8>,
}

impl Counter {
    fn count(&mut self, frame: &Frame<'_>) {
        if frame.commit_pages == 0 {
            self.last = None;
            return;
        }
        self.commits += 1;
        let this = Some((frame.page, frame.commit_pages));
        if self.last == this && self.content == frame.content {
            self.repeats += 1;
        }
        self.last = this;
        self.content.clear();
        self.content.extend_from_slice(frame.content);
    }
}

/// Proves that the commits between `position` and `tip`, which is of another generation and held now, are those of
/// the returned tail and those of the new generation.
pub(super) fn prove(
    log: &mut Log,
    position: &WalPosition,
    tip: &Tip,
    cover: Cover,
) -> Result<Result<Tail, Doubt>, Error> {
    if cover != Cover::Lock && !is_next(position, tip) {
        return Ok(Err(Doubt::OtherLog));
    }
    let shape = tip.shape();
    let mut counter = Counter::default();
    if let Err(doubt) = count_new(log, &shape, tip, &mut counter)? {
        return Ok(Err(doubt));
    }
    let since = tip.position.commits.wrapping_sub(position.commits);
    let difference = i64::from(since) - i64::from(counter.commits);
    if cover == Cover::Lock {
        // The lock proves it; the counter only confirms it.
        let is_confirmed = (-i64::from(counter.repeats)..=0).contains(&difference);
        return Ok(match is_confirmed {
            true => Ok(Tail::default()),
            false => Err(Doubt::Count { difference }),
        });
    }
    let Some(missing) = u32::try_from(difference).ok() else {
        return Ok(Err(Doubt::Count { difference }));
    };
    tail(log, position, &shape, missing, cover, &mut counter)
}

fn is_next(position: &WalPosition, tip: &Tip) -> bool {
    let first = |salt: [u8; 8]| u32::from_be_bytes([salt[0], salt[1], salt[2], salt[3]]);
    let expected = first(position.salt).wrapping_add(1);
    !position.is_before_all() && first(tip.position.salt) == expected
}

/// Counts the commits of the new generation, which must end at the tip.
fn count_new(
    log: &mut Log,
    shape: &Shape,
    tip: &Tip,
    counter: &mut Counter,
) -> Result<Result<(), Doubt>, Error> {
    if tip.position.frame == 0 {
        return Ok(Ok(()));
    }
    let Some(begin) = log.begin(shape)? else {
        return Ok(Err(Doubt::Broken { frame: 0 }));
    };
    let end = log.frames(shape, begin, tip.position.frame, &mut |frame| {
        counter.count(&frame);
        Ok(true)
    })?;
    let is_tip = end.frame == tip.position.frame && end.checksum == tip.position.checksum;
    Ok(match is_tip {
        true => Ok(()),
        false => Err(Doubt::Broken {
            frame: end.frame + 1,
        }),
    })
}

/// Reads the frames of the old generation behind the position, which must have `missing` commits.
fn tail(
    log: &mut Log,
    position: &WalPosition,
    new: &Shape,
    missing: u32,
    cover: Cover,
    counter: &mut Counter,
) -> Result<Result<Tail, Doubt>, Error> {
    let shape = Shape {
        salt: position.salt,
        ..*new
    };
    let mut tail = Tail::default();
    match log.resume(position, &shape)? {
        // Overwritten, but nothing was committed behind it.
        None if missing == 0 && cover == Cover::None => {}
        None => return Ok(Err(Doubt::TailLost)),
        Some(chain) => {
            counter.last = None;
            let end = log.frames(&shape, chain, u32::MAX, &mut |frame| {
                counter.count(&frame);
                tail.push(&frame);
                Ok(tail.commits <= missing && tail.content.len() < TAIL_BYTES_MAX)
            })?;
            // A counter that restarted might have the same difference, so the file itself must show that the tail ends
            // there, and was not cut off.
            if cover == Cover::Absent && !log.shows_end(&shape, end.frame)? {
                return Ok(Err(Doubt::TailLost));
            }
        }
    }
    tail.cut();
    Ok(if counter.repeats > 0 {
        Err(Doubt::Repeats)
    } else if tail.commits == missing {
        Ok(tail)
    } else if tail.content.len() >= TAIL_BYTES_MAX {
        Err(Doubt::TailLong)
    } else if tail.commits < missing {
        Err(Doubt::TailLost)
    } else {
        let difference = i64::from(missing) - i64::from(tail.commits);
        Err(Doubt::Count { difference })
    })
}
