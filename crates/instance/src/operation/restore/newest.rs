//! Finds the newest state that can be restored from some media, for a restore that names no set.
//!
//! The command line uses it; a T-SQL statement names its set, or uses the first one. The media may
//! belong to several media sets, in any order. Nothing is changed.

use std::path::Path;

use windlass_base::message::table;
use windlass_base::{Guid, Lsn, Message};
use windlass_crypt::KeyRing;
use windlass_device::DeviceAddress;
use windlass_media::{SetType, SourceKind};
use windlass_source::engine::StopAt;

use super::aim::Aim;
use super::folder::{Unfolded, unfolded};
use super::inventory::{Found, Inventory};
use super::{Sequence, Step};
use crate::chain::{ChainSet, Chains, Obstacle, State, Why, is_newer, unsurpassed};
use crate::operation::history::{self, physical_name};
use crate::operation::media::MediaOptions;
use crate::operation::{DeviceName, sql_server};
use crate::{Failure, Session, presence};

/// Maximum number of left-out sets listed individually.
const LEFT_OUT_REPORTED: usize = 10;

/// The reason for restoring a differential alone.
const CONTINUES: &str = "the newest differential based on the full backup already restored";

#[derive(Debug, Clone)]
pub struct NewestRequest<'a> {
    /// Whose backups to restore, if the media contain those of several databases.
    pub of: Option<&'a str>,
    /// The name of the restored database.
    pub name: &'a str,
    /// Where its first file goes.
    pub target: Option<&'a Path>,
    /// Whether a differential will follow: then only the full backup is restored.
    pub leaves_open: bool,
    pub aim: Aim,
    /// Keys in addition to those of the instance.
    pub keys: &'a KeyRing,
}

/// The restores that lead to a state, and the explanation.
#[derive(Debug, Clone, Default)]
pub struct Newest {
    /// In order.
    pub steps: Vec<Step>,
    /// Where all of them stop.
    pub stop: StopAt,
    /// The log backups behind the last step. If no commit in that one is later than the time to stop at, its clock may
    /// have been ahead: then these are restored, one after the other, until one shows that the point is reached.
    pub further: Vec<Step>,
    /// What is to be said if none shows it: their end is the point, as far as anybody can know. `None` if their clock is not
    /// to be believed; then the database is left as it is.
    pub end: Option<Message>,
    /// Which sets are used and left out, as messages. Empty if there was no choice.
    pub notes: Vec<Message>,
    /// Why a newer log backup is of no use, where steps go onward.
    pub hindrance: Option<Message>,
    /// A backup with a newer state, to which no log backup leads, where steps go onward.
    pub beyond: Option<Beyond>,
}

/// A full or differential backup with a state behind the log backups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Beyond {
    /// Where these end.
    pub reached: Lsn,
    /// The backup, described.
    pub set: String,
}

impl Session {
    /// Finds the sets on some media that give the newest state of a database.
    ///
    /// # Errors
    /// If the media cannot be read, contain backups of several databases, or none that can be restored.
    pub fn newest(
        &mut self,
        media: &MediaOptions,
        request: &NewestRequest<'_>,
    ) -> Result<Newest, Failure> {
        let devices = media.addresses_of_several(self, Some(request.name))?;
        self.newest_on(devices, request)
    }

    /// The same for devices that are resolved, as many as there are.
    pub(crate) fn newest_on(
        &mut self,
        devices: Vec<DeviceAddress>,
        request: &NewestRequest<'_>,
    ) -> Result<Newest, Failure> {
        if sql_server::is_backup(&devices) {
            // All devices are restored by one statement.
            return Ok(Newest::default());
        }
        let unfolded = unfolded(devices, request.of, request.name, &mut self.headers)?;
        self.newest_of(unfolded, request, |_| Ok(()))
    }

