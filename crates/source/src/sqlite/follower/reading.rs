//! The position in the log, and how it advances.

mod letting_go;

use std::path::Path;
use std::time::{Duration, Instant};

use windlass_media::WalPosition;

use super::changes::Changes;
use super::hold::{Held, Holder, Tip};
use super::log::Log;
use super::pace::{Advice, Look, Pace};
use super::proof::{Cover, Doubt, prove};
use super::versions::Versions;
use super::{FollowStatus, Following};
use crate::Error;
use crate::sqlite::spool::{SpoolWriter, State, now_us};
use crate::sqlite::wal::FRAME_HEADER_BYTES;

/// Frames behind the position at which they are read before the interval is over.
const UNREAD_MAX: u32 = 64;
/// The result of reading: `Err` if it is not known that nothing was missed.
pub(super) type Proven = Result<(), Doubt>;

/// A database that is read.
#[derive(Debug)]
pub(super) struct Reading {
    pub(super) holder: Holder,
    log: Log,
    /// Everything up to here was read.
    pub(super) position: WalPosition,
    changes: Changes,
    versions: Versions,
    pace: Pace,
    /// When the newest commit was read, at the latest; microseconds since 1970.
    read_us: u64,
    newest: Tip,
    /// Until when nothing is held, because the application's next checkpoint is awaited; and what is known since.
    pub(super) loose: Option<(Instant, Cover)>,
    /// The state that nothing is known before: what a file is that does not have the frames up to there, does not matter.
    begun_at: WalPosition,
}

impl Reading {
    /// Takes a mark. Continues behind `position`, or begins at the newest commit.
    pub(super) fn begin(
        path: &Path,
        mut holder: Holder,
        position: Option<WalPosition>,
    ) -> Result<Self, Error> {
        let newest = holder.mark()?;
        let position = position.unwrap_or(newest.position);
        let log = Log::open(path)?;
        let page_count = match position.is_same_state(&newest.position) {
            true => newest.page_count,
            false => 0,
        };
        Ok(Self {
            versions: Versions::of(log.share(), path, holder.inode()),
            holder,
            log,
            position,
            changes: Changes::since(position, page_count),
            pace: Pace::new(Instant::now()),
            read_us: now_us(),
            newest,
            loose: None,
            begun_at: newest.position,
        })
    }

    /// Reads what was committed since the position, before which nothing was held.
    pub(super) fn resume(
        &mut self,
        spool: &mut SpoolWriter,
        each_commit: bool,
    ) -> Result<Proven, Error> {
        let tip = self.newest;
        self.advance(&tip, Cover::Absent, spool, each_commit)
    }

    /// Gives up what was read and not written; continues at the newest commit, which is held from here on.
    pub(super) fn forget(&mut self) -> Result<WalPosition, Error> {
        self.holder.accept_change();
        self.loose = None;
        let tip = self.holder.mark()?;
        self.newest = tip;
        self.position = tip.position;
        self.begun_at = tip.position;
        self.changes = Changes::since(tip.position, tip.page_count);
        self.versions.forget();
        self.pace.failed();
        self.read_us = now_us();
        Ok(tip.position)
    }

    pub(super) fn position(&self) -> WalPosition {
        self.position
    }

    pub(super) fn inode(&self) -> u64 {
        self.holder.inode()
    }

    pub(super) fn has_moved(&self) -> bool {
        self.holder.has_moved()
    }

    /// The newest commit of the log; `None` while its index is being recovered.
    pub(super) fn newest(&self) -> Option<WalPosition> {
        self.holder.look().map(|(tip, _)| tip.position)
    }

    /// Whether everything up to `newest` was read.
    pub(super) fn has(&self, newest: &WalPosition) -> bool {
        match newest.is_before_all() {
            true => self.position.is_before_all(),
            false => self.position.salt == newest.salt && self.position.frame >= newest.frame,
        }
    }

    pub(super) fn idle(&self) -> Duration {
        self.pace.idle(Instant::now())
    }

    /// Whether what was read last may not be of this history.
    pub(super) fn is_open(&self) -> bool {
        self.changes.is_open()
    }

