//! Reads a media family: its header, its sets, the chunks and the index of a set.
//!
//! Pull-style over [`ReadAt`]. Every length is checked against the family and against a maximum
//! before anything is allocated; every loop advances strictly forward or backward.

use windlass_base::Guid;

use crate::chunk::{ChunkHeader, HEADER_BYTES_MAX};
use crate::configuration::SetConfiguration;
use crate::cursor::require_at_most;
use crate::error::MediaError;
use crate::filemark::Filemark;
use crate::header::{FamilyIdentity, MediaHeader};
use crate::index::IndexSegment;
use crate::listing::{Listing, SetListing, crosses_filemark};
use crate::mtf::Id;
use crate::proof::FinalConfiguration;
use crate::record::Records;
use crate::set_blocks::SetEnd;
use crate::set_walk::{WalkedSet, read_chunk, walk_data, walk_set};
use crate::streams::{ReadAt, Streams};

/// An opened media family.
#[derive(Clone, Copy)]
pub struct FamilyReader<'a> {
    pub(crate) family: &'a dyn ReadAt,
    pub(crate) identity: FamilyIdentity,
    /// Offset of the filemark after the media header.
    pub(crate) first_filemark: u64,
}

impl std::fmt::Debug for FamilyReader<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FamilyReader")
            .field("identity", &self.identity)
            .finish_non_exhaustive()
    }
}

impl<'a> FamilyReader<'a> {
    /// Reads the media header.
    ///
    /// # Errors
    /// Distinguishes an empty device, other content, SQL Server's media and a damaged header.
    pub fn open(family: &'a dyn ReadAt) -> Result<(Self, MediaHeader), MediaError> {
        let (header, end) = MediaHeader::read(family)?;
        let reader = Self {
            family,
            identity: header.identity(),
            first_filemark: end,
        };
        Ok((reader, header))
    }

    /// The set whose last filemark ends at `end`: the last set of the family when it had this length. Reads two blocks.
    ///
    /// # Errors
    /// If no set ends there.
    pub fn set_that_ended_at(&self, end: u64) -> Result<Guid, MediaError> {
        let unit = u64::from(self.identity.block_bytes);
        let last = Filemark::read(self.family, end.saturating_sub(unit), &self.identity)?;
        let data = last.earlier.first().copied().unwrap_or_default();
        let (found, _) = read_set_end(self.family, data.saturating_add(unit))?;
        Ok(found.set_guid)
    }

    /// Finds the sets; see [`Listing`]. Reads no chunk of a family that ends as it should.
    pub fn list(&self) -> Listing {
        Listing::of(self)
    }

    /// Reads the end block of a set and, through it, the final configuration; each from the part of
    /// the family that must contain it.
    pub(crate) fn read_listing(
        &self,
        offset: u64,
        (data, behind): (&dyn ReadAt, &dyn ReadAt),
        end_offset: u64,
        number: u16,
    ) -> Result<SetListing, MediaError> {
        let (end, _) = read_set_end(behind, end_offset)?;
        self.check_end(&end, offset, end_offset, number)?;
        let (configuration, _) = read_final(data, offset, &end)?;
        Ok(SetListing::of(configuration, offset, Some(end)))
    }

    /// The complete configuration of a set, with its files: the final one, or that of its start if the
    /// end is missing.
    ///
    /// # Errors
    /// If it is damaged.
    pub fn configuration(&self, set: &SetListing) -> Result<SetConfiguration, MediaError> {
        match &set.end {
            Some(_) => self.final_configuration(set).map(|(parsed, _)| parsed),
            None => read_start(&set.part(self), set.offset),
        }
    }

    /// The final configuration of a set, and its stored form, which is the same on every family.
    ///
    /// # Errors
    /// If the set has no end, or its configuration is missing or damaged.
    pub fn final_configuration(
        &self,
        set: &SetListing,
    ) -> Result<(SetConfiguration, FinalConfiguration), MediaError> {
        let number = set.configuration.position;
        let end = set.end.as_ref().ok_or(MediaError::NoSuchSet { number })?;
        read_final(&set.part(self), set.offset, end)
    }