    /// The same for media that were found; for the newest state, what they hold is checked.
    pub(super) fn newest_of(
        &mut self,
        unfolded: Unfolded,
        request: &NewestRequest<'_>,
        check: impl FnOnce(&Inventory) -> Result<(), Failure>,
    ) -> Result<Newest, Failure> {
        let Unfolded {
            devices,
            notes,
            unseen,
            in_folders,
        } = unfolded;
        if let Some(other) = unseen.as_ref().filter(|_| request.aim == Aim::Newest) {
            return Err(table::sets_unseen(&other.device, &other.reason).into());
        }
        let mut inventory = Inventory::of(&devices, &in_folders, &mut self.headers)?;
        self.headers.end_round();
        if request.aim == Aim::Newest {
            check(&inventory)?;
        }
        inventory.notes.splice(0..0, notes);
        if request.aim != Aim::Newest {
            // For the newest state, each of their sets is named, or refuses it.
            let torn: Vec<Message> = inventory.torn().collect();
            inventory.notes.extend(torn);
        }
        inventory.note_finished(&self.instance.catalog().past_backups(None)?);
        inventory.refuse_sql_server()?;
        if inventory.found.is_empty() {
            return Ok(inventory.newest(&[], Vec::new()));
        }
        if let Some(device) = inventory.without_sets.first() {
            return Err(table::medium_without_sets(&device.name).into());
        }
        if inventory.found.len() == 1 && request.of.is_none() && request.aim == Aim::Newest {
            // If something is wrong with it, its restore reports that with SQL Server's messages.
            return Ok(inventory.newest(&[0], Vec::new()));
        }
        let waiting = self.waiting(request)?;
        let waiting = waiting.as_ref();
        inventory.read_logs_around_others(self, request)?;
        let mut chosen = inventory.choose(request, waiting);
        while let Ok(plan) = &chosen
            && inventory.read_log_of(plan, self, request.keys)?
        {
            chosen = inventory.choose(request, waiting);
        }
        if chosen.is_err() {
            let number = table::family_malformed("").number;
            for index in inventory.damaged() {
                let Found { media, set } = &inventory.found[index];
                let state = presence::state(&inventory.devices[*media]);
                let position = set.position;
                history::record_damaged(self, position..=position, &state, number);
            }
        }
        // A copy goes as far as it can, and says what is in its way. That a log is the last one is not believed.
        let is_all = unseen.is_none();
        let unseen = unseen.map(|other| table::ship_sets_unseen(&other.device, &other.reason));
        chosen.map(|plan| Newest {
            hindrance: plan.hindrance.or(unseen),
            end: plan.end.filter(|_| is_all),
            ..plan
        })
    }

    /// The state of a restore without recovery, upon which the next one goes.
    fn waiting(&self, request: &NewestRequest<'_>) -> Result<Option<ChainSet>, Failure> {
        let sequence = self.sequence(request.name, request.target)?;
        let reached = self.reached(request.name, request.target)?;
        let reached = reached.filter(|_| matches!(sequence, Sequence::Waits(_)));
        Ok(reached.map(Inventory::state_of))
    }
}

impl Inventory {
    /// Refuses media with nothing but backups of SQL Server.
    fn refuse_sql_server(&self) -> Result<(), Failure> {
        let mut sets = self.found.iter().map(|found| found.set.source_kind);
        match self.found.first() {
            Some(found) if sets.all(|kind| kind == SourceKind::SqlServer) => {
                Err(table::restore_of_sql_server_set(&found.set.database).into())
            }
            _ => Ok(()),
        }
    }

    fn choose(
        &self,
        request: &NewestRequest<'_>,
        waiting: Option<&ChainSet>,
    ) -> Result<Newest, Failure> {
        let wanted = self.wanted(request)?;
        match &request.aim {
            Aim::Newest => {}
            Aim::At(stop) => return self.leading_to(stop, &wanted),
            Aim::Before(unix_ms) => match self.before(*unix_ms, &wanted) {
                Err(_) if waiting.is_some() => {}
                found => return found,
            },
            Aim::Any(chance) => return self.any(*chance, &wanted),
            Aim::Onward(reached, until_ms) => {
                return self.continuing(*reached, *until_ms, &wanted);
            }
        }
        let is_wanted = |index: usize| wanted.contains(&index);
        let chains = Chains::of(&self.chain);
        let allowed: Vec<Guid> = wanted
            .iter()
            .map(|index| self.chain[*index].set_guid)
            .collect();
        let state = match request.leaves_open {
            false => chains.newest_state(|set| allowed.contains(&set.set_guid)),
            true => {
                let full = wanted.iter().copied().filter(|index| {
                    self.chain[*index].kind == SetType::Full && chains.verdict(*index).is_ok()
                });
                let base = full
                    .clone()
                    .filter(|index| self.chain[*index].can_be_base());
                let newest = self.newest_of(base).or_else(|| self.newest_of(full));
                newest.map(|index| State {
                    steps: vec![index],
                    left_out: Vec::new(),
                })
            }
        };
        let waits_for = |index: &usize| {
            let set = &self.chain[*index];
            let full = waiting.map(|waiting| waiting.set_guid);
            set.base.is_some() && set.base == full && set.obstacle.is_none()
        };
        let can_follow =
            |index: &usize| !request.leaves_open || self.chain[*index].kind == SetType::Full;
        let Some(mut state) = state else {
            // The full backup may have been restored already, from other media.
            let onto = waiting.and_then(|waiting| self.onto(waiting, &wanted));
            return onto.unwrap_or_else(|| Err(self.refusal(&chains, &wanted)));
        };
        let continues = !request.leaves_open && state.steps.get(1).is_some_and(waits_for);
        let why = match request.leaves_open {
            true => "the newest full backup, left restoring for a differential",
            false if continues => CONTINUES,
            false => "the newest state on these media",
        };
        let newer: Vec<usize> = wanted.iter().copied().filter(can_follow).collect();
        self.refuse_unused(&chains, &state.steps, &newer)?;
        if continues {
            state.steps.remove(0);
        }
        let reasons: Vec<(usize, String)> = state
            .left_out
            .iter()
            .filter(|(index, _)| is_wanted(*index))
            .map(|(index, why)| (*index, why.to_string()))
            .collect();
        Ok(self.newest(&state.steps, self.reported(&state.steps, why, &reasons)))
    }