    pub(super) fn is_long(&self) -> bool {
        self.changes.is_long()
    }

    pub(super) fn following(&self) -> Following {
        match self.holder.held() {
            Held::Mark(_) => Following::Mark,
            Held::Zero => Following::Zero,
            Held::Nothing => Following::LetGo,
        }
    }

    /// How far the spool is behind.
    pub(super) fn lag(&self, spooled: &State, status: &mut FollowStatus) {
        let newest = self.holder.look().map_or(self.newest, |(tip, _)| tip);
        let frame_bytes = FRAME_HEADER_BYTES as u64 + u64::from(newest.page_bytes);
        let frames = match newest.position.salt == spooled.position.salt {
            true => newest.position.frame.saturating_sub(spooled.position.frame),
            false => newest.position.frame,
        };
        status.log_bytes = u64::from(newest.position.frame) * frame_bytes;
        status.lag_bytes = u64::from(frames) * frame_bytes;
        status.lag_us = match frames {
            0 => 0,
            _ => now_us().saturating_sub(spooled.time_us),
        };
    }

    /// One look at the log, and what follows from it.
    pub(super) fn step(
        &mut self,
        spool: &mut SpoolWriter,
        each_commit: bool,
        is_due: bool,
        status: &mut FollowStatus,
    ) -> Result<Proven, Error> {
        let before = self.position;
        let stepped = self.look(spool, each_commit, is_due, status);
        if before.salt == self.position.salt {
            status.frames += u64::from(self.position.frame.saturating_sub(before.frame));
        } else {
            status.frames += u64::from(self.position.frame);
        }
        stepped
    }

    fn look(
        &mut self,
        spool: &mut SpoolWriter,
        each_commit: bool,
        is_due: bool,
        status: &mut FollowStatus,
    ) -> Result<Proven, Error> {
        let Some((tip, backfilled)) = self.holder.look() else {
            // The index of the log is being recovered; nothing is committed meanwhile.
            if let Some((_, cover)) = &mut self.loose {
                *cover = Cover::Absent;
            }
            return Ok(Ok(()));
        };
        self.newest = tip;
        let now = Instant::now();
        self.pace.note(tip.position.salt, tip.position.frame, now);
        if let Some((until, cover)) = self.loose {
            let look = ((tip, backfilled), cover, now >= until);
            return self.await_restart(look, is_due, spool, each_commit, status);
        }
        let mark = match self.holder.held() {
            Held::Mark(mark) if tip.position.salt == self.position.salt => mark,
            // A mark with frames keeps the log from being restarted. If it was, the lock was lost.
            Held::Mark(1..) | Held::Nothing => {
                return self.renew(Cover::Absent, spool, each_commit);
            }
            Held::Zero if tip.position.is_same_state(&self.position) => {
                self.read_us = now_us();
                return Ok(Ok(()));
            }
            // Under lock 0, and under a mark without frames, it may be restarted once.
            Held::Zero | Held::Mark(0) => {
                // What was held tells most of what the pages were before.
                let proven = self.advance_unchanged(&tip, spool, each_commit)?;
                return match proven {
                    Ok(()) => self.renew(Cover::Lock, spool, each_commit),
                    Err(_) => Ok(proven),
                };
            }
        };
        let look = Look {
            mark,
            frames: tip.position.frame,
            backfilled,
            is_due,
        };
        let advice = self.pace.advise(look, now);
        let unread = tip.position.frame.saturating_sub(self.position.frame);
        let is_changing = matches!(advice, Advice::Zero | Advice::LetGo | Advice::Renew);
        if is_due || is_changing || unread >= UNREAD_MAX || tip.position.frame < self.position.frame
        {
            let proven = self.advance(&tip, Cover::Lock, spool, each_commit)?;
            if proven.is_err() {
                return Ok(proven);
            }
        }
        match advice {
            Advice::Keep => Ok(Ok(())),
            Advice::Renew => self.renew(Cover::Lock, spool, each_commit),
            Advice::Zero => {
                let position = self.position;
                if self.holder.zero(&position)? && !self.is_copied()? {
                    return Ok(Err(Doubt::FileChanged));
                }
                Ok(Ok(()))
            }
            Advice::LetGo => self.let_go(spool, each_commit, status),
        }
    }

