//! Media in which everything is correct except the content: every checksum, count, sum and index is
//! recomputed after a change to the chunks of a set.

use windlass_device::DeviceAddress;
use windlass_media::{
    ChunkHeader, FamilyReader, FamilyWriter, MediaHeader, SetConfiguration, chunk_mix,
};

/// A chunk and its payload.
#[derive(Clone)]
pub(crate) struct Chunk {
    pub(crate) header: ChunkHeader,
    pub(crate) payload: Vec<u8>,
}

/// A set, taken off its media.
pub(crate) struct Crafted {
    devices: Vec<DeviceAddress>,
    headers: Vec<MediaHeader>,
    pub(crate) set: SetConfiguration,
    /// In the order of their numbers.
    pub(crate) chunks: Vec<Chunk>,
}

impl Crafted {
    /// The set at `position`; earlier sets are not taken along.
    pub(crate) fn of(devices: &[DeviceAddress], position: usize) -> Self {
        let (mut headers, mut chunks, mut found) = (Vec::new(), Vec::new(), None);
        for device in devices {
            let family = std::fs::read(device.file().unwrap()).unwrap();
            let bytes = family.as_slice();
            let (reader, header) = FamilyReader::open(&bytes).unwrap();
            let listing = reader.list();
            let walked = reader.walk(&listing.sets[position - 1], &mut |header, offset| {
                let stored = header.stored_bytes as usize;
                let payload = family[offset as usize..][..stored].to_vec();
                chunks.push(Chunk { header, payload });
                true
            });
            headers.push(header);
            found = Some(walked.unwrap().configuration);
        }
        chunks.sort_by_key(|chunk: &Chunk| chunk.header.ordinal);
        Self {
            devices: devices.to_vec(),
            headers,
            set: found.unwrap(),
            chunks,
        }
    }

    /// Renumbers the chunks and recomputes every sum and count.
    pub(crate) fn agree(&mut self) {
        let set = &mut self.set;
        (set.set_checksum, set.stored_bytes, set.backup_bytes) = (0, 0, 0);
        set.chunk_count = self.chunks.len() as u64;
        for file in &mut set.files {
            file.backup_bytes = 0;
        }
        for (chunk, ordinal) in self.chunks.iter_mut().zip(0..) {
            let header = &mut chunk.header;
            header.ordinal = ordinal;
            let mixed = chunk_mix(ordinal, header.raw_checksum);
            set.set_checksum = set.set_checksum.wrapping_add(mixed);
            set.stored_bytes += u64::from(header.stored_bytes);
            set.backup_bytes += u64::from(header.raw_bytes);
            let mut files = set.files.iter_mut();
            if let Some(file) = files.find(|file| file.file_id == header.file_id) {
                file.backup_bytes += u64::from(header.raw_bytes);
            }
        }
    }

    /// Writes the media again, with this set alone on them.
    pub(crate) fn write(&mut self) {
        self.set.position = 1;
        let count = self.devices.len();
        self.set.binding.clear();
        let start = self.set.clone();
        self.set.binding = self.headers[0].binding(&start).unwrap();
        for (index, (device, header)) in self.devices.iter().zip(&self.headers).enumerate() {
            let (mut writer, mut family) = FamilyWriter::format(header).unwrap();
            family.extend(writer.begin_set(&start).unwrap());
            for chunk in self.chunks.iter().skip(index).step_by(count) {
                let mut header = chunk.header.clone();
                header.family = index as u16 + 1;
                writer.chunk_header(&header, 4, &mut family).unwrap();
                family.extend(&chunk.payload);
                writer.chunk_written(&mut family);
            }
            family.extend(writer.end_of_data(&self.set).unwrap());
            family.extend(writer.end_set().unwrap());
            std::fs::write(device.file().unwrap(), family).unwrap();
        }
    }
}
