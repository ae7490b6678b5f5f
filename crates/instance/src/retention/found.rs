//! What was found: media, their files, and the sets that these show.

use windlass_base::{Guid, Moment};
use windlass_catalog::Provenance;
use windlass_device::DeviceAddress;
use windlass_pipeline::PartlyFinished;

use crate::chain::{ChainSet, Obstacle};

/// The problem of media whose stripes contradict each other.
const CONTRADICTIONS: &str = "its stripes or copies contain different backup sets";

/// A backup set on a medium.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundSet {
    /// What it is based on, what is based on it, and why it cannot be restored.
    pub chain: ChainSet,
    pub of: Provenance,
    pub started: Option<Moment>,
    /// When it was finished; when it was started if it was not finished.
    pub finished: Option<Moment>,
    /// In the time zone of now.
    pub expires: Option<Moment>,
    /// What it takes on its media.
    pub stored_bytes: u64,
}

impl FoundSet {
    /// Whether its end is on every family.
    pub(crate) fn is_complete(&self) -> bool {
        !matches!(
            self.chain.obstacle,
            Some(Obstacle::Incomplete | Obstacle::Partly(_))
        )
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundFile {
    /// The file or object.
    pub device: DeviceAddress,
    pub family: u16,
    pub bytes: u64,
    /// Why it cannot be read as a medium, or not to its end; `None` if it can.
    pub defect: Option<String>,
    /// What is wrong with it, also if that is only that it ends within a set, as after a killed backup.
    pub trouble: Option<String>,
    /// Whether the defect may hide a set behind those that it shows.
    pub may_hide: bool,
    /// The sets that it shows, as if it were all of its medium.
    pub sets: Vec<FoundSet>,
}

impl FoundFile {
    /// Whether it is an older copy of `other`: it holds a part of its sets, from the first, and no others.
    fn is_older_than(&self, other: &Self) -> bool {
        let (own, theirs) = (&self.sets, &other.sets);
        let has = |(own, theirs): (&FoundSet, &FoundSet)| {
            own.chain.set_guid == theirs.chain.set_guid
                && (theirs.is_complete() || !own.is_complete())
        };
        let complete = |sets: &[FoundSet]| sets.iter().filter(|set| set.is_complete()).count();
        self.family == other.family
            && own.len() <= theirs.len()
            && complete(own) < complete(theirs)
            && own.iter().zip(theirs).all(has)
    }

    fn holds(&self, place: usize, set: Guid) -> bool {
        let own = self.sets.get(place);
        own.is_some_and(|own| own.chain.set_guid == set && own.is_complete())
    }
}

/// A media set, with all of its files that were found.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a finding of its own"
)]
pub struct FoundMedia {
    pub media_set_guid: Guid,
    pub family_count: u16,
    /// Its files, including mirrors and copies.
    pub files: Vec<FoundFile>,
    /// Its backup sets, in order, as all its files together show them.
    pub sets: Vec<FoundSet>,
    /// What is wrong with it. Sets before the problem may be complete.
    pub trouble: Option<String>,
    /// Whether its trouble may pass: it is locked, or may not be read.
    pub may_pass: bool,
    /// Whether its stripes or copies contain different sets.
    pub has_contradictions: bool,
    /// Whether it lacks sets that it holds according to the history.
    pub lacks_known: bool,
    /// It is outside the folders: examined for dependencies, but always kept.
    pub is_outside: bool,
    /// Of one outside that only the history knows now: why it may still exist.
    pub unseen: Option<String>,
}

impl FoundMedia {
    /// Whether its trouble says nothing about it: it cannot be looked at now.
    pub(crate) fn is_hidden(&self) -> bool {
        self.trouble.is_some() && (self.may_pass || self.unseen.is_some())
    }

    /// Whether it may be whole, as far as is known: it is hidden, or only the history says what is on it.
    pub(crate) fn is_presumed(&self) -> bool {
        self.trouble.is_some() && self.lacks_known || self.is_hidden()
    }

    /// Whether every family was found.
    pub(crate) fn is_whole(&self) -> bool {
        (1..=self.family_count).all(|number| self.files.iter().any(|file| file.family == number))
    }

    /// The files of a family that hold a set, by its place: not those that are older copies. All of them if none is known
    /// to hold it.
    pub(crate) fn holding(&self, family: u16, place: usize) -> Vec<&FoundFile> {
        let own = self.files.iter().filter(|file| file.family == family);
        let set = self.sets.get(place).map(|set| set.chain.set_guid);
        let holds = |file: &&FoundFile| set.is_some_and(|set| file.holds(place, set));
        let holding: Vec<&FoundFile> = own.clone().filter(holds).collect();
        match holding.is_empty() {
            true => own.collect(),
            false => holding,
        }
    }

