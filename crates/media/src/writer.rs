//! Writes a media family: a state machine from values to bytes.
//!
//! ```text
//!  Idle --begin_set--> Data --chunk_header/chunk_written*--> Data --end_of_data--> Ending --end_set--> Idle
//! ```
//!
//! Every call returns or appends the next bytes of the family; writing is strictly sequential. The
//! caller syncs all families between `end_of_data` and `end_set`, because the end of a set states
//! that everything before it exists.

use windlass_base::Blake3Builder;

use crate::chunk::ChunkHeader;
use crate::configuration::SetConfiguration;
use crate::cursor::Emission;
use crate::error::MediaError;
use crate::filemark::{Filemark, capacity};
use crate::header::{FamilyIdentity, MediaHeader};
use crate::index::{IndexEntry, IndexSegment, SEGMENT_CHUNKS_MAX};
use crate::mtf::{
    Id, STREAM_ALIGNMENT, STREAM_HEADER_BYTES, StreamHeader, emit_pad_stream, emit_stream,
};
use crate::set_blocks::{SetEnd, emit_set_end, emit_set_start};

/// Where an append continues: after a set of a family.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppendPosition {
    /// Family offset of the next byte.
    pub offset: u64,
    pub sets: u16,
    /// Offsets of earlier filemarks, newest first; at least one.
    pub filemarks: Vec<u64>,
    /// Whether the filemark after the last set must be rewritten: the end of that set is good, but
    /// its filemark was truncated or damaged.
    pub needs_filemark: bool,
}

#[derive(Debug)]
enum State {
    Idle,
    Data(Box<OpenSet>),
    Ending(Box<OpenSet>),
}

#[derive(Debug)]
struct OpenSet {
    configuration: SetConfiguration,
    end: SetEnd,
    segment: IndexSegment,
    /// All chunk headers so far.
    headers: Blake3Builder,
    /// A chunk header as a signature covers it; reused.
    signed: Vec<u8>,
    /// Payload bytes that the caller has yet to write.
    payload_due: u64,
}

/// Writes one media family.
#[derive(Debug)]
pub struct FamilyWriter {
    family: FamilyIdentity,
    offset: u64,
    sets: u16,
    /// Earlier filemarks, newest first, as many as a filemark lists.
    filemarks: Vec<u64>,
    needs_filemark: bool,
    state: State,
}

impl FamilyWriter {
    /// Starts a family: the media header and the first filemark.
    ///
    /// # Errors
    /// If tape format does not support the block size.
    pub fn format(header: &MediaHeader) -> Result<(Self, Vec<u8>), MediaError> {
        let mut writer = Self {
            family: header.identity(),
            offset: 0,
            sets: 0,
            filemarks: Vec::new(),
            needs_filemark: false,
            state: State::Idle,
        };
        let mut bytes = Vec::new();
        let mut out = Emission::new(&mut bytes, 0);
        header.emit(&mut out)?;
        writer.emit_filemark(&mut out, Filemark::number_behind(0));
        writer.offset = out.offset();
        Ok((writer, bytes))
    }

    /// Continues a family. The caller has truncated it at `position`.
    pub fn append_after(header: &MediaHeader, position: AppendPosition) -> Self {
        Self {
            family: header.identity(),
            offset: position.offset,
            sets: position.sets,
            filemarks: position.filemarks,
            needs_filemark: position.needs_filemark,
            state: State::Idle,
        }
    }

