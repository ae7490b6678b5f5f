//! Reading a media family: its header and what sets are on it.
//!
//! Pull-style over [`ReadAt`]. Every length is checked against the family and against a named
//! maximum before anything is allocated; every loop moves forward or strictly backward.

use crate::chunk::ChunkHeader;
use crate::configuration::SetConfiguration;
use crate::error::MediaError;
use crate::filemark::Filemark;
use crate::header::MediaHeader;
use crate::mtf::Id;
use crate::set_blocks::SetEnd;
use crate::set_walk::{WalkedSet, walk_set};
use crate::streams::{ReadAt, Streams};
use crate::writer::AppendPosition;

/// A set found on a family.
#[derive(Debug, Clone)]
pub struct SetListing {
    /// The final configuration; the one from the start when the set is incomplete.
    pub configuration: SetConfiguration,
    /// Family offset of its first block.
    pub offset: u64,
    /// Its end; absent when it was never finished.
    pub end: Option<SetEnd>,
}

/// What is on a family.
#[derive(Debug)]
pub struct Listing {
    /// Sets in order; at most the last one is incomplete.
    pub sets: Vec<SetListing>,
    /// Why the octets behind the last complete set are no complete set; absent when there are none.
    pub trouble: Option<MediaError>,
    /// Filemarks up to the last complete set, in order: one behind the header, two a set.
    filemarks: Vec<u64>,
    block_bytes: u32,
}

impl Listing {
    /// Complete sets.
    pub fn complete_sets(&self) -> u16 {
        self.sets.iter().filter(|set| set.end.is_some()).count() as u16
    }

    /// Where an append behind the first `sets` complete sets continues.
    pub fn append_position(&self, sets: u16) -> AppendPosition {
        let sets = sets.min(self.complete_sets());
        let kept = self
            .filemarks
            .get(..=2 * usize::from(sets))
            .unwrap_or_default();
        let filemarks: Vec<u64> = kept.iter().rev().copied().collect();
        let last = filemarks.first().copied().unwrap_or(0);
        AppendPosition {
            offset: last + u64::from(self.block_bytes),
            sets,
            filemarks,
        }
    }
}

/// A media family, opened.
#[derive(Clone, Copy)]
pub struct FamilyReader<'a> {
    family: &'a dyn ReadAt,
    block_bytes: u32,
    family_number: u16,
    /// Offset of the filemark behind the media header.
    first_filemark: u64,
}

impl std::fmt::Debug for FamilyReader<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FamilyReader")
            .field("family_number", &self.family_number)
            .finish_non_exhaustive()
    }
}

impl<'a> FamilyReader<'a> {
    /// Reads the media header and the filemark behind it.
    ///
    /// # Errors
    /// Says whether the device holds nothing, something else, SQL Server's media or a damaged header.
    pub fn open(family: &'a dyn ReadAt) -> Result<(Self, MediaHeader), MediaError> {
        let (header, end) = MediaHeader::read(family)?;
        Filemark::read(family, end, header.block_bytes)?;
        let reader = Self {
            family,
            block_bytes: header.block_bytes,
            family_number: header.family_number,
            first_filemark: end,
        };
        Ok((reader, header))
    }

    /// Finds the sets: from the last filemark backwards, or, where the family does not end with a
    /// good one, by walking forward.
    pub fn list(&self) -> Listing {
        self.list_backwards()
            .unwrap_or_else(|_| self.list_forwards())
    }

    fn list_backwards(&self) -> Result<Listing, MediaError> {
        let block = u64::from(self.block_bytes);
        let last = self.family.len().saturating_sub(block);
        let mut mark = Filemark::read(self.family, last, self.block_bytes)?;
        let wanted = 2 * usize::from(mark.sets) + 1;
        let sets = mark.sets;
        let mut filemarks = vec![mark.offset];
        while mark.previous != 0 && filemarks.len() < wanted {
            mark = Filemark::read(self.family, mark.previous, self.block_bytes)?;
            filemarks.push(mark.offset);
        }
        filemarks.reverse();
        if filemarks.len() != wanted || filemarks.first() != Some(&self.first_filemark) {
            let (expected, found) = (wanted as u64, filemarks.len() as u64);
            return Err(MediaError::Damaged {
                offset: last,
                what: "chain of filemarks",
                expected,
                found,
            });
        }
        let mut listing = Listing {
            sets: Vec::new(),
            trouble: None,
            filemarks,
            block_bytes: self.block_bytes,
        };
        for index in 0..usize::from(sets) {
            let marks = listing
                .filemarks
                .get(2 * index..2 * index + 2)
                .unwrap_or_default();
            let [before, between] = marks else { break };
            let set = self.read_listing(before + block, between + block, index as u16 + 1)?;
            listing.sets.push(set);
        }
        Ok(listing)
    }

    /// Reads the end block of a set and, through it, the final configuration.
    fn read_listing(
        &self,
        offset: u64,
        end_offset: u64,
        number: u16,
    ) -> Result<SetListing, MediaError> {
        let (end, _) = read_set_end(self.family, end_offset)?;
        self.check_end(&end, offset, end_offset, number)?;
        let stream = Streams::at(
            self.family,
            offset,
            offset.saturating_add(end.configuration_offset),
        )
        .expect(Id::WLSC)?;
        let octets = Streams::at(self.family, offset, offset).read_data(&stream)?;
        let configuration = SetConfiguration::parse(&octets, stream.data_offset)?;
        check_configuration(&configuration, &end, stream.data_offset)?;
        Ok(SetListing {
            configuration,
            offset,
            end: Some(end),
        })
    }

