//! Holds nothing for a while, so that the log can be restarted.

use std::time::{Duration, Instant};

use super::super::hold::{Held, Tip};
use super::super::proof::{Cover, Doubt};
use super::{FollowStatus, Proven, Reading, UNREAD_MAX};
use crate::Error;
use crate::sqlite::spool::SpoolWriter;

/// Frames behind the position with which the log may be let go, and how often to try to come closer.
const CLOSE: u32 = 32;
const APPROACHES: u32 = 32;
/// How long nothing is held at most, and how often the log is looked at meanwhile.
const WINDOW: Duration = Duration::from_millis(100);
const WINDOW_LOOK: Duration = Duration::from_micros(100);

impl Reading {
    /// Holds nothing until the log was restarted, or all of it is in the database, or nothing happens.
    pub(super) fn let_go(
        &mut self,
        spool: &mut SpoolWriter,
        each_commit: bool,
        status: &mut FollowStatus,
    ) -> Result<Proven, Error> {
        for _ in 0..APPROACHES {
            let Some((tip, _)) = self.holder.look() else {
                break;
            };
            if tip.position.frame.saturating_sub(self.position.frame) <= CLOSE {
                break;
            }
            let proven = self.advance(&tip, Cover::Lock, spool, each_commit)?;
            if proven.is_err() {
                return Ok(proven);
            }
        }
        let salt = self.position.salt;
        self.holder.let_go()?;
        status.let_goes += 1;
        let begun = Instant::now();
        let mut copied = None;
        // Whether the index may have been recovered: a writer that dies leaves a header that cannot be read.
        let mut cover = Cover::None;
        while begun.elapsed() < WINDOW {
            match self.holder.look() {
                Some((tip, _)) if tip.position.salt != salt => break,
                // The restart may come under lock 0, which the checkpoint keeps for a moment after its last frame. A
                // mark in its place would keep the log from being restarted.
                Some((tip, backfilled))
                    if backfilled == tip.position.frame && self.holder.zero(&tip.position)? =>
                {
                    copied = Some(tip);
                    break;
                }
                Some(_) => {}
                None => cover = Cover::Absent,
            }
            std::thread::sleep(WINDOW_LOOK);
        }
        let is_in_vain = copied.is_none()
            && self
                .holder
                .look()
                .is_none_or(|(tip, _)| tip.position.salt == salt);
        if is_in_vain {
            let until = Instant::now().checked_add(self.pace.loose());
            self.loose = until.map(|until| (until, cover));
            return Ok(Ok(()));
        }
        let proven = match copied {
            Some(tip) => {
                self.newest = tip;
                match self.is_copied()? {
                    true => self.advance(&tip, cover, spool, each_commit)?,
                    false => Err(Doubt::FileChanged),
                }
            }
            None => self.renew(cover, spool, each_commit)?,
        };
        self.let_go_ended(salt, &proven, status);
        Ok(proven)
    }

    /// One look while nothing is held for longer: the application checkpoints by a timer, and every frame is in the
    /// database only right after that. Commits are read as always.
    pub(super) fn await_restart(
        &mut self,
        ((tip, backfilled), cover, is_over): ((Tip, u32), Cover, bool),
        is_due: bool,
        spool: &mut SpoolWriter,
        each_commit: bool,
        status: &mut FollowStatus,
    ) -> Result<Proven, Error> {
        let salt = self.position.salt;
        let is_restarted = tip.position.salt != salt;
        let is_zero =
            !is_restarted && backfilled == tip.position.frame && self.holder.zero(&tip.position)?;
        if is_zero {
            self.loose = None;
            let proven = match self.is_copied()? {
                true => self.advance(&tip, cover, spool, each_commit)?,
                false => Err(Doubt::FileChanged),
            };
            self.let_go_ended(salt, &proven, status);
            return Ok(proven);
        }
        if is_restarted || is_over {
            self.loose = None;
            let proven = self.renew(cover, spool, each_commit)?;
            self.let_go_ended(salt, &proven, status);
            return Ok(proven);
        }
        let unread = tip.position.frame.saturating_sub(self.position.frame);
        match is_due || unread >= UNREAD_MAX {
            true => self.advance(&tip, Cover::Lock, spool, each_commit),
            false => Ok(Ok(())),
        }
    }

    fn let_go_ended(&mut self, salt: [u8; 8], proven: &Proven, status: &mut FollowStatus) {
        if proven.is_err() {
            return;
        }
        status.proofs += 1;
        match self.newest.position.salt == salt && self.holder.held() != Held::Zero {
            true => self.pace.in_vain(Instant::now()),
            false => self.pace.succeeded(),
        }
    }
}
