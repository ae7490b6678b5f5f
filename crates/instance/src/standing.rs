//! The restorability of each database in a history: the newest state that can be restored now, from
//! which backups, and which newer backups are lost.

use std::collections::BTreeMap;

use windlass_base::Moment;
use windlass_catalog::provenance::{databases, distinct_names};
use windlass_catalog::{DatabaseRecord, KnownDamage, PastBackup, Provenance};

use crate::chain::{ChainSet, Chains, Obstacle, is_newer, rivals, settle_dates};
use crate::damage::place as path_of;
use crate::presence::{Looker, Presence};
use crate::provenance::of_record;
use crate::retention::Now;

/// A database and its backups.
#[derive(Debug)]
pub struct Standing<'a> {
    /// Its name in the newest backup.
    pub database: &'a str,
    /// All its backups, the oldest first; for each, whether it could have been restored before its media
    /// were lost, and if not, why.
    pub backups: Vec<(&'a PastBackup, Result<(), String>)>,
    /// The backups that are dated in the future: they prove nothing about the time before now.
    pub ahead: Vec<&'a PastBackup>,
    /// The backups to restore for the newest of the other states that is restorable now, in order; empty if
    /// there is none.
    pub state: Vec<&'a PastBackup>,
    /// Newer backups that cannot be restored, with the reasons.
    pub lost: Vec<(&'a PastBackup, String)>,
    /// The newest of these of which a verification or restore has found the media damaged, and its message.
    pub damaged: Option<(&'a PastBackup, u32)>,
    /// Backups of `state` whose media could not be examined, with the reasons.
    pub unseen: Vec<(&'a PastBackup, String)>,
    /// Backups of which neither can be called newer than the newest: their dates contradict their log.
    pub rivals: Vec<&'a PastBackup>,
    /// What is known to be damaged in the database itself.
    pub ill: Option<KnownDamage>,
}

/// Whether the newest state of a database can be restored now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Restorable<'s> {
    Yes,
    /// Some of its media cannot be examined; the reason for the first of them.
    Unknown(&'s str),
    No,
}

impl<'a> Standing<'a> {
    /// What may be said of the newest state. All outputs that call a database kept use this.
    pub fn restorable(&self) -> Restorable<'_> {
        match (self.newest(), self.unseen.first()) {
            (None, _) => Restorable::No,
            (Some(_), Some((_, why))) => Restorable::Unknown(why),
            (Some(_), None) => Restorable::Yes,
        }
    }

    /// Whether the database is not registered, but backed up by its path.
    pub fn is_by_path(&self) -> bool {
        let last = self.backups.last();
        last.is_some_and(|(backup, _)| backup.is_by_path)
    }

    /// The path of its first file in the newest backup.
    pub fn path(&self) -> &'a str {
        let last = self.backups.last();
        last.map_or("", |(backup, _)| backup.of.path.as_str())
    }

    /// The backup with the newest state whose media are not missing, of those that are not dated in the future; whether they can be examined says
    /// [`Standing::restorable`].
    pub fn newest(&self) -> Option<&'a PastBackup> {
        self.state.last().copied()
    }
}

/// Converts the times of a history to the time zone of now: ages and gaps are counted from them.
pub fn in_zone_of_now(past: &mut [PastBackup]) {
    let (_, zone) = Moment::now();
    for backup in past {
        backup.set_time_zone(i32::from(zone));
    }
}

/// Gives the databases in a history names that differ. A registered database keeps its name; a copy of it, or
/// another database that had its name, gets a longer one, so that it does not count for it.
pub fn tell_apart(past: &mut [PastBackup], registered: &[DatabaseRecord], machine: &str) {
    let records = registered
        .iter()
        .filter_map(|record| of_record(record, machine));
    let all: Vec<Provenance> = past
        .iter()
        .map(|backup| backup.of.clone())
        .chain(records)
        .collect();
    let groups = databases(&all);
    let last = groups.iter().filter_map(|group| group.last());
    let last: Vec<&Provenance> = last.map(|index| &all[*index]).collect();
    // Nothing is known about a file that does not exist.
    let is_unknown = |name: &str| {
        let mut records = registered.iter();
        let record = records.find(|record| record.name.eq_ignore_ascii_case(name));
        record.is_some_and(|record| of_record(record, machine).is_none())
    };
    for (group, name) in groups.iter().zip(distinct_names(&last)) {
        let is_registered = group.last().is_some_and(|last| *last >= past.len());
        for index in group {
            if let Some(backup) = past.get_mut(*index) {
                // Registered by now, perhaps under another name.
                let is_there = |record: &DatabaseRecord| path_of(record) == backup.of.path;
                backup.is_by_path &= !registered.iter().any(is_there);
            }
            if !is_registered
                && let Some(backup) = past.get_mut(*index)
                && !is_unknown(&backup.database)
            {
                backup.database.clone_from(&name);
            }
        }
    }
}