    /// Reads up to the tip, if the database file is as it was when nothing could be copied into it any more.
    fn advance_unchanged(
        &mut self,
        tip: &Tip,
        spool: &mut SpoolWriter,
        each_commit: bool,
    ) -> Result<Proven, Error> {
        match self.holder.is_changed() {
            true => Ok(Err(Doubt::FileChanged)),
            false => self.advance(tip, Cover::Lock, spool, each_commit),
        }
    }

    /// Takes a mark at the newest commit and reads up to it.
    pub(super) fn renew(
        &mut self,
        cover: Cover,
        spool: &mut SpoolWriter,
        each_commit: bool,
    ) -> Result<Proven, Error> {
        let tip = self.holder.mark()?;
        if self.holder.is_changed() {
            return Ok(Err(Doubt::FileChanged));
        }
        self.newest = tip;
        self.advance(&tip, cover, spool, each_commit)
    }

    /// Whether the database file is as it was when nothing could be copied into it any more.
    pub(super) fn is_unchanged(&mut self) -> Result<bool, Error> {
        if self.holder.is_changed() {
            return Ok(false);
        }
        match self.holder.frozen().is_some_and(|frozen| frozen.is_due()) {
            true => self.is_copied(),
            false => Ok(true),
        }
    }

    /// Whether the file has the last frames of the log, all of which are copied. So it is not one that was put in the
    /// place of the database after they were.
    fn is_copied(&mut self) -> Result<bool, Error> {
        let (shape, last) = (self.newest.shape(), self.newest.position.frame);
        let page_count = self.newest.page_count;
        let Some(frozen) = self.holder.frozen() else {
            return Ok(true);
        };
        let known = self.begun_at.salt == shape.salt;
        let first = if known { self.begun_at.frame + 1 } else { 1 };
        let is_copied = (self.log).is_in(frozen.file(), &shape, first..=last, page_count)?;
        frozen.is_looked_at();
        // Frames that are being overwritten say nothing: the log was restarted meanwhile.
        let is_same = |(tip, _): (Tip, u32)| tip.position.salt == shape.salt;
        Ok(is_copied || !self.holder.look().is_some_and(is_same))
    }

    /// Reads up to the tip, which is held now.
    pub(super) fn advance(
        &mut self,
        tip: &Tip,
        cover: Cover,
        spool: &mut SpoolWriter,
        each_commit: bool,
    ) -> Result<Proven, Error> {
        let now = now_us();
        // Without salts, and without a lock, only what the file system says tells one state from another.
        let is_named = !self.position.is_before_all()
            || cover == Cover::Lock
            || !tip.position.is_unknown() && tip.position.is_same_state(&self.position);
        if tip.position.salt == self.position.salt && is_named {
            let proven = self.same_generation(tip, spool, each_commit)?;
            if proven.is_ok() {
                self.read_us = now;
            }
            return Ok(proven);
        }
        let tail = match prove(&mut self.log, &self.position, tip, cover)? {
            Ok(tail) => tail,
            Err(doubt) => return Ok(Err(doubt)),
        };
        self.changes.open();
        let old = self.position.salt;
        for frame in tail.frames() {
            self.changes.take(old, &frame, None, spool)?;
        }
        self.position = WalPosition {
            frame: 0,
            ..tip.position
        };
        let proven = self.same_generation(tip, spool, each_commit)?;
        if proven.is_ok() {
            self.read_us = now;
        }
        Ok(proven)
    }

