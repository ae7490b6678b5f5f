//! The data files of a database: where each page is stored, and how the files grow.
//!
//! Invariants:
//! - The place of a page never changes: regions are only added after the last extent in use.
//! - With one file, a page is at [`PageNumber::byte_offset`]: the file is a plain SQLite database.
//! - Space for a page is reserved before a commit that uses it enters the log.

use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::RwLock;
use windlass_base::{ExtentNumber, FileId, FilePage, PageNumber};
use windlass_io::DirectFile;

use crate::backup::BackupRange;
use crate::differential::ExtentMap;
use crate::error::{EngineError, Result};
use crate::log::header::Region;
use crate::options::{FileSpec, Growth};
use crate::storage::StorageFile;
use windlass_base::page::{EXTENT_PAGES, PAGE_BYTES};

pub(crate) const EXTENT_BYTES: u64 = windlass_base::EXTENT_BYTES as u64;

#[derive(Debug, Clone)]
pub(crate) struct DataFile {
    pub(crate) spec: FileSpec,
    pub(crate) file: Arc<dyn StorageFile>,
}

/// The data files of a database, and how extents are spread over them.
#[derive(Debug)]
pub(crate) struct DataFiles {
    database: String,
    inner: RwLock<Inner>,
}

#[derive(Debug)]
struct Inner {
    files: Vec<DataFile>,
    regions: Vec<Region>,
}

#[derive(Debug, Clone)]
pub(crate) struct Place {
    /// Index of the file, from 0.
    pub(crate) index: usize,
    pub(crate) file: Arc<dyn StorageFile>,
    /// Byte offset in it.
    pub(crate) offset: u64,
}

/// An extent of a data file, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct FileExtent(pub(crate) u32);

impl FileExtent {
    pub(crate) fn byte_offset(self) -> u64 {
        u64::from(self.0) * EXTENT_BYTES
    }

    /// The page with `index` pages before it in the extent.
    pub(crate) fn page(self, file_index: usize, index: u32) -> FilePage {
        FilePage {
            file_id: FileId::of_data(file_index),
            page: u64::from(self.0) * u64::from(EXTENT_PAGES) + u64::from(index),
        }
    }
}

/// The file that contains an extent, by its index, and the extent in it. `regions` are those of a
/// database, as passed to [`DataFiles::new`].
pub(crate) fn locate_extent(regions: &[Region], extent: ExtentNumber) -> (usize, FileExtent) {
    let region = regions
        .iter()
        .rev()
        .find(|region| region.first_extent <= extent)
        .unwrap_or(&regions[0]);
    let distance = extent.0.saturating_sub(region.first_extent.0);
    let count = region.files.len() as u32;
    let (file, base) = region.files[(distance % count) as usize];
    (usize::from(file), FileExtent(base.0 + distance / count))
}

/// The file that contains a page, by its index, and the page's first byte in it.
pub(crate) fn locate_page(regions: &[Region], page: PageNumber) -> (usize, u64) {
    let (index, extent) = locate_extent(regions, page.extent());
    let within = u64::from(page.index_in_extent()) * PAGE_BYTES as u64;
    (index, extent.byte_offset() + within)
}

/// The extent of the database that contains a byte of a file; `None` if the database cannot have
/// so many extents.
pub(crate) fn extent_at(regions: &[Region], file: FileId, offset: u64) -> Option<ExtentNumber> {
    let file = file.data_index()?;
    let at = u32::try_from(offset / EXTENT_BYTES).ok()?;
    for (number, region) in regions.iter().enumerate() {
        let is_file = |&(other, _): &(u16, FileExtent)| usize::from(other) == file;
        let Some(place) = region.files.iter().position(is_file) else {
            continue;
        };
        let Some(round) = at.checked_sub(region.files[place].1.0) else {
            continue;
        };
        let distance = u64::from(round) * region.files.len() as u64 + place as u64;
        let extent = u64::from(region.first_extent.0) + distance;
        let extent = ExtentNumber(u32::try_from(extent).ok()?);
        let next = regions.get(number + 1);
        if next.is_none_or(|next| extent < next.first_extent) {
            return Some(extent);
        }
    }
    None
}

