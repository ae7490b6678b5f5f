//! Reads the sets on which deletions rely, from each copy of their media.

use std::collections::BTreeMap;

use windlass_base::message::table;
use windlass_catalog::Depth;
use windlass_device::DeviceAddress;
use windlass_pipeline::{OnDamage, ReadKeys, ReadRequest, Tuning};

use super::super::media::{MediaOptions, OpenedSet};
use super::super::observer::Watch;
use super::super::{history, verify};
use super::ExpireError;
use crate::retention::{FoundFile, FoundMedia};
use crate::{Failure, Session, Sink};

/// What was found.
#[derive(Debug, Default)]
pub(super) struct ReadBack {
    /// Whether any of the copies is damaged. It was reported.
    pub(super) is_damaged: bool,
    /// Why the set cannot be restored, if not every family has an intact copy.
    pub(super) unrestorable: Option<String>,
}

/// What is known of the copies of a medium.
#[derive(Debug, Default)]
struct Copies {
    /// For each file that was read, by its name, what is wrong with it.
    read: BTreeMap<String, Option<String>>,
}

impl Copies {
    /// One file of each family that holds the set: one that was not read yet, or else an intact one. `None` if a family has
    /// neither.
    fn next<'a>(&self, media: &'a FoundMedia, place: usize) -> Option<Vec<&'a FoundFile>> {
        let choose = |number: u16| {
            let own = media.holding(number, place);
            let is_intact =
                |file: &&&FoundFile| matches!(self.read.get(&file.device.name), Some(None));
            let mut unread = own.iter();
            let unread = unread.find(|file| !self.read.contains_key(&file.device.name));
            unread.or(own.iter().find(is_intact)).copied()
        };
        (1..=media.family_count).map(choose).collect()
    }

    /// Notes which of the files that were read together are damaged: those that the failure names, of
    /// those that nothing good is known about.
    fn blame(&mut self, files: &[&FoundFile], why: &str) {
        let unknown = |file: &&&FoundFile| !self.read.contains_key(&file.device.name);
        let unknown: Vec<String> = files
            .iter()
            .filter(unknown)
            .map(|file| file.device.name.clone())
            .collect();
        let named = |name: &&String| why.contains(&format!("'{name}'"));
        let mut blamed: Vec<String> = unknown.iter().filter(named).cloned().collect();
        if blamed.is_empty() {
            blamed = unknown;
        }
        for name in blamed {
            self.read.insert(name, Some(why.to_owned()));
        }
    }

    /// Those that are cut off before the end of a set which others hold.
    fn cut_off(media: &FoundMedia, place: usize) -> Self {
        let set = media.sets.get(place).map(|set| set.chain.set_guid);
        let lacks = |file: &&FoundFile| {
            let mut holding = media.holding(file.family, place).into_iter();
            set.is_some() && !holding.any(|other| other.device == file.device)
        };
        let cut = media.files.iter().filter(lacks);
        let cut = cut.filter(|file| file.defect.is_none());
        let cut =
            cut.filter_map(|file| Some((file.device.name.clone(), Some(file.trouble.clone()?))));
        Self {
            read: cut.collect(),
        }
    }
}

impl Session {
    /// Reads a set and checks every byte of every copy of its media, an encrypted one without its key.
    pub(super) fn read_back(
        &mut self,
        media: &mut FoundMedia,
        place: usize,
        sink: &mut dyn Sink,
    ) -> Result<ReadBack, ExpireError> {
        let position = place + 1;
        let mut copies = Copies::cut_off(media, place);
        let is_restorable = loop {
            let Some(files) = copies.next(media, place) else {
                break false;
            };
            if files
                .iter()
                .all(|file| copies.read.contains_key(&file.device.name))
            {
                break true;
            }
            let devices = files.iter().map(|file| file.device.clone()).collect();
            let Err(failure) = self.verify_found(devices, position, sink) else {
                for file in files {
                    copies.read.insert(file.device.name.clone(), None);
                }
                continue;
            };
            if self.is_cancelled() {
                return Err(ExpireError::Cancelled);
            }
            let texts = failure.messages.iter().map(|message| message.text.as_str());
            copies.blame(&files, &texts.collect::<Vec<_>>().join(" "));
        };
        let damaged: Vec<(&String, &String)> = copies
            .read
            .iter()
            .filter_map(|(name, why)| Some((name, why.as_ref()?)))
            .collect();
        let unrestorable = match (is_restorable, damaged.first()) {
            (false, Some((_, why))) => {
                for (name, why) in &damaged {
                    sink.message(table::relied_set_damaged(name, position, why));
                }
                Some(format!("its set {position} cannot be read back: {why}"))
            }
            _ => {
                for (name, why) in &damaged {
                    sink.message(table::copy_damaged(name, position, why));
                }
                None
            }
        };
        let is_damaged = !damaged.is_empty();
        // Those that can be read come first from here on.
        media
            .files
            .sort_by_key(|file| matches!(copies.read.get(&file.device.name), Some(Some(_))));
        Ok(ReadBack {
            is_damaged,
            unrestorable,
        })
    }

    fn verify_found(
        &mut self,
        devices: Vec<DeviceAddress>,
        position: usize,
        sink: &mut dyn Sink,
    ) -> Result<(), Failure> {
        let options = MediaOptions {
            position: i64::try_from(position).ok(),
            ..MediaOptions::default()
        };
        let opened = OpenedSet::open(self, devices, &options)?;
        if let Some((device, trouble)) = opened.media.cut_filemark()
            && position == opened.media.sets().len()
        {
            return Err(table::last_filemark_cut(device, trouble).into());
        }
        let without_key = opened.set.is_encrypted();
        let request = ReadRequest {
            keys: ReadKeys {
                without_key,
                ..ReadKeys::default()
            },
            on_damage: OnDamage::Continue,
            tuning: Tuning::default(),
        };
        let depth = match without_key {
            true => Depth::Checksums,
            false => Depth::Content,
        };
        let watch = Watch::new(self, verify::OPERATION, &opened.set.database, None, sink);
        let report = verify::read_back(&opened, &request, watch);
        history::record_verification(self, &opened, depth, report.as_ref().err());
        report.map(drop)
    }
}
