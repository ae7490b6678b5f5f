//! Object lock: what a store does not delete yet, and what newer backups need for longer.

use std::collections::BTreeMap;

use windlass_base::message::table;
use windlass_device::{DeviceAddress, Locked};

use crate::Sink;
use crate::chain::Chains;
use crate::retention::{self, Decision, FoundMedia};

/// Locks, each asked for once.
#[derive(Debug, Default)]
pub(super) struct Locks {
    known: BTreeMap<String, Result<Option<Locked>, String>>,
}

impl Locks {
    fn of(&mut self, device: &DeviceAddress) -> &Result<Option<Locked>, String> {
        let known = self.known.entry(device.name.clone());
        known.or_insert_with(|| device.locked().map_err(|error| error.to_string()))
    }

    /// The lock of a medium that ends last.
    fn latest(&mut self, media: &FoundMedia) -> Option<Locked> {
        if media.unseen.is_some() {
            return None;
        }
        let locks = objects(media).filter_map(|device| self.of(device).clone().ok().flatten());
        locks.max_by_key(|lock| lock.retention.map(|(_, until)| until))
    }

    /// Keeps media of which an object is locked, or may be.
    pub(super) fn keep(&mut self, media: &[FoundMedia], decisions: &mut [Decision]) {
        let all = media.iter().zip(decisions);
        for (media, decision) in all.filter(|(_, decision)| decision.goes) {
            let reason = objects(media).find_map(|device| match self.of(device) {
                Ok(None) => None,
                Ok(Some(locked)) => Some(format!("'{device}' is {locked}")),
                Err(error) => Some(format!(
                    "whether '{device}' is locked could not be asked: {error}"
                )),
            });
            if let Some(reason) = reason {
                decision.keep(reason);
            }
        }
    }

    /// Retains what locked backups are based on as long as these.
    pub(super) fn extend(&mut self, media: &[FoundMedia], sink: &mut dyn Sink) {
        let (places, sets) = retention::chain_sets(media);
        let chains = Chains::of(&sets);
        // From the newest to the oldest, so that what is extended counts for what it is based on.
        let mut order: Vec<usize> = (0..sets.len()).collect();
        order.sort_by_key(|index| std::cmp::Reverse(sets[*index].last_lsn));
        for index in order {
            let Some(base) = chains.before(index) else {
                continue;
            };
            let (own, base) = (places[index].0, places[base].0);
            if own == base {
                continue;
            }
            let Some((mode, until)) = self.latest(&media[own]).and_then(|lock| lock.retention)
            else {
                continue;
            };
            for device in objects(&media[base]) {
                let has = self.of(device).as_ref().ok().copied().flatten();
                let retention = has.and_then(|lock| lock.retention);
                if retention.is_some_and(|(_, has)| has >= until) {
                    continue;
                }
                let kept = retention.map_or(mode, |(mode, _)| mode);
                match device.retain(kept, until) {
                    Ok(()) => {
                        let lock = Locked {
                            retention: Some((kept, until)),
                            legal_hold: has.is_some_and(|lock| lock.legal_hold),
                        };
                        sink.message(table::lock_extended(device, lock));
                        self.known.insert(device.name.clone(), Ok(Some(lock)));
                    }
                    Err(error) => sink.message(table::lock_not_extended(device, error)),
                }
            }
        }
    }
}

fn objects(media: &FoundMedia) -> impl Iterator<Item = &DeviceAddress> {
    let devices = media.files.iter().map(|file| &file.device);
    devices.filter(|device| device.is_object())
}