    /// Family offset of the next byte.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    fn emit_filemark(&mut self, out: &mut Emission<'_>, number: u32) {
        let offset = out.offset();
        let earlier = std::mem::take(&mut self.filemarks);
        let mark = Filemark {
            offset,
            number,
            earlier,
        };
        mark.emit(&self.family, out);
        self.filemarks = mark.earlier;
        self.filemarks.insert(0, offset);
        self.filemarks.truncate(capacity(self.family.block_bytes));
    }

    /// Starts a set; returns everything up to the first chunk.
    ///
    /// # Errors
    /// If a set is open, the set's position is not the next one, or the configuration cannot be
    /// stored.
    pub fn begin_set(&mut self, set: &SetConfiguration) -> Result<Vec<u8>, MediaError> {
        if !matches!(self.state, State::Idle) {
            return Err(self.out_of_order("begin_set"));
        }
        if Some(set.position) != self.sets.checked_add(1) {
            return Err(MediaError::Unwritable {
                what: "position of a set",
                found: set.position.into(),
                rule: "sets are numbered in order",
            });
        }
        let mut bytes = Vec::new();
        let mut out = Emission::new(&mut bytes, self.offset);
        if std::mem::take(&mut self.needs_filemark) {
            self.emit_filemark(&mut out, Filemark::number_behind(self.sets));
        }
        let set_offset = out.offset();
        emit_set_start(set, &self.family, &mut out)?;
        let end = SetEnd {
            set_guid: set.set_guid,
            position: set.position,
            family_number: self.family.number,
            set_offset,
            ..SetEnd::default()
        };
        let segment = IndexSegment {
            set_guid: set.set_guid,
            previous: 0,
            entries: Vec::new(),
        };
        let configuration = set.clone();
        self.offset = out.offset();
        self.state = State::Data(Box::new(OpenSet {
            configuration,
            end,
            segment,
            headers: Blake3Builder::default(),
            signed: Vec::new(),
            payload_due: 0,
        }));
        Ok(bytes)
    }

    /// Appends a chunk's header, padded so that the payload starts at a multiple of `alignment` in
    /// the family. The caller then writes the payload and calls [`FamilyWriter::chunk_written`].
    ///
    /// # Errors
    /// If no set is open, or the header cannot be stored.
    pub fn chunk_header(
        &mut self,
        header: &ChunkHeader,
        alignment: u32,
        bytes: &mut Vec<u8>,
    ) -> Result<(), MediaError> {
        let State::Data(set) = &mut self.state else {
            return Err(self.out_of_order("chunk_header"));
        };
        if set.payload_due > 0 {
            return Err(self.out_of_order("chunk_header"));
        }
        let mut out = Emission::new(bytes, self.offset);
        out.pad_to(STREAM_ALIGNMENT, 0);
        let stream_offset = out.offset() - set.end.set_offset;
        let header_bytes =
            header.padded_bytes(out.offset() + STREAM_HEADER_BYTES as u64, alignment);
        let length = header_bytes + u64::from(header.stored_bytes);
        StreamHeader {
            id: Id::WLDT,
            length,
        }
        .emit(&mut out);
        header.emit(header_bytes, &mut out)?;
        self.offset = out.offset();
        set.payload_due = header.stored_bytes.into();
        set.signed.clear();
        header.emit_signed(&mut set.signed);
        set.headers.update(&set.signed);
        set.segment
            .entries
            .push(IndexEntry::of(header, stream_offset));
        set.end.chunk_count += 1;
        set.end.stored_bytes += u64::from(header.stored_bytes);
        Ok(())
    }

    /// BLAKE3 of all chunk headers of the open set, in order.
    ///
    /// # Errors
    /// When no set is open.
    pub fn chunk_headers(&self) -> Result<[u8; 32], MediaError> {
        match &self.state {
            State::Data(set) => Ok(set.headers.finish()),
            State::Idle | State::Ending(_) => Err(self.out_of_order("chunk_headers")),
        }
    }

    /// Accounts for the written payload, and appends what must follow it.
    pub fn chunk_written(&mut self, bytes: &mut Vec<u8>) {
        let State::Data(set) = &mut self.state else {
            return;
        };
        self.offset += set.payload_due;
        set.payload_due = 0;
        if set.segment.entries.len() >= SEGMENT_CHUNKS_MAX as usize {
            let mut out = Emission::new(bytes, self.offset);
            set.emit_segment(&mut out);
            self.offset = out.offset();
        }
    }

    /// Ends the data: last index segment, final configuration, filemark.
    ///
    /// # Errors
    /// If no set is open, a payload is missing, or the configuration cannot be stored.
    pub fn end_of_data(&mut self, set: &SetConfiguration) -> Result<Vec<u8>, MediaError> {
        let mut open = match std::mem::replace(&mut self.state, State::Idle) {
            State::Data(open) if open.payload_due == 0 => open,
            other => {
                self.state = other;
                return Err(self.out_of_order("end_of_data"));
            }
        };
        let mut bytes = Vec::new();
        let mut out = Emission::new(&mut bytes, self.offset);
        if !open.segment.entries.is_empty() {
            open.emit_segment(&mut out);
        }
        out.pad_to(STREAM_ALIGNMENT, 0);
        open.end.configuration_offset = out.offset() - open.end.set_offset;
        emit_stream(&mut out, Id::WLSC, &set.emit()?);
        emit_pad_stream(&mut out, self.family.block_bytes.into(), 0);
        open.configuration = set.clone();
        self.emit_filemark(&mut out, Filemark::number_behind(self.sets) + 1);
        self.offset = out.offset();
        self.state = State::Ending(open);
        Ok(bytes)
    }

    /// Ends the set: end block and filemark. Everything before must be durable on every family.
    ///
    /// # Errors
    /// If the data have not been ended.
    pub fn end_set(&mut self) -> Result<Vec<u8>, MediaError> {
        let open = match std::mem::replace(&mut self.state, State::Idle) {
            State::Ending(open) => open,
            other => {
                self.state = other;
                return Err(self.out_of_order("end_set"));
            }
        };
        let mut bytes = Vec::new();
        let mut out = Emission::new(&mut bytes, self.offset);
        emit_set_end(&open.end, &open.configuration, &self.family, &mut out);
        self.sets += 1;
        self.emit_filemark(&mut out, Filemark::number_behind(self.sets));
        self.offset = out.offset();
        Ok(bytes)
    }

    fn out_of_order(&self, call: &'static str) -> MediaError {
        let state = match &self.state {
            State::Idle => "the end of a set",
            State::Data(open) if open.payload_due > 0 => "the header of a chunk",
            State::Data(_) => "the chunks of a set",
            State::Ending(_) => "the end of the data",
        };
        MediaError::OutOfOrder { call, state }
    }
}

impl OpenSet {
    fn emit_segment(&mut self, out: &mut Emission<'_>) {
        out.pad_to(STREAM_ALIGNMENT, 0);
        let offset = out.offset() - self.end.set_offset;
        emit_stream(out, Id::WLIX, &self.segment.emit());
        self.segment.previous = offset;
        self.segment.entries.clear();
        self.end.index_offset = offset;
    }
}
