//! Log backups that a plan depends on, and of which only the log tells what they continue.

use windlass_crypt::KeyRing;

use super::newest::{Found, Inventory, Newest, Step};
use crate::Session;
use crate::chain::Within;

impl Inventory {
    /// A log backup of a plan that has to be read, because only its log tells whether it continues the set before it.
    pub(super) fn unread_log(&self, plan: &Newest) -> Option<usize> {
        let of = |step: &Step| {
            let mut sets = self.chain.iter();
            sets.position(|set| set.set_guid == step.set.set_guid)
        };
        let mut steps = plan.steps.windows(2);
        steps.find_map(|steps| {
            let (state, log) = (of(&steps[0])?, of(&steps[1])?);
            let is_unread = self.chain[log].within == Within::Unread;
            let is_needed = self.chain[log].must_be_read_for(&self.chain[state]);
            (is_unread && is_needed).then_some(log)
        })
    }

    /// Reads the log of a log backup, as far as states end in it.
    pub(super) fn read_log(&mut self, log: usize, session: &mut Session, keys: &KeyRing) {
        let Found { media, set } = &self.found[log];
        let devices = self.devices[*media].clone();
        let lsns = self.chain[log].lsns_within(&self.chain);
        let within = session.log_within(devices, set.position.into(), keys, &lsns);
        let guid = set.set_guid;
        let copies = self.chain.iter_mut().filter(|set| set.set_guid == guid);
        for set in copies {
            set.within = within.clone();
        }
    }
}
