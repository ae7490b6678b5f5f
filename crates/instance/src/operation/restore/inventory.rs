//! The backup sets on the media of a restore that names no set, and why some of them cannot be restored.
//!
//! Everything that chooses among them, such as the newest state, a moment or a way onward, is an `impl` of [`Inventory`] in a
//! file of its own.

use windlass_base::message::table;
use windlass_base::{Guid, Message};
use windlass_catalog::PastBackup;
use windlass_device::DeviceAddress;
use windlass_media::SetConfiguration;
use windlass_pipeline::Error as PipelineError;

use super::copies;
use crate::Failure;
use crate::chain::{ChainSet, Obstacle, settle_dates};
use crate::generation::Generation;
use crate::headers::{HeaderCache, Trouble};

/// What is wrong with a set without an end that was finished.
const CUT_OFF: &str =
    "it was finished, as the history knows, but its medium has been cut off since";

/// A set, and the index of its media set.
pub(super) struct Found {
    pub(super) media: usize,
    pub(super) set: SetConfiguration,
}

pub(super) struct Inventory {
    pub(super) devices: Vec<Vec<DeviceAddress>>,
    pub(super) found: Vec<Found>,
    pub(super) chain: Vec<ChainSet>,
    /// The state of the waiting restore that is to be continued.
    pub(super) reached: Option<ChainSet>,
    /// Devices with damage behind their complete sets, where a newer one may be, and the damage.
    pub(super) damage: Vec<(String, String)>,
    /// Media whose header is all that can be read.
    pub(super) without_sets: Vec<DeviceAddress>,
    /// Media of which files are lost or have not got their names, and why: what is left shows their sets, and none can be
    /// restored.
    torn: Vec<(usize, String)>,
    /// Files that are not used, and copies of others, which are not needed.
    pub(super) notes: Vec<Message>,
}

impl Inventory {
    /// The sets of some devices. Of media sets that were found in folders, files can be lost, or a backup was killed while
    /// they got their names: then their sets are known and cannot be restored. If there are no others, that is the error.
    pub(super) fn of(
        devices: &[DeviceAddress],
        in_folders: &[Guid],
        headers: &mut HeaderCache,
    ) -> Result<Self, Failure> {
        let mut inventory = Self {
            devices: Vec::new(),
            found: Vec::new(),
            chain: Vec::new(),
            reached: None,
            damage: Vec::new(),
            without_sets: Vec::new(),
            torn: Vec::new(),
            notes: Vec::new(),
        };
        let mut first = None;
        let groups = copies::grouped(devices, headers)?;
        let names = names(&groups);
        for (media_set, generation) in groups {
            let (group, copies) = copies::newest(generation.files);
            inventory.notes.extend(copies);
            let opened = copies::Opened::of(&group);
            let torn = opened.as_ref().err().and_then(torn);
            let opened = match (opened, &torn) {
                (Err(error), Some(_)) if in_folders.contains(&media_set) => {
                    first.get_or_insert(error);
                    copies::Opened::of_part(&group)
                }
                (Err(error), Some(_)) => return Err(among_others(error, media_set, &names)),
                (opened, _) => opened?,
            };
            let devices = group.into_iter().map(copies::Named::into_device).collect();
            inventory.add(generation.order, opened, devices, torn);
        }
        if let Some(error) = first
            && inventory.torn.len() == inventory.devices.len()
        {
            return Err(error.into());
        }
        settle_dates(&mut inventory.chain);
        Ok(inventory)
    }

