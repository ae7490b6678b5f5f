//! The pages of a database, from its backups or from its data files.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::sync::Arc;

use windlass_bak::page::{EXTENT_PAGES, PAGE_BYTES, PageHeader};
use windlass_bak::table::Pages;
use windlass_bak::{
    BackupType, ExtentIndex, ExtentReader, Finding, Listing, Location, PageId, SetListing,
    Transactions,
};
use windlass_base::{Guid, Moment};
use windlass_device::DeviceAddress;

use crate::input::path_of;
use crate::restore::configuration;
use crate::{BackupInput, Error, Step};

/// Number of extents cached in memory: 32 MB.
const CACHED_EXTENTS: usize = 512;

/// Type of the first page of a data file.
const TYPE_FILE_HEADER: u8 = 15;

/// A source of the pages of a database.
#[derive(Debug)]
pub struct Source {
    pages: Kind,
    /// The name of the database, if it is known.
    pub database: String,
    /// The findings about its files.
    pub findings: Vec<(PathBuf, Finding)>,
    /// Notable facts that are not problems.
    pub notes: Vec<String>,
    /// The log of the last backup.
    pub(crate) log: Option<Arc<Transactions>>,
}

#[derive(Debug)]
enum Kind {
    Backups(Box<Backups>),
    Files(BTreeMap<u16, File>),
}

/// Backups, with a cache of the extents read last.
#[derive(Debug)]
struct Backups {
    index: ExtentIndex,
    readers: Vec<ExtentReader<BackupInput>>,
    cached: HashMap<Location2, Vec<u8>>,
    order: VecDeque<Location2>,
}

/// A location as a key.
type Location2 = (u32, u64, u32);

impl Source {
    /// Opens backups, or data files on disk; their content shows which they are.
    ///
    /// Backups: a full one with all its stripes, at `position` of its media, and its differentials,
    /// in any order.
    ///
    /// # Errors
    /// A file cannot be read, or the files do not belong together.
    pub fn open(devices: &[DeviceAddress], position: u16) -> Result<Self, Error> {
        let are_data = devices.iter().map(is_data_file);
        let are_data: Vec<bool> = are_data.collect::<Result<_, _>>()?;
        if are_data.iter().all(|is_data| *is_data) {
            let files: Vec<PathBuf> = devices.iter().map(path_of).collect();
            return Self::open_data_files(&files);
        }
        let steps = steps(devices, position)?;
        Self::open_backups(&steps)
    }

    fn open_data_files(paths: &[PathBuf]) -> Result<Self, Error> {
        let mut files = BTreeMap::new();
        for path in paths {
            let file =
                windlass_io::open_readable(path).map_err(|error| Error::file(path, error))?;
            let mut page = vec![0; PAGE_BYTES];
            file.read_exact_at(&mut page, 0)
                .map_err(|error| Error::file(path, error))?;
            files.insert(PageHeader::new(&page).id().file, file);
        }
        Ok(Self {
            pages: Kind::Files(files),
            database: String::new(),
            findings: Vec::new(),
            log: None,
            notes: vec![
                "Data files are read as they are: changes that a server would redo or undo from \
                 the log are not applied."
                    .to_owned(),
            ],
        })
    }

    fn open_backups(steps: &[Step]) -> Result<Self, Error> {
        let mut index = ExtentIndex::default();
        let mut readers = Vec::new();
        let mut paths = Vec::new();
        let mut database = String::new();
        let mut notes = Vec::new();
        for step in steps {
            let mut families = Vec::new();
            for device in &step.devices {
                let open =
                    || BackupInput::open(device).map_err(|error| Error::device(device, error));
                let input = readers.len() as u32;
                let (media, set) = index
                    .add(open()?, step.position)
                    .map_err(|error| Error::backup(device, error))?;
                if let Some(container) = index.container(input) {
                    readers.push(ExtentReader::new(open()?, container));
                }
                paths.push(path_of(device));
                if let Some(found) = set.configuration() {
                    database.clone_from(&found.database);
                }
                let media = media.map(|media| (media.family_count, media.family_number));
                families.extend(media);
            }
            let count = families.first().map_or(1, |(count, _)| *count);
            for number in 1..=count {
                if !families.iter().any(|(_, found)| *found == number) {
                    notes.push(format!(
                        "Media family {number} of {count} is missing: the tables have gaps."
                    ));
                }
            }
        }
        let findings = index.findings.iter().map(|(input, finding)| {
            let path = paths.get(*input as usize).cloned().unwrap_or_default();
            (path, finding.clone())
        });
        let findings = findings.collect();
        let log = Some(Arc::new(index.take_transactions()));
        Ok(Self {
            findings,
            log,
            pages: Kind::Backups(Box::new(Backups {
                index,
                readers,
                cached: HashMap::new(),
                order: VecDeque::new(),
            })),
            database,
            notes,
        })
    }
}

/// Whether a device is a data file on disk, judging by its first page.
///
/// # Errors
/// The file cannot be read.
pub fn is_data_file(device: &DeviceAddress) -> Result<bool, Error> {
    let Some(path) = device.file() else {
        return Ok(false);
    };
    let failed = |error| Error::file(path, error);
    let file = windlass_io::open_readable(path).map_err(failed)?;
    if file.metadata().map_err(failed)?.len() < PAGE_BYTES as u64 {
        return Ok(false);
    }
    let mut page = vec![0; PAGE_BYTES];
    file.read_exact_at(&mut page, 0).map_err(failed)?;
    let header = PageHeader::new(&page);
    Ok(header.version() == 1 && header.page_type() == TYPE_FILE_HEADER && header.id().page == 0)
}

/// A media set: the devices of one backup.
struct Group {
    media_set: Guid,
    devices: Vec<DeviceAddress>,
    /// The position of the set on it.
    position: u16,
    set: SetListing,
}