fn page_at(regions: &[Region], file: FileId, offset: u64) -> Option<PageNumber> {
    let extent = extent_at(regions, file, offset)?;
    extent.page((offset % EXTENT_BYTES / PAGE_BYTES as u64) as u32)
}

/// Fails if the regions do not place every extent in one of `files` files.
pub(crate) fn check_regions(database: &str, regions: &[Region], files: usize) -> Result<()> {
    let valid = regions
        .first()
        .is_some_and(|first| first.first_extent == ExtentNumber(0))
        && regions
            .windows(2)
            .all(|pair| pair[0].first_extent <= pair[1].first_extent)
        && regions.iter().all(|region| {
            !region.files.is_empty()
                && region.files.iter().all(|&(file, base)| {
                    // Several files have stamps before their extents.
                    usize::from(file) < files && (region.files.len() == 1 || base.0 > 0)
                })
        });
    if valid {
        return Ok(());
    }
    Err(EngineError::Invalid(format!(
        "the extents of database '{database}' do not lie in its files"
    )))
}

/// Number of extents of each file used by a database of `extents` extents.
pub(crate) fn extents_used(regions: &[Region], files: usize, extents: u32) -> Vec<u32> {
    let mut used = vec![0; files];
    for (index, region) in regions.iter().enumerate() {
        let end = regions
            .get(index + 1)
            .map_or(extents.max(region.first_extent.0), |next| {
                next.first_extent.0
            });
        let length = end - region.first_extent.0;
        let count = region.files.len() as u32;
        for (place, &(file, base)) in region.files.iter().enumerate() {
            let own = length / count + u32::from((place as u32) < length % count);
            // What lies before the start of a region is in use, at least by the stamp.
            used[usize::from(file)] = used[usize::from(file)].max(base.0 + own);
        }
    }
    used
}

impl DataFiles {
    pub(crate) fn new(database: &str, files: Vec<DataFile>, regions: Vec<Region>) -> Result<Self> {
        check_regions(database, &regions, files.len())?;
        Ok(Self {
            database: database.to_owned(),
            inner: RwLock::new(Inner { files, regions }),
        })
    }

    /// The regions of a new database with the given number of files. The first extent is in the
    /// first file, where every SQLite looks for page 1; the others begin with their stamps.
    pub(crate) fn first_regions(files: usize) -> Vec<Region> {
        let mut regions = vec![Region {
            first_extent: ExtentNumber(0),
            files: vec![(0, FileExtent(0))],
        }];
        if files > 1 {
            let others = (1..files).map(|file| (file as u16, FileExtent(1)));
            regions.push(Region {
                first_extent: ExtentNumber(1),
                files: others.chain([(0, FileExtent(2))]).collect(),
            });
        }
        regions
    }

    pub(crate) fn place(&self, page: PageNumber) -> Place {
        let inner = self.inner.read();
        let (index, offset) = locate_page(&inner.regions, page);
        Place {
            index,
            file: Arc::clone(&inner.files[index].file),
            offset,
        }
    }

    /// Physical name of a file.
    pub(crate) fn path(&self, index: usize) -> PathBuf {
        self.inner.read().files[index].spec.path.clone()
    }

    /// Descriptions of all files, with their current sizes.
    pub(crate) fn specs(&self) -> Vec<FileSpec> {
        let inner = self.inner.read();
        inner.files.iter().map(|file| file.spec.clone()).collect()
    }

    /// The open files, in file order.
    pub(crate) fn handles(&self) -> Vec<Arc<dyn StorageFile>> {
        let inner = self.inner.read();
        let files = inner.files.iter();
        files.map(|file| Arc::clone(&file.file)).collect()
    }