    /// The restores that lead from a waiting state to the newest one; `None` if there are none.
    fn onto(&self, waiting: &ChainSet, wanted: &[usize]) -> Option<Result<Newest, Failure>> {
        let mut sets = self.chain.clone();
        sets.push(waiting.clone());
        let here = sets.len() - 1;
        let chains = Chains::of(&sets);
        let allowed: Vec<Guid> = wanted.iter().map(|index| sets[*index].set_guid).collect();
        let state = chains.newest_state(|set| allowed.contains(&set.set_guid))?;
        let steps = state.steps.into_iter().filter(|index| *index != here);
        let steps: Vec<usize> = steps.collect();
        let left_out = state.left_out.iter();
        let reasons: Vec<(usize, String)> = left_out
            .map(|(index, why)| (*index, why.to_string()))
            .collect();
        let refused = self.refuse_unused(&chains, &steps, wanted);
        let why = match self.chain[*steps.first()?].kind {
            SetType::Log => "the log behind the state already restored",
            SetType::Full | SetType::Differential => CONTINUES,
        };
        Some(refused.map(|()| self.newest(&steps, self.reported(&steps, why, &reasons))))
    }

    /// The sets of the requested database.
    fn wanted(&self, request: &NewestRequest<'_>) -> Result<Vec<usize>, Failure> {
        let mut names: Vec<&str> = Vec::new();
        for found in &self.found {
            if !names
                .iter()
                .any(|name| name.eq_ignore_ascii_case(&found.set.database))
            {
                names.push(&found.set.database);
            }
        }
        let has = |name: &str| names.iter().any(|known| known.eq_ignore_ascii_case(name));
        let name = match request.of {
            Some(name) if has(name) => name,
            Some(name) => {
                let held = self.held(&names);
                return Err(table::no_backup_of(name, held).into());
            }
            None if names.len() > 1 && !has(request.name) => {
                let held = self.held(&names);
                return Err(table::several_databases(held).into());
            }
            None if names.len() > 1 => request.name,
            None => names.first().copied().unwrap_or_default(),
        };
        let is_meant = |index: &usize| self.found[*index].set.database.eq_ignore_ascii_case(name);
        let meant: Vec<usize> = (0..self.found.len()).filter(is_meant).collect();
        self.refuse_strangers(name, &meant)?;
        if !request.aim.is_by_log() {
            self.refuse_future(&meant)?;
        }
        self.refuse_rivals(&meant)?;
        Ok(meant)
    }

    fn held(&self, names: &[&str]) -> String {
        let held = names.iter().map(|name| {
            let positions: Vec<String> = self
                .found
                .iter()
                .filter(|found| found.set.database.eq_ignore_ascii_case(name))
                .map(|found| found.set.position.to_string())
                .collect();
            format!("'{name}' (set {})", positions.join(", "))
        });
        held.collect::<Vec<_>>().join(", ")
    }

