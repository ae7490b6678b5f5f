//! Reads the sets on which deletions rely, from each copy of their media.

use std::collections::BTreeMap;

use windlass_base::Message;
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
    /// Whether any of the copies is damaged, or cannot be read now. It was reported.
    pub(super) is_damaged: bool,
    /// Whether the set may be whole all the same: what cannot be read of it is not known to be damaged.
    pub(super) may_be_whole: bool,
    /// Why the set cannot be restored, if not every family has an intact copy.
    pub(super) unrestorable: Option<String>,
}

/// What is wrong with a file.
#[derive(Debug, Clone)]
struct Wrong {
    why: String,
    /// It cannot be read now, which says nothing about it.
    may_pass: bool,
}

impl Wrong {
    fn of(failure: &Failure) -> Self {
        let texts = failure.messages.iter().map(|message| message.text.as_str());
        let passing = [
            table::cannot_open_device("", "").number,
            table::device_read_failed("", "").number,
            table::no_thread("").number,
        ];
        let mut errors = failure.messages.iter().map(|message| message.number);
        Self {
            why: texts.collect::<Vec<_>>().join(" "),
            may_pass: errors.any(|number| passing.contains(&number)),
        }
    }
}

/// What is known of the copies of a medium.
#[derive(Debug, Default)]
struct Copies {
    /// For each file that was read, by its name, what is wrong with it.
    read: BTreeMap<String, Option<Wrong>>,
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
    fn blame(&mut self, files: &[&FoundFile], wrong: &Wrong) {
        let unknown = |file: &&&FoundFile| !self.read.contains_key(&file.device.name);
        let unknown: Vec<String> = files
            .iter()
            .filter(unknown)
            .map(|file| file.device.name.clone())
            .collect();
        let named = |name: &&String| wrong.why.contains(&format!("'{name}'"));
        let mut blamed: Vec<String> = unknown.iter().filter(named).cloned().collect();
        if blamed.is_empty() {
            blamed = unknown;
        }
        for name in blamed {
            self.read.insert(name, Some(wrong.clone()));
        }
    }

    /// Whether each family has a file that is not known to be damaged.
    fn may_be_whole(&self, media: &FoundMedia, place: usize) -> bool {
        let is_damaged = |file: &&FoundFile| match self.read.get(&file.device.name) {
            Some(Some(wrong)) => !wrong.may_pass,
            _ => false,
        };
        let is_damaged = |number| media.holding(number, place).iter().all(is_damaged);
        !(1..=media.family_count).any(is_damaged)
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
        let cut = cut.filter_map(|file| {
            let wrong = Wrong {
                why: file.trouble.clone()?,
                may_pass: false,
            };
            Some((file.device.name.clone(), Some(wrong)))
        });
        Self {
            read: cut.collect(),
        }
    }
}

/// What is said of a file that cannot be read, or is damaged.
fn told(name: &str, position: usize, wrong: &Wrong, is_restorable: bool) -> Message {
    let why = &wrong.why;
    match (wrong.may_pass, is_restorable) {
        (true, true) => table::copy_hidden(name, position, why),
        (true, false) => table::relied_set_hidden(name, why.trim_end_matches('.')),
        (false, true) => table::copy_damaged(name, position, why),
        (false, false) => table::relied_set_damaged(name, position, why),
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
            copies.blame(&files, &Wrong::of(&failure));
        };
        let damaged: Vec<(&String, &Wrong)> = copies
            .read
            .iter()
            .filter_map(|(name, wrong)| Some((name, wrong.as_ref()?)))
            .collect();
        for (name, wrong) in &damaged {
            sink.message(told(name, position, wrong, is_restorable));
        }
        let unrestorable = damaged.first().filter(|_| !is_restorable);
        let unrestorable = unrestorable
            .map(|(_, wrong)| format!("its set {position} cannot be read back: {}", wrong.why));
        let is_damaged = !damaged.is_empty();
        // Those that can be read come first from here on.
        media
            .files
            .sort_by_key(|file| matches!(copies.read.get(&file.device.name), Some(Some(_))));
        Ok(ReadBack {
            is_damaged,
            may_be_whole: copies.may_be_whole(media, place),
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