    /// How extents are spread.
    pub(crate) fn regions(&self) -> Vec<Region> {
        self.inner.read().regions.clone()
    }

    /// The only file, if there is just one; it is then a plain SQLite database.
    pub(crate) fn single(&self) -> Option<Arc<dyn StorageFile>> {
        let inner = self.inner.read();
        match inner.files.as_slice() {
            [one] => Some(Arc::clone(&one.file)),
            _ => None,
        }
    }

    /// Reads a page from disk; returns zeros past the end of the file.
    pub(crate) fn read(&self, page: PageNumber, buffer: &mut [u8]) -> Result<()> {
        let place = self.place(page);
        let length = place
            .file
            .read_at(buffer, place.offset)
            .map_err(|error| EngineError::io("read", &self.path(place.index), error))?;
        buffer[length..].fill(0);
        Ok(())
    }

    /// Writes a page to its place.
    pub(crate) fn write(&self, page: PageNumber, content: &[u8]) -> Result<()> {
        let place = self.place(page);
        place
            .file
            .write_at(content, place.offset)
            .map_err(|error| EngineError::io("write", &self.path(place.index), error))
    }

    /// Ranges of the files with the extents of `page_count` pages, or with those marked in `map`.
    pub(crate) fn ranges(
        &self,
        page_count: u32,
        map: Option<&ExtentMap>,
        bytes_max: usize,
    ) -> Vec<BackupRange> {
        let inner = self.inner.read();
        let most = (bytes_max as u64).max(EXTENT_BYTES) / EXTENT_BYTES * EXTENT_BYTES;
        let mut ranges: Vec<Vec<BackupRange>> = vec![Vec::new(); inner.files.len()];
        for extent in ExtentNumber::all(page_count) {
            if map.is_some_and(|map| !map.is_set(extent)) {
                continue;
            }
            let (file, at) = locate_extent(&inner.regions, extent);
            let offset = at.byte_offset();
            match ranges[file].last_mut() {
                Some(last)
                    if last.offset + last.bytes as u64 == offset && (last.bytes as u64) < most =>
                {
                    last.bytes += EXTENT_BYTES as usize;
                }
                _ => ranges[file].push(BackupRange {
                    file: FileId::of_data(file),
                    offset,
                    bytes: EXTENT_BYTES as usize,
                }),
            }
        }
        ranges.concat()
    }

    /// The page that contains a byte of a file; `None` if the database cannot have so many pages.
    pub(crate) fn page_at(&self, file: FileId, offset: u64) -> Option<PageNumber> {
        page_at(&self.inner.read().regions, file, offset)
    }

    /// Reads a range of a file; returns zeros past its end.
    pub(crate) fn read_range(&self, range: &BackupRange, buffer: &mut [u8]) -> Result<()> {
        let file = self.file(range.file)?;
        let length = file
            .file
            .read_at(buffer, range.offset)
            .map_err(|error| EngineError::io("read", &file.spec.path, error))?;
        buffer[length..].fill(0);
        Ok(())
    }

    /// Writes a range of a file.
    pub(crate) fn write_range(&self, range: &BackupRange, bytes: &[u8]) -> Result<()> {
        let file = self.file(range.file)?;
        file.file
            .write_at(bytes, range.offset)
            .map_err(|error| EngineError::io("write", &file.spec.path, error))
    }

    fn file(&self, id: FileId) -> Result<DataFile> {
        self.with_file(id, DataFile::clone)
    }

    /// The file itself, if the storage has one. Called for each read of a backup, so it allocates
    /// nothing.
    pub(crate) fn direct(&self, id: FileId) -> Result<Option<Arc<DirectFile>>> {
        self.with_file(id, |file| file.file.direct())
    }