    /// Reads frames behind the position in the generation of the tip.
    fn same_generation(
        &mut self,
        tip: &Tip,
        spool: &mut SpoolWriter,
        each_commit: bool,
    ) -> Result<Proven, Error> {
        let (from, to) = (self.position, tip.position);
        if to.is_before_all() {
            return Ok(Ok(()));
        }
        if to.frame < from.frame {
            return Ok(Err(Doubt::WentBack));
        }
        if to.frame > from.frame {
            let shape = tip.shape();
            let Some(chain) = self.log.resume(&from, &shape)? else {
                return Ok(Err(Doubt::Broken { frame: from.frame }));
            };
            // Without a hold, frames may be overwritten while they are read.
            let copied_max = self.holder.copied_max(shape.salt);
            let Self {
                log,
                changes,
                versions,
                read_us,
                ..
            } = self;
            changes.open();
            versions.begin(shape.salt, from.frame);
            let time_us = now_us().max(*read_us);
            let end = log.frames(&shape, chain, to.frame, &mut |frame| {
                let before = match copied_max {
                    Some(copied_max) if changes.wants_before(frame.page) => {
                        versions.before(&shape, &frame, copied_max)
                    }
                    _ => None,
                };
                changes.take(shape.salt, &frame, before, spool)?;
                versions.note(&frame);
                let is_much = changes.content_bytes() >= spool.moment_bytes();
                if (each_commit || is_much) && frame.commit_pages > 0 {
                    let at = WalPosition {
                        salt: shape.salt,
                        frame: frame.number,
                        checksum: frame.checksum,
                        // Only the last one is counted; a position in between proves less.
                        commits: match frame.number == to.frame {
                            true => to.commits,
                            false => 0,
                        },
                    };
                    changes.write(at, time_us, spool)?;
                }
                if is_much && frame.commit_pages > 0 {
                    // It is a commit of this history, whatever follows.
                    spool.sync()?;
                    spool.roll()?;
                }
                Ok(true)
            })?;
            if (end.frame, end.checksum) != (to.frame, to.checksum) {
                let frame = end.frame.saturating_add(1);
                return Ok(Err(Doubt::Broken { frame }));
            }
        } else if !to.is_same_state(&from) {
            return Ok(Err(Doubt::Broken { frame: to.frame }));
        }
        self.changes.close();
        self.position = to;
        Ok(Ok(()))
    }

    /// Gives up what was read behind `position`, to read it again: under a mark in the generation of the position, where
    /// all of it stays. Whether that is so.
    pub(super) fn rewind(&mut self, position: WalPosition) -> Result<bool, Error> {
        let is_marked = matches!(self.holder.held(), Held::Mark(_));
        let tip = match is_marked {
            true => self.newest,
            false => self.holder.mark()?,
        };
        self.newest = tip;
        if position.is_before_all() || tip.position.salt != position.salt {
            return Ok(false);
        }
        self.position = position;
        self.changes = Changes::since(position, 0);
        self.versions.forget();
        Ok(true)
    }

    /// Makes what was read durable, as one moment.
    pub(super) fn flush(
        &mut self,
        spool: &mut SpoolWriter,
        status: &mut FollowStatus,
    ) -> Result<(), Error> {
        let time_us = self.read_us.max(spool.state().time_us);
        if !self.changes.is_empty() {
            self.changes.write(self.position, time_us, spool)?;
        } else if !spool.written_position().is_same_state(&self.position) {
            // Another generation, without commits.
            spool.seen(self.position, time_us)?;
            self.changes.restart(self.position);
        }
        if spool.is_ahead() {
            spool.sync()?;
            status.moments += 1;
            spool.roll()?;
        }
        Ok(())
    }

    /// Notes that nothing else was committed until now, if that is so.
    pub(super) fn seen(&mut self, spool: &mut SpoolWriter) -> Result<(), Error> {
        let before = now_us();
        let spooled = spool.state().position;
        let is_all = |tip: &Tip| match tip.position.is_before_all() {
            true => spooled.is_before_all(),
            false => tip.position.is_same_state(&spooled),
        };
        let newest = self.holder.look().map(|(tip, _)| tip);
        let is_held = self.holder.held() != Held::Nothing
            && !self.holder.has_moved()
            && !self.holder.is_changed();
        if is_held && self.changes.is_empty() && newest.as_ref().is_some_and(is_all) {
            let time_us = before.max(spool.state().time_us);
            spool.seen(self.position, time_us)?;
        }
        Ok(())
    }
}