    fn add(
        &mut self,
        order: Option<Guid>,
        opened: copies::Opened,
        devices: Vec<DeviceAddress>,
        torn: Option<String>,
    ) {
        let media = self.devices.len();
        let damage = opened.trouble.filter(|trouble| !trouble.is_truncation);
        if opened.sets.is_empty() {
            self.without_sets.extend(devices.first().cloned());
        }
        for (entry, partly) in opened.sets {
            let set = entry.configuration;
            let chain = ChainSet::of(&set, entry.is_complete);
            // The files of a torn medium can be from before and after an overwrite: then its positions give no order.
            let mut chain = match (order, &torn) {
                (Some(order), None) => chain.on(order, set.position),
                _ => chain,
            };
            if let Some(Trouble { device, text, .. }) = &damage
                && !entry.is_complete
            {
                chain.obstacle = Some(Obstacle::Media(format!("'{device}' is damaged: {text}")));
            }
            if let Some(partly) = partly {
                chain.obstacle = Some(Obstacle::Partly(partly));
            }
            if let Some(why) = &torn {
                chain.obstacle = Some(Obstacle::Media(why.clone()));
            }
            self.chain.push(chain);
            self.found.push(Found { media, set });
        }
        let behind = opened.trouble_behind;
        let behind = behind.filter(|trouble| !trouble.is_truncation);
        self.damage
            .extend(behind.map(|trouble| (trouble.device, trouble.text)));
        self.devices.push(devices);
        self.torn.extend(torn.map(|why| (media, why)));
    }

    /// The media of which files are lost, as messages.
    pub(super) fn torn(&self) -> impl Iterator<Item = Message> {
        self.torn.iter().filter_map(|(media, why)| {
            let first = self.devices[*media].first()?;
            Some(table::set_left_out(format!("'{}'", first.name), why))
        })
    }

    /// Whether there is this set, also if it cannot be restored.
    pub(super) fn has(&self, set_guid: Guid) -> bool {
        let mut sets = self.found.iter();
        sets.any(|found| found.set.set_guid == set_guid)
    }

    /// A set without an end that the history knows as finished has lost it: it is not the rest of a killed backup.
    pub(super) fn note_finished(&mut self, past: &[PastBackup]) {
        let lacking = self.chain.iter_mut();
        for set in lacking.filter(|set| set.obstacle == Some(Obstacle::Incomplete)) {
            let is_it = |backup: &PastBackup| backup.set_guid == Some(set.set_guid);
            if past.iter().any(is_it) {
                set.obstacle = Some(Obstacle::Media(CUT_OFF.to_owned()));
            }
        }
    }

    /// The sets that cannot be read because of damage of their media.
    pub(super) fn damaged(&self) -> impl Iterator<Item = usize> {
        let is_damaged = |index: &usize| {
            let is_barred = matches!(self.chain[*index].obstacle, Some(Obstacle::Media(_)));
            let is_torn = |(media, _): &(usize, String)| *media == self.found[*index].media;
            is_barred && !self.torn.iter().any(is_torn)
        };
        (0..self.chain.len()).filter(is_damaged)
    }
}

/// The names of the devices of each media set.
fn names(groups: &[(Guid, Generation<copies::Named>)]) -> Vec<(Guid, String)> {
    let all = groups.iter().flat_map(|(media_set, generation)| {
        let names = generation.files.iter().map(copies::Named::name);
        names.map(move |name| (*media_set, format!("'{name}'")))
    });
    all.collect()
}

/// The failure for a media set that lacks files, with the files of others: stripes of two backups may have been mixed up.
fn among_others(error: PipelineError, media_set: Guid, names: &[(Guid, String)]) -> Failure {
    let others = names.iter().filter(|(other, _)| *other != media_set);
    let others: Vec<&str> = others.map(|(_, name)| name.as_str()).collect();
    let mut failure = Failure::from(error);
    if !others.is_empty() {
        let note = table::named_of_other_backups(others.join(", "));
        failure.messages.push(note);
    }
    failure
}

/// Why files of a medium do not fit together, if some are lost or have not got their names.
fn torn(error: &PipelineError) -> Option<String> {
    match error {
        PipelineError::FamiliesMissing {
            expected, provided, ..
        } => Some(format!(
            "only {provided} of the {expected} families of its media set are there, so a backup was killed while it gave \
             them their names, or files are missing"
        )),
        PipelineError::HalfNamed { files, .. } => Some(format!(
            "a backup was killed while its files got their names: {files}"
        )),
        _ => None,
    }
}