    pub(super) fn newest_of(&self, sets: impl Iterator<Item = usize>) -> Option<usize> {
        let sets = unsurpassed(&self.chain, &sets.collect::<Vec<_>>());
        sets.into_iter().reduce(
            |one, other| match is_newer(&self.chain[other], &self.chain[one]) {
                true => other,
                false => one,
            },
        )
    }

    /// Media are named to be used. So it is an error if a set would give a newer state but the media of its base
    /// were not named, if a problem of some media keeps all their sets from being used, or if only some stripes
    /// have the end of a set.
    fn refuse_unused(
        &self,
        chains: &Chains<'_>,
        steps: &[usize],
        wanted: &[usize],
    ) -> Result<(), Failure> {
        let Some(last) = steps.last() else {
            return Ok(());
        };
        self.refuse_rivals_of(*last, wanted)?;
        let is_used = |media: usize| steps.iter().any(|step| self.found[*step].media == media);
        let is_newer = |index: usize| is_newer(&self.chain[index], &self.chain[*last]);
        let newer = wanted.iter().copied().filter(|index| is_newer(*index));
        for index in newer {
            let needs = match chains.verdict(index) {
                Ok(()) => continue,
                Err(Why::BaseMissing { base }) => format!("the full backup {base}"),
                Err(Why::LogMissing) => "the log before it".to_owned(),
                Err(Why::Obstacle(why) | Why::BaseUnusable { why, .. })
                    if is_used(self.found[index].media)
                        && !matches!(why, Obstacle::Media(_) | Obstacle::Partly(_)) =>
                {
                    continue;
                }
                Err(why) => {
                    let name = self.name_of(index);
                    return Err(table::newer_set_unusable(name, why).into());
                }
            };
            return Err(table::newer_set_needs(self.name_of(index), needs).into());
        }
        match self.damage.first() {
            Some((device, trouble)) => {
                let behind = format!("what follows the backup sets of '{device}'");
                Err(table::newer_set_unusable(behind, trouble).into())
            }
            None => Ok(()),
        }
    }

    pub(super) fn refusal(&self, chains: &Chains<'_>, wanted: &[usize]) -> Failure {
        let reasons: Vec<String> = wanted
            .iter()
            .take(LEFT_OUT_REPORTED)
            .filter_map(|index| {
                let why = chains.verdict(*index).err()?;
                Some(format!("{}: {why}", self.name_of(*index)))
            })
            .collect();
        table::nothing_restorable(reasons.join("; ")).into()
    }

    pub(super) fn newest(&self, steps: &[usize], notes: Vec<Message>) -> Newest {
        Newest {
            steps: steps.iter().map(|index| self.step(*index)).collect(),
            notes: self.notes.iter().cloned().chain(notes).collect(),
            ..Newest::default()
        }
    }

    pub(super) fn step(&self, index: usize) -> Step {
        let found = &self.found[index];
        let devices = self.devices[found.media].iter();
        let name = |device: &DeviceAddress| DeviceName::physical(physical_name(device));
        Step {
            devices: devices.map(name).collect(),
            position: found.set.position,
            set: found.set.clone(),
        }
    }

    /// Reports which sets are used and which are left out.
    pub(super) fn reported(
        &self,
        steps: &[usize],
        why: &str,
        left_out: &[(usize, String)],
    ) -> Vec<Message> {
        let mut notes = Vec::new();
        if self.found.len() == steps.len() {
            return notes;
        }
        let used: Vec<String> = steps.iter().map(|index| self.name_of(*index)).collect();
        notes.push(table::restoring_sets(used.join(", then "), why));
        for (index, why) in left_out.iter().take(LEFT_OUT_REPORTED) {
            notes.push(table::set_left_out(self.name_of(*index), why));
        }
        if left_out.len() > LEFT_OUT_REPORTED {
            let more = left_out.len() - LEFT_OUT_REPORTED;
            notes.push(table::more_sets(more));
        }
        notes
    }

    pub(super) fn name_of(&self, index: usize) -> String {
        let found = &self.found[index];
        let set = &found.set;
        let kind = set.set_type.name();
        let made = set.finished.or(set.started);
        let made = made.map_or_else(String::new, |made| format!(", {made}"));
        let place = match self.devices.len() {
            1 => String::new(),
            _ => self.devices[found.media]
                .first()
                .map_or_else(String::new, |device| format!(" of '{}'", device.name)),
        };
        format!("set {}{place} ({kind}{made})", set.position)
    }
}