    fn with_file<T>(&self, id: FileId, take: impl FnOnce(&DataFile) -> T) -> Result<T> {
        let inner = self.inner.read();
        let file = id.data_index().and_then(|index| inner.files.get(index));
        file.map(take).ok_or_else(|| {
            EngineError::Invalid(format!(
                "database '{}' has no data file {id}",
                self.database
            ))
        })
    }

    /// Reserves space for `page_count` pages, growing files as allowed.
    pub(crate) fn ensure(&self, page_count: u32) -> Result<()> {
        let extents = page_count.div_ceil(EXTENT_PAGES);
        {
            let inner = self.inner.read();
            let used = extents_used(&inner.regions, inner.files.len(), extents);
            let fits =
                |(file, &used): (&DataFile, &u32)| u64::from(used) * EXTENT_BYTES <= file.spec.size;
            if inner.files.iter().zip(&used).all(fits) {
                return Ok(());
            }
        }
        let mut inner = self.inner.write();
        let used = extents_used(&inner.regions, inner.files.len(), extents);
        for (file, used) in inner.files.iter_mut().zip(used) {
            let needed = u64::from(used) * EXTENT_BYTES;
            if needed > file.spec.size {
                self.grow(file, needed)?;
            }
        }
        Ok(())
    }

    fn grow(&self, file: &mut DataFile, needed: u64) -> Result<()> {
        let full = |reason: String| EngineError::FileFull {
            database: self.database.clone(),
            file: file.spec.logical_name.clone(),
            reason,
        };
        let spec = &file.spec;
        let step = match spec.growth {
            Growth::Fixed => return Err(full("its size is fixed; add a file".to_owned())),
            Growth::Bytes(bytes) => bytes,
            Growth::Percent(percent) => spec.size / 100 * u64::from(percent),
        };
        let step = step.next_multiple_of(EXTENT_BYTES).max(EXTENT_BYTES);
        let mut size = spec.size + (needed - spec.size).next_multiple_of(step);
        if let Some(limit) = spec.max_size {
            size = size.min(limit / EXTENT_BYTES * EXTENT_BYTES);
            if size < needed {
                return Err(full(format!("it may not grow beyond {limit} bytes")));
            }
        }
        file.file
            .reserve(spec.size, size - spec.size)
            .map_err(|error| full(error.to_string()))?;
        file.spec.size = size;
        Ok(())
    }

    /// Adds a file; extents after the last one in use are spread over all files from then on. Files
    /// that have no stamp yet get room for it.
    ///
    /// # Errors
    /// The only file so far has no room for its stamp.
    pub(crate) fn add(&self, added: DataFile, page_count: u32) -> Result<()> {
        let mut inner = self.inner.write();
        let last = inner
            .regions
            .last()
            .map_or(0, |region| region.first_extent.0);
        let extents = page_count.div_ceil(EXTENT_PAGES).max(last);
        let mut used = extents_used(&inner.regions, inner.files.len(), extents);
        if let [only] = inner.files.as_mut_slice() {
            used[0] += 1;
            let needed = u64::from(used[0]) * EXTENT_BYTES;
            if needed > only.spec.size {
                self.grow(only, needed)?;
            }
        }
        inner.files.push(added);
        let bases = used.into_iter().chain([1]).enumerate();
        let files = bases
            .map(|(file, base)| (file as u16, FileExtent(base)))
            .collect();
        inner.regions.push(Region {
            first_extent: ExtentNumber(extents),
            files,
        });
        Ok(())
    }

    /// Removes the file that was added last.
    pub(crate) fn remove_last(&self) {
        let mut inner = self.inner.write();
        inner.files.pop();
        inner.regions.pop();
    }

    /// Keeps the first `files` files and `regions` regions.
    pub(crate) fn cut(&self, files: usize, regions: usize) -> Vec<DataFile> {
        let mut inner = self.inner.write();
        inner.regions.truncate(regions);
        let kept = files.min(inner.files.len());
        inner.files.split_off(kept)
    }