/// The restorability of the databases in a history, ordered by name. Without a `looker` the media are
/// assumed to exist.
pub fn standings<'a>(
    past: &'a [PastBackup],
    mut looker: Option<&mut Looker>,
    at: Now,
) -> Vec<Standing<'a>> {
    let known = sets_of(past);
    let mut groups: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (index, (backup, _)) in known.iter().enumerate() {
        let key = backup.database.to_lowercase();
        groups.entry(key).or_default().push(index);
    }
    // A set that was overwritten was restorable before.
    let once: Vec<ChainSet> = known
        .iter()
        .map(|(_, set)| ChainSet {
            obstacle: set
                .obstacle
                .clone()
                .filter(|obstacle| *obstacle != Obstacle::Overwritten),
            ..set.clone()
        })
        .collect();
    let once = Chains::of(&once);
    let mut now: Vec<ChainSet> = known.iter().map(|(_, set)| set.clone()).collect();
    let mut standings = Vec::with_capacity(groups.len());
    for group in groups.into_values() {
        let is_ahead = |index: &usize| {
            let times = known[*index].1.times;
            times.is_some_and(|times| times.is_future(at.utc))
        };
        let (ahead, dated): (Vec<usize>, Vec<usize>) = group.iter().partition(|at| is_ahead(at));
        let (state, unseen) = match looker.as_deref_mut() {
            Some(looker) => seen_state(&known, &mut now, &dated, looker),
            None => (state_of(&now, &dated), Vec::new()),
        };
        let backup = |index: &usize| known[*index].0;
        let rivals: Vec<usize> = state
            .last()
            .map_or_else(Vec::new, |newest| rivals(&now, *newest, &dated).collect());
        let lost = lost(&now, &dated, state.last());
        standings.push(Standing {
            database: group.last().map_or("", |last| &known[*last].0.database),
            backups: group
                .iter()
                .map(|index| {
                    let verdict = once.verdict(*index).map_err(ToString::to_string);
                    (backup(index), verdict)
                })
                .collect(),
            ahead: ahead.iter().map(backup).collect(),
            damaged: looker.as_deref_mut().and_then(|looker| {
                let mut newest = lost.iter().rev().map(|(index, _)| *index);
                newest
                    .find_map(|index| Some((backup(&index), damage(&known, &now, index, looker)?)))
            }),
            lost: lost
                .into_iter()
                .map(|(index, why)| (backup(&index), why))
                .collect(),
            state: state.iter().map(backup).collect(),
            unseen,
            rivals: rivals.iter().map(backup).collect(),
            ill: group.last().and_then(|last| {
                let path = &known[*last].0.of.path;
                looker.as_deref()?.damages().at(path).cloned()
            }),
        });
    }
    standings
}

/// The backups of whole databases, as sets of their chains.
fn sets_of(past: &[PastBackup]) -> Vec<(&PastBackup, ChainSet)> {
    let known = past
        .iter()
        .filter_map(|backup| Some((backup, ChainSet::of_past(backup)?)));
    let (backups, mut sets): (Vec<&PastBackup>, Vec<ChainSet>) = known.unzip();
    settle_dates(&mut sets);
    backups.into_iter().zip(sets).collect()
}

fn state_of(now: &[ChainSet], group: &[usize]) -> Vec<usize> {
    let chains = Chains::of(now);
    let newest = chains.newest_among(group.iter().copied());
    newest
        .and_then(|newest| chains.path(newest).ok())
        .unwrap_or_default()
}

type Unseen<'a> = Vec<(&'a PastBackup, String)>;

/// The newest state whose media are not missing.
fn seen_state<'a>(
    known: &[(&'a PastBackup, ChainSet)],
    now: &mut [ChainSet],
    group: &[usize],
    looker: &mut Looker,
) -> (Vec<usize>, Unseen<'a>) {
    loop {
        let state = state_of(now, group);
        let mut unseen = Vec::new();
        let mut is_gone = false;
        for index in &state {
            match looker.look(known[*index].0) {
                Presence::There => {}
                Presence::Unknown(reason) => unseen.push((known[*index].0, reason)),
                Presence::Gone(_) | Presence::Damaged { .. } => is_gone = true,
            }
        }
        if !is_gone {
            return (state, unseen);
        }
        // Checks all at once: otherwise a lost folder would take as many rounds as it had backups.
        for index in group.iter().chain(&state) {
            let (backup, set) = (known[*index].0, &mut now[*index]);
            if set.obstacle.is_some() {
                continue;
            }
            set.obstacle = match looker.look(backup) {
                Presence::Gone(reason) => {
                    let since = backup.missing_since;
                    let since = since.map_or_else(String::new, |at| format!(", noticed on {at}"));
                    Some(Obstacle::Media(format!("{reason}{since}")))
                }
                Presence::Damaged { reason, .. } => Some(Obstacle::Media(reason)),
                Presence::There | Presence::Unknown(_) => None,
            };
        }
    }
}

/// The message of the damage that was found in a set, or in what it is based on.
fn damage(
    known: &[(&PastBackup, ChainSet)],
    now: &[ChainSet],
    index: usize,
    looker: &mut Looker,
) -> Option<u32> {
    let chains = Chains::of(now);
    let mut needed = std::iter::successors(Some(index), |at| chains.before(*at)).take(now.len());
    needed.find_map(|index| match looker.look(known[index].0) {
        Presence::Damaged { error_number, .. } => Some(error_number),
        _ => None,
    })
}

/// The backups of a database that are newer than its newest restorable state.
fn lost(now: &[ChainSet], group: &[usize], newest: Option<&usize>) -> Vec<(usize, String)> {
    let chains = Chains::of(now);
    group
        .iter()
        .filter(|index| newest.is_none_or(|newest| is_newer(&now[**index], &now[*newest])))
        .filter_map(|index| Some((*index, chains.verdict(*index).err()?.to_string())))
        .collect()
}
