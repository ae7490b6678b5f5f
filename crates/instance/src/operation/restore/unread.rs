//! Log backups of which only the log tells what they continue, and which others continue them.

use std::collections::BTreeMap;
use std::ops::Bound::Excluded;

use windlass_base::{Guid, Lsn};
use windlass_crypt::KeyRing;
use windlass_media::SetType;

use super::Step;
use super::aim::Aim;
use super::inventory::{Found, Inventory};
use super::newest::{Newest, NewestRequest};
use crate::chain::{ChainSet, Within};
use crate::{Failure, Session};

impl Inventory {
    /// Reads a log backup of a plan, if only its log tells whether it continues the set before it; whether there was one.
    ///
    /// # Errors
    /// If there is no place here for the log.
    pub(super) fn read_log_of(
        &mut self,
        plan: &Newest,
        session: &mut Session,
        keys: &KeyRing,
    ) -> Result<bool, Failure> {
        let of = |step: &Step| {
            let mut sets = self.chain.iter();
            sets.position(|set| set.set_guid == step.set.set_guid)
        };
        let mut steps = plan.steps.windows(2);
        let log = steps.find_map(|steps| {
            let (state, log) = (of(&steps[0])?, of(&steps[1])?);
            let is_unread = self.chain[log].is_unread_for([&self.chain[state]]);
            is_unread.then_some(log)
        });
        if let Some(log) = log {
            self.read_log(log, session, keys)?;
        }
        Ok(log.is_some())
    }

    /// Reads the log backups within which others end, or the state that is reached: only their log tells which of them are
    /// of one history.
    ///
    /// # Errors
    /// As [`Inventory::read_log_of`].
    pub(super) fn read_logs_around_others(
        &mut self,
        session: &mut Session,
        request: &NewestRequest<'_>,
    ) -> Result<(), Failure> {
        match request.aim {
            // Of the newest state, their dates tell it.
            Aim::Newest => return Ok(()),
            Aim::Onward(reached, _) => self.reached = reached.map(Self::state_of),
            Aim::At(_) | Aim::Before(_) | Aim::Any(_) => {}
        }
        let end = |set: &ChainSet, lsn: Lsn| (set.family_guid, set.fork, lsn);
        let logs = || (0..self.chain.len()).filter(|index| self.chain[*index].kind == SetType::Log);
        let mut ends: BTreeMap<(Guid, Guid, Lsn), Vec<&ChainSet>> = BTreeMap::new();
        for set in logs().map(|log| &self.chain[log]).chain(&self.reached) {
            let at = ends.entry(end(set, set.last_lsn));
            at.or_default().push(set);
        }
        let is_around = |index: &usize| {
            let log = &self.chain[*index];
            let (first, last) = (end(log, log.first_lsn), end(log, log.last_lsn));
            let mut others = match first < last {
                true => ends.range((Excluded(first), Excluded(last))),
                false => ends.range(first..first),
            };
            log.obstacle.is_none()
                && others.any(|(_, at)| {
                    let at = at.iter().copied();
                    log.is_unread_for(at)
                })
        };
        let around: Vec<usize> = logs().filter(is_around).collect();
        for log in around {
            // A copy of it may have been read meanwhile.
            if self.chain[log].within == Within::Unread {
                self.read_log(log, session, request.keys)?;
            }
        }
        Ok(())
    }

    /// Reads the log of a log backup, as far as states end in it.
    fn read_log(
        &mut self,
        log: usize,
        session: &mut Session,
        keys: &KeyRing,
    ) -> Result<(), Failure> {
        let Found { media, set } = &self.found[log];
        let devices = self.devices[*media].clone();
        let states = self.chain.iter().chain(&self.reached);
        let ends = self.chain[log].ends_within(states);
        let within = session.log_within(devices, set.position.into(), keys, &ends)?;
        let guid = set.set_guid;
        let copies = self.chain.iter_mut().filter(|set| set.set_guid == guid);
        for set in copies {
            set.within = within.clone();
        }
        Ok(())
    }
}
