//! Reads log backups to see which states lie in their log: the headers tell it of their first and last LSNs only.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use windlass_base::Lsn;
use windlass_crypt::KeyRing;
use windlass_device::DeviceAddress;
use windlass_pipeline::{Observer, OnDamage, ReadRequest, Tuning, verify_content};
use windlass_source::engine::LogVerification;

use super::media::{MediaOptions, OpenedSet};
use crate::chain::Within;
use crate::{Failure, Session};

/// Stops reading as soon as everything is known.
struct Until<'a> {
    log: &'a LogVerification,
    cancel: &'a AtomicBool,
}

impl Observer for Until<'_> {
    fn is_cancelled(&self) -> bool {
        self.log.knows_before() || self.cancel.load(Ordering::Relaxed)
    }
}

impl Session {
    /// Reads a log backup up to the last of some LSNs within it.
    pub(crate) fn log_within(
        &mut self,
        devices: Vec<DeviceAddress>,
        position: usize,
        keys: &KeyRing,
        lsns: &[Lsn],
    ) -> Within {
        let before = self.log_before(devices, position, keys, lsns);
        match before {
            Ok(Some(before)) => Within::Before(before),
            // What is wrong with it, its verification or restore says.
            Ok(None) | Err(_) => Within::Unreadable,
        }
    }

    fn log_before(
        &mut self,
        devices: Vec<DeviceAddress>,
        position: usize,
        keys: &KeyRing,
        lsns: &[Lsn],
    ) -> Result<Option<BTreeMap<Lsn, Option<u64>>>, Failure> {
        let options = MediaOptions {
            position: i64::try_from(position).ok(),
            ..MediaOptions::default()
        };
        let opened = OpenedSet::open(self, devices, &options)?;
        let lsns = lsns.iter().copied();
        let Some(log) = LogVerification::of(&opened.set.source_description, lsns)? else {
            return Ok(None);
        };
        let request = ReadRequest {
            keys: opened.keys(self, keys)?,
            on_damage: OnDamage::Stop,
            tuning: Tuning::default(),
        };
        let cancel = self.cancel_flag();
        let until = Until {
            log: &log,
            cancel: &cancel,
        };
        let read = verify_content(&opened.media, opened.position, &request, &log, &until);
        match read {
            Ok(_) => {}
            Err(_) if log.knows_before() => {}
            Err(error) => return Err(error.into()),
        }
        Ok(Some(log.before()))
    }
}