    /// Adds a file that has its place already.
    pub(crate) fn push(&self, file: DataFile) {
        self.inner.write().files.push(file);
    }

    /// Adds a region.
    ///
    /// # Errors
    /// It lies in files that the database does not have.
    pub(crate) fn push_region(&self, region: Region) -> Result<()> {
        let mut inner = self.inner.write();
        inner.regions.push(region);
        check_regions(&self.database, &inner.regions, inner.files.len())
    }

    /// All files, in order, and their regions.
    pub(crate) fn all(&self) -> (Vec<DataFile>, Vec<Region>) {
        let inner = self.inner.read();
        (inner.files.clone(), inner.regions.clone())
    }

    /// Locks the data files against every SQLite and every other instance.
    pub(crate) fn lock(&self) -> Result<()> {
        for file in &self.inner.read().files {
            let fail = |error| EngineError::lock(&file.spec.path, error);
            file.file.lock_database().map_err(fail)?;
        }
        Ok(())
    }

    pub(crate) fn unlock(&self) -> Result<()> {
        for file in &self.inner.read().files {
            let fail = |error| EngineError::lock(&file.spec.path, error);
            file.file.unlock().map_err(fail)?;
        }
        Ok(())
    }

    pub(crate) fn sync(&self) -> Result<()> {
        let files = self.inner.read().files.clone();
        for file in files {
            file.file
                .sync()
                .map_err(|error| EngineError::io("sync", &file.spec.path, error))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    /// Regions of three files and more, and the extents in use. `each` gets each extent while it is
    /// the last one.
    fn grown_regions(mut each: impl FnMut(&[Region], ExtentNumber)) -> (Vec<Region>, u32) {
        let mut regions = DataFiles::first_regions(3);
        let mut extents = 0;
        for added in [100, 5, 0, 77] {
            for _ in 0..added {
                each(&regions, ExtentNumber(extents));
                extents += 1;
            }
            let used = extents_used(&regions, regions.last().unwrap().files.len(), extents);
            let stamps = used.len() as u32;
            assert!(used.iter().sum::<u32>() <= extents + stamps + 1);
            let files = used.into_iter().chain([1]).enumerate();
            let files = files.map(|(file, base)| (file as u16, FileExtent(base)));
            regions.push(Region {
                first_extent: ExtentNumber(extents),
                files: files.collect(),
            });
        }
        (regions, extents)
    }

    #[test]
    fn pages_never_share_a_place_and_fit_the_space_in_use() {
        let mut places = HashSet::new();
        let (regions, _) = grown_regions(|regions, extent| {
            let (file, at) = locate_extent(regions, extent);
            assert!(places.insert((file, at)));
            let used = extents_used(regions, 6, extent.0 + 1);
            assert!(at.0 < used[file]);
        });
        let first = &regions[..2];
        assert_eq!(locate_extent(first, ExtentNumber(0)), (0, FileExtent(0)));
        assert_eq!(locate_extent(first, ExtentNumber(7)), (1, FileExtent(3)));
    }

    #[test]
    fn a_byte_of_a_file_is_in_the_page_that_is_placed_there() {
        let (regions, extents) = grown_regions(|_, _| ());
        let page_at = |file, offset| page_at(&regions, file, offset);
        for page in PageNumber::all(extents * EXTENT_PAGES) {
            let (file, offset) = locate_page(&regions, page);
            for byte in [offset, offset + PAGE_BYTES as u64 - 1] {
                assert_eq!(page_at(FileId::of_data(file), byte), Some(page));
            }
        }
        assert_eq!(page_at(FileId::LOG, 0), None);
        assert_eq!(page_at(FileId(99), 0), None);
        for beyond in [1 << 45, 1 << 48, u64::MAX] {
            assert_eq!(page_at(FileId::PRIMARY, beyond), None, "{beyond}");
        }
    }
}
