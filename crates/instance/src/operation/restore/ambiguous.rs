//! Media on which nobody can tell which state is the newest, or of which database: nothing is restored from them without a
//! choice.

use windlass_base::message::table;
use windlass_catalog::Provenance;
use windlass_catalog::provenance::databases;

use super::inventory::Inventory;
use crate::Failure;
use crate::chain::{rivals, unsurpassed};
use crate::provenance::of_set;
use crate::retention::Now;

impl Inventory {
    /// The newest by its date is not the newest state if its clock was wrong. What others continue is older than these, whatever
    /// its date.
    pub(super) fn refuse_future(&self, meant: &[usize]) -> Result<(), Failure> {
        let now = Now::here().utc;
        let meant = &unsurpassed(&self.chain, meant);
        let is_future = |index: &&usize| {
            let times = self.chain[**index].times;
            times.is_some_and(|times| times.is_future(now))
        };
        let Some(future) = meant.iter().find(is_future) else {
            return Ok(());
        };
        if meant.iter().all(|index| is_future(&index)) {
            return Ok(());
        }
        let set = &self.found[*future].set;
        let started = set.started.map_or_else(String::new, |at| at.to_string());
        let held = format!("set {} of '{}'", set.position, set.database);
        Err(table::set_dated_in_future(held, started).into())
    }

    /// Where dates and log contradict each other, nobody knows which state is the newest.
    pub(super) fn refuse_rivals(&self, meant: &[usize]) -> Result<(), Failure> {
        let newest = self.newest_of(meant.iter().copied());
        newest.map_or(Ok(()), |newest| self.refuse_rivals_of(newest, meant))
    }

    /// The same of a state that was chosen: some of the sets may be of no use for it.
    pub(super) fn refuse_rivals_of(&self, newest: usize, meant: &[usize]) -> Result<(), Failure> {
        let Some(rival) = rivals(&self.chain, newest, meant).next() else {
            return Ok(());
        };
        let (one, other) = (self.name_of(rival), self.name_of(newest));
        Err(table::order_contradicted(one, other).into())
    }

    /// Several databases can have one name: the newest state of one must not pass for that of another. A full backup
    /// that is only named as the base of another one's differential is none of its own.
    pub(super) fn refuse_strangers(&self, name: &str, meant: &[usize]) -> Result<(), Failure> {
        let of: Vec<Provenance> = meant
            .iter()
            .map(|index| of_set(&self.found[*index].set))
            .collect();
        let groups = databases(&of);
        let is_base = |index: usize, own: &[usize]| {
            let mut others = (0..meant.len()).filter(|other| !own.contains(other));
            let set = &self.chain[meant[index]];
            others.any(|other| set.is_base_of(&self.chain[meant[other]]))
        };
        let own = groups
            .iter()
            .filter(|own| !own.iter().all(|index| is_base(*index, own)));
        let own: Vec<&Vec<usize>> = own.collect();
        if own.len() < 2 {
            return Ok(());
        }
        let held = own.into_iter().map(|own| {
            let last = &of[own[own.len() - 1]];
            let (path, machine, file) = (&last.path, &last.machine, last.file());
            let positions = own
                .iter()
                .map(|index| self.found[meant[*index]].set.position);
            let positions: Vec<String> = positions.map(|position| position.to_string()).collect();
            format!(
                "'{path}' on {machine}, {file} (set {})",
                positions.join(", ")
            )
        });
        let held: Vec<String> = held.collect();
        Err(table::several_of_one_name(name, held.join(", ")).into())
    }
}
