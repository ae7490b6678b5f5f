//! The restorability of each database in a history: the newest state that can be restored now, from
//! which backups, and which newer backups are lost.

use std::collections::BTreeMap;

use windlass_catalog::{DatabaseRecord, PastBackup};
use windlass_source::sqlite::FileIdentity;

use crate::chain::{ChainSet, Chains, Obstacle, is_newer};
use crate::presence::{Looker, Presence};

/// A database and its backups.
#[derive(Debug)]
pub struct Standing<'a> {
    /// Its name in the newest backup.
    pub database: &'a str,
    /// All its backups, the oldest first; for each, whether it could have been restored before its media
    /// were lost, and if not, why.
    pub backups: Vec<(&'a PastBackup, Result<(), String>)>,
    /// The backups to restore for the newest state that is restorable now, in order; empty if there is
    /// none.
    pub state: Vec<&'a PastBackup>,
    /// Newer backups that cannot be restored, with the reasons.
    pub lost: Vec<(&'a PastBackup, String)>,
    /// Backups of `state` whose media could not be examined, with the reasons.
    pub unseen: Vec<(&'a PastBackup, String)>,
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

    /// The backup with the newest state whose media are not missing; whether they can be examined says
    /// [`Standing::restorable`].
    pub fn newest(&self) -> Option<&'a PastBackup> {
        self.state.last().copied()
    }
}

/// Renames backups of other databases that had the name of a registered one, so that a database that was
/// dropped, or a different file, does not count for the current one.
pub fn tell_apart(past: &mut [PastBackup], registered: &[DatabaseRecord]) {
    for record in registered {
        let family = match (record.family_guid, &record.log_path) {
            (Some(family), _) => family,
            // Nothing is known about a file that does not exist.
            (None, None) if record.path.exists() => FileIdentity::of(&record.path).family_guid,
            _ => continue,
        };
        let of_another = past.iter_mut().filter(|backup| {
            backup.database.eq_ignore_ascii_case(&record.name)
                && backup.family_guid.is_some_and(|other| other != family)
        });
        for backup in of_another {
            backup.database.push_str(OF_ANOTHER);
        }
    }
}

/// Appended to the name of a database that is not the current one of that name.
const OF_ANOTHER: &str = " (another database of this name)";

/// The restorability of the databases in a history, ordered by name. Without a `looker` the media are
/// assumed to exist.
pub fn standings<'a>(past: &'a [PastBackup], mut looker: Option<&mut Looker>) -> Vec<Standing<'a>> {
    let known: Vec<(&PastBackup, ChainSet)> = past
        .iter()
        .filter_map(|backup| Some((backup, ChainSet::of_past(backup)?)))
        .collect();
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
        let (state, unseen) = match looker.as_deref_mut() {
            Some(looker) => seen_state(&known, &mut now, &group, looker),
            None => (state_of(&now, &group), Vec::new()),
        };
        let backup = |index: &usize| known[*index].0;
        standings.push(Standing {
            database: group.last().map_or("", |last| &known[*last].0.database),
            backups: group
                .iter()
                .map(|index| {
                    let verdict = once.verdict(*index).map_err(ToString::to_string);
                    (backup(index), verdict)
                })
                .collect(),
            lost: lost(&now, &group, state.last())
                .into_iter()
                .map(|(index, why)| (backup(&index), why))
                .collect(),
            state: state.iter().map(backup).collect(),
            unseen,
        });
    }
    standings
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
                Presence::Gone(_) => is_gone = true,
            }
        }
        if !is_gone {
            return (state, unseen);
        }
        // Checks all at once: otherwise a lost folder would take as many rounds as it had backups.
        for index in group.iter().chain(&state) {
            let (backup, set) = (known[*index].0, &mut now[*index]);
            if set.obstacle.is_none()
                && let Presence::Gone(reason) = looker.look(backup)
            {
                let since = backup.missing_since;
                let since = since.map_or_else(String::new, |at| format!(", noticed on {at}"));
                set.obstacle = Some(Obstacle::Media(format!("{reason}{since}")));
            }
        }
    }
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