    fn check_end(
        &self,
        end: &SetEnd,
        offset: u64,
        end_offset: u64,
        number: u16,
    ) -> Result<(), MediaError> {
        let pairs = [
            ("place of a set", offset, end.set_offset),
            ("position of a set", number.into(), end.position.into()),
            (
                "family of a set",
                self.family_number.into(),
                end.family_number.into(),
            ),
        ];
        for (what, expected, found) in pairs {
            if expected != found {
                return Err(MediaError::Damaged {
                    offset: end_offset,
                    what,
                    expected,
                    found,
                });
            }
        }
        Ok(())
    }

    fn list_forwards(&self) -> Listing {
        let block = u64::from(self.block_bytes);
        let filemarks = vec![self.first_filemark];
        let mut listing = Listing {
            sets: Vec::new(),
            trouble: None,
            filemarks,
            block_bytes: self.block_bytes,
        };
        let mut offset = self.first_filemark + block;
        while offset < self.family.len() {
            let number = listing.complete_sets() + 1;
            match self.walk_at(offset, number, &mut |_, _| true) {
                Ok(walked) => {
                    listing
                        .filemarks
                        .extend([walked.data_filemark, walked.end_filemark]);
                    offset = walked.end_filemark + block;
                    let WalkedSet {
                        configuration, end, ..
                    } = walked;
                    listing.sets.push(SetListing {
                        configuration,
                        offset: end.set_offset,
                        end: Some(end),
                    });
                }
                Err(trouble) => {
                    if let Ok(configuration) = read_start(self.family, offset) {
                        listing.sets.push(SetListing {
                            configuration,
                            offset,
                            end: None,
                        });
                    }
                    listing.trouble = Some(trouble);
                    break;
                }
            }
        }
        listing
    }

    /// Walks a whole set and examines every octet but the payloads, which `visit` is told of:
    /// header and family offset of each. It returns whether to go on.
    ///
    /// # Errors
    /// The first thing that is not as it was written. [`MediaError::IncompleteSet`] when the set
    /// was never finished. Stopping early is not an error; the result then lacks the end.
    pub fn walk(
        &self,
        set: &SetListing,
        visit: &mut dyn FnMut(ChunkHeader, u64) -> bool,
    ) -> Result<WalkedSet, MediaError> {
        self.walk_at(set.offset, set.configuration.position, visit)
    }

    fn walk_at(
        &self,
        offset: u64,
        number: u16,
        visit: &mut dyn FnMut(ChunkHeader, u64) -> bool,
    ) -> Result<WalkedSet, MediaError> {
        let walked = walk_set(self.family, offset, self.block_bytes, visit);
        let walked = walked.map_err(|reason| match reason {
            MediaError::Truncated { .. } => MediaError::IncompleteSet {
                number,
                offset,
                reason: Box::new(reason),
            },
            other => other,
        })?;
        self.check_end(&walked.end, offset, walked.end_filemark, number)?;
        Ok(walked)
    }

    /// Examines the media header with its padding, for a strict verification.
    ///
    /// # Errors
    /// The first thing that is not as it was written.
    pub fn check_header(&self) -> Result<(), MediaError> {
        let (_, end) = MediaHeader::read(self.family)?;
        Filemark::read(self.family, end, self.block_bytes).map(drop)
    }
}

/// The configuration from the start of a set.
fn read_start(family: &dyn ReadAt, offset: u64) -> Result<SetConfiguration, MediaError> {
    let mut streams = Streams::open(family, offset, Id::SSET)?;
    let stream = streams.expect(Id::WLSC)?;
    let octets = streams.read_data(&stream)?;
    SetConfiguration::parse(&octets, stream.data_offset)
}

/// Reads the end block at `offset`; also where it ends.
pub(crate) fn read_set_end(family: &dyn ReadAt, offset: u64) -> Result<(SetEnd, u64), MediaError> {
    let mut streams = Streams::open(family, offset, Id::ESET)?;
    let stream = streams.expect(Id::WLES)?;
    let octets = streams.read_data(&stream)?;
    let end = SetEnd::load_list(&octets, stream.data_offset)?;
    streams.check_stream()?;
    Ok((end, streams.pad()?))
}

/// Fails unless the final configuration belongs to the set that ends with `end`.
pub(crate) fn check_configuration(
    configuration: &SetConfiguration,
    end: &SetEnd,
    offset: u64,
) -> Result<(), MediaError> {
    let (expected, found) = (end.set_guid, configuration.set_guid);
    if expected != found {
        return Err(MediaError::WrongIdentity {
            offset,
            what: "backup set",
            expected,
            found,
        });
    }
    let (expected, found) = (end.position.into(), configuration.position.into());
    if expected != found || !configuration.is_final {
        return Err(MediaError::Damaged {
            offset,
            what: "final configuration",
            expected,
            found,
        });
    }
    Ok(())
}