/// The type of the backup at a position of a device.
///
/// # Errors
/// It cannot be read, or has no such set.
pub fn backup_type(device: &DeviceAddress, position: u16) -> Result<BackupType, Error> {
    let step = Step {
        devices: vec![device.clone()],
        position,
    };
    Ok(configuration(&step)?.backup_type)
}

/// The sets of the media that a device belongs to: their positions and types.
///
/// # Errors
/// It cannot be read.
pub fn sets_in(device: &DeviceAddress) -> Result<Vec<(u16, BackupType)>, Error> {
    let input = BackupInput::open(device).map_err(|error| Error::device(device, error))?;
    let listing = Listing::read(input).map_err(|error| Error::backup(device, error))?;
    let kind = |set: &SetListing| set.configuration().map(|found| found.backup_type);
    let sets = listing.sets.iter();
    Ok(sets
        .filter_map(|set| Some((set.header.position, kind(set)?)))
        .collect())
}

/// Sorts backups: groups those of one media set, with the full backup first and then the
/// differentials from the oldest to the newest. `position` is that of the set on the media of the first device; of the
/// others the first set is taken.
///
/// # Errors
/// A device cannot be read, or they do not belong together.
pub fn steps(devices: &[DeviceAddress], position: u16) -> Result<Vec<Step>, Error> {
    steps_after(devices, position, None)
}

/// As [`steps`], but with a full backup that was restored before, if there is one: then all are its differentials.
///
/// # Errors
/// As [`steps`].
pub fn steps_after(
    devices: &[DeviceAddress],
    position: u16,
    restored: Option<Guid>,
) -> Result<Vec<Step>, Error> {
    let mut groups: Vec<Group> = Vec::new();
    for device in devices {
        let input = BackupInput::open(device).map_err(|error| Error::device(device, error))?;
        let listing = Listing::read(input).map_err(|error| Error::backup(device, error))?;
        let media_set = listing
            .media
            .as_ref()
            .map_or(Guid::NIL, |media| media.media_set);
        if let Some(group) = groups.iter_mut().find(|group| group.media_set == media_set) {
            group.devices.push(device.clone());
            continue;
        }
        let wanted = if groups.is_empty() { position } else { 1 };
        let set = listing
            .set(wanted)
            .map_err(|error| Error::backup(device, error))?;
        groups.push(Group {
            media_set,
            devices: vec![device.clone()],
            position: wanted,
            set: set.clone(),
        });
    }
    let kind = |group: &Group| group.set.configuration().map(|found| found.backup_type);
    let finished = |group: &Group| -> Option<Moment> {
        group.set.configuration().and_then(|found| found.finished)
    };
    groups.sort_by_key(|group| (kind(group) != Some(BackupType::Database), finished(group)));
    let mut base = restored;
    for group in &groups {
        let path = group.devices.first().map_or_else(PathBuf::new, path_of);
        let found = group.set.configuration();
        match (kind(group), base) {
            (Some(BackupType::Database), None) => base = Some(group.set.header.guid),
            (Some(BackupType::Differential), Some(base))
                if found.is_some_and(|found| found.differential_base == base) => {}
            (Some(BackupType::Differential), Some(base)) => {
                return Err(Error::OtherBase {
                    path,
                    expected: found.map_or(Guid::NIL, |found| found.differential_base),
                    found: base,
                });
            }
            (other, _) => {
                let what = other.map_or("Unknown", BackupType::description);
                let why = match other {
                    Some(BackupType::Log) => "only a server can redo its log; ",
                    _ => "",
                };
                return Err(Error::Sequence {
                    path,
                    reason: format!(
                        "a backup of type '{what}': {why}one full backup and differentials on it can be read together"
                    ),
                });
            }
        }
    }
    let step = |group: Group| Step {
        devices: group.devices,
        position: group.position,
    };
    Ok(groups.into_iter().map(step).collect())
}

impl Backups {
    fn extent(&mut self, location: Location) -> Result<&[u8], windlass_bak::Error> {
        let key = (location.input, location.offset, location.in_record);
        if !self.cached.contains_key(&key) {
            let mut extent = match self.order.len() {
                0..CACHED_EXTENTS => Vec::new(),
                _ => {
                    let oldest = self.order.pop_front();
                    let oldest = oldest.and_then(|oldest| self.cached.remove(&oldest));
                    oldest.unwrap_or_default()
                }
            };
            if let Some(reader) = self.readers.get_mut(location.input as usize) {
                reader.read(location, &mut extent)?;
            }
            self.cached.insert(key, extent);
            self.order.push_back(key);
        }
        Ok(self.cached.get(&key).map(Vec::as_slice).unwrap_or_default())
    }
}

impl Pages for Source {
    fn page(&mut self, id: PageId, page: &mut [u8]) -> Result<bool, windlass_bak::Error> {
        match &mut self.pages {
            Kind::Backups(backups) => {
                let Some(location) = backups.index.location(id) else {
                    return Ok(false);
                };
                let extent = backups.extent(location)?;
                let at = (id.page % EXTENT_PAGES) as usize * PAGE_BYTES;
                let Some(found) = extent.get(at..at + PAGE_BYTES) else {
                    return Ok(false);
                };
                page.copy_from_slice(found);
                Ok(true)
            }
            Kind::Files(files) => {
                let Some(file) = files.get(&id.file) else {
                    return Ok(false);
                };
                let offset = u64::from(id.page) * PAGE_BYTES as u64;
                match file.read_exact_at(page, offset) {
                    Ok(()) => Ok(true),
                    Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => Ok(false),
                    Err(error) => Err(error.into()),
                }
            }
        }
    }
}
