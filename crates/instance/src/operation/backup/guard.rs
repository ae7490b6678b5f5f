//! What a backup must not overwrite, although its options say that it may overwrite:
//!
//! | backup | sets |
//! |---|---|
//! | differential | the full backup that it counts from |
//! | log | what a restore of it needs: the newest full backup, and the log backups since the newest full or differential one elsewhere |
//! | of many databases | those of other databases: two folders can have files of one name, and the name of the medium is made from it |
//!
//! The sets are looked at when the backup holds the medium that it will replace, so that nothing comes in between.

use windlass_base::message::table;
use windlass_base::{Guid, Lsn};
use windlass_catalog::{PastBackup, Provenance};
use windlass_pipeline::{BackupKind, Guard, MediaRequest, Overwrite, SetEntry};

use super::BackupOperation;
use crate::Failure;
use crate::presence::{Looker, Presence};
use crate::provenance::of_set;

/// Refuses to overwrite the base of a differential: it could never be restored.
pub(super) fn of_base(base: Guid, database: &str) -> Guard {
    let database = database.to_owned();
    Guard::new(move |device, sets| {
        holds(sets, base).then(|| table::base_on_target(&database, device))
    })
}

fn holds(sets: &[SetEntry], set_guid: Guid) -> bool {
    sets.iter()
        .any(|set| set.configuration.set_guid == set_guid)
}

impl BackupOperation<'_> {
    pub(super) fn guards(
        &self,
        media: &MediaRequest,
        kind: &BackupKind,
    ) -> Result<Vec<Guard>, Failure> {
        if media.overwrite == Overwrite::Append || media.is_discarded() {
            return Ok(Vec::new());
        }
        let own = self.session.provenance_of(&self.record);
        let mut guards = Vec::new();
        match kind {
            BackupKind::Full => {}
            BackupKind::Differential(base) => {
                guards.push(of_base(base.set_guid, &self.record.name));
            }
            BackupKind::Log => guards.push(self.of_chain(own.clone())?),
        }
        if let (true, Some(own)) = (self.options.keeps_others, own) {
            guards.push(of_others(own));
        }
        Ok(guards)
    }

    /// Refuses to overwrite what a restore of this log backup needs.
    fn of_chain(&self, own: Option<Provenance>) -> Result<Guard, Failure> {
        let name = self.record.name.clone();
        let base = self.session.base_of(&self.record)?;
        let base = base.map(|base| base.set_guid);
        let starts = match base {
            Some(base) => self.starts(base)?,
            None => Vec::new(),
        };
        let is_own = move |set: &SetEntry| match &own {
            Some(own) => of_set(&set.configuration).is_same_database(own),
            None => true,
        };
        Ok(Guard::new(move |device, sets| {
            let elsewhere = starts.iter().filter(|(set, _)| !holds(sets, *set));
            let from = elsewhere.map(|(_, end)| *end).max();
            let needed = sets.iter().find(|set| {
                let of = &set.configuration;
                let is_since = from.is_none_or(|from| of.last_lsn > from);
                set.is_complete && is_own(set) && (is_since || Some(of.set_guid) == base)
            });
            needed.map(|set| table::chain_on_target(&name, device, set.configuration.position))
        }))
    }

    /// From where logs lead on: the full backup `base` and the differentials that count from it, as far as they are
    /// there, with their ends.
    fn starts(&self, base: Guid) -> Result<Vec<(Guid, Lsn)>, Failure> {
        let mut looker = Looker::asking(&self.session.instance)?;
        let past = self.session.instance.catalog().past_backups(None)?;
        let leads = |past: &&PastBackup| {
            let is_of_base = past.set_guid == Some(base) || past.base_guid == Some(base);
            is_of_base && !past.is_overwritten && !past.is_damaged
        };
        let there = past.iter().filter(leads);
        let there = there.filter(|past| looker.look(past) == Presence::There);
        Ok(there
            .filter_map(|past| past.set_guid.zip(past.last_lsn))
            .collect())
    }
}

/// Refuses to overwrite backups of other databases than `own`.
fn of_others(own: Provenance) -> Guard {
    Guard::new(move |device, sets| {
        let held = sets.iter().map(|set| of_set(&set.configuration));
        let other = held.into_iter().find(|of| {
            !of.is_same_database(&own) && (&of.path, &of.machine) != (&own.path, &own.machine)
        })?;
        let held = format!("'{}' ('{}' on {})", other.name, other.path, other.machine);
        Some(table::medium_of_another(device, held, &own.name))
    })
}
