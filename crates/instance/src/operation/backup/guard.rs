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
use windlass_media::{SetConfiguration, SetType};
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
        let chain = self.chain(own)?;
        Ok(Guard::new(move |device, sets| {
            let needed = chain.needed(sets)?;
            let position = needed.configuration.position;
            Some(table::chain_on_target(&name, device, position))
        }))
    }

    /// The chain of the database, as far as the history knows it.
    fn chain(&self, own: Option<Provenance>) -> Result<Chain, Failure> {
        let family = self.record.family_guid;
        let family = family.or(own.as_ref().map(|own| own.family_guid));
        let mut chain = Chain {
            own,
            family,
            ..Chain::default()
        };
        let past = self.session.instance.catalog().past_backups(None)?;
        let own = past.iter().filter(|past| chain.is_own(&past.of));
        let own: Vec<&PastBackup> = own.collect();
        // Under another name, or in another folder, it has the same chain.
        let mut full = own
            .iter()
            .rev()
            .filter(|past| past.kind == "D" && !past.is_copy_only);
        let known = self.session.base_of(&self.record)?;
        chain.base = known.map(|base| base.set_guid);
        chain.base = chain.base.or(full.next().and_then(|past| past.set_guid));
        let base = own.iter().find(|past| past.set_guid == chain.base);
        chain.base_end = base.and_then(|base| base.last_lsn);
        let fork = base.and_then(|base| base.recovery_fork);
        let mut looker = Looker::asking(&self.session.instance)?;
        let mut is_there = |past: &PastBackup| {
            let is_whole = !past.is_overwritten && !past.is_damaged;
            is_whole && looker.look(past) == Presence::There
        };
        let of_fork = own
            .iter()
            .filter(|past| past.kind != "L" && past.recovery_fork == fork);
        let there: Vec<&&PastBackup> = of_fork.filter(|past| is_there(past)).collect();
        let has = |set_guid| there.iter().any(|past| past.set_guid == set_guid);
        let starts = there
            .iter()
            .filter(|past| past.kind == "D" || has(past.base_guid));
        chain.starts = starts
            .filter_map(|past| past.set_guid.zip(past.last_lsn))
            .collect();
        Ok(chain)
    }
}

/// What leads to the newest log backups of a database.
#[derive(Debug, Default)]
struct Chain {
    own: Option<Provenance>,
    family: Option<Guid>,
    /// The newest full backup that is not a copy.
    base: Option<Guid>,
    base_end: Option<Lsn>,
    /// Full backups that are there, and differentials whose base is, with their ends: logs lead on from each.
    starts: Vec<(Guid, Lsn)>,
}

impl Chain {
    fn is_own(&self, of: &Provenance) -> bool {
        let is_same = |own: &Provenance| of.is_same_database(own);
        self.family.is_some_and(|family| family == of.family_guid)
            || self.own.as_ref().is_some_and(is_same)
    }

    /// The first of the sets on a medium without which less can be restored.
    fn needed<'s>(&self, sets: &'s [SetEntry]) -> Option<&'s SetEntry> {
        let elsewhere = self.starts.iter().filter(|(set, _)| !holds(sets, *set));
        let ends: Vec<Lsn> = elsewhere.map(|(_, end)| *end).collect();
        sets.iter().find(|set| {
            let is_own = set.is_complete && self.is_own(&of_set(&set.configuration));
            is_own && self.is_needed(&set.configuration, &ends)
        })
    }

    /// Whether it is needed, beside what ends at `ends` elsewhere.
    fn is_needed(&self, of: &SetConfiguration, ends: &[Lsn]) -> bool {
        if Some(of.set_guid) == self.base {
            return true;
        }
        if ends.iter().any(|end| *end >= of.last_lsn) {
            return false;
        }
        match of.set_type {
            SetType::Log if of.is_copy_only => false,
            // It follows what begins before it, if that is anywhere.
            SetType::Log => {
                let mut begins = ends.iter().chain(&self.base_end);
                begins.any(|end| of.last_lsn > *end)
            }
            // What it says can be reached from the others, with the logs.
            _ if of.is_copy_only => ends.is_empty(),
            SetType::Full | SetType::Differential => true,
        }
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