    /// All files that hold a set, so that each of them is named once at least: in each of these lists there is one
    /// file of each family.
    pub(crate) fn copies(&self, place: usize) -> Vec<Vec<DeviceAddress>> {
        let families = (1..=self.family_count).map(|number| self.holding(number, place));
        let families: Vec<Vec<&FoundFile>> = families.collect();
        let count = families.iter().map(Vec::len).max();
        let copy = |index: usize| {
            let files = families.iter();
            let files = files.filter_map(|own| own.get(index).or_else(|| intact(own)));
            files.map(|file| file.device.clone()).collect()
        };
        (0..count.unwrap_or(0)).map(copy).collect()
    }

    /// The file of a family with the most sets, of those that can be read; else the first.
    pub(crate) fn best(&self, family: u16) -> Option<&FoundFile> {
        let own = self.files.iter().filter(|file| file.family == family);
        let first = own.clone().next();
        let readable = own.filter(|file| file.defect.is_none());
        let sets = |file: &FoundFile| file.sets.iter().filter(|set| set.is_complete()).count();
        readable.rev().max_by_key(|file| sets(file)).or(first)
    }

    /// A file that cannot be read, of a family of which no other can.
    pub fn torn(&self) -> Option<&FoundFile> {
        let mut families = (1..=self.family_count).filter_map(|number| self.best(number));
        families.find(|file| file.defect.is_some())
    }

    /// Why none of its sets can be restored.
    pub(super) fn obstacle(&self) -> Option<Obstacle> {
        let count = self.family_count;
        let text = || format!("not all of its {count} stripes were found");
        (!self.is_whole()).then(|| Obstacle::Media(text()))
    }

    /// Puts together what its files say of its sets. A set that one of them lacks cannot be restored from them;
    /// those before it can.
    pub(super) fn settle(&mut self) {
        let is_intact = |family| {
            let mut own = self.files.iter().filter(|file| file.family == family);
            own.any(|file| file.defect.is_none())
        };
        // An intact copy says more than a damaged one.
        let counted = self.files.iter();
        let counted = counted.filter(|file| file.defect.is_none() || !is_intact(file.family));
        let counted: Vec<&FoundFile> = counted.collect();
        // Nor is an older copy needed of what another file holds to its end.
        let is_newest = |file: &&&FoundFile| !counted.iter().any(|other| file.is_older_than(other));
        let counted: Vec<&FoundFile> = counted.iter().filter(is_newest).copied().collect();
        let trouble = (1..=self.family_count).find_map(|family| {
            let own = counted.iter().filter(|file| file.family == family);
            let troubles: Option<Vec<&String>> = own.map(|file| file.trouble.as_ref()).collect();
            troubles?.first().copied().cloned()
        });
        let guids = |file: &FoundFile| -> Vec<Guid> {
            let sets = file.sets.iter();
            sets.map(|set| set.chain.set_guid).collect()
        };
        let count = counted.iter().map(|file| file.sets.len()).max();
        let sets = (0..count.unwrap_or(0)).filter_map(|place| joined(&counted, place));
        let sets = sets.collect();
        let mut lists = counted.iter().map(|file| guids(file));
        let first = lists.next();
        self.has_contradictions = lists.any(|other| Some(other) != first);
        self.sets = sets;
        self.trouble = self.trouble.take().or(trouble);
        if self.has_contradictions {
            self.trouble
                .get_or_insert_with(|| CONTRADICTIONS.to_owned());
        }
    }
}

/// The first of some files that can be read, else the first.
fn intact<'f, 'm>(files: &'f [&'m FoundFile]) -> Option<&'f &'m FoundFile> {
    let mut readable = files.iter();
    let found = readable.find(|file| file.defect.is_none());
    found.or(files.first())
}

/// A set as some files of one medium show it.
fn joined(files: &[&FoundFile], place: usize) -> Option<FoundSet> {
    let shown = files.iter().filter_map(|file| file.sets.get(place));
    let set = shown.min_by_key(|set| !set.is_complete())?;
    let has = |file: &&&FoundFile| {
        let own = file.sets.get(place);
        own.is_some_and(|own| own.is_complete() && own.chain.set_guid == set.chain.set_guid)
    };
    let mut set = set.clone();
    let name = |file: &&FoundFile| file.device.to_string();
    let finished = files.iter().find(has).map(name);
    let unfinished = files.iter().find(|file| !has(file)).map(name);
    if let (Some(finished), Some(unfinished)) = (finished, unfinished) {
        set.chain.obstacle = Some(Obstacle::Partly(PartlyFinished {
            finished,
            unfinished,
        }));
    }
    Some(set)
}