    /// The [binding](SetConfiguration::binding) that the final configuration of a set must have,
    /// computed from this family.
    ///
    /// # Errors
    /// If the start of the set cannot be read.
    pub fn binding(&self, header: &MediaHeader, set: &SetListing) -> Result<Vec<u8>, MediaError> {
        let part = set.part(self);
        let mut streams = Streams::open(&part, set.offset, Id::SSET)?;
        let stream = streams.expect(Id::WLSC)?;
        Ok(header.binding_of(&streams.read_data(&stream)?))
    }

    /// The start of the first set; `None` if it is missing or damaged. Reads nothing else.
    pub fn first_set(&self) -> Option<SetConfiguration> {
        let offset = self.first_filemark + u64::from(self.identity.block_bytes);
        read_start(self.family, offset).ok()
    }

    fn check_end(
        &self,
        end: &SetEnd,
        offset: u64,
        end_offset: u64,
        number: u16,
    ) -> Result<(), MediaError> {
        let family = self.identity.number;
        let pairs = [
            ("place of a set", offset, end.set_offset),
            ("position of a set", number.into(), end.position.into()),
            ("family of a set", family.into(), end.family_number.into()),
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

    /// Walks a whole set and checks every byte except payloads. Calls `visit` with each chunk's
    /// header and the family offset of its payload; it returns whether to continue. A family that is cut off within
    /// the filemark behind the set has all of the set: only [`WalkedSet::closed`] refuses it.
    ///
    /// # Errors
    /// The first deviation from what was written. [`MediaError::IncompleteSet`] if the set was
    /// never finished, and also if `visit` stopped the walk.
    pub fn walk(
        &self,
        set: &SetListing,
        visit: &mut dyn FnMut(ChunkHeader, u64) -> bool,
    ) -> Result<WalkedSet, MediaError> {
        let part = set.part(self);
        let within = FamilyReader {
            family: &part,
            ..*self
        };
        let walked = within.walk_at(set.offset, set.configuration.position, visit);
        let walked = walked.map_err(|trouble| match trouble {
            MediaError::IncompleteSet { reason, .. } if set.end.is_some() => {
                crosses_filemark(*reason)
            }
            other => other,
        })?;
        match &walked.end_trouble {
            Some(trouble) if !trouble.is_truncation() => walked.closed(),
            _ => Ok(walked),
        }
    }

    /// Whether a set without an end has all of its data, up to the filemark after them. This is so
    /// if a backup was interrupted while it wrote the ends; a stale or truncated copy of the family
    /// has less.
    pub fn has_all_data(&self, set: &SetListing) -> bool {
        walk_data(self.family, set.offset, &self.identity, &mut |_, _| true).is_ok()
    }

    pub(crate) fn walk_at(
        &self,
        offset: u64,
        number: u16,
        visit: &mut dyn FnMut(ChunkHeader, u64) -> bool,
    ) -> Result<WalkedSet, MediaError> {
        let walked = walk_set(self.family, offset, &self.identity, visit);
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

    /// Reads the chunk index of a set on this family, one segment at a time, newest first. `visit`
    /// returns whether to continue. Reads no chunks.
    ///
    /// # Errors
    /// If the set has no end, or its index is damaged.
    pub fn index(
        &self,
        set: &SetListing,
        visit: &mut dyn FnMut(IndexSegment) -> bool,
    ) -> Result<(), MediaError> {
        let number = set.configuration.position;
        let end = set.end.as_ref().ok_or(MediaError::NoSuchSet { number })?;
        let part = set.part(self);
        let mut at = end.index_offset;
        let mut behind = u64::MAX;
        while at != 0 {
            let mut streams = Streams::at(&part, set.offset, set.offset.saturating_add(at));
            let stream = streams.expect(Id::WLIX)?;
            // Segments must not overlap, or a short family could have many long ones.
            require_at_most(
                stream.data_offset.saturating_add(stream.length),
                behind,
                "end of an index segment",
                stream.offset,
            )?;
            behind = stream.offset;
            let segment = IndexSegment::parse(&streams.read_data(&stream)?, stream.data_offset)?;
            segment.check_places(at, stream.offset)?;
            let (expected, found) = (end.set_guid, segment.set_guid);
            let offset = stream.offset;
            if expected != found {
                return Err(MediaError::WrongIdentity {
                    offset,
                    what: "backup set",
                    expected,
                    found,
                });
            }
            let previous = segment.previous;
            if previous >= at {
                return Err(MediaError::TooLarge {
                    offset,
                    what: "place of the previous index segment",
                    found: previous,
                    maximum: at - 1,
                });
            }
            at = if visit(segment) { previous } else { 0 };
        }
        Ok(())
    }

    /// Reads the header of the chunk that the index places at `stream_offset` of a set; also returns the
    /// family offset of its payload. The caller checks that it is the chunk to which the index refers.
    ///
    /// # Errors
    /// If the set has no end, or the chunk is incomplete.
    pub fn chunk(
        &self,
        set: &SetListing,
        stream_offset: u64,
    ) -> Result<(ChunkHeader, u64), MediaError> {
        let number = set.configuration.position;
        let end = set.end.as_ref().ok_or(MediaError::NoSuchSet { number })?;
        let at = set.offset.saturating_add(stream_offset);
        let available = self.family.len();
        if at >= available {
            return Err(MediaError::Truncated {
                offset: at,
                what: "chunk",
                needed: at.saturating_add(1),
                available,
            });
        }
        let stream = Streams::at(self.family, set.offset, at).expect(Id::WLDT)?;
        let mut buffer = vec![0; HEADER_BYTES_MAX];
        let family = self.identity.number;
        read_chunk(self.family, &stream, end.set_guid, family, &mut buffer)
    }

    /// Checks the media header and its padding, for a strict verification.
    ///
    /// # Errors
    /// The first deviation from what was written.
    pub fn check_header(&self) -> Result<(), MediaError> {
        let (_, end) = MediaHeader::read(self.family)?;
        Filemark::read(self.family, end, &self.identity).map(drop)
    }
}

/// The configuration from the start of a set.
pub(crate) fn read_start(family: &dyn ReadAt, offset: u64) -> Result<SetConfiguration, MediaError> {
    let mut streams = Streams::open(family, offset, Id::SSET)?;
    let stream = streams.expect(Id::WLSC)?;
    let bytes = streams.read_data(&stream)?;
    SetConfiguration::parse(&bytes, stream.data_offset)
}

/// The final configuration of the set at `offset` with this end.
fn read_final(
    family: &dyn ReadAt,
    offset: u64,
    end: &SetEnd,
) -> Result<(SetConfiguration, FinalConfiguration), MediaError> {
    let at = offset.saturating_add(end.configuration_offset);
    let mut streams = Streams::at(family, offset, at);
    let stream = streams.expect(Id::WLSC)?;
    let stored = FinalConfiguration::new(streams.read_data(&stream)?);
    let configuration = stored.parse(stream.data_offset)?;
    check_configuration(&configuration, end, stream.data_offset)?;
    Ok((configuration, stored))
}

/// Reads the end block at `offset`; also returns where it ends.
pub(crate) fn read_set_end(family: &dyn ReadAt, offset: u64) -> Result<(SetEnd, u64), MediaError> {
    let mut streams = Streams::open(family, offset, Id::ESET)?;
    let stream = streams.expect(Id::WLES)?;
    let bytes = streams.read_data(&stream)?;
    let end = SetEnd::load_list(&bytes, stream.data_offset)?;
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
